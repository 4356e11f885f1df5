//! Host calls.

use super::function::Does;
use super::{Assembler, Cuda, Half};
use gapscope_spool::event::{BETWEEN_POLLS_NS, OverheadKind, Span};
use gapscope_spool::ids as hook;
use gapscope_trace::tables::{HostCall, HostCallKind, Table, Tables};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// The thread that a record names.
pub(super) fn known_thread(thread: hook::Thread) -> Option<u32> {
    thread.some().map(|thread| thread.0)
}

/// A host call.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct Call {
    pub function: hook::Function,
    pub thread: hook::Thread,
    /// Begin and end.
    pub times: (i64, i64),
    pub result: i32,
}

/// Polls that are folded into one row.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Poll {
    call: Call,
    begin_ns: i64,
    end_ns: i64,
    count: u32,
    busy_ns: i64,
}

impl Cuda {
    pub(super) fn does(&self, call: &Call) -> Does {
        self.functions
            .get(&call.function)
            .map_or(Does::Other, |f| f.does)
    }

    pub(super) fn name(&self, call: &Call) -> Option<Arc<str>> {
        self.functions.get(&call.function).map(|f| f.name.clone())
    }

    /// Ends the folded polls of a thread.
    pub(super) fn end_poll(&mut self, process: u32, thread: hook::Thread, tables: &mut Tables) {
        if let Some(poll) = self.polls.remove(&thread) {
            tables.host_calls.push(HostCall {
                process,
                thread: known_thread(thread),
                call: HostCallKind::PollEvent,
                start_ns: poll.begin_ns,
                duration_ns: poll.end_ns.saturating_sub(poll.begin_ns),
                count: poll.count,
                busy_ns: poll.busy_ns,
                queue: None,
                bytes: None,
                result: poll.call.result,
                function: self.name(&poll.call),
            });
        }
    }

    /// Polls of a thread, `count` of them with `busy_ns` inside, follow those before, or begin a new row.
    pub(super) fn poll(
        &mut self,
        process: u32,
        call: Call,
        (count, busy_ns): (u32, i64),
        tables: &mut Tables,
    ) {
        let (begin_ns, end_ns) = call.times;
        if let Some(poll) = self.polls.get_mut(&call.thread)
            && poll.call.function == call.function
            && begin_ns >= poll.begin_ns
            && begin_ns.saturating_sub(poll.end_ns) <= BETWEEN_POLLS_NS
        {
            poll.end_ns = poll.end_ns.max(end_ns);
            poll.count = poll.count.saturating_add(count);
            poll.busy_ns = poll.busy_ns.saturating_add(busy_ns);
            poll.call.result = call.result;
            return;
        }
        self.end_poll(process, call.thread, tables);
        let poll = Poll {
            call,
            begin_ns,
            end_ns,
            count,
            busy_ns,
        };
        self.polls.insert(call.thread, poll);
    }
}

impl Assembler {
    /// A call has come.
    pub(super) fn cuda_call(
        &mut self,
        process: u32,
        cuda: &mut Cuda,
        correlation: hook::Correlation,
        call: Call,
        tables: &mut Tables,
    ) {
        let (does, (begin_ns, end_ns)) = (cuda.does(&call), call.times);
        if !cuda.polls.is_empty() {
            cuda.end_poll(process, call.thread, tables);
        }
        match does {
            Does::BeginCapture => cuda.graph_captures.began(begin_ns),
            Does::EndCapture => cuda.graph_captures.ended(end_ns),
            _ => {}
        }
        let before = if does.submits() || does.waits() {
            cuda.slots.remove(&correlation).map(|slot| slot.half)
        } else {
            self.host_call(process, cuda, &call, does.kind(), None, tables);
            return;
        };
        match before {
            Some(Half::Work(first, more)) => {
                self.launch_with(process, cuda, (correlation, call), (first, more), tables);
            }
            Some(Half::Wait(queue)) if does.waits() => {
                self.host_call(process, cuda, &call, does.kind(), Some(queue), tables);
            }
            other => {
                if let Some(stale) = other {
                    // Correlations wrap.
                    self.give_up(process, cuda, stale, tables);
                }
                cuda.put(correlation, Half::Call(call));
            }
        }
    }

    /// The queue that a call waits for.
    pub(super) fn cuda_wait(
        &mut self,
        process: u32,
        cuda: &mut Cuda,
        correlation: hook::Correlation,
        queue: u32,
        tables: &mut Tables,
    ) {
        match cuda.slots.get(&correlation).map(|slot| &slot.half) {
            Some(Half::Call(call)) => {
                let call = *call;
                let does = cuda.does(&call);
                if does.waits() {
                    cuda.slots.remove(&correlation);
                    self.host_call(process, cuda, &call, does.kind(), Some(queue), tables);
                }
            }
            Some(_) => {}
            None => {
                cuda.put(correlation, Half::Wait(queue));
            }
        }
    }

    /// The row of a call.
    pub(super) fn host_call(
        &mut self,
        process: u32,
        cuda: &Cuda,
        call: &Call,
        kind: HostCallKind,
        queue: Option<u32>,
        tables: &mut Tables,
    ) {
        let (begin_ns, end_ns) = call.times;
        let duration_ns = end_ns.saturating_sub(begin_ns);
        tables.host_calls.push(HostCall {
            process,
            thread: known_thread(call.thread),
            call: kind,
            start_ns: begin_ns,
            duration_ns,
            count: 1,
            busy_ns: duration_ns,
            queue,
            bytes: None,
            result: call.result,
            function: cuda.name(call),
        });
    }

    /// Time that the driver or the tracing took.
    pub(super) fn cuda_overhead(
        &mut self,
        process: u32,
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
