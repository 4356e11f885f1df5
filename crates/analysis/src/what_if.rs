//! Predicts what a change to a program would bring: replays the recorded run with some of its times or waits changed.
//!
//! A timeline goes in with a window and [`Change`]s; an [`Answer`] comes out: how long a step takes now and then, as an interval, and
//! what would hold the run then. `recorded.rs` says what waits for what, and `replay.rs` runs it again. Ranks of a distributed program are
//! replayed together, joined at their collectives (`collectives.rs`).
//!
//! The interval is that of all replays that the trace leaves open ([`Choices`]): with recorded or usual delays, with and without what
//! is only guessed, with the times of code that its samples leave open, and with each rank's clock wrong by its error. A margin is added
//! for what no trace has, as measured on a GPU. Where a trace cannot know the answer, the answer says so by name, and what to record
//! ([`Refusal`]).
//!
//! A replay cannot know kernels that change because of the change (fused, of another shape, slower beside others), nor how a
//! device's clock answers to more or less work.

mod answer;
mod change;
mod collectives;
mod effects;
mod extent;
pub mod gains;
mod host_parts;
mod path;
mod rank_part;
mod recorded;
mod refusal;
mod replay;
mod runs;
mod slack;
mod times;

pub use answer::{Answer, Edges, Gain, Recording};
pub use change::{Change, FORMS};
pub use extent::Extent;
pub use path::PathPart;
pub use rank_part::RankPart;
pub use refusal::Refusal;
pub use runs::RankRun;
pub use slack::KernelSlack;
pub use times::Times;

use crate::gaps::GapFinder;
use change::To;
use collectives::{Arrival, Collectives};
use effects::Effects;
use gapscope_timeline::intervals::Interval;
use gapscope_timeline::quantity::ratio;
use gapscope_timeline::thresholds::ADVICE_SHARE;
use gapscope_trace::parallel;
use path::Lever;
use replay::{Choices, Replayed};
use runs::Run;
use slack::LongKernel;
use std::collections::BTreeMap;

/// A run that can be replayed under changes. It is laid out once for many questions.
pub struct WhatIf<'f, 'a> {
    /// The run of a process, or those of ranks.
    runs: Vec<Run<'f, 'a>>,
    collectives: Collectives,
    steps: Option<u64>,
    /// The length of the median step.
    median_ns: Option<i64>,
    refused: Vec<Refusal>,
    pooled_error: Option<f64>,
    /// The choices that the trace leaves besides [`Choices::RECORDED`], each with the length of its replay of nothing changed.
    choices: Vec<(Choices, i64)>,
}

/// A changed run: what the changes do to each rank, and its replay with everything as the trace has it.
struct Predicted {
    effects: Vec<Effects>,
    replayed: KeptReplay,
}

/// A replay whose times were kept, by run, with the last arrivals at its collectives.
struct KeptReplay(Vec<Replayed>, Vec<Arrival>);

/// The most moments that are replayed: of a longer run its first part.
const MAX_MOMENTS: usize = 1 << 22;

impl<'f, 'a> WhatIf<'f, 'a> {
    /// Lays out a part of a run.
    pub fn new(finder: &'f GapFinder<'a>, extent: Extent) -> WhatIf<'f, 'a> {
        WhatIf::with_most_moments(finder, extent, MAX_MOMENTS)
    }

    /// Lays out a part of a run, of a long one so much from its start that it has about `most` moments.
    fn with_most_moments(finder: &'f GapFinder<'a>, extent: Extent, most: usize) -> WhatIf<'f, 'a> {
        let run = Run::new(finder, extent.window, most);
        WhatIf::of_runs(vec![run], extent, Vec::new())
    }

    /// Lays out the ranks of a distributed program as one run: the time from the first of their extents to the last. `refused` are the reasons
    /// why they cannot be joined.
    pub fn of_ranks(ranks: &[RankRun<'f, 'a>], refused: Vec<Refusal>) -> WhatIf<'f, 'a> {
        let windows = ranks.iter().map(|rank| rank.extent.window);
        let window = windows.reduce(Interval::hull).unwrap_or_default();
        let runs = Run::of_ranks(ranks, window, MAX_MOMENTS);
        let first = ranks.first().map(|rank| rank.extent);
        let steps = first.and_then(|extent| extent.steps);
        let is_same = ranks.iter().all(|rank| rank.extent.steps == steps);
        let extent = Extent {
            window,
            steps: steps.filter(|_| is_same),
            median_ns: first.and_then(|extent| extent.median_ns),
        };
        WhatIf::of_runs(runs, extent, refused)
    }

    fn of_runs(
        runs: Vec<Run<'f, 'a>>,
        extent: Extent,
        mut refused: Vec<Refusal>,
    ) -> WhatIf<'f, 'a> {
        let recorded: Vec<_> = runs.iter().map(|run| &run.recorded).collect();
        let collectives = Collectives::new(&recorded).unwrap_or_else(|problem| {
            refused.push(Refusal::of_order(problem));
            Collectives::default()
        });
        let mut whole = WhatIf {
            runs,
            collectives,
            steps: extent.steps,
            median_ns: extent.median_ns,
            refused,
            pooled_error: None,
            choices: Vec::new(),
        };
        let is_joined = whole.refused.is_empty();
        let of_trace = whole.of_each_run(|run| {
            let is_of_ranks = (is_joined || run.rank.is_none()).then_some(run.rank.is_some());
            refusal::of_trace(run.timeline(), &run.recorded, is_of_ranks)
        });
        whole.refused.extend(of_trace);
        let recorded_ns = whole.recorded_ns();
        // Runs that were not joined cannot be replayed together.
        if recorded_ns > 0 && (whole.runs.len() == 1 || !whole.collectives.order.is_empty()) {
            let unchanged = whole.unchanged();
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
        let unknown = whole.of_each_run(|run| refusal::of_unknown(&run.recorded));
        whole.refused.extend(refusal::of_replay(whole.pooled_error));
        whole.refused.extend(unknown);
        whole
    }

    /// Returns refusals of all runs, each with its rank.
    fn of_each_run(&self, refusals: impl Fn(&Run) -> Vec<Refusal>) -> Vec<Refusal> {
        let each = self.runs.iter().flat_map(|run| {
            let refusals = refusals(run).into_iter();
            refusals.map(|refusal| (run.rank, refusal))
        });
        refusal::of_each_rank(each.collect())
    }

    /// Answers what changes would bring together.
    ///
    /// # Errors
    /// A sentence without a full stop, where a change is about nothing in the run.
    pub fn answer(&self, changes: &[Change]) -> Result<Answer, String> {
        let (mut answer, run) = self.predicted(changes)?;
        answer.kernels = self.kernels();
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
        refused.extend(
            self.of_each_run(|run| refusal::of_changes(&run.recorded, &run.changed_by(changes))),
        );
        let mut answer = Answer {
            changes: changes.iter().map(|change| change.text.clone()).collect(),
            ranks: self.runs.iter().filter_map(|run| run.rank).collect(),
            steps: self.steps(),
            window: self.window(),
            recorded_ns: self.of_step(self.recorded_ns()),
            median_step_ns: self.steps().and(self.median_ns),
            pooled_error: self.pooled_error,
            changed_ns: None,
            gain: None,
            path: Vec::new(),
            slack: Vec::new(),
            edges: self.edges(),
            refused,
            against: None,
            notes: self.notes(),
            kernels: BTreeMap::new(),
        };
        if !answer.refused.is_empty() {
            return Ok((answer, None));
        }
        let (replayed, times) = self.changed(&effects);
        let hand_overs = (self.runs.iter()).any(|run| run.recorded.facts.guessed_hand_overs > 0);
        answer
            .refused
            .extend(refusal::of_interval(answer.recorded_ns, times, hand_overs));
        let overlaps = self.runs.iter().zip(&replayed.0);
        let overlaps = overlaps.filter_map(|(run, replayed)| {
            let overlapped_ns = path::overlapped_ns(run.timeline(), &run.recorded, replayed);
            Some((run.rank, refusal::of_overlap(&run.recorded, overlapped_ns)?))
        });
        answer
            .refused
            .extend(refusal::of_each_rank(overlaps.collect()));
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

    /// Returns what no change does to each run.
    fn unchanged(&self) -> Vec<Effects> {
        let runs = self.runs.iter();
        runs.map(|run| Effects::none_on(&run.recorded)).collect()
    }

    /// Returns what changes do to each run.
    fn effects(&self, changes: &[Change]) -> Result<Vec<Effects>, String> {
        let mut effects = self.unchanged();
        for run in &self.runs {
            let changes = run.changed_by(changes).into_iter();
            if changes.filter(|change| change.is_of_host()).count() > 1 {
                let problem = "`host`, `cause` and `code` are about the same time: ask about one of them at a time";
                return Err(problem.to_owned());
            }
        }
        for change in changes {
            let mut problem = Some(match (change.rank, self.runs[0].rank) {
                (Some(rank), None) => format!(
                    "`{}` is about rank {rank}, and the trace is of one process: ask about the folder of all ranks",
                    change.text
                ),
                (rank, _) => format!("the run has no rank {}", rank.unwrap_or_default()),
            });
            let mut is_used = false;
            for (run, effects) in self.runs.iter().zip(&mut effects) {
                if run.changed_by(std::slice::from_ref(change)).is_empty() {
                    continue;
                }
                let parts = |target: &_| host_parts::find(run.finder, &run.recorded, target);
                match effects.add(run.timeline(), &run.recorded, change, parts) {
                    Ok(()) => is_used = true,
                    Err(other) => problem = Some(other),
                }
            }
            // Of several ranks, some may have nothing of what is changed.
            if let Some(problem) = problem.filter(|_| !is_used) {
                return Err(problem);
            }
        }
        Ok(effects)
    }

    /// Returns the replay with everything as the trace has it, and the times of a step by all replays.
    fn changed(&self, effects: &[Effects]) -> (KeptReplay, Times) {
        let recorded_ns = self.recorded_ns();
        let lengths = parallel::each(self.choices.clone(), |(choices, before_ns)| {
            // A replay of other delays is off by itself: what counts is by how much the change changes it.
            let after_ns = self.length_ns(effects, choices);
            let ratio = after_ns as f64 / before_ns.max(1) as f64;
            (recorded_ns as f64 * ratio).round() as i64
        });
        let sampled = effects::by_samples(effects).into_iter();
        let sampled = sampled.map(|effects| self.length_ns(&effects, Choices::RECORDED));
        let (replayed, arrivals) = self.replay(effects, Choices::RECORDED, true);
        let mid_ns = self.length_of(&replayed);
        let all = Vec::from_iter(lengths.into_iter().chain(sampled).chain([mid_ns]));
        let times = Times {
            low: self.of_step(all.iter().copied().min().unwrap_or(mid_ns)),
            mid: self.of_step(mid_ns),
            high: self.of_step(all.iter().copied().max().unwrap_or(mid_ns)),
        };
        (KeptReplay(replayed, arrivals), times)
    }

    /// Returns the critical path of a replay whose times were kept.
    ///
    /// A share alone would mislead where another path is nearly as long. The length of a run is convex in the time of each part: what it
    /// loses where the part is a little shorter, and gains where it is a little longer, are the least and the greatest share of the part over
    /// all paths that are as long.
    fn path(
        &self,
        effects: &[Effects],
        changed: &KeptReplay,
        kernels: &[LongKernel],
    ) -> Vec<PathPart> {
        const LITTLE: f64 = 0.01;
        let KeptReplay(replayed, arrivals) = changed;
        let length_ns = self.length_of(replayed);
        let longer_by = |rank: Option<u32>, lever: &Lever, factor: f64| {
            let effects = self.runs.iter().zip(effects);
            let effects = effects.map(|(run, effects)| match lever {
                _ if rank.is_some() && rank != run.rank => effects.clone(),
                Lever::Time(target) => {
                    effects.with_time(run.timeline(), target, To::Factor(factor))
                }
                Lever::Delay(delay) => effects.with_delay(*delay, factor),
            });
            let effects: Vec<Effects> = effects.collect();
            let ns = self.length_ns(&effects, Choices::RECORDED);
            ratio(ns.saturating_sub(length_ns), length_ns) / (factor - 1.0)
        };
        let mut parts = path::path(&self.runs, replayed, arrivals);
        let beside = self.beside_path(&parts, kernels);
        parts.extend(beside);
        let mut parts = parallel::each(parts, |mut part| {
            part.total_ns = self.of_step(part.total_ns);
            if let Some(lever) = part.lever() {
                let share = |factor| longer_by(part.rank, &lever, factor).clamp(0.0, 1.0);
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
        let facts = || self.runs.iter().map(|run| &run.recorded.facts);
        let has_guesses = facts().any(|facts| facts.guessed > facts.guessed_hand_overs);
        let has_hand_overs = facts().any(|facts| facts.guessed_hand_overs > 0);
        let both = |is_open: bool| match is_open {
            true => vec![true, false],
            false => vec![true],
        };
        let mut all = Vec::new();
        for pools in [false, true] {
            for guesses in both(has_guesses) {
                for hands_over in both(has_hand_overs) {
                    all.push(Choices {
                        pools,
                        guesses,
                        hands_over,
                        clock: None,
                    });
                }
            }
        }
        all.retain(|choices| *choices != Choices::RECORDED);
        let uncertain = self.runs.iter().zip(0..);
        let uncertain = uncertain.filter(|(run, _)| run.clock_error_ns > 0);
        all.extend(uncertain.flat_map(|(run, number)| {
            [-run.clock_error_ns, run.clock_error_ns].map(|error_ns| Choices {
                clock: Some((number, error_ns)),
                ..Choices::RECORDED
            })
        }));
        all
    }

    fn replay(
        &self,
        effects: &[Effects],
        choices: Choices,
        keeps: bool,
    ) -> (Vec<Replayed>, Vec<Arrival>) {
        let runs: Vec<_> = self.runs.iter().map(|run| &run.recorded).collect();
        replay::replay(&runs, &self.collectives, effects, choices, keeps)
    }

    fn length_ns(&self, effects: &[Effects], choices: Choices) -> i64 {
        self.length_of(&self.replay(effects, choices, false).0)
    }

    fn length_of(&self, replayed: &[Replayed]) -> i64 {
        let ends = replayed.iter().map(|replayed| replayed.end_ns);
        let end_ns = ends.max().unwrap_or(i64::MIN);
        end_ns.saturating_sub(self.window().start_ns)
    }

    /// Returns the part of the run that is replayed.
    fn window(&self) -> Interval {
        let runs = self.runs.iter().map(|run| &run.recorded);
        let windows = runs.map(|run| Interval::new(run.window.start_ns, run.end_ns));
        windows.reduce(Interval::hull).unwrap_or_default()
    }

    /// Returns the length of what is replayed.
    fn recorded_ns(&self) -> i64 {
        self.window().length_ns()
    }

    /// Returns what the replay rests on.
    fn edges(&self) -> Edges {
        let facts = self.runs.iter().map(|run| &run.recorded.facts);
        let recorded: u64 = facts.clone().map(|facts| facts.recorded).sum();
        Edges {
            recorded: recorded + self.collectives.arrivals(),
            guessed: facts.map(|facts| facts.guessed).sum(),
        }
    }

    /// Returns true where only the first part of the run is replayed.
    fn is_cut(&self) -> bool {
        self.runs.iter().any(|run| run.recorded.facts.is_cut)
    }

    /// Returns the number of steps; `None` where only a part of them is replayed.
    fn steps(&self) -> Option<u64> {
        self.steps.filter(|_| !self.is_cut())
    }

    fn of_step(&self, ns: i64) -> i64 {
        let steps = self.steps().unwrap_or(1).max(1);
        (ns as f64 / steps as f64).round() as i64
    }

    fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        if self.is_cut() {
            notes.push("The run is long: its first part is replayed.".to_owned());
        }
        notes
    }

    /// Returns what is not on a path, and may be on one that is as long: the host's code, and the kernels with the most time.
    fn beside_path(&self, path: &[PathPart], kernels: &[LongKernel]) -> Vec<PathPart> {
        let hosts = self.runs.iter();
        let hosts = hosts.map(|run| PathPart::beside(run.rank, "host-code", None));
        let kernels = kernels.iter();
        let kernels =
            kernels.map(|kernel| PathPart::beside(None, "kernel", Some(kernel.name.clone())));
        let is_on_path = |part: &PathPart| {
            let same_rank = |on: &PathPart| part.rank.is_none() || on.rank == part.rank;
            let mut path = path.iter();
            path.any(|on| on.what == part.what && on.name == part.name && same_rank(on))
        };
        let all = hosts.chain(kernels);
        all.filter(|part| !is_on_path(part)).collect()
    }
}
