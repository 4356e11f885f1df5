//! What each host thread did when: its calls, laid out so that at each moment it is in one call or in none.

use crate::gaps::{Cause, HostTime};
use crate::intervals::Interval;
use gapscope_trace::Trace;
use gapscope_trace::ids::{ProcessId, ThreadId};
use gapscope_trace::lookup::NONE;
use gapscope_trace::tables::{HostCallKind, Table};
use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// Name of the time that a thread spends outside of the calls that the trace knows.
pub(crate) const OUTSIDE: &str = "outside of GPU calls";

/// Calls of all threads that are known.
#[derive(Debug, Default)]
pub(crate) struct Host {
    /// Names of functions that were called.
    functions: Vec<Arc<str>>,
    threads: HashMap<HostThread, Vec<Segment>>,
    /// Processes of which there are host calls.
    processes: HashSet<ProcessId>,
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
    /// When the whole call started.
    pub(crate) call_start_ns: i64,
}

impl Segment {
    /// Why a device idles whose next work has not been submitted while the thread is here.
    pub(crate) fn cause(&self) -> Cause {
        match Cause::while_in(self.call) {
            Cause::HostLate if self.blocks() => Cause::AfterHostWait,
            cause => cause,
        }
    }

    /// True for calls that wait for the GPU. One poll alone does not: many programs look once before each submission;
    /// polls that follow each other are a wait.
    pub(crate) fn blocks(&self) -> bool {
        use HostCallKind::*;
        match self.call {
            PollFence | PollSemaphore | PollEvent => self.count > 1,
            call => call.is_wait(),
        }
    }
}

impl Cause {
    /// Why a device idles whose next work has not been submitted while the submitting thread is in such a call. A single
    /// poll does not hold it up.
    pub fn while_in(call: HostCallKind) -> Cause {
        use HostCallKind::*;
        match call {
            CreatePipelines | CreateShaderModule | LoadModule | BuildGraph => Cause::HostCompile,
            AllocateMemory | FreeMemory | MapMemory => Cause::HostAllocate,
            Submit | BindSparse | Launch | QueueFull => Cause::SubmitCall,
            Recording => Cause::Recording,
            PollFence | PollSemaphore | PollEvent => Cause::HostLate,
            call if call.is_wait() => Cause::AfterHostWait,
            _ => Cause::HostLate,
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
        let mut threads: HashMap<HostThread, Vec<Segment>> = HashMap::new();
        let mut add = |thread, call, function, count, start_ns, duration_ns| {
            if let Some(interval) = Interval::of_row(Some(start_ns), Some(duration_ns)) {
                threads.entry(thread).or_default().push(Segment {
                    interval,
                    call,
                    function,
                    count,
                    call_start_ns: interval.start_ns,
                });
            }
        };
        let mut processes: HashSet<ProcessId> = HashSet::new();
        // Processes whose submission calls are host calls too.
        let mut submits_recorded: HashSet<ProcessId> = HashSet::new();
        for row in 0..calls.len() {
            processes.insert(calls.process[row]);
            let Some(thread) = HostThread::of(calls.process[row], calls.thread[row]) else {
                continue;
            };
            if calls.call[row] == HostCallKind::Submit {
                submits_recorded.insert(calls.process[row]);
            }
            add(
                thread,
                calls.call[row],
                functions.index(&calls.function[row]),
                calls.count[row],
                calls.start_ns[row],
                calls.duration_ns[row],
            );
        }
        let rows = &trace.tables.submissions;
        for row in 0..rows.len() {
            if submits_recorded.contains(&rows.process[row]) {
                continue;
            }
            let Some(thread) = HostThread::of(rows.process[row], rows.thread[row]) else {
                continue;
            };
            let (start_ns, duration_ns) = (rows.start_ns[row], rows.duration_ns[row]);
            let function = functions.index(&rows.function[row]);
            add(
                thread,
                HostCallKind::Submit,
                function,
                1,
                start_ns,
                duration_ns,
            );
        }
        for calls in threads.values_mut() {
            *calls = flatten(std::mem::take(calls));
        }
        Host {
            functions: functions.names,
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
        let Some(segments) = self.threads.get(&thread) else {
            return &[];
        };
        let from = segments.partition_point(|s| s.interval.end_ns <= window.start_ns);
        let rest = &segments[from..];
        &rest[..rest.partition_point(|s| s.interval.start_ns < window.end_ns)]
    }

    /// Other threads of the process of `thread`.
    pub(crate) fn others(&self, thread: HostThread) -> impl Iterator<Item = HostThread> {
        let all = self.threads.keys().copied();
        all.filter(move |other| other.process == thread.process && *other != thread)
    }
}

/// Names of functions, each once.
#[derive(Default)]
struct Functions {
    names: Vec<Arc<str>>,
    indices: HashMap<Arc<str>, u32>,
    /// The one that was asked for last: neighbours are often the same.
    last: Option<(Arc<str>, u32)>,
}

impl Functions {
    fn index(&mut self, name: &Option<Arc<str>>) -> u32 {
        let Some(name) = name else { return NONE };
        if let Some((last, index)) = &self.last
            && Arc::ptr_eq(last, name)
        {
            return *index;
        }
        let next = self.names.len() as u32;
        let index = *self.indices.entry(name.clone()).or_insert(next);
        if index == next {
            self.names.push(name.clone());
        }
        self.last = Some((name.clone(), index));
        index
    }
}

/// Calls in any order to segments in order of time that do not overlap: where one call is inside another, the inner one
/// counts. Of ten million calls that do not overlap nothing is copied.
fn flatten(mut calls: Vec<Segment>) -> Vec<Segment> {
    let order = |s: &Segment| {
        let Interval { start_ns, end_ns } = s.interval;
        (start_ns, Reverse(end_ns), s.call, s.count, s.function)
    };
    if !calls.is_sorted_by_key(order) {
        calls.sort_unstable_by_key(order);
    }
    let mut nested: Vec<Segment> = Vec::new();
    let (mut kept, mut from) = (0, 0);
    while from < calls.len() {
        let mut end_ns = calls[from].interval.end_ns;
        let mut to = from + 1;
        while let Some(next) = calls.get(to).filter(|s| s.interval.start_ns < end_ns) {
            end_ns = end_ns.max(next.interval.end_ns);
            to += 1;
        }
        if to > from + 1 {
            flatten_nested(&calls[from..to], &mut nested);
        } else if !calls[from].interval.is_empty() {
            calls[kept] = calls[from];
            kept += 1;
        }
        from = to;
    }
    calls.truncate(kept);
    if !nested.is_empty() {
        calls.append(&mut nested);
        calls.sort_unstable_by_key(|s| s.interval.start_ns);
    }
    calls
}

/// The segments of calls in order of their start that overlap each other.
fn flatten_nested(calls: &[Segment], segments: &mut Vec<Segment>) {
    let mut open: Vec<&Segment> = Vec::new();
    let mut now_ns = i64::MIN;
    let mut emit = |call: &Segment, from_ns: i64, to_ns: i64| {
        let interval = call.interval.intersection(Interval::new(from_ns, to_ns));
        if !interval.is_empty() {
            segments.push(Segment { interval, ..*call });
        }
    };
    for call in calls {
        while let Some(top) = open.last() {
            if top.interval.end_ns > call.interval.start_ns {
                break;
            }
            emit(top, now_ns, top.interval.end_ns);
            now_ns = now_ns.max(top.interval.end_ns);
            open.pop();
        }
        if let Some(top) = open.last() {
            emit(top, now_ns, call.interval.start_ns);
        }
        now_ns = now_ns.max(call.interval.start_ns);
        open.push(call);
    }
    while let Some(top) = open.pop() {
        emit(top, now_ns, top.interval.end_ns);
        now_ns = now_ns.max(top.interval.end_ns);
    }
}

/// Time in the calls of one kind and function.
#[derive(Debug, Clone, Copy)]
struct CallTotal {
    call: HostCallKind,
    /// Index of the function's name, or [`NONE`].
    function: u32,
    count: u64,
    total_ns: i64,
}

/// Host time by call, added up.
#[derive(Debug, Clone, Default)]
pub(crate) struct HostTotals {
    /// For each call and function that occurs.
    calls: Vec<CallTotal>,
    outside_ns: i64,
}

impl HostTotals {
    pub(crate) fn add_segment(&mut self, segment: &Segment, ns: i64) {
        let Segment { call, function, .. } = *segment;
        // A program calls few functions.
        let known = |total: &CallTotal| total.call == call && total.function == function;
        let at = match self.calls.iter().position(known) {
            Some(at) => at,
            None => {
                self.calls.push(CallTotal {
                    call,
                    function,
                    count: 0,
                    total_ns: 0,
                });
                self.calls.len() - 1
            }
        };
        let total = &mut self.calls[at];
        total.count = total.count.saturating_add(u64::from(segment.count));
        total.total_ns = total.total_ns.saturating_add(ns);
    }

    pub(crate) fn add_outside(&mut self, ns: i64) {
        self.outside_ns = self.outside_ns.saturating_add(ns);
    }

    /// The longest first.
    pub(crate) fn into_rows(self, host: &Host) -> Vec<HostTime> {
        let calls = self.calls.into_iter().map(|total| HostTime {
            call: total.call.as_str(),
            function: (host.functions.get(total.function as usize)).map(ToString::to_string),
            count: total.count,
            total_ns: total.total_ns,
        });
        let outside = (self.outside_ns > 0).then_some(HostTime {
            call: OUTSIDE,
            function: None,
            count: 0,
            total_ns: self.outside_ns,
        });
        let mut rows: Vec<HostTime> = calls.chain(outside).collect();
        rows.sort_by_key(|row| std::cmp::Reverse(row.total_ns));
        rows
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(start: i64, end: i64, call: HostCallKind) -> Segment {
        let interval = Interval::new(start, end);
        Segment {
            interval,
            call,
            function: NONE,
            count: 1,
            call_start_ns: start,
        }
    }

    #[test]
    fn the_inner_of_two_calls_counts() {
        use HostCallKind::*;
        let calls = vec![
            call(50, 60, MapMemory),
            call(0, 100, PollFence),
            call(90, 120, Submit),
            call(10, 20, AllocateMemory),
        ];
        let got: Vec<_> = flatten(calls)
            .iter()
            .map(|s| (s.interval.start_ns, s.interval.end_ns, s.call))
            .collect();
        assert_eq!(
            got,
            [
                (0, 10, PollFence),
                (10, 20, AllocateMemory),
                (20, 50, PollFence),
                (50, 60, MapMemory),
                (60, 90, PollFence),
                (90, 120, Submit),
            ]
        );
    }
}
