//! Adds activities (reports of CUDA's tracing library about work, waits and overheads) one at a time to the
//! timeline of their process.

use super::{Assembler, KernelLaunch, Route, known_thread};
use gapscope_model::{LossKind, TransferKind};
use gapscope_spool::event::{Activity, GraphChange, Span, WaitKind};
use gapscope_spool::ids as hook;
use gapscope_timeline_builder::{
    Correlation, DeviceWork, DeviceWorkKind, EventOccurrence, Overhead, StreamPlace,
};
use gapscope_trace::ids::{ProcessId, QueueId};
use gapscope_trace::tables::Tables;

/// A wait of the host, or of a queue.
struct WaitRecord {
    kind: WaitKind,
    queue: Option<QueueId>,
    /// The record of an event that was waited for; number 0 for none.
    occurrence: EventOccurrence,
    /// The time of the host's wait; `None` for a wait of a queue.
    span: Option<Span>,
    correlation: Option<Correlation>,
}

impl Assembler {
    /// Takes a change of a graph by a thread.
    pub(in super::super) fn graph_changed(
        &mut self,
        process: ProcessId,
        thread: hook::Thread,
        change: GraphChange,
    ) {
        let timeline = &mut self.processes[process].timeline;
        timeline.graph_changed(known_thread(thread), change);
    }

    /// Adds an activity to the timeline of its process.
    #[inline]
    pub(super) fn activity(&mut self, process: ProcessId, activity: Activity, tables: &mut Tables) {
        let (queue, span, correlation, node, kind) = match activity {
            Activity::Kernel {
                launch,
                span,
                correlation,
                node,
            } => {
                let known = self.processes[process].cuda.launches.get(&launch).copied();
                let known = known.unwrap_or_else(|| self.lost_launch(process));
                let kind = DeviceWorkKind::Kernel {
                    kernel: known.kernel,
                    groups: known.groups.map(|groups| Some(groups).filter(|g| *g > 0)),
                };
                (known.queue, span, correlation, node, kind)
            }
            Activity::Transfer {
                route,
                bytes,
                span,
                correlation,
                node,
            } => {
                let known = self.processes[process].cuda.routes.get(&route).copied();
                let known = known.unwrap_or_else(|| self.lost_route(process));
                let kind = DeviceWorkKind::Transfer {
                    kind: known.kind,
                    bytes: Some(bytes),
                    host_memory: known.host_memory,
                };
                (known.queue, span, correlation, node, kind)
            }
            Activity::GraphRun {
                queue,
                span,
                correlation,
            } => {
                let queue = self.queue(process, queue);
                let node = hook::GraphNode::NONE;
                (queue, span, correlation, node, DeviceWorkKind::Graph)
            }
            Activity::Wait {
                kind,
                queue,
                event,
                occurrence,
                span,
                correlation,
            } => {
                let wait = WaitRecord {
                    kind,
                    queue: queue.some().map(|queue| self.queue(process, queue)),
                    occurrence: EventOccurrence {
                        event: event.0.into(),
                        number: occurrence,
                    },
                    span,
                    correlation: self.wide(process, correlation),
                };
                return self.waited(process, &wait, tables);
            }
            Activity::EventRecord {
                event,
                occurrence,
                queue,
                correlation,
            } => {
                let queue = self.queue(process, queue);
                if let Some(correlation) = self.wide(process, correlation) {
                    let occurrence = EventOccurrence {
                        event: event.0.into(),
                        number: occurrence,
                    };
                    let place = StreamPlace { queue, correlation };
                    let timeline = &mut self.processes[process].timeline;
                    timeline.event_recorded(occurrence, place);
                }
                return;
            }
            Activity::Overhead { kind, thread, span } => {
                if let Some(span) = self.checked(span) {
                    let overhead = Overhead {
                        thread: known_thread(thread),
                        span,
                        kind,
                        tool: "CUPTI",
                    };
                    self.with_timeline(process, tables, |timeline, out| {
                        timeline.overhead(&overhead, out);
                    });
                }
                return;
            }
            Activity::Submission { queue, correlation } => {
                let queue = self.queue(process, queue);
                let correlation = self.wide(process, correlation);
                return self.queue_of_call(process, correlation, queue, tables);
            }
            Activity::HostFunction {
                queue,
                thread,
                span,
                correlation: _,
            } => {
                let queue = self.queue(process, queue);
                if let Some(span) = self.checked(span) {
                    self.with_timeline(process, tables, |timeline, out| {
                        timeline.host_function(queue, known_thread(thread), span, out);
                    });
                }
                return;
            }
        };
        let work = DeviceWork {
            queue,
            span: self.checked(span),
            of_graph: kind == DeviceWorkKind::Graph || node.some().is_some(),
            graph: node.graph().some(),
            graph_node: node.some(),
            label: None,
            kind,
        };
        let correlation = self.wide(process, correlation);
        self.with_timeline(process, tables, |timeline, out| {
            timeline.work(correlation, work, out);
        });
    }

    /// Widens a correlation, which wraps at 32 bits, to a number that ascends.
    fn wide(&mut self, process: ProcessId, correlation: hook::Correlation) -> Option<Correlation> {
        let correlations = &mut self.processes[process].cuda.correlations;
        correlations.widen(correlation.0)
    }

    /// Tells the timeline on which queue a call put its work.
    fn queue_of_call(
        &mut self,
        process: ProcessId,
        correlation: Option<Correlation>,
        queue: QueueId,
        tables: &mut Tables,
    ) {
        if let Some(correlation) = correlation {
            self.with_timeline(process, tables, |timeline, out| {
                timeline.queue_of_call(correlation, queue, out);
            });
        }
    }

    /// Uses a wait: a queue's wait becomes a dependency, and a host's wait bounds the end of the work that it waited
    /// for.
    fn waited(&mut self, process: ProcessId, wait: &WaitRecord, tables: &mut Tables) {
        let now_ns = self.latest_ns;
        let state = &mut self.processes[process];
        match (wait.kind, wait.queue) {
            (WaitKind::QueueForEvent, Some(queue)) => {
                if let Some(correlation) = wait.correlation {
                    let place = StreamPlace { queue, correlation };
                    (state.timeline).stream_waits(place, wait.occurrence, now_ns);
                }
            }
            (WaitKind::HostForQueue, Some(queue)) => {
                if let Some(span) = wait.span {
                    let bound = state.cuda.returns.waited(queue, span);
                    self.returned(queue, bound);
                }
                self.queue_of_call(process, wait.correlation, queue, tables);
            }
            // Without the number, the wait may have been for the event's next occurrence.
            (WaitKind::HostForEvent, _) if wait.occurrence.number != 0 => {
                let record = state.timeline.place_of_event(wait.occurrence);
                if let (Some(span), Some(record)) = (wait.span, record) {
                    let bound = state.cuda.returns.waited_for_event(record, span.end_ns());
                    self.returned(record.queue, bound);
                }
                if let Some(correlation) = wait.correlation {
                    self.with_timeline(process, tables, |timeline, out| {
                        timeline.event_of_call(correlation, wait.occurrence, out);
                    });
                }
            }
            (WaitKind::HostForContext, Some(queue)) => {
                if let Some(span) = wait.span {
                    self.waited_for_context(process, queue, span);
                }
            }
            _ => {}
        }
    }

    /// Records that the host waited for all queues in the context of `one`, a queue; the queue's family is its
    /// context.
    fn waited_for_context(&mut self, process: ProcessId, one: QueueId, span: Span) {
        let context = |queue: QueueId| {
            let facts = &self.queues[queue].facts;
            (facts.device, facts.family)
        };
        let all = self.processes[process].queues.values().copied();
        let queues: Vec<QueueId> = all
            .filter(|queue| context(*queue) == context(one))
            .collect();
        for queue in queues {
            let bound = self.processes[process].cuda.returns.waited(queue, span);
            self.returned(queue, bound);
        }
    }

    /// Counts a kernel without the record of its launch shape as lost, and returns unknown facts.
    fn lost_launch(&mut self, process: ProcessId) -> KernelLaunch {
        let reason = "the record of how they were launched is missing";
        self.ledger.add(LossKind::DispatchKernels, 1, reason);
        KernelLaunch {
            kernel: self.kernels.unknown(process),
            queue: self.queue(process, hook::Queue::NONE),
            groups: [0; 3],
        }
    }

    /// Counts a transfer without the record of its route as lost, and returns unknown facts.
    fn lost_route(&mut self, process: ProcessId) -> Route {
        let reason = "the record of them is missing";
        self.ledger.add(LossKind::TransferRoutes, 1, reason);
        Route {
            queue: self.queue(process, hook::Queue::NONE),
            kind: TransferKind::Unknown,
            host_memory: None,
        }
    }
}
