//! Records of what the host did: calls, waits, events that it put on queues, and overheads.

use super::functions::Function;
use super::{NO_TIMES, Reader, span};
use crate::callbacks::told::{Fact, TOLD};
use crate::cupti::fields::{self, Record};
use crate::cupti::{Cupti, numbers};
use gapscope_spool::event::{Activity, OverheadKind, Span, WaitKind};

/// CUpti_ActivityObjectKind of a thread.
const OBJECT_THREAD: u32 = 2;

const NO_QUEUE: &str = "their stream is not known";

impl Reader {
    /// # Safety
    /// It is a call's.
    #[inline]
    pub(super) unsafe fn call(&mut self, cupti: &Cupti, record: &Record<'_>) {
        use fields::call::*;
        // SAFETY: as the caller promises.
        unsafe {
            let thread = record.get(THREAD);
            let (domain, call) = (self.functions.domain_of(record.kind()), record.get(CALL));
            let name = || cupti.call_name(domain, call);
            let (function, is_poll) =
                match self.functions.function(domain, call, self.recorder, name) {
                    Function::Known(function) => (function, false),
                    Function::Poll(function) => (function, true),
                    Function::LeftOut => return,
                    Function::Nameless => {
                        self.losses.add("host calls", "CUPTI has no name for them");
                        return;
                    }
                };
            self.functions.thread(thread, self.recorder);
            let span = span(record.get(START), record.get(END));
            if span.is_none() {
                self.losses.add("host call times", NO_TIMES);
            }
            let result = record.get(RESULT);
            match span {
                Some(span) if is_poll => {
                    let polls = self.polls.add(function, thread, span, result);
                    polls.inspect(|polls| self.packer.push(polls));
                    return;
                }
                _ => self
                    .polls
                    .end(thread)
                    .inspect(|polls| self.packer.push(polls)),
            };
            self.packer.push(&Activity::Call {
                function,
                thread,
                span,
                correlation: record.get(CORRELATION),
                result,
            });
        }
    }

    /// # Safety
    /// It is a synchronisation's.
    pub(super) unsafe fn wait(&mut self, record: &Record<'_>) {
        use fields::wait::*;
        // SAFETY: as the caller promises.
        unsafe {
            let span = span(record.get(START), record.get(END));
            if span.is_none() {
                self.losses.add("wait times", NO_TIMES);
            }
            let kind = match record.get(KIND) {
                1 => WaitKind::HostForEvent,
                2 => WaitKind::QueueForEvent,
                3 => WaitKind::HostForQueue,
                4 => WaitKind::HostForContext,
                _ => WaitKind::Unknown,
            };
            let event = record.get(EVENT);
            let occurrence = record.get_new(OCCURRENCE).unwrap_or(0);
            let event = (
                if event == numbers::NO_ID { 0 } else { event },
                if occurrence as u32 == numbers::NO_ID {
                    0
                } else {
                    occurrence
                },
            );
            let place = (record.get(CONTEXT), record.get(STREAM));
            self.waited((kind, span), place, event, record.get(CORRELATION));
        }
    }

    /// # Safety
    /// It is an event's.
    pub(super) unsafe fn event(&mut self, record: &Record<'_>) {
        use fields::event::*;
        // SAFETY: as the caller promises.
        unsafe {
            let place = (record.get(CONTEXT), record.get(STREAM));
            let occurrence = record.get_new(OCCURRENCE).unwrap_or(0);
            let event = (record.get(EVENT), occurrence);
            self.recorded(place, event, record.get(CORRELATION));
        }
    }

    /// What the program's threads told themselves.
    pub(super) fn told(&mut self) {
        while let Some(told) = TOLD.take() {
            let place = (told.context, told.stream);
            let event = (told.event.0, u64::from(told.event.1));
            match told.fact {
                Fact::Record if told.event.0 == 0 => self
                    .losses
                    .add("events on queues", "there are too many events"),
                Fact::Record => self.recorded(place, event, told.correlation),
                Fact::Wait(kind, span) => self.waited((kind, span), place, event, told.correlation),
            }
            if self.packer.is_full() {
                self.write();
            }
        }
        let lost = u64::from(TOLD.take_lost());
        self.losses
            .add_many("waits and events on queues", lost, "too many at once");
    }

    fn waited(
        &mut self,
        (kind, span): (WaitKind, Option<Span>),
        (context, stream): (u32, u32),
        (event, occurrence): (u32, u64),
        correlation: u32,
    ) {
        let queue = match kind {
            WaitKind::HostForContext => self.objects.queue_of_context(context),
            _ => self.objects.known_queue(context, stream, self.recorder),
        };
        if queue == 0 && matches!(kind, WaitKind::HostForQueue | WaitKind::QueueForEvent) {
            self.losses.add("waits", NO_QUEUE);
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
        (event, occurrence): (u32, u64),
        correlation: u32,
    ) {
        let queue = self.objects.known_queue(context, stream, self.recorder);
        if queue == 0 {
            self.losses.add("events on queues", NO_QUEUE);
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
            // Where its kind cannot be chosen, the object is a thread.
            let object = record.get_new(OBJECT).unwrap_or(OBJECT_THREAD);
            let thread = match object {
                OBJECT_THREAD => record.get(THREAD),
                _ => 0,
            };
            let span = span(record.get(START), record.get(END));
            if span.is_none() {
                self.losses.add("overhead times", NO_TIMES);
            }
            self.packer.push(&Activity::Overhead {
                kind: overhead_kind(record.get(KIND)),
                thread,
                span,
                correlation: record.get_new(CORRELATION).unwrap_or(0),
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
