//! Writes the sentences that say what a comparison of runs means: verdict, matched kernels, equal work, method,
//! gates (limits that the user set), and what to do next.

use super::change::{Change, ChangeKind};
use super::estimate::Estimate;
use super::gate::{Gate, GateOf, Limit};
use super::matching::{How, Pair, SideKernel};
use super::metric::Metric;
use super::names;
use super::result::{Diff, EqualWork, GateStatus, SamplesOf, Verdict};
use super::run::RunDigest;
use super::words::{FACTOR_FROM, change, factor, interval, value};
use gapscope_timeline::quantity;
use std::collections::BTreeMap;

/// The maximum number of reasons that the verdict names.
const MAX_REASONS: usize = 3;
/// The least share of the greatest change that makes another change a reason.
const MIN_REASON_SHARE: f64 = 0.1;

/// Returns the verdict of a comparison, then its sentence.
pub(super) fn verdict(diff: &Diff) -> (Verdict, String) {
    let find = |metric: Metric| {
        let key = metric.key();
        diff.changes
            .iter()
            .find(|c| matches!(c.kind, ChangeKind::Time) && c.name == key)
    };
    let (wall, gpu) = (find(Metric::WallTime), find(Metric::GpuTime));
    let known = |change: Option<&Change>| change.filter(|c| c.ratio.is_some()).is_some();
    if !known(wall) && !known(gpu) {
        let sentence =
            "Times of GPU work are not known on both sides: only counts can be compared.";
        return (Verdict::Unknown, sentence.to_owned());
    }
    let told = [(wall, "from start to end"), (gpu, "of GPU time")]
        .into_iter()
        .find_map(|(change, of)| Some((change?, of)).filter(|(change, _)| change.significant));
    let of_what = match diff.equal_work.per_evaluation {
        true => " an evaluation",
        false => "",
    };
    let mut sentence = String::new();
    if diff.equal_work.equal == Some(false) {
        sentence.push_str("The work is not equal. ");
    }
    let reasons = reasons(diff);
    let verdict = match told {
        Some((change, of)) => {
            let slower = change.grew();
            let (ratio, low, high) = (change.ratio, change.low, change.high);
            let text = match (ratio, low, high) {
                (Some(ratio), Some(low), Some(high)) => headline(ratio, low, high),
                _ => String::new(),
            };
            let of = match of {
                "from start to end" => format!("{of}{of_what}"),
                of => format!("{of}{of_what}; from start to end, no difference beyond noise"),
            };
            sentence.push_str(&format!("{text} {of}"));
            if slower {
                Verdict::Slower
            } else {
                Verdict::Faster
            }
        }
        None if reasons.is_empty() => {
            let noise = wall
                .or(gpu)
                .and_then(|c| Some(interval(c.ratio?, c.low?, c.high?)));
            let noise = noise.map_or(String::new(), |noise| format!(": start to end {noise}"));
            sentence.push_str(&format!("No difference beyond noise{noise}"));
            match diff.equal_work.equal {
                Some(false) => Verdict::Changed,
                _ => Verdict::NoDifference,
            }
        }
        None => {
            sentence.push_str("No difference beyond noise from start to end, but some within");
            Verdict::Changed
        }
    };
    if !reasons.is_empty() {
        sentence.push_str(&format!(": {}", reasons.join(", ")));
    }
    let same = as_before(diff);
    if !same.is_empty() && !sentence.contains("No difference beyond noise: ") {
        let are = if same.len() == 1 && !same[0].ends_with('s') {
            "is"
        } else {
            "are"
        };
        sentence.push_str(&format!("; {} {are} as before", quantity::listed(&same)));
    }
    sentence.push('.');
    (verdict, sentence)
}

/// Formats the change of the verdict, such as `12.3 % slower (10.9 … 13.8 %)`.
fn headline(ratio: f64, low: f64, high: f64) -> String {
    if ratio >= FACTOR_FROM {
        return format!(
            "{} as long ({} … {})",
            factor(ratio),
            factor(low).trim_end_matches(" ×"),
            factor(high)
        );
    }
    if ratio <= 1.0 / FACTOR_FROM {
        let [by, least, most] = [ratio, high, low].map(|ratio| factor(1.0 / ratio));
        return format!("{by} as fast ({} … {most})", least.trim_end_matches(" ×"));
    }
    let slower = ratio > 1.0;
    let percent = |ratio: f64| {
        let by = if slower { ratio - 1.0 } else { 1.0 - ratio } * 100.0;
        let digits = if by.abs() < 1.0 { 2 } else { 1 };
        format!("{by:.digits$}").replace('-', "−")
    };
    let (least, most) = if slower { (low, high) } else { (high, low) };
    let word = if slower { "slower" } else { "faster" };
    format!(
        "{} % {word} ({} … {} %)",
        percent(ratio),
        percent(least),
        percent(most)
    )
}

/// Returns texts for the greatest changes.
fn reasons(diff: &Diff) -> Vec<String> {
    let told = |change: &&Change| match change.kind {
        ChangeKind::Kernel => change.significant || change.has_typical_change(),
        ChangeKind::Idle => change.significant,
        _ => false,
    };
    let weight = |change: &Change| change.by().map_or(0.0, f64::abs);
    let found: Vec<&Change> = diff.changes.iter().filter(told).collect();
    let most = found.first().map_or(0.0, |change| weight(change));
    let found = found
        .into_iter()
        .filter(|change| weight(change) >= MIN_REASON_SHARE * most);
    found.take(MAX_REASONS).filter_map(reason).collect()
}

/// Returns the text for one change, such as "`softmax` takes 2.10 × as long"; `None` if a side is unknown.
fn reason(change: &Change) -> Option<String> {
    let (before, after) = (change.before?, change.after?);
    let name = |name: &str| format!("`{name}`");
    Some(match (change.kind, change.matched) {
        (ChangeKind::Idle, _) => {
            let more = if after > before { "more" } else { "less" };
            let by = quantity::duration_f64((after - before).abs());
            format!(
                "{by} {more} idle ({})",
                change.what.trim_start_matches("idle: ")
            )
        }
        (_, Some(How::OnlyAfter)) => format!(
            "{} is new ({})",
            name(&change.name),
            value(after, change.unit)
        ),
        (_, Some(How::OnlyBefore)) => format!(
            "{} is gone ({})",
            name(&change.name),
            value(before, change.unit)
        ),
        (_, Some(How::Fused | How::Split)) => format!("{}, {}", change.what, takes(change.ratio?)),
        _ => {
            let typical = change.typical.as_ref().filter(|_| !change.significant);
            match typical {
                Some(typical) => format!(
                    "a dispatch of {} {}",
                    name(&change.name),
                    takes(typical.ratio?)
                ),
                None => format!(
                    "{} {}{}",
                    name(&change.name),
                    takes(change.ratio?),
                    counts(change)
                ),
            }
        }
    })
}

/// Returns a text that a kernel ran a different number of times.
fn counts(change: &Change) -> String {
    match change.counts {
        Some([before, after]) if before > 0.0 && (after / before - 1.0).abs() > 0.01 => format!(
            " in {} instead of {} dispatches",
            quantity::mean_count(after),
            quantity::mean_count(before)
        ),
        _ => String::new(),
    }
}

/// Returns the words for a ratio of times, from a certain size on as a factor.
fn takes(ratio: f64) -> String {
    if ratio >= FACTOR_FROM || ratio <= 1.0 / FACTOR_FROM {
        return format!("takes {} as long", factor(ratio));
    }
    let percent = (ratio - 1.0).abs() * 100.0;
    let word = if ratio > 1.0 { "longer" } else { "shorter" };
    format!("takes {percent:.1} % {word}")
}

/// Returns the words for those of launches, gaps and GPU time that did not change.
fn as_before(diff: &Diff) -> Vec<&'static str> {
    let unchanged = |name: &str| {
        let found = diff
            .changes
            .iter()
            .find(|c| c.name == name && c.kind != ChangeKind::Kernel);
        found.is_some_and(|c| !c.significant && c.before.is_some() && c.after.is_some())
    };
    let mut same = Vec::new();
    if unchanged("dispatches") && unchanged("submissions") {
        same.push("launches");
    }
    if unchanged("idle_time") {
        same.push("gaps");
    }
    if unchanged("gpu_time") {
        same.push("GPU time");
    }
    same
}

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
pub(super) fn matched(pairs: &[Pair]) -> Vec<String> {
    let mut sentences: Vec<String> = pairs.iter().filter_map(renamed).collect();
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
fn renamed(pair: &Pair) -> Option<String> {
    let (before, after) = (pair.before.first()?, pair.after.first()?);
    match pair.how {
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

/// Returns sentences on the differences of the work of both sides.
pub(super) fn equal_work(work: &EqualWork) -> Vec<String> {
    let mut sentences = Vec::new();
    let other: Vec<String> = (work.figures.iter())
        .filter(|figure| figure.equal == Some(false) && figure.what != "evaluations")
        .filter_map(|figure| {
            let (before, after) = (
                value(figure.before?, figure.unit),
                value(figure.after?, figure.unit),
            );
            Some(format!("{} {before} → {after}", figure.what))
        })
        .collect();
    let mut figures = work.figures.iter();
    if let Some(figure) = figures.find(|figure| figure.what == "evaluations")
        && figure.equal == Some(false)
        && let (Some(before), Some(after)) = (figure.before, figure.after)
    {
        sentences.push(format!(
            "{} evaluations before and {} after: all figures are for one.",
            quantity::mean_count(before),
            quantity::mean_count(after)
        ));
    }
    match work.equal {
        Some(true) => {}
        Some(false) => sentences.push(format!(
            "The work is not equal{}: {}. A difference in time may be a difference in work.",
            if work.per_evaluation {
                " in an evaluation"
            } else {
                ""
            },
            other.join(", ")
        )),
        None => sentences.push("Whether the work is equal is not known.".to_owned()),
    }
    sentences
}

/// Returns the sentence that tells how figures were compared.
pub(super) fn method(
    before: usize,
    after: usize,
    samples: SamplesOf,
    assumed: Option<f64>,
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
            "One run a side: how much runs differ from each other was not measured. It is assumed that times of a run vary by {} \
             (standard deviation), which is in the intervals; give gates a wider margin, or record several runs. {told}",
            quantity::share(assumed.unwrap_or_default())
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

/// Returns the sentence on the result of a gate; with `per_evaluation` its figures are for an instance of a label.
pub(super) fn gate(
    gate: &Gate,
    status: GateStatus,
    found: &Estimate,
    has_figure: bool,
    per_evaluation: bool,
) -> String {
    let unit = gate.of.unit();
    let Some((before, after)) = found.before.zip(found.after) else {
        let what = match &gate.of {
            GateOf::Kernel(name) if !has_figure => format!("no kernel is called `{name}`"),
            GateOf::Kernel(name) => format!("the times of `{name}` are not known"),
            GateOf::Metric(metric) => format!("{} is not known on both sides", metric.key()),
        };
        return format!("{what}.");
    };
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
    let end = match status {
        GateStatus::Held | GateStatus::Broken => "",
        GateStatus::Noise => ": beyond the limit, but within noise",
        GateStatus::Unknown | GateStatus::UnknownAllowed | GateStatus::Unlike => "",
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
        next.push("`gapscope diff --runs 5 -- BEFORE… -- AFTER…` records several runs in turns: narrower intervals, and no assumption.".to_owned());
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
