//! Joins the ranks of a program for a replay of all of them: which of each rank's kernels are parts of one collective that all its ranks wait
//! for, and within what error their clocks compare. Collectives are matched as the comparison of ranks matches them.

use super::clocks::Clocks;
use super::comparison::Comparison;
use super::digest::RankDigest;
use super::matched::{communicators, matched};
use gapscope_analysis::what_if::{RankPart, Refusal};
use gapscope_timeline::collectives::facts;

/// Ranks, joined at their collectives; each by its place among the digests.
#[derive(Debug, Default)]
pub struct JoinedRanks {
    /// The kernels of each rank in collectives.
    pub parts: Vec<Vec<RankPart>>,
    /// The greatest error within which times of each rank's device compare with those of another.
    pub clock_error_ns: Vec<i64>,
    /// Why the ranks cannot be joined; empty where they can.
    pub refused: Vec<Refusal>,
}

/// Joins ranks, each of which has a trace of its own.
pub fn joined(digests: &[RankDigest]) -> JoinedRanks {
    let digests: Vec<&RankDigest> = digests.iter().collect();
    let clocks = Clocks::new(&digests);
    let mut joined = JoinedRanks {
        parts: vec![Vec::new(); digests.len()],
        clock_error_ns: vec![0; digests.len()],
        refused: Vec::new(),
    };
    if let Some(reason) = clocks.not_comparable() {
        joined.refused.push(Refusal::of_clocks(&reason));
        return joined;
    }
    let claimed = digests.iter().filter_map(|rank| rank.world_size).max();
    let traced: Vec<u32> = digests.iter().map(|rank| rank.row.rank).collect();
    let missing = |size: u32| size as usize > traced.len();
    if let Some(size) = claimed.filter(|size| missing(*size)) {
        joined
            .refused
            .push(Refusal::of_missing_ranks(size, &traced));
        return joined;
    }
    let error_ns = |a, b| clocks.device_error_ns(a, b);
    for (rank, worst_ns) in joined.clock_error_ns.iter_mut().enumerate() {
        let others = (0..digests.len()).filter(|other| *other != rank);
        *worst_ns = others
            .filter_map(|other| error_ns(rank, other))
            .max()
            .unwrap_or(0);
    }
    let groups = communicators(&digests, |rank| &rank.device, claimed.is_some());
    let mut comparison = Comparison::new(&digests, 0);
    let mut collective = 0;
    matched(
        &digests,
        |rank| &rank.device,
        &groups,
        &error_ns,
        |one| {
            let waits_for_all = facts(one.kind).is_some_and(|facts| !facts.may_end_early);
            if !comparison.add(&one, error_ns, true, false) || !waits_for_all {
                return;
            }
            let starts = one.parts.iter().map(|(_, part)| part.interval.start_ns);
            let (Some(last_ns), true) = (
                starts.max(),
                one.parts.iter().all(|(_, part)| part.queue.is_some()),
            ) else {
                return;
            };
            for (rank, part) in &one.parts {
                joined.parts[*rank].extend(part.queue.map(|queue| RankPart {
                    queue,
                    interval: part.interval,
                    collective,
                    last_ns,
                }));
            }
            collective += 1;
        },
    );
    if collective == 0 {
        joined.refused.push(Refusal::of_no_collective());
    }
    joined
}
