//! Finds the calls of a process's threads that may have held up another of its threads, ordered by their returns.

use super::segment::{CallClass, HostThread, Segment, ThreadSegments, WaitOutcome};
use crate::intervals::Interval;
use gapscope_trace::ids::{ProcessId, ThreadId};
use rustc_hash::FxHashMap;

/// A finished call that another thread of its process may have waited for.
#[derive(Debug, Clone, Copy)]
pub struct Returned {
    /// The time from the call's start to its return. A wait that consists of polls starts with the first of them.
    pub interval: Interval,
    /// The class of the call: [`CallClass::Compile`], [`CallClass::Allocate`] or [`CallClass::Wait`].
    pub class: CallClass,
    /// The thread that made the call.
    thread: ThreadId,
}

/// The finished calls of each process that makes calls on several threads, in order of their ends.
#[derive(Debug, Default)]
pub(super) struct Returns(FxHashMap<ProcessId, Vec<Returned>>);

impl Returns {
    pub(super) fn new(threads: &FxHashMap<HostThread, ThreadSegments>) -> Returns {
        let mut counts: FxHashMap<ProcessId, u32> = FxHashMap::default();
        for thread in threads.keys() {
            *counts.entry(thread.process).or_default() += 1;
        }
        let mut returns: FxHashMap<ProcessId, Vec<Returned>> = FxHashMap::default();
        for (thread, calls) in threads {
            if counts[&thread.process] > 1 {
                let calls =
                    (calls.segments.iter()).filter_map(|call| returned(thread.thread, call));
                returns.entry(thread.process).or_default().extend(calls);
            }
        }
        for calls in returns.values_mut() {
            calls.sort_unstable_by_key(|call| {
                (call.interval.end_ns, call.interval.start_ns, call.thread)
            });
        }
        Returns(returns)
    }

    pub(super) fn has_several_threads(&self, process: ProcessId) -> bool {
        self.0.contains_key(&process)
    }

    /// Returns the calls of other threads of the process of `thread` that returned after the start of `window` and no
    /// later than its end.
    pub(super) fn on_others(
        &self,
        thread: HostThread,
        window: Interval,
    ) -> impl Iterator<Item = &Returned> {
        let all = self.0.get(&thread.process).map_or(&[][..], Vec::as_slice);
        let from = all.partition_point(|call| call.interval.end_ns <= window.start_ns);
        let after = all[from..].iter();
        after
            .take_while(move |call| call.interval.end_ns <= window.end_ns)
            .filter(move |call| call.thread != thread.thread)
    }
}

/// Returns the call of a segment where the segment ends the call and the call compiles, allocates, or waits for work
/// that is done or may be.
fn returned(thread: ThreadId, call: &Segment) -> Option<Returned> {
    let class = call.class();
    let is_over = match class {
        CallClass::Compile | CallClass::Allocate => call.is_last,
        CallClass::Wait => call.is_last && call.outcome != WaitOutcome::NotDone,
        _ => false,
    };
    is_over.then_some(Returned {
        interval: Interval::new(call.since_ns, call.interval.end_ns),
        class,
        thread,
    })
}
