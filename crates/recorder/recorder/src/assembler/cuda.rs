//! Converts the calls of CUDA programs and the records of CUDA's tracing library from ids of the hook (gapscope's
//! library in the program) to ids of the trace, and passes them to the process's [`TimelineBuilder`].
//!
//! Each host call comes from the thread that made it. Each piece of device work comes as a record (an activity), up
//! to seconds after it happened and in any order. Correlations are CUPTI's numbers of calls: equal ones join calls
//! and work. A `Return` says that work had ended when a call returned; it bounds the error of the device's clock.

mod activity;
mod finish;
mod instructions;
mod profiles;
mod returns;

use super::{Assembler, BusyInterval};
use gapscope_model::cuda::FunctionClass;
use gapscope_model::{LossKind, MemoryPlace, TransferKind};
use gapscope_spool::event::{ActivityBatch, LaunchShape, Span, unpack};
use gapscope_spool::ids as hook;
use gapscope_timeline_builder::{
    ApiCall, CallQueue, Correlation, CorrelationWidener, Function, FunctionId, GraphId, Joined,
    Observer, Output, Polls, Reasons, TimelineBuilder,
};
use gapscope_trace::ids::{KernelId, ProcessId, QueueId, ThreadId};
use gapscope_trace::tables::Tables;
use instructions::Instructions;
pub(super) use profiles::Profile;
use returns::{EndedWork, Return, Returns};
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// The maximum number of busy intervals that are kept for the progress line at once.
const MAX_BUSY_INTERVALS: usize = 1 << 16;

/// The CUDA state of a process, in ids of the hook.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Cuda {
    launches: FxHashMap<hook::Launch, KernelLaunch>,
    routes: FxHashMap<hook::Route, Route>,
    /// Widens correlations of 32 bits, which wrap, to numbers that ascend.
    correlations: CorrelationWidener,
    /// Pairs of work and the calls that waited for it.
    returns: Returns,
    /// Profiles of launches whose work was not recorded yet.
    profiles: FxHashMap<Correlation, Profile>,
    instructions: Instructions,
    /// Whether the process has recorded events of CUDA.
    pub(super) is_used: bool,
    /// The number of activities that the process has written, as its batches say.
    written: u64,
    /// The number of activities whose batches have come.
    came: u64,
}

/// The facts that launches share: the kernel, the queue and the number of workgroups.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
struct KernelLaunch {
    kernel: KernelId,
    queue: QueueId,
    groups: [u32; 3],
}

/// The facts that transfers share: the queue, the kind, and the kinds of memory.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
struct Route {
    queue: QueueId,
    kind: TransferKind,
    /// The memory on the host's side; `None` where there is none or it is unknown.
    host_memory: Option<MemoryPlace>,
}

/// A call of a thread.
pub(super) struct CallRecord {
    pub function: hook::Function,
    pub thread: hook::Thread,
    pub correlation: hook::Correlation,
    pub span: Span,
    /// The CUDA result code; 0 is success.
    pub result: u32,
    /// The number of host nodes of the launched graph, if it is known.
    pub host_functions: Option<u32>,
    /// The launched graph, if it is known.
    pub graph: Option<GraphId>,
}

/// Returns the thread of a record; `None` if it is not known.
fn known_thread(thread: hook::Thread) -> Option<ThreadId> {
    thread.some().map(|thread| ThreadId(thread.0))
}

impl Assembler {
    /// Adds a function that the program calls.
    pub(super) fn cuda_function(
        &mut self,
        process: ProcessId,
        function: hook::Function,
        class: FunctionClass,
        name: &str,
    ) {
        let name = Arc::from(name);
        let timeline = &mut self.processes[process].timeline;
        timeline.add_function(FunctionId(function.0), Function { class, name });
    }

    /// Keeps the facts that the launches with an id share.
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

    /// Removes the facts of launches below an id, which no later activity names.
    pub(super) fn cuda_launches_end(&mut self, process: ProcessId, below: hook::Launch) {
        let cuda = &mut self.processes[process].cuda;
        cuda.launches.retain(|launch, _| *launch >= below);
    }

    /// Keeps the facts that the transfers with an id share.
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

    /// Adds a call that returned.
    pub(super) fn called(&mut self, process: ProcessId, record: CallRecord, tables: &mut Tables) {
        self.called_by(process, record.thread);
        if let Some(call) = self.checked_call(process, record) {
            self.with_timeline(process, tables, |timeline, out| timeline.call(call, out));
            self.write_profiled(process, tables);
        }
    }

    /// Adds `count` calls of a thread that polled the same state and spent `busy_ns` inside the calls.
    pub(super) fn polled(
        &mut self,
        process: ProcessId,
        record: CallRecord,
        count: u32,
        busy_ns: i64,
        tables: &mut Tables,
    ) {
        if let Some(call) = self.checked_call(process, record) {
            let polls = Polls {
                call,
                count,
                busy_ns: busy_ns.max(0),
            };
            self.with_timeline(process, tables, |timeline, out| timeline.polls(polls, out));
        }
    }

    /// Converts a call to ids of the trace; one whose times are damaged is counted as lost.
    fn checked_call(&mut self, process: ProcessId, record: CallRecord) -> Option<ApiCall> {
        self.processes[process].cuda.is_used = true;
        let Some(span) = self.checked(Some(record.span)) else {
            self.ledger
                .add(LossKind::HostCalls, 1, "their times are damaged");
            return None;
        };
        let correlations = &mut self.processes[process].cuda.correlations;
        Some(ApiCall {
            function: FunctionId(record.function.0),
            thread: known_thread(record.thread),
            correlation: correlations.widen(record.correlation.0),
            span,
            result: record.result as i32,
            queue: CallQueue::ComesLater,
            host_functions: record.host_functions,
            graph: record.graph,
        })
    }

    /// Adds a batch of activities.
    pub(super) fn activities(
        &mut self,
        process: ProcessId,
        batch: ActivityBatch<'_>,
        tables: &mut Tables,
    ) {
        let count = batch.count;
        let cuda = &mut self.processes[process].cuda;
        cuda.is_used = true;
        cuda.written = (cuda.written).max(batch.first.saturating_add(count.into()));
        cuda.came = cuda.came.saturating_add(count.into());
        let mut read = 0u32;
        for activity in unpack(batch.bytes).take(count as usize) {
            let Ok(activity) = activity else { break };
            read += 1;
            self.activity(process, activity, tables);
        }
        let damaged = u64::from(count - read);
        let reason = "their batch is damaged";
        (self.ledger).add(LossKind::CudaActivities, damaged, reason);
        self.with_timeline(process, tables, TimelineBuilder::settle);
        self.write_profiled(process, tables);
    }

    /// Changes the timeline of a process and bounds the error of device clocks by the work that is joined.
    #[inline]
    fn with_timeline<T>(
        &mut self,
        process: ProcessId,
        tables: &mut Tables,
        change: impl FnOnce(&mut TimelineBuilder, &mut Output<'_>) -> T,
    ) -> T {
        let state = &mut self.processes[process];
        let mut observer = CausalBounds {
            returns: &mut state.cuda.returns,
            devices: &mut self.devices,
            queues: &self.queues,
            recent: &mut self.recent,
        };
        let mut out = Output {
            process,
            tables,
            labels: &mut self.labels,
            ledger: &mut self.ledger,
            ids: &mut self.ids,
            observer: &mut observer,
            now_ns: self.latest_ns,
            reasons: Reasons {
                untimed: "the tracing library delivered no times",
                without_call: "the record of the call is missing",
            },
        };
        change(&mut state.timeline, &mut out)
    }

    /// Returns a span if it is possible: damaged data must not make work that lasts for centuries.
    pub(super) fn checked(&mut self, span: Option<Span>) -> Option<Span> {
        const MAX_NS: i64 = 1 << 60;
        let span = span.filter(|s| {
            (1..MAX_NS).contains(&s.start_ns) && (0..MAX_NS).contains(&s.duration_ns)
        })?;
        self.saw(span.end_ns());
        Some(span)
    }

    /// Records that work on a device ended before its record was delivered.
    pub(super) fn delivered(
        &mut self,
        process: ProcessId,
        device: hook::Device,
        end_ns: i64,
        at_ns: i64,
    ) {
        let device = self.device(process, device);
        let is_sane = [end_ns, at_ns].iter().all(|ns| (1..1 << 60).contains(ns));
        if let (true, Some(causal)) = (is_sane, self.devices[device].causal()) {
            causal.returned(end_ns, at_ns);
        }
    }

    /// Records that work on a queue ended before a call returned that waited for it.
    fn returned(&mut self, queue: QueueId, bound: Option<Return>) {
        let device = self.queues[queue].facts.device;
        if let Some(Return { end_ns, return_ns }) = bound
            && let Some(causal) = self.devices[device].causal()
        {
            causal.returned(end_ns, return_ns);
        }
    }
}

/// Bounds the error of device clocks by cause and effect: work starts on a queue after the call that launched it, and
/// ends before a call returns that waited for it.
struct CausalBounds<'a> {
    returns: &'a mut Returns,
    devices: &'a mut super::Indexed<gapscope_trace::ids::DeviceId, super::Device>,
    queues: &'a super::Indexed<QueueId, super::Queue>,
    recent: &'a mut Vec<BusyInterval>,
}

impl Observer for CausalBounds<'_> {
    #[inline]
    fn ran(&mut self, span: Span) {
        // The progress line may not be reading the intervals.
        if self.recent.len() < MAX_BUSY_INTERVALS {
            self.recent.push(BusyInterval {
                start_ns: span.start_ns,
                end_ns: span.end_ns(),
            });
        }
    }

    #[inline]
    fn joined(&mut self, joined: Joined<'_>) {
        let Joined {
            call,
            queue,
            span: work,
            ..
        } = joined;
        let ended = EndedWork {
            launched_ns: call.span.end_ns(),
            launch: joined.correlation,
            end_ns: work.end_ns(),
        };
        let by_other_call = self.returns.ended(queue, ended);
        let by_own_call = joined.is_awaited.then_some(Return {
            end_ns: work.end_ns(),
            return_ns: call.span.end_ns(),
        });
        let Some(causal) = self.devices[self.queues[queue].facts.device].causal() else {
            return;
        };
        causal.launched(call.span.start_ns, work.start_ns);
        for bound in [by_other_call, by_own_call].into_iter().flatten() {
            causal.returned(bound.end_ns, bound.return_ns);
        }
    }
}
