//! What the host did: waits, events that it put on queues, and overheads.

use super::{NO_TIMES, Reader, span};
use crate::callbacks::told::{Fact, TOLD};
use crate::cupti::fields::{self, Record};
use crate::cupti::numbers;
use gapscope_spool::event::{Activity, LossKind, OverheadKind, Span, WaitKind};
use gapscope_spool::ids;

/// CUpti_ActivityObjectKind of a thread.
const OBJECT_THREAD: u32 = 2;

/// So many facts may wait for their context.
const MOST_UNPLACED: usize = 1 << 16;

const NO_QUEUE: &str = "their stream is not known";

impl Reader {
    /// What the program's threads told themselves. Of contexts that CUPTI has not told of yet it waits, unless this is the
    /// `last` time.
    pub(super) fn told(&mut self, last: bool) {
        let before = std::mem::take(&mut self.unplaced);
        for told in before.into_iter().chain(std::iter::from_fn(|| TOLD.take())) {
            let can_wait = !last && self.unplaced.len() < MOST_UNPLACED;
            let is_named = told.context != numbers::NO_ID;
            if can_wait && is_named && !self.objects.knows(told.context) {
                self.unplaced.push(told);
                continue;
            }
            let place = (told.context, told.stream);
            let event = (ids::CudaEvent(told.event.0), u64::from(told.event.1));
            let correlation = ids::Correlation(told.correlation);
            match told.fact {
                Fact::Record if told.event.0 == 0 => self
                    .losses
                    .add(LossKind::EventsOnQueues, "there are too many events"),
                Fact::Record => self.recorded(place, event, correlation),
                Fact::Wait(kind, span) => self.waited((kind, span), place, event, correlation),
            }
            if self.packer.is_full() {
                self.write();
            }
        }
        let lost = u64::from(TOLD.take_lost());
        self.losses
            .add_many(LossKind::WaitsAndEvents, lost, "too many at once");
    }

    fn waited(
        &mut self,
        (kind, span): (WaitKind, Option<Span>),
        (context, stream): (u32, u32),
        (event, occurrence): (ids::CudaEvent, u64),
        correlation: ids::Correlation,
    ) {
        let queue = match kind {
            WaitKind::HostForContext => self.objects.queue_of_context(context),
            _ => self.objects.known_queue(context, stream, self.recorder),
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
            event,
            occurrence,
            span,
            correlation,
        });
    }

    fn recorded(
        &mut self,
        (context, stream): (u32, u32),
        (event, occurrence): (ids::CudaEvent, u64),
        correlation: ids::Correlation,
    ) {
        let queue = self.objects.known_queue(context, stream, self.recorder);
        if queue == ids::Queue::NONE {
            self.losses.add(LossKind::EventsOnQueues, NO_QUEUE);
            return;
        }
        self.packer.push(&Activity::EventRecord {
            event,
            occurrence,
            queue,
            correlation,
        });
    }

    /// # Safety
    /// It is an overhead's.
    pub(super) unsafe fn overhead(&mut self, record: &Record<'_>) {
        use fields::overhead::*;
        // SAFETY: as the caller promises.
        unsafe {
            let thread = match record.get(OBJECT) {
                OBJECT_THREAD => record.get(THREAD),
                _ => 0,
            };
            let span = span(record.get(START), record.get(END));
            if span.is_none() {
                self.losses.add(LossKind::OverheadTimes, NO_TIMES);
            }
            self.packer.push(&Activity::Overhead {
                kind: overhead_kind(record.get(KIND)),
                thread: ids::Thread(thread),
                span,
            });
        }
    }
}

/// CUpti_ActivityOverheadKind
fn overhead_kind(number: u32) -> OverheadKind {
    match (number & 0xffff, number >> 16) {
        (1, 0) => OverheadKind::Compiler,
        (0, 1) => OverheadKind::BufferFlush,
        (0, 2) => OverheadKind::Instrumentation,
        (0, 3) => OverheadKind::Resource,
        (0, 4) => OverheadKind::ModuleLoading,
        (0, 5) => OverheadKind::FunctionLoading,
        (0, 6) => OverheadKind::CommandBufferFull,
        (0, 7) => OverheadKind::BufferRequest,
        (0, 8) => OverheadKind::UnifiedMemory,
        _ => OverheadKind::Unknown,
    }
}
