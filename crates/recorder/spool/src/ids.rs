//! The types of the ids in events. A hook (our library inside the program) numbers each thing that the program
//! uses, and later events name the thing by this number.
//!
//! Ids are unique in a process and do not occur in the trace, whose ids are types of another crate:
//! `gapscope_trace::ids::QueueId` is not [`Queue`]. Graphs and their nodes have the numbers of the tracing library. Each kind of thing has its own counter, and no id is used
//! twice.

pub use gapscope_model::{GraphId as Graph, GraphNodeId as GraphNode};
use serde::{Deserialize, Serialize};
use std::marker::PhantomData;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Defines id types: for each, its documentation, its name and the integer that holds it.
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

/// The number of a new id, as a [`Counter`] counts it; each id type is made from it.
#[derive(Debug)]
pub struct Number(u64);

ids! {
    /// The id of a GPU that the program has opened. [`NONE`](Self::NONE) stands for any device of the process.
    Device(u32);
    /// The id of a queue: a Vulkan queue or a CUDA stream, to which the program submits work.
    Queue(u32);
    /// The id of a kernel: GPU code with its entry point and specialisation.
    Kernel(u32);
    /// The id of the text of a label.
    Text(u32);
    /// The id of an allocation of device memory.
    Allocation(u32);
    /// The id of a Vulkan buffer. [`NONE`](Self::NONE) stands for an image, a null descriptor, or an unknown buffer.
    Buffer(u32);
    /// The id of the buffers that a descriptor set holds at one moment. [`NONE`](Self::NONE) stands for no buffers.
    BindingContent(u32);
    /// The id of a command recording: the contents of a command buffer between two resets.
    CommandRecording(u32);
    /// The id of an instance: one submitted execution of a command recording.
    Instance(u64);
    /// The id of a submission: one batch of a call that submits. Those of one queue ascend.
    Submission(u64);
    /// The id of a Vulkan semaphore.
    Semaphore(u32);
    /// The id of a host thread: the number that the system gives it. [`NONE`](Self::NONE) stands for an unknown thread.
    Thread(u32);
    /// The id of a window, the part of a run that a program chose to record (`start_capture`): its number in the
    /// process, from 1.
    Capture(u32);
    /// The id of a domain (of NVTX), whose labels nest only among themselves. [`NONE`](Self::NONE) is the default
    /// domain.
    LabelDomain(u32);
    /// The id of a category (of NVTX) of labels. [`NONE`](Self::NONE) stands for no category.
    LabelCategory(u32);
    /// The id of a label that may end on another thread than the one that set it.
    LabelRange(u64);
    /// The id of a function of an API that the program calls.
    Function(u32);
    /// The id of a combination of kernel, queue and launch parameters, which many launches share.
    Launch(u32);
    /// The id of a combination of queue, kind and memory, which many transfers share.
    Route(u32);
    /// The id of a CUDA memory pool.
    Pool(u32);
    /// The id of a line of a Python function, unique in the log of one thread.
    Frame(u32);
    /// The id of a CUDA event. [`NONE`](Self::NONE) stands for an unknown event.
    CudaEvent(u32);
    /// A correlation, the number that CUDA gives to a call and to the work that the call caused. Correlations are
    /// given in the order of calls and wrap at 2^32. [`NONE`](Self::NONE) stands for no correlation.
    Correlation(u32);
}

/// Hands out new ids of one type, from 1.
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

    /// Returns the next id; no other call returns it.
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
