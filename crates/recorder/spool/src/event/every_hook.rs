//! Events that hooks of every API write: processes, devices, queues, kernels, memory, labels and losses.

use super::{LabelEdge, LabelScope};
use crate::ids;
use gapscope_model::{Api, LossKind, SampleSource};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;

/// An event of any API.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum CommonEvent<'a> {
    /// The first record of a process: its greeting.
    Process {
        /// The process.
        pid: u32,
        /// Its parent.
        parent: u32,
        /// The path of its executable.
        executable: Cow<'a, str>,
        /// Its arguments, the command included.
        arguments: Vec<Cow<'a, str>>,
        /// The hook that records it: `vulkan`, `cuda`.
        hook: Cow<'a, str>,
    },
    /// The process ends in an orderly way; absent after SIGKILL or `_exit`.
    ProcessEnd {
        /// When.
        at_ns: i64,
    },
    /// A thread starts to write; the first record of its log, but for the greeting.
    Thread {
        /// The thread.
        thread: ids::Thread,
        /// Its name at that time.
        name: &'a str,
    },
    /// A logical device was made.
    Device {
        /// The device.
        device: ids::Device,
        /// The interface through which it is used.
        api: Api,
        /// As the driver names it.
        name: Cow<'a, str>,
        /// Driver name and version.
        driver: Cow<'a, str>,
        /// Distinguishes physical devices of one name.
        uuid: [u8; 16],
        /// Nanoseconds for each tick, as the driver says.
        nanoseconds_per_tick: f64,
        /// How clock samples come about.
        clock: ClockSource,
        /// Sizes of the memory heaps in bytes.
        heaps: Vec<u64>,
    },
    /// The device is gone; `lost`: by an error and not by the program.
    DeviceEnd {
        /// The device.
        device: ids::Device,
        /// The driver answered that the device is lost.
        lost: bool,
        /// When.
        at_ns: i64,
    },
    /// Both clocks at one moment.
    ClockSample {
        /// The device.
        device: ids::Device,
        /// Raw ticks of the device.
        ticks: u64,
        /// The host at the same moment.
        host_ns: i64,
        /// The two readings are at most this far apart.
        error_ns: u32,
    },
    /// A queue that the program uses.
    Queue {
        /// The queue.
        queue: ids::Queue,
        /// Its device.
        device: ids::Device,
        /// Queue family. CUDA: number of the context.
        family: u32,
        /// Index in the family. CUDA: number of the stream, unique in the process.
        index: u32,
        /// VkQueueFlags. CUDA: compute and transfer.
        flags: u32,
        /// Valid bits of a timestamp; 0: the queue has none.
        timestamp_bits: u32,
    },
    /// The code of kernels.
    Source {
        /// First 16 bytes of the BLAKE3 hash of `bytes`.
        hash: [u8; 16],
        /// What `bytes` is.
        format: SourceFormat,
        /// The code.
        #[serde(with = "serde_bytes")]
        bytes: &'a [u8],
    },
    /// A kernel: code with entry point and specialisation.
    Kernel {
        /// The kernel.
        kernel: ids::Kernel,
        /// Its [`CommonEvent::Source`]. All zero: not known.
        source: [u8; 16],
        /// The entry point. CUDA: the name in the code, as the compiler mangled it.
        entry_point: Cow<'a, str>,
        /// Specialisation: (constant id, value bytes) pairs as `id:hex` joined by `,`; empty when there is none.
        specialisation: Cow<'a, str>,
        /// Name in the source debug information, such as the file; empty when there is none.
        source_name: Cow<'a, str>,
        /// Threads in a workgroup; zeros: not known.
        local_size: [u32; 3],
        /// Access to each buffer binding, as the code declares it.
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
        /// Its device.
        device: ids::Device,
        /// Its heap. CUDA: one of [`super::heap`].
        heap: u32,
        /// Its size.
        bytes: u64,
        /// When.
        at_ns: i64,
    },
    /// Device memory was freed.
    Free {
        /// The allocation.
        memory: ids::Allocation,
        /// When.
        at_ns: i64,
    },
    /// A label on a queue or on a thread.
    Label {
        /// Where it is.
        scope: LabelScope,
        /// Its start, its end, or an instant.
        edge: LabelEdge,
        /// Its text; none at the end.
        text: ids::Text,
        /// When the program said so.
        at_ns: i64,
    },
    /// The program starts or stops a capture: a window in which it is recorded.
    Capture {
        /// The capture.
        capture: ids::Capture,
        /// Its start or its end.
        edge: LabelEdge,
        /// At the start: the absolute path of the trace that the session shall write; empty: none.
        #[serde(with = "serde_bytes")]
        path: Cow<'a, [u8]>,
        /// When.
        at_ns: i64,
    },
    /// Something was not recorded.
    Loss {
        /// What.
        kind: LossKind,
        /// How many of it.
        count: u64,
        /// Why: a stable phrase.
        reason: Cow<'a, str>,
    },
    /// A sentence that belongs in every report of the recording.
    Note {
        /// The sentence.
        text: Cow<'a, str>,
    },
    /// A line of a Python function that is in stacks of the writing thread from here on.
    Frame {
        /// Its id, which is the thread's own.
        frame: ids::Frame,
        /// The function, with the classes and functions around it.
        function: Cow<'a, str>,
        /// Its file, as Python has it.
        file: Cow<'a, str>,
        /// The line that runs.
        line: u32,
    },
    /// The Python stack of the writing thread at the end of a call.
    Stack {
        /// When.
        at_ns: i64,
        /// Which call ended.
        source: SampleSource,
        /// Its frames, the innermost first. When it was deeper than is read, the outermost are missing.
        frames: Cow<'a, [ids::Frame]>,
    },
}

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
    /// Text in NVIDIA's PTX.
    Ptx,
    /// An ELF file with machine code for NVIDIA's GPUs.
    Cubin,
    /// PTX and cubins for several GPUs in one, which may be compressed.
    FatBinary,
}

/// An object that carries a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Object {
    /// A kernel, by its pipeline.
    Kernel(ids::Kernel),
    /// The source of this kernel, by its shader module.
    KernelSource(ids::Kernel),
    /// A buffer.
    Buffer(ids::Buffer),
    /// A queue.
    Queue(ids::Queue),
    /// A recording, by its command buffer.
    Recording(ids::Recording),
    /// A host thread.
    Thread(ids::Thread),
    /// A domain of labels ([`super::LabelScope::Domain`]).
    LabelDomain(ids::LabelDomain),
    /// A category of labels ([`super::CudaEvent::LabelDetail`]).
    LabelCategory(ids::LabelCategory),
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
