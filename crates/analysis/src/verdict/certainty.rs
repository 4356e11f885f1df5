//! Tells which other verdicts are possible, because device and host times agree only within the clock's error or
//! contradict each other, because functions of the host or pieces of work have no times, or because work that waited for another device
//! started late for no known reason.
//!
//! Busy time is measured by one clock and stays. Idle time could be on another side of the verdict, by as much as the sides'
//! ranges say. The verdict is made again with each side at its most and at its least, and its sentence says what is open.

use super::times::Times;
use crate::bound::Bound;
use crate::gaps::Side;
use gapscope_timeline::quantity::{Nanoseconds, Percent};
use gapscope_timeline::thresholds::UNCERTAIN_SHARE;

/// The idle time of each side, in the order of [`Side::ALL`].
pub(super) type Sides = [i64; Side::ALL.len()];

/// How certain a verdict is.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Certainty {
    /// No other verdict is possible.
    Certain,
    /// The verdict's side has at least this much of the time, which is clearly less than the times say, and perhaps below the
    /// verdict's share.
    AtLeast(i64),
    /// The verdict is mixed whatever the error, and how idle time splits into sides is not certain.
    Split(Vec<(Side, i64, i64)>),
    /// The side of another verdict may reach its share, with at most this much of the time.
    Perhaps(Bound, i64),
    /// Any of these verdicts may be true.
    Open(Vec<Bound>),
}

impl Times<'_> {
    /// Returns how certain a verdict is that these times give.
    pub(super) fn certainty(&self, bound: Bound) -> Certainty {
        let Some((least, most)) = self.ranges() else {
            return Certainty::Certain;
        };
        let now = self.sides();
        let mut others: Vec<Bound> = Vec::new();
        let mut add = |sides: Sides| {
            let other = Bound::with_sides(self, sides);
            if other != bound && !others.contains(&other) {
                others.push(other);
            }
        };
        for side in 0..now.len() {
            let mut more = now;
            let missing = (0..now.len()).filter(|from| *from != side);
            missing.for_each(|from| shift(&mut more, from, side, least[from], most[side]));
            add(more);
            for first in (0..now.len()).filter(|to| *to != side) {
                let mut less = now;
                shift(&mut less, side, first, least[side], most[first]);
                for to in (0..now.len()).filter(|to| *to != side) {
                    shift(&mut less, side, to, least[side], most[to]);
                }
                add(less);
            }
        }
        let named: Vec<Bound> = (others.iter().copied())
            .filter(|other| *other != Bound::Mixed)
            .collect();
        let side = |bound| side_of(bound).map(|side| side as usize);
        let is_wide = |less_ns: i64, more_ns: i64| {
            self.share(more_ns.saturating_sub(less_ns)) >= UNCERTAIN_SHARE
        };
        match (named.as_slice(), side(bound)) {
            ([], Some(side)) if others.is_empty() && is_wide(least[side], now[side]) => {
                Certainty::AtLeast(least[side])
            }
            ([], _) if bound == Bound::Mixed => {
                let sides = Side::ALL.map(|side| (side, least[side as usize], most[side as usize]));
                let wide = sides
                    .into_iter()
                    .filter(|(_, least, most)| is_wide(*least, *most));
                match wide.collect::<Vec<_>>() {
                    wide if wide.is_empty() => Certainty::Certain,
                    wide => Certainty::Split(wide),
                }
            }
            ([], _) if others.is_empty() => Certainty::Certain,
            ([], Some(side)) => {
                let others = (0..most.len()).filter(|other| *other != side);
                match others.map(|other| most[other]).max() {
                    Some(ns) if ns > least[side] => Certainty::Open(vec![bound, Bound::Mixed]),
                    _ => Certainty::AtLeast(least[side]),
                }
            }
            ([other], _) if bound == Bound::Mixed => match side(*other) {
                Some(side) => Certainty::Perhaps(*other, most[side]),
                None => Certainty::Open(named),
            },
            _ => {
                let bounds = [bound].into_iter().chain(others);
                Certainty::Open(bounds.collect())
            }
        }
    }

    /// Returns the other verdicts that are possible because of what is not measured, and the beginning of the sentence that says
    /// what that is; `None` without others.
    fn perhaps(&self, bound: Bound) -> Option<(Vec<Bound>, String)> {
        if let Some(path) = &self.path {
            let (others, share) = path.perhaps(bound)?;
            return Some((others, path.untimed(share)));
        }
        let untimed_ns = self.untimed_work_ns();
        let beside_ns = self.busy.beside_compute_ns;
        let unknown_ns = self.unknown_ns.saturating_add(self.busy.doubtful_ns);
        if self.share(unknown_ns.max(beside_ns)) < UNCERTAIN_SHARE || bound == Bound::Unknown {
            return None;
        }
        let mut rest = self.clone();
        rest.unknown_ns -= self.untimed_ns;
        (rest.untimed_ns, rest.busy.doubtful_ns) = (0, 0);
        // Either the work ran, as work of one kind …
        let ran = |part: fn(&mut Self) -> &mut i64| {
            let mut times = rest.clone();
            let part = part(&mut times);
            *part = part.saturating_add(untimed_ns);
            times
        };
        // … or none ran, and the device idled for one reason.
        let idled = |part: fn(&mut Self) -> &mut i64, kept_ns: i64| {
            let mut times = rest.clone();
            times.unknown_ns = kept_ns;
            let busy = &mut times.busy;
            let known = match (busy.unsure_communication, busy.unsure_transfer) {
                (true, false) => &mut busy.communication_ns,
                _ => &mut busy.transfer_ns,
            };
            *known = known.saturating_add(self.busy.doubtful_ns);
            let part = part(&mut times);
            *part = part.saturating_add(self.unknown_ns - kept_ns);
            times
        };
        let mut unfilled = idled(|times| &mut times.unknown_ns, 0);
        // Nothing ran beside kernels that fill little of the device.
        unfilled.busy.beside_compute_ns = 0;
        let all = [
            ran(|times| &mut times.busy.compute_ns),
            ran(|times| &mut times.busy.communication_ns),
            ran(|times| &mut times.busy.transfer_ns),
            idled(|times| &mut times.host_ns, self.not_of_host_ns),
            idled(|times| &mut times.sync_ns, 0),
            idled(|times| &mut times.launch_ns, 0),
            unfilled,
        ];
        // Work of a device that started late for no known reason may have waited for another device all the while, whose clock is off: then
        // the verdict is that on one device.
        let is_late = self.share(self.not_of_host_ns) >= UNCERTAIN_SHARE;
        let apart = self
            .apart
            .iter()
            .filter(|other| is_late && **other != Bound::Mixed);
        let others = others(
            bound,
            all.iter().map(Bound::from_times).chain(apart.copied()),
        );
        (!others.is_empty()).then(|| (others, self.not_known()))
    }

    /// Returns the beginning of a sentence that says for how much of the time it is not known what the devices did, in the shares that
    /// the parts of the verdict have.
    fn not_known(&self) -> String {
        let device = if self.several() { "devices" } else { "device" };
        let beside_ns = self.busy.beside_compute_ns;
        let [unknown, beside] = [self.unmeasured_ns(), beside_ns].map(|ns| Percent(self.share(ns)));
        let ran = "work without known times may have run";
        match (self.untimed_work_ns(), beside_ns) {
            (0, 0) => {
                format!("The trace does not say why the {device} idled for {unknown} of the time")
            }
            (_, 0) => {
                format!("What the {device} did is not known for {unknown} of the time, as {ran}")
            }
            _ if self.unmeasured_ns() == 0 => {
                format!("For {beside} of the time {ran} beside kernels")
            }
            _ => format!(
                "What the {device} did is not known for {unknown} of the time, and for another {beside} {ran} beside kernels"
            ),
        }
    }

    /// Returns true where all that is not known is why work that was free to run started late.
    fn lacks_only_starts(&self) -> bool {
        self.path.is_none()
            && self.untimed_work_ns() == 0
            && self.busy.beside_compute_ns == 0
            && self.not_of_host_ns >= self.unmeasured_ns()
    }

    /// Returns a verdict and its sentence with what work without known times and the clock's error leave open.
    pub(super) fn hedged(&self, bound: Bound, sentence: String) -> (Bound, String) {
        if let Some((others, why)) = self.perhaps(bound) {
            // Late starts that nothing explains leave open whether one cause bounds the speed; what is known does not.
            if bound == Bound::Mixed && self.lacks_only_starts() {
                let others = listed(&others);
                return (bound, format!("{sentence} {why}: {others} is possible."));
            }
            return (Bound::Unknown, may_be(&why, bound, &others));
        }
        match self.certainty(bound) {
            Certainty::Certain => (bound, sentence),
            Certainty::AtLeast(ns) => {
                let share = Percent(self.share(ns));
                (
                    bound,
                    format!(
                        "{sentence} {} this is at least {share}.",
                        self.within_error()
                    ),
                )
            }
            Certainty::Split(sides) => {
                let percent = |ns: i64| Percent(self.share(ns));
                let ranges = sides.iter().map(|(side, least_ns, most_ns)| {
                    let (least, most) = (percent(*least_ns), percent(*most_ns));
                    format!("{} {least} to {most}", side.as_str())
                });
                let ranges = ranges.collect::<Vec<_>>().join(", ");
                (
                    bound,
                    format!(
                        "{sentence} {} idle time may split otherwise: {ranges}.",
                        self.within_error()
                    ),
                )
            }
            Certainty::Perhaps(other, ns) => {
                let share = Percent(self.share(ns));
                let within = self.within_error();
                (
                    bound,
                    format!("{sentence} {within} {other} is possible, with at most {share}."),
                )
            }
            Certainty::Open(bounds) => {
                let of_functions = self.contradicted_ns == 0
                    && bounds
                        .iter()
                        .all(|bound| matches!(bound, Bound::HostBound | Bound::Unknown));
                let sentence = match of_functions {
                    true => self.behind_functions(),
                    false => self.open(&bounds),
                };
                (Bound::Unknown, sentence)
            }
        }
    }

    /// Returns the sentence on a device that waited for the host, if it did while functions had no times.
    fn behind_functions(&self) -> String {
        let device = if self.several() { "devices" } else { "device" };
        format!(
            "The {device} waited for the host for at most {} of the time: for {} it had work behind functions of the host whose times are not recorded.",
            Percent(self.share(self.host_ns)),
            Percent(self.share(self.untimed_function_ns)),
        )
    }

    /// Returns the sentence on a verdict that device and host times leave open.
    fn open(&self, bounds: &[Bound]) -> String {
        let names = listed(bounds);
        let why = match (
            self.contradicted_ns,
            self.untimed_function_ns,
            self.error_ns,
        ) {
            (0, 0, Some(ns)) => format!("the clock's error is {}", Nanoseconds(ns)),
            (0, 0, None) => "of the clock's error".to_owned(),
            (0, ..) => "functions of the host have no times".to_owned(),
            _ => "host and device times contradict each other".to_owned(),
        };
        let (device, was) = match self.several() {
            true => ("The devices", "were"),
            false => ("The device", "was"),
        };
        format!(
            "{device} {was} idle for {} of the time, and the trace cannot tell for what, because {why}: the program may be {names}.",
            Percent(self.share(self.idle_ns())),
        )
    }

    /// Returns the begin of a sentence on what is possible within the clock's error.
    fn within_error(&self) -> String {
        match (
            self.contradicted_ns,
            self.untimed_function_ns,
            self.error_ns,
        ) {
            (0, 0, Some(ns)) => format!("Within the clock's error of {}", Nanoseconds(ns)),
            (0, 0, None) => "Within the clock's error".to_owned(),
            (0, ..) => "As functions of the host have no times,".to_owned(),
            _ => "As host and device times contradict each other,".to_owned(),
        }
    }

    /// Returns the idle time of each side.
    pub(super) fn sides(&self) -> Sides {
        Side::ALL.map(|side| match side {
            Side::Host => self.host_ns,
            Side::Sync => self.sync_ns,
            Side::Launch => self.launch_ns,
            Side::Unknown => self.unknown_ns,
        })
    }

    /// Returns the least and the most idle time that each side could have; `None` where neither the clock's error nor anything
    /// else that leaves the sides open is known.
    fn ranges(&self) -> Option<(Sides, Sides)> {
        let now = self.sides();
        let idle_ns = now.into_iter().fold(0, i64::saturating_add);
        let (mut least, mut most) = (now, now);
        let mut is_error_known = true;
        for range in &self.ranges {
            let side = range.side as usize;
            let Some((at_least_ns, at_most_ns)) = range.at_least_ns.zip(range.at_most_ns) else {
                is_error_known = false;
                continue;
            };
            let lost_ns = range.total_ns.saturating_sub(at_least_ns).max(0);
            let won_ns = at_most_ns.saturating_sub(range.total_ns).max(0);
            least[side] = least[side].saturating_sub(lost_ns).max(0);
            most[side] = most[side].saturating_add(won_ns).min(idle_ns);
        }
        if !is_error_known && self.contradicted_ns == 0 && self.untimed_function_ns == 0 {
            return None;
        }
        // What the trace does not say is not known any better or worse.
        for side in [Side::Host, Side::Sync, Side::Launch].map(|side| side as usize) {
            least[side] = least[side].saturating_sub(self.contradicted_ns).max(0);
            most[side] = most[side].saturating_add(self.contradicted_ns).min(idle_ns);
        }
        let (host, unknown) = (Side::Host as usize, Side::Unknown as usize);
        least[host] = least[host].saturating_sub(self.untimed_function_ns).max(0);
        most[unknown] = (most[unknown].saturating_add(self.untimed_function_ns)).min(idle_ns);
        Some((least, most))
    }
}

/// Returns those verdicts of hypotheses that differ from `bound`, each once.
pub(super) fn others(bound: Bound, all: impl Iterator<Item = Bound>) -> Vec<Bound> {
    let mut others = Vec::new();
    for other in all {
        if ![bound, Bound::Unknown].contains(&other) && !others.contains(&other) {
            others.push(other);
        }
    }
    others
}

/// Returns the sentence on a verdict that is open: the reason, and the verdicts of which each may be true.
pub(super) fn may_be(why: &str, bound: Bound, others: &[Bound]) -> String {
    let all: Vec<Bound> = [bound].into_iter().chain(others.iter().copied()).collect();
    format!("{why}: the program may be {}.", listed(&all))
}

/// Lists verdicts in a sentence.
fn listed(bounds: &[Bound]) -> String {
    let names: Vec<&str> = bounds.iter().map(|bound| bound.as_str()).collect();
    match names.as_slice() {
        [names @ .., last] if !names.is_empty() => format!("{} or {last}", names.join(", ")),
        names => names.join(", "),
    }
}

/// Moves as much time as possible from one side to another.
fn shift(sides: &mut Sides, from: usize, to: usize, least_ns: i64, most_ns: i64) {
    let spare_ns = sides[from].saturating_sub(least_ns).max(0);
    let ns = spare_ns.min(most_ns.saturating_sub(sides[to]).max(0));
    sides[from] -= ns;
    sides[to] += ns;
}

/// Returns the side whose idle time a verdict rests on.
fn side_of(bound: Bound) -> Option<Side> {
    match bound {
        Bound::HostBound => Some(Side::Host),
        Bound::SyncBound => Some(Side::Sync),
        Bound::LatencyBound => Some(Side::Launch),
        Bound::Unknown => Some(Side::Unknown),
        _ => None,
    }
}
