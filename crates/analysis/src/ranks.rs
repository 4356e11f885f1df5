//! The ranks of a distributed program side by side: collectives matched across them, who arrives last and why, who waits, how fast they are.
//!
//! A *collective* is an operation that the ranks of a *communicator* take part in, such as an all-reduce; messages from one rank to another
//! count too, as collectives of two. On the device it is a kernel of NCCL (or RCCL, whose names are the same), recognised by its name; on the
//! host, a label that begins with `nccl`. NCCL's NVTX ranges say which communicator a call is of (`ranks/nccl.rs`, `ranks/parts.rs`). The n-th
//! collective of a kind on a communicator on one rank is the n-th of that kind there on its other ranks (`ranks/matched.rs`). Where
//! the communicator is not known, or a rank of it has no trace, collectives are counted and in no figure.
//!
//! A collective's *arrival* on a rank is the start of its kernel there; its *skew* is from the first arrival to the last, and each rank waits
//! for the last one. Arrivals compare within the error of the two ranks' clocks (`ranks/clocks.rs`): a skew or a wait within it counts for nothing, and who
//! was last is known where one rank was later than each other by more. Calls on the hosts have the host's clock, and no such error.
//!
//! Kernels of most kinds cannot end before all ranks have arrived. Where the matched kernels of such a kind do not all
//! overlap, or differ in their bytes, they were not one collective (one was not recorded): they are counted, and no skew has them.
//!
//! Why a rank is late (`ranks/late.rs`) is what its device did, since the end of the collective before, for longer than the others'.
//!
//! What this cannot know: whether a rank that computes for longer has more to do or is slower; what its host did instead.

mod bandwidth;
mod before;
mod clocks;
mod collectives;
mod comparison;
mod digest;
mod late;
mod matched;
mod nccl;
mod outliers;
mod parts;
mod ranges;
mod sentences;

use crate::durations::Durations;
use crate::gaps::Cause;
use crate::verdict::{Bound, Part as JudgedPart, together};
pub use bandwidth::Bandwidth;
use bandwidth::Bandwidths;
use clocks::Clocks;
use comparison::Comparison;
pub use digest::{RankDigest, note};
use gapscope_trace::UnreadTable;
use gapscope_trace::ids::QueueId;
pub use late::{Doing, LateCause};
use matched::{communicators, matched};
pub use outliers::{Outlier, Unlike, list};
pub use parts::Communicator;
use schemars::JsonSchema;
use serde::Serialize;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

/// One rank.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
pub struct RankRow {
    /// Its number.
    pub rank: u32,
    /// Its number on its machine.
    pub local_rank: Option<u32>,
    /// Its machine, by the boot that its trace names: ranks of one machine have the same; absent where the trace names none.
    pub machine: Option<String>,
    /// Names of its devices.
    pub devices: Vec<String>,
    /// What bounds it; unknown where nothing of it was timed.
    pub verdict: Bound,
    /// The same in a sentence.
    pub verdict_sentence: String,
    /// The parts of the time of its devices, the largest first.
    pub verdict_evidence: Vec<JudgedPart>,
    /// Idle time of its devices; absent where nothing was timed.
    pub idle: Option<Idle>,
    /// Length of its recording.
    pub wall_ns: Option<i64>,
    /// Time in which a device of it ran something, collectives included.
    pub gpu_busy_ns: Option<i64>,
    /// Time in which a device of it ran a collective.
    pub collective_ns: Option<i64>,
    /// Tables of its trace that could not be read: what rests on them is unknown.
    pub unread: Vec<UnreadTable>,
    /// Kernel executions; absent where not all could be read.
    pub dispatch_count: Option<u64>,
    /// Collectives on the device; absent where not all could be read.
    pub collective_count: Option<u64>,
    /// Time from its arrivals at collectives to the last arrivals there, as far as that is more than the clocks' error; absent where no
    /// arrivals can be compared.
    pub waited_ns: Option<i64>,
    /// Collectives at which it arrived last, later than each other rank by more than the clocks' error; absent where no arrivals can be
    /// compared.
    pub last_count: Option<u64>,
    /// Skew of those: what the first rank there waited for it.
    pub last_skew_ns: Option<i64>,
}

/// Idle time of a rank's devices in the analysed window.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, JsonSchema)]
pub struct Idle {
    /// Device time that was judged.
    pub window_ns: i64,
    /// Of it idle.
    pub total_ns: i64,
    /// The cause of the most of that.
    pub cause: Option<Cause>,
    /// How much.
    pub cause_ns: Option<i64>,
}

/// All ranks.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
pub struct RankFindings {
    /// How many ranks there are, on all machines.
    pub world_size: Option<u32>,
    /// Those with a trace, by number.
    pub ranks: Vec<RankRow>,
    /// What bounds all of them together, by the sums of their times; unknown where nothing was timed.
    pub verdict: Bound,
    /// The same in a sentence.
    pub verdict_sentence: String,
    /// The parts of the time of all of their devices, the largest first.
    pub verdict_evidence: Vec<JudgedPart>,
    /// Numbers of those without.
    pub missing_ranks: Vec<u32>,
    /// Why arrivals of different ranks cannot all be compared; absent where they can.
    pub not_comparable_because: Option<String>,
    /// Why it is not known which collectives of the ranks are one; absent where it is known of all.
    pub not_matched_because: Option<String>,
    /// Arrivals of any two ranks compare within this; absent when a clock's error is not known.
    pub clock_error_ns: Option<i64>,
    /// Communicators that collectives on the devices are of, the one with most ranks first.
    pub communicators: Vec<CommunicatorRow>,
    /// Collectives on the devices, the greatest sum of skews first.
    pub collectives: Vec<CollectiveKind>,
    /// Their bandwidths by kind and size, those that took longest in all first.
    pub bandwidth: Vec<Bandwidth>,
    /// Calls of collectives on the hosts, by their labels.
    pub collective_calls: Vec<CollectiveKind>,
    /// Those with the greatest skews.
    pub longest: Vec<Collective>,
    /// The rank that the others wait for most.
    pub straggler: Option<Straggler>,
    /// Ranks that are unlike the others, what costs most first.
    pub outliers: Vec<Outlier>,
    /// What all this means, in sentences; what costs most comes first.
    pub sentences: Vec<String>,
}

/// Ranks that take part in collectives together.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct CommunicatorRow {
    /// NCCL's number as hexadecimal, or `only` where each process has one that it gives no number.
    #[schemars(with = "String")]
    pub communicator: Communicator,
    /// How many ranks it has; absent when it is not known.
    pub size: Option<u32>,
    /// Those with a trace.
    pub ranks: Vec<u32>,
    /// All of them have a trace.
    pub complete: bool,
    /// Matched collectives on the devices.
    pub matched_count: u64,
}

/// Collectives of a kind.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
pub struct CollectiveKind {
    /// Which: `AllReduce` and the like.
    pub kind: &'static str,
    /// Those matched across the ranks of their communicators.
    pub matched_count: u64,
    /// How many each rank has, in the order of the ranks.
    pub counts: Vec<u64>,
    /// Of all ranks, those whose communicator is not known, or of messages whose other rank is not: not matched.
    pub unassigned_count: u64,
    /// Of all ranks, those that a rank without a trace takes part in: not matched.
    pub incomplete_count: u64,
    /// Ranks of one communicator differ in how many they have, so that the match by order may be off.
    pub unequal: bool,
    /// Matched ones that cannot be one collective, because their kernels do not all overlap or differ in their bytes: no skew counts them.
    /// Absent where no arrivals can be compared.
    pub contradictory_count: Option<u64>,
    /// Skews within the clocks' error: they count for nothing. Absent where no arrivals can be compared.
    pub uncertain_count: Option<u64>,
    /// Skews above the clocks' error, of which it is not certain who was last. Absent where no arrivals can be compared.
    pub last_unknown_count: Option<u64>,
    /// Skews above the clocks' error; none where arrivals cannot be compared.
    pub skew: Durations,
}

/// One collective.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Collective {
    /// Its kind.
    pub kind: &'static str,
    /// Its communicator.
    #[schemars(with = "String")]
    pub communicator: Communicator,
    /// Its number among those of the kind and the communicator, from 0.
    pub number: u64,
    /// The first arrival.
    pub first_ns: i64,
    /// From there to the last arrival.
    pub skew_ns: i64,
    /// The rank that arrived first.
    pub first_rank: u32,
    /// The rank that arrived last.
    pub last_rank: u32,
    /// All arrivals, in order of time.
    pub arrivals: Vec<Arrival>,
}

/// A rank's part in a collective.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Arrival {
    /// The rank.
    pub rank: u32,
    /// When its kernel, or its call, began.
    pub start_ns: i64,
    /// When that ended.
    pub end_ns: i64,
    /// The queue that ran it; absent of a call.
    pub queue: Option<QueueId>,
    /// What it waited for the last arrival; absent where that is within the clocks' error, and of the last.
    pub waited_ns: Option<i64>,
}

/// The rank that the others wait for most.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Straggler {
    /// Its number.
    pub rank: u32,
    /// Collectives at which it arrived last.
    pub last_count: u64,
    /// Of so many of which the last rank is known.
    pub of_count: u64,
    /// Their skews.
    pub skew_ns: i64,
    /// Of the skews of all.
    pub share: f64,
    /// What made it late: what its device did before for longer than the others', from
    /// [`LATE_CAUSE_SHARE`](crate::thresholds::LATE_CAUSE_SHARE) of its lateness on. Absent where nothing alone did.
    pub cause: Option<LateCause>,
    /// All that it did for longer, the longest first.
    pub longer: Vec<LateCause>,
}

/// A program that says it has more is not believed: how many it has is not known.
const MOST_RANKS: u32 = 1 << 20;

/// Compares ranks. Of the collectives the `longest` with the greatest skews are listed.
pub fn ranks(digests: &[RankDigest], longest: usize) -> RankFindings {
    let mut digests = digests.to_vec();
    let numbered = number(&mut digests);
    let digests: Vec<&RankDigest> = digests.iter().collect();
    let claimed = digests.iter().filter_map(|d| d.world_size).max();
    let world_size = claimed.filter(|size| *size <= MOST_RANKS);
    let traced: BTreeSet<u32> = digests.iter().map(|d| d.row.rank).collect();
    let missing_ranks: Vec<u32> = match numbered {
        true => (0..world_size.unwrap_or(0))
            .filter(|rank| !traced.contains(rank))
            .collect(),
        false => Vec::new(),
    };
    let all_traced = world_size.is_some() && missing_ranks.is_empty();
    let clocks = Clocks::of(&digests);
    let judged: Vec<_> = (digests.iter())
        .filter(|digest| !digest.share.is_empty())
        .map(|digest| (format!("rank {}", digest.row.rank), &digest.share))
        .collect();
    let (verdict, evidence) = together(&judged);
    let groups = communicators(&digests, |d| &d.device, all_traced);
    let mut comparison = Comparison::of(&digests, longest);
    let mut bandwidths = Bandwidths::default();
    let mut matched_of: BTreeMap<Communicator, u64> = BTreeMap::new();
    let device_error = |a, b| clocks.device_error_ns(a, b);
    let counts = matched(
        &digests,
        |d| &d.device,
        &groups,
        |one| {
            *matched_of.entry(one.communicator).or_default() += 1;
            if comparison.add(&one, device_error, true) {
                bandwidths.add(&one, &clocks);
            }
        },
    );
    let mut calls = Comparison::of(&digests, 0);
    let host_error = |a, b| clocks.host_error_ns(a, b);
    let of_calls = communicators(&digests, |d| &d.called, all_traced);
    let call_counts = matched(
        &digests,
        |d| &d.called,
        &of_calls,
        |one| {
            calls.add(&one, host_error, false);
        },
    );
    let mut rows: Vec<CommunicatorRow> = (groups.iter())
        .filter(|(communicator, _)| {
            let used = |d: &&RankDigest| {
                d.device
                    .iter()
                    .any(|p| p.communicator == Some(**communicator))
            };
            digests.iter().any(used)
        })
        .map(|(communicator, of)| CommunicatorRow {
            communicator: *communicator,
            size: of.size,
            ranks: of.known.iter().map(|at| digests[*at].row.rank).collect(),
            complete: of.complete,
            matched_count: matched_of.get(communicator).copied().unwrap_or(0),
        })
        .collect();
    rows.sort_by_key(|row| Reverse((row.size, row.ranks.len())));
    let mut findings = RankFindings {
        world_size,
        verdict,
        verdict_sentence: evidence.sentence,
        verdict_evidence: evidence.parts,
        missing_ranks,
        not_comparable_because: clocks.not_comparable(),
        clock_error_ns: clocks.worst_error_ns(),
        communicators: rows,
        bandwidth: bandwidths.rows(),
        straggler: comparison.straggler(),
        outliers: outliers::outliers(&digests),
        longest: comparison.longest(),
        ranks: comparison.rows(),
        collectives: comparison.kinds(counts),
        collective_calls: calls.kinds(call_counts),
        ..RankFindings::default()
    };
    findings.not_matched_because = sentences::not_matched(&findings, &digests);
    findings.sentences = sentences::sentences(&findings, numbered);
    findings
}

/// Puts ranks in order. Where a number is not known, or two have the same, they are numbered in their order; then this is false.
fn number(digests: &mut [RankDigest]) -> bool {
    let numbers: BTreeSet<u32> = digests.iter().map(|d| d.row.rank).collect();
    let numbered = digests.iter().all(|d| d.numbered) && numbers.len() == digests.len();
    if numbered {
        digests.sort_by_key(|d| d.row.rank);
    } else {
        for (rank, digest) in digests.iter_mut().enumerate() {
            digest.row.rank = rank as u32;
        }
    }
    numbered
}
