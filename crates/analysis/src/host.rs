//! What each host thread did when: its calls, laid out so that at each moment it is in one call or in none.

mod flatten;
mod functions;
mod polls;
mod returned;
mod totals;

pub(crate) use returned::Returned;
pub(crate) use totals::HostTotals;

use crate::gaps::Cause;
use crate::intervals::Interval;
use functions::Functions;
use gapscope_trace::Trace;
use gapscope_trace::ids::{ProcessId, ThreadId};
use gapscope_trace::tables::{HostCallKind, Table, UNKNOWN_RESULT};
use returned::Returns;
use rustc_hash::FxHashMap;
use std::collections::HashSet;
use std::sync::Arc;

/// Name of the time that a thread spends outside of the calls that the trace knows.
pub(crate) const OUTSIDE: &str = "outside of GPU calls";

/// Calls of all threads that are known.
#[derive(Debug, Default)]
pub(crate) struct Host {
    /// Names of functions that were called.
    functions: Vec<Arc<str>>,
    threads: FxHashMap<HostThread, Calls>,
    /// Processes of which there are host calls.
    processes: HashSet<ProcessId>,
    returns: Returns,
}

/// What a thread did, in order of time.
#[derive(Debug, Default)]
struct Calls {
    segments: Vec<Segment>,
    /// The end of each segment: searches for times stay among these, which are an eighth of the segments.
    ends_ns: Vec<i64>,
}

impl Calls {
    fn of(segments: Vec<Segment>) -> Calls {
        Calls {
            ends_ns: segments.iter().map(|s| s.interval.end_ns).collect(),
            segments,
        }
    }

    /// Those that overlap `window`. Whoever asks goes through them, so their end is looked for in the same way.
    fn within(&self, window: Interval) -> &[Segment] {
        let from = self.ends_ns.partition_point(|end| *end <= window.start_ns);
        let rest = &self.segments[from..];
        let begun = rest
            .iter()
            .take_while(|segment| segment.interval.start_ns < window.end_ns);
        &rest[..begun.count()]
    }

    /// The first that starts at `at_ns` or later.
    fn from(&self, at_ns: i64) -> Option<&Segment> {
        let from = self.ends_ns.partition_point(|end| *end < at_ns);
        let rest = &self.segments[from..];
        rest.iter()
            .find(|segment| segment.interval.start_ns >= at_ns)
    }
}

/// Time in which a thread was in one call and in no call inside it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Segment {
    pub(crate) interval: Interval,
    pub(crate) call: HostCallKind,
    /// Index of the function's name, or [`NONE`].
    pub(crate) function: u32,
    /// Calls folded into it.
    pub(crate) count: u32,
    /// When the whole call started, or the first of the polls that are one wait with it.
    pub(crate) since_ns: i64,
    /// Whether the device had got there when a wait or a poll returned; of other calls it says nothing.
    pub(crate) found: Found,
    /// It waits for the GPU.
    pub(crate) waited: bool,
    /// The time between the segment before and this one is part of the same wait.
    pub(crate) after_poll: bool,
    /// The call returned at its end: it does not go on behind a call inside it.
    pub(crate) last: bool,
}

/// Whether the device had got there when a call returned that waits for it or asks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Found {
    /// It had.
    Done,
    /// It had not: the time was over, or a poll found it not ready.
    NotDone,
    /// The trace does not say.
    Unknown,
}

impl Found {
    fn of(call: HostCallKind, result: i32) -> Found {
        match (call, result) {
            (HostCallKind::PollSemaphore, _) | (_, UNKNOWN_RESULT) => Found::Unknown,
            (_, 0) => Found::Done,
            (_, _) => Found::NotDone,
        }
    }
}

impl Segment {
    fn of(
        call: HostCallKind,
        function: u32,
        count: u32,
        found: Found,
        interval: Interval,
    ) -> Segment {
        Segment {
            interval,
            call,
            function,
            count,
            since_ns: interval.start_ns,
            found,
            waited: match call.is_poll() {
                true => count > 1 && found != Found::Done,
                false => call.is_wait(),
            },
            after_poll: false,
            last: true,
        }
    }

    /// Why a device idles whose next work has not been submitted while the thread is here.
    pub(crate) fn cause(&self) -> Cause {
        match self.waited {
            true => Cause::AfterHostWait,
            false => Cause::while_in(self.call),
        }
    }
}

impl Cause {
    /// Why a device idles whose next work has not been submitted while the submitting thread is in such a call. Polls are
    /// meant that are no wait together with others.
    pub fn while_in(call: HostCallKind) -> Cause {
        use HostCallKind::*;
        match call {
            CreatePipelines | CreateShaderModule | LoadModule | BuildGraph => Cause::HostCompile,
            AllocateMemory | FreeMemory | MapMemory => Cause::HostAllocate,
            Submit | BindSparse | Launch | QueueFull => Cause::SubmitCall,
            Recording => Cause::Recording,
            // A function of the program, though a queue runs it.
            HostFunction => Cause::HostLate,
            call if call.is_wait() && !call.is_poll() => Cause::AfterHostWait,
            _ => Cause::HostCall,
        }
    }
}

/// A thread of a recorded process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct HostThread {
    pub process: ProcessId,
    pub thread: ThreadId,
}

impl HostThread {
    /// The thread of a row; `None` where it is not known.
    pub fn of(process: ProcessId, thread: Option<ThreadId>) -> Option<HostThread> {
        thread.map(|thread| HostThread { process, thread })
    }
}

impl Host {
    pub(crate) fn of(trace: &Trace) -> Host {
        let calls = &trace.tables.host_calls;
        let mut functions = Functions::default();
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
            let Some(thread) = HostThread::of(calls.process[row], calls.thread.at(row)) else {
                continue;
            };
            if calls.call[row] == HostCallKind::Submit {
                submits_recorded.insert(calls.process[row]);
            }
            let function = functions.index(&calls.function[row]);
            let call = functions.kind(calls.call[row], function);
            let (count, found) = (calls.count[row], Found::of(call, calls.result[row]));
            let interval =
                Interval::of_row(Some(calls.start_ns[row]), Some(calls.duration_ns[row]));
            add(
                thread,
                interval.map(|interval| {
                    let mut segment = Segment::of(call, function, count, found, interval);
                    segment.waited |= folds_all && call.is_poll() && count > 1;
                    segment
                }),
            );
        }
        let rows = &trace.tables.submissions;
        for row in 0..rows.len() {
            if submits_recorded.contains(&rows.process[row]) {
                continue;
            }
            let Some(thread) = HostThread::of(rows.process[row], rows.thread.at(row)) else {
                continue;
            };
            let function = functions.index(&rows.function[row]);
            let interval = Interval::of_row(Some(rows.start_ns[row]), Some(rows.duration_ns[row]));
            let submit =
                |interval| Segment::of(HostCallKind::Submit, function, 1, Found::Done, interval);
            add(thread, interval.map(submit));
        }
        let laid_out = threads.into_iter().map(|(thread, calls)| {
            let mut calls = flatten::flatten(calls);
            polls::join(&mut calls);
            (thread, Calls::of(calls))
        });
        let threads: FxHashMap<HostThread, Calls> = laid_out.collect();
        Host {
            functions: functions.names,
            returns: Returns::of(&threads),
            threads,
            processes,
        }
    }

    /// Whether a thread of this process that is in no call is known to be in none: the host calls of what is imported, or
    /// measured by the program itself, are not in the trace.
    pub(crate) fn knows(&self, process: ProcessId) -> bool {
        self.processes.contains(&process)
    }

    /// The segments of a thread that overlap `window`, in order of time.
    pub(crate) fn segments(&self, thread: HostThread, window: Interval) -> &[Segment] {
        (self.threads.get(&thread)).map_or(&[], |calls| calls.within(window))
    }

    /// Whether a thread that is outside of calls just before `at_ns` is between two polls of one wait.
    pub(crate) fn after_poll(&self, thread: HostThread, at_ns: i64) -> bool {
        let calls = self.threads.get(&thread);
        (calls.and_then(|calls| calls.from(at_ns))).is_some_and(|segment| segment.after_poll)
    }

    /// Calls of other threads of its process that returned in `window` and may have held `thread` up, by their return.
    pub(crate) fn returned_to(
        &self,
        thread: HostThread,
        window: Interval,
    ) -> impl Iterator<Item = &Returned> {
        self.returns.to_others(thread, window)
    }

    /// Whether several threads of a process make calls.
    pub(crate) fn has_several_threads(&self, process: ProcessId) -> bool {
        self.returns.has(process)
    }

    /// The segments of all threads of a process.
    pub(crate) fn of_process(&self, process: ProcessId) -> impl Iterator<Item = &Segment> {
        let threads = self.threads.iter();
        let threads = threads.filter(move |(thread, _)| thread.process == process);
        threads.flat_map(|(_, calls)| &calls.segments)
    }

    /// Other threads of the process of `thread`.
    pub(crate) fn others(&self, thread: HostThread) -> impl Iterator<Item = HostThread> {
        let all = self.threads.keys().copied();
        all.filter(move |other| other.process == thread.process && *other != thread)
    }
}
