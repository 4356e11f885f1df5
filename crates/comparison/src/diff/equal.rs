//! Decides, from counts, sizes and bytes, whether both sides of a comparison did the same work: the changes of these figures
//! go in, an [`EqualWork`] comes out.

use super::change::{Change, ChangeKind};
use super::changes::Comparison;
use super::matching::{How, Pair};
use super::metric::{Metric, Unit};
use super::result::{EqualWork, WorkFigure};
use super::words::value;
use gapscope_analysis::copy_sizes::other_copies;
use gapscope_analysis::launch_sizes::{SizeEvidence, SizedKernel, is_same, judge};
use gapscope_timeline::quantity;
use gapscope_timeline::thresholds::SAME_SIZE_SHARE;
use gapscope_timeline::vocabulary::Words;

/// The figures that must be equal on both sides for their times to be comparable.
const WORK: [Metric; 7] = [
    Metric::Dispatches,
    Metric::Workgroups,
    Metric::Threads,
    Metric::BoundBytes,
    Metric::Transfers,
    Metric::TransferBytes,
    Metric::CommandBuffers,
];

/// The figures that differ where kernels are fused or tuned and do the same work.
const OF_LAUNCHES: [Metric; 5] = [
    Metric::Dispatches,
    Metric::Workgroups,
    Metric::Threads,
    Metric::BoundBytes,
    Metric::CommandBuffers,
];

/// A figure that both sides may know, with its metric.
struct KnownFigure {
    metric: Metric,
    figure: WorkFigure,
    /// True where the figure differs from run to run of a side.
    varies: bool,
}

/// Returns whether both sides did the same work, and which figures differ. A count that varies from run to run is
/// equal if its change is within noise.
pub(super) fn equal_work(comparison: &Comparison) -> EqualWork {
    let evaluated = comparison.evaluated.as_ref();
    let words = comparison.words();
    let mut known = Vec::new();
    for metric in WORK {
        let key = metric.key();
        let of = |change: &&Change| change.kind == ChangeKind::Count && change.name == key;
        let Some(change) = comparison.changes.iter().find(of) else {
            continue;
        };
        // Only a figure that varies from run to run has a p-value.
        let varies = change.p_alone.is_some();
        let figures = (change.before.zip(change.after)).filter(|_| change.at_least == [false; 2]);
        let equal = figures.map(|(before, after)| {
            let once = evaluated.is_some() && is_same([before, after]);
            before == after || once || (varies && !change.significant)
        });
        let figure = WorkFigure {
            what: metric.name(&words),
            unit: change.unit,
            before: change.before,
            after: change.after,
            at_least: change.at_least,
            equal,
        };
        known.push(KnownFigure {
            metric,
            figure,
            varies,
        });
    }
    let mut work = judged(comparison, &known, &words);
    work.per_evaluation = evaluated.is_some();
    work.evaluation = evaluated.map(|evaluated| evaluated.path.clone());
    let mut figures: Vec<WorkFigure> = known.into_iter().map(|known| known.figure).collect();
    work.sentences.splice(0..0, differing(&work, &figures));
    if evaluated.is_some() {
        let [before, after] = [0, 1].map(|side| comparison.evaluations_of(side));
        // A different number of evaluations does not make the work different, since figures are for one evaluation.
        let evaluations = WorkFigure {
            what: "evaluations".to_owned(),
            unit: Unit::Count,
            before,
            after,
            at_least: [false; 2],
            equal: before.zip(after).map(|(before, after)| before == after),
        };
        work.sentences.splice(0..0, other_evaluations(&evaluations));
        figures.insert(0, evaluations);
    }
    work.figures = figures;
    work
}

/// Judges whether the work is equal, by its figures and by the sizes of single dispatches and transfers.
fn judged(comparison: &Comparison, figures: &[KnownFigure], words: &Words) -> EqualWork {
    let find = |metric: Metric| figures.iter().find(|known| known.metric == metric);
    let equal = |metric: Metric| find(metric).and_then(|known| known.figure.equal);
    let differs = |metric: Metric| equal(metric) == Some(false);
    let varies = |metric: Metric| find(metric).is_some_and(|known| known.varies);
    let is_empty = comparison.empty_sides();
    if is_empty == [true; 2] {
        return EqualWork {
            is_empty,
            ..EqualWork::default()
        };
    }
    let unequal = figures
        .iter()
        .filter(|known| known.figure.equal == Some(false));
    let as_often = !differs(Metric::Dispatches);
    let fused = became_others(comparison).filter(|_| !as_often);
    // Differences of launches that fused kernels explain, and those of sizes, are judged apart.
    let explained = |metric: Metric| match metric {
        Metric::Workgroups | Metric::Threads => true,
        _ => fused.is_some() && OF_LAUNCHES.contains(&metric),
    };
    let surely_unequal = unequal.clone().any(|known| !explained(known.metric));
    let other_sizes = differs(Metric::Workgroups) || differs(Metric::Threads);
    // Sizes that differ from run to run say nothing where their sums are the same.
    let (evidence, mut sentences) = match as_often && (other_sizes || !varies(Metric::Workgroups)) {
        true => judge(
            &sized(comparison),
            equal(Metric::BoundBytes) == Some(true),
            words,
        ),
        false => (SizeEvidence::Equal, Vec::new()),
    };
    // Other threads of no kernel that is on both sides are those of kernels that are on one.
    let other_kernels = as_often
        && evidence == SizeEvidence::Equal
        && (differs(Metric::Threads) || (equal(Metric::Threads).is_none() && other_sizes));
    let other_runs = (as_often && !varies(Metric::Dispatches))
        .then(|| other_runs(comparison, words))
        .flatten();
    let copied_alike = !differs(Metric::Transfers) && !differs(Metric::TransferBytes);
    let other_copies = (copied_alike && !varies(Metric::TransferBytes))
        .then(|| {
            let [before, after] = [0, 1].map(|side| comparison.transfer_sizes(side));
            let (before, after) = (before?, after?);
            other_copies([(&before.0, before.1), (&after.0, after.1)])
        })
        .flatten();
    let is_known = figures.iter().any(|known| known.figure.equal.is_some());
    let not_recorded = not_recorded(figures);
    let is_partial = not_recorded.is_some();
    let in_doubt = fused.is_some()
        || not_recorded.is_some()
        || other_kernels
        || other_runs.is_some()
        || evidence == SizeEvidence::Doubtful;
    let surely_unequal =
        surely_unequal || evidence == SizeEvidence::Unequal || other_copies.is_some();
    let equal_work = match () {
        () if surely_unequal => Some(false),
        () if in_doubt || !is_known => None,
        () => Some(true),
    };
    let dispatches = find(Metric::Dispatches).and_then(|known| known.figure.before);
    let unknown = [Metric::Workgroups, Metric::BoundBytes].map(|metric| equal(metric).is_none());
    let sizes_unknown = equal_work != Some(false)
        && !is_partial
        && dispatches.is_some_and(|count| count > 0.0)
        && unknown == [true; 2];
    sentences.splice(0..0, not_recorded);
    sentences.extend(other_runs);
    sentences.extend(other_copies);
    sentences.extend(fused.filter(|_| equal_work.is_none() && in_doubt));
    if sizes_unknown {
        let sizes = [Metric::Workgroups, Metric::BoundBytes].map(find);
        let on_one = (sizes.into_iter().flatten())
            .any(|known| known.figure.before.is_some() || known.figure.after.is_some());
        let sides = if on_one {
            "on one side"
        } else {
            "on either side"
        };
        sentences.push(format!(
            "How much each {} did is not known {sides}: neither its {} are, nor the bytes bound to it. As many {} that do less look the \
             same.",
            words.dispatch.one, words.workgroup.many, words.dispatch.many
        ));
    }
    EqualWork {
        equal: equal_work,
        in_doubt: equal_work.is_none() && in_doubt,
        is_empty,
        sizes_unknown,
        sentences,
        ..EqualWork::default()
    }
}

/// Returns the sentence that some of the work is not in the traces; `None` where all is, as far as that is known.
fn not_recorded(figures: &[KnownFigure]) -> Option<String> {
    let lacks = |side: usize| {
        let mut figures = figures.iter();
        figures.any(|known| known.figure.at_least[side])
    };
    let sides = match [lacks(0), lacks(1)] {
        [false, false] => return None,
        [true, false] => "before",
        [false, true] => "after",
        [true, true] => "on both sides",
    };
    Some(format!(
        "Some of the work {sides} was not recorded: counts that it touches are lower bounds (≥), and are not compared."
    ))
}

/// Returns true for a pair that is one kernel, as far as names and codes tell.
fn is_one_kernel(pair: &&Pair) -> bool {
    matches!(
        pair.how,
        How::Same | How::Renamed | How::SameCode | How::Moved
    )
}

/// Returns the kernels that are the same one on both sides, as far as names and codes tell, and whose sizes are known.
fn sized<'a>(comparison: &Comparison<'a>) -> Vec<SizedKernel<'a>> {
    let sized = |pair: &Pair<'a>| {
        Some(SizedKernel {
            name: pair.after.first()?.name,
            size: pair.size()?,
            has_other_code: pair.has_other_code(),
            ran_as_often: is_same(comparison.counts(pair)),
        })
    };
    // Of a kernel that lost dispatches, nobody knows how large these were.
    let is_whole = |pair: &&Pair| {
        let [before, after] = comparison.counts(pair);
        comparison.is_counted() || before == after
    };
    let pairs = comparison.pairs.iter().filter(is_one_kernel);
    pairs.filter(is_whole).filter_map(sized).collect()
}

/// The maximum number of kernels that a sentence on other runs names.
const MAX_NAMED: usize = 3;

/// Returns a sentence on kernels that are on one side alone or ran another number of times, where as many dispatches are on
/// both sides; `None` where they are hardly any of these.
fn other_runs(comparison: &Comparison, words: &Words) -> Option<String> {
    if !comparison.is_counted() {
        return None;
    }
    let (mut all, mut apart) = (0.0, 0.0);
    let mut texts: Vec<(f64, String)> = Vec::new();
    for pair in &comparison.pairs {
        let [before, after] = comparison.counts(pair);
        all += before.max(after);
        if is_same([before, after]) {
            continue;
        }
        apart += (after - before).abs();
        let [often_before, often_after] = [before, after].map(quantity::mean_count);
        let text = match pair.how {
            How::OnlyBefore => format!("`{}` only before", super::sentences::kernel(pair)),
            How::OnlyAfter => format!("`{}` only after", super::sentences::kernel(pair)),
            _ => format!(
                "`{}` {often_after} times instead of {often_before}",
                super::sentences::kernel(pair)
            ),
        };
        texts.push(((after - before).abs(), text));
    }
    if apart <= SAME_SIZE_SHARE * all {
        return None;
    }
    texts.sort_by(|a, b| b.0.total_cmp(&a.0));
    let more = texts.len().saturating_sub(MAX_NAMED);
    let mut texts: Vec<String> = texts
        .into_iter()
        .take(MAX_NAMED)
        .map(|(_, text)| text)
        .collect();
    if more > 0 {
        texts.push(format!("and {more} more"));
    }
    Some(format!(
        "As many {} ran, under other names or in other numbers: {}. Whether they do the same work is not known.",
        words.dispatch.many,
        texts.join(", ")
    ))
}

/// Returns the sentence that kernels became others, where nothing else differs in how often kernels ran.
fn became_others(comparison: &Comparison) -> Option<String> {
    let became = |pair: &&Pair| matches!(pair.how, How::Fused | How::Split);
    let others_differ = comparison.pairs.iter().any(|pair| match pair.how {
        How::Fused | How::Split => false,
        How::OnlyBefore | How::OnlyAfter => true,
        _ => !is_same(comparison.counts(pair)),
    });
    let names: Vec<String> = (comparison.pairs.iter().filter(became))
        .map(super::sentences::kernel)
        .collect();
    (!names.is_empty() && !others_differ).then(|| {
        format!(
            "{}: whether the kernels after do the same work is not known.",
            names.join("; ")
        )
    })
}

/// Returns the sentence on another number of evaluations.
fn other_evaluations(figure: &WorkFigure) -> Option<String> {
    let (before, after) = figure.before.zip(figure.after)?;
    (before != after).then(|| {
        format!(
            "{} evaluations before and {} after: all figures are for one.",
            quantity::mean_count(before),
            quantity::mean_count(after)
        )
    })
}

/// Returns the sentence on the figures that differ.
fn differing(work: &EqualWork, figures: &[WorkFigure]) -> Option<String> {
    let other = figures.iter().filter_map(|figure| {
        let (before, after) = figure.before.zip(figure.after)?;
        let texts = [before, after].map(|number| value(number, figure.unit));
        let [before, after] = match texts[0] == texts[1] {
            true => [before, after].map(|number| value(number, Unit::Count)),
            false => texts,
        };
        (figure.equal == Some(false)).then(|| format!("{} {before} → {after}", figure.what))
    });
    let each = match work.per_evaluation {
        true => " in an evaluation",
        false => "",
    };
    let figures = match other.collect::<Vec<_>>() {
        none if none.is_empty() => String::new(),
        some => format!("{each}: {}", some.join(", ")),
    };
    match (work.is_empty, work.equal) {
        ([true, true], _) => Some("Neither side has any GPU work.".to_owned()),
        ([true, false], _) => Some("There is no GPU work before.".to_owned()),
        ([false, true], _) => Some("There is no GPU work after.".to_owned()),
        (_, Some(true)) => None,
        (_, Some(false)) => Some(format!(
            "The work is not equal{figures}. A difference in time may be a difference in work."
        )),
        (_, None) if work.in_doubt => Some(format!("The work may not be equal{figures}.")),
        (_, None) => Some("Whether the work is equal is not known.".to_owned()),
    }
}
