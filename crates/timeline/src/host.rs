//! Turns the recorded calls of each host thread (a thread of a program on the CPU) into segments that do not overlap,
//! so that the thread is in one call or in none at each moment. The calls of a thread pass through `flatten`, which
//! cuts them into segments, and then `polls`, which joins polls of the GPU into waits.

mod flatten;
mod functions;
mod packed;
mod polls;
mod returned;
mod segment;

pub use packed::Segments;
pub use segment::{CallClass, HostThread, Segment, WaitOutcome};

use crate::intervals::{Interval, union};
use functions::{ColumnFunctions, FunctionNames};
use gapscope_trace::Trace;
use gapscope_trace::ids::ProcessId;
use gapscope_trace::parallel;
use gapscope_trace::tables::{HostCallKind, NOT_RECORDED_CALL, SubmissionKind, Table};
use packed::ThreadSegments;
use returned::Returns;
use rustc_hash::FxHashMap;
use std::collections::HashSet;
use std::sync::Arc;

/// The segments of all host threads of a trace.
#[derive(Debug, Default)]
pub struct HostThreads {
    /// The names of the called functions, by the index in [`Segment::function`].
    function_names: Vec<Arc<str>>,
    /// The segments of each thread, sorted by thread.
    threads: Vec<(HostThread, ThreadSegments)>,
    /// The index of each thread in `threads`.
    indices: FxHashMap<HostThread, u32>,
    /// The ids of processes with host calls in the trace.
    processes: HashSet<ProcessId>,
    /// The calls that may have held up other threads of their process.
    returns: Returns,
    /// The times in which nothing was recorded, in order.
    not_recorded: Vec<Interval>,
}

/// The row of a call: of the table of host calls, or of that of submissions where the highest bit is set.
#[derive(Debug, Clone, Copy)]
struct CallRow(u32);

impl CallRow {
    const SUBMISSION: u32 = 1 << 31;

    /// Returns the row, and true for one of the table of submissions.
    fn row(self) -> (usize, bool) {
        let row = self.0 & !CallRow::SUBMISSION;
        (row as usize, self.0 & CallRow::SUBMISSION != 0)
    }
}

/// The number of calls that are laid out at once, so that few are in memory in full.
const CHUNK: usize = 1 << 16;

impl HostThreads {
    /// Lays out the host calls and the submission calls of a trace. `is_synchronous` says of each row of the table of submissions
    /// whether its call waited for its own work; it is empty where none did.
    pub(crate) fn new(trace: &Trace, is_synchronous: &[bool]) -> HostThreads {
        let (calls, submissions) = (&trace.tables.host_calls, &trace.tables.submissions);
        let mut functions = FunctionNames::default();
        let mut of_calls = ColumnFunctions::new(&calls.function);
        let mut of_submissions = ColumnFunctions::new(&submissions.function);
        let mut threads: FxHashMap<HostThread, Vec<CallRow>> = FxHashMap::default();
        let mut processes: HashSet<ProcessId> = HashSet::new();
        // Processes whose submission calls are host calls too.
        let mut submits_recorded: HashSet<ProcessId> = HashSet::new();
        let mut last = None;
        let mut not_recorded = Vec::new();
        for row in 0..calls.len() {
            let process = calls.process[row];
            if calls.call[row] == HostCallKind::Recording
                && matches!(calls.function.get(row), Some(Some(name)) if **name == *NOT_RECORDED_CALL)
            {
                let times = (calls.start_ns[row], calls.duration_ns[row]);
                not_recorded.extend(Interval::from_row(Some(times.0), Some(times.1)));
                continue;
            }
            if last.replace(process) != Some(process) {
                processes.insert(process);
            }
            let Some(thread) = HostThread::from_row(process, calls.thread.at(row)) else {
                continue;
            };
            if calls.call[row] == HostCallKind::Submit {
                submits_recorded.insert(process);
            }
            of_calls.find(row, &mut functions);
            threads.entry(thread).or_default().push(CallRow(row as u32));
        }
        for row in 0..submissions.len() {
            let process = submissions.process[row];
            if submits_recorded.contains(&process) {
                continue;
            }
            let Some(thread) = HostThread::from_row(process, submissions.thread.at(row)) else {
                continue;
            };
            of_submissions.find(row, &mut functions);
            let row = CallRow(row as u32 | CallRow::SUBMISSION);
            threads.entry(thread).or_default().push(row);
        }
        // Version 1 folded the poll that found the work done with those that did not.
        let folds_all = trace.manifest.format_version == 1;
        let of_call = |row: usize| {
            let function = of_calls.index(row);
            let call = functions.kind(calls.call[row], function);
            let outcome = WaitOutcome::from_result(call, calls.result[row]);
            let count = calls.count[row];
            let times = (calls.start_ns[row], calls.duration_ns[row]);
            let interval = Interval::from_row(Some(times.0), Some(times.1))?;
            let mut segment = Segment::new(call, function, count, outcome, interval);
            segment.waits |= folds_all && call.is_poll() && count > 1;
            Some(segment)
        };
        let of_submission = |row: usize| {
            let times = (submissions.start_ns[row], submissions.duration_ns[row]);
            let interval = Interval::from_row(Some(times.0), Some(times.1))?;
            let waits = is_synchronous.get(row) == Some(&true);
            let call = match submissions.kind[row] {
                SubmissionKind::Transfer if waits => HostCallKind::CopyAndWait,
                _ => HostCallKind::Submit,
            };
            let function = of_submissions.index(row);
            Some(Segment {
                waits,
                ..Segment::new(call, function, 1, WaitOutcome::Done, interval)
            })
        };
        let start_ns = |row: &CallRow| match row.row() {
            (row, false) => calls.start_ns[row],
            (row, true) => submissions.start_ns[row],
        };
        let segment = |row: CallRow| match row.row() {
            (row, false) => of_call(row),
            (row, true) => of_submission(row),
        };
        let rows: Vec<(HostThread, Vec<CallRow>)> = threads.into_iter().collect();
        let mut threads = parallel::each(rows, |(thread, mut rows)| {
            if !rows.is_sorted_by_key(start_ns) {
                rows.sort_by_key(start_ns);
            }
            (thread, laid_out(rows.into_iter().filter_map(segment)))
        });
        threads.sort_unstable_by_key(|(thread, _)| *thread);
        let indices = threads.iter().map(|(thread, _)| *thread);
        union(&mut not_recorded);
        HostThreads {
            function_names: functions.names,
            returns: Returns::new(&threads),
            indices: indices.zip(0..).collect(),
            threads,
            processes,
            not_recorded,
        }
    }

    /// Returns the times in which nothing was recorded, in order.
    pub fn not_recorded(&self) -> &[Interval] {
        &self.not_recorded
    }

    /// Returns the name of the function by [`Segment::function`], or `None` where the trace does not name the
    /// function.
    pub fn function_name(&self, segment_function: u32) -> Option<&str> {
        let name = self.function_names.get(segment_function as usize);
        name.map(|name| &**name)
    }

    /// Returns the names of all called functions, by [`Segment::function`].
    pub fn function_names(&self) -> impl Iterator<Item = &str> {
        self.function_names.iter().map(|name| &**name)
    }

    /// Returns true where the trace has host calls of a process, so that a thread of the process that is in no call
    /// is known to be in none. Imported traces, and those of programs that measure themselves, may have none.
    pub fn knows(&self, process: ProcessId) -> bool {
        self.processes.contains(&process)
    }

    /// Returns the segments of a thread that overlap `window`, in order of time and at their full length.
    #[inline]
    pub fn segments(&self, thread: HostThread, window: Interval) -> Segments<'_> {
        let calls = self.of_thread(thread);
        calls.map_or(Segments::default(), |calls| calls.within(window))
    }

    #[inline]
    fn of_thread(&self, thread: HostThread) -> Option<&ThreadSegments> {
        let index = *self.indices.get(&thread)?;
        Some(&self.threads[index as usize].1)
    }

    /// Returns true where a thread that is outside of calls just before `at_ns` is between two polls of one wait.
    pub fn is_between_polls(&self, thread: HostThread, at_ns: i64) -> bool {
        let calls = self.of_thread(thread);
        (calls.and_then(|calls| calls.starting_from(at_ns)))
            .is_some_and(|segment| segment.continues_wait)
    }

    /// Returns the calls of other threads of the same process that returned in `window` and may have held `thread` up, in
    /// the order of their returns, each with its thread. A call is given as the segment with which it ended.
    pub fn returned_on_others(
        &self,
        thread: HostThread,
        window: Interval,
    ) -> impl Iterator<Item = (HostThread, Segment)> {
        self.returns.on_others(&self.threads, thread, window)
    }

    /// Returns true where several threads of a process make calls.
    pub fn has_several_threads(&self, process: ProcessId) -> bool {
        self.returns.has_several_threads(process)
    }

    /// Returns the segments of all threads, thread after thread.
    pub fn all_segments(&self) -> impl Iterator<Item = (HostThread, Segment)> {
        let threads = self.threads.iter();
        threads.flat_map(|(thread, calls)| calls.all().map(move |call| (*thread, call)))
    }

    /// Returns the segments of all threads that overlap `window`, thread after thread.
    pub fn segments_within(&self, window: Interval) -> impl Iterator<Item = (HostThread, Segment)> {
        let threads = self.threads.iter();
        threads.flat_map(move |(thread, calls)| {
            let calls = calls.within(window);
            calls.map(move |call| (*thread, call))
        })
    }

    /// Returns the segments of all threads of a process.
    pub fn segments_of_process(&self, process: ProcessId) -> impl Iterator<Item = Segment> {
        let threads = self.threads.iter();
        let threads = threads.filter(move |(thread, _)| thread.process == process);
        threads.flat_map(|(_, calls)| calls.all())
    }

    /// Returns the other threads of the process that `thread` belongs to.
    pub fn other_threads(&self, thread: HostThread) -> impl Iterator<Item = HostThread> {
        let all = self.threads.iter().map(|(thread, _)| *thread);
        all.filter(move |other| other.process == thread.process && *other != thread)
    }
}

/// Lays out the calls of a thread, which come in order of their starts. What comes before a moment at which the thread
/// is in no call, and has not just polled or waited in vain, does not depend on what comes after.
fn laid_out(calls: impl Iterator<Item = Segment>) -> ThreadSegments {
    let mut all = ThreadSegments::default();
    let mut chunk: Vec<Segment> = Vec::new();
    let mut end_ns = i64::MIN;
    let add = |all: &mut ThreadSegments, chunk: Vec<Segment>| {
        let mut calls = flatten::flatten(chunk);
        polls::join(&mut calls);
        all.extend(&calls);
    };
    for call in calls {
        let is_apart = |last: &Segment| {
            let last_ns = last.interval;
            last_ns.end_ns == end_ns
                && !last_ns.is_empty()
                && !polls::may_be_made_again(last)
                && call.interval.start_ns >= end_ns
        };
        if chunk.len() >= CHUNK && chunk.last().is_some_and(is_apart) {
            add(&mut all, std::mem::take(&mut chunk));
        }
        end_ns = end_ns.max(call.interval.end_ns);
        chunk.push(call);
    }
    add(&mut all, chunk);
    all.finish();
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use gapscope_trace::lookup::NONE;

    #[test]
    fn many_calls_are_laid_out_as_few_are() {
        use HostCallKind::*;
        let kinds = [PollFence, Submit, WaitFences, PollFence, MapMemory];
        let calls = (0..3 * CHUNK as i64).map(|at| {
            let start_ns = at * 10 + (at % 7);
            let interval = Interval::new(start_ns, start_ns + [3, 4, 0, 25][(at % 4) as usize]);
            let outcome = [WaitOutcome::NotDone, WaitOutcome::Done][(at % 2) as usize];
            Segment::new(kinds[(at % 5) as usize], NONE, 1, outcome, interval)
        });
        let mut expected = flatten::flatten(calls.clone().collect());
        polls::join(&mut expected);
        assert!(laid_out(calls).all().eq(expected));
    }
}
