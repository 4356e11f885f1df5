//! Finds what a device did before it arrived at collectives (operations of several ranks): in the stretch since the
//! end of the last collective of the same communicator, the group of ranks that takes part.

use super::part::{Before, CollectivePart};
use gapscope_analysis::gaps::{Cause, each_gap};
use gapscope_timeline::collectives::{ProcessDevice, kind_of};
use gapscope_timeline::intervals::{Busy, Interval};
use gapscope_timeline::{Timeline, WorkKind};
use std::collections::{BTreeMap, HashMap};

/// Fills in what each device did before each of its parts in collectives.
pub(super) fn fill(timeline: &Timeline, parts: &mut BTreeMap<ProcessDevice, Vec<CollectivePart>>) {
    let names = &timeline.trace.tables.kernels.name;
    let collective: Vec<bool> = names.iter().map(|name| kind_of(name).is_some()).collect();
    for gpu in 0..timeline.gpus.len() {
        let works = &timeline.gpus[gpu].works;
        let here: Vec<ProcessDevice> = (parts.keys().copied())
            .filter(|(_, device)| {
                let rows = timeline.gpus[gpu].devices.iter();
                rows.map(|row| &timeline.trace.manifest.devices[*row])
                    .any(|d| d.id == *device)
            })
            .collect();
        if here.is_empty() {
            continue;
        }
        let mut gaps: Vec<(Interval, Cause)> = Vec::new();
        each_gap(timeline, gpu, |_, found| {
            gaps.extend(found.iter().map(|part| (part.interval(), part.cause)));
        });
        for place in here {
            let Some(own) = parts.get_mut(&place) else {
                continue;
            };
            let stretches = stretches(own);
            let mut times: Vec<i64> = (stretches.iter().flatten())
                .flat_map(|stretch| [stretch.start_ns, stretch.end_ns])
                .collect();
            times.sort_unstable();
            times.dedup();
            let others = works.iter().filter(|work| {
                let kernel = (work.kind() == WorkKind::Dispatch)
                    .then(|| timeline.kernel_row(work.row()))
                    .flatten();
                !kernel.is_some_and(|row| collective[row])
            });
            let computed = busy_until(others.map(|work| work.interval), &times);
            for (part, stretch) in own.iter_mut().zip(stretches) {
                part.before = stretch.map(|stretch| {
                    let compute_ns = computed[&stretch.end_ns] - computed[&stretch.start_ns];
                    before(stretch, compute_ns, &gaps)
                });
            }
        }
    }
}

/// Returns, for each part, the stretch from the end of the last collective of the same communicator to the part;
/// `None` for the first collective.
fn stretches(parts: &[CollectivePart]) -> Vec<Option<Interval>> {
    let mut ended = HashMap::new();
    (parts.iter())
        .map(|part| {
            let end_ns = part.interval.end_ns;
            let last = ended.insert(part.communicator, end_ns)?;
            let start_ns = part.interval.start_ns;
            (last <= start_ns).then(|| Interval::new(last, start_ns))
        })
        .collect()
}

/// Returns how long a device had been busy by each of these times. The work is in order of start.
fn busy_until(works: impl Iterator<Item = Interval>, times: &[i64]) -> HashMap<i64, i64> {
    let mut until = HashMap::with_capacity(times.len());
    let (mut busy, mut end_ns) = (Busy::default(), i64::MIN);
    let mut left = times.iter();
    let mut next = left.next();
    let mut works = works.peekable();
    while let Some(at) = next {
        match works.next_if(|work| work.start_ns < *at) {
            Some(work) => {
                busy.add(work);
                end_ns = end_ns.max(work.end_ns);
            }
            None => {
                let past_ns = end_ns.saturating_sub(*at).max(0);
                until.insert(*at, busy.length_ns - past_ns);
                next = left.next();
            }
        }
    }
    until
}

/// Divides a stretch into computing (given), idle time by cause (from the gaps) and the rest, which is communication.
fn before(stretch: Interval, compute_ns: i64, gaps: &[(Interval, Cause)]) -> Before {
    let first = gaps.partition_point(|(gap, _)| gap.end_ns <= stretch.start_ns);
    let mut idle: BTreeMap<Cause, i64> = BTreeMap::new();
    for (gap, cause) in &gaps[first..] {
        if gap.start_ns >= stretch.end_ns {
            break;
        }
        let sum = idle.entry(*cause).or_default();
        *sum = sum.saturating_add(gap.intersection(stretch).length_ns());
    }
    let idle_ns = idle.values().fold(0i64, |sum, ns| sum.saturating_add(*ns));
    Before {
        compute_ns,
        communication_ns: (stretch.length_ns())
            .saturating_sub(compute_ns)
            .saturating_sub(idle_ns)
            .max(0),
        idle: idle.into_iter().filter(|(_, ns)| *ns > 0).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn busy_time_is_known_at_times_within_work_and_between() {
        let works = [(0, 10), (5, 8), (20, 30)].map(|(a, b)| Interval::new(a, b));
        let until = busy_until(works.into_iter(), &[0, 4, 10, 15, 25, 40]);
        let known = [0, 4, 10, 15, 25, 40].map(|at| until[&at]);
        assert_eq!(known, [0, 4, 10, 10, 15, 20]);
    }
}
