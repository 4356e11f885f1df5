//! Decides, from counts and bytes, whether both sides of a comparison did the same work: the changes of these figures
//! go in, an [`EqualWork`] comes out.

use super::change::{Change, ChangeKind};
use super::changes::Comparison;
use super::metric::{Metric, Unit};
use super::result::{EqualWork, WorkFigure};
use super::sentences;

/// The figures that must be equal on both sides for their times to be comparable.
const WORK: [Metric; 5] = [
    Metric::Dispatches,
    Metric::BoundBytes,
    Metric::Transfers,
    Metric::TransferBytes,
    Metric::CommandBuffers,
];

/// The share by which figures for one evaluation (instance of a label) may differ, since what a run does only once is shared
/// out among a different number of evaluations.
const ONCE_SHARE: f64 = 0.005;

/// The name of the figure that may differ between sides that did the same work.
const EVALUATIONS: &str = "evaluations";

/// Returns whether both sides did the same work, and which figures differ. A count that varies from run to run is
/// equal if its change is within noise.
pub(super) fn equal_work(comparison: &Comparison) -> EqualWork {
    let evaluated = comparison.evaluated.as_ref();
    let mut figures = Vec::new();
    if evaluated.is_some() {
        let [before, after] = [0, 1].map(|side| comparison.evaluations_of(side));
        figures.push(WorkFigure {
            what: EVALUATIONS.to_owned(),
            unit: Unit::Count,
            before,
            after,
            equal: before.zip(after).map(|(before, after)| before == after),
        });
    }
    for metric in WORK {
        let key = metric.key();
        let of = |change: &&Change| change.kind == ChangeKind::Count && change.name == key;
        let Some(change) = comparison.changes.iter().find(of) else {
            continue;
        };
        // Only a figure that varies from run to run has a p-value.
        let varies = change.p_alone.is_some();
        let equal = change.before.zip(change.after).map(|(before, after)| {
            let once =
                evaluated.is_some() && (after - before).abs() <= ONCE_SHARE * before.max(after);
            before == after || once || (varies && !change.significant)
        });
        figures.push(WorkFigure {
            what: metric.name(),
            unit: change.unit,
            before: change.before,
            after: change.after,
            equal,
        });
    }
    // A different number of evaluations does not make the work different, since figures are for one evaluation.
    let known: Vec<bool> = (figures.iter())
        .filter(|figure| figure.what != EVALUATIONS)
        .filter_map(|figure| figure.equal)
        .collect();
    let mut equal_work = EqualWork {
        equal: (!known.is_empty()).then(|| known.iter().all(|equal| *equal)),
        per_evaluation: evaluated.is_some(),
        evaluation: evaluated.map(|evaluated| evaluated.path.clone()),
        figures,
        sentences: Vec::new(),
    };
    equal_work.sentences = sentences::equal_work(&equal_work);
    equal_work
}
