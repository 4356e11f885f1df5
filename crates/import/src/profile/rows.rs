//! The rows of a profile, as readers of formats put them in.

use gapscope_trace::build::CountedId;
use gapscope_trace::ids::*;
use gapscope_trace::manifest::DeviceLimits;
use gapscope_trace::tables::{HostCallKind, MemoryPlace, TransferKind};
use std::num::NonZeroU32;

/// Ties a call to its work, inside a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Correlation(pub u64);

/// A function that threads call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct FunctionId(pub(super) u32);

/// A text, kept once. Of one more than its index, so that a text which may be absent takes no more space: ranges are many.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct TextId(NonZeroU32);

impl CountedId for TextId {
    fn counted(index: usize) -> Self {
        TextId(NonZeroU32::MIN.saturating_add(index as u32))
    }
    fn index(self) -> usize {
        self.0.get() as usize - 1
    }
}

/// From when to when, nanoseconds of the file's clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Span {
    pub start_ns: i64,
    pub duration_ns: i64,
}

impl Span {
    /// Times beyond this are none: 292 years in both directions are what nanoseconds can hold, and differences must fit too.
    pub const LATEST_NS: i64 = i64::MAX / 4;

    /// `None` where the times are impossible: the end is before the start, or one is absurd.
    pub fn between(start_ns: i64, end_ns: i64) -> Option<Span> {
        let sane = |ns: i64| (-Self::LATEST_NS..=Self::LATEST_NS).contains(&ns);
        (sane(start_ns) && sane(end_ns) && start_ns <= end_ns).then(|| Span {
            start_ns,
            duration_ns: end_ns - start_ns,
        })
    }

    /// Its end.
    pub fn end_ns(self) -> i64 {
        self.start_ns + self.duration_ns
    }
}

/// A call of a function.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Call {
    pub process: ProcessId,
    pub thread: Option<ThreadId>,
    pub correlation: Option<Correlation>,
    pub span: Span,
    pub function: FunctionId,
    /// What it returned; 0 is success.
    pub result: i32,
}

/// A piece of work on a device.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Work {
    pub process: ProcessId,
    pub queue: QueueId,
    pub correlation: Option<Correlation>,
    /// `None` where its times are impossible.
    pub span: Option<Span>,
    /// It is a node of a graph, or a whole one.
    pub of_graph: bool,
    pub kind: WorkKind,
}

/// What a piece of work is.
#[derive(Debug, Clone, Copy)]
pub(crate) enum WorkKind {
    Kernel {
        kernel: KernelId,
        groups: [Option<u32>; 3],
    },
    Transfer {
        kind: TransferKind,
        bytes: Option<u64>,
        host_memory: Option<MemoryPlace>,
    },
    Graph,
}

/// A label that was set on a thread or a process.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Range {
    pub process: ProcessId,
    pub thread: Option<ThreadId>,
    /// It may end on another thread.
    pub of_process: bool,
    pub text: TextId,
    pub domain: Option<TextId>,
    pub category: Option<TextId>,
    pub payload: Option<TextId>,
    pub start_ns: i64,
    /// Absent where it was open at the end.
    pub end_ns: Option<i64>,
    /// It labels the work that its thread launches inside it.
    pub labels_work: bool,
}

/// Time on a thread that is no call: waits for a full queue, the tracing itself.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Overhead {
    pub process: ProcessId,
    pub thread: Option<ThreadId>,
    pub span: Span,
    pub kind: HostCallKind,
    pub name: &'static str,
}

/// An event, or a wait for one, that a call put on a queue.
#[derive(Debug, Clone, Copy)]
pub(crate) struct EventOnQueue {
    pub process: ProcessId,
    pub queue: QueueId,
    pub correlation: Correlation,
    pub event: u64,
}

/// A kernel: what was launched with which shape.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct KernelShape {
    pub process: ProcessId,
    /// As people may read it, with parameters where it is C++.
    pub name: TextId,
    /// As the compiler named it.
    pub mangled: Option<TextId>,
    pub block: [Option<u32>; 3],
    pub registers: Option<u32>,
    pub local_bytes: Option<u32>,
    pub static_shared_bytes: Option<u32>,
    pub dynamic_shared_bytes: Option<u32>,
}

/// What is known of a device.
#[derive(Debug, Clone, Default)]
pub(crate) struct DeviceFacts {
    pub name: String,
    pub uuid: String,
    pub memory_bytes: Option<u64>,
    pub limits: Option<DeviceLimits>,
}
