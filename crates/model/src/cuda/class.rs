//! Defines [`FunctionClass`], the effect of a CUDA function on a timeline, and derives from it whether calls are
//! recorded and as which kind.

use crate::kind::kind;
use crate::{HostCallKind, LossKind, SubmissionKind};

kind! {
    /// The effect of a CUDA function on a timeline.
    FunctionClass {
        /// Launches a kernel.
        LaunchKernel = "launch-kernel",
        /// Launches a graph.
        LaunchGraph = "launch-graph",
        /// Makes the host run a function when a stream reaches it.
        LaunchHostFunction = "launch-host-function",
        /// Copies or fills memory and returns at once.
        Transfer = "transfer",
        /// Copies memory and returns when the copy is done.
        CopyAndWait = "copy-and-wait",
        /// Waits for a stream.
        WaitStream = "wait-stream",
        /// Waits for all streams of the current context.
        WaitContext = "wait-context",
        /// Waits for all streams of the context in its first parameter.
        WaitNamedContext = "wait-named-context",
        /// Waits for an execution context of the runtime: a device or a part of one.
        WaitExecutionContext = "wait-execution-context",
        /// Waits for an event.
        WaitEvent = "wait-event",
        /// Asks whether a stream is done.
        PollStream = "poll-stream",
        /// Asks whether an event has happened.
        PollEvent = "poll-event",
        /// Allocates, maps or registers memory.
        AllocateMemory = "allocate-memory",
        /// Frees, unmaps or unregisters memory.
        FreeMemory = "free-memory",
        /// Loads, links or compiles code.
        LoadModule = "load-module",
        /// Begins to capture a stream's work into a graph.
        BeginCapture = "begin-capture",
        /// Ends the capture of a stream's work.
        EndCapture = "end-capture",
        /// Builds or updates a graph.
        BuildGraph = "build-graph",
        /// Adds a node to a graph that records the event in the fifth parameter at each launch.
        AddEventNode = "add-event-node",
        /// Sets the event of an event node to the second parameter.
        SetNodeEvent = "set-node-event",
        /// Sets the event of an event node in an instantiated graph to the third parameter.
        SetExecNodeEvent = "set-exec-node-event",
        /// Records an event on a stream.
        RecordEvent = "record-event",
        /// Records an event on a stream or, depending on flags in the third parameter, at each launch of a captured
        /// graph.
        RecordEventWithFlags = "record-event-with-flags",
        /// Records an event after all work of a context.
        RecordContextEvent = "record-context-event",
        /// Makes a stream wait for an event.
        StreamWaitEvent = "stream-wait-event",
        /// Makes all work of a context wait for an event.
        ContextWaitEvent = "context-wait-event",
        /// Destroys an event. Another event may get its handle.
        DestroyEvent = "destroy-event",
        /// Does anything else that may take long, such as creating a context.
        OtherCall = "other-call",
        /// Makes a stream wait for a value in memory.
        WaitValue = "wait-value",
        /// Puts several waits for values, and writes of values, on a stream.
        BatchMemoryOperations = "batch-memory-operations",
        /// Makes a stream wait for a semaphore of another API or process.
        WaitExternal = "wait-external",
        /// Moves or discards managed memory when a stream reaches it.
        Prefetch = "prefetch",
        /// Decompresses memory when a stream reaches it.
        Decompress = "decompress",
        /// Instantiates the graph in the second parameter; the first one points to the result.
        InstantiateGraph = "instantiate-graph",
        /// Destroys an instantiated graph. Another one may get its handle.
        DestroyGraphExec = "destroy-graph-exec",
    }
}

impl FunctionClass {
    /// Returns true for functions whose calls are recorded; of the others, only their effect on events matters.
    pub fn is_recorded(self) -> bool {
        !matches!(self, Self::RecordContextEvent | Self::DestroyEvent)
    }

    /// Returns true for functions that launch kernels or graphs.
    pub fn is_launch(self) -> bool {
        matches!(self, Self::LaunchKernel | Self::LaunchGraph)
    }

    /// Returns true for functions that put an item on a stream of which the device keeps no record: the stream waits
    /// for it as for work.
    pub fn is_put_on_stream(self) -> bool {
        matches!(
            self,
            Self::LaunchHostFunction
                | Self::WaitValue
                | Self::BatchMemoryOperations
                | Self::WaitExternal
                | Self::Prefetch
                | Self::Decompress
        )
    }

    /// Returns the loss to count for device work that leaves no record; `None` for functions without such work.
    pub fn unrecorded_work(self) -> Option<LossKind> {
        match self {
            Self::Prefetch => Some(LossKind::ManagedMemoryMoves),
            Self::Decompress => Some(LossKind::Decompressions),
            _ => None,
        }
    }

    /// Returns true for functions that ask for a state. Successive calls of them are a wait.
    pub fn is_poll(self) -> bool {
        matches!(self, Self::PollStream | Self::PollEvent)
    }

    /// Returns true for functions that wait for the device, except for copies.
    pub fn is_wait(self) -> bool {
        matches!(
            self,
            Self::WaitStream
                | Self::WaitContext
                | Self::WaitNamedContext
                | Self::WaitExecutionContext
                | Self::WaitEvent
        )
    }

    /// Returns the kind of submission of a call that submits; `None` for functions that submit nothing.
    pub fn submission_kind(self) -> Option<SubmissionKind> {
        match self {
            Self::LaunchHostFunction => Some(SubmissionKind::HostFunction),
            Self::WaitValue | Self::BatchMemoryOperations => Some(SubmissionKind::WaitValue),
            Self::WaitExternal => Some(SubmissionKind::WaitExternal),
            Self::Prefetch => Some(SubmissionKind::Prefetch),
            Self::Decompress => Some(SubmissionKind::Decompression),
            Self::LaunchKernel => Some(SubmissionKind::Kernel),
            Self::LaunchGraph => Some(SubmissionKind::Graph),
            Self::Transfer | Self::CopyAndWait => Some(SubmissionKind::Transfer),
            _ => None,
        }
    }

    /// Returns the kind under which a call of the function is in the table `host_calls`.
    pub fn host_call_kind(self) -> HostCallKind {
        match self {
            Self::LaunchKernel | Self::LaunchGraph | Self::Transfer => HostCallKind::Launch,
            Self::CopyAndWait => HostCallKind::CopyAndWait,
            Self::WaitStream => HostCallKind::WaitQueueIdle,
            Self::WaitContext | Self::WaitNamedContext | Self::WaitExecutionContext => {
                HostCallKind::WaitDeviceIdle
            }
            Self::WaitEvent => HostCallKind::WaitEvent,
            Self::PollStream | Self::PollEvent => HostCallKind::PollEvent,
            Self::AllocateMemory => HostCallKind::AllocateMemory,
            Self::FreeMemory => HostCallKind::FreeMemory,
            Self::LoadModule => HostCallKind::LoadModule,
            Self::BeginCapture
            | Self::EndCapture
            | Self::BuildGraph
            | Self::InstantiateGraph
            | Self::AddEventNode
            | Self::SetNodeEvent
            | Self::SetExecNodeEvent => HostCallKind::BuildGraph,
            Self::LaunchHostFunction
            | Self::WaitValue
            | Self::BatchMemoryOperations
            | Self::WaitExternal
            | Self::Prefetch
            | Self::Decompress
            | Self::DestroyGraphExec
            | Self::RecordEvent
            | Self::RecordEventWithFlags
            | Self::RecordContextEvent
            | Self::StreamWaitEvent
            | Self::ContextWaitEvent
            | Self::DestroyEvent
            | Self::OtherCall
            | Self::Unknown => HostCallKind::OtherCall,
        }
    }
}
