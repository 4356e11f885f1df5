//! The ranks of a distributed program side by side: collectives matched across them, who arrives last, who waits.
//!
//! A *collective* is an operation that all ranks take part in, such as an all-reduce. On the device it is a kernel of
//! NCCL (or RCCL, whose names are the same), told by its name; on the host, a label that begins with `nccl`. The n-th
//! one of a kind on one rank is the n-th one of that kind on every other. Its *arrival* on a rank is the begin of its
//! kernel there; its *skew* is from the first arrival to the last, and each rank waits for the last one.
//!
//! Kernels of most kinds cannot end before all ranks have arrived. Where the matched kernels of such a kind do not all
//! overlap, they were no one collective (of a part of the ranks, or one was not recorded): they are counted and are in
//! no skew.
//!
//! What this cannot know: communicators of a part of the ranks, except by that test; which rank is late by its own fault,
//! and which because it waited elsewhere before. Arrivals of different ranks compare only where their traces have one
//! host's clock, and within the errors of the devices' clocks: where one of these is not known, neither is who was last.
//! Calls on the hosts have the host's clock, and no such error.

use crate::durations::Durations;
use crate::findings::Findings;
use crate::intervals::{Interval, union_length_ns};
use crate::quantity::{Nanoseconds, Percent, ratio};
use crate::verdict::Bound;
use gapscope_trace::Trace;
use gapscope_trace::manifest::Host;
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

/// Clocks are one host's when what they say of the wall clock differs by less: hosts were not started at the same
/// moment.
const SAME_CLOCK_NS: i64 = 1_000_000_000;

/// What is to be known of one rank's trace, so that not all traces need to be in memory at once.
#[derive(Debug, Clone, PartialEq)]
pub struct RankDigest {
    row: RankRow,
    world_size: Option<u32>,
    host: Host,
    /// The wall clock, less the host's clock.
    offset_ns: Option<i64>,
    clock_error_ns: Option<i64>,
    device: BTreeMap<&'static str, Vec<Interval>>,
    called: BTreeMap<&'static str, Vec<Interval>>,
}

/// One rank.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct RankRow {
    /// Its number.
    pub rank: u32,
    /// Its number on its machine.
    pub local_rank: Option<u32>,
    /// Names of its devices.
    pub devices: Vec<String>,
    /// What bounds it.
    pub verdict: Bound,
    /// Length of its recording.
    pub wall_ns: Option<i64>,
    /// Time in which a device of it ran something, collectives included.
    pub gpu_busy_ns: Option<i64>,
    /// Time in which a device of it ran a collective.
    pub collective_ns: Option<i64>,
    /// Kernel executions.
    pub dispatch_count: u64,
    /// Collectives on the device.
    pub collective_count: u64,
    /// Time from its arrivals at collectives to the last arrivals there; absent where arrivals cannot be compared.
    pub waited_ns: Option<i64>,
    /// Collectives at which it arrived last; absent where arrivals cannot be compared.
    pub last_count: Option<u64>,
    /// Skew of those: what the first rank there waited for it.
    pub last_skew_ns: Option<i64>,
}

/// All ranks.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct RankFindings {
    /// How many ranks there are, on all machines.
    pub world_size: Option<u32>,
    /// Those with a trace, by number.
    pub ranks: Vec<RankRow>,
    /// Numbers of those without.
    pub missing_ranks: Vec<u32>,
    /// Why arrivals of different ranks cannot be compared; absent where they can.
    pub not_comparable_because: Option<String>,
    /// Arrivals of two ranks compare within this; absent when a clock's error is not known.
    pub clock_error_ns: Option<i64>,
    /// Collectives on the devices, the greatest sum of skews first.
    pub collectives: Vec<CollectiveKind>,
    /// Calls of collectives on the hosts, by their labels.
    pub collective_calls: Vec<CollectiveKind>,
    /// Those with the greatest skews.
    pub longest: Vec<Collective>,
    /// The rank that the others wait for most.
    pub straggler: Option<Straggler>,
    /// What all this means, in sentences.
    pub sentences: Vec<String>,
}

/// Collectives of a kind.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct CollectiveKind {
    /// Which: `AllReduce` and the like.
    pub kind: &'static str,
    /// Those matched across all ranks.
    pub matched_count: u64,
    /// How many each rank has, in the order of the ranks.
    pub counts: Vec<u64>,
    /// Matched ones whose kernels do not all overlap: no one collective, and in no skew. Absent where arrivals cannot be
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

/// The rank that the others wait for most.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Straggler {
    /// Its number.
    pub rank: u32,
    /// Collectives at which it arrived last.
    pub last_count: u64,
    /// Of so many with a known skew.
    pub of_count: u64,
    /// Their skews.
    pub skew_ns: i64,
    /// Of the skews of all.
    pub share: f64,
}

impl RankDigest {
    /// What is to be known of the trace of a rank, whose findings these are. `rank`: where the manifest does not say.
    pub fn of(trace: &Trace, findings: &Findings, rank: u32) -> RankDigest {
        let manifest = &trace.manifest;
        let known = manifest.rank;
        let device = kernels(trace);
        let intervals = device.values().flatten().copied();
        let mut sorted: Vec<Interval> = intervals.collect();
        sorted.sort();
        let row = RankRow {
            rank: known.map_or(rank, |r| r.rank),
            local_rank: known.and_then(|r| r.local_rank),
            devices: findings.devices.iter().map(|d| d.name.clone()).collect(),
            verdict: findings.verdict,
            wall_ns: findings.wall_ns,
            gpu_busy_ns: findings.gpu_busy_ns,
            collective_ns: (findings.gpu_busy_ns).map(|_| union_length_ns(sorted.iter().copied())),
            dispatch_count: findings.dispatch_count,
            collective_count: sorted.len() as u64,
            ..RankRow::default()
        };
        RankDigest {
            row,
            world_size: known.map(|r| r.world_size),
            host: manifest.host.clone(),
            offset_ns: (manifest.start_unix_ns).map(|ns| ns.saturating_sub(manifest.start_ns)),
            clock_error_ns: findings.clock_error_ns,
            device,
            called: calls(trace),
        }
    }
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

fn kernels(trace: &Trace) -> BTreeMap<&'static str, Vec<Interval>> {
    let (rows, kernels) = (&trace.tables.dispatches, &trace.tables.kernels);
    let kinds: HashMap<u32, &'static str> = (kernels.id.iter().zip(&kernels.name))
        .filter_map(|(id, name)| Some((*id, kind_of(name)?)))
        .collect();
    let mut found: BTreeMap<&'static str, Vec<Interval>> = BTreeMap::new();
    for row in 0..rows.len() {
        if let Some(kind) = kinds.get(&rows.kernel[row])
            && let Some(interval) = Interval::of_row(rows.start_ns[row], rows.duration_ns[row])
        {
            found.entry(kind).or_default().push(interval);
        }
    }
    found.values_mut().for_each(|all| all.sort());
    found
}

fn calls(trace: &Trace) -> BTreeMap<&'static str, Vec<Interval>> {
    let (rows, labels) = (&trace.tables.markers, &trace.tables.labels);
    let kinds: HashMap<u32, &'static str> = (labels.id.iter().zip(&labels.text))
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

/// Compares ranks. Of the collectives the `longest` with the greatest skews are listed.
pub fn ranks(digests: &[RankDigest], longest: usize) -> RankFindings {
    let mut digests: Vec<&RankDigest> = digests.iter().collect();
    digests.sort_by_key(|d| d.row.rank);
    let world_size = digests.iter().filter_map(|d| d.world_size).max();
    let different_hosts = different_hosts(&digests);
    let mut findings = RankFindings {
        world_size,
        ranks: digests.iter().map(|d| d.row.clone()).collect(),
        missing_ranks: (0..world_size.unwrap_or(0))
            .filter(|rank| !digests.iter().any(|d| d.row.rank == *rank))
            .collect(),
        not_comparable_because: different_hosts.clone().or_else(|| unknown_clock(&digests)),
        clock_error_ns: clock_error_ns(&digests),
        ..RankFindings::default()
    };
    let (mut all, mut rows) = (Vec::new(), std::mem::take(&mut findings.ranks));
    let numbers: Vec<u32> = rows.iter().map(|r| r.rank).collect();
    let comparable = findings.not_comparable_because.is_none();
    let error_ns = findings.clock_error_ns.filter(|_| comparable);
    let device: Vec<_> = digests.iter().map(|d| &d.device).collect();
    if comparable {
        for rank in &mut rows {
            (rank.waited_ns, rank.last_count, rank.last_skew_ns) = (Some(0), Some(0), Some(0));
        }
    }
    let mut add = |collective: Collective, arrivals: &[i64]| {
        let last = collective.last_rank;
        for (rank, arrival) in rows.iter_mut().zip(arrivals) {
            let last_ns = collective.first_ns.saturating_add(collective.skew_ns);
            let more = |sum: Option<i64>, ns: i64| sum.map(|sum| sum.saturating_add(ns));
            rank.waited_ns = more(rank.waited_ns, last_ns.saturating_sub(*arrival));
            if rank.rank == last && error_ns.is_some_and(|error| collective.skew_ns > error) {
                rank.last_count = rank.last_count.map(|count| count + 1);
                rank.last_skew_ns = more(rank.last_skew_ns, collective.skew_ns);
            }
        }
        all.push(collective);
    };
    let clock = error_ns.map(Clock::Devices);
    findings.collectives = matched(&device, clock, &mut add, &numbers);
    findings.ranks = rows;
    let called: Vec<_> = digests.iter().map(|d| &d.called).collect();
    let clock = different_hosts.is_none().then_some(Clock::Host);
    findings.collective_calls = matched(&called, clock, &mut |_, _| {}, &numbers);
    findings.straggler = straggler(&findings.ranks);
    all.sort_by_key(|c| (Reverse(c.skew_ns), c.first_ns));
    all.truncate(longest);
    findings.longest = all;
    findings.sentences = sentences(&findings);
    findings
}

/// Why no times of the ranks can be compared.
fn different_hosts(digests: &[&RankDigest]) -> Option<String> {
    if digests.len() < 2 {
        return Some("there is one rank only".to_owned());
    }
    let first = digests[0];
    for other in &digests[1..] {
        let apart = match (first.offset_ns, other.offset_ns) {
            (Some(a), Some(b)) => a.abs_diff(b) >= SAME_CLOCK_NS as u64,
            // Traces that do not know the wall clock are taken for what they say of their host.
            _ => false,
        };
        if first.host != other.host || apart {
            return Some(format!(
                "ranks {} and {} were recorded on different machines, whose clocks are not one",
                first.row.rank, other.row.rank
            ));
        }
    }
    None
}

/// Why times of the ranks' devices cannot be compared.
fn unknown_clock(digests: &[&RankDigest]) -> Option<String> {
    let unknown: Vec<String> = (digests.iter())
        .filter(|d| d.clock_error_ns.is_none())
        .map(|d| d.row.rank.to_string())
        .collect();
    match unknown.as_slice() {
        [] => None,
        [rank] => Some(format!(
            "the error of the device times of rank {rank} is not known"
        )),
        ranks => Some(format!(
            "the errors of the device times of ranks {} are not known",
            ranks.join(", ")
        )),
    }
}

/// Within what device times of two ranks compare: of any two, the worst.
fn clock_error_ns(digests: &[&RankDigest]) -> Option<i64> {
    let errors: Option<Vec<i64>> = digests.iter().map(|d| d.clock_error_ns).collect();
    let mut errors = errors?;
    errors.sort_unstable_by_key(|ns| Reverse(*ns));
    let worst = errors.iter().take(2);
    Some(worst.fold(0i64, |sum, ns| sum.saturating_add(*ns)))
}

/// What the times of matched collectives were taken with.
#[derive(Clone, Copy)]
enum Clock {
    /// The clocks of the ranks' devices, which compare within this.
    Devices(i64),
    /// The host's.
    Host,
}

/// Matches the collectives of each kind. `clock`: what their times were taken with; without one they do not compare.
fn matched(
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

fn straggler(ranks: &[RankRow]) -> Option<Straggler> {
    // Ranks that do not compare have no skew, and are not here.
    let known = ranks.iter().filter_map(|r| Some((r.last_skew_ns?, r)));
    let total_ns = known
        .clone()
        .fold(0i64, |sum, (skew_ns, _)| sum.saturating_add(skew_ns));
    let of_count = ranks.iter().filter_map(|r| r.last_count).sum();
    let (skew_ns, worst) = known.max_by_key(|(skew_ns, r)| (*skew_ns, Reverse(r.rank)))?;
    (skew_ns > 0).then(|| Straggler {
        rank: worst.rank,
        last_count: worst.last_count.unwrap_or_default(),
        of_count,
        skew_ns,
        share: ratio(skew_ns, total_ns),
    })
}

fn sentences(findings: &RankFindings) -> Vec<String> {
    let mut sentences = Vec::new();
    if !findings.missing_ranks.is_empty() {
        let missing: Vec<String> = findings.missing_ranks.iter().map(u32::to_string).collect();
        sentences.push(format!(
            "Of {} ranks, {} have no trace here: {}.",
            findings.ranks.len() + missing.len(),
            missing.len(),
            missing.join(", ")
        ));
    }
    if let Some(reason) = &findings.not_comparable_because {
        sentences.push(format!("Who arrives last is not known: {reason}."));
    }
    if findings.collectives.is_empty() {
        sentences.push("No kernels of NCCL's collectives are in the traces.".to_owned());
    }
    if let Some(worst) = findings.straggler {
        sentences.push(format!(
            "Rank {} arrived last at {} of {} collectives, by {} in all: {} of all skew.",
            worst.rank,
            worst.last_count,
            worst.of_count,
            Nanoseconds(worst.skew_ns),
            Percent(worst.share)
        ));
    }
    for row in &findings.collectives {
        let unequal = row.counts.iter().any(|count| *count != row.matched_count);
        if unequal {
            sentences.push(format!(
                "The ranks differ in their numbers of {}: the match by order may be off.",
                row.kind
            ));
        }
        if let Some(contradictory_count @ 1..) = row.contradictory_count {
            sentences.push(format!(
                "{contradictory_count} of {} matched {} do not overlap on all ranks: they are of a part of the ranks, or \
                 some were not recorded; they are in no skew.",
                row.matched_count, row.kind
            ));
        }
    }
    sentences
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_are_told_by_name() {
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
