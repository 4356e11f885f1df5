//! Ids that hooks give to the things that events refer to.
//!
//! They are unique in a process and do not occur in the trace, whose ids are types of another crate:
//! `gapscope_trace::ids::QueueId` is not [`Queue`]. Each kind of thing has its own counter, and no id is used twice.

use serde::{Deserialize, Serialize};
use std::marker::PhantomData;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

macro_rules! ids {
    ($($(#[$doc:meta])* $name:ident($number:ty);)+) => {$(
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(transparent)]
        #[repr(transparent)]
        pub struct $name(pub $number);

        impl $name {
            /// The absent id, in events where the id is optional.
            pub const NONE: $name = $name(0);

            /// Returns the id, unless it is [`Self::NONE`].
            #[inline]
            pub fn some(self) -> Option<$name> {
                (self != Self::NONE).then_some(self)
            }
        }

        impl From<Number> for $name {
            fn from(number: Number) -> $name {
                $name(number.0 as $number)
            }
        }
    )+};
}

/// A value of a [`Counter`].
#[derive(Debug)]
pub struct Number(u64);

ids! {
    /// A device. [`NONE`](Self::NONE) stands for any device of the process.
    Device(u32);
    /// A Vulkan queue, a CUDA stream.
    Queue(u32);
    /// A kernel.
    Kernel(u32);
    /// The text of a label.
    Text(u32);
    /// An allocation of device memory.
    Allocation(u32);
    /// A buffer. [`NONE`](Self::NONE) stands for an image, a null descriptor, or an unknown buffer.
    Buffer(u32);
    /// The contents of a descriptor set at one moment. [`NONE`](Self::NONE) stands for no buffers.
    BindingContent(u32);
    /// A command recording: the contents of a command buffer between two resets.
    CommandRecording(u32);
    /// A submitted execution of a command recording.
    Instance(u64);
    /// A semaphore.
    Semaphore(u32);
    /// A thread of the host, by the system's number. [`NONE`](Self::NONE) stands for an unknown thread.
    Thread(u32);
    /// A window that the program asked for (`start_capture`), by its number in the process from 1.
    Capture(u32);
    /// A domain of labels. [`NONE`](Self::NONE) is the default domain.
    LabelDomain(u32);
    /// A category of labels. [`NONE`](Self::NONE) stands for no category.
    LabelCategory(u32);
    /// A range of labels that may end on another thread.
    LabelRange(u64);
    /// A function of an API that the program calls.
    Function(u32);
    /// A combination of kernel, queue and launch parameters.
    Launch(u32);
    /// A combination of queue, kind and memory of transfers.
    Route(u32);
    /// A memory pool.
    Pool(u32);
    /// A line of a host function, as numbered in the log of one thread.
    Frame(u32);
    /// A CUDA event. [`NONE`](Self::NONE) stands for an unknown event.
    CudaEvent(u32);
    /// Links a call to the work that it caused. Correlations are given in the order of calls and wrap at 2^32.
    /// [`NONE`](Self::NONE) stands for no correlation.
    Correlation(u32);
}

impl Correlation {
    /// Returns true when this call was made before the other.
    #[inline]
    pub fn is_before(self, other: Correlation) -> bool {
        (self.0.wrapping_sub(other.0) as i32) < 0
    }
}

/// Hands out new ids, from 1.
#[derive(Debug)]
pub struct Counter<Id> {
    next: AtomicU64,
    id: PhantomData<fn() -> Id>,
}

impl<Id: From<Number>> Counter<Id> {
    /// Creates a counter that starts at 1.
    pub const fn new() -> Counter<Id> {
        Counter {
            next: AtomicU64::new(1),
            id: PhantomData,
        }
    }

    /// Returns a new id.
    #[inline]
    pub fn next(&self) -> Id {
        Id::from(Number(self.next.fetch_add(1, Relaxed)))
    }
}

impl<Id: From<Number>> Default for Counter<Id> {
    fn default() -> Self {
        Counter::new()
    }
}
