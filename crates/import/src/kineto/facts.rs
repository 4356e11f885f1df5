//! What the events say of a device's work and of what launched it, until all of it is there.

use super::texts::TextId;
use gapscope_trace::ids::{LabelId, ProcessId, ThreadId};
use gapscope_trace::tables::{MemoryPlace, TransferKind};

/// A thread of the host.
#[derive(Debug, Clone)]
pub(super) struct Lane {
    pub(super) process: ProcessId,
    pub(super) thread: ThreadId,
    pub(super) name: Option<Box<str>>,
    /// Ranges that label work.
    pub(super) annotations: Vec<Annotation>,
    /// What began and has not ended.
    pub(super) open: Vec<Open>,
}

/// A range that labels the work that was launched in it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Annotation {
    pub(super) name: TextId,
    pub(super) start_ns: i64,
    pub(super) end_ns: i64,
}

/// What began and has not ended.
#[derive(Debug, Clone, Copy)]
pub(super) struct Open {
    pub(super) name: TextId,
    pub(super) category: Option<TextId>,
    pub(super) start_ns: i64,
}

/// Which of the joined things a number is; 0 is none.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Correlation(pub(super) u64);

impl Correlation {
    pub(super) const NONE: Correlation = Correlation(0);
}

/// A call of the runtime or the driver.
#[derive(Debug, Clone, Copy)]
pub(super) struct Call {
    pub(super) function: TextId,
    /// Index of its lane.
    pub(super) lane: u32,
    pub(super) start_ns: i64,
    pub(super) duration_ns: i64,
    pub(super) correlation: Correlation,
}

/// A stream of a device, as the file numbers them, where it does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Stream {
    pub(super) device: Option<u32>,
    /// 0 where there are no contexts.
    pub(super) context: u32,
    pub(super) stream: Option<u32>,
}

/// A kernel as it was launched.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct KernelShape {
    pub(super) name: TextId,
    pub(super) block: [u32; 3],
    pub(super) registers: Option<u32>,
    pub(super) static_shared_bytes: Option<u32>,
    pub(super) dynamic_shared_bytes: Option<u32>,
    /// Both in one, where the file does not tell them apart.
    pub(super) shared_bytes: Option<u32>,
}

/// What a device did.
#[derive(Debug, Clone, Copy)]
pub(super) enum WorkKind {
    Kernel {
        /// Index of its shape.
        shape: u32,
        groups: [u32; 3],
    },
    Transfer {
        kind: TransferKind,
        bytes: Option<u64>,
        host_memory: Option<MemoryPlace>,
    },
}

/// A piece of work of a device.
#[derive(Debug, Clone, Copy)]
pub(super) struct Work {
    pub(super) correlation: Correlation,
    pub(super) start_ns: i64,
    pub(super) duration_ns: i64,
    /// Index of its stream.
    pub(super) stream: u32,
    /// It is a node of a graph.
    pub(super) of_graph: bool,
    pub(super) kind: WorkKind,
    /// The label that the file itself gives it.
    pub(super) label: Option<LabelId>,
}

/// Where the host waited, or a stream, as the device's tracing says it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Synchronisation {
    /// Of the call that waits.
    pub(super) correlation: Correlation,
    pub(super) stream: Option<u32>,
    /// The stream whose event is waited for.
    pub(super) waits_on: Option<u32>,
    /// Of the call that recorded the event that is waited for.
    pub(super) recorded_by: Correlation,
}
