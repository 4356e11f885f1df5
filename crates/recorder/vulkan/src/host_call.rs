//! Times calls of the program's threads to Vulkan and writes them as host calls, which explain gaps (times in which
//! the GPU runs nothing). [`HostCallTimer::start`] comes before a call, one of the `finish` methods after it.

use crate::polls::{self, Poll};
use crate::recorder::Recorder;
use crate::submitted::Submitted;
use ash::vk;
use gapscope_spool::event::{HostCallKind, Span, SubmitFunction, VulkanEvent};
use gapscope_spool::{ids, monotonic_ns, stacks};

/// Times a host call; does nothing while the recorder is off.
pub struct HostCallTimer {
    recorder: &'static Recorder,
    /// The time just before the call; `None` while the recorder is off.
    start_ns: Option<i64>,
}

impl HostCallTimer {
    /// Notes the time just before a call, while the recorder is on.
    pub fn start(recorder: &'static Recorder) -> HostCallTimer {
        HostCallTimer {
            recorder,
            start_ns: recorder.recording().then(monotonic_ns),
        }
    }

    /// Returns the time at which the call started, or `None` while the recorder is off.
    pub fn start_ns(&self) -> Option<i64> {
        self.start_ns
    }

    /// Writes the call, which ends now, with what it returned.
    pub fn finish(self, call: HostCallKind, result: vk::Result) {
        self.write((call, None), result, (None, None), None);
    }

    /// Writes a call that waited for a submission; `None` where that is not known.
    pub fn finish_wait(self, call: HostCallKind, result: vk::Result, awaited: Option<Submitted>) {
        let queue = awaited.map(|awaited| awaited.queue);
        self.write((call, None), result, (queue, awaited), None);
    }

    /// Writes a call that waited for a queue, and for this submission there.
    pub fn finish_wait_for_queue(
        self,
        result: vk::Result,
        queue: Option<ids::Queue>,
        awaited: Option<Submitted>,
    ) {
        let call = HostCallKind::WaitQueueIdle;
        self.write((call, None), result, (queue, awaited), None);
    }

    /// Writes a call that submits to a queue.
    pub fn finish_submission(
        self,
        function: SubmitFunction,
        result: vk::Result,
        queue: ids::Queue,
    ) {
        let call = (function.call(), Some(function));
        self.write(call, result, (Some(queue), None), None);
    }

    /// Writes a call that names a queue; `None` for a queue that is not known.
    pub fn finish_on_queue(
        self,
        call: HostCallKind,
        result: vk::Result,
        queue: Option<ids::Queue>,
    ) {
        self.write((call, None), result, (queue, None), None);
    }

    /// Writes a call that allocates or maps memory; `bytes` is `None` where they are not known.
    pub fn finish_with_bytes(self, call: HostCallKind, result: vk::Result, bytes: Option<u64>) {
        self.write((call, None), result, (None, None), bytes);
    }

    /// Writes the call after the polls of this thread, and takes a stack after a wait.
    fn write(
        self,
        (call, function): (HostCallKind, Option<SubmitFunction>),
        result: vk::Result,
        (queue, awaited): (Option<ids::Queue>, Option<Submitted>),
        bytes: Option<u64>,
    ) {
        let Some(start_ns) = self.start_ns else {
            return;
        };
        let end_ns = monotonic_ns();
        polls::flush();
        let span = Span::between(start_ns, end_ns);
        self.recorder.write(&VulkanEvent::HostCall {
            call,
            function,
            span,
            count: 1,
            busy_ns: end_ns - start_ns,
            queue,
            bytes,
            result: result.as_raw(),
            waits_for: awaited.map(|awaited| awaited.submission),
        });
        if call.is_wait() {
            stacks::waited(self.recorder.spool(), span);
        }
    }

    /// Hands a poll (a call that only asks for a state) to [`polls`], which writes several in a row as one. `awaited` returns the
    /// submission that the call asked for, and is called where the poll found it done.
    pub fn finish_poll(
        self,
        call: HostCallKind,
        result: vk::Result,
        awaited: impl FnOnce() -> Option<Submitted>,
    ) {
        if let Some(start_ns) = self.start_ns {
            let end_ns = monotonic_ns();
            let is_done = result == vk::Result::SUCCESS;
            let poll = Poll {
                call,
                span: Span::between(start_ns, end_ns),
                result: result.as_raw(),
                awaited: is_done.then(awaited).flatten(),
            };
            polls::add(self.recorder.spool(), poll);
        }
    }
}
