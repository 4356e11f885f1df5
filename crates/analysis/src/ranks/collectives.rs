//! Collectives: recognised by their names, matched across ranks, their arrivals compared.

use crate::durations::Durations;
use crate::intervals::Interval;
use crate::timeline::{Timeline, WorkKind};
use gapscope_trace::Trace;
use gapscope_trace::ids::LabelId;
use gapscope_trace::tables::Table;
use serde::Serialize;
use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};

/// Kinds of collectives, and whether a kernel of the kind can end before all ranks have arrived.
const KINDS: [(&str, bool); 8] = [
    ("AllReduce", false),
    ("AllGather", false),
    ("ReduceScatter", false),
    ("AllToAll", false),
    ("AlltoAll", false),
    ("Broadcast", true),
    ("Reduce", true),
    ("Barrier", false),
];

/// Collectives of a kind.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct CollectiveKind {
    /// Which: `AllReduce` and the like.
    pub kind: &'static str,
    /// Those matched across all ranks.
    pub matched_count: u64,
    /// How many each rank has, in the order of the ranks.
    pub counts: Vec<u64>,
    /// Matched ones whose kernels do not all overlap: not one collective, and no skew counts them. Absent where arrivals cannot be
    /// compared.
    pub contradictory_count: Option<u64>,
    /// Skews below the clocks' error: who was last is not known. Absent where arrivals cannot be compared.
    pub uncertain_count: Option<u64>,
    /// Skews; none where arrivals cannot be compared.
    pub skew: Durations,
}

/// One collective.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Collective {
    /// Its kind.
    pub kind: &'static str,
    /// Its number among those of the kind, from 0.
    pub number: u64,
    /// The first arrival.
    pub first_ns: i64,
    /// From there to the last arrival.
    pub skew_ns: i64,
    /// The rank that arrived first.
    pub first_rank: u32,
    /// The rank that arrived last.
    pub last_rank: u32,
}

/// The kind in the name of a kernel or of a label: `ncclDevKernel_AllReduce_Sum_f32_RING_LL`, `ncclAllReduce`,
/// `nccl:all_reduce`.
fn kind_of(name: &str) -> Option<&'static str> {
    let rest = name.strip_prefix("nccl")?;
    let word: String = match rest.split_once("Kernel_") {
        Some((_, of_kernel)) => {
            let end = of_kernel.find(['_', '(', '<']).unwrap_or(of_kernel.len());
            of_kernel[..end].to_owned()
        }
        None => rest.chars().filter(|c| c.is_alphanumeric()).collect(),
    };
    let same = |kind: &str| kind.eq_ignore_ascii_case(&word);
    KINDS.iter().map(|(kind, _)| *kind).find(|kind| same(kind))
}

/// Kernels of collectives by their kind, in order of time.
pub(super) fn kernels(timeline: &Timeline) -> BTreeMap<&'static str, Vec<Interval>> {
    let names = &timeline.trace.tables.kernels.name;
    let kinds: Vec<Option<&'static str>> = names.iter().map(|name| kind_of(name)).collect();
    let mut found: BTreeMap<&'static str, Vec<Interval>> = BTreeMap::new();
    timeline.each_work(|work| {
        if work.kind() == WorkKind::Dispatch
            && let Some(row) = timeline.kernel_row(work.row())
            && let Some(kind) = kinds[row]
        {
            found.entry(kind).or_default().push(work.interval);
        }
    });
    found
}

/// Labels of collectives on the host by their kind, in order of time.
pub(super) fn calls(trace: &Trace) -> BTreeMap<&'static str, Vec<Interval>> {
    let (rows, labels) = (&trace.tables.markers, &trace.tables.labels);
    let kinds: HashMap<LabelId, &'static str> = (labels.id.iter().zip(&labels.text))
        .filter_map(|(id, text)| Some((*id, kind_of(text)?)))
        .collect();
    let mut found: BTreeMap<&'static str, Vec<Interval>> = BTreeMap::new();
    for row in 0..rows.len() {
        if rows.command_buffer[row].is_none()
            && let Some(kind) = kinds.get(&rows.label[row])
            && let Some(interval) = Interval::of_row(rows.start_ns[row], rows.duration_ns[row])
        {
            found.entry(kind).or_default().push(interval);
        }
    }
    found.values_mut().for_each(|all| all.sort());
    found
}

/// What the times of matched collectives were taken with.
#[derive(Clone, Copy)]
pub(super) enum Clock {
    /// The clocks of the ranks' devices, which compare within this.
    Devices(i64),
    /// The host's.
    Host,
}

/// Matches the collectives of each kind. `clock`: what their times were taken with; without one they do not compare.
pub(super) fn matched(
    ranks: &[&BTreeMap<&'static str, Vec<Interval>>],
    clock: Option<Clock>,
    each: &mut dyn FnMut(Collective, &[i64]),
    numbers: &[u32],
) -> Vec<CollectiveKind> {
    let mut kinds: Vec<&'static str> = ranks.iter().flat_map(|r| r.keys().copied()).collect();
    kinds.sort_unstable();
    kinds.dedup();
    let mut rows: Vec<CollectiveKind> = Vec::new();
    for kind in kinds {
        let of_rank = |rank: usize| ranks[rank].get(kind).map_or(&[][..], Vec::as_slice);
        let counts: Vec<u64> = (0..ranks.len())
            .map(|rank| of_rank(rank).len() as u64)
            .collect();
        let mut row = CollectiveKind {
            kind,
            matched_count: counts.iter().copied().min().unwrap_or(0),
            counts,
            ..CollectiveKind::default()
        };
        if let Some(clock) = clock {
            let parts = |number| (0..ranks.len()).map(|rank| of_rank(rank)[number]).collect();
            compare(&mut row, parts, clock, each, numbers);
        }
        rows.push(row);
    }
    rows.sort_by_key(|row| Reverse(row.skew.total_ns));
    rows
}

/// Compares the arrivals of a kind. `parts`: the intervals of one collective on all ranks, by its number.
fn compare(
    row: &mut CollectiveKind,
    parts: impl Fn(usize) -> Vec<Interval>,
    clock: Clock,
    each: &mut dyn FnMut(Collective, &[i64]),
    numbers: &[u32],
) {
    let kind = row.kind;
    let may_end_early = KINDS.iter().any(|(known, early)| *known == kind && *early);
    let (mut contradictory, mut uncertain) = (0, 0);
    let mut skews = Vec::new();
    for number in 0..row.matched_count as usize {
        let parts = parts(number);
        let arrivals: Vec<i64> = parts.iter().map(|p| p.start_ns).collect();
        let (first, last) = extremes(&arrivals);
        let skew_ns = arrivals[last].saturating_sub(arrivals[first]);
        if let Clock::Devices(error_ns) = clock {
            let first_end_ns = parts.iter().map(|p| p.end_ns).min().unwrap_or(i64::MAX);
            if !may_end_early && arrivals[last] > first_end_ns.saturating_add(error_ns) {
                contradictory += 1;
                continue;
            }
            uncertain += u64::from(skew_ns <= error_ns);
        }
        skews.push(skew_ns);
        let collective = Collective {
            kind,
            number: number as u64,
            first_ns: arrivals[first],
            skew_ns,
            first_rank: numbers[first],
            last_rank: numbers[last],
        };
        each(collective, &arrivals);
    }
    row.contradictory_count = Some(contradictory);
    row.uncertain_count = Some(uncertain);
    row.skew = Durations::of(&mut skews);
}

/// Indices of the first and the last arrival; of equal ones, the first.
fn extremes(arrivals: &[i64]) -> (usize, usize) {
    let (mut first, mut last) = (0, 0);
    for (at, arrival) in arrivals.iter().enumerate() {
        if *arrival < arrivals[first] {
            first = at;
        }
        if *arrival > arrivals[last] {
            last = at;
        }
    }
    (first, last)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_are_recognised_by_name() {
        for (name, kind) in [
            ("ncclDevKernel_AllReduce_Sum_f32_RING_LL", Some("AllReduce")),
            (
                "ncclKernel_ReduceScatter_RING_LL_Sum_float",
                Some("ReduceScatter"),
            ),
            (
                "ncclDevKernel_AllGather_RING_LL(ncclDevKernelArgsStorage<4096>)",
                Some("AllGather"),
            ),
            ("ncclDevKernel_SendRecv", None),
            ("ncclAllReduce", Some("AllReduce")),
            ("nccl:all_reduce", Some("AllReduce")),
            ("ncclGroupEnd", None),
            ("AllReduce", None),
        ] {
            assert_eq!(kind_of(name), kind, "{name}");
        }
    }
}
