//! Work on the device, and the launches that caused it.

use super::call::{Call, known_thread};
use super::function::{Does, Launches};
use super::{Assembler, Cuda, Half, Launch};
use crate::assembler::Activity as Busy;
use gapscope_spool::event::{Span, TransferKind};
use gapscope_spool::ids as hook;
use gapscope_trace::tables::{
    self, CommandBuffer, HostCallKind, OpaqueWorkKind, OpaqueWorkRow, Submission, Table, Tables,
    Timing,
};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// Pieces of work that the progress line takes in at once.
const MOST_RECENT: usize = 1 << 16;

/// A way for data, in the trace's ids.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Route {
    pub queue: u32,
    pub kind: TransferKind,
    pub host_memory: Option<Arc<str>>,
}

/// A piece of work on the device.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Work {
    queue: u32,
    /// Begin and duration.
    times: Option<(i64, i64)>,
    /// It is a node of a graph, or a whole one.
    of_graph: bool,
    what: What,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
enum What {
    Kernel {
        kernel: u32,
        groups: [u32; 3],
    },
    Transfer {
        kind: TransferKind,
        bytes: u64,
        host_memory: Option<Arc<str>>,
    },
    Graph,
}

/// A launch, for its work.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Launched {
    /// Id of its submission; `None` where the record of the call is missing.
    submission: Option<u64>,
    /// The call: when it began, when it returned, and its correlation.
    call: Option<(i64, i64, hook::Correlation)>,
    /// It returned only when its copy had ended.
    awaited: bool,
    /// The innermost label on the thread that called.
    label: Option<u32>,
    /// Pieces of work so far.
    position: u32,
    graph: Option<Box<Graph>>,
}

/// The launch of a graph: a command buffer that is still being told of.
#[derive(Debug, Serialize, Deserialize)]
struct Graph {
    id: u64,
    queue: u32,
    /// From the begin of its first node to the end of its last.
    hull: Option<(i64, i64)>,
    dispatches: u32,
    transfers: u32,
}

impl Work {
    pub(super) fn kernel(launch: Launch, span: Option<Span>, of_graph: bool) -> Work {
        let (kernel, groups) = (launch.kernel, launch.groups);
        Work {
            queue: launch.queue,
            times: span.map(|s| (s.start_ns, s.duration_ns)),
            of_graph,
            what: What::Kernel { kernel, groups },
        }
    }

    pub(super) fn transfer(route: Route, bytes: u64, span: Option<Span>, of_graph: bool) -> Work {
        Work {
            queue: route.queue,
            times: span.map(|s| (s.start_ns, s.duration_ns)),
            of_graph,
            what: What::Transfer {
                kind: route.kind,
                bytes,
                host_memory: route.host_memory,
            },
        }
    }

    /// True for copies that a copying call without `Async` in its name sees to their end, as CUDA documents: those to the
    /// host, and those from pinned memory. From pageable memory only a staging copy is awaited, on a device nothing.
    fn is_awaited(&self) -> bool {
        match &self.what {
            What::Transfer {
                kind, host_memory, ..
            } => match kind {
                TransferKind::DeviceToHost => true,
                TransferKind::HostToDevice => host_memory.as_deref() == Some("pinned"),
                _ => false,
            },
            _ => false,
        }
    }

    pub(super) fn graph(queue: u32, span: Option<Span>) -> Work {
        Work {
            queue,
            times: span.map(|s| (s.start_ns, s.duration_ns)),
            of_graph: true,
            what: What::Graph,
        }
    }
}

impl Assembler {
    /// Work has come.
    #[inline]
    pub(super) fn cuda_work(
        &mut self,
        process: u32,
        cuda: &mut Cuda,
        correlation: hook::Correlation,
        work: Work,
        tables: &mut Tables,
    ) {
        if correlation == hook::Correlation::NONE {
            self.without_call(process, work, Vec::new(), tables);
            return;
        }
        match cuda.slots.get_mut(&correlation).map(|slot| &mut slot.half) {
            Some(Half::Launched(launched)) => {
                let mut launched = std::mem::take(launched);
                self.write_work(cuda, &mut launched, work, tables);
                if let Some(slot) = cuda.slots.get_mut(&correlation) {
                    slot.half = Half::Launched(launched);
                }
            }
            Some(Half::Work(_, more)) => more.push(work),
            Some(Half::Call(call)) => {
                let call = *call;
                self.launch_with(
                    process,
                    cuda,
                    (correlation, call),
                    (work, Vec::new()),
                    tables,
                );
            }
            Some(Half::Wait(_)) | None => {
                cuda.put(correlation, Half::Work(work, Vec::new()));
            }
        }
    }

    /// A call and its first work have both come.
    pub(super) fn launch_with(
        &mut self,
        process: u32,
        cuda: &mut Cuda,
        (correlation, call): (hook::Correlation, Call),
        (first, more): (Work, Vec<Work>),
        tables: &mut Tables,
    ) {
        let (queue, of_graph) = (first.queue, first.of_graph);
        let (begin_ns, end_ns) = call.times;
        let id = self.submissions;
        self.submissions += 1;
        self.first_submit_ns = Some(
            self.first_submit_ns
                .map_or(begin_ns, |first| first.min(begin_ns)),
        );
        tables.submissions.push(Submission {
            id,
            process,
            queue,
            thread: known_thread(call.thread),
            begin_ns,
            end_ns,
            command_buffers: u32::from(of_graph),
            function: cuda.name(&call),
        });
        let copies_and_waits = cuda.does(&call) == Does::CopyAndWait;
        if copies_and_waits {
            let kind = HostCallKind::CopyAndWait;
            self.host_call(process, cuda, &call, kind, Some(queue), tables);
        }
        cuda.event_waits
            .submitted(queue, correlation, id, self.latest_ns);
        cuda.latest_launch_ns = cuda.latest_launch_ns.max(Some(begin_ns));
        let mut launched = Launched {
            submission: Some(id),
            call: Some((begin_ns, end_ns, correlation)),
            awaited: copies_and_waits && first.is_awaited(),
            label: self.label_at(process, call.thread, begin_ns),
            ..Launched::default()
        };
        self.write_work(cuda, &mut launched, first, tables);
        for work in more {
            self.write_work(cuda, &mut launched, work, tables);
        }
        cuda.put(correlation, Half::Launched(launched));
    }

    fn label_at(&mut self, process: u32, thread: hook::Thread, at_ns: i64) -> Option<u32> {
        let labels = &self.processes[process as usize].host_labels;
        labels.at(thread, at_ns).unwrap_or_else(|()| {
            let reason = "the record of the call came too late";
            self.ledger.add("labels of GPU work", 1, reason);
            None
        })
    }

    /// Work whose call is not in the trace.
    pub(super) fn without_call(
        &mut self,
        process: u32,
        first: Work,
        more: Vec<Work>,
        tables: &mut Tables,
    ) {
        let count = 1 + more.len() as u64;
        let reason = "the record of the call is missing";
        self.ledger.add("host calls of GPU work", count, reason);
        let mut launched = Launched::default();
        let nothing = &mut Cuda::default();
        for work in std::iter::once(first).chain(more) {
            self.write_work(nothing, &mut launched, work, tables);
        }
        self.close_graph(process, launched, tables);
    }

    /// The row of a piece of work.
    #[inline]
    fn write_work(
        &mut self,
        cuda: &mut Cuda,
        launched: &mut Launched,
        work: Work,
        tables: &mut Tables,
    ) {
        let Work {
            queue,
            times,
            of_graph,
            what,
        } = work;
        if let Some((start_ns, duration_ns)) = times {
            let end_ns = start_ns.saturating_add(duration_ns);
            // For the progress line only, and nobody may be looking.
            if self.recent.len() < MOST_RECENT {
                self.recent.push(Busy {
                    begin_ns: start_ns,
                    end_ns,
                });
            }
            if let Some((begin_ns, return_ns, correlation)) = launched.call {
                self.launched(queue, begin_ns, start_ns);
                let call = (return_ns, correlation);
                let bound = cuda.returns.ended(queue, call, end_ns);
                self.returned(queue, bound);
                self.returned(queue, launched.awaited.then_some((end_ns, return_ns)));
            }
        }
        let mut command_buffer = None;
        if of_graph {
            let graph = launched.graph.get_or_insert_with(|| {
                let id = self.command_buffers;
                self.command_buffers += 1;
                Box::new(Graph {
                    id,
                    queue,
                    hull: None,
                    dispatches: 0,
                    transfers: 0,
                })
            });
            command_buffer = Some(graph.id);
            if let Some((start_ns, duration_ns)) = times {
                let own = (start_ns, start_ns.saturating_add(duration_ns));
                graph.hull = Some(crate::assembler::spans::join(graph.hull, own));
            }
            match what {
                What::Kernel { .. } => graph.dispatches += 1,
                What::Transfer { .. } => graph.transfers += 1,
                What::Graph => {}
            }
        }
        let position = launched.position;
        launched.position += 1;
        let (start_ns, duration_ns) = (times.map(|t| t.0), times.map(|t| t.1));
        let submission = launched.submission.filter(|_| command_buffer.is_none());
        let lost = match what {
            What::Kernel { kernel, groups } => {
                self.dispatches += 1;
                let [x, y, z] = groups.map(|g| Some(g).filter(|g| *g > 0));
                let rows = &mut tables.dispatches;
                rows.command_buffer.push(command_buffer);
                rows.position.push(position);
                rows.queue.push(queue);
                rows.kernel.push(kernel);
                rows.start_ns.push(start_ns);
                rows.duration_ns.push(duration_ns);
                rows.groups_x.push(x);
                rows.groups_y.push(y);
                rows.groups_z.push(z);
                rows.bindings.push(None);
                rows.label.push(launched.label);
                rows.submission.push(submission);
                "dispatch times"
            }
            What::Transfer {
                kind,
                bytes,
                host_memory,
            } => {
                let rows = &mut tables.transfers;
                rows.command_buffer.push(command_buffer);
                rows.position.push(position);
                rows.queue.push(queue);
                rows.kind.push(tables::TransferKind::of(kind.as_str()));
                rows.bytes.push(Some(bytes));
                rows.start_ns.push(start_ns);
                rows.duration_ns.push(duration_ns);
                rows.source.push(None);
                rows.destination.push(None);
                rows.label.push(launched.label);
                rows.submission.push(submission);
                rows.host_memory.push(host_memory);
                "transfer times"
            }
            What::Graph => {
                tables.opaque_work.push(OpaqueWorkRow {
                    command_buffer,
                    position,
                    queue,
                    kind: OpaqueWorkKind::Graph,
                    start_ns,
                    duration_ns,
                    label: launched.label,
                    submission,
                });
                "opaque-work times"
            }
        };
        if times.is_none() {
            let reason = "the tracing library delivered no times";
            self.ledger.add(lost, 1, reason);
        }
    }

    /// Nothing more comes for a launch.
    pub(super) fn close_graph(&mut self, process: u32, launched: Launched, tables: &mut Tables) {
        let Some(graph) = launched.graph else { return };
        tables.command_buffers.push(CommandBuffer {
            id: graph.id,
            process,
            queue: graph.queue,
            submission: launched.submission.unwrap_or(u64::MAX),
            start_ns: graph.hull.map(|h| h.0),
            duration_ns: graph.hull.map(|h| h.1 - h.0),
            seen_ns: None,
            timing: match graph.hull {
                Some(_) => Timing::Measured,
                None => Timing::Unknown,
            },
            dispatches: graph.dispatches,
            transfers: graph.transfers,
            label: launched.label,
            name: None,
        });
    }

    /// Work began on a queue after the call that launched it.
    fn launched(&mut self, queue: u32, call_ns: i64, start_ns: i64) {
        let device = self.queues[queue as usize].facts.device as usize;
        if let Some(causal) = self.devices[device].causal() {
            causal.launched(call_ns, start_ns);
        }
    }

    /// Work on a queue ended before a call returned that waited for it.
    pub(super) fn returned(&mut self, queue: u32, bound: Option<(i64, i64)>) {
        let device = self.queues[queue as usize].facts.device as usize;
        if let Some((end_ns, return_ns)) = bound
            && let Some(causal) = self.devices[device].causal()
        {
            causal.returned(end_ns, return_ns);
        }
    }
}

/// What a launch that never got its work was to launch.
pub(super) fn missing(does: Does) -> &'static str {
    match does {
        Does::Launch(Launches::Kernel) => "dispatches",
        Does::Launch(Launches::Graph) => "command buffers",
        _ => "transfers",
    }
}
