//! Finds the calls of a process's threads that may have held up another of its threads, ordered by their returns.

use super::segment::{CallClass, HostThread, Segment, ThreadSegments, WaitOutcome};
use crate::intervals::Interval;
use gapscope_trace::ids::ProcessId;
use gapscope_trace::tables::HostCallKind;
use rustc_hash::FxHashMap;

/// A finished call that another thread of its process may have waited for.
#[derive(Debug, Clone, Copy)]
struct Returned {
    thread: HostThread,
    /// The segment with which the call ended.
    call: Segment,
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
                let calls = (calls.segments.iter()).filter_map(|call| returned(*thread, call));
                returns.entry(thread.process).or_default().extend(calls);
            }
        }
        for calls in returns.values_mut() {
            calls.sort_unstable_by_key(|call| {
                (call.call.interval.end_ns, call.call.since_ns, call.thread)
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
    ) -> impl Iterator<Item = (HostThread, &Segment)> {
        let all = self.0.get(&thread.process).map_or(&[][..], Vec::as_slice);
        let from = all.partition_point(|call| call.call.interval.end_ns <= window.start_ns);
        let after = all[from..].iter();
        after
            .take_while(move |call| call.call.interval.end_ns <= window.end_ns)
            .filter(move |call| call.thread != thread)
            .map(|call| (call.thread, &call.call))
    }
}

/// Returns the call of a segment where the segment ends the call, and the call compiles, allocates, waits for work that is done
/// or may be, or is one of the driver's that may wait.
fn returned(thread: HostThread, call: &Segment) -> Option<Returned> {
    let may_hold_up = match call.class() {
        CallClass::Compile | CallClass::Allocate => true,
        CallClass::Wait => call.outcome != WaitOutcome::NotDone,
        CallClass::Other => call.call == HostCallKind::OtherCall,
        _ => false,
    };
    (may_hold_up && call.is_last).then_some(Returned {
        thread,
        call: *call,
    })
}
