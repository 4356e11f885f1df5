//! Defines the events that hooks of every API (the Vulkan layer and the CUDA library inside the recorded program)
//! write and the session reads: processes, devices, queues, kernels, memory, labels and losses.

use super::{LabelEdge, LabelScope, Span};
use crate::ids;
use gapscope_model::{Api, LossKind, SampleSource};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;

/// An event of any API.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum CommonEvent<'a> {
    /// The first record of a process.
    Process {
        /// The id of the process.
        pid: u32,
        /// Process id of the parent.
        parent: u32,
        /// The path of the executable.
        executable: Cow<'a, str>,
        /// Arguments, the command included.
        arguments: Vec<Cow<'a, str>>,
        /// The hook that records it: `vulkan`, `cuda`.
        hook: Cow<'a, str>,
    },
    /// The process ends in an orderly way; missing after SIGKILL or `_exit`.
    ProcessEnd {
        /// The time of the event.
        at_ns: i64,
    },
    /// A thread starts to write: the first record of its log, apart from [`CommonEvent::Process`].
    Thread {
        /// The thread.
        thread: ids::Thread,
        /// The name of the thread at that time.
        name: &'a str,
    },
    /// A logical device was created.
    Device {
        /// The device.
        device: ids::Device,
        /// The interface through which it is used.
        api: Api,
        /// The name according to the driver.
        name: Cow<'a, str>,
        /// Driver name and version.
        driver: Cow<'a, str>,
        /// Identifies physical devices of the same name.
        uuid: [u8; 16],
        /// Nanoseconds per tick, according to the driver.
        nanoseconds_per_tick: f64,
        /// The way in which a device's clock is related to the host's.
        clock: ClockSource,
        /// Sizes of the memory heaps in bytes.
        heaps: Vec<u64>,
    },
    /// A device was destroyed or lost.
    DeviceEnd {
        /// The device.
        device: ids::Device,
        /// Whether the driver reported the device as lost.
        lost: bool,
        /// The time of the event.
        at_ns: i64,
    },
    /// Readings of both clocks at one moment.
    ClockSample {
        /// The device.
        device: ids::Device,
        /// Raw ticks of the device.
        ticks: u64,
        /// Host time at the same moment.
        host_ns: i64,
        /// Greatest distance between the two readings.
        error_ns: u32,
    },
    /// A queue that the program uses.
    Queue {
        /// The queue.
        queue: ids::Queue,
        /// The device.
        device: ids::Device,
        /// Queue family. CUDA: number of the context.
        family: u32,
        /// The index in the family. CUDA: number of the stream, unique in the process.
        index: u32,
        /// VkQueueFlags. CUDA: compute and transfer.
        flags: u32,
        /// Valid bits of a timestamp; 0 when the queue has no timestamps.
        timestamp_bits: u32,
    },
    /// The code of one kernel or several, written once.
    Source {
        /// First 16 bytes of the BLAKE3 hash of `bytes`.
        hash: [u8; 16],
        /// The format of `bytes`.
        format: SourceFormat,
        /// The code.
        #[serde(with = "serde_bytes")]
        bytes: &'a [u8],
    },
    /// A kernel: code with entry point and specialisation.
    Kernel {
        /// The kernel.
        kernel: ids::Kernel,
        /// The hash of its [`CommonEvent::Source`]; all zero when unknown.
        source: [u8; 16],
        /// Entry point. CUDA: the mangled name in the code.
        entry_point: Cow<'a, str>,
        /// Specialisation constants as `id:hex` (constant id, value bytes), joined by `,`; empty when there are none.
        specialisation: Cow<'a, str>,
        /// The name in the source debug information, such as the file; empty when there is none.
        source_name: Cow<'a, str>,
        /// Threads of a workgroup; zeros when unknown.
        local_size: [u32; 3],
        /// The access to each buffer binding, as the code declares it.
        accesses: Vec<BindingAccess>,
    },
    /// The program named an object.
    Name {
        /// The object.
        object: Object,
        /// The name.
        name: &'a str,
    },
    /// A text that labels refer to.
    Text {
        /// The text's id.
        text: ids::Text,
        /// The text.
        value: &'a str,
    },
    /// Device memory was allocated.
    Allocate {
        /// The allocation.
        memory: ids::Allocation,
        /// The device.
        device: ids::Device,
        /// The heap of the allocation. CUDA: one of [`super::heap`].
        heap: u32,
        /// The size in bytes.
        bytes: u64,
        /// The time of the event.
        at_ns: i64,
    },
    /// Device memory was freed.
    Free {
        /// The allocation.
        memory: ids::Allocation,
        /// The time of the event.
        at_ns: i64,
    },
    /// A label on a queue or on a thread.
    Label {
        /// The place of the label.
        scope: LabelScope,
        /// Start, end, or an instant.
        edge: LabelEdge,
        /// The text of the label; absent at the end.
        text: ids::Text,
        /// Time at which the program set the label.
        at_ns: i64,
    },
    /// The program starts or stops a window in which it is recorded (`start_capture`).
    Capture {
        /// The window.
        capture: ids::Capture,
        /// Start or end of the window.
        edge: LabelEdge,
        /// At the start: the absolute path of the trace that the session is to write; empty for none.
        #[serde(with = "serde_bytes")]
        path: Cow<'a, [u8]>,
        /// The time of the event.
        at_ns: i64,
    },
    /// The writing thread waited for gapscope, because the program began or ended a window.
    OwnTime {
        /// The time of the wait.
        span: Span,
    },
    /// Something was not recorded.
    Loss {
        /// The kind of loss.
        kind: LossKind,
        /// The number of things that were lost.
        count: u64,
        /// The reason, as a phrase that is the same for every loss of this sort.
        reason: Cow<'a, str>,
    },
    /// A sentence that belongs in every report of the recording.
    Note {
        /// The sentence.
        text: Cow<'a, str>,
    },
    /// A line of a Python function that later stacks of the writing thread refer to.
    Frame {
        /// The id of the line, unique to the thread.
        frame: ids::Frame,
        /// The function, with the classes and functions around it.
        function: Cow<'a, str>,
        /// The file of the function, as Python names it.
        file: Cow<'a, str>,
        /// The current line.
        line: u32,
    },
    /// The Python stack of the writing thread at the end of a call.
    Stack {
        /// The time of the event.
        at_ns: i64,
        /// The kind of call that ended.
        source: SampleSource,
        /// Frames of the stack, innermost first. The outermost frames of a very deep stack are missing.
        frames: Cow<'a, [ids::Frame]>,
    },
}

/// The source of clock samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum ClockSource {
    /// The driver reads both clocks at once.
    Calibrated,
    /// There are no samples. A command buffer runs after its submission began and before it was seen to have
    /// finished, and each such bracket bounds the offset.
    Brackets,
    /// Device times come as nanoseconds of the host's monotonic clock: the driver's tracing library maps them, with
    /// an unknown error.
    Host,
}

/// The format of the code in a [`CommonEvent::Source`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum SourceFormat {
    /// A SPIR-V module.
    SpirV,
    /// The text in NVIDIA's PTX.
    Ptx,
    /// An ELF file with machine code for NVIDIA's GPUs.
    Cubin,
    /// PTX and cubins for several GPUs in one file, perhaps compressed.
    FatBinary,
}

/// An object that a [`CommonEvent::Name`] gives a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Object {
    /// A kernel, named by its pipeline.
    Kernel(ids::Kernel),
    /// The source of this kernel, named by its shader module.
    KernelSource(ids::Kernel),
    /// A buffer.
    Buffer(ids::Buffer),
    /// A queue.
    Queue(ids::Queue),
    /// A command recording, named by its command buffer.
    CommandRecording(ids::CommandRecording),
    /// A host thread.
    Thread(ids::Thread),
    /// A domain of labels ([`super::LabelScope::Domain`]).
    LabelDomain(ids::LabelDomain),
    /// A category of labels ([`super::CudaEvent::LabelDetail`]).
    LabelCategory(ids::LabelCategory),
}

/// The access of a kernel's code to a buffer binding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct BindingAccess {
    /// Descriptor set.
    pub set: u32,
    /// The binding in the set.
    pub binding: u32,
    /// Whether the code may read the buffer.
    pub reads: bool,
    /// Whether the code may write the buffer.
    pub writes: bool,
}
