//! What threads of a process did that may have held up another of its threads, by when it was over.

use super::{Calls, Found, HostThread, Segment};
use crate::gaps::Cause;
use crate::intervals::Interval;
use gapscope_trace::ids::{ProcessId, ThreadId};
use rustc_hash::FxHashMap;

/// A call that another thread may have waited for, from its start to its return.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Returned {
    /// A wait that consists of polls starts with the first of them.
    pub(crate) interval: Interval,
    /// Why a device idles whose next work is submitted after it.
    pub(crate) cause: Cause,
    thread: ThreadId,
}

/// Such calls of each process with several threads, by end.
#[derive(Debug, Default)]
pub(super) struct Returns(FxHashMap<ProcessId, Vec<Returned>>);

impl Returns {
    pub(super) fn of(threads: &FxHashMap<HostThread, Calls>) -> Returns {
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

    /// Whether a process has several threads.
    pub(super) fn has(&self, process: ProcessId) -> bool {
        self.0.contains_key(&process)
    }

    /// Calls of other threads of the process of `thread` that returned in `window`.
    pub(super) fn to_others(
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

fn returned(thread: ThreadId, call: &Segment) -> Option<Returned> {
    let over = match call.cause() {
        Cause::HostCompile | Cause::HostAllocate => call.last,
        Cause::AfterHostWait => call.last && call.found != Found::NotDone,
        _ => false,
    };
    over.then_some(Returned {
        interval: Interval::new(call.since_ns, call.interval.end_ns),
        cause: call.cause(),
        thread,
    })
}
