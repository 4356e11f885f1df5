//! Writes the sentences that say what the comparison of ranks (processes of a distributed program) found.
//! A collective is an operation of several ranks, and a communicator a group of ranks that run them together.

use super::digest::RankDigest;
use super::findings::{LateRankRow, RankFindings, Straggler, WhyLate};
use super::late::Doing;
use gapscope_analysis::gaps::Cause;
use gapscope_analysis::verdict::Bound;
use gapscope_timeline::intervals::Interval;
use gapscope_timeline::quantity::{Nanoseconds, Percent, count_of, ratio};
use gapscope_timeline::rank_list::list;
use gapscope_timeline::vocabulary::capitalized;
use gapscope_trace::manifest::Api;
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// The maximum number of ranks without a trace that a sentence names.
const LISTED_RANKS: usize = 8;

/// The maximum number of outliers that sentences mention. The table has all of them.
const LISTED_OUTLIERS: usize = 4;

/// Returns the reason why collectives of the ranks, or some of them, could not be matched, as the end of a sentence;
/// `None` where all were, or with fewer than two ranks.
pub(super) fn not_matched(findings: &RankFindings, ranks: &[&RankDigest]) -> Option<String> {
    let kinds = &findings.collectives;
    let all: u64 = kinds.iter().flat_map(|kind| &kind.counts).sum();
    let unassigned: u64 = kinds.iter().map(|kind| kind.unassigned_count).sum();
    if unassigned == 0 || ranks.len() < 2 {
        return None;
    }
    let reason = if !ranks.iter().all(|rank| rank.has_payloads) {
        "there are no NVTX payloads of NCCL in the traces (NCCL has them since 2.18, unless NCCL_NVTX_DISABLE is set)"
    } else if ranks.iter().all(|rank| is_unnamed(rank)) {
        "NCCL names its communicators in NVTX payloads only since 2.25, and nothing says that these ranks made only one"
    } else {
        "graphs ran them, or a group whose calls are of several communicators, or the other rank of a message is not known"
    };
    Some(match unassigned == all {
        true => reason.to_owned(),
        false => format!("of {unassigned} of {all} it is not known, because {reason}"),
    })
}

/// Returns the sentence on a verdict by the sums of the ranks' times, with the reason for which it does not rest on the critical path.
pub(super) fn by_sums(sentence: &str, ranks: &[&RankDigest], reason: &str) -> String {
    let communicates = ranks.iter().any(|rank| !rank.device.is_empty());
    match ranks.len() > 1 && communicates {
        true => format!(
            "{sentence} This rests on the sums of the ranks' times, in which waiting for other ranks is communication: {reason}."
        ),
        false => sentence.to_owned(),
    }
}

/// Returns a sentence on the ranks that a verdict leaves out, as their traces have no work with known times; `None` where others have none
/// either, or all have some.
pub(super) fn left_out(ranks: &[&RankDigest]) -> Option<String> {
    let without = ranks.iter().filter(|rank| rank.times.is_empty());
    let without: Vec<u32> = without.map(|rank| rank.row.rank).collect();
    let (ranks_are, traces_have) = match without.as_slice() {
        [] => return None,
        all if all.len() == ranks.len() => return None,
        [_] => ("rank", "whose trace has"),
        _ => ("ranks", "whose traces have"),
    };
    Some(format!(
        "These shares leave out {ranks_are} {}, {traces_have} no GPU work with known times.",
        list(&without)
    ))
}

/// Returns true for a rank of which no communicator is known.
fn is_unnamed(rank: &RankDigest) -> bool {
    rank.members.is_empty() && rank.device.iter().all(|part| part.communicator.is_none())
}

/// Returns all sentences: first those on tables that could not be read, then the findings, the most costly first, then
/// what is missing or uncertain. `numbered` says whether the numbers of the ranks are known; times in
/// sentences count from `origin_ns`.
pub(super) fn sentences(findings: &RankFindings, numbered: bool, origin_ns: i64) -> Vec<String> {
    let mut costs: Vec<(i64, String)> = Vec::new();
    if let Some(sentence) = verdicts(findings) {
        costs.push((idle_ns(findings), sentence));
    }
    if let Some(straggler) = &findings.straggler {
        let others = (findings.ranks.iter()).filter(|rank| rank.rank != straggler.rank);
        let mean_ns = mean(others.filter_map(|rank| rank.waited_ns));
        costs.push((mean_ns, late(straggler, origin_ns)));
    }
    let group = findings.late_group.as_ref();
    costs.extend(group.and_then(|group| Some((i64::MAX, group.sentence.clone()?))));
    let straggler = findings.straggler.as_ref().map(|straggler| straggler.rank);
    let others = findings
        .late_ranks
        .iter()
        .filter(|late| Some(late.rank) != straggler);
    let others: Vec<&LateRankRow> = others.collect();
    let (named, rest) = others.split_at(others.len().min(LISTED_OUTLIERS));
    costs.extend((named.iter()).map(|row| (row.late_ns, late_with_others(row, origin_ns))));
    if let Some(row) = rest.first() {
        let mut numbers: Vec<u32> = rest.iter().map(|row| row.rank).collect();
        numbers.sort_unstable();
        let are = if rest.len() == 1 { "Rank" } else { "Ranks" };
        let verb = if rest.len() == 1 { "is" } else { "are" };
        costs.push((
            row.late_ns,
            format!("{are} {} {verb} late, too.", list(&numbers)),
        ));
    }
    let links = findings.slow_links.iter().take(LISTED_OUTLIERS);
    costs.extend(links.map(|link| (link.cost_ns, link.sentence.clone())));
    let outliers = findings.outliers.iter().take(LISTED_OUTLIERS);
    costs.extend(outliers.map(|outlier| (outlier.cost_ns, outlier.sentence.clone())));
    let slow_stages = findings
        .pipelines
        .iter()
        .filter(|pipeline| pipeline.slowest.is_some());
    costs.extend(slow_stages.map(|pipeline| (i64::MAX, pipeline.sentence.clone())));
    costs.sort_by_key(|(ns, _)| Reverse(*ns));
    let unread = findings.ranks.iter().flat_map(|rank| {
        (rank.unread.iter()).map(|unread| format!("Rank {}: {unread}.", rank.rank))
    });
    let costs = costs.into_iter().map(|(_, sentence)| sentence);
    let mut sentences: Vec<String> = unread.chain(costs).collect();
    let even_stages = findings
        .pipelines
        .iter()
        .filter(|pipeline| pipeline.slowest.is_none());
    sentences.extend(even_stages.map(|pipeline| pipeline.sentence.clone()));
    sentences.extend(once_late(findings, origin_ns));
    sentences.extend(within_chance(findings));
    if !findings.missing_ranks.is_empty() {
        let missing = &findings.missing_ranks;
        let mut first: Vec<String> = missing.iter().map(u32::to_string).collect();
        if first.len() > LISTED_RANKS {
            first.truncate(LISTED_RANKS);
            first.push("…".to_owned());
        }
        sentences.push(format!(
            "Of {} ranks, {} have no trace here: {}.",
            findings.ranks.len() + missing.len(),
            missing.len(),
            first.join(", ")
        ));
    }
    if !numbered {
        sentences.push(
            "The numbers of the ranks are not known: they are in the order of their traces and devices.".to_owned(),
        );
    }
    if findings.collectives.is_empty() {
        if findings.ranks.iter().all(|rank| rank.unread.is_empty()) {
            sentences.push("No kernels of NCCL's collectives are in the traces.".to_owned());
        }
        return sentences;
    }
    if let Some(reason) = &findings.not_matched_because {
        sentences.push(match findings.communicators.is_empty() {
            true => format!("Which collectives of the ranks are one, and so who arrives last, is not known: {reason}."),
            false => format!("Which collectives of the ranks are one is not known of all: {reason}."),
        });
    }
    if let Some(reason) = &findings.not_comparable_because {
        sentences.push(format!("Who arrives last is not known: {reason}."));
    }
    for row in &findings.collectives {
        if row.unequal && row.by_order_alone {
            sentences.push(format!(
                "The ranks differ in their numbers of {}: the match by order may be off, and their skews are unknown.",
                row.kind
            ));
        } else if row.unpaired_count > 0 {
            sentences.push(format!(
                "{} of {} {} have no counterpart in another rank's recording, and no figure counts them: the ranks differ in their numbers \
                 of {}.",
                row.unpaired_count,
                row.counts.iter().sum::<u64>(),
                row.kind,
                row.kind
            ));
        }
        if row.shifted_count > 0 {
            sentences.push(format!(
                "{} of {} matched {} rest on their order alone, although a recording lacks some: they may be neighbours, and no skew counts them.",
                row.shifted_count, row.matched_count, row.kind
            ));
        }
        if row.incomplete_count > 0 {
            let lacking = match findings.missing_ranks.is_empty() {
                true => "whose ranks are not all known to have collectives in these traces",
                false => "whose ranks are not all known to have a trace here",
            };
            sentences.push(format!(
                "{} {} are of communicators {lacking}: no figure counts them.",
                row.incomplete_count, row.kind
            ));
        }
        if let Some(contradictory_count @ 1..) = row.contradictory_count {
            sentences.push(format!(
                "{contradictory_count} of {} matched {} cannot be one collective, because they do not overlap on all ranks or differ in their \
                 bytes: some were not recorded, or the clocks of the ranks differ by more than their stated error. No skew counts them.",
                row.matched_count, row.kind
            ));
        }
        if let Some(uncertain_count @ 1..) = row.uncertain_count {
            sentences.push(format!(
                "The skew of {uncertain_count} of {} matched {} is within the clocks' error, and counts for nothing.",
                row.matched_count, row.kind
            ));
        }
    }
    sentences
}

fn mean(values: impl Iterator<Item = i64>) -> i64 {
    let (sum, count) = values.fold((0i128, 0i128), |(sum, count), ns| {
        (sum + i128::from(ns), count + 1)
    });
    (sum / count.max(1)) as i64
}

/// Returns the mean idle time of the ranks where it is known.
fn idle_ns(findings: &RankFindings) -> i64 {
    let ranks = findings.ranks.iter();
    mean(ranks.filter_map(|rank| Some(rank.idle?.total_ns)))
}

/// Returns a sentence on what bounds the speed of the ranks.
fn verdicts(findings: &RankFindings) -> Option<String> {
    let mut by_verdict: BTreeMap<&str, Vec<u32>> = BTreeMap::new();
    let judged = findings.ranks.iter();
    for rank in judged.filter(|rank| rank.verdict != Bound::Unknown) {
        let ranks = by_verdict.entry(rank.verdict.as_str()).or_default();
        ranks.push(rank.rank);
    }
    if by_verdict.is_empty() || findings.ranks.len() < 2 {
        return None;
    }
    let count: usize = by_verdict.values().map(Vec::len).sum();
    let mut verdicts: Vec<(&str, Vec<u32>)> = by_verdict.into_iter().collect();
    verdicts.sort_by_key(|(_, ranks)| Reverse(ranks.len()));
    let which = match verdicts.as_slice() {
        [(verdict, _)] if count == findings.ranks.len() => match count {
            2 => format!("Both ranks are {verdict}"),
            _ => format!("All {count} ranks are {verdict}"),
        },
        several => {
            let parts: Vec<String> = (several.iter())
                .map(|(verdict, ranks)| match ranks.as_slice() {
                    [one] => format!("rank {one} is {verdict}"),
                    many => format!("{} ranks are {verdict}", many.len()),
                })
                .collect();
            capitalized(&parts.join(", "))
        }
    };
    let idles: Vec<_> = findings.ranks.iter().filter_map(|rank| rank.idle).collect();
    let shares = (idles.iter()).map(|idle| ratio(idle.total_ns, idle.window_ns));
    let ends = shares.map(|share| (share, share));
    let Some((low, high)) = ends.reduce(|a, b| (a.0.min(b.0), a.1.max(b.1))) else {
        return Some(format!("{which}."));
    };
    let (low, high) = (Percent(low).to_string(), Percent(high).to_string());
    let range = match low == high {
        true => high,
        false => format!("{low} to {high}"),
    };
    let mut causes: BTreeMap<_, i64> = BTreeMap::new();
    for idle in &idles {
        if let (Some(cause), Some(ns)) = (idle.cause, idle.cause_ns) {
            let sum = causes.entry(cause).or_default();
            *sum = sum.saturating_add(ns);
        }
    }
    let main = causes.into_iter().max_by_key(|(_, ns)| *ns);
    Some(match main.filter(|(_, ns)| *ns > 0) {
        Some((cause, _)) => format!(
            "{which}: {} for {range} of the time, mostly {}.",
            if idles.len() == 1 {
                "its GPU idles"
            } else {
                "their GPUs idle"
            },
            cause.facts(Api::Cuda).name
        ),
        None => format!("{which}."),
    })
}

/// Returns a sentence that no rank is late by more than chance, where ranks were compared and none is.
fn within_chance(findings: &RankFindings) -> Option<String> {
    let ranks = findings.ranks.iter();
    let all: u64 = ranks.clone().filter_map(|rank| rank.last_count).sum();
    let most = ranks.max_by_key(|rank| (rank.last_count, rank.last_skew_ns, Reverse(rank.rank)))?;
    let last_count = most.last_count.filter(|count| *count > 0)?;
    let (rank, of) = (most.rank, count_of(all, "collective", "collectives"));
    (findings.straggler.is_none() && findings.late_ranks.is_empty()).then(|| {
        format!(
            "No rank is late by more than chance: rank {rank} was last most often, at {last_count} of {of}."
        )
    })
}

/// Returns a sentence on a rank that came late once.
fn once_late(findings: &RankFindings, origin_ns: i64) -> Option<String> {
    let once = findings.late_once()?;
    Some(format!(
        "Rank {} came {} after rank {} to one collective, from {} of the recording on: {} of all skew.",
        once.last_rank,
        Nanoseconds(once.skew_ns),
        once.first_rank,
        Nanoseconds(once.first_ns.saturating_sub(origin_ns)),
        Percent(findings.share_of_skews(once))
    ))
}

/// Returns words on the stretch of a rank's lateness, where that is a part of the time only.
fn mostly_in(stretch: Option<Interval>, origin_ns: i64) -> String {
    stretch.map_or_else(String::new, |stretch| {
        format!(
            ", most of it from {} to {}",
            Nanoseconds(stretch.start_ns.saturating_sub(origin_ns)),
            Nanoseconds(stretch.end_ns.saturating_sub(origin_ns))
        )
    })
}

/// Returns words on the groups of ranks over whose collectives times are added up, where these are several: they may wait at the same time.
fn added_up(group_count: usize) -> String {
    match group_count {
        0 | 1 => String::new(),
        _ => format!(", added up over its {group_count} groups of ranks"),
    }
}

/// Returns a sentence on a rank that is late together with others, and why.
fn late_with_others(row: &LateRankRow, origin_ns: i64) -> String {
    let than = match row.later_than.as_slice() {
        [] => "the median rank".to_owned(),
        [rank] => format!("rank {rank}"),
        ranks => format!("ranks {}", list(ranks)),
    };
    format!(
        "Rank {} is late: it arrived later than {than} at {} of {}, by {} in all{}{}.{}",
        row.rank,
        row.late_count,
        count_of(row.of_count, "collective", "collectives"),
        Nanoseconds(row.late_ns),
        added_up(row.group_count),
        mostly_in(row.why.stretch, origin_ns),
        why(&row.why)
    )
}

/// Returns a sentence on the rank that is late, and why.
fn late(straggler: &Straggler, origin_ns: i64) -> String {
    format!(
        "Rank {} arrived last at {} of {}, by {} in all{}: {} of all skew{}.{}",
        straggler.rank,
        straggler.last_count,
        count_of(straggler.of_count, "collective", "collectives"),
        Nanoseconds(straggler.skew_ns),
        added_up(straggler.group_count),
        Percent(straggler.share),
        mostly_in(straggler.why.stretch, origin_ns),
        why(&straggler.why)
    )
}

/// Returns a sentence on what a late rank did for longer than the others.
fn why(why: &WhyLate) -> String {
    let Some(cause) = why.cause else {
        return match why.longer.is_empty() {
            false => " No single cause makes it late.".to_owned(),
            true => String::new(),
        };
    };
    let longer = Nanoseconds(cause.longer_ns);
    let mut text = match cause.what {
        Doing::Compute => {
            format!(" Before them its GPU worked {longer} longer than the others' did")
        }
        Doing::Communication => {
            format!(
                " Before them it was in collectives of other groups {longer} longer than the others were"
            )
        }
        Doing::LateEnd => {
            format!(" Its parts in the collectives before ended {longer} later than the others'")
        }
        Doing::Idle(Cause::Unknown) => format!(
            " Before them nothing that was measured ran on its GPU for {longer} longer than on the others"
        ),
        Doing::Idle(cause) => {
            let facts = cause.facts(Api::Cuda);
            let doing = facts
                .host_was
                .map_or(String::new(), |was| format!(", its thread {was}"));
            format!(
                " Before them its GPU idled {longer} longer than the others did ({}{doing})",
                facts.name,
            )
        }
    };
    if let Some(evidence) = &why.evidence {
        text.push_str(&format!(": {evidence}"));
    }
    text.push('.');
    text
}
