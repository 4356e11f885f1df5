//! Ids in a trace. Each kind of thing has its own type, so that ids cannot be mixed up. Each is a number of 32 or 64
//! bits, in memory and in its column.

use crate::column::{Column, integer_column};
use arrow_array::types::{UInt32Type, UInt64Type};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// An id in a trace.
pub trait Id: Copy + Ord + std::hash::Hash + std::fmt::Debug + Send + Sync + 'static {
    /// Returns the id as a number.
    fn number(self) -> u64;
}

/// Makes a type for each kind of id, with its conversions to text, JSON and columns. A line has the type's name, its
/// integer type, and the Arrow type of its columns twice, as a type and as a name.
macro_rules! ids {
    ($($(#[$doc:meta])+ $name:ident($integer:ty) as $arrow:ty, $data_type:ident;)+) => {$(
        $(#[$doc])+
        #[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, JsonSchema, Deserialize)]
        #[serde(transparent)]
        #[repr(transparent)]
        pub struct $name(pub $integer);

        impl Id for $name {
            fn number(self) -> u64 {
                self.0.into()
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                std::fmt::Display::fmt(&self.0, f)
            }
        }

        impl std::str::FromStr for $name {
            type Err = std::num::ParseIntError;
            fn from_str(text: &str) -> Result<Self, Self::Err> {
                text.parse().map($name)
            }
        }

        integer_column!($name, $arrow, $data_type, $name, |id: &$name| id.0);
    )+};
}

ids! {
    /// A process of the recording, as the trace numbers it; not the system's id.
    ProcessId(u32) as UInt32Type, UInt32;
    /// A thread, by the system's id.
    ThreadId(u32) as UInt32Type, UInt32;
    /// A device as one process used it.
    DeviceId(u32) as UInt32Type, UInt32;
    /// A queue: a Vulkan queue, a CUDA stream.
    QueueId(u32) as UInt32Type, UInt32;
    /// A kernel.
    KernelId(u32) as UInt32Type, UInt32;
    /// A submission.
    SubmissionId(u64) as UInt64Type, UInt64;
    /// A command buffer: one submitted instance.
    CommandBufferId(u64) as UInt64Type, UInt64;
    /// A label: a text in its nesting.
    LabelId(u32) as UInt32Type, UInt32;
    /// A buffer.
    BufferId(u32) as UInt32Type, UInt32;
    /// An allocation of device memory.
    AllocationId(u32) as UInt32Type, UInt32;
    /// A set of bindings.
    BindingSetId(u32) as UInt32Type, UInt32;
    /// A stack of a host thread.
    StackId(u32) as UInt32Type, UInt32;
    /// A frame of stacks: a line of a function.
    FrameId(u32) as UInt32Type, UInt32;
    /// A counter.
    CounterId(u32) as UInt32Type, UInt32;
}

impl SubmissionId {
    /// The id that a command buffer has where its submission is not known.
    pub const UNKNOWN: SubmissionId = SubmissionId(u64::MAX);

    /// Returns the id; `None` for that of an unknown submission.
    pub fn if_known(self) -> Option<SubmissionId> {
        (self != SubmissionId::UNKNOWN).then_some(self)
    }
}
