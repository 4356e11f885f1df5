//! The rows of a profile, as readers of formats put them in.

use gapscope_trace::build::CountedId;
use gapscope_trace::ids::*;
use gapscope_trace::manifest::DeviceLimits;
use std::num::NonZeroU32;

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
