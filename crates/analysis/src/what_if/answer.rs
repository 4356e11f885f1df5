//! The answer to a question about a change.

use super::{KernelSlack, PathPart, Refusal, Times, WhatIf};
use gapscope_timeline::intervals::Interval;
use gapscope_timeline::quantity::{Percent, ratio};
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::BTreeMap;

/// What a change would bring. Times are those of a step, or of the whole part of the run where no steps are known.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Answer {
    /// The changes, as they were asked for.
    pub changes: Vec<String>,
    /// The ranks that were replayed together, by their numbers; absent for a trace of one process.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ranks: Vec<u32>,
    /// The number of steps that were replayed; null where the times are those of the whole part of the run.
    pub steps: Option<u64>,
    /// The part of the run that was replayed.
    pub window: Interval,
    /// How long a step took, in the mean.
    pub recorded_ns: i64,
    /// How long the median step took; null where the times are those of the whole part of the run.
    pub median_step_ns: Option<i64>,
    /// How far a replay with usual delays is off the recording, without a change. Null where nothing was replayed.
    pub pooled_error: Option<f64>,
    /// How long a step would take. Null where the answer is refused.
    pub changed_ns: Option<Times>,
    /// The share of the time that the change would save; below 0 where it would cost time. Null where the answer is refused.
    pub gain: Option<Gain>,
    /// The critical path of the changed run, or of the recorded one where nothing is changed; the greatest part first.
    pub path: Vec<PathPart>,
    /// How much longer the kernels with the most time could be, in that run. Empty where the answer is refused.
    pub slack: Vec<KernelSlack>,
    /// What the replay rests on.
    pub edges: Edges,
    /// Why there is no answer; empty where there is one.
    pub refused: Vec<Refusal>,
    /// A recording of the changed program, beside the prediction; absent where none was given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub against: Option<Recording>,
    /// What to know about the answer, in sentences.
    pub notes: Vec<String>,
    /// The time of each kernel in the recorded run, for the comparison with another recording.
    #[serde(skip)]
    pub(super) kernels: BTreeMap<String, i64>,
}

/// A recording of the changed program.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Recording {
    /// The name of its trace.
    pub trace: String,
    /// How long a step of it took.
    pub recorded_ns: i64,
    /// By how much the prediction is off: above 0 where it is too long. Null where the answer is refused.
    pub error: Option<f64>,
    /// True where the recorded time lies in the predicted interval. Null where the answer is refused.
    pub is_inside: Option<bool>,
    /// The number of its steps; null where it has none.
    pub steps: Option<u64>,
    /// The share of the time of kernels, of this recording or the predicted one, that kernels have which are in both, by their names: the
    /// greater share of both. Null where one of them has no kernels.
    pub same_kernels: Option<f64>,
    /// The time of each kernel.
    #[serde(skip)]
    kernels: BTreeMap<String, i64>,
}

impl Recording {
    /// Takes the times of a run, measured as those of a predicted one are.
    pub fn new(trace: String, run: &WhatIf) -> Recording {
        Recording {
            trace,
            recorded_ns: run.of_step(run.recorded_ns()),
            error: None,
            is_inside: None,
            steps: run.steps(),
            same_kernels: None,
            kernels: run.kernels(),
        }
    }
}

impl Answer {
    /// Returns the share of the time that the change would save with everything as the trace has it; `None` where the answer is refused.
    pub fn mid_gain(&self) -> Option<f64> {
        self.changed_ns.map(|times| self.gain_at(times.mid))
    }

    /// Returns the share of the time that is saved where a step takes `ns`.
    pub(super) fn gain_at(&self, ns: i64) -> f64 {
        1.0 - ns as f64 / self.recorded_ns.max(1) as f64
    }

    /// Compares the prediction with a recording of the changed program.
    pub fn compare(&mut self, recording: Recording) {
        let recorded_ns = recording.recorded_ns;
        let is_inside = |times: Times| (times.low..=times.high).contains(&recorded_ns);
        let error =
            |times: Times| times.mid.saturating_sub(recorded_ns) as f64 / recorded_ns.max(1) as f64;
        let is_same_unit = self.steps.is_some() == recording.steps.is_some();
        if !is_same_unit {
            let note = "One of the traces has steps and the other has none: their times are of different things.";
            self.notes.push(note.to_owned());
        }
        let same_kernels = same_kernels(&self.kernels, &recording.kernels);
        if let Some(share) = same_kernels.filter(|share| *share < SAME_PROGRAM_SHARE) {
            self.notes.push(format!(
                "The traces have hardly a kernel in common ({} of their time): {} may be of another program, and then the comparison says \
                 nothing.",
                Percent(share),
                recording.trace
            ));
        }
        let times = self.changed_ns.filter(|_| is_same_unit);
        self.against = Some(Recording {
            error: times.map(error),
            is_inside: times.map(is_inside),
            same_kernels,
            ..recording
        });
    }
}

/// Traces whose kernels have less of their time in common may be of two programs.
const SAME_PROGRAM_SHARE: f64 = 0.5;

/// Returns the share of the time of kernels that those have which are in both runs, of the run where that is greater.
fn same_kernels(a: &BTreeMap<String, i64>, b: &BTreeMap<String, i64>) -> Option<f64> {
    let share = |of: &BTreeMap<String, i64>, other: &BTreeMap<String, i64>| {
        let all_ns = of.values().copied().fold(0, i64::saturating_add);
        let same = of.iter().filter(|(name, _)| other.contains_key(*name));
        let same_ns = same.fold(0i64, |sum, (_, ns)| sum.saturating_add(*ns));
        (all_ns > 0).then(|| ratio(same_ns, all_ns))
    };
    Some(share(a, b)?.max(share(b, a)?))
}

/// An interval of gains.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, JsonSchema)]
pub struct Gain {
    /// The least.
    pub low: f64,
    /// The greatest.
    pub high: f64,
}

/// The numbers of relations between pieces of a run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Edges {
    /// Those that the trace has: launches, dependencies, waits for a known queue or device, and arrivals of ranks at collectives.
    pub recorded: u64,
    /// Those that times alone tell: what other waits waited for, and threads that wait for each other.
    pub guessed: u64,
}
