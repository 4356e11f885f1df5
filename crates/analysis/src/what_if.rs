//! Predicts what a change to a program would bring: replays the recorded run with some of its times or waits changed.
//!
//! A timeline goes in with a window and [`Change`]s; an [`Answer`] comes out: how long a step takes now and then, as an interval, and
//! what would hold the run then. `recorded.rs` says what waits for what, and `replay.rs` runs it again.
//!
//! The interval is that of all replays that the trace leaves open ([`Choices`]): with recorded or usual delays, with and without what
//! is only guessed, and with the times of code that its samples leave open. A margin is added for what no trace has, as measured on a
//! GPU. Where a trace cannot know the answer, the answer says so by name, and what to record ([`Refusal`]).
//!
//! A replay cannot know kernels that change because of the change (fused, of another shape, slower beside others), nor how a
//! device's clock answers to more or less work.

mod change;
mod effects;
mod extent;
pub mod gains;
mod host_parts;
mod path;
mod recorded;
mod refusal;
mod replay;
mod slack;

pub use change::{Change, FORMS};
pub use extent::Extent;
pub use path::PathPart;
pub use refusal::Refusal;
pub use slack::KernelSlack;
use slack::LongKernel;

use crate::gaps::GapFinder;
use change::To;
use effects::Effects;
use gapscope_timeline::Timeline;
use gapscope_timeline::intervals::Interval;
use gapscope_timeline::quantity::ratio;
use gapscope_timeline::thresholds::ADVICE_SHARE;
use gapscope_trace::parallel;
use path::Lever;
use recorded::Recorded;
use replay::{Choices, Replayed};
use schemars::JsonSchema;
use serde::Serialize;

/// What a change would bring. Times are those of a step, or of the whole part of the run where no steps are known.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Answer {
    /// The changes, as they were asked for.
    pub changes: Vec<String>,
    /// The number of steps that were replayed; null where the times are those of the whole part of the run.
    pub steps: Option<u64>,
    /// The part of the run that was replayed.
    pub window: Interval,
    /// How long a step took.
    pub recorded_ns: i64,
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
}

impl Recording {
    /// Takes the times of a run, measured as those of a predicted one are.
    pub fn new(trace: String, run: &WhatIf) -> Recording {
        Recording {
            trace,
            recorded_ns: run.of_step(run.recorded.length_ns()),
            error: None,
            is_inside: None,
            steps: run.steps(),
        }
    }
}

impl Answer {
    /// Returns the share of the time that the change would save with everything as the trace has it; `None` where the answer is refused.
    pub fn mid_gain(&self) -> Option<f64> {
        self.changed_ns.map(|times| self.gain_at(times.mid))
    }

    /// Returns the share of the time that is saved where a step takes `ns`.
    fn gain_at(&self, ns: i64) -> f64 {
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
        let times = self.changed_ns.filter(|_| is_same_unit);
        self.against = Some(Recording {
            error: times.map(error),
            is_inside: times.map(is_inside),
            ..recording
        });
    }
}

/// An interval of times.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Times {
    /// The least.
    pub low: i64,
    /// With everything as the trace has it.
    pub mid: i64,
    /// The greatest.
    pub high: i64,
}

/// What no trace has changes a run, too: kernels take another time beside others and after pauses, waits return earlier or later, and
/// code of the host is slower when it has not run for a while. docs/accuracy.md has the pairs of runs on a GPU by which this is measured.
/// The first is a share of what the change saves, the second one of the changed time.
const MARGIN_OF_GAIN: f64 = 0.05;
const MARGIN_OF_TIME: f64 = 0.04;

impl Times {
    /// Widens the interval by what replays cannot know, for a change to a step that took `recorded_ns`. Without a gain nothing is added,
    /// and by itself the margin never turns a gain into a loss.
    fn with_margin(self, recorded_ns: i64) -> Times {
        let margin = |ns: i64| {
            let gain = recorded_ns.abs_diff(ns) as f64;
            let margin = MARGIN_OF_GAIN * gain + (MARGIN_OF_TIME * ns as f64).min(gain);
            margin.min(gain).round() as i64
        };
        Times {
            low: self.low.saturating_sub(margin(self.low)).max(0),
            mid: self.mid,
            high: self.high.saturating_add(margin(self.high)),
        }
    }
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
    /// Those that the trace has: launches, dependencies, and waits for a known queue or device.
    pub recorded: u64,
    /// Those that times alone tell: what other waits waited for, and threads that wait for each other.
    pub guessed: u64,
}

/// A run that can be replayed under changes. It is laid out once for many questions.
pub struct WhatIf<'f, 'a> {
    timeline: &'a Timeline<'a>,
    finder: &'f GapFinder<'a>,
    recorded: Recorded,
    extent: Extent,
    refused: Vec<Refusal>,
    pooled_error: Option<f64>,
    /// The choices that the trace leaves besides [`Choices::RECORDED`], each with the length of its replay of nothing changed.
    choices: Vec<(Choices, i64)>,
}

/// A changed run: what the changes do, and its replay with everything as the trace has it.
struct Predicted {
    effects: Effects,
    replayed: Replayed,
}

/// The most moments that are replayed: of a longer run its first part.
const MAX_MOMENTS: usize = 1 << 22;

impl<'f, 'a> WhatIf<'f, 'a> {
    /// Lays out a part of a run.
    pub fn new(finder: &'f GapFinder<'a>, extent: Extent) -> WhatIf<'f, 'a> {
        WhatIf::with_most_moments(finder, extent, MAX_MOMENTS)
    }

    /// Lays out a part of a run, of a long one so much from its start that it has about `most` moments.
    fn with_most_moments(finder: &'f GapFinder<'a>, extent: Extent, most: usize) -> WhatIf<'f, 'a> {
        let timeline = finder.timeline();
        let recorded = Recorded::new(timeline, finder.explainer.order(), extent.window, most);
        let mut whole = WhatIf {
            timeline,
            finder,
            refused: refusal::of_trace(timeline, &recorded),
            recorded,
            extent,
            pooled_error: None,
            choices: Vec::new(),
        };
        let recorded_ns = whole.recorded.length_ns();
        if recorded_ns > 0 {
            let unchanged = Effects::default();
            whole.choices = parallel::each(whole.open_choices(), |choices| {
                (choices, whole.length_ns(&unchanged, choices))
            });
            let pooled = whole
                .choices
                .iter()
                .find(|(choices, _)| choices.is_pooled());
            whole.pooled_error = pooled.map(|(_, replayed_ns)| {
                replayed_ns.saturating_sub(recorded_ns) as f64 / recorded_ns as f64
            });
        }
        let untrue = refusal::of_replay(&whole.recorded, whole.pooled_error);
        whole.refused.extend(untrue);
        whole
    }

    /// Answers what changes would bring together.
    ///
    /// # Errors
    /// A sentence without a full stop, where a change is about nothing in the run.
    pub fn answer(&self, changes: &[Change]) -> Result<Answer, String> {
        let (mut answer, run) = self.predicted(changes)?;
        if let Some(Predicted { effects, replayed }) = run {
            let kernels = self.longest_kernels();
            answer.path = self.path(&effects, &replayed, &kernels);
            answer.slack = self.slack(&effects, &replayed, &answer.path, kernels);
        }
        Ok(answer)
    }

    /// Returns an answer without path and slack, which take most of the replays; and the changed run, unless the answer is refused.
    fn predicted(&self, changes: &[Change]) -> Result<(Answer, Option<Predicted>), String> {
        let effects = self.effects(changes)?;
        let mut refused = self.refused.clone();
        refused.extend(refusal::of_changes(&self.recorded, changes));
        let mut answer = Answer {
            changes: changes.iter().map(|change| change.text.clone()).collect(),
            steps: self.steps(),
            window: self.window(),
            recorded_ns: self.of_step(self.recorded.length_ns()),
            pooled_error: self.pooled_error,
            changed_ns: None,
            gain: None,
            path: Vec::new(),
            slack: Vec::new(),
            edges: Edges {
                recorded: self.recorded.facts.recorded,
                guessed: self.recorded.facts.guessed,
            },
            refused,
            against: None,
            notes: self.notes(),
        };
        if !answer.refused.is_empty() {
            return Ok((answer, None));
        }
        let (replayed, times) = self.changed(&effects);
        let overlapped_ns = path::overlapped_ns(self.timeline, &self.recorded, &replayed);
        let refused = refusal::of_interval(answer.recorded_ns, times)
            .into_iter()
            .chain(refusal::of_overlap(&self.recorded, overlapped_ns));
        answer.refused.extend(refused);
        if !answer.refused.is_empty() {
            return Ok((answer, None));
        }
        let times = times.with_margin(answer.recorded_ns);
        answer.gain = Some(Gain {
            low: answer.gain_at(times.high),
            high: answer.gain_at(times.low),
        });
        answer.changed_ns = Some(times);
        Ok((answer, Some(Predicted { effects, replayed })))
    }

    /// Returns the length of the replay under changes with everything as the trace has it, also where an answer is refused.
    ///
    /// # Errors
    /// As [`WhatIf::answer`].
    pub fn replayed_ns(&self, changes: &[Change]) -> Result<i64, String> {
        let effects = self.effects(changes)?;
        Ok(self.length_ns(&effects, Choices::RECORDED))
    }

    fn effects(&self, changes: &[Change]) -> Result<Effects, String> {
        Effects::new(self.timeline, &self.recorded, changes, |target| {
            host_parts::find(self.finder, &self.recorded, target)
        })
    }

    /// Returns the replay with everything as the trace has it, and the times of a step by all replays.
    fn changed(&self, effects: &Effects) -> (Replayed, Times) {
        let recorded_ns = self.recorded.length_ns();
        let lengths = parallel::each(self.choices.clone(), |(choices, before_ns)| {
            // A replay of other delays is off by itself: what counts is by how much the change changes it.
            let after_ns = self.length_ns(effects, choices);
            let ratio = after_ns as f64 / before_ns.max(1) as f64;
            (recorded_ns as f64 * ratio).round() as i64
        });
        let sampled = effects.by_samples().into_iter();
        let sampled = sampled.map(|effects| self.length_ns(&effects, Choices::RECORDED));
        let kept = self.recorded.replay(effects, Choices::RECORDED, true);
        let mid_ns = self.length_of(&kept);
        let all = Vec::from_iter(lengths.into_iter().chain(sampled).chain([mid_ns]));
        let times = Times {
            low: self.of_step(all.iter().copied().min().unwrap_or(mid_ns)),
            mid: self.of_step(mid_ns),
            high: self.of_step(all.iter().copied().max().unwrap_or(mid_ns)),
        };
        (kept, times)
    }

    /// Returns the critical path of a replay whose times were kept.
    ///
    /// A share alone would mislead where another path is nearly as long. The length of a run is convex in the time of each part: what it
    /// loses where the part is a little shorter, and gains where it is a little longer, are the least and the greatest share of the part over
    /// all paths that are as long.
    fn path(&self, effects: &Effects, changed: &Replayed, kernels: &[LongKernel]) -> Vec<PathPart> {
        const LITTLE: f64 = 0.01;
        let length_ns = self.length_of(changed);
        let longer_by = |lever: &Lever, factor: f64| {
            let effects = match lever {
                Lever::Time(target) => effects.with_time(self.timeline, target, To::Factor(factor)),
                Lever::Delay(delay) => effects.with_delay(*delay, factor),
            };
            let ns = self.length_ns(&effects, Choices::RECORDED);
            ratio(ns.saturating_sub(length_ns), length_ns) / (factor - 1.0)
        };
        let mut parts = path::path(self.timeline, &self.recorded, changed);
        let beside = beside_path(&parts, kernels);
        parts.extend(beside);
        let mut parts = parallel::each(parts, |mut part| {
            part.total_ns = self.of_step(part.total_ns);
            if let Some(lever) = part.lever() {
                let share = |factor| longer_by(&lever, factor).clamp(0.0, 1.0);
                part.low = Some(share(1.0 - LITTLE).min(part.share));
                part.high = Some(share(1.0 + LITTLE).max(part.share));
            }
            part
        });
        let counts = |share: Option<f64>| share.is_none_or(|share| share >= ADVICE_SHARE);
        parts.retain(|part| part.total_ns > 0 || counts(part.high));
        parts
    }

    /// Returns the choices that the trace leaves, besides [`Choices::RECORDED`].
    fn open_choices(&self) -> Vec<Choices> {
        let facts = &self.recorded.facts;
        let both = |is_open: bool| match is_open {
            true => vec![true, false],
            false => vec![true],
        };
        let mut all = Vec::new();
        for pools in [false, true] {
            for guesses in both(facts.guessed > facts.hand_overs) {
                for hands_over in both(facts.hand_overs > 0) {
                    all.push(Choices {
                        pools,
                        guesses,
                        hands_over,
                    });
                }
            }
        }
        all.retain(|choices| *choices != Choices::RECORDED);
        all
    }

    fn length_ns(&self, effects: &Effects, choices: Choices) -> i64 {
        self.length_of(&self.recorded.replay(effects, choices, false))
    }

    fn length_of(&self, replayed: &Replayed) -> i64 {
        let start_ns = self.recorded.window.start_ns;
        replayed.end_ns.saturating_sub(start_ns)
    }

    /// Returns the part of the run that is replayed.
    fn window(&self) -> Interval {
        Interval::new(self.recorded.window.start_ns, self.recorded.end_ns)
    }

    /// Returns the number of steps; `None` where only a part of them is replayed.
    fn steps(&self) -> Option<u64> {
        self.extent.steps.filter(|_| !self.recorded.facts.is_cut)
    }

    fn of_step(&self, ns: i64) -> i64 {
        let steps = self.steps().unwrap_or(1).max(1);
        (ns as f64 / steps as f64).round() as i64
    }

    fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        if self.recorded.facts.is_cut {
            notes.push("The run is long: its first part is replayed.".to_owned());
        }
        notes
    }
}

/// Returns what is not on a path, and may be on one that is as long: the host's code, and the kernels with the most time.
fn beside_path(path: &[PathPart], kernels: &[LongKernel]) -> Vec<PathPart> {
    let kernels = kernels.iter();
    let kernels = kernels.map(|kernel| PathPart::beside("kernel", Some(kernel.name.clone())));
    let all = [PathPart::beside("host-code", None)].into_iter();
    let is_on_path = |part: &PathPart| {
        let mut path = path.iter();
        path.any(|on| on.what == part.what && on.name == part.name)
    };
    all.chain(kernels)
        .filter(|part| !is_on_path(part))
        .collect()
}
