//! Work on the device, and the launches that caused it.

use super::call::{Call, known_thread};
use super::event_waits::QueuePlace;
use super::returns::{EndedWork, Return};
use super::{Assembler, Cuda, Half, KernelLaunch};
use crate::assembler::BusyInterval;
use crate::assembler::hull::Hull;
use gapscope_model::cuda::FunctionClass;
use gapscope_model::{LossKind, MemoryPlace, SubmissionKind, TransferKind};
use gapscope_spool::event::Span;
use gapscope_spool::ids as hook;
use gapscope_trace::ids::{CommandBufferId, KernelId, LabelId, ProcessId, QueueId, SubmissionId};
use gapscope_trace::tables::{
    CommandBuffer, Dispatch, OpaqueWorkKind, OpaqueWorkRow, Submission, Table, Tables, Timing,
    Transfer,
};
use serde::{Deserialize, Serialize};

/// Pieces of work that the progress line takes in at once.
const MOST_RECENT: usize = 1 << 16;

/// A way of transfers, in the trace's ids.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct Route {
    pub queue: QueueId,
    pub kind: TransferKind,
    pub host_memory: Option<MemoryPlace>,
}

/// A piece of work on the device.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct DeviceWork {
    queue: QueueId,
    span: Option<Span>,
    /// It is a node of a graph, or a whole one.
    of_graph: bool,
    kind: DeviceWorkKind,
}

#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
enum DeviceWorkKind {
    Kernel {
        kernel: KernelId,
        groups: [u32; 3],
    },
    Transfer {
        kind: TransferKind,
        bytes: u64,
        host_memory: Option<MemoryPlace>,
    },
    Graph,
}

/// The work of one call.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct LaunchedWork {
    pub first: DeviceWork,
    pub more: Vec<DeviceWork>,
}

/// A launch, for its work.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Launch {
    /// `None` where the record of the call is missing, as the call.
    submission: Option<SubmissionId>,
    call: Option<Call>,
    /// The call returned only when its copy had ended.
    awaited: bool,
    /// The innermost label on the thread that called.
    label: Option<LabelId>,
    /// Pieces of work so far.
    position: u32,
    /// It was profiled: of the records of its kernel the first counts.
    profiled: bool,
    graph: Option<Box<GraphLaunch>>,
}

/// The launch of a graph: a command buffer of which more may come.
#[derive(Debug, Serialize, Deserialize)]
struct GraphLaunch {
    id: CommandBufferId,
    queue: QueueId,
    hull: Hull,
    dispatches: u32,
    transfers: u32,
}

impl Launch {
    pub(super) fn is_graph(&self) -> bool {
        self.graph.is_some()
    }
}

impl DeviceWork {
    pub(super) fn kernel(shape: KernelLaunch, span: Option<Span>, of_graph: bool) -> DeviceWork {
        DeviceWork {
            queue: shape.queue,
            span,
            of_graph,
            kind: DeviceWorkKind::Kernel {
                kernel: shape.kernel,
                groups: shape.groups,
            },
        }
    }

    pub(super) fn transfer(
        route: Route,
        bytes: u64,
        span: Option<Span>,
        of_graph: bool,
    ) -> DeviceWork {
        DeviceWork {
            queue: route.queue,
            span,
            of_graph,
            kind: DeviceWorkKind::Transfer {
                kind: route.kind,
                bytes,
                host_memory: route.host_memory,
            },
        }
    }

    pub(super) fn graph(queue: QueueId, span: Option<Span>) -> DeviceWork {
        DeviceWork {
            queue,
            span,
            of_graph: true,
            kind: DeviceWorkKind::Graph,
        }
    }

    /// True for copies that a copying call without `Async` in its name sees to their end, as CUDA documents: those to the
    /// host, and those from pinned memory. From pageable memory only a staging copy is awaited, on a device nothing.
    fn is_awaited(&self) -> bool {
        match self.kind {
            DeviceWorkKind::Transfer {
                kind, host_memory, ..
            } => match kind {
                TransferKind::DeviceToHost => true,
                TransferKind::HostToDevice => host_memory == Some(MemoryPlace::Pinned),
                _ => false,
            },
            _ => false,
        }
    }
}

impl Assembler {
    /// Work has come.
    #[inline]
    pub(super) fn cuda_work(
        &mut self,
        process: ProcessId,
        cuda: &mut Cuda,
        correlation: hook::Correlation,
        work: DeviceWork,
        tables: &mut Tables,
    ) {
        let alone = || LaunchedWork {
            first: work,
            more: Vec::new(),
        };
        if correlation == hook::Correlation::NONE {
            self.without_call(process, alone(), tables);
            return;
        }
        match cuda.slots.get_mut(&correlation).map(|slot| &mut slot.half) {
            // Profiled, the kernel runs again and again.
            Some(Half::Launched(launch)) if launch.profiled => {}
            Some(Half::Launched(launch)) => {
                let mut launch = std::mem::take(launch);
                self.write_work(cuda, &mut launch, work, tables);
                if let Some(slot) = cuda.slots.get_mut(&correlation) {
                    slot.half = Half::Launched(launch);
                }
            }
            Some(Half::Work(known)) => known.more.push(work),
            Some(Half::Call(call)) => {
                let call = *call;
                self.launch(process, cuda, call, alone(), tables);
            }
            Some(Half::Queue(_)) | None => cuda.put(correlation, Half::Work(alone())),
        }
    }

    /// A call and its first work have both come.
    pub(super) fn launch(
        &mut self,
        process: ProcessId,
        cuda: &mut Cuda,
        call: Call,
        work: LaunchedWork,
        tables: &mut Tables,
    ) {
        let LaunchedWork { first, more } = work;
        let (queue, start_ns) = (first.queue, call.span.start_ns);
        let command_buffers = u32::from(first.of_graph);
        let submission =
            self.cuda_submission(process, cuda, &call, (queue, command_buffers), tables);
        let copies_and_waits = cuda.class(&call) == FunctionClass::CopyAndWait;
        if copies_and_waits {
            self.host_call(process, cuda, &call, Some(queue), tables);
        }
        cuda.latest_launch_ns = cuda.latest_launch_ns.max(Some(start_ns));
        let profile = cuda.profiles.remove(&call.correlation);
        let mut launch = Launch {
            submission: Some(submission),
            call: Some(call),
            awaited: copies_and_waits && first.is_awaited(),
            label: self.label_at(process, call.thread, start_ns),
            profiled: profile.is_some(),
            ..Launch::default()
        };
        self.write_work(cuda, &mut launch, first, tables);
        if let (Some(profile), DeviceWorkKind::Kernel { kernel, groups }) = (profile, first.kind) {
            self.write_profile(profile, kernel, Some(groups), Some(submission), tables);
        }
        let is_profiled = launch.profiled;
        for work in more.into_iter().filter(|_| !is_profiled) {
            self.write_work(cuda, &mut launch, work, tables);
        }
        cuda.put(call.correlation, Half::Launched(launch));
    }

    /// The row of a call that put something on a queue: so many command buffers, or what is none.
    pub(super) fn cuda_submission(
        &mut self,
        process: ProcessId,
        cuda: &mut Cuda,
        call: &Call,
        (queue, command_buffers): (QueueId, u32),
        tables: &mut Tables,
    ) -> SubmissionId {
        let start_ns = call.span.start_ns;
        let submission = self.next_submission(start_ns);
        tables.submissions.push(Submission {
            id: submission,
            process,
            queue,
            kind: cuda.class(call).submission_kind().unwrap_or_default(),
            thread: known_thread(call.thread),
            start_ns,
            duration_ns: call.span.duration_ns,
            command_buffers,
            function: cuda.name(call),
        });
        let place = QueuePlace {
            queue,
            correlation: call.correlation,
        };
        cuda.event_waits
            .submitted(place, submission, self.latest_ns);
        submission
    }

    fn label_at(
        &mut self,
        process: ProcessId,
        thread: hook::Thread,
        at_ns: i64,
    ) -> Option<LabelId> {
        let labels = &self.processes[process].host_labels;
        labels.at(thread, at_ns).unwrap_or_else(|_| {
            let reason = "the record of the call came too late";
            self.ledger.add(LossKind::LabelsOfWork, 1, reason);
            None
        })
    }

    /// Work whose call is not in the trace.
    pub(super) fn without_call(
        &mut self,
        process: ProcessId,
        work: LaunchedWork,
        tables: &mut Tables,
    ) {
        let LaunchedWork { first, more } = work;
        let count = 1 + more.len() as u64;
        let reason = "the record of the call is missing";
        self.ledger.add(LossKind::HostCallsOfWork, count, reason);
        let mut launch = Launch::default();
        let nothing = &mut Cuda::default();
        for work in std::iter::once(first).chain(more) {
            self.write_work(nothing, &mut launch, work, tables);
        }
        self.close_graph(process, launch, tables);
    }

    /// The row of a piece of work.
    #[inline]
    fn write_work(
        &mut self,
        cuda: &mut Cuda,
        launch: &mut Launch,
        work: DeviceWork,
        tables: &mut Tables,
    ) {
        let queue = work.queue;
        if let Some(span) = work.span {
            // For the progress line only, and nobody may be looking.
            if self.recent.len() < MOST_RECENT {
                self.recent.push(BusyInterval {
                    start_ns: span.start_ns,
                    end_ns: span.end_ns(),
                });
            }
            if let Some(call) = launch.call {
                self.bound_launch(cuda, &call, launch.awaited, queue, span);
            }
        }
        let command_buffer = match work.of_graph {
            true => Some(self.add_to_graph(launch, &work)),
            false => None,
        };
        let position = launch.position;
        launch.position += 1;
        let (start_ns, duration_ns) = (
            work.span.map(|span| span.start_ns),
            work.span.map(|span| span.duration_ns),
        );
        let label = launch.label;
        let submission = launch.submission.filter(|_| command_buffer.is_none());
        let lost = match work.kind {
            DeviceWorkKind::Kernel { kernel, groups } => {
                self.dispatches += 1;
                let [groups_x, groups_y, groups_z] = groups.map(|g| Some(g).filter(|g| *g > 0));
                tables.dispatches.push(Dispatch {
                    command_buffer,
                    position,
                    queue,
                    kernel,
                    start_ns,
                    duration_ns,
                    groups_x,
                    groups_y,
                    groups_z,
                    bindings: None,
                    label,
                    submission,
                });
                LossKind::DispatchTimes
            }
            DeviceWorkKind::Transfer {
                kind,
                bytes,
                host_memory,
            } => {
                tables.transfers.push(Transfer {
                    command_buffer,
                    position,
                    queue,
                    kind,
                    bytes: Some(bytes),
                    start_ns,
                    duration_ns,
                    source: None,
                    destination: None,
                    label,
                    submission,
                    host_memory,
                });
                LossKind::TransferTimes
            }
            DeviceWorkKind::Graph => {
                tables.opaque_work.push(OpaqueWorkRow {
                    command_buffer,
                    position,
                    queue,
                    kind: OpaqueWorkKind::Graph,
                    start_ns,
                    duration_ns,
                    label,
                    submission,
                });
                LossKind::OpaqueWorkTimes
            }
        };
        if work.span.is_none() {
            let reason = match launch.profiled {
                true => {
                    "profiled: the tracing library delivers no times of what is run again and again"
                }
                false => "the tracing library delivered no times",
            };
            self.ledger.add(lost, 1, reason);
        }
    }

    /// Adds a piece of work to the command buffer of its graph.
    fn add_to_graph(&mut self, launch: &mut Launch, work: &DeviceWork) -> CommandBufferId {
        let graph = launch.graph.get_or_insert_with(|| {
            Box::new(GraphLaunch {
                id: self.next_command_buffer(),
                queue: work.queue,
                hull: Hull::default(),
                dispatches: 0,
                transfers: 0,
            })
        });
        if let Some(span) = work.span {
            graph.hull.add(span);
        }
        match work.kind {
            DeviceWorkKind::Kernel { .. } => graph.dispatches += 1,
            DeviceWorkKind::Transfer { .. } => graph.transfers += 1,
            DeviceWorkKind::Graph => {}
        }
        graph.id
    }

    /// Nothing more comes for a launch.
    pub(super) fn close_graph(&mut self, process: ProcessId, launch: Launch, tables: &mut Tables) {
        let Some(graph) = launch.graph else { return };
        let span = graph.hull.span();
        tables.command_buffers.push(CommandBuffer {
            id: graph.id,
            process,
            queue: graph.queue,
            submission: launch.submission.unwrap_or(SubmissionId(u64::MAX)),
            start_ns: span.map(|span| span.start_ns),
            duration_ns: span.map(|span| span.duration_ns),
            seen_ns: None,
            timing: match span {
                Some(_) => Timing::Measured,
                None => Timing::Unknown,
            },
            dispatches: graph.dispatches,
            transfers: graph.transfers,
            label: launch.label,
            name: None,
            host_functions: launch.call.and_then(|call| call.host_functions),
        });
    }

    /// Work started on a queue after the call that launched it, and ended before a call returned that waited for it.
    fn bound_launch(
        &mut self,
        cuda: &mut Cuda,
        call: &Call,
        awaited: bool,
        queue: QueueId,
        work: Span,
    ) {
        if let Some(causal) = self.devices[self.queues[queue].facts.device].causal() {
            causal.launched(call.span.start_ns, work.start_ns);
        }
        let ended = EndedWork {
            launched_ns: call.span.end_ns(),
            launch: call.correlation,
            end_ns: work.end_ns(),
        };
        let bound = cuda.returns.ended(queue, ended);
        self.returned(queue, bound);
        let own = Return {
            end_ns: work.end_ns(),
            return_ns: call.span.end_ns(),
        };
        self.returned(queue, awaited.then_some(own));
    }

    /// Work on a device ended before its record came.
    pub(in crate::assembler) fn delivered(
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

    /// Work on a queue ended before a call returned that waited for it.
    pub(super) fn returned(&mut self, queue: QueueId, bound: Option<Return>) {
        let device = self.queues[queue].facts.device;
        if let Some(Return { end_ns, return_ns }) = bound
            && let Some(causal) = self.devices[device].causal()
        {
            causal.returned(end_ns, return_ns);
        }
    }
}

/// What a launch that never got its work was to launch.
pub(super) fn missing(kind: SubmissionKind) -> LossKind {
    match kind {
        SubmissionKind::Kernel => LossKind::Dispatches,
        SubmissionKind::Graph => LossKind::CommandBuffers,
        _ => LossKind::Transfers,
    }
}
