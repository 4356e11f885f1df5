//! The types of the findings on all ranks of a program, which reports show. `ranks.rs` makes them and defines the
//! terms (collective, communicator, arrival, skew).

use super::bandwidth::Bandwidth;
use super::late::LateCause;
use super::late_group::LateGroup;
use super::late_reason::LateReason;
use super::links::SlowLink;
use super::outliers::Outlier;
use super::part::Communicator;
use super::path::RanksPath;
use super::pipelines::Pipeline;
use super::rank_row::RankRow;
use gapscope_analysis::verdict::{Bound, VerdictPart};
use gapscope_timeline::durations::Durations;
use gapscope_timeline::intervals::Interval;
use gapscope_timeline::quantity::ratio;
use gapscope_trace::ids::QueueId;
use schemars::JsonSchema;
use serde::Serialize;

/// The findings on all ranks.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
pub struct RankFindings {
    /// The number of ranks on all machines.
    pub world_size: Option<u32>,
    /// The ranks with a trace, by number.
    pub ranks: Vec<RankRow>,
    /// What bounds all ranks together: by the critical path through them, or by the sums of their times where that could not be
    /// followed. Unknown where nothing was timed, and where the clocks' error leaves it open.
    pub verdict: Bound,
    /// The verdict in a sentence.
    pub verdict_sentence: String,
    /// The parts of the time of all devices, the largest first.
    pub verdict_evidence: Vec<VerdictPart>,
    /// The critical path through all ranks. Absent where it could not be followed, for the reason that the verdict's sentence has.
    pub critical_path: Option<RanksPath>,
    /// The numbers of ranks without a trace.
    pub missing_ranks: Vec<u32>,
    /// Why arrivals of different ranks cannot all be compared. Absent where they can.
    pub not_comparable_because: Option<String>,
    /// Why it is not known which collectives of the ranks are one. Absent where it is known of all.
    pub not_matched_because: Option<String>,
    /// The error within which arrivals of any two ranks can be compared. Absent when a clock's error is not known.
    pub clock_error_ns: Option<i64>,
    /// The communicators of collectives on the devices, the one with most ranks first.
    pub communicators: Vec<CommunicatorRow>,
    /// Collectives on the devices, the greatest sum of skews first.
    pub collectives: Vec<CollectiveKind>,
    /// The bandwidths of collectives by kind and size, those that took longest in all first.
    pub bandwidth: Vec<Bandwidth>,
    /// Calls of collectives on the hosts, by their labels.
    pub collective_calls: Vec<CollectiveKind>,
    /// The collectives with the greatest skews.
    pub longest: Vec<Collective>,
    /// The rank that the others wait for most. Absent where none is late by more than chance and the clocks' error explain.
    pub straggler: Option<Straggler>,
    /// The ranks that arrive later than the median rank by more than chance, the latest first: the straggler, and ranks that are late with it or
    /// with each other; where most ranks are late, all but those in time. Of two ranks there is the straggler alone.
    pub late_ranks: Vec<LateRankRow>,
    /// Those of the straggler and the late ranks that the others wait for, with what all of them and each alone cost. Absent where no rank is late.
    pub late_group: Option<LateGroup>,
    /// Ranks whose network is slower than the others', or pairs and groups of them whose collectives take longer than those of others.
    pub slow_links: Vec<SlowLink>,
    /// Ranks that are stages of a pipeline, whose order of arrivals says nothing of lateness.
    pub pipelines: Vec<Pipeline>,
    /// Ranks that are unlike the others, what costs most first.
    pub outliers: Vec<Outlier>,
    /// The findings in sentences. What costs most comes first.
    pub sentences: Vec<String>,
}

/// One collective with this share of all skews is told by itself.
const ONCE_LATE_SHARE: f64 = 0.5;

impl RankFindings {
    /// Returns the collective at which most of all waiting was, where no rank is late again and again.
    pub fn late_once(&self) -> Option<&Collective> {
        let is_alone = self.straggler.is_none() && self.late_ranks.is_empty();
        let longest = self.longest.first().filter(|_| is_alone)?;
        (self.share_of_skews(longest) >= ONCE_LATE_SHARE).then_some(longest)
    }

    /// Returns the skew of a collective as a share of all skews.
    pub(super) fn share_of_skews(&self, one: &Collective) -> f64 {
        let skews = self.ranks.iter().filter_map(|rank| rank.last_skew_ns);
        ratio(one.skew_ns, skews.fold(0, i64::saturating_add))
    }
}

/// Ranks that take part in collectives together.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct CommunicatorRow {
    /// NCCL's number as hexadecimal, or `only` where each process has one that it gives no number.
    #[schemars(with = "String")]
    pub communicator: Communicator,
    /// The number of ranks. Absent when it is not known.
    pub size: Option<u32>,
    /// The ranks with a trace.
    pub ranks: Vec<u32>,
    /// True if all ranks have a trace.
    pub complete: bool,
    /// The number of matched collectives on the devices.
    pub matched_count: u64,
}

/// Collectives of a kind.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
pub struct CollectiveKind {
    /// The kind, such as `AllReduce`.
    pub kind: &'static str,
    /// The number of collectives that were matched across the ranks of their communicators.
    pub matched_count: u64,
    /// The number that each rank has, in the order of the ranks.
    pub counts: Vec<u64>,
    /// The number on all ranks that was not matched because the communicator, or the other rank of a message, is not known.
    pub unassigned_count: u64,
    /// The number on all ranks that was not matched because a rank without a trace takes part.
    pub incomplete_count: u64,
    /// True if ranks of one communicator differ in how many they have.
    pub unequal: bool,
    /// The number on all ranks that was not matched because the recording of another rank lacks its part.
    pub unpaired_count: u64,
    /// True if some were matched by their order alone, because they have no numbers and the ranks' times do not compare. With
    /// `unequal` the match may then be off.
    pub by_order_alone: bool,
    /// The number of matched ones that rest on their order although a recording lacks some, so that they may be neighbours. No skew counts
    /// them.
    pub shifted_count: u64,
    /// The number of matched ones that cannot be one collective, because their kernels do not all overlap or differ in their bytes. No skew
    /// counts them. Absent where no arrivals can be compared.
    pub contradictory_count: Option<u64>,
    /// The number of skews within the clocks' error, which count for nothing. Absent where no arrivals can be compared.
    pub uncertain_count: Option<u64>,
    /// The number of skews above the clocks' error without a certain last rank. Absent where no arrivals can be compared.
    pub last_unknown_count: Option<u64>,
    /// The skews above the clocks' error. There are none where arrivals cannot be compared.
    pub skew: Durations,
}

/// One collective.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Collective {
    /// The kind.
    pub kind: &'static str,
    /// The communicator.
    #[schemars(with = "String")]
    pub communicator: Communicator,
    /// The number among the collectives of the kind and the communicator, from 0.
    pub number: u64,
    /// The time of the first arrival.
    pub first_ns: i64,
    /// The time from the first arrival to the last.
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
    /// The start of the kernel or of the call.
    pub start_ns: i64,
    /// The end of the kernel or of the call.
    pub end_ns: i64,
    /// The queue that ran the kernel. A call has none.
    pub queue: Option<QueueId>,
    /// The time that the rank waited for the last arrival. Absent where that is within the clocks' error, and for the last rank.
    pub waited_ns: Option<i64>,
}

/// The reason why a rank was late.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct WhyLate {
    /// The stretch that has nine tenths of its lateness, where that is a part of the time only.
    pub stretch: Option<Interval>,
    /// What made the rank late: what its device did before for longer than those of the others, or of the ranks in time, from
    /// [`LATE_CAUSE_SHARE`](gapscope_timeline::thresholds::LATE_CAUSE_SHARE) of the lateness on. Absent where no single cause did.
    pub cause: Option<LateCause>,
    /// Why the device did so. Absent where the trace does not show why.
    pub reason: Option<LateReason>,
    /// What shows the reason, as the end of a sentence. Absent without a cause.
    pub evidence: Option<String>,
    /// All that the device did for longer, the longest first.
    pub longer: Vec<LateCause>,
}

/// The rank that the others wait for most.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Straggler {
    /// The number of the rank.
    pub rank: u32,
    /// The number of collectives at which the rank arrived last.
    pub last_count: u64,
    /// The number of collectives whose last rank is known.
    pub of_count: u64,
    /// The sum of the skews of those at which the rank arrived last.
    pub skew_ns: i64,
    /// The number of groups of ranks over whose collectives the skews are added up. At the same time several groups may wait for the rank.
    pub group_count: usize,
    /// `skew_ns` as a share of all skews.
    pub share: f64,
    /// The time by which it arrived later than the second to last, in all: what the others would not have waited without it.
    pub cost_ns: i64,
    /// At most so probable is a rank as late as this one where all ranks are equal, from 0 to 1.
    pub chance: f64,
    /// The reason why the rank was late.
    #[serde(flatten)]
    pub why: WhyLate,
}

/// A rank that is late, alone or with others.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct LateRankRow {
    /// The number of the rank.
    pub rank: u32,
    /// The number of collectives at which the rank arrived later than the median rank, or than the ranks in `later_than`, by more than
    /// the clocks' error.
    pub late_count: u64,
    /// The number of collectives whose arrivals were compared.
    pub of_count: u64,
    /// The time by which it arrived later than the median rank, or than the latest of those in `later_than`, in all, in nanoseconds.
    pub late_ns: i64,
    /// The number of groups of ranks over whose collectives the times are added up. At the same time several groups may wait for the rank.
    pub group_count: usize,
    /// The numbers of the ranks in time, where most ranks are late and these are compared with them; empty where the rank is compared
    /// with the median rank.
    pub later_than: Vec<u32>,
    /// At most so probable is a rank as late as this one where all ranks are equal, from 0 to 1.
    pub chance: f64,
    /// The reason why the rank was late.
    #[serde(flatten)]
    pub why: WhyLate,
}
