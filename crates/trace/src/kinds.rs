//! The kinds that columns hold as texts.

use crate::column::text_enum;

text_enum! {
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

text_enum! {
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
    }
}

text_enum! {
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
    }
}

impl HostCallKind {
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

text_enum! {
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

text_enum! {
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

text_enum! {
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

text_enum! {
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

text_enum! {
    /// What happened to an allocation.
    MemoryEvent {
        /// It was made.
        Allocate = "allocate",
        /// It was freed.
        Free = "free",
    }
}
