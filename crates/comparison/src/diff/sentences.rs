//! Writes the sentences that say what a comparison of runs rests on: matched kernels, method,
//! gates (limits that the user set), and what to do next.

use super::change::ChangeKind;
use super::estimate::Estimate;
use super::gate::{Gate, Limit};
use super::matching::{How, Pair, SideKernel};
use super::names;
use super::result::{Diff, GateStatus, SamplesOf, Verdict};
use super::run::RunDigest;
use super::words::{change, could_show, interval, value};
use gapscope_timeline::quantity;
use gapscope_timeline::vocabulary::Words;
use std::collections::BTreeMap;

/// Returns the name of a pair of kernels.
pub(super) fn kernel(pair: &Pair) -> String {
    let quoted = |kernels: &[SideKernel]| {
        let names = kernels.iter().map(|kernel| format!("`{}`", kernel.name));
        let names: Vec<String> = names.collect();
        match names.as_slice() {
            [only] => only.clone(),
            all if all.len() > 4 => format!("{}, … ({} kernels)", all[..3].join(", "), all.len()),
            all => format!("{} ({} kernels)", all.join(", "), all.len()),
        }
    };
    let (before, after) = (&pair.before, &pair.after);
    match pair.how {
        How::Fused | How::Split => format!("{} became {}", quoted(before), quoted(after)),
        _ => {
            let kernel = after.first().or(before.first());
            kernel.map_or_else(String::new, |kernel| kernel.name.to_owned())
        }
    }
}

/// Returns sentences on the kernels that were matched though their names differ.
pub(super) fn matched(pairs: &[Pair], words: &Words) -> Vec<String> {
    let renamed = pairs.iter().filter_map(|pair| renamed(pair, words));
    let mut sentences: Vec<String> = renamed.collect();
    let mut moved: BTreeMap<[&str; 2], Vec<String>> = BTreeMap::new();
    for pair in pairs.iter().filter(|pair| pair.how == How::Moved) {
        if let (Some(before), Some(after)) = (pair.before.first(), pair.after.first()) {
            let name = match before.name == after.name {
                true => format!("`{}`", before.name),
                false => format!("`{}` (now `{}`)", before.name, after.name),
            };
            let paths = [before.path, after.path];
            moved.entry(paths).or_default().push(name);
        }
    }
    for (paths, kernels) in moved {
        let [before, after] = paths.map(|path| match path {
            "" => "outside of labels".to_owned(),
            path => format!("under the label `{path}`"),
        });
        let is = if kernels.len() > 1 { "are" } else { "is" };
        let kernels = match kernels.split_at_checked(MAX_NAMED) {
            Some((first, rest)) if !rest.is_empty() => {
                format!("{} and {} more", first.join(", "), rest.len())
            }
            _ => kernels.join(", "),
        };
        sentences.push(format!(
            "{kernels} {before} {is} compared with the same name {after}."
        ));
    }
    sentences
}

/// The maximum number of kernels that a sentence names.
const MAX_NAMED: usize = 4;

/// Returns the sentence for a pair of kernels with other names; `None` for other pairs.
fn renamed(pair: &Pair, words: &Words) -> Option<String> {
    let (before, after) = (pair.before.first()?, pair.after.first()?);
    match pair.how {
        How::SameCode if pair.has_other_code() => Some(format!(
            "`{}` is compared with `{}`: they are functions of the same code, whose hash did not change.",
            before.name, after.name
        )),
        How::SameCode => Some(format!(
            "`{}` is compared with `{}`: their code is the same.",
            before.name, after.name
        )),
        How::Replaced if before.path.is_empty() => Some(format!(
            "`{}` became `{}`: matched because it ran as often, with as many {} and threads.",
            before.name, after.name, words.workgroup.many
        )),
        How::Replaced => Some(format!(
            "`{}` became `{}`: matched by their label and how often they ran; whether they do the same is not known.",
            before.name, after.name
        )),
        How::Renamed => Some(format!(
            "`{}` is compared with `{}`: their names differ in counters, hashes or architectures only.",
            before.name, after.name
        )),
        How::Fused | How::Split => {
            let basis = match names::fused_operations(after.name) {
                Some(_) => "by the operations in its name",
                None => "by their label alone",
            };
            Some(format!("{}: matched {basis}.", kernel(pair)))
        }
        How::Moved | How::Same | How::OnlyBefore | How::OnlyAfter => None,
    }
}

/// Returns the sentence that tells how figures were compared. `width` says what makes the interval of the time from start to end as
/// wide as it is.
pub(super) fn method(
    before: usize,
    after: usize,
    samples: SamplesOf,
    width: Option<String>,
    level: f64,
) -> String {
    let runs = |count: usize| quantity::count_of(count as u64, "run", "runs");
    let told = format!(
        "A difference is told when noise makes one as great in at most {} of diffs.",
        quantity::share(level)
    );
    let alone = match (before, after) {
        (1, 1) => "",
        (1, _) | (_, 1) => " The side with one run is taken to vary as the other does.",
        _ => "",
    };
    match samples {
        SamplesOf::OneRun => format!(
            "One run a side: how much runs differ from each other was not measured. The interval of the time from start to end is as wide \
             as it is because of: {}. Percentages are standard deviations. Give gates a wider margin, or record several runs. {told}",
            width.unwrap_or_default()
        ),
        SamplesOf::Runs => format!(
            "{} before, {} after: a run is a sample.{alone} {told}",
            runs(before),
            runs(after)
        ),
        SamplesOf::RunsInTurns => format!(
            "{} before, {} after, in turns: a run is a sample, and a drift over all of them is taken out. {told}",
            runs(before),
            runs(after)
        ),
    }
}

/// Returns the sentence on the result of a gate whose figure is known before and after. `least_ratio` is the least change that
/// these runs could tell; with `per_evaluation` the gate's figures are for an instance of a label.
pub(super) fn gate(
    gate: &Gate,
    status: GateStatus,
    found: &Estimate,
    (before, after): (f64, f64),
    (least_ratio, per_evaluation): (Option<f64>, bool),
) -> String {
    let unit = gate.of.unit();
    let each = if per_evaluation { " an evaluation" } else { "" };
    let limit = match gate.limit {
        Limit::Share(_) => found
            .ratio
            .map_or_else(|| "from nothing".to_owned(), change),
        Limit::Absolute(_) => {
            let sign = if after < before { "−" } else { "+" };
            format!("{sign}{}", value((after - before).abs(), unit))
        }
    };
    let noise = match (found.ratio, found.low, found.high) {
        (Some(ratio), Some(low), Some(high)) if low != high => {
            format!(", 95 %: {}", interval(ratio, low, high))
        }
        _ => String::new(),
    };
    let end = match (status, least_ratio) {
        (GateStatus::Noise | GateStatus::Undecided, Some(least)) => format!(
            ". Not judged: {}; record more runs of each side",
            could_show(least)
        ),
        (GateStatus::Noise | GateStatus::Undecided, None) => {
            ". Not judged: how much this varies from run to run is not known; record several runs of each side".to_owned()
        }
        _ => String::new(),
    };
    format!(
        "{} → {}{each} ({limit}{noise}){end}.",
        value(before, unit),
        value(after, unit)
    )
}

/// Returns sentences on what the user can do next.
pub(super) fn next(diff: &Diff, before: &[RunDigest], after: &[RunDigest]) -> Vec<String> {
    let mut next = Vec::new();
    if let ([first], [second]) = (before, after) {
        next.push(format!(
            "`gapscope view {} {}` shows both, one below the other.",
            first.name, second.name
        ));
        if diff.verdict != Verdict::Unknown {
            next.push("`gapscope diff --runs 5 -- BEFORE… -- AFTER…` records several runs in turns: narrower intervals, and no assumption.".to_owned());
        }
    } else if let (Some(first), Some(second)) = (
        before.get(RunDigest::median(before)),
        after.get(RunDigest::median(after)),
    ) {
        next.push(format!(
            "`gapscope view {} {}` shows of each side the run of median time, one below the other.",
            first.name, second.name
        ));
    }
    let changed = diff
        .changes
        .iter()
        .find(|c| c.kind == ChangeKind::Kernel && (c.grew()));
    if let Some(change) = changed
        && let Some(label) = &change.label
        && !label.contains('#')
        && let Some(run) = after.first()
    {
        next.push(format!(
            "`gapscope report --label '{label}' {}` says more of where `{}` runs.",
            run.name, change.name
        ));
    }
    if matches!(diff.verdict, Verdict::NoDifference | Verdict::Changed)
        && before.len() + after.len() > 2
    {
        next.push(
            "More runs find smaller differences: four times as many halve the intervals."
                .to_owned(),
        );
    }
    next
}
