//! Finds waits of the host that returned before the work that they waited for ended. The times of host and device
//! contradict each other there, by more than the clock's error.
//!
//! Only waits for a whole queue or device say what they wait for: all work that was submitted there before. A wait for
//! an event, a fence or a semaphore does not.
//!
//! Input is a timeline; output is, for each end of work that comes after its wait, when and on which thread that wait
//! returned.

use gapscope_timeline::Timeline;
use gapscope_timeline::host::HostThread;
use gapscope_timeline::intervals::Interval;
use gapscope_timeline::thresholds::{EARLY_RETURN_NS, UNSTATED_ERROR_NS};
use gapscope_trace::ids::ProcessId;
use gapscope_trace::tables::{HostCallKind, Table, UNKNOWN_RESULT};
use std::collections::HashMap;

/// A wait that returned too early.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct EarlyReturn {
    /// The index of the queue.
    queue: u32,
    /// The last end of the work that was waited for.
    end_ns: i64,
    /// The time at which the wait returned.
    pub(super) returned_ns: i64,
    pub(super) thread: Option<HostThread>,
}

/// The waits that returned too early, in order of queue and end of work.
#[derive(Debug, Default)]
pub(super) struct EarlyReturns(Vec<EarlyReturn>);

/// A wait for a queue, or for all queues of its process's only device.
#[derive(Debug, Clone, Copy)]
struct QueueWait {
    call: Interval,
    /// The index of the queue, or `None` for all of the device.
    queue: Option<u32>,
    thread: Option<HostThread>,
}

impl EarlyReturns {
    /// `error_ns` has the clock's error of each GPU by its index.
    pub(super) fn new(timeline: &Timeline, error_ns: &[Option<i64>]) -> EarlyReturns {
        let waits = waits(timeline);
        if waits.is_empty() {
            return EarlyReturns::default();
        }
        let table = &timeline.trace.tables.submissions;
        let mut returns = Vec::new();
        let queues = timeline.submissions_by_queue(|_| true);
        let mut used: HashMap<ProcessId, u32> = HashMap::new();
        for row in queues.iter().filter_map(|rows| rows.first()) {
            *used.entry(table.process[*row as usize]).or_default() += 1;
        }
        for (queue, rows) in (0u32..).zip(&queues) {
            let Some(process) = rows.first().map(|row| table.process[*row as usize]) else {
                continue;
            };
            let gpu = timeline.queues[queue as usize].gpu as usize;
            let tolerated_ns = error_ns[gpu]
                .unwrap_or(UNSTATED_ERROR_NS)
                .saturating_add(EARLY_RETURN_NS);
            let only = used.get(&process) == Some(&1);
            let mut rows = rows.iter().map(|row| *row as usize).peekable();
            let mut end_ns = i64::MIN;
            for wait in waits.get(&process).into_iter().flatten() {
                if !only && wait.queue.is_some_and(|of| of != queue) {
                    continue;
                }
                while let Some(row) = rows.next_if(|row| table.end_ns(*row) <= wait.call.start_ns) {
                    if let Some(ran) = timeline.submissions[row].interval() {
                        end_ns = end_ns.max(ran.end_ns);
                    }
                }
                if end_ns > wait.call.end_ns.saturating_add(tolerated_ns) {
                    returns.push(EarlyReturn {
                        queue,
                        end_ns,
                        returned_ns: wait.call.end_ns,
                        thread: wait.thread,
                    });
                }
            }
        }
        returns.sort_unstable();
        EarlyReturns(returns)
    }

    /// Returns the first wait that returned too early for work of a queue that ended at `end_ns`.
    pub(super) fn before(&self, queue: u32, end_ns: i64) -> Option<&EarlyReturn> {
        let at = (self.0).partition_point(|early| (early.queue, early.end_ns) < (queue, end_ns));
        let early = self.0.get(at)?;
        ((early.queue, early.end_ns) == (queue, end_ns)).then_some(early)
    }
}

/// Returns the waits for queues and devices by process, in order of start. A wait for one of several devices is left
/// out, since the trace does not say for which, and so is a wait for an unknown one of several queues.
fn waits(timeline: &Timeline) -> HashMap<ProcessId, Vec<QueueWait>> {
    let table = &timeline.trace.tables.host_calls;
    let mut waits: HashMap<ProcessId, Vec<QueueWait>> = HashMap::new();
    let devices = &timeline.trace.manifest.devices;
    for row in 0..table.len() {
        let process = table.process[row];
        let queue = table.queue.at(row);
        let queue = queue.and_then(|id| timeline.queue_ids.get(id));
        let queue = match table.call[row] {
            HostCallKind::WaitDeviceIdle => {
                let own = devices.iter().filter(|device| device.process == process);
                if own.count() != 1 {
                    continue;
                }
                None
            }
            HostCallKind::WaitQueueIdle => Some(queue.map_or(u32::MAX, |queue| queue as u32)),
            _ => continue,
        };
        let times = (table.start_ns[row], table.duration_ns[row]);
        let call = Interval::from_row(Some(times.0), Some(times.1));
        let done = matches!(table.result[row], 0 | UNKNOWN_RESULT);
        if let Some(call) = call.filter(|_| done) {
            let thread = HostThread::from_row(process, table.thread.at(row));
            waits.entry(process).or_default().push(QueueWait {
                call,
                queue,
                thread,
            });
        }
    }
    for waits in waits.values_mut() {
        waits.sort_unstable_by_key(|wait| wait.call);
    }
    waits
}
