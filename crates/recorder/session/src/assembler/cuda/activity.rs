//! One activity at a time.

use super::event_waits::{Occurrence, QueuePlace};
use super::work::{DeviceWork, Route};
use super::{Assembler, Cuda, KernelLaunch};
use gapscope_model::{LossKind, TransferKind};
use gapscope_spool::event::{Activity, Span, WaitKind};
use gapscope_spool::ids as hook;
use gapscope_trace::ids::{ProcessId, QueueId};
use gapscope_trace::tables::Tables;

/// The host, or a queue, waited.
struct WaitRecord {
    kind: WaitKind,
    queue: Option<QueueId>,
    occurrence: Occurrence,
    span: Option<Span>,
    correlation: hook::Correlation,
}

impl Assembler {
    #[inline]
    pub(super) fn activity(
        &mut self,
        process: ProcessId,
        cuda: &mut Cuda,
        activity: Activity,
        tables: &mut Tables,
    ) {
        match activity {
            Activity::Kernel {
                launch,
                span,
                correlation,
                of_graph,
            } => {
                let known = cuda.launches.get(&launch).copied();
                let known = known.unwrap_or_else(|| self.lost_launch(process));
                let work = DeviceWork::kernel(known, self.checked(span), of_graph);
                self.cuda_work(process, cuda, correlation, work, tables);
            }
            Activity::Transfer {
                route,
                bytes,
                span,
                correlation,
                of_graph,
            } => {
                let known = cuda.routes.get(&route).copied();
                let known = known.unwrap_or_else(|| self.lost_route(process));
                let work = DeviceWork::transfer(known, bytes, self.checked(span), of_graph);
                self.cuda_work(process, cuda, correlation, work, tables);
            }
            Activity::GraphRun {
                queue,
                span,
                correlation,
            } => {
                let queue = self.queue(process, queue);
                let work = DeviceWork::graph(queue, self.checked(span));
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
                let wait = WaitRecord {
                    kind,
                    queue: queue.some().map(|queue| self.queue(process, queue)),
                    occurrence: Occurrence {
                        event,
                        number: occurrence,
                    },
                    span,
                    correlation,
                };
                self.waited(process, cuda, &wait, tables);
            }
            Activity::EventRecord {
                event,
                occurrence,
                queue,
                correlation,
            } => {
                let occurrence = Occurrence {
                    event,
                    number: occurrence,
                };
                let place = QueuePlace {
                    queue: self.queue(process, queue),
                    correlation,
                };
                cuda.event_waits.recorded(occurrence, place);
            }
            Activity::Overhead { kind, thread, span } => {
                self.cuda_overhead(process, kind, thread, span, tables);
            }
            Activity::Submission { queue, correlation } => {
                let queue = self.queue(process, queue);
                self.queue_of_call(process, cuda, correlation, queue, tables);
            }
            Activity::HostFunction {
                queue,
                thread,
                span,
                correlation: _,
            } => {
                let queue = self.queue(process, queue);
                self.host_function(process, queue, thread, span, tables);
            }
        }
    }

    fn waited(
        &mut self,
        process: ProcessId,
        cuda: &mut Cuda,
        wait: &WaitRecord,
        tables: &mut Tables,
    ) {
        let correlation = wait.correlation;
        match (wait.kind, wait.queue) {
            (WaitKind::QueueForEvent, Some(queue)) => {
                let place = QueuePlace { queue, correlation };
                cuda.event_waits
                    .waits(place, wait.occurrence, self.latest_ns);
            }
            (WaitKind::HostForQueue, Some(queue)) => {
                if let Some(span) = wait.span {
                    let bound = cuda.returns.waited(queue, span);
                    self.returned(queue, bound);
                }
                self.queue_of_call(process, cuda, correlation, queue, tables);
            }
            // Without its number, it may have been the event's next occurrence.
            (WaitKind::HostForEvent, _) if wait.occurrence.number != 0 => {
                let record = cuda.event_waits.record_of(wait.occurrence);
                if let (Some(span), Some(record)) = (wait.span, record) {
                    let bound = cuda.returns.waited_for_event(record, span.end_ns());
                    self.returned(record.queue, bound);
                }
            }
            (WaitKind::HostForContext, Some(queue)) => {
                if let Some(span) = wait.span {
                    self.waited_for_context(process, cuda, queue, span);
                }
            }
            _ => {}
        }
    }

    /// The host waited for all queues of the context of this one.
    fn waited_for_context(&mut self, process: ProcessId, cuda: &mut Cuda, of: QueueId, span: Span) {
        let context = |queue: QueueId| {
            let facts = &self.queues[queue].facts;
            (facts.device, facts.family)
        };
        let all = self.processes[process].queues.values().copied();
        let queues: Vec<QueueId> = all.filter(|queue| context(*queue) == context(of)).collect();
        for queue in queues {
            let bound = cuda.returns.waited(queue, span);
            self.returned(queue, bound);
        }
    }

    fn lost_launch(&mut self, process: ProcessId) -> KernelLaunch {
        let reason = "the record of how they were launched is missing";
        self.ledger.add(LossKind::DispatchKernels, 1, reason);
        KernelLaunch {
            kernel: self.kernels.unknown(process),
            queue: self.queue(process, hook::Queue::NONE),
            groups: [0; 3],
        }
    }

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
