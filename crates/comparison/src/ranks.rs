//! The ranks of a distributed program side by side: collectives matched across them, who arrives last and why, who waits, how fast they are.
//!
//! A *collective* is an operation that the ranks of a *communicator* take part in, such as an all-reduce; messages from one rank to another
//! count too, as collectives of two. On the device it is a kernel of NCCL (or RCCL, whose names are the same), recognised by its name; on the
//! host, a label that begins with `nccl`. NCCL's NVTX ranges say which communicator a call is of (`ranks/nccl.rs`, `ranks/parts.rs`). Collectives of
//! ranks are one by their number on the communicator, or else by order, kind, size and time (`ranks/matched.rs`). Where
//! the communicator is not known, or a rank of it has no trace, collectives are counted and in no figure.
//!
//! A collective's *arrival* on a rank is the start of its kernel there; its *skew* is from the first arrival to the last, and each rank waits
//! for the last one. Arrivals compare within the error of the two ranks' clocks (`ranks/clocks.rs`): a skew or a wait within it counts for nothing, and who
//! was last is known where one rank was later than each other by more. Calls on the hosts have the host's clock, and no such error.
//!
//! Kernels of most kinds cannot end before all ranks have arrived. Where the matched kernels of such a kind do not all
//! overlap, or differ in their bytes, they were not one collective (one was not recorded): they are counted, and no skew has them.
//!
//! A rank is called late where equal ranks would hardly have one as late (`ranks/chance.rs`). The order in which stages of a pipeline arrive is no
//! lateness (`ranks/pipelines.rs`).
//!
//! Ranks that are late together have no lead over each other; they are told by how much they are later than the median rank.
//!
//! A slow network is told where a rank's part ends later than the others', or where collectives of some ranks take longer than the same ones of
//! others (`ranks/links.rs`).
//!
//! What bounds the speed of all ranks is judged by the one critical path through them (`ranks/path.rs`), and by the sums of their times
//! where that cannot be followed.
//!
//! Why a rank is late (`ranks/late.rs`) is what its device did, since the end of the collective before, for longer than the others'. Numbers of
//! kernels, clocks, conditions, labels and stacks may show the reason for that (`ranks/late_reason.rs`).
mod alignment;
mod bandwidth;
mod before;
mod chance;
mod clocks;
mod comparison;
mod digest;
mod findings;
mod joined;
mod late;
mod late_group;
mod late_reason;
mod links;
mod loading;
mod matched;
mod nccl;
mod outliers;
mod part;
mod parts;
mod path;
mod pipelines;
mod ranges;
mod rank_row;
mod sentences;

pub use bandwidth::Bandwidth;
use bandwidth::Bandwidths;
use clocks::Clocks;
use comparison::Comparison;
pub use digest::RankDigest;
pub use findings::{
    Arrival, Collective, CollectiveKind, CommunicatorRow, LateRankRow, RankFindings, Straggler,
    WhyLate,
};
use gapscope_analysis::joint_verdict::joint_verdict;
pub use gapscope_timeline::rank_list::{list, named};
pub use joined::{JoinedRanks, joined};
pub use late::{Doing, LateCause};
pub use late_group::{LateAlone, LateGroup, LateHow};
pub use late_reason::{LateReason, calls_to_mend};
use links::Links;
pub use links::{SlowLink, SlowLinkBasis};
use matched::{communicators, matched};
pub use outliers::{Outlier, Unlike};
pub use part::Communicator;
use path::Joints;
pub use path::{RankOnPath, RanksPath};
pub use pipelines::Pipeline;
use pipelines::Pipelines;
pub use rank_row::{Idle, RankRow};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

/// The maximum number of ranks that a program is believed to have. Where a program claims more, the number counts as
/// unknown.
const MAX_RANKS: u32 = 1 << 20;

/// Returns the findings on ranks, which list the `longest` collectives with the greatest skews.
pub fn ranks(digests: &[RankDigest], longest: usize) -> RankFindings {
    let mut digests = digests.to_vec();
    let numbered = number(&mut digests);
    let digests: Vec<&RankDigest> = digests.iter().collect();
    let claimed = digests.iter().filter_map(|d| d.world_size).max();
    let world_size = claimed.filter(|size| *size <= MAX_RANKS);
    let traced: BTreeSet<u32> = digests.iter().map(|d| d.row.rank).collect();
    let missing_ranks: Vec<u32> = match numbered {
        true => (0..world_size.unwrap_or(0))
            .filter(|rank| !traced.contains(rank))
            .collect(),
        false => Vec::new(),
    };
    let all_traced = world_size.is_some() && missing_ranks.is_empty();
    let clocks = Clocks::new(&digests);
    let judged: Vec<_> = (digests.iter())
        .filter(|digest| !digest.times.is_empty())
        .map(|digest| (format!("rank {}", digest.row.rank), &digest.times))
        .collect();
    let (by_sums, evidence) = joint_verdict(&judged);
    let groups = communicators(&digests, |d| &d.device, all_traced);
    let mut comparison = Comparison::new(&digests, longest);
    let mut bandwidths = Bandwidths::default();
    let mut links = Links::new(&digests);
    let mut matched_of: BTreeMap<Communicator, u64> = BTreeMap::new();
    let pipelines = Pipelines::new(&digests, &groups);
    let mut joints = Joints::new(&digests);
    let device_error = |a, b| clocks.device_error_ns(a, b);
    let counts = matched(
        &digests,
        |d| &d.device,
        &groups,
        &device_error,
        |one| {
            *matched_of.entry(one.communicator).or_default() += 1;
            if comparison.add(&one, device_error, true, pipelines.tells_lateness(&one)) {
                bandwidths.add(&one, &clocks);
                links.add(&one, &clocks);
                joints.add(&one);
            }
        },
    );
    let mut calls = Comparison::new(&digests, 0);
    let host_error = |a, b| clocks.host_error_ns(a, b);
    let of_calls = communicators(&digests, |d| &d.called, all_traced);
    let call_counts = matched(
        &digests,
        |d| &d.called,
        &of_calls,
        // Calls of one collective need not overlap: their times do not tell which are one.
        &|_, _| None,
        |one| {
            calls.add(&one, host_error, false, false);
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
    let by_path = path::judged(&digests, &joints, &clocks);
    let (verdict, mut sentence, critical_path) = match by_path {
        Ok(judged) => (judged.bound, judged.sentence, Some(judged.path)),
        Err(reason) => (
            by_sums,
            sentences::by_sums(&evidence.sentence, &digests, &reason),
            None,
        ),
    };
    if let Some(left_out) = sentences::left_out(&digests) {
        sentence = format!("{sentence} {left_out}");
    }
    let late_ranks = comparison.late_ranks(&digests);
    let straggler = comparison.straggler(&digests, &late_ranks);
    let mut findings = RankFindings {
        world_size,
        verdict,
        verdict_sentence: sentence,
        critical_path,
        verdict_evidence: evidence.parts,
        missing_ranks,
        not_comparable_because: clocks.not_comparable(),
        clock_error_ns: clocks.worst_error_ns(),
        communicators: rows,
        bandwidth: bandwidths.rows(),
        late_group: comparison.late_group(straggler.as_ref(), &late_ranks),
        straggler,
        late_ranks,
        slow_links: links.slow(),
        outliers: outliers::outliers(&digests, &pipelines),
        pipelines: pipelines.rows(&digests),
        longest: comparison.longest(),
        ranks: comparison.rows(),
        collectives: comparison.kinds(counts),
        collective_calls: calls.kinds(call_counts),
        ..RankFindings::default()
    };
    // Collectives that a recording lacks took an unknown time.
    let some_ran = digests.iter().any(|digest| !digest.device.is_empty());
    for row in &mut findings.ranks {
        let mut mine = digests.iter().filter(|digest| digest.row.rank == row.rank);
        if some_ran && mine.any(|digest| digest.lacks_collectives()) {
            row.collective_ns = None;
        }
    }
    findings.not_matched_because = sentences::not_matched(&findings, &digests);
    let origin_ns = digests.iter().map(|d| d.start_ns).min().unwrap_or(0);
    findings.sentences = sentences::sentences(&findings, numbered, origin_ns);
    findings
}

/// Sorts ranks by their numbers, and returns true. Where a number is not known, or two ranks have the same, it
/// numbers the ranks in their given order and returns false.
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
