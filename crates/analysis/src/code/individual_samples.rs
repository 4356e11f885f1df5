//! Lists the samples that belong to idle time one by one, for drawing on a timeline, and the line of code that
//! represents each stack.

use super::{ALL_GAPS, CodeSamples, CodeSums, IdlePart, each_idle_part, own};
use crate::gaps::{Cause, GapFinder};
use crate::stacks::{line_text, text_of_line};
use gapscope_trace::ids::{LabelId, StackId};
use schemars::JsonSchema;
use serde::Serialize;
use std::cmp::Reverse;
use std::collections::HashMap;

/// The reason why a sample belongs to idle time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SampleRole {
    /// The sample is of the submitting thread, and stands for a part of the idle time.
    Sampled,
    /// A hook took the sample from the submitting thread at a call; no share of time is derived from it.
    Exact,
    /// The sample is of a worker process for which the submitting thread waited; no share of time is derived from it.
    Worker,
}

/// A sample in a gap. A sample in the gaps of several devices appears several times.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct IdleSample {
    /// The sample's row in the table `samples`.
    pub row: u32,
    /// The device's index in [`gapscope_timeline::Timeline::gpus`].
    pub device: u32,
    /// The cause for which the device was idle at the time of the sample.
    pub cause: Cause,
    /// The reason why the sample belongs to this gap.
    pub role: SampleRole,
    /// The idle time that the sample stands for, 0 where no share of time is derived from it. The weights of a cause
    /// sum to the part of its time that samples cover.
    pub weight_ns: f64,
    /// The id of the label of the work that ended the gap; `None` for work without a label.
    pub label: Option<LabelId>,
}

/// How much of a cause's idle time has samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(rename = "SampledCause")]
pub struct IdleCause {
    /// The cause.
    pub cause: Cause,
    /// Its idle time that belongs to a submitting thread.
    pub total_ns: i64,
    /// The part of it for which no samples stand.
    pub without_samples_ns: i64,
    /// Samples in it that stand for a part of the time.
    pub samples: u64,
}

/// A line of code that represents stacks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(rename = "CodeLine")]
pub struct StackLine {
    /// `train.py:41 load_batch > resize, crop and 3 more`.
    pub text: String,
    /// Row of its frame in the table `frames`.
    pub frame: u32,
}

/// The stacks of one line.
struct LineStacks {
    /// The row of the line's frame in the table `frames`.
    frame: u32,
    /// The stacks, with their numbers of samples.
    stacks: Vec<(Reverse<u64>, StackId)>,
}

impl CodeSamples<'_> {
    /// Returns the samples in all gaps, device after device and in order of gaps, and the causes that have idle time.
    pub fn idle(&self, finder: &GapFinder) -> (Vec<IdleSample>, Vec<IdleCause>) {
        let mut found = Vec::new();
        let mut sum = CodeSums::default();
        let (window, threshold_ns) = ALL_GAPS;
        each_idle_part(finder, window, threshold_ns, |part| {
            let &IdlePart {
                thread,
                interval,
                cause,
                ..
            } = part;
            let label = self.timeline.label_of(part.after);
            let mut push = |row, role, weight_ns| {
                found.push(IdleSample {
                    row,
                    device: part.device as u32,
                    cause,
                    role,
                    weight_ns,
                    label,
                });
            };
            let of_cause = &mut sum.causes[cause as usize];
            of_cause.total_ns = of_cause.total_ns.saturating_add(interval.length_ns());
            for &row in self.threads.sampled(thread, interval) {
                let period_ns = self.period_ns(row);
                of_cause.add_sample(period_ns);
                push(row, SampleRole::Sampled, period_ns as f64);
            }
            for &row in self.threads.exact(thread, interval) {
                push(row, SampleRole::Exact, 0.0);
            }
            for &row in self.threads.workers(interval) {
                if self.waits_at(thread, row) {
                    push(row, SampleRole::Worker, 0.0);
                }
            }
        });
        let factors = sum.causes.map(|cause| match cause.represented_ns {
            0 => 0.0,
            represented_ns => super::covered_ns(&cause) as f64 / represented_ns as f64,
        });
        for sample in &mut found {
            sample.weight_ns *= factors[sample.cause as usize];
        }
        let causes = Cause::ALL.into_iter().zip(sum.causes);
        let causes = causes.filter(|(_, sum)| sum.total_ns > 0);
        let causes = causes.map(|(cause, sum)| IdleCause {
            cause,
            total_ns: sum.total_ns,
            without_samples_ns: sum.total_ns - super::covered_ns(&sum),
            samples: sum.samples,
        });
        (found, causes.collect())
    }

    /// Returns the lines that represent the stacks of samples, then for each row of the table `stacks` the index of
    /// its line, or `None` for a stack without samples.
    pub fn lines(&self) -> (Vec<StackLine>, Vec<Option<u32>>) {
        let tables = &self.timeline.trace.tables;
        let mut samples: HashMap<StackId, u64> = HashMap::new();
        for stack in tables.samples.stack.iter().flatten() {
            *samples.entry(stack).or_default() += 1;
        }
        let mut of_stack = vec![None; tables.stacks.id.len()];
        let mut lines: Vec<LineStacks> = Vec::new();
        let mut known: HashMap<String, u32> = HashMap::new();
        for (row, id) in tables.stacks.id.iter().enumerate() {
            // Stacks that only are parts of others have no sample.
            let Some(samples) = samples.get(id) else {
                continue;
            };
            let rows: Vec<usize> = self.stacks.frame_rows(*id).collect();
            let frames: Vec<_> = rows.iter().map(|row| self.stacks.frame(*row)).collect();
            let Some(own) = own(&frames) else { continue };
            let next = lines.len() as u32;
            let line = *known.entry(line_text(&frames)).or_insert(next);
            if line == next {
                lines.push(LineStacks {
                    frame: rows[own] as u32,
                    stacks: Vec::new(),
                });
            }
            lines[line as usize].stacks.push((Reverse(*samples), *id));
            of_stack[row] = Some(line);
        }
        let lines = lines.into_iter().map(|mut line| {
            line.stacks.sort_unstable();
            let stacks = line.stacks.iter().map(|(_, id)| self.stacks.frames(*id));
            let stacks: Vec<_> = stacks.collect();
            let stacks: Vec<_> = stacks.iter().map(Vec::as_slice).collect();
            StackLine {
                text: text_of_line(&stacks),
                frame: line.frame,
            }
        });
        (lines.collect(), of_stack)
    }

    /// Returns the stack of a sample without the recording's own frames at the innermost end.
    pub fn program(&self, stack: StackId) -> Option<StackId> {
        self.stacks.program(stack)
    }

    /// Returns a frame by its row in the table `frames`.
    pub fn frame(&self, row: usize) -> super::CodeFrame {
        self.stacks.frame(row)
    }
}
