//! Chooses the label whose instances are the *evaluations* of all runs: the repeated unit of work, such as a training
//! step. Figures that grow with the work are divided by their number, so that runs of different lengths compare.

use super::run::RunDigest;

/// The label whose instances are evaluations, and how many there were.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Evaluated {
    /// The label's path (its own text behind those of the labels around it), with numbers as `#`.
    pub path: String,
    /// The number of evaluations of each run, for the side before and then the side after.
    pub counts: [Vec<f64>; 2],
}

/// Returns the outermost label that is set repeatedly around most of the work of all runs: the first candidate of the
/// first run that all runs have.
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
