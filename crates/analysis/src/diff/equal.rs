//! Whether both sides did the same work.

use super::changes::{Change, ChangeKind, Comparison};
use super::digest::RunDigest;
use super::metric::{Metric, Unit};
use super::sentences;
use schemars::JsonSchema;
use serde::Serialize;

/// What says how much work both sides did.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
pub struct EqualWork {
    /// True where all figures that are known are equal, false where one is not; absent where none is known.
    pub equal: Option<bool>,
    /// Figures here and in the changes are for one evaluation; else for a run.
    pub per_evaluation: bool,
    /// The label whose instances are evaluations, numbers as `#`.
    pub evaluation: Option<String>,
    /// The figures.
    pub figures: Vec<WorkFigure>,
    /// What is not equal, and what that means.
    pub sentences: Vec<String>,
}

/// How much of something a side did.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct WorkFigure {
    /// What.
    pub what: String,
    /// What it is counted in.
    pub unit: Unit,
    /// Before; of several runs their mean.
    pub before: Option<f64>,
    /// After.
    pub after: Option<f64>,
    /// Absent where one is not known.
    pub equal: Option<bool>,
}

/// The label whose instances are evaluations.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Evaluated {
    pub path: String,
    /// By side and run.
    pub counts: [Vec<f64>; 2],
}

/// The outermost label that is set again and again around most of the work of all runs.
pub(super) fn evaluations(before: &[RunDigest], after: &[RunDigest]) -> Option<Evaluated> {
    let count = |run: &RunDigest, path: &str| {
        let found = run.evaluations.iter().find(|found| found.path == path)?;
        Some(found.count as f64)
    };
    let candidates = &before.first()?.evaluations;
    candidates.iter().find_map(|candidate| {
        let path = candidate.path.as_str();
        let of = |runs: &[RunDigest]| {
            runs.iter()
                .map(|run| count(run, path))
                .collect::<Option<Vec<f64>>>()
        };
        Some(Evaluated {
            path: path.to_owned(),
            counts: [of(before)?, of(after)?],
        })
    })
}

/// What must be equal for times to be comparable.
const WORK: [Metric; 5] = [
    Metric::Dispatches,
    Metric::BoundBytes,
    Metric::Transfers,
    Metric::TransferBytes,
    Metric::CommandBuffers,
];

/// Figures for one evaluation differ by this share where a run does something once.
const ONCE_SHARE: f64 = 0.005;

pub(super) fn of(comparison: &Comparison) -> EqualWork {
    let evaluated = comparison.evaluated.as_ref();
    let mut figures = Vec::new();
    if evaluated.is_some() {
        let [before, after] = [0, 1].map(|side| comparison.evaluations_of(side));
        figures.push(WorkFigure {
            what: "evaluations".to_owned(),
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
        let equal = change.before.zip(change.after).map(|(before, after)| {
            let once =
                evaluated.is_some() && (after - before).abs() <= ONCE_SHARE * before.max(after);
            before == after || once || (change.p_alone.is_some() && !change.significant)
        });
        figures.push(WorkFigure {
            what: metric.name(),
            unit: change.unit,
            before: change.before,
            after: change.after,
            equal,
        });
    }
    // Twice as many evaluations are no other work where figures are for one.
    let known: Vec<bool> = (figures.iter())
        .filter(|figure| figure.what != "evaluations")
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
