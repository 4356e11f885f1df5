//! Two sets of runs compared: what is equal, what changed, by how much, and whether it is more than noise.
//!
//! [`RunDigest`] is what is kept of a run, a few kilobytes of ten million dispatches; [`Diff::of`] compares digests. The figures of a
//! run are of its whole recording, warm-up included: that is there on both sides. Where most dispatches lie under a label that is set
//! again and again, an instance of it is an evaluation, and figures are for one; else they are for a run.
//!
//! A difference is told as one when noise alone makes any as great in at most [`LEVEL`] of diffs: each comparison has the chance that
//! noise makes a difference as large as its own ([`diff/estimate.rs`](self)), corrected for their number. So of a hundred diffs of a
//! program with itself, at most one tells of any change.
//!
//! What this cannot know: whether both sides were meant to do equal work, and what changed on the machine between runs that did not
//! take turns.

mod changes;
mod contamination;
mod digest;
mod equal;
mod estimate;
mod gate;
mod gated;
mod matching;
mod metric;
mod names;
mod samples;
mod sentences;
mod student;
mod unlike;
mod words;
mod works;

pub use changes::{Change, ChangeKind};
pub use digest::{Machine, RunDigest};
pub use equal::{EqualWork, WorkFigure};
pub use gate::{Gate, GateError, GateOf, Limit, gate_metrics};
pub use matching::How;
pub use metric::{Metric, Unit};
pub use unlike::unlike_machines;
pub use words::{chance, change, interval, value};

use estimate::Design;
use schemars::JsonSchema;
use serde::Serialize;

/// A difference is told when noise makes any so great in at most this share of diffs.
pub const LEVEL: f64 = 0.01;

/// How much the time of a run is taken to differ from run to run where each side has but one, as the standard deviation of its
/// logarithm: on a GPU of its own, and on a software device, which shares its processor with the program.
pub const ASSUMED_SPREAD: [f64; 2] = [0.01, 0.05];

/// How to compare.
#[derive(Debug, Clone, PartialEq)]
pub struct Options {
    /// See [`LEVEL`].
    pub level: f64,
    /// See [`ASSUMED_SPREAD`]; by the devices where it is not given.
    pub assumed_spread: Option<f64>,
    /// Limits.
    pub gates: Vec<Gate>,
    /// A gate whose figure is not known holds.
    pub allow_unknown: bool,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            level: LEVEL,
            assumed_spread: None,
            gates: Vec::new(),
            allow_unknown: false,
        }
    }
}

/// Two sets of runs compared.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Diff {
    /// What it comes to.
    pub verdict: Verdict,
    /// The same in a sentence or two.
    pub sentence: String,
    /// Why figures may differ for other reasons than the program: sentences.
    pub unlike: Vec<String>,
    /// Whether both sides did the same work.
    pub equal_work: EqualWork,
    /// The sides.
    pub before: Side,
    /// The side after.
    pub after: Side,
    /// What changed and what did not: times by how much time they add or save, then counts and bytes.
    pub changes: Vec<Change>,
    /// The gates, in the order in which they were given.
    pub gates: Vec<GateResult>,
    /// How the figures were compared.
    pub method: Method,
    /// Kernels that were matched though their names or labels differ: sentences.
    pub matched: Vec<String>,
    /// What to do next.
    pub next: Vec<String>,
}

/// What a comparison comes to, by the time from start to end, or else by GPU time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// It takes longer.
    Slower,
    /// It takes less time.
    Faster,
    /// Both within noise, but something in it changed.
    Changed,
    /// No difference beyond noise.
    NoDifference,
    /// Times are not known.
    Unknown,
}

/// The runs of a side.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
pub struct Side {
    /// What they are called.
    pub runs: Vec<String>,
    /// Devices of the first of them.
    pub devices: Vec<String>,
    /// Evaluations of a run, on average; absent when they are not known.
    pub evaluations: Option<f64>,
    /// Why figures are not of the whole of its runs, or not of them alone: all that `unlike` has the first of.
    pub flaws: Vec<Flaw>,
}

/// Why a figure is not of the whole run, or not of it alone: something was lost, or the machine was otherwise.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Flaw {
    /// The run; absent where the side has but one.
    pub run: Option<String>,
    /// What it was.
    pub sentence: String,
}

/// How figures were compared.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Method {
    /// See [`LEVEL`].
    pub level: f64,
    /// How often an interval holds the true ratio.
    pub confidence: f64,
    /// What the samples are.
    pub samples: SamplesOf,
    /// What is assumed, where each side has but one run.
    pub assumed_spread: Option<f64>,
    /// Differences that were tested, and that the chances are corrected for.
    pub comparisons: u64,
    /// The same in a sentence.
    pub sentence: String,
}

/// What the samples of a comparison are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum SamplesOf {
    /// Runs.
    Runs,
    /// Runs that took turns: a drift over all of them is taken out.
    RunsInTurns,
    /// Blocks of one run each.
    OneRun,
}

/// What became of a gate.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct GateResult {
    /// As it was written.
    pub gate: String,
    /// Whether it holds.
    pub status: GateStatus,
    /// Why.
    pub sentence: String,
    /// The figure before.
    pub before: Option<f64>,
    /// The figure after.
    pub after: Option<f64>,
    /// What they are counted in.
    pub unit: Unit,
    /// `after / before`.
    pub ratio: Option<f64>,
    /// The true ratio is between this one, ...
    pub low: Option<f64>,
    /// ... and this one, in 95 of 100 cases.
    pub high: Option<f64>,
    /// The chance that noise alone makes so great a difference.
    pub p_noise: Option<f64>,
}

/// Whether a gate holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum GateStatus {
    /// The change is within the limit.
    Held,
    /// The change is beyond the limit, but may be noise.
    Noise,
    /// The change is beyond the limit and is more than noise.
    Broken,
    /// The figure is not known.
    Unknown,
    /// The figure is not known, and that was allowed.
    UnknownAllowed,
    /// The sides were recorded on unlike machines: the change was not judged.
    Unlike,
}

impl Diff {
    /// Compares runs, of which each side needs one at least.
    pub fn of(before: &[RunDigest], after: &[RunDigest], options: &Options) -> Diff {
        let design = design(before, after, options);
        let evaluations = equal::evaluations(before, after);
        let comparison = changes::Comparison::of(before, after, &design, evaluations, options);
        let equal_work = equal::of(&comparison);
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
            changes: comparison.changes,
            next: Vec::new(),
        };
        (diff.verdict, diff.sentence) = sentences::verdict(&diff);
        diff.next = sentences::next(&diff, before, after);
        diff
    }

    /// True where a gate is broken, was not judged, or is unknown and that was not allowed.
    pub fn fails(&self) -> bool {
        let failed = |gate: &GateResult| {
            matches!(
                gate.status,
                GateStatus::Broken | GateStatus::Unknown | GateStatus::Unlike
            )
        };
        self.gates.iter().any(failed)
    }

    /// Fails each gate, and says first why: what differs besides the program is as likely a cause of any change.
    pub fn do_not_judge(&mut self, because: &[String]) {
        for gate in &mut self.gates {
            gate.status = GateStatus::Unlike;
            gate.sentence = format!("Not judged. {}", because.join(" "));
        }
        self.unlike.retain(|sentence| !because.contains(sentence));
        self.unlike.splice(0..0, because.iter().cloned());
    }
}

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

/// Runs on each side that a trend needs besides the difference.
const LEAST_TURNS: usize = 4;

fn design(before: &[RunDigest], after: &[RunDigest], options: &Options) -> Design {
    let by_devices = || {
        let devices = before
            .iter()
            .chain(after)
            .flat_map(|run| &run.machine.devices);
        let mut devices = devices.map(String::as_str);
        ASSUMED_SPREAD[usize::from(devices.any(is_software))]
    };
    Design {
        turns: turns(before, after),
        assumed_spread: options.assumed_spread.unwrap_or_else(by_devices),
    }
}

/// True of a device that is the processor.
fn is_software(device: &str) -> bool {
    let device = device.to_ascii_lowercase();
    let software = ["llvmpipe", "lavapipe", "swiftshader"];
    software.iter().any(|name| device.contains(name))
}

/// The places of runs in order of time, where each two neighbours are of both sides.
fn turns(before: &[RunDigest], after: &[RunDigest]) -> Option<[Vec<f64>; 2]> {
    if before.len() != after.len() || before.len() < LEAST_TURNS {
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

fn method(
    before: &[RunDigest],
    after: &[RunDigest],
    design: &Design,
    options: &Options,
    comparison: &changes::Comparison,
) -> Method {
    let samples = match (before.len(), after.len()) {
        (1, 1) => SamplesOf::OneRun,
        _ if design.turns.is_some() => SamplesOf::RunsInTurns,
        _ => SamplesOf::Runs,
    };
    let assumed_spread = (samples == SamplesOf::OneRun).then_some(design.assumed_spread);
    Method {
        level: options.level,
        confidence: crate::thresholds::CONFIDENCE,
        samples,
        assumed_spread,
        comparisons: comparison.tested,
        sentence: sentences::method(
            before.len(),
            after.len(),
            samples,
            assumed_spread,
            options.level,
        ),
    }
}
