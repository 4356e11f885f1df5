//! Turns the recorded calls of each host thread (a thread of a program on the CPU) into segments that do not overlap,
//! so that the thread is in one call or in none at each moment. The calls of a thread pass through `flatten`, which
//! cuts them into segments, and then `polls`, which joins polls of the GPU into waits.

mod flatten;
mod functions;
mod polls;
mod returned;
mod segment;

pub use segment::{CallClass, HostThread, Segment, WaitOutcome};

use crate::intervals::Interval;
use functions::FunctionNames;
use gapscope_trace::Trace;
use gapscope_trace::ids::ProcessId;
use gapscope_trace::tables::{HostCallKind, SubmissionKind, Table};
use returned::Returns;
use rustc_hash::FxHashMap;
use segment::ThreadSegments;
use std::collections::HashSet;
use std::sync::Arc;

/// The segments of all host threads of a trace.
#[derive(Debug, Default)]
pub struct HostThreads {
    /// The names of the called functions, by the index in [`Segment::function`].
    function_names: Vec<Arc<str>>,
    threads: FxHashMap<HostThread, ThreadSegments>,
    /// The ids of processes with host calls in the trace.
    processes: HashSet<ProcessId>,
    /// The calls that may have held up other threads of their process.
    returns: Returns,
}

impl HostThreads {
    /// Lays out the host calls and the submission calls of a trace. `is_synchronous` says of each row of the table of submissions
    /// whether its call waited for its own work; it is empty where none did.
    pub(crate) fn new(trace: &Trace, is_synchronous: &[bool]) -> HostThreads {
        let calls = &trace.tables.host_calls;
        let mut functions = FunctionNames::default();
        let mut threads: FxHashMap<HostThread, Vec<Segment>> = FxHashMap::default();
        let mut add = |thread, segment: Option<Segment>| {
            if let Some(segment) = segment {
                threads.entry(thread).or_default().push(segment);
            }
        };
        let mut processes: HashSet<ProcessId> = HashSet::new();
        // Version 1 folded the poll that found the work done with those that did not.
        let folds_all = trace.manifest.format_version == 1;
        // Processes whose submission calls are host calls too.
        let mut submits_recorded: HashSet<ProcessId> = HashSet::new();
        for row in 0..calls.len() {
            processes.insert(calls.process[row]);
            let Some(thread) = HostThread::from_row(calls.process[row], calls.thread.at(row))
            else {
                continue;
            };
            if calls.call[row] == HostCallKind::Submit {
                submits_recorded.insert(calls.process[row]);
            }
            let function = functions.index(&calls.function[row]);
            let call = functions.kind(calls.call[row], function);
            let outcome = WaitOutcome::from_result(call, calls.result[row]);
            let count = calls.count[row];
            let interval =
                Interval::from_row(Some(calls.start_ns[row]), Some(calls.duration_ns[row]));
            add(
                thread,
                interval.map(|interval| {
                    let mut segment = Segment::new(call, function, count, outcome, interval);
                    segment.waits |= folds_all && call.is_poll() && count > 1;
                    segment
                }),
            );
        }
        let rows = &trace.tables.submissions;
        for row in 0..rows.len() {
            if submits_recorded.contains(&rows.process[row]) {
                continue;
            }
            let Some(thread) = HostThread::from_row(rows.process[row], rows.thread.at(row)) else {
                continue;
            };
            let function = functions.index(&rows.function[row]);
            let interval =
                Interval::from_row(Some(rows.start_ns[row]), Some(rows.duration_ns[row]));
            let waits = is_synchronous.get(row) == Some(&true);
            let call = match rows.kind[row] {
                SubmissionKind::Transfer if waits => HostCallKind::CopyAndWait,
                _ => HostCallKind::Submit,
            };
            let submit = |interval| Segment {
                waits,
                ..Segment::new(call, function, 1, WaitOutcome::Done, interval)
            };
            add(thread, interval.map(submit));
        }
        let laid_out = threads.into_iter().map(|(thread, calls)| {
            let mut calls = flatten::flatten(calls);
            polls::join(&mut calls);
            (thread, ThreadSegments::new(calls))
        });
        let threads: FxHashMap<HostThread, ThreadSegments> = laid_out.collect();
        HostThreads {
            function_names: functions.names,
            returns: Returns::new(&threads),
            threads,
            processes,
        }
    }

    /// Returns the name of the function by [`Segment::function`], or `None` where the trace does not name the
    /// function.
    pub fn function_name(&self, segment_function: u32) -> Option<&str> {
        let name = self.function_names.get(segment_function as usize);
        name.map(|name| &**name)
    }

    /// Returns true where the trace has host calls of a process, so that a thread of the process that is in no call
    /// is known to be in none. Imported traces, and those of programs that measure themselves, may have none.
    pub fn knows(&self, process: ProcessId) -> bool {
        self.processes.contains(&process)
    }

    /// Returns the segments of a thread that overlap `window`, in order of time and at their full length.
    #[inline]
    pub fn segments(&self, thread: HostThread, window: Interval) -> &[Segment] {
        (self.threads.get(&thread)).map_or(&[], |calls| calls.within(window))
    }

    /// Returns true where a thread that is outside of calls just before `at_ns` is between two polls of one wait.
    pub fn is_between_polls(&self, thread: HostThread, at_ns: i64) -> bool {
        let calls = self.threads.get(&thread);
        (calls.and_then(|calls| calls.starting_from(at_ns)))
            .is_some_and(|segment| segment.continues_wait)
    }

    /// Returns the calls of other threads of the same process that returned in `window` and may have held `thread` up, in
    /// the order of their returns, each with its thread. A call is given as the segment with which it ended.
    pub fn returned_on_others(
        &self,
        thread: HostThread,
        window: Interval,
    ) -> impl Iterator<Item = (HostThread, &Segment)> {
        self.returns.on_others(thread, window)
    }

    /// Returns true where several threads of a process make calls.
    pub fn has_several_threads(&self, process: ProcessId) -> bool {
        self.returns.has_several_threads(process)
    }

    /// Returns the segments of all threads, thread after thread.
    pub fn all_segments(&self) -> impl Iterator<Item = (HostThread, &Segment)> {
        let threads = self.threads.iter();
        threads.flat_map(|(thread, calls)| calls.segments.iter().map(move |call| (*thread, call)))
    }

    /// Returns the segments of all threads of a process.
    pub fn segments_of_process(&self, process: ProcessId) -> impl Iterator<Item = &Segment> {
        let threads = self.threads.iter();
        let threads = threads.filter(move |(thread, _)| thread.process == process);
        threads.flat_map(|(_, calls)| &calls.segments)
    }

    /// Returns the other threads of the process that `thread` belongs to.
    pub fn other_threads(&self, thread: HostThread) -> impl Iterator<Item = HostThread> {
        let all = self.threads.keys().copied();
        all.filter(move |other| other.process == thread.process && *other != thread)
    }
}
