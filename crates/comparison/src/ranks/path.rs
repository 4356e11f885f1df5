//! Follows the one critical path through all ranks: what the speed of the whole program hangs on, however the ranks' times sum up.
//!
//! The path is followed backwards from the last work of any rank. On a rank it goes along the chains of work and idle time between its
//! collectives ([`Chains`](gapscope_analysis::critical_path::Chains)). At a collective that the ranks were matched at, the time after
//! the last arrival is communication, and the path goes on with the rank that came last: while the others waited in their kernels,
//! that rank did what all waited for. At any other collective the path stays on its rank, and the collective counts as
//! communication with all its waiting.
//!
//! Clocks of two ranks agree within an error. Where two ranks came last within that error, either may be on the path: both ways are
//! followed, and where they lead to two verdicts, the verdict is unknown. Each change of ranks moves the border between
//! communication and what comes before by the error at most. A rank is named only where the path is mostly on that rank however such ties are
//! broken.
//!
//! What this cannot know: clocks of different machines. There the verdict rests on the sums of the ranks' times, and says so.

use super::clocks::Clocks;
use super::digest::RankDigest;
use super::matched::Matched;
use super::part::CollectivePart;
use gapscope_analysis::critical_path::{JointPath, PathOfDevice, PathParts};
use gapscope_analysis::verdict::Bound;
use gapscope_timeline::quantity::ratio;
use gapscope_timeline::thresholds::{SAME_RANK_SHARE, UNKNOWN_SHARE};
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::HashMap;

/// The critical path through all ranks.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
pub struct RanksPath {
    /// The time of the path, in nanoseconds.
    pub window_ns: i64,
    /// The time of the path on each rank, by what it runs through.
    pub ranks: Vec<RankOnPath>,
    /// The number of collectives at which the path goes on with another rank.
    pub change_count: u64,
    /// The time in collectives that were not matched across the ranks, so that waiting for other ranks is in it, in nanoseconds.
    pub unmatched_ns: i64,
    /// So much of the communication may be something else, because clocks agree only within an error, in nanoseconds.
    pub error_ns: i64,
}

/// The time of the path on a rank, in nanoseconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct RankOnPath {
    /// The number of the rank.
    pub rank: u32,
    /// The time in work that computes.
    pub compute_ns: i64,
    /// The time in collectives after the last arrival.
    pub communication_ns: i64,
    /// The time in transfers.
    pub transfer_ns: i64,
    /// The time in which the host had not submitted.
    pub host_ns: i64,
    /// The time in which host and device, or queues, waited for each other.
    pub sync_ns: i64,
    /// The time in which the device started or ordered what it had.
    pub launch_ns: i64,
    /// The time of which the trace does not say what it went into.
    pub unknown_ns: i64,
}

/// The matched collectives, by their parts.
#[derive(Default)]
pub(super) struct Joints<'a> {
    /// The parts of each collective, by the rank's index.
    collectives: Vec<Vec<(usize, &'a CollectivePart)>>,
    /// The number of the collective of each part, which is told apart by where it is kept.
    by_part: HashMap<*const CollectivePart, usize>,
    /// The index of each part among those of its rank.
    at: HashMap<*const CollectivePart, usize>,
}

impl<'a> Joints<'a> {
    pub(super) fn new(digests: &[&'a RankDigest]) -> Joints<'a> {
        let parts = digests
            .iter()
            .flat_map(|digest| digest.device.iter().enumerate());
        Joints {
            at: parts
                .map(|(at, part)| (std::ptr::from_ref(part), at))
                .collect(),
            ..Joints::default()
        }
    }

    /// Adds a collective whose parts are of one.
    pub(super) fn add(&mut self, one: &Matched<'a>) {
        if one.may_be_shifted {
            return;
        }
        let number = self.collectives.len();
        for (_, part) in &one.parts {
            self.by_part.insert(std::ptr::from_ref(*part), number);
        }
        self.collectives.push(one.parts.clone());
    }

    fn find(&self, part: &CollectivePart) -> Option<&[(usize, &'a CollectivePart)]> {
        let number = *self.by_part.get(&std::ptr::from_ref(part))?;
        Some(&self.collectives[number])
    }
}

/// Which of the ranks that came last within the clocks' error the path follows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Follow {
    /// The one with the latest time.
    Latest,
    /// The rank that the path is on, where it may have been last.
    Own,
    /// Another than that, where the other may have been last.
    Other,
}

/// A path that was followed.
struct Followed {
    by_rank: Vec<PathParts>,
    change_count: u64,
    unmatched_ns: i64,
    error_ns: i64,
}

/// The verdict on a path, or why there is none.
pub(super) struct PathVerdict {
    pub(super) path: RanksPath,
    pub(super) bound: Bound,
    pub(super) sentence: String,
}

/// Follows the path and judges it. Returns the reason as the end of a sentence where it cannot be followed.
pub(super) fn judged(
    digests: &[&RankDigest],
    joints: &Joints,
    clocks: &Clocks,
) -> Result<PathVerdict, String> {
    if let Some(reason) = clocks.not_comparable() {
        return Err(reason);
    }
    if digests.iter().any(|rank| rank.chains.to_end.is_none()) {
        return Err("not all ranks ran collectives on a device of their own".to_owned());
    }
    if joints.collectives.is_empty() {
        return Err("no collectives of the ranks could be matched".to_owned());
    }
    let followed = follow(digests, joints, clocks, Follow::Latest);
    let elsewhere = follow(digests, joints, clocks, Follow::Other);
    let path = JointPath {
        runs_through_any: !is_mostly_on_one(&followed, &elsewhere),
        ..joint_path(digests, &followed)
    };
    if ratio(followed.unmatched_ns, path.parts().total_ns()) >= UNKNOWN_SHARE {
        return Err(
            "most of the communication is in collectives that could not be matched".to_owned(),
        );
    }
    let (mut bound, mut sentence) = path.verdict();
    let other = joint_path(digests, &follow(digests, joints, clocks, Follow::Own));
    let (other, _) = other.verdict();
    if other != bound && bound != Bound::Unknown {
        sentence = format!(
            "Which rank came last to collectives is within the clocks' error, and the critical path through all ranks is {bound} or \
             {other} by that."
        );
        bound = Bound::Unknown;
    }
    Ok(PathVerdict {
        path: row(digests, &followed),
        bound,
        sentence,
    })
}

fn follow(digests: &[&RankDigest], joints: &Joints, clocks: &Clocks, how: Follow) -> Followed {
    let mut followed = Followed {
        by_rank: vec![PathParts::default(); digests.len()],
        change_count: 0,
        unmatched_ns: 0,
        error_ns: 0,
    };
    let ends = digests.iter().enumerate();
    let ends = ends.filter_map(|(rank, digest)| Some((rank, digest.chains.to_end?)));
    let Some((mut rank, mut chain)) = ends.max_by_key(|(_, chain)| chain.until_ns) else {
        return followed;
    };
    loop {
        let sum = &mut followed.by_rank[rank];
        *sum = sum.plus(chain.parts);
        let Some(part) = chain.from.and_then(|from| digests[rank].device.get(from)) else {
            return followed;
        };
        let last = last_arrival(rank, part, chain.from_ns, joints, clocks, how);
        let (came, arrived, error_ns) = last.unwrap_or((rank, part, 0));
        let arrived_ns = arrived.interval.start_ns.max(part.interval.start_ns);
        let communicated_ns = chain.from_ns.saturating_sub(arrived_ns).max(0);
        let sum = &mut followed.by_rank[rank].communication_ns;
        *sum = sum.saturating_add(communicated_ns);
        if last.is_none() {
            followed.unmatched_ns = followed.unmatched_ns.saturating_add(communicated_ns);
        }
        if came != rank {
            followed.change_count += 1;
            followed.error_ns = followed.error_ns.saturating_add(error_ns);
        }
        let at = joints.at.get(&std::ptr::from_ref(arrived));
        let next = at.and_then(|at| digests[came].chains.to_collectives.get(*at).copied());
        match next.filter(|next| next.from.is_none() || next.from_ns < chain.from_ns) {
            Some(next) => (rank, chain) = (came, next),
            None => return followed,
        }
    }
}

/// Returns the rank that came last to the collective of a part, its own part and the error within which both compare; `None` where
/// the collective was not matched. Only ranks count that came before the path leaves the part.
fn last_arrival<'a>(
    rank: usize,
    part: &'a CollectivePart,
    until_ns: i64,
    joints: &Joints<'a>,
    clocks: &Clocks,
    how: Follow,
) -> Option<(usize, &'a CollectivePart, i64)> {
    let own_ns = part.interval.start_ns;
    let mut last = (rank, part, 0);
    for (other, arrived) in joints
        .find(part)?
        .iter()
        .filter(|(other, _)| *other != rank)
    {
        let arrived_ns = arrived.interval.start_ns;
        let error_ns = clocks.device_error_ns(rank, *other)?;
        let least_ns = match how {
            Follow::Latest | Follow::Other => own_ns,
            Follow::Own => own_ns.saturating_add(error_ns),
        };
        let is_later = arrived_ns > least_ns && arrived_ns > last.1.interval.start_ns;
        if is_later && arrived_ns < until_ns {
            last = (*other, arrived, error_ns);
        }
    }
    if how == Follow::Other && last.0 == rank {
        let mut others = joints.find(part)?.iter();
        let other = others.find_map(|(other, arrived)| {
            let error_ns = clocks.device_error_ns(rank, *other)?;
            let may_be_last = arrived.interval.start_ns.saturating_add(error_ns) >= own_ns;
            let may_be_last = may_be_last && arrived.interval.start_ns < until_ns;
            (*other != rank && may_be_last).then_some((*other, *arrived, error_ns))
        });
        return other.or(Some(last));
    }
    Some(last)
}

/// Returns true where the rank with the greatest part of a path keeps most of that part on the other way.
fn is_mostly_on_one(path: &Followed, elsewhere: &Followed) -> bool {
    let share = |path: &Followed, rank: usize| {
        let all_ns = path.by_rank.iter().map(PathParts::total_ns);
        let all_ns = all_ns.fold(0, i64::saturating_add);
        ratio(path.by_rank[rank].total_ns(), all_ns)
    };
    let longest = (0..path.by_rank.len()).max_by_key(|rank| path.by_rank[*rank].total_ns());
    longest.is_none_or(|rank| share(elsewhere, rank) >= SAME_RANK_SHARE * share(path, rank))
}

fn joint_path(digests: &[&RankDigest], followed: &Followed) -> JointPath {
    let ranks = digests.iter().zip(&followed.by_rank);
    JointPath {
        of: "ranks",
        devices: ranks
            .map(|(digest, parts)| PathOfDevice {
                name: format!("rank {}", digest.row.rank),
                parts: *parts,
                underfilled_share: digest.times.underfilled_share(),
                untimed_share: digest.times.untimed_share(),
            })
            .collect(),
        most_compute_ns: digests
            .iter()
            .map(|d| d.times.compute_ns())
            .max()
            .unwrap_or(0),
        error_ns: followed.error_ns,
        runs_through_any: false,
    }
}

fn row(digests: &[&RankDigest], followed: &Followed) -> RanksPath {
    let ranks = digests.iter().zip(&followed.by_rank);
    let ranks = ranks.map(|(digest, parts)| {
        let [host_ns, sync_ns, launch_ns, unknown_ns] = parts.sides;
        RankOnPath {
            rank: digest.row.rank,
            compute_ns: parts.compute_ns,
            communication_ns: parts.communication_ns,
            transfer_ns: parts.transfer_ns,
            host_ns,
            sync_ns,
            launch_ns,
            unknown_ns,
        }
    });
    let window_ns = followed.by_rank.iter().map(PathParts::total_ns);
    RanksPath {
        window_ns: window_ns.fold(0, i64::saturating_add),
        ranks: ranks.collect(),
        change_count: followed.change_count,
        unmatched_ns: followed.unmatched_ns,
        error_ns: followed.error_ns,
    }
}
