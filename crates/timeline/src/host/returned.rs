//! Finds the calls of a process's threads that may have held up another of its threads, ordered by their returns.

use super::packed::ThreadSegments;
use super::segment::{CallClass, HostThread, Segment, WaitOutcome};
use crate::intervals::Interval;
use crate::nearby;
use gapscope_trace::ids::ProcessId;
use gapscope_trace::tables::HostCallKind;
use rustc_hash::FxHashMap;

/// A finished call that another thread of its process may have waited for.
#[derive(Debug, Clone, Copy)]
struct Returned {
    end_ns: i64,
    /// The index of its thread, and that of the segment with which the call ended.
    thread: u32,
    segment: u32,
}

/// The finished calls of each process that makes calls on several threads, in order of their ends.
#[derive(Debug, Default)]
pub(super) struct Returns(FxHashMap<ProcessId, Vec<Returned>>);

impl Returns {
    /// Finds the calls of `threads`, which are sorted.
    pub(super) fn new(threads: &[(HostThread, ThreadSegments)]) -> Returns {
        let mut counts: FxHashMap<ProcessId, u32> = FxHashMap::default();
        for (thread, _) in threads {
            *counts.entry(thread.process).or_default() += 1;
        }
        let mut returns: FxHashMap<ProcessId, Vec<Returned>> = FxHashMap::default();
        for (index, (thread, calls)) in (0..).zip(threads) {
            if counts[&thread.process] > 1 {
                let calls = (0..).zip(calls.all());
                let calls = calls.filter(|(_, call)| may_hold_up(call));
                let of_process = returns.entry(thread.process).or_default();
                of_process.extend(calls.map(|(segment, call)| Returned {
                    end_ns: call.interval.end_ns,
                    thread: index,
                    segment,
                }));
            }
        }
        for calls in returns.values_mut() {
            let rest = |call: &Returned| {
                let segment = threads[call.thread as usize].1.at(call.segment as usize);
                (segment.since_ns, call.thread, call.segment)
            };
            // The calls of each thread are in order already, which the stable sort makes use of.
            calls.sort_by(|a, b| {
                let ends = a.end_ns.cmp(&b.end_ns);
                ends.then_with(|| rest(a).cmp(&rest(b)))
            });
        }
        Returns(returns)
    }

    pub(super) fn has_several_threads(&self, process: ProcessId) -> bool {
        self.0.contains_key(&process)
    }

    /// Returns the calls of other threads of the process of `thread` that returned after the start of `window` and no
    /// later than its end.
    pub(super) fn on_others<'a>(
        &'a self,
        threads: &'a [(HostThread, ThreadSegments)],
        thread: HostThread,
        window: Interval,
    ) -> impl Iterator<Item = (HostThread, Segment)> + 'a {
        let all = self.0.get(&thread.process).map_or(&[][..], Vec::as_slice);
        let from = nearby::partition_point(all, |call| call.end_ns <= window.start_ns);
        all[from..]
            .iter()
            .take_while(move |call| call.end_ns <= window.end_ns)
            .map(|call| (&threads[call.thread as usize], call.segment as usize))
            .filter(move |((other, _), _)| *other != thread)
            .map(|((other, calls), segment)| (*other, calls.at(segment)))
    }
}

/// Returns true where the segment ends a call that compiles, allocates, waits for work that is done or may be, or is one
/// of the driver's that may wait.
fn may_hold_up(call: &Segment) -> bool {
    let may_hold_up = match call.class() {
        CallClass::Compile | CallClass::Allocate => true,
        CallClass::Wait => call.outcome != WaitOutcome::NotDone,
        CallClass::Other => call.call == HostCallKind::OtherCall,
        _ => false,
    };
    may_hold_up && call.is_last
}
