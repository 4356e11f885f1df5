//! The ranges, kernels and devices that readers of formats add to a profile.

use gapscope_trace::build::CountedId;
use gapscope_trace::ids::*;
use gapscope_trace::manifest::DeviceProperties;
use std::num::NonZeroU32;

/// The id of a text: its index plus one, so that an `Option` of it takes no more space. Profiles have many ranges.
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

/// A range of time that the program labelled on a thread or a process.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Range {
    pub process: ProcessId,
    pub thread: Option<ThreadId>,
    /// True if the label may end on another thread.
    pub of_process: bool,
    pub text: TextId,
    pub domain: Option<TextId>,
    pub category: Option<TextId>,
    pub payload: Option<TextId>,
    pub start_ns: i64,
    /// The end; `None` if the label was open at the end of the file.
    pub end_ns: Option<i64>,
    /// True if the label applies to the work that its thread launches inside the range.
    pub labels_work: bool,
}

/// A kernel with its launch shape.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct KernelShape {
    pub process: ProcessId,
    /// The demangled name, with parameters where it is C++.
    pub name: TextId,
    /// The name that the compiler gave the kernel.
    pub mangled: Option<TextId>,
    pub block: [Option<u32>; 3],
    pub registers: Option<u32>,
    pub local_bytes: Option<u32>,
    pub static_shared_bytes: Option<u32>,
    pub dynamic_shared_bytes: Option<u32>,
}

/// Facts of a device.
#[derive(Debug, Clone, Default)]
pub(crate) struct DeviceFacts {
    pub name: String,
    pub uuid: String,
    pub memory_bytes: Option<u64>,
    pub limits: Option<DeviceProperties>,
}
