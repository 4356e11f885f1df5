//! Kinds of work, calls and places.

use crate::cuda::FunctionClass;
use crate::kind::kind;

kind! {
    /// What a transfer does.
    TransferKind {
        /// Buffer to buffer.
        Copy = "copy",
        /// A buffer is filled with a value; CUDA's memset.
        Fill = "fill",
        /// Data from the command itself to a buffer.
        Update = "update",
        /// From or to an image.
        CopyImage = "copy-image",
        /// Host to device (CUDA).
        HostToDevice = "host-to-device",
        /// Device to host (CUDA).
        DeviceToHost = "device-to-host",
        /// From one device to another (CUDA).
        PeerToPeer = "peer-to-peer",
        /// Host to host (CUDA).
        HostToHost = "host-to-host",
    }
}

kind! {
    /// GPU work that is timed as a whole.
    OpaqueWorkKind {
        /// A render pass or dynamic rendering.
        RenderPass = "render-pass",
        /// A compute pass whose dispatches have no times of their own.
        ComputePass = "compute-pass",
        /// A ray-tracing dispatch.
        RayTracing = "ray-tracing",
        /// A build or copy of acceleration structures.
        AccelerationStructure = "acceleration-structure",
        /// An image is cleared or resolved.
        ClearImage = "clear-image",
        /// A graph launch (CUDA).
        Graph = "graph",
        /// Anything else.
        Other = "other",
        /// A video coding scope, with what is decoded or encoded in it.
        VideoCoding = "video-coding",
        /// Commands that the device has made, or their preparation.
        GeneratedCommands = "generated-commands",
        /// A graph of operations on tensors.
        DataGraph = "data-graph",
        /// Memory is decompressed.
        Decompression = "decompression",
        /// Results of queries are copied, once they are there.
        QueryResults = "query-results",
    }
}

kind! {
    /// What a submission hands to its queue.
    SubmissionKind {
        /// Command buffers, or semaphores alone (Vulkan, Metal).
        CommandBuffers = "command-buffers",
        /// A kernel (CUDA).
        Kernel = "kernel",
        /// A copy or a fill (CUDA).
        Transfer = "transfer",
        /// A graph (CUDA).
        Graph = "graph",
        /// A function that the host runs when its queue gets there (CUDA).
        HostFunction = "host-function",
        /// A wait of the queue for a value in memory (CUDA).
        WaitValue = "wait-value",
        /// A wait of the queue for a semaphore of another API or process (CUDA).
        WaitExternal = "wait-external",
        /// A move of managed memory, which has no row of its own (CUDA).
        Prefetch = "prefetch",
        /// A decompression of memory, which has no row of its own (CUDA).
        Decompression = "decompression",
    }
}

kind! {
    /// Which host call.
    HostCallKind {
        /// A queue submission.
        Submit = "submit",
        /// Sparse binding.
        BindSparse = "bind-sparse",
        /// Wait for fences.
        WaitFences = "wait-fences",
        /// Wait for timeline semaphores.
        WaitSemaphores = "wait-semaphores",
        /// Wait for a queue (CUDA: for a stream).
        WaitQueueIdle = "wait-queue-idle",
        /// Wait for a device.
        WaitDeviceIdle = "wait-device-idle",
        /// Asks for a fence's state; folded.
        PollFence = "poll-fence",
        /// Asks for a semaphore's value; folded.
        PollSemaphore = "poll-semaphore",
        /// Reads the program's own queries.
        GetQueryResults = "get-query-results",
        /// Maps device memory.
        MapMemory = "map-memory",
        /// Allocates device memory.
        AllocateMemory = "allocate-memory",
        /// Frees device memory.
        FreeMemory = "free-memory",
        /// Compiles pipelines.
        CreatePipelines = "create-pipelines",
        /// Makes a shader module.
        CreateShaderModule = "create-shader-module",
        /// Copies or fills memory and returns when that is done (CUDA).
        CopyAndWait = "copy-and-wait",
        /// Waits for an event (CUDA).
        WaitEvent = "wait-event",
        /// Asks whether an event or a stream has got so far; folded (CUDA).
        PollEvent = "poll-event",
        /// Loads or compiles code: modules, libraries, kernels that are loaded when first used (CUDA).
        LoadModule = "load-module",
        /// Captures, builds or instantiates a graph (CUDA).
        BuildGraph = "build-graph",
        /// Launches work that is not in the trace (CUDA).
        Launch = "launch",
        /// Anything else that takes time in the driver (CUDA).
        OtherCall = "other-call",
        /// The driver's queue was full: the host waited for the device (CUDA).
        QueueFull = "queue-full",
        /// Time that recording itself took on the thread.
        Recording = "recording",
        /// Presents an image.
        Present = "present",
        /// Acquires an image.
        AcquireImage = "acquire-image",
        /// A function of the host that a queue runs, while the queue waits for its end (CUDA); its queue is that one.
        HostFunction = "host-function",
        /// Waits until an image has been presented.
        WaitPresent = "wait-present",
        /// Works on an operation that was deferred, such as making pipelines.
        JoinDeferred = "join-deferred",
        /// The host itself copies to or from an image, or changes its layout.
        CopyImage = "copy-image",
    }
}

impl HostCallKind {
    /// The kind of a call of `function`: recordings of before say `other-call` of some that have a kind of their own now.
    pub fn of_function(self, function: &str) -> HostCallKind {
        match self {
            HostCallKind::OtherCall => {
                FunctionClass::of_function(function).map_or(self, FunctionClass::host_call_kind)
            }
            call => call,
        }
    }

    /// True for calls that ask whether the GPU has got somewhere, and return at once.
    pub fn is_poll(self) -> bool {
        use HostCallKind::*;
        matches!(self, PollFence | PollSemaphore | PollEvent)
    }

    /// True for calls that return when the GPU has got somewhere, or that ask whether it has.
    pub fn is_wait(self) -> bool {
        use HostCallKind::*;
        matches!(
            self,
            WaitFences
                | WaitSemaphores
                | WaitQueueIdle
                | WaitDeviceIdle
                | WaitEvent
                | CopyAndWait
                | PollEvent
                | PollFence
                | PollSemaphore
                | GetQueryResults
        )
    }
}

kind! {
    /// The memory at one end of a transfer.
    MemoryPlace {
        /// Host memory that may be paged out: such a copy is not asynchronous.
        Pageable = "pageable",
        /// Page-locked host memory.
        Pinned = "pinned",
        /// Device memory; of a module's variables too.
        Device = "device",
        /// An array (image) on the device.
        Array = "array",
        /// Memory that moves between host and device by itself.
        Managed = "managed",
    }
}

kind! {
    /// What kind of CUDA stream a queue is.
    StreamKind {
        /// The default stream: it waits for all blocking streams of its context, and they for it.
        Default = "default",
        /// Synchronises with the default stream.
        Blocking = "blocking",
        /// Does not synchronise with the default stream.
        NonBlocking = "non-blocking",
    }
}

kind! {
    /// What a kernel may do with a binding.
    Access {
        /// Reads only.
        Read = "read",
        /// Writes only.
        Write = "write",
        /// Both.
        ReadWrite = "read-write",
    }
}

kind! {
    /// Where a kernel's name comes from.
    NameSource {
        /// The user's names file.
        NamesFile = "names-file",
        /// The program named the pipeline.
        ObjectName = "object-name",
        /// The entry point, when it says more than `main`.
        EntryPoint = "entry-point",
        /// The label around its dispatches, when it is always the same.
        Label = "label",
        /// The program named the shader module, or the source file is in the debug information.
        SourceName = "source-name",
        /// Nothing better than the hash.
        Hash = "hash",
    }
}

kind! {
    /// Why a command buffer's times are unknown.
    Timing {
        /// They are known.
        Measured = "measured",
        /// Measured around the command buffer, because it may run twice at once: what is inside has no times.
        Bracketed = "bracketed",
        /// The queue's family has no timestamps.
        NoTimestamps = "no-timestamps",
        /// The program ended, reset or freed it before it was seen finished.
        NotSeen = "not-seen",
        /// The device was lost.
        DeviceLost = "device-lost",
        /// Recorded while recording was off.
        NotInstrumented = "not-instrumented",
        /// Timestamps could not be added to it.
        NoQueries = "no-queries",
    }
}

kind! {
    /// Where a marker was set.
    MarkerScope {
        /// Inside a command buffer: it spans GPU work.
        CommandBuffer = "command-buffer",
        /// On a queue, by the host: it spans submissions.
        Queue = "queue",
        /// On a host thread.
        Thread = "thread",
        /// On the process, by the host: it may end on another thread, and overlap others in any way.
        Process = "process",
    }
}

kind! {
    /// What happened to an allocation.
    MemoryEvent {
        /// It was made.
        Allocate = "allocate",
        /// It was freed.
        Free = "free",
    }
}

kind! {
    /// The unit of a counter's values.
    CounterUnit {
        /// Things without a unit of their own.
        Count = "count",
        /// Bytes.
        Bytes = "bytes",
        /// Bytes a second.
        BytesPerSecond = "bytes/s",
        /// A share: 0 to 100.
        Percent = "percent",
        /// Cycles a second.
        Hertz = "hertz",
        /// Power.
        Watts = "watts",
        /// Temperature.
        Celsius = "celsius",
    }
}

kind! {
    /// What a thread does at a moment.
    ThreadState {
        /// It runs, or waits for a processor.
        Running = "running",
        /// It is in a system call that waits.
        Blocked = "blocked",
    }
}

kind! {
    /// How a sample of a thread came about.
    SampleSource {
        /// It was taken from outside, at a time that the program knows nothing of.
        Sampled = "sampled",
        /// The hook took it at the end of a call that waited: the line that waited.
        AfterWait = "after-wait",
        /// The hook took it at a submission after the thread had long made no call: the line that submits.
        AtSubmission = "at-submission",
    }
}

kind! {
    /// What code a frame is of.
    FrameKind {
        /// Python, with its line.
        Python = "python",
        /// Native code of a library or of the executable.
        Native = "native",
    }
}

kind! {
    /// The interface through which a device was used.
    Api {
        /// Vulkan.
        Vulkan = "vulkan",
        /// CUDA.
        Cuda = "cuda",
        /// Metal.
        Metal = "metal",
        /// HIP: CUDA's words on devices of AMD.
        Hip = "hip",
    }
}

/// What stands for the result of a host call where it is not known, as in imports of tools that do not record it.
pub const UNKNOWN_RESULT: i32 = i32::MIN;

/// The domain of labels that gapscope itself sets for the modules of a model: paths such as `blocks.3.attn.qkv`.
pub const MODULE_DOMAIN: &str = "torch.module";

/// The domain of labels that gapscope itself has a framework set for its operators, such as `aten::mm`.
pub const OPERATOR_DOMAIN: &str = "torch.operator";

/// Domains of markers that say what the host's code did, in imports of tools that record it: operators, functions of Python, others.
/// They are no labels of the program, and label no work.
pub const HOST_CODE_DOMAINS: [&str; 3] = ["operator", "python", "host"];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_are_the_same_after_a_way_through_text_and_number() {
        for kind in TransferKind::ALL {
            assert_eq!(TransferKind::of(kind.as_str()), *kind);
            assert_eq!(TransferKind::from_number(kind.number()), *kind);
        }
        assert_eq!(
            TransferKind::of("of-a-later-version"),
            TransferKind::Unknown
        );
        assert_eq!(TransferKind::from_number(200), TransferKind::Unknown);
        assert_eq!(
            TransferKind::from_number(TransferKind::Unknown.number()),
            TransferKind::Unknown
        );
    }
}
