//! Finds the times in which work may have run whose launch is in the trace, and which itself is not: a file of another
//! tool may lack the kernels of a graph, or all work of a time.
//!
//! Such a launch is a call of the kind [`HostCallKind::Launch`] in a trace that counts launched work as lost. The
//! queue is not known. Where parts of a file could not be read, and most of the work that could be has no calls either, any time
//! may have had such work ([`may_lack_work`]). The work began with the call at the earliest. It has ended when its thread returns from a wait
//! that came after the call, or when on each queue that is used later the next work has started.

use super::host_waits::HostWaits;
use gapscope_timeline::Timeline;
use gapscope_timeline::host::HostThread;
use gapscope_timeline::intervals::Interval;
use gapscope_timeline::lost_work::{LostWork, losses_of_work};
use gapscope_timeline::thresholds::UNKNOWN_SHARE;
use gapscope_trace::ids::ProcessId;
use gapscope_trace::lookup::NONE;
use gapscope_trace::tables::{HostCallKind, Table, UNKNOWN_RESULT};
use std::collections::HashMap;

/// Returns true where unread parts of a file may have held work of any time: of most of the work that was read no calls were, so that no
/// calls tell which work is missing.
pub(super) fn may_lack_work(timeline: &Timeline) -> bool {
    let mut losses = losses_of_work(&timeline.trace.manifest);
    if !losses.any(|(loss, lost)| lost == LostWork::FileParts && loss.count > 0) {
        return false;
    }
    let (mut works, mut without_calls) = (0u64, 0u64);
    timeline.each_work(|work| {
        works += 1;
        without_calls += u64::from(timeline.submission_of(work) == NONE);
    });
    without_calls as f64 >= UNKNOWN_SHARE * works as f64
}

/// Returns how many pieces of work have no rows.
pub(crate) fn lost_works(timeline: &Timeline) -> u64 {
    let losses = losses_of_work(&timeline.trace.manifest);
    let lost = losses.filter(|(_, lost)| *lost == LostWork::Pieces);
    lost.map(|(loss, _)| loss.count)
        .fold(0, u64::saturating_add)
}

/// Returns the times of each queue in which such work may have run, a time for each launch; empty where nothing is lost.
pub(super) fn lost_launches(timeline: &Timeline) -> Vec<Vec<Interval>> {
    let calls = &timeline.trace.tables.host_calls;
    let is_lost = |row: &usize| {
        calls.call[*row] == HostCallKind::Launch
            && [0, UNKNOWN_RESULT].contains(&calls.result[*row])
    };
    if lost_works(timeline) == 0 || !(0..calls.len()).any(|row| is_lost(&row)) {
        return Vec::new();
    }
    let waits = HostWaits::new(timeline, &[]);
    let captures = captures(timeline);
    let queues = Queues::new(timeline);
    let mut times = vec![Vec::new(); timeline.queues.len()];
    for row in (0..calls.len()).filter(is_lost) {
        let span = (Some(calls.start_ns[row]), Some(calls.duration_ns[row]));
        let Some(call) = Interval::from_row(span.0, span.1) else {
            continue;
        };
        let process = calls.process[row];
        // What a stream captures does not run.
        let of_process = captures.get(&process).map_or(&[][..], Vec::as_slice);
        let after = of_process.partition_point(|capture| capture.start_ns <= call.start_ns);
        if after > 0 && of_process[after - 1].contains(call.start_ns) {
            continue;
        }
        let thread = HostThread::from_row(process, calls.thread.at(row));
        let returned_ns = thread.and_then(|thread| waits.first_return(thread, call.end_ns));
        let ends = [returned_ns, queues.all_started_ns(process, call.start_ns)];
        let end_ns = ends.into_iter().flatten().min().unwrap_or(i64::MAX);
        for queue in queues.of_process(process) {
            times[*queue as usize].push(Interval::new(call.start_ns, end_ns));
        }
    }
    times
}

/// Returns the times in which streams of each process captured graphs, in order.
fn captures(timeline: &Timeline) -> HashMap<ProcessId, Vec<Interval>> {
    let calls = &timeline.trace.tables.host_calls;
    let names = |row: usize, part: &str| {
        let function = calls.function[row].as_deref();
        function.is_some_and(|name| name.contains(part))
    };
    let built = (0..calls.len()).filter(|row| calls.call[*row] == HostCallKind::BuildGraph);
    let mut ends: Vec<(ProcessId, i64, bool)> = built
        .filter(|row| names(*row, "BeginCapture") || names(*row, "EndCapture"))
        .map(|row| {
            let begins = names(row, "BeginCapture");
            (calls.process[row], calls.start_ns[row], begins)
        })
        .collect();
    ends.sort_unstable();
    let mut captures: HashMap<ProcessId, Vec<Interval>> = HashMap::new();
    let mut began: HashMap<ProcessId, i64> = HashMap::new();
    for (process, at_ns, begins) in ends {
        if begins {
            began.entry(process).or_insert(at_ns);
        } else if let Some(start_ns) = began.remove(&process) {
            let capture = Interval::new(start_ns, at_ns);
            captures.entry(process).or_default().push(capture);
        }
    }
    captures
}

/// The queues of each process, with the calls and starts of their timed work.
struct Queues {
    of_process: HashMap<ProcessId, Vec<u32>>,
    /// For each queue the start of each call that submitted timed work, and the first start of the work of that call and of all
    /// later calls, in order.
    started: Vec<Vec<(i64, i64)>>,
}

impl Queues {
    fn new(timeline: &Timeline) -> Queues {
        let table = &timeline.trace.tables.submissions;
        let mut of_process: HashMap<ProcessId, Vec<u32>> = HashMap::new();
        let by_queue = timeline.submissions_by_queue();
        let started = by_queue.iter().zip(0u32..).map(|(rows, queue)| {
            if let Some(row) = rows.first() {
                let process = table.process[*row as usize];
                of_process.entry(process).or_default().push(queue);
            }
            let work = rows.iter().filter_map(|row| {
                let work = timeline.submissions[*row as usize].interval()?;
                Some((table.start_ns[*row as usize], work.start_ns))
            });
            let mut started: Vec<(i64, i64)> = work.collect();
            let mut first_ns = i64::MAX;
            for (_, start_ns) in started.iter_mut().rev() {
                first_ns = first_ns.min(*start_ns);
                *start_ns = first_ns;
            }
            started
        });
        let started = started.collect();
        Queues {
            of_process,
            started,
        }
    }

    fn of_process(&self, process: ProcessId) -> &[u32] {
        self.of_process.get(&process).map_or(&[], Vec::as_slice)
    }

    /// Returns when the next work that was submitted after `call_ns` had started on each queue of a process that is
    /// used later; `None` where none is.
    fn all_started_ns(&self, process: ProcessId, call_ns: i64) -> Option<i64> {
        let next = self.of_process(process).iter().filter_map(|queue| {
            let started = &self.started[*queue as usize];
            let after = started.partition_point(|(called_ns, _)| *called_ns <= call_ns);
            started.get(after).map(|(_, start_ns)| *start_ns)
        });
        next.max()
    }
}
