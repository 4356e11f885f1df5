//! Finds the steps of a program (the iterations of its loop), splits the time of each into the parts of the verdict, and says which
//! are slow and why.
//!
//! Steps come from ranges that are called like one (`markers.rs`), or else from launches that repeat (`launches.rs`). Where neither
//! tells them, there are none. The times of a step are those of its range; of ranges on a device, and of repeating launches, a step
//! goes from the end of the one before to its own end, since a pause belongs to the work that ends it.
//!
//! The parts are those of the verdict ([`crate::verdict`]), over all devices: the parts of all steps that are not in the warm-up,
//! and of the time outside of them, sum to the parts of the verdict. `sums.rs` adds them up in one walk over the work and the gaps,
//! and `slow.rs` compares slow steps with the median one.
//!
//! What this cannot know: which work belongs to which step. A program that submits ahead has the device run the work of one step in
//! the range of a later one, which the summary says.

mod launches;
mod markers;
mod slow;
mod sums;
mod words;

pub use slow::slow_text;
pub(crate) use sums::StepSums;

use crate::gaps::Cause;
use gapscope_timeline::Timeline;
use gapscope_timeline::intervals::Interval;
use gapscope_trace::ids::{ProcessId, ThreadId};
use schemars::JsonSchema;
use serde::Serialize;

/// The most steps that are told: a loop that turns more often has launches for steps.
const MAX_STEPS: usize = 1 << 17;

/// A step of the program: an iteration of its loop.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
pub struct Step {
    /// Its number: the one in its label or in the value of that, or else its place among all, from 1 on.
    pub number: u64,
    /// When it began.
    pub start_ns: i64,
    /// How long it lasted.
    pub duration_ns: i64,
    /// It began in the warm-up, or outside of the window that was asked for: the median and the sums leave it out.
    pub is_left_out: bool,
    /// It is longer than [`STEP_SLOW`](gapscope_timeline::thresholds::STEP_SLOW) times the median step, and by more than steps usually differ.
    pub is_slow: bool,
    /// The device time in it: its time within the program's work, once for each device, without idle time that the recording itself
    /// caused.
    pub window_ns: i64,
    /// The parts of that time, the largest first; they sum to it.
    pub parts: Vec<StepPart>,
    /// The idle time in it by cause, the greatest first.
    pub idle: Vec<StepIdle>,
    /// Why a slow step took longer than the median one, without a full stop. Absent where no part of its time grew enough.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub because: Option<String>,
}

/// A part of the device time of a step.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct StepPart {
    /// Where the time went, by the names of the verdict's parts.
    pub what: &'static str,
    /// How much.
    pub total_ns: i64,
    /// Of the device time.
    pub share: f64,
}

/// Idle time in a step.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct StepIdle {
    /// The cause.
    pub cause: Cause,
    /// Idle time of the cause.
    pub total_ns: i64,
}

/// The steps of a program together.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct StepSummary {
    /// How the steps were found.
    pub found_by: StepsFoundBy,
    /// The text of their label, `*` in place of numbers; absent where launches tell the steps.
    pub label: Option<String>,
    /// Id of the process whose steps they are.
    pub process_id: Option<ProcessId>,
    /// The system's id of the thread that set the label.
    pub thread: Option<ThreadId>,
    /// How they were found, and how sure that is, in sentences.
    pub found: String,
    /// The number of steps that are not left out: the median and the slow ones are of these.
    pub count: u64,
    /// The place of the median step in `steps`, from 0 on; of an even number the shorter of both in the middle.
    pub median: usize,
    /// The length of the median step.
    pub median_ns: i64,
    /// The places of the slow steps in `steps`, the slowest first.
    pub slow: Vec<usize>,
    /// The device time outside of all steps that are not left out.
    pub outside_ns: i64,
    /// Its parts, the largest first.
    pub outside: Vec<StepPart>,
    /// The median step, then how many are slow, in sentences.
    pub sentences: Vec<String>,
}

/// How steps were found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum StepsFoundBy {
    /// By ranges that are called like steps.
    Markers,
    /// By the period of launches: the same launches repeat.
    Launches,
}

/// The steps that were found, before their time is split.
#[derive(Debug)]
pub(crate) struct FoundSteps {
    by: StepsFoundBy,
    label: Option<String>,
    process_id: Option<ProcessId>,
    thread: Option<ThreadId>,
    /// How they were found, in sentences.
    found: String,
    /// The steps in order of time; none overlaps another.
    ranges: Vec<Interval>,
    /// The numbers that their labels say; empty where they say none.
    numbers: Vec<u64>,
}

impl FoundSteps {
    /// Finds the steps of a timeline; `None` where nothing tells them.
    pub(crate) fn new(timeline: &Timeline) -> Option<FoundSteps> {
        let found = markers::find(timeline).or_else(|| launches::find(timeline));
        let mut found = found.filter(|found| found.ranges.len() <= MAX_STEPS)?;
        found.leave_out_pauses(timeline);
        Some(found)
    }

    /// Takes times out of the steps of which the trace has nothing, as between two windows of a profiler. What lies before such a time in a
    /// step is the pause after the step before where the devices did nothing in it; else the step was cut, and is none.
    fn leave_out_pauses(&mut self, timeline: &Timeline) {
        let pauses = timeline.host_threads().not_recorded();
        if pauses.is_empty() {
            return;
        }
        let worked = |time: Interval| {
            timeline.gpus.iter().any(|gpu| {
                let works = &gpu.works;
                let from = works.partition_point(|work| work.interval.end_ns <= time.start_ns);
                let first = works.get(from);
                first.is_some_and(|work| work.interval.start_ns < time.end_ns)
            })
        };
        let mut keeps = vec![true; self.ranges.len()];
        for (range, keeps) in self.ranges.iter_mut().zip(&mut keeps) {
            let inside = (pauses.iter()).rfind(|pause| !pause.intersection(*range).is_empty());
            let Some(pause) = inside else { continue };
            let before = Interval::new(range.start_ns, pause.start_ns.max(range.start_ns));
            *keeps = !worked(before) && pause.end_ns < range.end_ns;
            range.start_ns = pause.end_ns.min(range.end_ns);
        }
        let mut kept = keeps.iter();
        self.ranges.retain(|_| kept.next().copied().unwrap_or(true));
        let mut kept = keeps.iter();
        self.numbers
            .retain(|_| kept.next().copied().unwrap_or(true));
    }
}
