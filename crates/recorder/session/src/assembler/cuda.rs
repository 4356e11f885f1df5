//! CUDA: what the program called and what its tracing library recorded, to rows.
//!
//! Each host call comes from the thread that made it, and each piece of work on the device as an entry of its own, up to
//! seconds after it happened and in any order; equal correlations say what belongs together. A call that launches work
//! becomes a submission, the launch of a graph a command buffer with its nodes, every other call a host call. Both halves
//! wait for each other, in bounded memory.

mod activity;
mod call;
mod event_waits;
mod finish;
mod graph_captures;
mod instructions;
mod profiles;
mod returns;
mod work;

use super::Assembler;
use call::{Call, Function, Polls};
use event_waits::EventWaits;
use gapscope_model::cuda::FunctionClass;
use gapscope_model::{LossKind, MemoryPlace, TransferKind};
use gapscope_spool::event::{LaunchShape, Span, unpack};
use gapscope_spool::ids as hook;
use gapscope_trace::ids::{KernelId, ProcessId, QueueId};
use gapscope_trace::tables::Tables;
use graph_captures::GraphCaptures;
pub(super) use instructions::FunctionSamples;
use instructions::Instructions;
pub(super) use profiles::Profile;
use returns::Returns;
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use std::sync::Arc;
use work::{Launch, LaunchedWork, Route};

/// Entries that wait for their other half.
pub(super) const MOST_WAITING: usize = 1 << 18;
/// Launches whose work has come stay known for more of it, such as the other parts of a batch of copies.
const MOST_LAUNCHED: usize = 1 << 12;
/// Likewise graphs, which may run for long while other streams are busy: only other graphs take their place.
const MOST_GRAPHS: usize = 1 << 14;

/// What is known of a process's use of CUDA.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Cuda {
    functions: FxHashMap<hook::Function, Function>,
    launches: FxHashMap<hook::Launch, KernelLaunch>,
    routes: FxHashMap<hook::Route, Route>,
    slots: FxHashMap<hook::Correlation, Slot>,
    next_serial: u64,
    /// Slots whose other half has not come, the oldest first.
    waiting: VecDeque<SlotKey>,
    /// Slots of launches whose work has come, but for graphs.
    launched: VecDeque<SlotKey>,
    /// Those of graphs.
    graphs: VecDeque<SlotKey>,
    /// Folded polls of threads.
    polls: FxHashMap<hook::Thread, Polls>,
    event_waits: EventWaits,
    returns: Returns,
    graph_captures: GraphCaptures,
    /// Profiles of launches whose work has not come.
    profiles: FxHashMap<hook::Correlation, Profile>,
    instructions: Instructions,
    /// The latest start of a call whose work has come.
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

/// A slot: correlations wrap, serials do not.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
struct SlotKey {
    correlation: hook::Correlation,
    serial: u64,
}

/// The half that came first, or both.
#[derive(Debug, Serialize, Deserialize)]
enum Half {
    /// A call, whose work or wait has not come.
    Call(Call),
    /// Work, whose call has not come.
    Work(LaunchedWork),
    /// The queue that a call waits for or puts something on; the call has not come.
    Queue(QueueId),
    /// A launch and its work.
    Launched(Launch),
}

/// A way to launch a kernel, in the trace's ids.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
struct KernelLaunch {
    kernel: KernelId,
    queue: QueueId,
    groups: [u32; 3],
}

/// A thread called a function.
pub(super) struct CallRecord {
    pub function: hook::Function,
    pub thread: hook::Thread,
    pub correlation: hook::Correlation,
    pub span: Span,
    pub result: u32,
    /// Of the graph that it launched, where that is known.
    pub host_functions: Option<u32>,
}

/// A batch of activities.
pub(super) struct Batch<'a> {
    /// Activities that were written before.
    pub first: u64,
    pub count: u32,
    pub bytes: &'a [u8],
}

impl Assembler {
    /// The program calls this function.
    pub(super) fn cuda_function(
        &mut self,
        process: ProcessId,
        function: hook::Function,
        class: FunctionClass,
        name: &str,
    ) {
        let name = Arc::from(name);
        let cuda = &mut self.processes[process].cuda;
        cuda.functions.insert(function, Function { class, name });
    }

    /// The program launches kernels in this way.
    pub(super) fn cuda_launch(
        &mut self,
        process: ProcessId,
        launch: hook::Launch,
        shape: &LaunchShape,
    ) {
        let queue = self.queue(process, shape.queue);
        let known = self.processes[process].kernels.get(&shape.kernel);
        let kernel = match known {
            Some(kernel) => *kernel,
            None => self.kernels.unknown(process),
        };
        let known = KernelLaunch {
            kernel: self.kernels.shaped(kernel, shape),
            queue,
            groups: shape.groups,
        };
        self.processes[process].cuda.launches.insert(launch, known);
    }

    /// No launch below this id comes any more.
    pub(super) fn cuda_launches_end(&mut self, process: ProcessId, below: hook::Launch) {
        let cuda = &mut self.processes[process].cuda;
        cuda.launches.retain(|launch, _| *launch >= below);
    }

    /// Transfers go this way.
    pub(super) fn cuda_route(
        &mut self,
        process: ProcessId,
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
        let is_known = matches!(
            host,
            MemoryPlace::Pageable | MemoryPlace::Pinned | MemoryPlace::Managed
        );
        let known = Route {
            queue,
            kind,
            host_memory: is_known.then_some(host),
        };
        self.processes[process].cuda.routes.insert(route, known);
    }

    /// A thread called a function.
    pub(super) fn called(&mut self, process: ProcessId, record: CallRecord, tables: &mut Tables) {
        self.with_cuda(process, tables, |assembler, cuda, tables| {
            if let Some(call) = assembler.checked_call(record) {
                assembler.cuda_call(process, cuda, call, tables);
            }
        });
    }

    /// A thread asked for the same state, `count` times with `busy_ns` inside the calls.
    pub(super) fn polled(
        &mut self,
        process: ProcessId,
        record: CallRecord,
        count: u32,
        busy_ns: i64,
        tables: &mut Tables,
    ) {
        self.with_cuda(process, tables, |assembler, cuda, tables| {
            if let Some(call) = assembler.checked_call(record) {
                let polls = Polls {
                    call,
                    count,
                    busy_ns: busy_ns.max(0),
                };
                cuda.poll(process, polls, tables);
            }
        });
    }

    fn checked_call(&mut self, record: CallRecord) -> Option<Call> {
        let Some(span) = self.checked(Some(record.span)) else {
            self.ledger
                .add(LossKind::HostCalls, 1, "their times are damaged");
            return None;
        };
        Some(Call {
            function: record.function,
            thread: record.thread,
            correlation: record.correlation,
            span,
            result: record.result as i32,
            host_functions: record.host_functions,
        })
    }

    /// Activities have come.
    pub(super) fn activities(&mut self, process: ProcessId, batch: Batch<'_>, tables: &mut Tables) {
        let count = batch.count;
        self.with_cuda(process, tables, |assembler, cuda, tables| {
            cuda.written = (cuda.written).max(batch.first.saturating_add(count.into()));
            cuda.came = cuda.came.saturating_add(count.into());
            let mut read = 0u32;
            for activity in unpack(batch.bytes).take(count as usize) {
                let Ok(activity) = activity else { break };
                read += 1;
                assembler.activity(process, cuda, activity, tables);
            }
            let damaged = u64::from(count - read);
            let reason = "their batch is damaged";
            (assembler.ledger).add(LossKind::CudaActivities, damaged, reason);
            cuda.event_waits.settle(assembler.latest_ns, false, tables);
        });
    }

    fn with_cuda(
        &mut self,
        process: ProcessId,
        tables: &mut Tables,
        change: impl FnOnce(&mut Assembler, &mut Cuda, &mut Tables),
    ) {
        let mut cuda = std::mem::take(&mut self.processes[process].cuda);
        cuda.is_used = true;
        change(self, &mut cuda, tables);
        self.trim(process, &mut cuda, tables);
        self.processes[process].cuda = cuda;
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
}

impl Cuda {
    /// Puts a half into its slot.
    fn put(&mut self, correlation: hook::Correlation, half: Half) {
        let serial = self.next_serial;
        self.next_serial += 1;
        let key = SlotKey {
            correlation,
            serial,
        };
        let keys = match &half {
            Half::Launched(launch) if launch.is_graph() => &mut self.graphs,
            Half::Launched(_) => &mut self.launched,
            _ => &mut self.waiting,
        };
        keys.push_back(key);
        self.slots.insert(correlation, Slot { serial, half });
    }

    /// Entries that wait for their other half.
    #[cfg(test)]
    pub(super) fn waiting(&self) -> usize {
        self.slots.len()
    }

    fn is_current(&self, key: SlotKey) -> bool {
        let slot = self.slots.get(&key.correlation);
        slot.is_some_and(|slot| slot.serial == key.serial)
    }
}
