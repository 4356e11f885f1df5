//! Finds the submissions whose work a wait of the host waited for, from the calls so far: the queues of a process with what was
//! submitted to them, in the order of the calls, go in with the wait.
//!
//! | wait | waited for | how sure |
//! |---|---|---|
//! | a copy that returns when it is done | its own submission | recorded |
//! | one whose submission the trace names | that submission | recorded |
//! | a wait for a known queue | what was submitted there before | recorded |
//! | a wait for a device | what was submitted before to each queue of the process | recorded |
//! | any other | of what was submitted before, what ended last before the return | guessed |

use super::EARLY_RETURN_NS;
use gapscope_timeline::intervals::Interval;
use gapscope_trace::ids::ProcessId;
use gapscope_trace::lookup::NONE;
use gapscope_trace::tables::HostCallKind;
use rustc_hash::FxHashMap;

/// So many submissions of a queue are looked at, from the last one back, for the one that ended last before a return.
const MAX_LOOKED_AT: usize = 4096;

/// The submissions so far by process and queue, in the order of their calls.
#[derive(Debug, Default)]
pub(super) struct Submitted {
    /// The index of the GPU of each queue.
    gpus: Vec<u32>,
    by_queue: FxHashMap<(ProcessId, u32), Vec<Sent>>,
}

/// A submission with known times.
#[derive(Debug, Clone, Copy)]
struct Sent {
    slot: u32,
    call_ns: i64,
    ran: Interval,
}

/// What a wait waited for.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Awaited {
    pub(super) slots: Vec<u32>,
    /// The last end of their work.
    pub(super) end_ns: Option<i64>,
    pub(super) guessed: bool,
    /// For a full queue: the queue, and how many submissions behind that which ended last the call's own one is.
    pub(super) depth: Option<(u32, u32)>,
}

/// A wait of a host thread.
#[derive(Debug, Clone, Copy)]
pub(super) struct Wait {
    pub(super) call: HostCallKind,
    pub(super) interval: Interval,
    /// The index of its queue, or [`NONE`] where the trace does not name it.
    pub(super) queue: u32,
    pub(super) process: ProcessId,
    /// The slot of the submission that the trace names, or that the call itself made, or [`NONE`].
    pub(super) named: u32,
}

impl Submitted {
    pub(super) fn new(gpus: Vec<u32>) -> Submitted {
        Submitted {
            gpus,
            by_queue: FxHashMap::default(),
        }
    }

    pub(super) fn push(
        &mut self,
        process: ProcessId,
        queue: u32,
        slot: u32,
        call_ns: i64,
        ran: Interval,
    ) {
        let all = self.by_queue.entry((process, queue)).or_default();
        all.push(Sent { slot, call_ns, ran });
    }

    /// Returns the slot of the submission of a queue whose work ended at a time.
    pub(super) fn ended_at(&self, process: ProcessId, queue: u32, end_ns: i64) -> Option<u32> {
        let sent = self.by_queue.get(&(process, queue))?;
        let mut sent = sent.iter().rev().take(MAX_LOOKED_AT);
        Some(sent.find(|sent| sent.ran.end_ns == end_ns)?.slot)
    }

    /// Returns what a wait waited for.
    pub(super) fn awaited(&self, wait: &Wait) -> Awaited {
        let Interval { start_ns, end_ns } = wait.interval;
        let of_process = || {
            let queues = self.by_queue.iter();
            queues.filter(|((process, _), _)| *process == wait.process)
        };
        let before = |queue: &[Sent]| queue.partition_point(|sent| sent.call_ns < start_ns);
        let last = |queue: &[Sent]| before(queue).checked_sub(1).map(|at| queue[at]);
        let is_only_queue = of_process().count() == 1;
        let recorded = |sent: Vec<Sent>| Awaited {
            slots: sent.iter().map(|sent| sent.slot).collect(),
            end_ns: sent.iter().map(|sent| sent.ran.end_ns).max(),
            guessed: false,
            depth: None,
        };
        if wait.named != NONE {
            let own = of_process().flat_map(|(_, queue)| queue.iter().rev().take(MAX_LOOKED_AT));
            let own = own.filter(|sent| sent.slot == wait.named);
            return recorded(own.copied().collect());
        }
        match wait.call {
            HostCallKind::WaitQueueIdle if wait.queue == NONE && is_only_queue => {
                recorded(of_process().filter_map(|(_, queue)| last(queue)).collect())
            }
            // Of several devices, the call does not say which.
            HostCallKind::WaitDeviceIdle => {
                let mut gpus = of_process().map(|((_, queue), _)| self.gpus[*queue as usize]);
                let first = gpus.next();
                Awaited {
                    guessed: gpus.any(|gpu| Some(gpu) != first),
                    ..recorded(of_process().filter_map(|(_, queue)| last(queue)).collect())
                }
            }
            HostCallKind::WaitQueueIdle if wait.queue != NONE => {
                let queue = self.by_queue.get(&(wait.process, wait.queue));
                recorded(queue.and_then(|queue| last(queue)).into_iter().collect())
            }
            _ => {
                let until_ns = end_ns.saturating_add(EARLY_RETURN_NS);
                let is_full = wait.call == HostCallKind::QueueFull;
                let ended = of_process().filter_map(|((_, queue), sent)| {
                    let upto = match is_full {
                        true => sent.len(),
                        false => before(sent),
                    };
                    let ended =
                        |sent: &&Sent| sent.ran.end_ns <= until_ns && sent.ran.start_ns < end_ns;
                    let mut last = sent[..upto].iter().rev().take(MAX_LOOKED_AT).enumerate();
                    let (behind, last) = last.find(|(_, sent)| ended(sent))?;
                    Some((last, (*queue, behind as u32)))
                });
                let latest = ended.max_by_key(|(sent, _)| sent.ran.end_ns);
                Awaited {
                    guessed: true,
                    depth: latest.filter(|_| is_full).map(|(_, depth)| depth),
                    ..recorded(latest.map(|(sent, _)| *sent).into_iter().collect())
                }
            }
        }
    }
}
