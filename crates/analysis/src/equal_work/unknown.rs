//! Writes the sentence that says which figures of a comparison of two works are unknown, and why. An evaluation is one instance
//! of a side's label.

use super::comparison::WorkComparison;
use super::figure::Figure;
use super::work_cost::WorkCost;
use crate::bound::Bound;
use gapscope_timeline::quantity::listed;

/// Returns the sentence on unknown figures; `None` where all are known, or their reasons are told elsewhere.
pub(super) fn sentence(comparison: &WorkComparison) -> Option<String> {
    let mut reasons: Vec<String> = Vec::new();
    let is_unknown = |figure: Figure| {
        let mut ratios = comparison.ratios.iter();
        let ratio = ratios.find(|ratio| ratio.figure == figure);
        ratio.is_some_and(|ratio| ratio.before.is_none() || ratio.after.is_none())
    };
    if let Some(reason) = of_pace(comparison).filter(|_| is_unknown(Figure::Pace)) {
        reasons.push(format!("start to start, because {reason}"));
    }
    reasons.extend(of_verdicts(comparison));
    reasons.extend(of_dispatches(comparison, is_unknown));
    (!reasons.is_empty()).then(|| format!("Unknown: {}.", reasons.join("; ")))
}

/// Returns why the time from the start of an evaluation to the start of the next one is not known.
fn of_pace(comparison: &WorkComparison) -> Option<&'static str> {
    let WorkComparison { before, after, .. } = comparison;
    if !comparison.per_evaluation {
        return None;
    }
    let is_one = |work: &WorkCost| work.counted_evaluations < 2;
    let windows = before.window.zip(after.window);
    let take_turns = windows.is_some_and(|(a, b)| a.start_ns < b.end_ns && b.start_ns < a.end_ns);
    Some(match take_turns {
        _ if is_one(before) || is_one(after) => "it takes two evaluations of each side",
        true => "the sides take turns: work of the one starts between evaluations of the other",
        false => "other work starts between evaluations, or they overlap",
    })
}

/// Returns why figures of dispatches are not known.
fn of_dispatches(comparison: &WorkComparison, is_unknown: impl Fn(Figure) -> bool) -> Vec<String> {
    let sides = [&comparison.before, &comparison.after];
    let mut missing = (sides.iter()).filter_map(|work| work.dispatches_unknown_because.as_ref());
    if let Some(reason) = missing.next() {
        return vec![format!("figures of dispatches, because {reason}")];
    }
    let mut reasons = Vec::new();
    if is_unknown(Figure::BoundBytes) {
        reasons.push("bytes bound, because not all dispatches have recorded bindings".to_owned());
    }
    let sizes = [
        (Figure::Workgroups, "workgroups"),
        (Figure::Threads, "threads"),
    ];
    let sizes: Vec<&str> = (sizes.into_iter())
        .filter(|(figure, _)| is_unknown(*figure))
        .map(|(_, name)| name)
        .collect();
    if !sizes.is_empty() {
        reasons.push(format!(
            "{}, because not all launches have recorded sizes",
            listed(&sizes)
        ));
    }
    reasons
}

/// Returns why verdicts are not known, once for both sides where the reason is the same.
fn of_verdicts(comparison: &WorkComparison) -> Vec<String> {
    let sides = [&comparison.before, &comparison.after];
    let unknown = sides.map(|work| {
        let reason = work.verdict_sentence.trim_end_matches('.');
        (work.verdict == Bound::Unknown && !reason.is_empty()).then_some((&work.name, reason))
    });
    let of_one = |(name, reason): (&String, &str)| format!("the verdict of {name}: “{reason}”");
    match unknown {
        [Some((a, first)), Some((b, second))] if first == second => {
            vec![format!("the verdicts of {a} and {b}: “{first}”")]
        }
        unknown => unknown.into_iter().flatten().map(of_one).collect(),
    }
}
