//! Compares when work ended, by the times of the device, with when the host knew that it had: a call that waited for the
//! work had returned, or the hook had seen that its command buffer was finished. An end that comes later contradicts the
//! host's times.
//!
//! | what tells the host | which work it tells of |
//! |---|---|
//! | a wait, or a poll that finds its work done, of which the trace says for which submission it was (`recorded_waits.rs`) | that submission, and what was put on its queue before |
//! | a wait for an unknown queue | all that was submitted before the wait began, where its process submits to one queue only |
//! | a wait for a device | the same for all queues of the device, where its process has one device, and one context there |
//! | a copy that returns when it is done | the copy |
//! | [`seen_ns`](gapscope_trace::tables::CommandBuffers::seen_ns) of a command buffer, which the hook writes after waits for fences, semaphores and queues | the command buffer |
//!
//! Waits whose result is not known count as done; those that failed or ran into a time limit do not. A row of several
//! calls has waited for what was submitted before the first of them, when the last returned.
//!
//! Nothing is claimed of other waits for fences, events and semaphores: the trace does not say for which work they are. What was
//! submitted to the event's stream before the wait is the most that an event can cover, and it may cover nothing of that. A wait that
//! took long would bound the first end among that work, had the thread not merely lost its processor meanwhile, which a trace does not
//! show either.
//!
//! Input is a timeline; output are the [`AwaitedWork`] whose end comes too late, and the numbers of ends that were compared.

use crate::contexts::Context;
use crate::recorded_waits::{RecordedWait, RecordedWaits};
use gapscope_timeline::Timeline;
use gapscope_timeline::host::HostThread;
use gapscope_timeline::intervals::Interval;
use gapscope_trace::ids::ProcessId;
use gapscope_trace::lookup::NONE;
use gapscope_trace::tables::{HostCallKind, MemoryPlace, Table, TransferKind, UNKNOWN_RESULT};
use std::collections::{HashMap, HashSet};

/// The ends of work that were compared with what the host knew.
#[derive(Debug, Default)]
pub(crate) struct AwaitedWork {
    /// The ends that come after the host knew of them, by whatever time, in order of queue and end.
    pub(crate) late_ends: Vec<LateEnd>,
    /// The number of ends that waits were compared with, by the index of the GPU.
    pub(crate) waits: Vec<u64>,
    /// The same of command buffers that were seen to have finished.
    pub(crate) seen: Vec<u64>,
}

/// An end of work that comes after the host knew of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct LateEnd {
    /// The index of the queue.
    pub(crate) queue: u32,
    /// The last end of the work.
    pub(crate) end_ns: i64,
    /// The time at which the host knew that the work had ended.
    pub(crate) told_ns: i64,
    pub(crate) witness: Witness,
    /// The thread that waited.
    pub(crate) thread: Option<HostThread>,
}

/// What told the host that work had ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Witness {
    Wait,
    Seen,
}

/// A call that waited for queues of its process.
#[derive(Debug, Clone, Copy)]
struct QueueWait {
    call: Interval,
    target: Target,
    thread: Option<HostThread>,
}

/// The queues that a call waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Target {
    UnknownQueue,
    /// All queues of the only device.
    Device,
}

impl AwaitedWork {
    pub(crate) fn new(timeline: &Timeline, recorded_waits: &RecordedWaits) -> AwaitedWork {
        let mut awaited = AwaitedWork {
            late_ends: Vec::new(),
            waits: vec![0; timeline.gpus.len()],
            seen: vec![0; timeline.gpus.len()],
        };
        awaited.add_recorded(timeline, recorded_waits);
        awaited.add_queues(timeline);
        awaited.add_copies(timeline);
        awaited.add_command_buffers(timeline);
        awaited.late_ends.sort_unstable();
        awaited
    }

    /// Returns the first of what told the host, and told it too early, that work of a queue had ended which ended at `end_ns`.
    pub(crate) fn late_end(&self, queue: u32, end_ns: i64) -> Option<&LateEnd> {
        let all = &self.late_ends;
        let at = all.partition_point(|late| (late.queue, late.end_ns) < (queue, end_ns));
        let late = all.get(at)?;
        ((late.queue, late.end_ns) == (queue, end_ns)).then_some(late)
    }

    fn add(&mut self, timeline: &Timeline, end: LateEnd) {
        let gpu = timeline.queues[end.queue as usize].gpu as usize;
        match end.witness {
            Witness::Wait => self.waits[gpu] += 1,
            Witness::Seen => self.seen[gpu] += 1,
        }
        if end.end_ns > end.told_ns {
            self.late_ends.push(end);
        }
    }

    /// Compares the return of each wait for known work with the end of that work.
    fn add_recorded(&mut self, timeline: &Timeline, recorded_waits: &RecordedWaits) {
        let mut waits: Vec<&RecordedWait> = recorded_waits.all().iter().collect();
        let queue_of = |wait: &RecordedWait| timeline.submissions[wait.awaited as usize].queue;
        waits.sort_unstable_by_key(|wait| {
            let order = timeline.call_order(wait.awaited);
            (queue_of(wait), order, wait.end_ns)
        });
        for waits in waits.chunk_by(|a, b| queue_of(a) == queue_of(b)) {
            let Some(queue) = waits.first().map(|wait| queue_of(wait)) else {
                continue;
            };
            let mut rows = timeline.submissions_by_queue()[queue as usize]
                .iter()
                .peekable();
            let mut end_ns = i64::MIN;
            for wait in waits {
                let awaited = timeline.call_order(wait.awaited);
                let mut has_fresh_work = false;
                while let Some(row) = rows.next_if(|row| timeline.call_order(**row) <= awaited) {
                    if let Some(ran) = timeline.submissions[*row as usize].interval() {
                        end_ns = end_ns.max(ran.end_ns);
                        has_fresh_work = true;
                    }
                }
                if has_fresh_work {
                    let end = LateEnd {
                        queue,
                        end_ns,
                        told_ns: wait.end_ns,
                        witness: Witness::Wait,
                        thread: wait.thread,
                    };
                    self.add(timeline, end);
                }
            }
        }
    }

    /// Compares the return of each wait for unknown queues with the end of what had been submitted there before it began.
    fn add_queues(&mut self, timeline: &Timeline) {
        let waits = waits(timeline);
        if waits.is_empty() {
            return;
        }
        let table = &timeline.trace.tables.submissions;
        let queues = timeline.submissions_by_queue();
        let mut used: HashMap<ProcessId, u32> = HashMap::new();
        for row in queues.iter().filter_map(|rows| rows.first()) {
            *used.entry(table.process[*row as usize]).or_default() += 1;
        }
        for (queue, rows) in (0u32..).zip(queues) {
            let Some(process) = rows.first().map(|row| table.process[*row as usize]) else {
                continue;
            };
            let is_only = used.get(&process) == Some(&1);
            let mut rows = rows.iter().map(|row| *row as usize).peekable();
            let mut end_ns = i64::MIN;
            for wait in waits.get(&process).into_iter().flatten() {
                match wait.target {
                    Target::Device => {}
                    Target::UnknownQueue if is_only => {}
                    Target::UnknownQueue => continue,
                }
                // A call of another thread that is in progress as the wait begins may hand over work too late for it.
                let returned = |row: &usize| table.end_ns(*row) <= wait.call.start_ns;
                let mut has_fresh_work = false;
                while let Some(row) = rows.next_if(returned) {
                    if let Some(ran) = timeline.submissions[row].interval() {
                        end_ns = end_ns.max(ran.end_ns);
                        has_fresh_work = true;
                    }
                }
                if has_fresh_work {
                    let end = LateEnd {
                        queue,
                        end_ns,
                        told_ns: wait.call.end_ns,
                        witness: Witness::Wait,
                        thread: wait.thread,
                    };
                    self.add(timeline, end);
                }
            }
        }
    }

    /// Compares the return of each copying call that waits for its copy with the end of the copy.
    fn add_copies(&mut self, timeline: &Timeline) {
        let calls = &timeline.trace.tables.host_calls;
        let copying: HashSet<_> = (0..calls.len())
            .filter(|row| {
                calls.call[*row] == HostCallKind::CopyAndWait && is_done(calls.result[*row])
            })
            .map(|row| {
                (
                    calls.process[row],
                    calls.thread.at(row),
                    calls.start_ns[row],
                )
            })
            .collect();
        if copying.is_empty() {
            return;
        }
        let transfers = &timeline.trace.tables.transfers;
        let table = &timeline.trace.tables.submissions;
        for at in 0..transfers.len() {
            // From pageable memory a call moves the data to a buffer of the driver, and returns; a copy on the device is not awaited.
            let is_awaited = match transfers.kind[at] {
                TransferKind::DeviceToHost => true,
                TransferKind::HostToDevice => {
                    transfers.host_memory[at] == Some(MemoryPlace::Pinned)
                }
                _ => false,
            };
            let submission = transfers.submission.at(at).filter(|_| is_awaited);
            let row = submission.map_or(NONE, |id| timeline.submission_ids.row(id)) as usize;
            let Some(times) = timeline.submissions.get(row) else {
                continue;
            };
            let call = (
                table.process[row],
                table.thread.at(row),
                table.start_ns[row],
            );
            if let Some(ran) = times.interval().filter(|_| copying.contains(&call)) {
                let end = LateEnd {
                    queue: times.queue,
                    end_ns: ran.end_ns,
                    told_ns: table.end_ns(row),
                    witness: Witness::Wait,
                    thread: HostThread::from_row(call.0, call.1),
                };
                self.add(timeline, end);
            }
        }
    }

    /// Compares when each command buffer was seen to have finished with its end.
    fn add_command_buffers(&mut self, timeline: &Timeline) {
        let seen_ns = &timeline.trace.tables.command_buffers.seen_ns;
        let queues = &timeline.command_buffer_queues;
        for (at, (times, queue)) in timeline.command_buffers.iter().zip(queues).enumerate() {
            if let Some(told_ns) = seen_ns.at(at).filter(|_| times.ran.has_work()) {
                let end = LateEnd {
                    queue: *queue,
                    end_ns: times.ran.last_end_ns,
                    told_ns,
                    witness: Witness::Seen,
                    thread: None,
                };
                self.add(timeline, end);
            }
        }
    }
}

/// Returns true where a call with this result has waited, as far as the trace says.
fn is_done(result: i32) -> bool {
    matches!(result, 0 | UNKNOWN_RESULT)
}

/// Returns the finished waits for unknown queues and for devices by process, in order of start, without those of which the trace does not
/// say for which device.
fn waits(timeline: &Timeline) -> HashMap<ProcessId, Vec<QueueWait>> {
    let table = &timeline.trace.tables.host_calls;
    let mut waits: HashMap<ProcessId, Vec<QueueWait>> = HashMap::new();
    let mut has_one_context: HashMap<ProcessId, bool> = HashMap::new();
    for row in 0..table.len() {
        let process = table.process[row];
        let target = match table.call[row] {
            HostCallKind::WaitDeviceIdle => {
                let one = has_one_context.entry(process);
                match *one.or_insert_with(|| is_one_context(timeline, process)) {
                    true => Target::Device,
                    false => continue,
                }
            }
            HostCallKind::WaitQueueIdle if table.queue.at(row).is_none() => Target::UnknownQueue,
            _ => continue,
        };
        let times = (table.start_ns[row], table.duration_ns[row]);
        let call = Interval::from_row(Some(times.0), Some(times.1));
        if let Some(call) = call.filter(|_| is_done(table.result[row])) {
            let thread = HostThread::from_row(process, table.thread.at(row));
            waits.entry(process).or_default().push(QueueWait {
                call,
                target,
                thread,
            });
        }
    }
    for waits in waits.values_mut() {
        waits.sort_unstable_by_key(|wait| wait.call);
    }
    waits
}

/// Returns true where a process has one device, and one context there.
fn is_one_context(timeline: &Timeline, process: ProcessId) -> bool {
    let manifest = &timeline.trace.manifest;
    let own = manifest
        .devices
        .iter()
        .filter(|device| device.process == process);
    let contexts =
        (timeline.queues.iter()).filter_map(|queue| Context::from_queue(timeline, queue));
    let mut contexts = contexts.filter(|context| context.process == process);
    let first = contexts.next();
    own.count() == 1 && contexts.all(|context| Some(context) == first)
}
