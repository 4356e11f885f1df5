//! Host calls.

use super::{Assembler, Cuda, Half};
use gapscope_model::cuda::FunctionClass;
use gapscope_spool::event::{BETWEEN_POLLS_NS, OverheadKind, Span};
use gapscope_spool::ids as hook;
use gapscope_trace::ids::{ProcessId, QueueId, ThreadId};
use gapscope_trace::tables::{HostCall, HostCallKind, Table, Tables};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// The thread that a record names.
pub(super) fn known_thread(thread: hook::Thread) -> Option<ThreadId> {
    thread.some().map(|thread| ThreadId(thread.0))
}

/// A function that the program calls.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Function {
    pub class: FunctionClass,
    /// Without suffixes for versions.
    pub name: Arc<str>,
}

/// A host call.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct Call {
    pub function: hook::Function,
    pub thread: hook::Thread,
    pub correlation: hook::Correlation,
    pub span: Span,
    pub result: i32,
    /// Of the graph that it launched, where that is known.
    pub host_functions: Option<u32>,
}

/// Calls that asked for the same state, one after the other.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct Polls {
    /// From the start of the first to the return of the last.
    pub call: Call,
    pub count: u32,
    /// Time inside the calls.
    pub busy_ns: i64,
}

impl Cuda {
    pub(super) fn class(&self, call: &Call) -> FunctionClass {
        let function = self.functions.get(&call.function);
        function.map_or(FunctionClass::Unknown, |f| f.class)
    }

    pub(super) fn name(&self, call: &Call) -> Option<Arc<str>> {
        self.functions.get(&call.function).map(|f| f.name.clone())
    }

    /// Ends the polls of a thread.
    pub(super) fn end_polls(
        &mut self,
        process: ProcessId,
        thread: hook::Thread,
        tables: &mut Tables,
    ) {
        if let Some(polls) = self.polls.remove(&thread) {
            tables.host_calls.push(HostCall {
                process,
                thread: known_thread(thread),
                call: HostCallKind::PollEvent,
                start_ns: polls.call.span.start_ns,
                duration_ns: polls.call.span.duration_ns,
                count: polls.count,
                busy_ns: polls.busy_ns,
                queue: None,
                bytes: None,
                result: polls.call.result,
                function: self.name(&polls.call),
            });
        }
    }

    /// Polls of a thread follow those before, or start a new row.
    pub(super) fn poll(&mut self, process: ProcessId, new: Polls, tables: &mut Tables) {
        let thread = new.call.thread;
        if let Some(polls) = self.polls.get_mut(&thread)
            && polls.goes_on(&new)
        {
            let end_ns = polls.call.span.end_ns().max(new.call.span.end_ns());
            polls.call.span = Span::between(polls.call.span.start_ns, end_ns);
            polls.count = polls.count.saturating_add(new.count);
            polls.busy_ns = polls.busy_ns.saturating_add(new.busy_ns);
            return;
        }
        self.end_polls(process, thread, tables);
        self.polls.insert(thread, new);
    }
}

impl Polls {
    fn goes_on(&self, next: &Polls) -> bool {
        let (span, next_ns) = (self.call.span, next.call.span.start_ns);
        // Of one outcome only: a poll that finds its work done says something else than those before it.
        self.call.function == next.call.function
            && self.call.result == next.call.result
            && next_ns >= span.start_ns
            && next_ns.saturating_sub(span.end_ns()) <= BETWEEN_POLLS_NS
    }
}

impl Assembler {
    /// A call has come.
    pub(super) fn cuda_call(
        &mut self,
        process: ProcessId,
        cuda: &mut Cuda,
        call: Call,
        tables: &mut Tables,
    ) {
        let class = cuda.class(&call);
        if !cuda.polls.is_empty() {
            cuda.end_polls(process, call.thread, tables);
        }
        match class {
            FunctionClass::BeginCapture => cuda.graph_captures.started(call.span.start_ns),
            FunctionClass::EndCapture => cuda.graph_captures.ended(call.span.end_ns()),
            _ => {}
        }
        // An execution context of the runtime is no queue, nor a context of CUPTI's.
        let names_queue = class.is_wait() && class != FunctionClass::WaitExecutionContext;
        let is_alone = class.submission_kind().is_none() && !names_queue;
        if is_alone || call.correlation == hook::Correlation::NONE {
            self.host_call(process, cuda, &call, None, tables);
            return;
        }
        match cuda.slots.remove(&call.correlation).map(|slot| slot.half) {
            Some(Half::Work(work)) => self.launch(process, cuda, call, work, tables),
            Some(Half::Queue(queue)) if class.is_wait() || class.is_put_on_stream() => {
                self.on_queue(process, cuda, &call, queue, tables);
            }
            other => {
                if let Some(stale) = other {
                    // Correlations wrap.
                    self.give_up(process, cuda, stale, tables);
                }
                cuda.put(call.correlation, Half::Call(call));
            }
        }
    }

    /// The queue that a call waits for, or puts something on.
    pub(super) fn queue_of_call(
        &mut self,
        process: ProcessId,
        cuda: &mut Cuda,
        correlation: hook::Correlation,
        queue: QueueId,
        tables: &mut Tables,
    ) {
        match cuda.slots.get(&correlation).map(|slot| &slot.half) {
            Some(Half::Call(call)) => {
                let call = *call;
                let class = cuda.class(&call);
                if class.is_wait() || class.is_put_on_stream() {
                    cuda.slots.remove(&correlation);
                    self.on_queue(process, cuda, &call, queue, tables);
                }
            }
            Some(_) => {}
            None => cuda.put(correlation, Half::Queue(queue)),
        }
    }

    /// The row of a call that waits for a queue, or puts on it what leaves no record of the device.
    fn on_queue(
        &mut self,
        process: ProcessId,
        cuda: &mut Cuda,
        call: &Call,
        queue: QueueId,
        tables: &mut Tables,
    ) {
        if cuda.class(call).is_wait() {
            self.host_call(process, cuda, call, Some(queue), tables);
        } else {
            self.cuda_submission(process, cuda, call, (queue, 0), tables);
            if let Some(lost) = cuda.class(call).unrecorded_work() {
                let reason = "their calls are recorded, and not what the device did for them";
                self.ledger.add(lost, 1, reason);
            }
        }
    }

    /// A function of the host has run for a queue.
    pub(super) fn host_function(
        &mut self,
        process: ProcessId,
        queue: QueueId,
        thread: hook::Thread,
        span: Option<Span>,
        tables: &mut Tables,
    ) {
        let Some(span) = self.checked(span) else {
            return;
        };
        tables.host_calls.push(HostCall {
            process,
            thread: known_thread(thread),
            call: HostCallKind::HostFunction,
            start_ns: span.start_ns,
            duration_ns: span.duration_ns,
            count: 1,
            busy_ns: span.duration_ns,
            queue: Some(queue),
            bytes: None,
            result: 0,
            function: None,
        });
    }

    /// The row of a call.
    pub(super) fn host_call(
        &mut self,
        process: ProcessId,
        cuda: &Cuda,
        call: &Call,
        queue: Option<QueueId>,
        tables: &mut Tables,
    ) {
        tables.host_calls.push(HostCall {
            process,
            thread: known_thread(call.thread),
            call: cuda.class(call).host_call_kind(),
            start_ns: call.span.start_ns,
            duration_ns: call.span.duration_ns,
            count: 1,
            busy_ns: call.span.duration_ns,
            queue,
            bytes: None,
            result: call.result,
            function: cuda.name(call),
        });
    }

    /// Time that the driver or the tracing took.
    pub(super) fn cuda_overhead(
        &mut self,
        process: ProcessId,
        kind: OverheadKind,
        thread: hook::Thread,
        span: Option<Span>,
        tables: &mut Tables,
    ) {
        let Some(span) = self.checked(span) else {
            return;
        };
        use OverheadKind::*;
        let (call, function) = match kind {
            Compiler => (HostCallKind::LoadModule, "driver compiler"),
            ModuleLoading => (HostCallKind::LoadModule, "lazy module loading"),
            FunctionLoading => (HostCallKind::LoadModule, "lazy function loading"),
            CommandBufferFull => (HostCallKind::QueueFull, "driver queue full"),
            _ if kind.is_tracing() => (HostCallKind::Recording, "CUPTI"),
            _ => (HostCallKind::OtherCall, "unknown overhead"),
        };
        tables.host_calls.push(HostCall {
            process,
            thread: known_thread(thread),
            call,
            start_ns: span.start_ns,
            duration_ns: span.duration_ns,
            count: 1,
            busy_ns: span.duration_ns,
            queue: None,
            bytes: None,
            result: 0,
            function: Some(self.shared_text(function)),
        });
    }
}
