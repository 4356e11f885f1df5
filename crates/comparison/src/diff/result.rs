//! The types of the result of a comparison of runs; `diff.rs` makes them, reports show them. An evaluation is one
//! instance of a label around work that a run does again and again.

use super::change::{Change, is_whole};
use super::metric::Unit;
#[cfg(doc)]
use super::options::LEVEL;
use gapscope_timeline::vocabulary::Words;
use schemars::JsonSchema;
use serde::Serialize;

/// Two sets of runs compared.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Diff {
    /// The verdict.
    pub verdict: Verdict,
    /// The same in a sentence or two.
    pub sentence: String,
    /// Reasons other than the program why figures may differ, in sentences.
    pub unlike: Vec<String>,
    /// Whether both sides did the same work.
    pub equal_work: EqualWork,
    /// The side before.
    pub before: Side,
    /// The side after.
    pub after: Side,
    /// Figures that changed and figures that did not: times by how much time they add or save, then counts and bytes.
    pub changes: Vec<Change>,
    /// The gates, in the order in which they were given.
    pub gates: Vec<GateResult>,
    /// The words that suit the APIs of both sides.
    #[serde(skip)]
    pub words: Words,
    /// How the figures were compared.
    pub method: Method,
    /// Kernels that were matched although their names or labels differ, in sentences.
    pub matched: Vec<String>,
    /// What to do next.
    pub next: Vec<String>,
}

/// The verdict of a comparison, by the time from start to end, or else by GPU time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// The side after takes longer.
    Slower,
    /// The side after takes less time.
    Faster,
    /// The times differ only by noise, but something within them changed.
    Changed,
    /// There is no difference beyond noise.
    NoDifference,
    /// Times are not known.
    Unknown,
}

/// The runs of a side.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
pub struct Side {
    /// Their names.
    pub runs: Vec<String>,
    /// The devices of the first run.
    pub devices: Vec<String>,
    /// Evaluations of a run, on average; absent when they are not known.
    pub evaluations: Option<f64>,
    /// Why figures are not of the whole of its runs, or not of them alone. `unlike` has only the first of these.
    pub flaws: Vec<Flaw>,
}

/// The reason why a figure is not of the whole run, or not of it alone: something was lost, or the machine was different.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Flaw {
    /// The run; absent where the side has only one.
    pub run: Option<String>,
    /// The reason.
    pub sentence: String,
}

/// How figures were compared.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Method {
    /// See [`LEVEL`].
    pub level: f64,
    /// How often an interval holds the true ratio.
    pub confidence: f64,
    /// The kind of samples.
    pub samples: SamplesOf,
    /// The assumed spread of the time from start to end (standard deviation of its logarithm), where each side has only one
    /// run: that of the run which waited more for processors.
    pub assumed_spread: Option<f64>,
    /// How many differences were tested. The chances are corrected for this number.
    pub comparisons: u64,
    /// The same in a sentence.
    pub sentence: String,
}

/// The kind of samples of a comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum SamplesOf {
    /// Runs.
    Runs,
    /// Runs that took turns, so that a drift over all of them is removed.
    RunsInTurns,
    /// Blocks of one run each.
    OneRun,
}

/// The result of a gate.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct GateResult {
    /// The gate as it was written.
    pub gate: String,
    /// Whether it holds.
    pub status: GateStatus,
    /// The reason for the status.
    pub sentence: String,
    /// The figure before.
    pub before: Option<f64>,
    /// The figure after.
    pub after: Option<f64>,
    /// The unit of the figures.
    pub unit: Unit,
    /// `after / before`.
    pub ratio: Option<f64>,
    /// The true ratio is between this one, ...
    pub low: Option<f64>,
    /// ... and this one, in 95 of 100 cases.
    pub high: Option<f64>,
    /// The chance that noise alone makes a difference as great.
    pub p_noise: Option<f64>,
    /// The least ratio above 1 that these runs could tell from noise; absent where there is no noise, or it is not known.
    pub least_ratio_told: Option<f64>,
}

/// Whether a gate holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum GateStatus {
    /// The change is within the limit, and one beyond it would have shown.
    Held,
    /// The change is beyond the limit, but may be noise: these runs could show only greater changes, and the gate fails.
    Noise,
    /// The change is within the limit, but these runs could not have shown one beyond it, and the gate fails.
    Undecided,
    /// The change is beyond the limit and is more than noise.
    Broken,
    /// The figure is not known.
    Unknown,
    /// The figure is not known, and that was allowed.
    UnknownAllowed,
    /// The sides were recorded on unlike machines: the change was not judged.
    Unlike,
}

/// How much work both sides did, and whether it is equal.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
pub struct EqualWork {
    /// Whether all known figures are equal, and the sizes of single dispatches and transfers, in any order. Absent where none is known, where
    /// there is no work, and where what differs may be the same work in other launches: in fewer threads that do more each, in fused
    /// kernels, or in as many dispatches of other kernels.
    pub equal: Option<bool>,
    /// Figures are known, and whether the work is equal is not.
    #[serde(skip)]
    pub(super) in_doubt: bool,
    /// The runs before, and those after, have no GPU work at all.
    #[serde(skip)]
    pub(super) is_empty: [bool; 2],
    /// Nothing tells how large the dispatches were.
    #[serde(skip)]
    pub(super) sizes_unknown: bool,
    /// Figures here and in the changes are for one evaluation instead of a run.
    pub per_evaluation: bool,
    /// The label whose instances are evaluations, with numbers as `#`.
    pub evaluation: Option<String>,
    /// The figures.
    pub figures: Vec<WorkFigure>,
    /// Says what is not equal and what that means.
    pub sentences: Vec<String>,
}

impl EqualWork {
    /// Returns true where figures are known, and whether the work is equal is not.
    pub fn is_in_doubt(&self) -> bool {
        self.in_doubt
    }

    /// Returns true where no side has any GPU work.
    pub fn is_nothing(&self) -> bool {
        self.is_empty == [true; 2]
    }

    /// Returns true where nothing tells how large the dispatches were.
    pub fn is_size_unknown(&self) -> bool {
        self.sizes_unknown
    }
}

/// A figure of the work of both sides.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct WorkFigure {
    /// The name of the figure.
    pub what: String,
    /// Its unit.
    pub unit: Unit,
    /// The figure before, the mean of several runs.
    pub before: Option<f64>,
    /// After.
    pub after: Option<f64>,
    /// True for each side, before and after, of which some of what the figure counts was not recorded: the figure is a lower bound there.
    #[serde(skip_serializing_if = "is_whole")]
    pub at_least: [bool; 2],
    /// Whether they are equal; absent where one is not known, or a lower bound.
    pub equal: Option<bool>,
}
