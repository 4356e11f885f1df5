//! Defines the kinds of work, host calls, memory places, markers and other items. Hooks (gapscope's libraries in
//! recorded programs), the spool (the event log that they write) and the trace share these kinds.
//!
//! Opaque work is GPU work that is timed as a whole; polls that are folded are many calls stored as one row.

use crate::kind::kind;

kind! {
    /// The kind of a transfer.
    TransferKind {
        /// Buffer to buffer.
        Copy = "copy",
        /// A buffer is filled with a value (CUDA's memset).
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
    /// The kind of GPU work that is timed as a whole.
    OpaqueWorkKind {
        /// A render pass or dynamic rendering.
        RenderPass = "render-pass",
        /// A compute pass whose dispatches are not timed one by one.
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
        /// A video coding scope, with everything that is decoded or encoded in it.
        VideoCoding = "video-coding",
        /// Commands that the device generated, or their preprocessing.
        GeneratedCommands = "generated-commands",
        /// A graph of operations on tensors.
        DataGraph = "data-graph",
        /// Memory is decompressed.
        Decompression = "decompression",
        /// Results of queries are copied, once they are available.
        QueryResults = "query-results",
    }
}

kind! {
    /// The kind of work that a submission hands to its queue.
    SubmissionKind {
        /// Command buffers, or semaphores alone (Vulkan, Metal).
        CommandBuffers = "command-buffers",
        /// A kernel (CUDA).
        Kernel = "kernel",
        /// A copy or a fill (CUDA).
        Transfer = "transfer",
        /// A graph (CUDA).
        Graph = "graph",
        /// A function that the host runs when its queue reaches it (CUDA).
        HostFunction = "host-function",
        /// A wait of the queue for a value in memory (CUDA).
        WaitValue = "wait-value",
        /// A wait of the queue for a semaphore of another API or process (CUDA).
        WaitExternal = "wait-external",
        /// A move of managed memory, which has no row in the tables of work (CUDA).
        Prefetch = "prefetch",
        /// A decompression of memory, which has no row in the tables of work (CUDA).
        Decompression = "decompression",
    }
}

kind! {
    /// The kind of a host call.
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
        /// Asks for a fence's state; polls are folded.
        PollFence = "poll-fence",
        /// Asks for a semaphore's value; polls are folded.
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
        /// Creates a shader module.
        CreateShaderModule = "create-shader-module",
        /// Copies or fills memory and returns when that is done (CUDA).
        CopyAndWait = "copy-and-wait",
        /// Waits for an event (CUDA).
        WaitEvent = "wait-event",
        /// Asks whether an event or a stream has been reached; polls are folded (CUDA).
        PollEvent = "poll-event",
        /// Loads or compiles code: modules, libraries, kernels that are loaded when first used (CUDA).
        LoadModule = "load-module",
        /// Captures, builds or instantiates a graph (CUDA).
        BuildGraph = "build-graph",
        /// Launches work that the trace does not contain (CUDA).
        Launch = "launch",
        /// Anything else that takes time in the driver (CUDA).
        OtherCall = "other-call",
        /// The driver's queue was full: the host waited for the device (CUDA).
        QueueFull = "queue-full",
        /// Time that the recorder took on the thread.
        Recording = "recording",
        /// Presents an image.
        Present = "present",
        /// Acquires an image.
        AcquireImage = "acquire-image",
        /// A function of the host that a queue runs and waits for (CUDA); the queue is in the row.
        HostFunction = "host-function",
        /// Waits until an image has been presented.
        WaitPresent = "wait-present",
        /// Works on a deferred operation, such as creating pipelines.
        JoinDeferred = "join-deferred",
        /// The host copies to or from an image, or changes its layout.
        CopyImage = "copy-image",
    }
}

/// The name of a [`HostCallKind::Recording`] call of no thread, in whose time nothing was recorded, as between two windows of a
/// profiler that records parts of a run.
pub const NOT_RECORDED_CALL: &str = "not recorded";

impl HostCallKind {
    /// Returns true for calls that ask about the GPU's progress and return at once.
    pub fn is_poll(self) -> bool {
        use HostCallKind::*;
        matches!(self, PollFence | PollSemaphore | PollEvent)
    }

    /// Returns true for calls that wait for the GPU's progress, or ask about it.
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
        /// Host memory that may be paged out: copies from or to it are not asynchronous.
        Pageable = "pageable",
        /// Page-locked host memory.
        Pinned = "pinned",
        /// Device memory, variables of modules included.
        Device = "device",
        /// An array (image) on the device.
        Array = "array",
        /// Memory that moves between host and device by itself.
        Managed = "managed",
    }
}

kind! {
    /// The kind of a CUDA stream.
    StreamKind {
        /// The default stream: it and all blocking streams of its context wait for each other.
        Default = "default",
        /// Synchronises with the default stream.
        Blocking = "blocking",
        /// Does not synchronise with the default stream.
        NonBlocking = "non-blocking",
    }
}

kind! {
    /// The access of a kernel to a binding.
    Access {
        /// Reads only.
        Read = "read",
        /// Writes only.
        Write = "write",
        /// Reads and writes.
        ReadWrite = "read-write",
    }
}

kind! {
    /// The source of a kernel's name.
    NameSource {
        /// The user's names file.
        NamesFile = "names-file",
        /// The program named the pipeline.
        ObjectName = "object-name",
        /// The entry point, when it says more than `main`.
        EntryPoint = "entry-point",
        /// The label around its dispatches, when it is always the same.
        Label = "label",
        /// The program named the shader module, or the debug information names the source file.
        SourceName = "source-name",
        /// No name is known, so the hash stands for it.
        Hash = "hash",
    }
}

kind! {
    /// Whether a command buffer's times are known, or why not.
    Timing {
        /// They are known.
        Measured = "measured",
        /// Measured around the command buffer only, because it may run twice at once: its contents have no times.
        Bracketed = "bracketed",
        /// The queue's family has no timestamps.
        NoTimestamps = "no-timestamps",
        /// The program ended, reset or freed it before it was seen to have finished.
        NotSeen = "not-seen",
        /// The device was lost.
        DeviceLost = "device-lost",
        /// Recorded while the recorder was off.
        NotInstrumented = "not-instrumented",
        /// Timestamps could not be added.
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
    /// An event in the life of an allocation.
    MemoryEvent {
        /// The allocation was made.
        Allocate = "allocate",
        /// The allocation was freed.
        Free = "free",
    }
}

kind! {
    /// The unit of a counter's values.
    CounterUnit {
        /// A count of things.
        Count = "count",
        /// Bytes.
        Bytes = "bytes",
        /// Bytes per second.
        BytesPerSecond = "bytes/s",
        /// A percentage from 0 to 100.
        Percent = "percent",
        /// Cycles per second.
        Hertz = "hertz",
        /// Power.
        Watts = "watts",
        /// Temperature.
        Celsius = "celsius",
    }
}

kind! {
    /// The state of a thread at a moment.
    ThreadState {
        /// The thread runs, or waits for a processor.
        Running = "running",
        /// The thread is in a blocking system call.
        Blocked = "blocked",
    }
}

kind! {
    /// The origin of a thread's sample.
    SampleSource {
        /// A sampler took it from outside, independently of the program.
        Sampled = "sampled",
        /// The hook took it at the end of a call that waited: it shows the line that waited.
        AfterWait = "after-wait",
        /// The hook took it at a submission after a long time without calls: it shows the line that submits.
        AtSubmission = "at-submission",
    }
}

kind! {
    /// What a piece of memory is to an allocator of the program.
    AllocatorMemoryKind {
        /// Memory that the allocator reserved from the driver.
        Segment = "segment",
        /// Memory that it gave to the program.
        Block = "block",
    }
}

kind! {
    /// The kind of code that a frame belongs to.
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
        /// HIP: CUDA's concepts on AMD devices.
        Hip = "hip",
    }
}

/// The result of a host call whose result is unknown, as in imports of tools that do not record it.
pub const UNKNOWN_RESULT: i32 = i32::MIN;

/// The domain of labels that gapscope sets for the modules of a model: paths such as `blocks.3.attn.qkv`.
pub const MODULE_DOMAIN: &str = "torch.module";

/// The domain of labels that gapscope has a framework set for its operators, such as `aten::mm`.
pub const OPERATOR_DOMAIN: &str = "torch.operator";

/// The domain of markers of operators in imported files. They label no work: what an operator launched is what its thread
/// launched inside of it.
pub const OPERATOR_RANGE_DOMAIN: &str = "operator";

/// Domains of markers that show the activity of the host's code in imports: operators, Python functions, others, and
/// calls of the operating system and of libraries. They are not labels of the program and label no work.
pub const HOST_CODE_DOMAINS: [&str; 6] = [
    OPERATOR_RANGE_DOMAIN,
    "python",
    "host",
    "OS runtime",
    "cuBLAS",
    "cuDNN",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_are_the_same_after_a_way_through_text_and_number() {
        for kind in TransferKind::ALL {
            assert_eq!(TransferKind::from_text_or_unknown(kind.as_str()), *kind);
            assert_eq!(TransferKind::from_number(kind.number()), *kind);
        }
        assert_eq!(
            TransferKind::from_text_or_unknown("of-a-later-version"),
            TransferKind::Unknown
        );
        assert_eq!(TransferKind::from_number(200), TransferKind::Unknown);
        assert_eq!(
            TransferKind::from_number(TransferKind::Unknown.number()),
            TransferKind::Unknown
        );
    }
}
