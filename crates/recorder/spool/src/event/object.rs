//! What events say of objects and calls.

use serde::{Deserialize, Serialize};

/// Where clock samples come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum ClockSource {
    /// The driver reads both clocks at once.
    Calibrated,
    /// No samples: a command buffer runs after its submission began and before it was seen finished, and each such
    /// bracket bounds the offset.
    Brackets,
    /// Times of the device come as nanoseconds of the host's monotonic clock: the driver's tracing library maps them,
    /// and does not say how well.
    Host,
}

/// What the bytes of a source are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum SourceFormat {
    /// A SPIR-V module.
    SpirV,
}

/// Kinds of objects that carry names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum ObjectKind {
    /// A kernel, by its pipeline.
    Kernel,
    /// The source of kernels, by its shader module: `id` is the kernel to which the module's name applies.
    KernelSource,
    /// A buffer.
    Buffer,
    /// A queue.
    Queue,
    /// A device.
    Device,
    /// A recording, by its command buffer.
    Recording,
    /// A host thread: `id` is the system's.
    Thread,
    /// A domain of labels ([`super::LabelScope::Domain`]).
    LabelDomain,
    /// A category of labels ([`super::Event::LabelDetail`]).
    LabelCategory,
}

/// One buffer range that kernels may reach.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Binding {
    /// Number of the binding in its set.
    pub binding: u32,
    /// Element of an array binding.
    pub element: u32,
    /// Id of the buffer.
    pub buffer: u32,
    /// First byte.
    pub offset: u64,
    /// Size; `u64::MAX`: to the end of the buffer.
    pub bytes: u64,
    /// VkDescriptorType.
    pub kind: u32,
}

/// What a kernel's code may do with a buffer binding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct BindingAccess {
    /// Descriptor set.
    pub set: u32,
    /// Binding in the set.
    pub binding: u32,
    /// The code may read it.
    pub reads: bool,
    /// The code may write it.
    pub writes: bool,
}

/// A command buffer in a submission.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Instance {
    /// Id of this execution.
    pub instance: u64,
    /// What it executes.
    pub recording: u32,
}

/// A semaphore, with its value when it is a timeline semaphore (0 otherwise).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct SemaphoreValue {
    /// Id of the semaphore.
    pub semaphore: u32,
    /// The value waited for or signalled.
    pub value: u64,
}

/// How an instance's timing ended. All but `Timed` mean unknown times.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Outcome {
    /// Its timestamps have been written.
    Timed,
    /// The queue's family has no timestamps.
    NoTimestamps,
    /// It ran (or may have run) but its timestamps never came: the program ended, reset or freed it first.
    NotSeen,
    /// The device was lost.
    DeviceLost,
    /// Recorded while recording was off.
    NotInstrumented,
    /// The hook could get no queries, or nothing could be added to the submission.
    NoQueries,
}

/// Host calls that explain gaps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[allow(missing_docs)]
pub enum Call {
    Submit,
    BindSparse,
    WaitFences,
    WaitSemaphores,
    WaitQueueIdle,
    WaitDeviceIdle,
    /// vkGetFenceStatus, folded.
    PollFence,
    /// vkGetSemaphoreCounterValue, folded.
    PollSemaphore,
    /// vkGetQueryPoolResults of the program's own queries.
    GetQueryResults,
    MapMemory,
    AllocateMemory,
    FreeMemory,
    CreatePipelines,
    CreateShaderModule,
    Present,
    AcquireImage,
}
