//! Times calls of the program's threads to Vulkan and writes them as host calls, which explain gaps (times in which
//! the GPU runs nothing). [`HostCallTimer::start`] comes before a call, one of the `finish` methods after it.

use crate::polls;
use crate::recorder::Recorder;
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
        self.write((call, None), result, None, None);
    }

    /// Writes a call that submits to a queue.
    pub fn finish_submission(
        self,
        function: SubmitFunction,
        result: vk::Result,
        queue: ids::Queue,
    ) {
        self.write((function.call(), Some(function)), result, Some(queue), None);
    }

    /// Writes a call that names a queue; `None` for a queue that is not known.
    pub fn finish_on_queue(
        self,
        call: HostCallKind,
        result: vk::Result,
        queue: Option<ids::Queue>,
    ) {
        self.write((call, None), result, queue, None);
    }

    /// Writes a call that allocates or maps memory; `bytes` is `None` where they are not known.
    pub fn finish_with_bytes(self, call: HostCallKind, result: vk::Result, bytes: Option<u64>) {
        self.write((call, None), result, None, bytes);
    }

    /// Writes the call after the polls of this thread, and takes a stack after a wait.
    fn write(
        self,
        (call, function): (HostCallKind, Option<SubmitFunction>),
        result: vk::Result,
        queue: Option<ids::Queue>,
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
        });
        if call.is_wait() {
            stacks::waited(self.recorder.spool(), span);
        }
    }

    /// Hands a poll (a call that only asks for a state) to [`polls`], which writes several in a row as one.
    pub fn finish_poll(self, call: HostCallKind, result: vk::Result) {
        if let Some(start_ns) = self.start_ns {
            let spool = self.recorder.spool();
            polls::add(spool, call, start_ns, monotonic_ns(), result.as_raw());
        }
    }
}
