//! Finds what a device did before it arrived at collectives (operations of several ranks): in the stretch since the
//! end of the last collective of the same communicator, the group of ranks that takes part.

use super::loading;
use super::part::{Before, CollectivePart, WorkTotals};
use gapscope_analysis::gaps::{Cause, GapFinder};
use gapscope_timeline::collectives::{ProcessDevice, kind_of};
use gapscope_timeline::intervals::{Busy, Interval, intersection};
use gapscope_timeline::{Timeline, Work, WorkKind};
use std::collections::{BTreeMap, HashMap};

/// Fills in what each device did before each of its parts in collectives.
pub(super) fn fill(timeline: &Timeline, parts: &mut BTreeMap<ProcessDevice, Vec<CollectivePart>>) {
    let names = &timeline.trace.tables.kernels.name;
    let collective: Vec<bool> = names.iter().map(|name| kind_of(name).is_some()).collect();
    let finder = GapFinder::new(timeline);
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
        finder.each(gpu, |_, parts| {
            gaps.extend(parts.iter().map(|part| (part.interval(), part.cause)));
        });
        let idle: Vec<Interval> = gaps.iter().map(|(gap, _)| *gap).collect();
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
            let others = others.map(|work| (work.interval, amount(timeline, &work)));
            let totals = totals_until(others, &times);
            let loading = intersection(&idle, &loading::labelled(timeline.trace, place.0).times);
            for (part, stretch) in own.iter_mut().zip(stretches) {
                part.before = stretch.map(|stretch| {
                    let (from, to) = (totals[&stretch.start_ns], totals[&stretch.end_ns]);
                    let work = WorkTotals::between(from, to);
                    Before {
                        loading_ns: covered_ns(stretch, &loading),
                        ..before(stretch, work, &gaps)
                    }
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

/// The size of a piece of work, where it is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Amount {
    /// A kernel's workgroups.
    Workgroups(Option<u32>),
    /// The bytes of a copy or a fill.
    Bytes(Option<u64>),
    Unknown,
}

/// Returns the size of a piece of work.
fn amount(timeline: &Timeline, work: &Work) -> Amount {
    match work.kind() {
        WorkKind::Dispatch => Amount::Workgroups(timeline.dispatches.groups(work.row())),
        WorkKind::Transfer => Amount::Bytes(timeline.trace.tables.transfers.bytes.at(work.row())),
        _ => Amount::Unknown,
    }
}

/// Returns the totals of a device's work by each of these times. The work is in order of start.
fn totals_until(
    works: impl Iterator<Item = (Interval, Amount)>,
    times: &[i64],
) -> HashMap<i64, WorkTotals> {
    let mut until = HashMap::with_capacity(times.len());
    let mut totals = WorkTotals::default();
    let (mut busy, mut end_ns) = (Busy::default(), i64::MIN);
    let (mut copying, mut copy_end_ns) = (Busy::default(), i64::MIN);
    let mut left = times.iter();
    let mut next = left.next();
    let mut works = works.peekable();
    while let Some(at) = next {
        let Some((work, amount)) = works.next_if(|(work, _)| work.start_ns < *at) else {
            let past_ns = |end_ns: i64| end_ns.saturating_sub(*at).max(0);
            totals.busy_ns = busy.length_ns - past_ns(end_ns);
            totals.copying_ns = copying.length_ns - past_ns(copy_end_ns);
            until.insert(*at, totals);
            next = left.next();
            continue;
        };
        busy.add(work);
        end_ns = end_ns.max(work.end_ns);
        match amount {
            Amount::Workgroups(groups) => {
                totals.launches += 1;
                totals.unsized_launches += u64::from(groups.is_none());
                totals.workgroups += u64::from(groups.unwrap_or(0));
            }
            Amount::Bytes(bytes) => {
                copying.add(work);
                copy_end_ns = copy_end_ns.max(work.end_ns);
                totals.copied_bytes = totals.copied_bytes.saturating_add(bytes.unwrap_or(0));
            }
            Amount::Unknown => {}
        }
    }
    until
}

/// Returns how long a set of intervals, in order of time, covers a stretch.
fn covered_ns(stretch: Interval, set: &[Interval]) -> i64 {
    let first = set.partition_point(|part| part.end_ns <= stretch.start_ns);
    let inside = set[first..]
        .iter()
        .take_while(|part| part.start_ns < stretch.end_ns);
    inside
        .map(|part| part.intersection(stretch).length_ns())
        .sum()
}

/// Divides a stretch into other work (given), idle time by cause (from the gaps) and the rest, which is communication.
fn before(stretch: Interval, work: WorkTotals, gaps: &[(Interval, Cause)]) -> Before {
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
        since_ns: stretch.start_ns,
        work,
        communication_ns: (stretch.length_ns())
            .saturating_sub(work.busy_ns)
            .saturating_sub(idle_ns)
            .max(0),
        idle: idle.into_iter().filter(|(_, ns)| *ns > 0).collect(),
        loading_ns: 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn totals_are_known_at_times_within_work_and_between() {
        let works = [
            (Interval::new(0, 10), Amount::Workgroups(Some(64))),
            (Interval::new(5, 8), Amount::Bytes(Some(100))),
            (Interval::new(20, 30), Amount::Workgroups(None)),
        ];
        let times = [0, 4, 10, 15, 25, 40];
        let until = totals_until(works.into_iter(), &times);
        let busy = times.map(|at| until[&at].busy_ns);
        assert_eq!(busy, [0, 4, 10, 10, 15, 20]);
        let copying = times.map(|at| until[&at].copying_ns);
        assert_eq!(copying, [0, 0, 3, 3, 3, 3]);
        let all = until[&40];
        assert_eq!((all.launches, all.unsized_launches), (2, 1));
        assert_eq!((all.workgroups, all.copied_bytes), (64, 100));
        assert_eq!(WorkTotals::between(until[&10], all).launches, 1);
    }
}
