//! Says what to do first about the ranks of a program: a late rank, for which the others wait, comes before what is slow on each rank.
//!
//! Late ranks come first only where the critical path through all ranks runs through one of them for longest. The bound is how much less the
//! others would have waited for the next rank: so ranks that are late together are named together.

use crate::number;
use gapscope_analysis::gaps::Cause;
use gapscope_analysis::verdict::Bound;
use gapscope_comparison::ranks::{
    Doing, LateGroup, LateHow, LateReason, RankFindings, RankOnPath, WhyLate, calls_to_mend, named,
};
use gapscope_timeline::quantity::ratio;
use gapscope_timeline::thresholds::ADVICE_SHARE;
use std::cmp::Reverse;

/// Returns the action with a full stop, and the sentence behind it with a space before it; `None` where no rank is late, or where that costs
/// less than advice is given for.
pub(crate) fn first_step(findings: &RankFindings) -> Option<[String; 2]> {
    let group = findings.late_group.as_ref()?;
    // Where the critical path runs through other ranks, nothing is gained by this one.
    let is_on_path = findings.critical_path.as_ref().is_none_or(|path| {
        let longest = path.ranks.iter().max_by_key(|of| whole_ns(of));
        longest.is_none_or(|of| group.ranks.contains(&of.rank))
    });
    if !is_on_path {
        return None;
    }
    let window_ns = window_ns(findings);
    if ratio(group.cost_ns, window_ns) < ADVICE_SHARE {
        return None;
    }
    let reason = in_common(findings, group, |why| why.reason);
    let calls = in_common(findings, group, |why| match why.cause?.what {
        Doing::Idle(Cause::SubmitCall) => {
            Some("find out why launch calls take longer than on the other ranks")
        }
        Doing::Idle(cause) => calls_to_mend(cause),
        _ => None,
    });
    let action = format!("{}.", action(group, reason, calls));
    let (their, them) = match group.ranks.as_slice() {
        [one] => ("its", format!(" for rank {one}")),
        _ => ("their", String::new()),
    };
    let bound = format!(
        " Without {their} lateness each of the other ranks would wait at most {} ({} of the time) less{them}.{}",
        number::duration(group.cost_ns),
        number::share_of(group.cost_ns, window_ns),
        alone(group, window_ns)
    );
    Some([action, bound])
}

/// Returns what to do first, and the rest of the sentence, where no late rank comes before what is slow on each rank: to look at the one
/// arrival that most of all waiting was for, or else at the report on the rank that the critical path runs through for longest. The traces of
/// the ranks are in `folder`.
pub(crate) fn without_late_rank(findings: &RankFindings, folder: &str) -> Option<[String; 2]> {
    if findings.verdict == Bound::Unknown {
        return None;
    }
    let costs = |ns: i64| ratio(ns, window_ns(findings)) >= ADVICE_SHARE;
    if let Some(once) = findings.late_once().filter(|once| costs(once.skew_ns)) {
        let action = format!(
            "find out why rank {} came {} after rank {} to one collective.",
            once.last_rank,
            number::duration(once.skew_ns),
            once.first_rank
        );
        return Some([action, String::new()]);
    }
    let is_known = findings.not_comparable_because.is_none()
        && findings.not_matched_because.is_none()
        && findings.missing_ranks.is_empty();
    let reason = match is_known {
        true => "no rank is late by more than chance, or by enough to begin with",
        false => "which rank is late is not known",
    };
    let path = findings.critical_path.iter().flat_map(|path| &path.ranks);
    let longest = path.max_by_key(|of| (whole_ns(of), Reverse(of.rank)));
    let rank = longest.map_or(findings.ranks.first()?.rank, |of| of.rank);
    Some([
        format!("what the report on rank {rank} says"),
        format!(", as {reason}: gapscope report {folder}/rank={rank}"),
    ])
}

/// Returns the longest judged time of a rank, 0 where none was judged.
fn window_ns(findings: &RankFindings) -> i64 {
    let windows = findings.ranks.iter().filter_map(|rank| rank.idle);
    windows.map(|idle| idle.window_ns).max().unwrap_or(0)
}

/// Returns the known time of the critical path on a rank.
fn whole_ns(of: &RankOnPath) -> i64 {
    let parts = [
        of.compute_ns,
        of.communication_ns,
        of.transfer_ns,
        of.host_ns,
        of.sync_ns,
        of.launch_ns,
    ];
    parts.into_iter().fold(0i64, i64::saturating_add)
}

/// Returns a sentence on what one rank of a group would bring alone.
fn alone(group: &LateGroup, window_ns: i64) -> String {
    let Some(most) = group.most_alone().filter(|_| group.ranks.len() > 1) else {
        return String::new();
    };
    let cost = number::duration(most.cost_ns);
    match ratio(most.cost_ns, window_ns) < ADVICE_SHARE {
        true => format!(" One of them alone would bring next to nothing: at most {cost}."),
        false => format!(
            " Rank {} alone would bring at most {cost} ({}).",
            most.rank,
            number::share_of(most.cost_ns, window_ns)
        ),
    }
}

/// Returns what is known of all ranks of a group alike, such as the reason why they are late.
fn in_common<T: PartialEq>(
    findings: &RankFindings,
    group: &LateGroup,
    of: impl Fn(&WhyLate) -> Option<T>,
) -> Option<T> {
    let why = |rank: u32| -> Option<&WhyLate> {
        let straggler = findings.straggler.as_ref().filter(|row| row.rank == rank);
        let late = || findings.late_ranks.iter().find(|row| row.rank == rank);
        straggler.map(|row| &row.why).or_else(|| Some(&late()?.why))
    };
    let mut known = (group.ranks.iter()).map(|rank| why(*rank).and_then(&of));
    let first = known.next()?;
    first.filter(|first| known.all(|other| other.as_ref() == Some(first)))
}

/// Returns what to do about late ranks. `calls` is what to do about calls that are the reason by themselves.
fn action(group: &LateGroup, reason: Option<LateReason>, calls: Option<&str>) -> String {
    let (who, many) = (named(&group.ranks), group.ranks.len() > 1);
    let (gpu, runs, each, it) = match many {
        true => ("GPUs", "run", "each of them", "them"),
        false => ("GPU", "runs", "the rank", "the rank"),
    };
    match reason {
        Some(LateReason::MoreWork) => format!("give {who} as little work as the other ranks"),
        Some(LateReason::SlowerClock) => format!(
            "find out why the {gpu} of {who} {runs} at a lower clock, or move {each} to another GPU"
        ),
        Some(LateReason::Heat) => {
            format!("cool the {gpu} of {who}, or move {each} to another GPU")
        }
        Some(LateReason::Power) => format!(
            "give the {gpu} of {who} the power that the others have, or move {each} to another GPU"
        ),
        Some(LateReason::DataLoading) => {
            format!("load the data of {who} ahead, in more worker processes")
        }
        Some(LateReason::Network) => {
            let links = if many { "links" } else { "link" };
            format!("look for the slow {links} of {who}, or move {it} to another machine")
        }
        None if let Some(calls) = calls => format!("on {who}, {calls}"),
        None => match group.how {
            LateHow::Alone => format!("find out why {who} is late"),
            LateHow::Together => format!("find out why {who} are late together"),
            LateHow::InTurns => format!("find out why {who} are late in turns"),
            LateHow::Both => format!("find out why {who} are late"),
        },
    }
}
