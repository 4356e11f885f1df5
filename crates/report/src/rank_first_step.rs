//! Says what to do first about the ranks of a program: a late rank, for which the others wait, comes before what is slow on each rank.
//!
//! A rank comes first only where the critical path through all ranks runs through that rank for longest. The bound is the time by
//! which the rank came later than the second to last, or than the median rank where several are late: so long the others would
//! not have waited.

use crate::number;
use gapscope_comparison::ranks::{LateReason, RankFindings, RankOnPath, WhyLate};
use gapscope_timeline::quantity::ratio;
use gapscope_timeline::thresholds::ADVICE_SHARE;

/// Returns the action with a full stop, and the sentence behind it with a space before it; `None` where no rank is late, or where that costs
/// less than advice is given for.
pub(crate) fn first_step(findings: &RankFindings) -> Option<[String; 2]> {
    let (rank, why, cost_ns) = match (&findings.straggler, findings.late_ranks.first()) {
        (Some(straggler), _) => (straggler.rank, &straggler.why, straggler.cost_ns),
        (None, Some(late)) => (late.rank, &late.why, late.late_ns),
        (None, None) => return None,
    };
    // Where the critical path runs through other ranks, nothing is gained by this one.
    let is_on_path = findings.critical_path.as_ref().is_none_or(|path| {
        let whole_ns = |of: &RankOnPath| {
            let parts = [
                of.compute_ns,
                of.communication_ns,
                of.transfer_ns,
                of.host_ns,
                of.sync_ns,
                of.launch_ns,
            ];
            parts.into_iter().fold(0i64, i64::saturating_add)
        };
        let longest = path.ranks.iter().max_by_key(|of| whole_ns(of));
        longest.is_none_or(|of| of.rank == rank)
    });
    if !is_on_path {
        return None;
    }
    let windows = findings.ranks.iter().filter_map(|rank| rank.idle);
    let window_ns = windows.map(|idle| idle.window_ns).max()?;
    if ratio(cost_ns, window_ns) < ADVICE_SHARE {
        return None;
    }
    let action = format!("{}.", action(rank, why));
    let bound = format!(
        " Without its lateness the other ranks would wait at most {} ({} of the time) less for rank {rank}.",
        number::duration(cost_ns),
        number::share_of(cost_ns, window_ns)
    );
    Some([action, bound])
}

/// Returns what to do about a late rank.
fn action(rank: u32, why: &WhyLate) -> String {
    match why.reason {
        Some(LateReason::MoreWork) => format!("give rank {rank} as little work as the other ranks"),
        Some(LateReason::SlowerClock) => format!(
            "find out why the GPU of rank {rank} runs at a lower clock, or move the rank to another GPU"
        ),
        Some(LateReason::Heat) => {
            format!("cool the GPU of rank {rank}, or move the rank to another GPU")
        }
        Some(LateReason::Power) => format!(
            "give the GPU of rank {rank} the power that the others have, or move the rank to another GPU"
        ),
        Some(LateReason::DataLoading) => {
            format!("load the data of rank {rank} ahead, in more worker processes")
        }
        Some(LateReason::Network) => {
            format!("look for the slow link of rank {rank}, or move the rank to another machine")
        }
        None => format!("find out why rank {rank} is late"),
    }
}
