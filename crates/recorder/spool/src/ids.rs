//! Ids that hooks give to what events refer to.
//!
//! They are per process and say nothing in the trace, whose ids are types of another crate: `gapscope_trace::ids::QueueId`
//! is not [`Queue`]. Each kind of thing has a counter of its own, and no id is used twice.

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
            /// The id of nothing, where an event may lack one.
            pub const NONE: $name = $name(0);

            /// The id, unless it is [`Self::NONE`].
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

/// What a [`Counter`] counts to.
#[derive(Debug)]
pub struct Number(u64);

ids! {
    /// A device. [`NONE`](Self::NONE): any of the process.
    Device(u32);
    /// A Vulkan queue, a CUDA stream.
    Queue(u32);
    /// A kernel.
    Kernel(u32);
    /// A text of labels.
    Text(u32);
    /// An allocation of device memory.
    Allocation(u32);
    /// A buffer. [`NONE`](Self::NONE): an image, a null descriptor, or not known.
    Buffer(u32);
    /// What a descriptor set holds at one moment. [`NONE`](Self::NONE): no buffer.
    BindingContent(u32);
    /// What a command buffer holds between two resets.
    Recording(u32);
    /// A submitted execution of a recording.
    Instance(u64);
    /// A semaphore.
    Semaphore(u32);
    /// A thread of the host, by the system's number. [`NONE`](Self::NONE): not known.
    Thread(u32);
    /// A capture, by its number in the process from 1.
    Capture(u32);
    /// A domain of labels. [`NONE`](Self::NONE): the default one.
    LabelDomain(u32);
    /// A category of labels. [`NONE`](Self::NONE): none.
    LabelCategory(u32);
    /// A range of labels that may end on another thread.
    LabelRange(u64);
    /// A function of an API that the program calls.
    Function(u32);
    /// A way in which the program launches a kernel.
    Launch(u32);
    /// A way of transfers.
    Route(u32);
    /// A memory pool.
    Pool(u32);
    /// A line of a function of the host, as the log of one thread knows it.
    Frame(u32);
    /// A CUDA event. [`NONE`](Self::NONE): not known.
    CudaEvent(u32);
    /// What a call and the work that it caused have in common. They are given in the order of the calls and wrap at 2^32.
    /// [`NONE`](Self::NONE): none.
    Correlation(u32);
}

impl Correlation {
    /// True when this call was made before the other.
    #[inline]
    pub fn is_before(self, other: Correlation) -> bool {
        (self.0.wrapping_sub(other.0) as i32) < 0
    }
}

/// Gives new ids, from 1.
#[derive(Debug)]
pub struct Counter<Id> {
    next: AtomicU64,
    id: PhantomData<fn() -> Id>,
}

impl<Id: From<Number>> Counter<Id> {
    /// A counter that has given none.
    pub const fn new() -> Counter<Id> {
        Counter {
            next: AtomicU64::new(1),
            id: PhantomData,
        }
    }

    /// A new id.
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
