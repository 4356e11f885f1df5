//! CUDA: what the program called and what its tracing library told, to rows.
//!
//! Each host call comes from the thread that made it, and each piece of work on the device as an entry of its own, up to
//! seconds after it happened and in any order; equal correlations say what belongs together. A call that launches work
//! becomes a submission, the launch of a graph a command buffer with its nodes, every other call a host call. Both halves
//! wait for each other, in bounded memory.

mod call;
mod event_waits;
mod finish;
mod function;
mod graph_captures;
mod returns;
mod work;

use super::Assembler;
use call::{Call, Poll};
use event_waits::EventWaits;
use function::Function;
use gapscope_spool::event::{
    Activity, LaunchShape, MemoryPlace, Span, TransferKind, WaitKind, unpack,
};
use gapscope_spool::ids as hook;
use gapscope_trace::tables::Tables;
use graph_captures::GraphCaptures;
use returns::Returns;
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use std::sync::Arc;
use work::{Launched, Route, Work};

/// Entries that wait for their other half.
pub(super) const MOST_WAITING: usize = 1 << 18;
/// Launches whose work has come stay known for more of it, such as the other nodes of a graph.
const MOST_LAUNCHED: usize = 1 << 12;

/// What is known of a process's use of CUDA.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Cuda {
    functions: FxHashMap<hook::Function, Function>,
    launches: FxHashMap<hook::Launch, Launch>,
    routes: FxHashMap<hook::Route, Route>,
    /// By correlation.
    slots: FxHashMap<hook::Correlation, Slot>,
    next_serial: u64,
    /// Slots whose other half has not come, by correlation and serial, the oldest first.
    waiting: VecDeque<(hook::Correlation, u64)>,
    /// Slots of launches whose work has come.
    launched: VecDeque<(hook::Correlation, u64)>,
    /// Folded polls of threads.
    polls: FxHashMap<hook::Thread, Poll>,
    event_waits: EventWaits,
    returns: Returns,
    graph_captures: GraphCaptures,
    /// The greatest begin of a call whose work has come.
    latest_launch_ns: Option<i64>,
    /// Anything of CUDA was recorded.
    pub(super) is_used: bool,
    /// Activities that the process has written, as its batches say, and those that came.
    written: u64,
    came: u64,
}

/// What is known under one correlation.
#[derive(Debug, Serialize, Deserialize)]
struct Slot {
    serial: u64,
    half: Half,
}

/// The half that came first, or both.
#[derive(Debug, Serialize, Deserialize)]
enum Half {
    /// A call, whose work or wait has not come.
    Call(Call),
    /// Work, whose call has not come.
    Work(Work, Vec<Work>),
    /// The queue that a call waits for, which has not come itself.
    Wait(u32),
    /// A launch and its work.
    Launched(Launched),
}

/// A way to launch a kernel, in the trace's ids.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
struct Launch {
    kernel: u32,
    queue: u32,
    groups: [u32; 3],
}

impl Assembler {
    /// The program calls this function.
    pub(super) fn cuda_function(&mut self, process: u32, function: hook::Function, name: &str) {
        let cuda = &mut self.processes[process as usize].cuda;
        cuda.functions.insert(function, Function::of(name));
    }

    /// The program launches kernels in this way.
    pub(super) fn cuda_launch(&mut self, process: u32, launch: hook::Launch, shape: &LaunchShape) {
        let queue = self.queue(process, shape.queue);
        let known = self.processes[process as usize].kernels.get(&shape.kernel);
        let kernel = match known {
            Some(kernel) => *kernel,
            None => self.kernels.unknown(process),
        };
        let launched = Launch {
            kernel: self.kernels.shaped(kernel, shape),
            queue,
            groups: shape.groups,
        };
        let cuda = &mut self.processes[process as usize].cuda;
        cuda.launches.insert(launch, launched);
    }

    /// No launch below this id comes any more.
    pub(super) fn cuda_launches_end(&mut self, process: u32, below: hook::Launch) {
        let cuda = &mut self.processes[process as usize].cuda;
        cuda.launches.retain(|launch, _| *launch >= below);
    }

    /// Data takes this way.
    pub(super) fn cuda_route(
        &mut self,
        process: u32,
        route: hook::Route,
        queue: hook::Queue,
        kind: TransferKind,
        [source, destination]: [MemoryPlace; 2],
    ) {
        let queue = self.queue(process, queue);
        let host = match kind {
            TransferKind::HostToDevice | TransferKind::HostToHost => source,
            TransferKind::DeviceToHost => destination,
            _ => MemoryPlace::Unknown,
        };
        let known = Route {
            queue,
            kind,
            host_memory: match host {
                MemoryPlace::Pageable | MemoryPlace::Pinned | MemoryPlace::Managed => {
                    Some(Arc::from(host.as_str()))
                }
                _ => None,
            },
        };
        let cuda = &mut self.processes[process as usize].cuda;
        cuda.routes.insert(route, known);
    }

    /// A thread called a function.
    pub(super) fn called(
        &mut self,
        process: u32,
        thread: hook::Thread,
        (function, result): (hook::Function, u32),
        span: Span,
        correlation: hook::Correlation,
        tables: &mut Tables,
    ) {
        self.with_cuda(process, tables, |assembler, cuda, tables| {
            if let Some(call) = assembler.call(thread, (function, result), span) {
                assembler.cuda_call(process, cuda, correlation, call, tables);
            }
        });
    }

    /// A thread asked for the same state, `count` times with `busy_ns` inside the calls.
    pub(super) fn polled(
        &mut self,
        process: u32,
        thread: hook::Thread,
        (function, result): (hook::Function, u32),
        span: Span,
        (count, busy_ns): (u32, i64),
        tables: &mut Tables,
    ) {
        self.with_cuda(process, tables, |assembler, cuda, tables| {
            if let Some(call) = assembler.call(thread, (function, result), span) {
                cuda.poll(process, call, (count, busy_ns.max(0)), tables);
            }
        });
    }

    fn call(
        &mut self,
        thread: hook::Thread,
        (function, result): (hook::Function, u32),
        span: Span,
    ) -> Option<Call> {
        let Some(span) = self.checked(Some(span)) else {
            self.ledger.add("host calls", 1, "their times are damaged");
            return None;
        };
        Some(Call {
            function,
            thread,
            times: (span.start_ns, span.end_ns()),
            result: result as i32,
        })
    }

    /// A batch of activities: `count` of them after the `first` that were written before.
    pub(super) fn activities(
        &mut self,
        process: u32,
        first: u64,
        count: u32,
        bytes: &[u8],
        tables: &mut Tables,
    ) {
        self.with_cuda(process, tables, |assembler, cuda, tables| {
            cuda.written = cuda.written.max(first.saturating_add(count.into()));
            cuda.came = cuda.came.saturating_add(count.into());
            let mut read = 0u32;
            for activity in unpack(bytes).take(count as usize) {
                let Ok(activity) = activity else { break };
                read += 1;
                assembler.activity(process, cuda, activity, tables);
            }
            let damaged = u64::from(count - read);
            let reason = "their batch is damaged";
            assembler.ledger.add("CUDA activities", damaged, reason);
            cuda.event_waits.settle(assembler.latest_ns, false, tables);
        });
    }

    fn with_cuda(
        &mut self,
        process: u32,
        tables: &mut Tables,
        work: impl FnOnce(&mut Assembler, &mut Cuda, &mut Tables),
    ) {
        let mut cuda = std::mem::take(&mut self.processes[process as usize].cuda);
        cuda.is_used = true;
        work(self, &mut cuda, tables);
        self.trim(process, &mut cuda, tables);
        self.processes[process as usize].cuda = cuda;
    }

    #[inline]
    fn activity(&mut self, process: u32, cuda: &mut Cuda, activity: Activity, tables: &mut Tables) {
        match activity {
            Activity::Kernel {
                launch,
                span,
                correlation,
                of_graph,
            } => {
                let known = cuda.launches.get(&launch).copied();
                let known = known.unwrap_or_else(|| self.lost_launch(process));
                let work = Work::kernel(known, self.checked(span), of_graph);
                self.cuda_work(process, cuda, correlation, work, tables);
            }
            Activity::Transfer {
                route,
                bytes,
                span,
                correlation,
                of_graph,
            } => {
                let known = cuda.routes.get(&route).cloned();
                let known = known.unwrap_or_else(|| self.lost_route(process));
                let work = Work::transfer(known, bytes, self.checked(span), of_graph);
                self.cuda_work(process, cuda, correlation, work, tables);
            }
            Activity::GraphRun {
                queue,
                span,
                correlation,
            } => {
                let queue = self.queue(process, queue);
                let work = Work::graph(queue, self.checked(span));
                self.cuda_work(process, cuda, correlation, work, tables);
            }
            Activity::Wait {
                kind,
                queue,
                event,
                occurrence,
                span,
                correlation,
            } => {
                let queue = queue.some().map(|queue| self.queue(process, queue));
                match (kind, queue) {
                    (WaitKind::QueueForEvent, Some(queue)) => {
                        let occurrence = (event, occurrence);
                        cuda.event_waits
                            .waits(queue, correlation, occurrence, self.latest_ns);
                    }
                    (WaitKind::HostForQueue, Some(queue)) => {
                        if let Some(span) = span {
                            let bound = cuda.returns.waited(queue, span);
                            self.returned(queue, bound);
                        }
                        self.cuda_wait(process, cuda, correlation, queue, tables);
                    }
                    // Without its occurrence, it may have been the event's next one.
                    (WaitKind::HostForEvent, _) if occurrence != 0 => {
                        let record = cuda.event_waits.record_of((event, occurrence));
                        if let (Some(span), Some((queue, recorded))) = (span, record) {
                            let bound =
                                cuda.returns
                                    .waited_for_event(queue, recorded, span.end_ns());
                            self.returned(queue, bound);
                        }
                    }
                    (WaitKind::HostForContext, Some(queue)) => {
                        if let Some(span) = span {
                            self.waited_for_context(process, cuda, queue, span);
                        }
                    }
                    _ => {}
                }
            }
            Activity::EventRecord {
                event,
                occurrence,
                queue,
                correlation,
            } => {
                let queue = self.queue(process, queue);
                cuda.event_waits
                    .recorded((event, occurrence), queue, correlation);
            }
            Activity::Overhead { kind, thread, span } => {
                self.cuda_overhead(process, kind, thread, span, tables)
            }
        }
    }

    /// The host waited for all queues of the context of this one.
    fn waited_for_context(&mut self, process: u32, cuda: &mut Cuda, of: u32, span: Span) {
        let context = |queue: u32| {
            let facts = &self.queues[queue as usize].facts;
            (facts.device, facts.family)
        };
        let all = self.processes[process as usize].queues.values().copied();
        let queues: Vec<u32> = all.filter(|queue| context(*queue) == context(of)).collect();
        for queue in queues {
            let bound = cuda.returns.waited(queue, span);
            self.returned(queue, bound);
        }
    }

    /// Times that can be: damage must not make work that lasts for centuries.
    fn checked(&mut self, span: Option<Span>) -> Option<Span> {
        const LONGEST_NS: i64 = 1 << 60;
        let span = span.filter(|s| {
            (1..LONGEST_NS).contains(&s.start_ns) && (0..LONGEST_NS).contains(&s.duration_ns)
        })?;
        self.saw(span.end_ns());
        Some(span)
    }

    fn lost_launch(&mut self, process: u32) -> Launch {
        self.ledger.add(
            "kernels of dispatches",
            1,
            "the record of how they were launched is missing",
        );
        Launch {
            kernel: self.kernels.unknown(process),
            queue: self.queue(process, hook::Queue::NONE),
            groups: [0; 3],
        }
    }

    fn lost_route(&mut self, process: u32) -> Route {
        self.ledger
            .add("ways of transfers", 1, "the record of them is missing");
        Route {
            queue: self.queue(process, hook::Queue::NONE),
            kind: TransferKind::Unknown,
            host_memory: None,
        }
    }
}

impl Cuda {
    /// Puts a half into its slot; gives what was there.
    fn put(&mut self, correlation: hook::Correlation, half: Half) -> Option<Half> {
        let serial = self.next_serial;
        self.next_serial += 1;
        match half {
            Half::Launched(_) => self.launched.push_back((correlation, serial)),
            _ => self.waiting.push_back((correlation, serial)),
        }
        let before = self.slots.insert(correlation, Slot { serial, half });
        before.map(|slot| slot.half)
    }

    /// Entries that wait for their other half.
    #[cfg(test)]
    pub(super) fn waiting(&self) -> usize {
        self.slots.len()
    }

    fn is_current(&self, (correlation, serial): (hook::Correlation, u64)) -> bool {
        self.slots
            .get(&correlation)
            .is_some_and(|slot| slot.serial == serial)
    }
}
