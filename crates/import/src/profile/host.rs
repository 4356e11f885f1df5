//! Calls that launched nothing, and other time of threads.

use super::work::Submissions;
use super::{Call, FunctionId, Profile, Span};
use crate::Error;
use crate::output::NewTrace;
use gapscope_model::UNKNOWN_RESULT;
use gapscope_model::cuda::FunctionClass;
use gapscope_trace::LossKind;
use gapscope_trace::ids::{ProcessId, QueueId, ThreadId};
use gapscope_trace::tables::{HostCall, HostCallKind, SubmissionKind, Table};
use std::collections::BTreeMap;

/// Polls of one thread that are no further apart are one row, as in a recording.
const BETWEEN_POLLS_NS: i64 = 100_000;

/// Calls that asked for the same state, one after the other.
struct Polls {
    function: FunctionId,
    result: i32,
    start_ns: i64,
    end_ns: i64,
    count: u32,
    busy_ns: i64,
}

/// When streams were captured into graphs: what is called then launches nothing.
#[derive(Default)]
struct Captures {
    depth: BTreeMap<ProcessId, u32>,
}

impl Profile {
    /// Writes the host calls.
    pub(super) fn write_calls(
        &mut self,
        submissions: &Submissions,
        new: &mut NewTrace,
    ) -> Result<(), Error> {
        let mut polls: BTreeMap<(ProcessId, Option<ThreadId>), Polls> = BTreeMap::new();
        let mut captures = Captures::default();
        let mut lost: BTreeMap<LossKind, u64> = BTreeMap::new();
        for (call, submitted) in self.calls.iter().zip(submissions) {
            let class = self.class(call).unwrap_or_default();
            let thread = (call.process, call.thread);
            if class.is_poll() {
                if let Some(before) = polls.get_mut(&thread)
                    && before.goes_on(call)
                {
                    before.add(call);
                    continue;
                }
                if let Some(before) = polls.insert(thread, Polls::of(call)) {
                    self.push_polls(thread, &before, new);
                }
                continue;
            }
            if let Some(before) = polls.remove(&thread) {
                self.push_polls(thread, &before, new);
            }
            captures.pass(call.process, class);
            // A copy that waits is both.
            if submitted.is_some() && class != FunctionClass::CopyAndWait {
                continue;
            }
            if submitted.is_none()
                && let Some(kind) = self.never_came(call, class, &captures)
            {
                *lost.entry(kind).or_default() += 1;
            }
            let queue = submitted.map(|submitted| submitted.queue);
            let kind = match class {
                FunctionClass::Unknown => HostCallKind::OtherCall,
                class => class.host_call_kind(),
            };
            let queue = queue.or_else(|| self.queue_of(call));
            self.push_call((call, kind), queue, new);
            new.flush()?;
        }
        for (thread, polls) in &polls {
            self.push_polls(*thread, polls, new);
        }
        for (kind, count) in lost {
            let reason = "they were launched, and the file has no rows of what the device did";
            self.ledger.add(kind, count, reason);
        }
        for overhead in &self.overheads {
            new.tables_mut().host_calls.push(HostCall {
                process: overhead.process,
                thread: overhead.thread,
                call: overhead.kind,
                start_ns: overhead.span.start_ns,
                duration_ns: overhead.span.duration_ns,
                count: 1,
                busy_ns: overhead.span.duration_ns,
                queue: None,
                bytes: None,
                result: 0,
                function: Some(overhead.name.into()),
            });
            new.flush()?;
        }
        Ok(())
    }

    /// What a call launched of which nothing came. Copies of nothing and empty graphs leave no row, kernels always do.
    fn never_came(
        &self,
        call: &Call,
        class: FunctionClass,
        captures: &Captures,
    ) -> Option<LossKind> {
        let is_kernel = class.submission_kind() == Some(SubmissionKind::Kernel);
        let is_lost = is_kernel
            && [0, UNKNOWN_RESULT].contains(&call.result)
            && !captures.are_open(call.process);
        is_lost.then_some(LossKind::Dispatches)
    }

    fn push_call(
        &self,
        (call, kind): (&Call, HostCallKind),
        queue: Option<QueueId>,
        new: &mut NewTrace,
    ) {
        new.tables_mut().host_calls.push(HostCall {
            process: call.process,
            thread: call.thread,
            call: kind,
            start_ns: call.span.start_ns,
            duration_ns: call.span.duration_ns,
            count: 1,
            busy_ns: call.span.duration_ns,
            queue,
            bytes: None,
            result: call.result,
            function: self
                .functions
                .get(call.function.0 as usize)
                .map(|f| f.name.clone()),
        });
    }

    fn push_polls(
        &self,
        (process, thread): (ProcessId, Option<ThreadId>),
        polls: &Polls,
        new: &mut NewTrace,
    ) {
        new.tables_mut().host_calls.push(HostCall {
            process,
            thread,
            call: HostCallKind::PollEvent,
            start_ns: polls.start_ns,
            duration_ns: polls.end_ns - polls.start_ns,
            count: polls.count,
            busy_ns: polls.busy_ns,
            queue: None,
            bytes: None,
            result: polls.result,
            function: self
                .functions
                .get(polls.function.0 as usize)
                .map(|f| f.name.clone()),
        });
    }
}

impl Polls {
    fn of(call: &Call) -> Polls {
        let Span { duration_ns, .. } = call.span;
        Polls {
            function: call.function,
            result: call.result,
            start_ns: call.span.start_ns,
            end_ns: call.span.end_ns(),
            count: 1,
            busy_ns: duration_ns,
        }
    }

    fn goes_on(&self, next: &Call) -> bool {
        self.function == next.function
            && self.result == next.result
            && next.span.start_ns - self.end_ns <= BETWEEN_POLLS_NS
    }

    fn add(&mut self, call: &Call) {
        self.end_ns = self.end_ns.max(call.span.end_ns());
        self.count = self.count.saturating_add(1);
        self.busy_ns = self.busy_ns.saturating_add(call.span.duration_ns);
    }
}

impl Captures {
    fn pass(&mut self, process: ProcessId, class: FunctionClass) {
        let depth = self.depth.entry(process).or_default();
        match class {
            FunctionClass::BeginCapture => *depth += 1,
            FunctionClass::EndCapture => *depth = depth.saturating_sub(1),
            _ => {}
        }
    }

    fn are_open(&self, process: ProcessId) -> bool {
        self.depth.get(&process).is_some_and(|depth| *depth > 0)
    }
}
