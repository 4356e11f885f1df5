//! Judges several devices, or ranks whose traces were read one after the other, by the one critical path through them all.
//!
//! A [`JointPath`] goes in: the path's time on each device by what it runs through. The verdict and its sentence come out. Waiting
//! in a collective or a receive for a device that has yet to come is not on the path, which goes on with what that device does.
//!
//! Communication and transfers on the path are the verdict where they have the share of the table in [`super`], and as far as the time
//! in which the device that computes the longest did not compute: however fast they were, that device would still compute for as
//! long. What is beyond that counts as computing.

use super::certainty::{Sides, may_be, others};
use super::times::Times;
use crate::bound::Bound;
use crate::critical_path::{JointPath, PathParts};
use crate::fill::DeviceFill;
use crate::gaps::Side;
use gapscope_timeline::busy::BusyParts;
use gapscope_timeline::quantity::{Percent, ratio};
use gapscope_timeline::thresholds::{
    COMMUNICATION_SHARE, SAME_RANK_SHARE, SLACK_SHARE, TRANSFER_SHARE, UNCERTAIN_SHARE,
};
use std::cmp::Reverse;

impl Times<'_> {
    /// Returns the parts of the joint path where idle time is on other sides: the path's idle time moves as all of it does.
    pub(super) fn path_parts(&self, path: &JointPath, sides: Sides) -> PathParts {
        let mut parts = path.parts();
        let now = self.sides();
        let all_ns = now.into_iter().fold(0, i64::saturating_add);
        let on_path = ratio(parts.idle_ns(), all_ns);
        for (part, (now, ns)) in parts.sides.iter_mut().zip(now.into_iter().zip(sides)) {
            let moved_ns = (on_path * ns.saturating_sub(now) as f64) as i64;
            *part = part.saturating_add(moved_ns).max(0);
        }
        parts
    }
}

impl JointPath {
    /// Returns the time of the path on all devices.
    pub fn parts(&self) -> PathParts {
        let parts = self.devices.iter().map(|device| device.parts);
        parts.fold(PathParts::default(), PathParts::plus)
    }

    /// Returns the other verdicts that are possible because work without known times may have run on the path, with the share of the
    /// path in which that may be; `None` without others.
    pub(super) fn perhaps(&self, bound: Bound) -> Option<(Vec<Bound>, f64)> {
        let parts = self.parts();
        let untimed = self.devices.iter().map(|device| {
            let unknown_ns = device.parts.sides[Side::Unknown as usize];
            (device.untimed_share.min(1.0) * unknown_ns as f64) as i64
        });
        let ns = untimed.fold(0, i64::saturating_add);
        let share = ratio(ns, parts.total_ns());
        if share < UNCERTAIN_SHARE || bound == Bound::Unknown {
            return None;
        }
        let mut rest = parts;
        rest.sides[Side::Unknown as usize] -= ns;
        let mut idle = rest;
        idle.sides[Side::Host as usize] += ns;
        let all = [
            PathParts {
                compute_ns: rest.compute_ns.saturating_add(ns),
                ..rest
            },
            PathParts {
                communication_ns: rest.communication_ns.saturating_add(ns),
                ..rest
            },
            PathParts {
                transfer_ns: rest.transfer_ns.saturating_add(ns),
                ..rest
            },
            idle,
        ];
        let all = all.into_iter().map(|parts| self.bound(parts));
        let others = others(bound, all);
        (!others.is_empty()).then_some((others, share))
    }

    /// Returns the beginning of a sentence on the share of the path that is not known.
    pub(super) fn untimed(&self, share: f64) -> String {
        format!(
            "What ran is not known for {} of the critical path through all {}, as work without known times may have run",
            Percent(share),
            self.of
        )
    }

    /// Returns the verdict and its sentence. Where the clocks' error, or work without known times, leaves the verdict open, that is unknown.
    pub fn verdict(&self) -> (Bound, String) {
        let parts = self.parts();
        let bound = self.bound(parts);
        if let Some((others, share)) = self.perhaps(bound) {
            return (Bound::Unknown, may_be(&self.untimed(share), bound, &others));
        }
        let sentence = self.sentence(bound, parts);
        let moved_ns = self.error_ns.min(parts.communication_ns);
        let less = PathParts {
            communication_ns: parts.communication_ns - moved_ns,
            compute_ns: parts.compute_ns + moved_ns,
            ..parts
        };
        let moved_ns = self.error_ns.min(parts.compute_ns);
        let more = PathParts {
            communication_ns: parts.communication_ns + moved_ns,
            compute_ns: parts.compute_ns - moved_ns,
            ..parts
        };
        let total_ns = parts.total_ns();
        let others = [less, more].map(|parts| self.bound(parts));
        let other = others.into_iter().find(|other| *other != bound);
        if let Some(other) = other.filter(|_| bound != Bound::Unknown) {
            let error = Percent(ratio(self.error_ns, total_ns));
            let sentence = format!(
                "{bound} or {other}: the clocks' error is {error} of the critical path through all {}, and leaves open how much of \
                 that is communication.",
                self.of
            );
            let mut first = sentence.chars();
            let first_upper = first.next().map(|c| c.to_ascii_uppercase());
            let sentence = first_upper.into_iter().chain(first).collect();
            return (Bound::Unknown, sentence);
        }
        let is_wide = ratio(self.error_ns, total_ns) >= UNCERTAIN_SHARE;
        match (bound, is_wide) {
            (Bound::CommunicationBound, true) => {
                let share = Percent(ratio(less.communication_ns, total_ns));
                (
                    bound,
                    format!("{sentence} Within the clocks' error this is at least {share}."),
                )
            }
            _ => (bound, sentence),
        }
    }

    /// Returns the verdict on a path whose parts are these.
    pub(crate) fn bound(&self, parts: PathParts) -> Bound {
        let window_ns = parts.total_ns();
        let share = |ns: i64| ratio(ns, window_ns);
        let rest_ns = window_ns.saturating_sub(self.most_compute_ns).max(0);
        let holds_up = |ns: i64, least: f64| {
            let win = share(ns.min(rest_ns));
            share(ns) >= least
                && win >= SLACK_SHARE
                && (win >= 2.0 * (1.0 - share(ns)) || win >= least)
        };
        let [host_ns, sync_ns, launch_ns, unknown_ns] = parts.sides;
        let communicates = holds_up(parts.communication_ns, COMMUNICATION_SHARE);
        let moves = holds_up(parts.transfer_ns, TRANSFER_SHARE);
        let counted = |ns: i64, holds_up: bool| if holds_up { ns } else { ns.min(rest_ns) };
        let communication_ns = counted(parts.communication_ns, communicates);
        let transfer_ns = counted(parts.transfer_ns, moves);
        let beyond_ns = parts.communication_ns - communication_ns + parts.transfer_ns - transfer_ns;
        let underfilled: f64 = (self.devices.iter())
            .map(|device| device.underfilled_share * device.parts.compute_ns as f64)
            .sum();
        let fill = DeviceFill {
            underfilled_ns: Some(underfilled as i64),
            ..DeviceFill::default()
        };
        Bound::from_times(&Times {
            window_ns,
            busy: BusyParts {
                compute_ns: parts.compute_ns.saturating_add(beyond_ns),
                communication_ns,
                transfer_ns,
                ..BusyParts::default()
            },
            host_ns,
            sync_ns,
            launch_ns,
            unknown_ns,
            fill: vec![&fill],
            ..Times::default()
        })
    }

    /// Returns the sentence on a verdict.
    pub(crate) fn sentence(&self, bound: Bound, parts: PathParts) -> String {
        let total_ns = parts.total_ns();
        let percent = |ns: i64| Percent(ratio(ns, total_ns));
        let path = format!("The critical path through all {}", self.of);
        type PathTime = fn(&PathParts) -> i64;
        let part: PathTime = match bound {
            Bound::DeviceBound => |parts| parts.compute_ns.saturating_add(parts.transfer_ns),
            Bound::CommunicationBound => |parts| parts.communication_ns,
            Bound::TransferBound => |parts| parts.transfer_ns,
            Bound::HostBound => |parts| parts.sides[0],
            Bound::SyncBound => |parts| parts.sides[1],
            Bound::LatencyBound => |parts| parts.sides[2],
            Bound::Unknown => |parts| parts.sides[3],
            Bound::Mixed => |parts| parts.total_ns(),
        };
        let share = percent(part(&parts));
        let mostly = self.mostly(part);
        let communication = percent(parts.communication_ns);
        match bound {
            Bound::DeviceBound => format!(
                "{path} runs through computing{} for {share} of its time{mostly}: faster communication would win at most {communication}.",
                if parts.transfer_ns > 0 {
                    " and transfers"
                } else {
                    ""
                },
            ),
            Bound::CommunicationBound | Bound::TransferBound => {
                let work = match bound {
                    Bound::CommunicationBound => "communication after the last arrivals",
                    _ => "transfers",
                };
                let win = percent(total_ns.saturating_sub(part(&parts)));
                format!(
                    "{path} runs through {work} for {share} of its time{mostly}: faster kernels would win at most {win}."
                )
            }
            Bound::HostBound => {
                format!("{path} waits for the host for {share} of its time{mostly}.")
            }
            Bound::SyncBound => {
                format!("{path} idles at synchronisation for {share} of its time{mostly}.")
            }
            Bound::LatencyBound => format!(
                "{path} goes into starting and ordering work for {share} of its time, and for {} through kernels, many of which could \
                 fill less than a quarter of their device.",
                percent(parts.compute_ns)
            ),
            Bound::Unknown => format!(
                "Nothing that was measured ran on {} for {share} of its time, and the traces do not say why.",
                path.replacen("The", "the", 1)
            ),
            Bound::Mixed => {
                let [host, sync, launch, unknown] = parts.sides;
                let mut shares = [
                    ("computing", parts.compute_ns),
                    ("communication", parts.communication_ns),
                    ("transfers", parts.transfer_ns),
                    ("host", host),
                    ("sync", sync),
                    ("launch", launch),
                    ("unknown", unknown),
                ];
                shares.sort_by_key(|(_, ns)| Reverse(*ns));
                let shares = shares.iter().filter(|(_, ns)| *ns > 0).take(3);
                let shares: Vec<String> = shares
                    .map(|(what, ns)| format!("{what} {}", percent(*ns)))
                    .collect();
                format!(
                    "{path} has no single part that bounds the speed: {}.",
                    shares.join(", ")
                )
            }
        }
    }

    /// Returns on which device most of a part of the path is, as the end of a clause; empty where no device has the greater part, or
    /// another could have it.
    fn mostly(&self, part: impl Fn(&PathParts) -> i64) -> String {
        let all_ns = part(&self.parts());
        let most = self.devices.iter().max_by_key(|device| part(&device.parts));
        let most = most.map(|device| (device, ratio(part(&device.parts), all_ns)));
        let names = self.devices.len() > 1 && !self.runs_through_any;
        match most.filter(|(_, share)| *share >= SAME_RANK_SHARE && names) {
            Some((device, share)) => format!(", {} of that on {}", Percent(share), device.name),
            None => String::new(),
        }
    }
}
