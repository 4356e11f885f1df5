//! Turns operations that callbacks passed on from the program's threads into activities: waits, submissions and
//! records of CUDA events (calls that put an event on a stream). An activity needs its queue, so that an operation
//! waits until CUPTI has described its context.

use super::reader::Reader;
use crate::cupti::numbers::NO_ID;
use crate::wait_ring::{OPERATIONS, Operation, OperationKind};
use gapscope_spool::event::{Activity, LossKind, Span, WaitKind};
use gapscope_spool::ids;

/// The most operations that may wait for their context; further ones are read at once.
const MAX_WAITING: usize = 1 << 16;

const NO_QUEUE: &str = "their stream is not known";

impl Reader {
    /// Reads the operations so far. Those of contexts that CUPTI has not described yet wait, unless this is the
    /// `last` time.
    pub(super) fn read_operations(&mut self, last: bool) {
        let before = std::mem::take(&mut self.waiting);
        let new = std::iter::from_fn(|| OPERATIONS.take());
        for operation in before.into_iter().chain(new) {
            let can_wait = !last && self.waiting.len() < MAX_WAITING;
            let context = operation.stream.context;
            if can_wait && context != NO_ID && !self.queues.knows_context(context) {
                self.waiting.push(operation);
                continue;
            }
            match operation.kind {
                OperationKind::Record => self.event_record(&operation),
                OperationKind::Wait(kind, span) => self.wait(&operation, kind, span),
                OperationKind::Submission | OperationKind::GraphLaunch => {
                    self.submission(&operation);
                }
            }
            self.write_full();
        }
        let lost = u64::from(OPERATIONS.take_lost());
        self.losses
            .add_many(LossKind::WaitsAndEvents, lost, "too many at once");
    }

    /// Packs a wait. A wait for a context gets any of its queues; one that needs a queue and has none is counted as
    /// lost.
    fn wait(&mut self, operation: &Operation, kind: WaitKind, span: Option<Span>) {
        let stream = operation.stream;
        let queue = match kind {
            WaitKind::HostForContext => self.queues.any_of_context(stream.context),
            _ => self.queues.of_known_stream(stream, self.recorder),
        };
        if queue == ids::Queue::NONE
            && matches!(kind, WaitKind::HostForQueue | WaitKind::QueueForEvent)
        {
            self.losses.add(LossKind::Waits, NO_QUEUE);
            return;
        }
        self.packer.push(&Activity::Wait {
            kind,
            queue,
            event: operation.event.event,
            occurrence: u64::from(operation.event.number),
            span,
            correlation: operation.correlation,
        });
    }

    /// Packs a submission; one whose stream is not known is counted as lost, unless other records may have it.
    fn submission(&mut self, operation: &Operation) {
        let queue = self.queues.of_known_stream(operation.stream, self.recorder);
        if queue == ids::Queue::NONE {
            if operation.kind == OperationKind::Submission {
                self.losses.add(LossKind::Submissions, NO_QUEUE);
            }
            return;
        }
        self.packer.push(&Activity::Submission {
            queue,
            correlation: operation.correlation,
        });
    }

    /// Packs a record of an event; one whose event or stream is not known is counted as lost.
    fn event_record(&mut self, operation: &Operation) {
        if operation.event.event == ids::CudaEvent::NONE {
            self.losses
                .add(LossKind::EventsOnQueues, "there are too many events");
            return;
        }
        let stream = operation.stream;
        let queue = self.queues.of_known_stream(stream, self.recorder);
        if queue == ids::Queue::NONE {
            self.losses.add(LossKind::EventsOnQueues, NO_QUEUE);
            return;
        }
        self.packer.push(&Activity::EventRecord {
            event: operation.event.event,
            occurrence: u64::from(operation.event.number),
            queue,
            correlation: operation.correlation,
        });
    }
}
