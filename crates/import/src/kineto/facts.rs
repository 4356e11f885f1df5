//! The calls, device work and waits that the collector keeps until all events were read.

use super::texts::TextId;
use gapscope_trace::ids::{LabelId, ProcessId, ThreadId};
use gapscope_trace::tables::{MemoryPlace, TransferKind};

/// A thread of the host.
#[derive(Debug, Clone)]
pub(super) struct Lane {
    pub(super) process: ProcessId,
    pub(super) thread: ThreadId,
    pub(super) name: Option<Box<str>>,
    /// The ranges that label work.
    pub(super) annotations: Vec<Annotation>,
    /// The ranges that have begun and not ended, outermost first.
    pub(super) open: Vec<OpenRange>,
}

/// A range that labels the work that was launched in it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Annotation {
    pub(super) name: TextId,
    pub(super) start_ns: i64,
    pub(super) end_ns: i64,
}

/// A range that has begun and not ended.
#[derive(Debug, Clone, Copy)]
pub(super) struct OpenRange {
    pub(super) name: TextId,
    pub(super) category: Option<TextId>,
    pub(super) start_ns: i64,
}

/// The number that joins a call with the work that it launched; 0 means none.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Correlation(pub(super) u64);

impl Correlation {
    pub(super) const NONE: Correlation = Correlation(0);
}

/// A call of the runtime or the driver.
#[derive(Debug, Clone, Copy)]
pub(super) struct Call {
    pub(super) function: TextId,
    /// The index of the call's lane, which is the thread that made the call.
    pub(super) lane: u32,
    pub(super) start_ns: i64,
    pub(super) duration_ns: i64,
    pub(super) correlation: Correlation,
}

/// A stream of a device, as far as the file numbers it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Stream {
    pub(super) device: Option<u32>,
    /// The number of the context; 0 where the API has no contexts.
    pub(super) context: u32,
    pub(super) stream: Option<u32>,
}

/// A kernel with its launch shape.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct KernelShape {
    pub(super) name: TextId,
    pub(super) block: [u32; 3],
    pub(super) registers: Option<u32>,
    pub(super) static_shared_bytes: Option<u32>,
    pub(super) dynamic_shared_bytes: Option<u32>,
    /// The shared memory of a workgroup, static and dynamic together where the file does not separate them.
    pub(super) shared_bytes: Option<u32>,
}

/// The kind of a piece of device work, with the facts of that kind.
#[derive(Debug, Clone, Copy)]
pub(super) enum WorkKind {
    Kernel {
        /// The index of the kernel's shape in the collector.
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
pub(super) struct DeviceEvent {
    pub(super) correlation: Correlation,
    pub(super) start_ns: i64,
    pub(super) duration_ns: i64,
    /// The index of the stream.
    pub(super) stream: u32,
    /// True if the work is a node of a graph that was launched as a whole.
    pub(super) of_graph: bool,
    pub(super) kind: WorkKind,
    /// The label that the file itself gives the work; `None` in files of PyTorch.
    pub(super) label: Option<LabelId>,
}

/// A wait of the host or of a stream, as the device's profiler reports it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Synchronisation {
    /// The correlation of the call that waits.
    pub(super) correlation: Correlation,
    pub(super) stream: Option<u32>,
    /// The stream whose event is waited for.
    pub(super) waits_on: Option<u32>,
    /// The correlation of the call that recorded the awaited event.
    pub(super) recorded_by: Correlation,
}
