//! Decides, from counts, sizes and bytes, whether both sides of a comparison did the same work: the changes of these figures
//! go in, an [`EqualWork`] comes out.

use super::change::{Change, ChangeKind};
use super::changes::Comparison;
use super::matching::{How, Pair};
use super::metric::{Metric, Unit};
use super::result::{EqualWork, WorkFigure};
use super::words::value;
use gapscope_analysis::launch_sizes::{SizeEvidence, SizedKernel, judge};
use gapscope_timeline::quantity;
use gapscope_timeline::thresholds::SAME_SIZE_SHARE;

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

/// Returns whether both sides did the same work, and which figures differ. A count that varies from run to run is
/// equal if its change is within noise.
pub(super) fn equal_work(comparison: &Comparison) -> EqualWork {
    let evaluated = comparison.evaluated.as_ref();
    let mut known = Vec::new();
    for metric in WORK {
        let key = metric.key();
        let of = |change: &&Change| change.kind == ChangeKind::Count && change.name == key;
        let Some(change) = comparison.changes.iter().find(of) else {
            continue;
        };
        // Only a figure that varies from run to run has a p-value.
        let varies = change.p_alone.is_some();
        let equal = change.before.zip(change.after).map(|(before, after)| {
            let once = evaluated.is_some()
                && (after - before).abs() <= SAME_SIZE_SHARE * before.max(after);
            before == after || once || (varies && !change.significant)
        });
        let figure = WorkFigure {
            what: metric.name(),
            unit: change.unit,
            before: change.before,
            after: change.after,
            equal,
        };
        known.push((metric, figure));
    }
    let mut work = judged(&comparison.pairs, &known);
    work.per_evaluation = evaluated.is_some();
    work.evaluation = evaluated.map(|evaluated| evaluated.path.clone());
    let mut figures: Vec<WorkFigure> = known.into_iter().map(|(_, figure)| figure).collect();
    work.sentences.splice(0..0, differing(&work, &figures));
    if evaluated.is_some() {
        let [before, after] = [0, 1].map(|side| comparison.evaluations_of(side));
        // A different number of evaluations does not make the work different, since figures are for one evaluation.
        let evaluations = WorkFigure {
            what: "evaluations".to_owned(),
            unit: Unit::Count,
            before,
            after,
            equal: before.zip(after).map(|(before, after)| before == after),
        };
        work.sentences.splice(0..0, other_evaluations(&evaluations));
        figures.insert(0, evaluations);
    }
    work.figures = figures;
    work
}

/// Judges whether the work is equal, by its figures and by the sizes of the dispatches of each kernel.
fn judged(pairs: &[Pair], figures: &[(Metric, WorkFigure)]) -> EqualWork {
    let equal = |metric: Metric| {
        let figure = figures.iter().find(|(other, _)| *other == metric);
        figure.and_then(|(_, figure)| figure.equal)
    };
    let differs = |metric: Metric| equal(metric) == Some(false);
    let unequal = figures
        .iter()
        .filter(|(_, figure)| figure.equal == Some(false));
    let fused = became_others(pairs).filter(|_| differs(Metric::Dispatches));
    // Differences of launches that fused kernels explain, and those of sizes, are judged apart.
    let explained = |metric: Metric| match metric {
        Metric::Workgroups | Metric::Threads => true,
        _ => fused.is_some() && OF_LAUNCHES.contains(&metric),
    };
    let surely_unequal = unequal.clone().any(|(metric, _)| !explained(*metric));
    let other_sizes = differs(Metric::Workgroups) || differs(Metric::Threads);
    let (evidence, sentences) = match other_sizes && !differs(Metric::Dispatches) {
        true => judge(&sized(pairs), equal(Metric::BoundBytes) == Some(true)),
        false => (SizeEvidence::Equal, Vec::new()),
    };
    // Other threads of no kernel that is on both sides are those of kernels that are on one.
    let other_kernels = !differs(Metric::Dispatches)
        && evidence == SizeEvidence::Equal
        && (differs(Metric::Threads) || (equal(Metric::Threads).is_none() && other_sizes));
    let is_known = figures.iter().any(|(_, figure)| figure.equal.is_some());
    let in_doubt = fused.is_some() || other_kernels || evidence == SizeEvidence::Doubtful;
    let equal_work = match () {
        () if surely_unequal || evidence == SizeEvidence::Unequal => Some(false),
        () if in_doubt || !is_known => None,
        () => Some(true),
    };
    let some_dispatches = figures.iter().any(|(metric, figure)| {
        *metric == Metric::Dispatches && figure.before.is_some_and(|count| count > 0.0)
    });
    let sizes_unknown = equal_work == Some(true)
        && some_dispatches
        && equal(Metric::Workgroups).is_none()
        && equal(Metric::BoundBytes).is_none();
    let mut work = EqualWork {
        equal: equal_work,
        in_doubt: equal_work.is_none() && in_doubt,
        sizes_unknown,
        sentences,
        ..EqualWork::default()
    };
    work.sentences.extend(fused.filter(|_| work.in_doubt));
    if sizes_unknown {
        work.sentences.push(
            "How large the dispatches were is not known on both sides: neither their workgroups are, nor the bytes bound to them. \
             As many dispatches that do less look the same."
                .to_owned(),
        );
    }
    work
}

/// Returns the kernels that are the same one on both sides, as far as names and codes tell, and whose sizes are known.
fn sized<'a>(pairs: &[Pair<'a>]) -> Vec<SizedKernel<'a>> {
    let is_one = |pair: &&Pair| {
        matches!(
            pair.how,
            How::Same | How::Renamed | How::SameCode | How::Moved
        )
    };
    let sized = |pair: &Pair<'a>| {
        Some(SizedKernel {
            name: pair.after.first()?.name,
            size: pair.size()?,
            has_other_code: pair.has_other_code(),
        })
    };
    pairs.iter().filter(is_one).filter_map(sized).collect()
}

/// Returns the sentence that kernels became others, where nothing else differs in how often kernels ran.
fn became_others(pairs: &[Pair]) -> Option<String> {
    let became = |pair: &&Pair| matches!(pair.how, How::Fused | How::Split);
    let others_differ = pairs.iter().any(|pair| match pair.how {
        How::Fused | How::Split => false,
        How::OnlyBefore | How::OnlyAfter => true,
        _ => {
            let [before, after] = [&pair.before, &pair.after].map(|kernels| {
                let counts = kernels.iter().map(|kernel| kernel.size().1);
                counts.sum::<u64>() as f64
            });
            (after - before).abs() > SAME_SIZE_SHARE * before.max(after)
        }
    });
    let names: Vec<String> = pairs
        .iter()
        .filter(became)
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
        let [before, after] = [before, after].map(|number| value(number, figure.unit));
        (figure.equal == Some(false)).then(|| format!("{} {before} → {after}", figure.what))
    });
    let other = other.collect::<Vec<_>>().join(", ");
    let each = match work.per_evaluation {
        true => " in an evaluation",
        false => "",
    };
    match work.equal {
        Some(true) => None,
        Some(false) => Some(format!(
            "The work is not equal{each}: {other}. A difference in time may be a difference in work."
        )),
        None if work.in_doubt => Some(format!("The work may not be equal{each}: {other}.")),
        None => Some("Whether the work is equal is not known.".to_owned()),
    }
}
