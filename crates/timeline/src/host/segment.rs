//! The type of a stretch of time that a host thread spends in one call, and the classes of calls that matter for idle
//! time.

use crate::intervals::Interval;
use gapscope_trace::ids::{ProcessId, ThreadId};
use gapscope_trace::manifest::Manifest;
use gapscope_trace::tables::{HostCallKind, UNKNOWN_RESULT};

/// A thread of a recorded process, by the ids of both.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct HostThread {
    /// The id of the process.
    pub process: ProcessId,
    /// The system's id of the thread.
    pub thread: ThreadId,
}

impl HostThread {
    /// Returns the thread of a row, or `None` where the row does not name one.
    pub fn from_row(process: ProcessId, thread: Option<ThreadId>) -> Option<HostThread> {
        thread.map(|thread| HostThread { process, thread })
    }

    /// Returns the name that the program gave the thread, or `None` where the manifest lists no name of it.
    pub fn name(&self, manifest: &Manifest) -> Option<String> {
        let mut threads = manifest.threads.iter();
        let thread = threads.find(|t| (t.process, t.thread) == (self.process, self.thread))?;
        (!thread.name.is_empty()).then(|| thread.name.clone())
    }
}

/// A stretch of time in which a thread was in one call and in no call inside that one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Segment {
    /// The stretch of time.
    pub interval: Interval,
    /// The kind of the call.
    pub call: HostCallKind,
    /// The index of the function's name ([`HostThreads::function_name`](super::HostThreads::function_name)), or
    /// [`NONE`](gapscope_trace::lookup::NONE) where the trace does not name the function.
    pub function: u32,
    /// The number of calls that are folded into the segment.
    pub count: u32,
    /// The start of the whole call, or of the first of the polls that form one wait with the call.
    pub since_ns: i64,
    /// The outcome of a wait or a poll. It means nothing for other calls.
    pub outcome: WaitOutcome,
    /// True where the call waits for the GPU.
    pub waits: bool,
    /// True where the time between the previous segment and this one belongs to the same wait.
    pub continues_wait: bool,
    /// True where the call returned at the end of the segment. It is false where the call goes on after another call
    /// inside it.
    pub is_last: bool,
}

/// The outcome of a call that waits for the device or polls it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum WaitOutcome {
    /// The device had finished.
    Done,
    /// The wait timed out, or the poll found the work not ready.
    NotDone,
    /// The trace does not say.
    Unknown,
}

impl WaitOutcome {
    /// Returns what a call's result tells. Results are those of the API, where 0 means success; that of a poll of a
    /// semaphore does not tell whether its value was reached.
    pub(super) fn from_result(call: HostCallKind, result: i32) -> WaitOutcome {
        match (call, result) {
            (HostCallKind::PollSemaphore, _) | (_, UNKNOWN_RESULT) => WaitOutcome::Unknown,
            (_, 0) => WaitOutcome::Done,
            (_, _) => WaitOutcome::NotDone,
        }
    }
}

/// The class of a host call, as far as idle time depends on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallClass {
    /// The call creates pipelines or shader modules, loads code or builds graphs.
    Compile,
    /// The call allocates, frees or maps memory.
    Allocate,
    /// The call hands work to a queue.
    Submit,
    /// The call belongs to the recording itself.
    Recording,
    /// The call runs a function of the program for a queue.
    HostFunction,
    /// The call waits for the GPU.
    Wait,
    /// The call does something else.
    Other,
}

impl CallClass {
    /// Returns the class of a call. A single poll is no wait.
    pub fn from_call(call: HostCallKind) -> CallClass {
        use HostCallKind::*;
        match call {
            CreatePipelines | CreateShaderModule | LoadModule | BuildGraph => CallClass::Compile,
            AllocateMemory | FreeMemory | MapMemory => CallClass::Allocate,
            Submit | BindSparse | Launch | QueueFull => CallClass::Submit,
            Recording => CallClass::Recording,
            HostFunction => CallClass::HostFunction,
            call if call.is_wait() && !call.is_poll() => CallClass::Wait,
            _ => CallClass::Other,
        }
    }
}

impl Segment {
    pub(super) fn new(
        call: HostCallKind,
        function: u32,
        count: u32,
        outcome: WaitOutcome,
        interval: Interval,
    ) -> Segment {
        Segment {
            interval,
            call,
            function,
            count,
            since_ns: interval.start_ns,
            outcome,
            waits: match call.is_poll() {
                true => count > 1 && outcome != WaitOutcome::Done,
                false => call.is_wait(),
            },
            continues_wait: false,
            is_last: true,
        }
    }

    /// Returns the class of the call that the thread is in.
    #[inline]
    pub fn class(&self) -> CallClass {
        match self.waits {
            true => CallClass::Wait,
            false => CallClass::from_call(self.call),
        }
    }
}
