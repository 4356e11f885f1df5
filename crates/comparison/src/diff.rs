//! Compares two sets of runs: what is equal, what changed, by how much, and whether it is more than noise.
//!
//! [`RunDigest`] is what is kept of a run, a few kilobytes for ten million dispatches; [`Diff::new`] compares digests. The figures
//! of a run are of its whole recording. Warm-up is included, because it is there on both sides. Where most dispatches lie under a
//! label that is set repeatedly, an instance of the label is an evaluation, and figures are for one evaluation; otherwise they are
//! for a run.
//!
//! A difference counts as one when noise alone makes a difference as great in at most [`LEVEL`] of diffs: each comparison has the
//! chance that noise makes a difference as large as its own (`diff/estimate.rs`), corrected for the number of comparisons. So of
//! a hundred diffs of a program with itself, at most one reports any change.
//!
//! A gate is a limit, given by the user, on how much worse a figure may become. The gate is broken where the change is beyond
//! the limit and more than noise. It holds where a change beyond the limit would have shown; else the gate could not be judged.
//!
//! What this cannot know: whether both sides were meant to do equal work, and what changed on the machine between runs that did
//! not take turns.

mod change;
mod changes;
mod common_change;
mod digest;
mod disturbance;
mod equal;
mod estimate;
mod evaluations;
mod gate;
mod gated;
mod matching;
mod metric;
mod names;
mod options;
mod parts;
mod result;
mod run;
mod run_environment;
mod samples;
mod sentences;
mod spread;
mod student;
mod unlike;
mod verdict;
mod words;
mod works;

pub use change::{Change, ChangeKind, NotJudged};
pub use gate::{Gate, GateError, GateOf, Limit, gate_metrics};
pub use matching::How;
pub use metric::{Metric, Unit};
pub use options::{LEVEL, Options};
pub use result::{
    Diff, EqualWork, Flaw, GateResult, GateStatus, Method, SamplesOf, Side, Verdict, WorkFigure,
};
pub use run::{Machine, RunDigest};
pub use unlike::unlike_machines;
pub use words::{at_least, chance, change, interval, value};

use changes::Comparison;
use estimate::Design;
use gapscope_timeline::thresholds::CONFIDENCE;
use spread::AssumedSpread;

impl Diff {
    /// Compares runs. Each side needs at least one.
    pub fn new(before: &[RunDigest], after: &[RunDigest], options: &Options) -> Diff {
        let design = design(before, after, options);
        let evaluations = evaluations::evaluations(before, after);
        let comparison = Comparison::new(before, after, &design, evaluations, options);
        let equal_work = equal::equal_work(&comparison);
        let mut diff = Diff {
            verdict: Verdict::Unknown,
            sentence: String::new(),
            unlike: unlike::unlike(before, after, &design),
            equal_work,
            before: side(before, comparison.evaluations_of(0)),
            after: side(after, comparison.evaluations_of(1)),
            gates: comparison.gates(&options.gates, options),
            method: method(before, after, &design, options, &comparison),
            matched: comparison.matched(),
            words: comparison.words(),
            changes: comparison.changes,
            next: Vec::new(),
        };
        (diff.verdict, diff.sentence) = verdict::verdict(&diff);
        diff.next = sentences::next(&diff, before, after);
        diff
    }

    /// Returns true where a gate is broken, could not be judged, or is unknown and that was not allowed.
    pub fn fails(&self) -> bool {
        let failed = |gate: &GateResult| {
            matches!(
                gate.status,
                GateStatus::Broken
                    | GateStatus::Noise
                    | GateStatus::Undecided
                    | GateStatus::Unknown
                    | GateStatus::Unlike
            )
        };
        self.gates.iter().any(failed)
    }

    /// Marks each gate as not judged, which makes the diff fail: what differs besides the program is as likely a cause of
    /// any change. `because` has the reasons in sentences; they are put first in [`Diff::unlike`].
    pub fn do_not_judge(&mut self, because: &[String]) {
        for gate in &mut self.gates {
            gate.status = GateStatus::Unlike;
            gate.sentence = format!("Not judged. {}", because.join(" "));
        }
        self.unlike.retain(|sentence| !because.contains(sentence));
        self.unlike.splice(0..0, because.iter().cloned());
    }
}

/// Describes the runs of a side; `evaluations` is their mean number.
fn side(runs: &[RunDigest], evaluations: Option<f64>) -> Side {
    Side {
        runs: runs.iter().map(|run| run.name.clone()).collect(),
        devices: runs
            .first()
            .map_or(Vec::new(), |run| run.machine.devices.clone()),
        evaluations,
        flaws: unlike::flaws(runs),
    }
}

/// The number of runs on each side that is needed to tell a trend from the difference.
const MIN_TURNS: usize = 4;

/// Returns how the runs were made: in turns or not, and the spread that is assumed where it cannot be measured.
fn design(before: &[RunDigest], after: &[RunDigest], options: &Options) -> Design {
    Design {
        turns: turns(before, after),
        spread: AssumedSpread::new(options),
    }
}

/// Returns the positions of the runs before, then of those after, in the order of time of all runs. Returns `None`
/// unless each two neighbours are a run of each side.
fn turns(before: &[RunDigest], after: &[RunDigest]) -> Option<[Vec<f64>; 2]> {
    if before.len() != after.len() || before.len() < MIN_TURNS {
        return None;
    }
    let mut order = Vec::new();
    for (side, runs) in [before, after].into_iter().enumerate() {
        for (run, digest) in runs.iter().enumerate() {
            order.push((digest.started_unix_ns?, side, run));
        }
    }
    order.sort_unstable();
    if order.chunks(2).any(|two| two[0].1 == two[1].1) {
        return None;
    }
    let mut places = [vec![0.0; before.len()], vec![0.0; after.len()]];
    for (place, (_, side, run)) in order.into_iter().enumerate() {
        places[side][run] = place as f64;
    }
    Some(places)
}

/// Describes how the figures were compared.
fn method(
    before: &[RunDigest],
    after: &[RunDigest],
    design: &Design,
    options: &Options,
    comparison: &Comparison,
) -> Method {
    let samples = match (before.len(), after.len()) {
        (1, 1) => SamplesOf::OneRun,
        _ if design.turns.is_some() => SamplesOf::RunsInTurns,
        _ => SamplesOf::Runs,
    };
    let spread = |run: &RunDigest| design.spread.of_metric(run, Metric::WallTime);
    let assumed_spread = (before.iter().chain(after).map(spread).reduce(f64::max))
        .filter(|_| samples == SamplesOf::OneRun);
    Method {
        level: options.level,
        confidence: CONFIDENCE,
        samples,
        assumed_spread,
        comparisons: comparison.tested,
        sentence: sentences::method(
            before.len(),
            after.len(),
            samples,
            comparison.width(),
            options.level,
        ),
    }
}
