//! Says what a blocked thread waited for, and which threads of its process ran meanwhile, from samples of stacks.
//!
//! Samples are of one moment: which of the threads that ran woke the sleeper is not known.

use super::idle_code::{RanMeanwhile, Sleep};
use super::{CodeSamples, most};
use crate::gaps::Cause;
use crate::stacks::text;
use crate::waited_for::WaitedFor;
use gapscope_timeline::host::HostThread;
use gapscope_timeline::intervals::Interval;
use gapscope_trace::ids::StackId;
use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// The samples of blocked threads by cause, and those of the threads that ran meanwhile.
#[derive(Debug, Default)]
pub(super) struct SleepSums {
    /// What a stack in a system call waits for: the answer for each that was met.
    kinds: HashMap<(Option<StackId>, Option<Arc<str>>), WaitedFor>,
    /// The number of samples by cause, what was waited for, and the system call.
    sleeps: HashMap<(Cause, WaitedFor, Option<Arc<str>>), u64>,
    /// The samples of other threads that ran; those that were counted, so that each counts once.
    ran: HashMap<HostThread, Ran>,
    counted: HashSet<u32>,
}

/// The samples in which a thread ran.
#[derive(Debug, Default)]
struct Ran {
    samples: u64,
    stacks: HashMap<StackId, u64>,
}

impl SleepSums {
    /// Counts the samples of `thread` in an interval with a cause, and those of the threads that ran while it was blocked.
    pub(super) fn add(
        &mut self,
        samples: &CodeSamples,
        cause: Cause,
        thread: HostThread,
        interval: Interval,
    ) {
        let table = samples.threads.table;
        let is_blocked = |row: u32| samples.is_blocked(row);
        let mut sleeps = false;
        for &row in samples.threads.sampled(thread, interval) {
            if !is_blocked(row) {
                continue;
            }
            sleeps = true;
            let at = row as usize;
            let (stack, call) = (table.stack.at(at), table.system_call[at].clone());
            let waited_for = match table.gil_holder.at(at) {
                Some(_) => WaitedFor::InterpreterLock,
                None => *(self.kinds.entry((stack, call.clone()))).or_insert_with(|| {
                    let frames = stack.map(|stack| samples.stacks.frames(stack));
                    WaitedFor::new(call.as_deref(), &frames.unwrap_or_default())
                }),
            };
            *self.sleeps.entry((cause, waited_for, call)).or_default() += 1;
        }
        if !sleeps {
            return;
        }
        for (other, rows) in samples.threads.others(thread, interval) {
            for &row in rows {
                let near = samples.threads.nearest(
                    thread,
                    table.time_ns[row as usize],
                    samples.period_ns(row),
                );
                if is_blocked(row) || !near.is_some_and(is_blocked) || !self.counted.insert(row) {
                    continue;
                }
                let ran = self.ran.entry(other).or_default();
                ran.samples += 1;
                if let Some(stack) = table.stack.at(row as usize) {
                    *ran.stacks.entry(stack).or_default() += 1;
                }
            }
        }
    }

    /// Returns what threads waited for in the time of a cause, the most frequent first.
    pub(super) fn of_cause(&self, cause: Cause) -> Vec<Sleep> {
        let of_cause = self.sleeps.iter().filter(|((of, ..), _)| *of == cause);
        let mut sleeps: Vec<Sleep> = of_cause
            .map(|((_, waited_for, system_call), samples)| Sleep {
                waited_for: *waited_for,
                system_call: system_call.as_deref().map(str::to_owned),
                samples: *samples,
            })
            .collect();
        sleeps.sort_by(|a, b| {
            let order = |sleep: &Sleep| (Reverse(sleep.samples), sleep.waited_for);
            (order(a), &a.system_call).cmp(&(order(b), &b.system_call))
        });
        sleeps
    }

    /// Returns the threads that ran while a submitting thread was blocked, those with the most samples first.
    pub(super) fn ran(&self, samples: &CodeSamples) -> Vec<RanMeanwhile> {
        let manifest = &samples.timeline.trace.manifest;
        let mut ran: Vec<RanMeanwhile> = (self.ran.iter())
            .map(|(thread, ran)| RanMeanwhile {
                process_id: thread.process,
                thread: thread.thread,
                thread_name: thread.name(manifest),
                samples: ran.samples,
                frames: most(&ran.stacks)
                    .map(|stack| samples.stacks.frames(stack))
                    .unwrap_or_default(),
            })
            .collect();
        ran.sort_by_cached_key(|ran| (Reverse(ran.samples), ran.thread, text(&ran.frames)));
        ran
    }
}
