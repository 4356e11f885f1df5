//! Finds why a rank is late at collectives (operations of several ranks): the activities on which its device spent
//! longer before its arrivals than the others' devices.

use super::matched::Matched;
use super::part::{CollectivePart, Communicator, WorkTotals};
use gapscope_analysis::gaps::Cause;
use gapscope_timeline::quantity::ratio;
use schemars::JsonSchema;
use serde::Serialize;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

/// The activity of a device before it arrived at a collective.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Doing {
    /// The device ran something that is no collective.
    Compute,
    /// The device ran collectives alone, such as those of other communicators.
    Communication,
    /// The device's part in the collective before ended later than the others', by more than the clocks' error.
    LateEnd,
    /// The device ran nothing.
    Idle(Cause),
}

impl Doing {
    /// Returns the stable name in JSON. Idle time has the name of its cause.
    pub const fn as_str(self) -> &'static str {
        match self {
            Doing::Compute => "compute",
            Doing::Communication => "communication",
            Doing::LateEnd => "late-end",
            Doing::Idle(cause) => cause.as_str(),
        }
    }
}

impl Serialize for Doing {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

/// An activity on which a late rank spent longer than the others.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, JsonSchema)]
pub struct LateCause {
    /// The activity.
    #[schemars(with = "String")]
    pub what: Doing,
    /// The time by which it took longer than the mean of the others, in all.
    pub longer_ns: i64,
    /// The same as a share of the time by which the rank arrived later than the mean of the others.
    pub share: f64,
}

/// The lateness of one rank in each communicator. The stretches before collectives of two communicators overlap, so that their times are
/// never added up.
#[derive(Debug, Clone, Default)]
pub(super) struct LatenessByCommunicator(BTreeMap<Communicator, Lateness>);

/// Sums of the time that one rank spent longer than the others on each activity, before the collectives of one communicator where it
/// arrived last.
#[derive(Debug, Clone, Default)]
pub(super) struct Lateness {
    /// The time by which the rank arrived later than the mean of the others.
    late_ns: i64,
    /// For each activity the nanoseconds more than the mean of the others; negative where they are fewer.
    longer: BTreeMap<Doing, i64>,
    /// The work of this rank, and the mean of the others'.
    pub(super) own: WorkSums,
    pub(super) usual: WorkSums,
}

/// Sums of work before collectives. They are means of ranks, so that they need not be whole numbers.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct WorkSums {
    pub(super) compute_ns: f64,
    pub(super) copying_ns: f64,
    pub(super) copied_bytes: f64,
    pub(super) launches: f64,
    pub(super) workgroups: f64,
    pub(super) unsized_launches: f64,
    /// Idle time in which a label said that the host loaded data.
    pub(super) loading_ns: f64,
}

impl WorkSums {
    fn add(&mut self, work: WorkTotals, loading_ns: i64, share: f64) {
        self.compute_ns += share * work.busy_ns as f64;
        self.copying_ns += share * work.copying_ns as f64;
        self.copied_bytes += share * work.copied_bytes as f64;
        self.launches += share * work.launches as f64;
        self.workgroups += share * work.workgroups as f64;
        self.unsized_launches += share * work.unsized_launches as f64;
        self.loading_ns += share * loading_ns as f64;
    }

    fn times(self, share: f64) -> WorkSums {
        WorkSums {
            compute_ns: share * self.compute_ns,
            copying_ns: share * self.copying_ns,
            copied_bytes: share * self.copied_bytes,
            launches: share * self.launches,
            workgroups: share * self.workgroups,
            unsized_launches: share * self.unsized_launches,
            loading_ns: share * self.loading_ns,
        }
    }

    fn add_sums(&mut self, other: WorkSums) {
        self.compute_ns += other.compute_ns;
        self.copying_ns += other.copying_ns;
        self.copied_bytes += other.copied_bytes;
        self.launches += other.launches;
        self.workgroups += other.workgroups;
        self.unsized_launches += other.unsized_launches;
        self.loading_ns += other.loading_ns;
    }
}

/// The means of some parts of a collective, with which that of a late rank is compared.
pub(super) struct UsualParts {
    arrived_ns: i64,
    since_ns: i64,
    activities: BTreeMap<Doing, i64>,
    work: WorkSums,
}

impl UsualParts {
    /// Returns the means of the parts with some indices; `None` without any, or where it is not known of each rank what it did before.
    pub(super) fn new(
        one: &Matched,
        indices: impl Iterator<Item = usize> + Clone,
    ) -> Option<UsualParts> {
        let count = indices.clone().count() as i64;
        if count == 0 || one.parts.iter().any(|(_, part)| part.before.is_none()) {
            return None;
        }
        let mut usual = UsualParts {
            arrived_ns: 0,
            since_ns: 0,
            activities: BTreeMap::new(),
            work: WorkSums::default(),
        };
        let (mut arrived_ns, mut since_ns) = (0i128, 0i128);
        for at in indices {
            let part = one.parts[at].1;
            let before = part.before.as_ref()?;
            usual
                .work
                .add(before.work, before.loading_ns, 1.0 / count as f64);
            since_ns += i128::from(before.since_ns);
            arrived_ns += i128::from(part.interval.start_ns);
            for (doing, ns) in activities(part) {
                add(&mut usual.activities, doing, ns);
            }
        }
        usual.activities.values_mut().for_each(|ns| *ns /= count);
        usual.arrived_ns = (arrived_ns / i128::from(count)) as i64;
        usual.since_ns = (since_ns / i128::from(count)) as i64;
        Some(usual)
    }
}

impl LatenessByCommunicator {
    /// Adds a collective, as [`Lateness::add`] does.
    pub(super) fn add(
        &mut self,
        one: &Matched,
        late: &CollectivePart,
        usual: &UsualParts,
        error_ns: i64,
    ) {
        let lateness = self.0.entry(one.communicator).or_default();
        lateness.add(late, usual, error_ns);
    }

    /// Returns the lateness in the communicator where it is greatest.
    pub(super) fn greatest(&self) -> Lateness {
        let greatest = self.0.values().max_by_key(|lateness| lateness.late_ns);
        greatest.cloned().unwrap_or_default()
    }

    /// Returns what the rank spent longer than the mean of some others, in the communicator where it is latest. All must have been compared
    /// with the same usual parts.
    pub(super) fn against(&self, others: &[&LatenessByCommunicator]) -> Lateness {
        let each = self.0.iter().filter_map(|(communicator, lateness)| {
            let others = others.iter().filter_map(|other| other.0.get(communicator));
            let others: Vec<&Lateness> = others.collect();
            (!others.is_empty()).then(|| lateness.against(&others))
        });
        let greatest = each.max_by_key(|lateness| lateness.late_ns);
        greatest.unwrap_or_default()
    }
}

impl Lateness {
    /// Adds a collective with this rank's part in it; times of that compare with the usual ones within `error_ns`.
    fn add(&mut self, late: &CollectivePart, usual: &UsualParts, error_ns: i64) {
        let Some(before) = &late.before else {
            return;
        };
        self.own.add(before.work, before.loading_ns, 1.0);
        self.usual.add_sums(usual.work);
        let late_ns = late.interval.start_ns.saturating_sub(usual.arrived_ns);
        self.late_ns = self.late_ns.saturating_add(late_ns);
        for (doing, ns) in activities(late) {
            add(&mut self.longer, doing, ns);
        }
        let ended_later_ns = before.since_ns.saturating_sub(usual.since_ns);
        add(
            &mut self.longer,
            Doing::LateEnd,
            ended_later_ns.saturating_sub(error_ns).max(0),
        );
        for (doing, ns) in &usual.activities {
            add(&mut self.longer, *doing, -ns);
        }
    }

    /// Returns what the rank spent longer than the mean of some others, where all of them were compared with the same usual parts.
    fn against(&self, others: &[&Lateness]) -> Lateness {
        let count = others.len().max(1);
        let mean = |ns: &dyn Fn(&Lateness) -> i64| {
            let sum = others
                .iter()
                .map(|other| i128::from(ns(other)))
                .sum::<i128>();
            (sum / count as i128) as i64
        };
        let mut usual = WorkSums::default();
        for other in others {
            usual.add_sums(other.own.times(1.0 / count as f64));
        }
        let doings = others.iter().flat_map(|other| other.longer.keys());
        let doings: BTreeSet<Doing> = doings.chain(self.longer.keys()).copied().collect();
        let of =
            |lateness: &Lateness, doing: Doing| lateness.longer.get(&doing).copied().unwrap_or(0);
        let longer = doings.into_iter().map(|doing| {
            let usual_ns = mean(&|other| of(other, doing));
            (doing, of(self, doing).saturating_sub(usual_ns))
        });
        Lateness {
            late_ns: self.late_ns.saturating_sub(mean(&|other| other.late_ns)),
            longer: longer.collect(),
            own: self.own,
            usual,
        }
    }

    /// Returns the activities on which the rank spent longer, the longest first.
    pub(super) fn causes(&self) -> Vec<LateCause> {
        let longer = self.longer.iter().filter(|(_, ns)| **ns > 0);
        let mut causes: Vec<LateCause> = longer
            .map(|(what, ns)| LateCause {
                what: *what,
                longer_ns: *ns,
                share: ratio(*ns, self.late_ns),
            })
            .collect();
        causes.sort_by_key(|cause| Reverse(cause.longer_ns));
        causes
    }
}

fn add(sums: &mut BTreeMap<Doing, i64>, doing: Doing, ns: i64) {
    let sum = sums.entry(doing).or_default();
    *sum = sum.saturating_add(ns);
}

/// Returns what a device did before a part, with nanoseconds.
fn activities(part: &CollectivePart) -> impl Iterator<Item = (Doing, i64)> + '_ {
    part.before.iter().flat_map(|before| {
        let idle = before
            .idle
            .iter()
            .map(|(cause, ns)| (Doing::Idle(*cause), *ns));
        idle.chain([
            (Doing::Compute, before.work.busy_ns),
            (Doing::Communication, before.communication_ns),
        ])
    })
}
