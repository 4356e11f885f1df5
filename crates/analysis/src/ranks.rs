//! The ranks of a distributed program side by side: collectives matched across them, who arrives last, who waits.
//!
//! A *collective* is an operation that all ranks take part in, such as an all-reduce. On the device it is a kernel of
//! NCCL (or RCCL, whose names are the same), recognised by its name; on the host, a label that begins with `nccl`. The n-th
//! one of a kind on one rank is the n-th one of that kind on every other. Its *arrival* on a rank is the start of its
//! kernel there; its *skew* is from the first arrival to the last, and each rank waits for the last one.
//!
//! Kernels of most kinds cannot end before all ranks have arrived. Where the matched kernels of such a kind do not all
//! overlap, they were not one collective (of a part of the ranks, or one was not recorded): they are counted, and no skew has
//! them.
//!
//! What this cannot know: communicators of a part of the ranks, except by that test; which rank is late by its own fault,
//! and which because it waited elsewhere before. Arrivals of different ranks compare only where their traces have one
//! host's clock, and within the errors of the devices' clocks: where one of these is not known, neither is who was last.
//! Calls on the hosts have the host's clock, and no such error.

mod collectives;

use crate::findings::Findings;
use crate::intervals::{Interval, union_length_ns};
use crate::quantity::{Nanoseconds, Percent, ratio};
use crate::timeline::Timeline;
use crate::unread::KERNELS;
use crate::verdict::Bound;
use collectives::{Clock, calls, kernels, matched};
pub use collectives::{Collective, CollectiveKind};
use gapscope_trace::Selection;
use gapscope_trace::manifest::Host;
use gapscope_trace::tables::{Dispatches, Table as _};
use serde::Serialize;
use std::cmp::Reverse;
use std::collections::BTreeMap;

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
    /// Kernel executions; absent where not all could be read.
    pub dispatch_count: Option<u64>,
    /// Collectives on the device; absent where not all could be read.
    pub collective_count: Option<u64>,
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
    /// What of a trace the findings and [`RankDigest::of`] read.
    pub fn selection() -> Selection {
        Findings::selection_with(&["command_buffer", "start_ns", "duration_ns"])
    }

    /// What is to be known of the trace of a rank, whose findings these are. `rank`: where the manifest does not say.
    pub fn of(timeline: &Timeline, findings: &Findings, rank: u32) -> RankDigest {
        let manifest = &timeline.trace.manifest;
        let known = manifest.rank;
        let device = kernels(timeline);
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
            dispatch_count: findings
                .knows_rows(Dispatches::NAME)
                .then_some(findings.dispatch_count),
            collective_count: findings.knows(KERNELS).then_some(sorted.len() as u64),
            ..RankRow::default()
        };
        RankDigest {
            row,
            world_size: known.map(|r| r.world_size),
            host: manifest.host.clone(),
            offset_ns: (manifest.start_unix_ns).map(|ns| ns.saturating_sub(manifest.start_ns)),
            clock_error_ns: findings.clock_error_ns,
            device,
            called: calls(timeline.trace),
        }
    }
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
        return Some("there is only one rank".to_owned());
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

/// The greatest distance within which device times of two ranks compare.
fn clock_error_ns(digests: &[&RankDigest]) -> Option<i64> {
    let errors: Option<Vec<i64>> = digests.iter().map(|d| d.clock_error_ns).collect();
    let mut errors = errors?;
    errors.sort_unstable_by_key(|ns| Reverse(*ns));
    let worst = errors.iter().take(2);
    Some(worst.fold(0i64, |sum, ns| sum.saturating_add(*ns)))
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
                 some were not recorded; no skew counts them.",
                row.matched_count, row.kind
            ));
        }
    }
    sentences
}
