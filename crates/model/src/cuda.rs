//! What the functions of CUDA do: decided here, once, by their exact names.
//!
//! The hook asks which functions it records and what their calls wait for, and passes the class on with the function;
//! the session makes rows of it. A trace of format version 1 has names alone, so that its reader asks here too.

mod table;

use crate::kind::kind;
use crate::{HostCallKind, LossKind, SubmissionKind};

/// A driver as traces name it: `NVIDIA 580.159.04, CUDA 13.0`, of which each part may be missing. `module` is what the kernel's module says
/// of itself in `/proc/driver/nvidia/version`, `cuda` the newest CUDA that the driver supports, as 1000 × major + 10 × minor.
pub fn driver_versions(module: &str, cuda: Option<u32>) -> String {
    // NVRM version: NVIDIA UNIX x86_64 Kernel Module  580.159.04  Release Build ...
    let mut words = module.lines().next().unwrap_or_default().split_whitespace();
    let version = words
        .find(|word| word.contains('.') && word.bytes().all(|b| b.is_ascii_digit() || b == b'.'));
    let parts = [
        version.map(|version| format!("NVIDIA {version}")),
        cuda.map(|v| format!("CUDA {}.{}", v / 1000, v % 1000 / 10)),
    ];
    parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

kind! {
    /// What a function of CUDA does, as far as a timeline is concerned.
    FunctionClass {
        /// Launches a kernel.
        LaunchKernel = "launch-kernel",
        /// Launches a graph.
        LaunchGraph = "launch-graph",
        /// Lets the host run a function when a stream gets there.
        LaunchHostFunction = "launch-host-function",
        /// Copies or fills memory, and returns at once.
        Transfer = "transfer",
        /// Copies memory, and returns when that is done.
        CopyAndWait = "copy-and-wait",
        /// Waits for a stream.
        WaitStream = "wait-stream",
        /// Waits for all streams of the current context.
        WaitContext = "wait-context",
        /// Waits for all streams of the context that is its first parameter.
        WaitNamedContext = "wait-named-context",
        /// Waits for an execution context of the runtime: a device, or a part of one.
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
        /// Ends such a capture.
        EndCapture = "end-capture",
        /// Builds or updates a graph.
        BuildGraph = "build-graph",
        /// Adds a node to a graph that records an event, the fifth parameter, when the graph is launched.
        AddEventNode = "add-event-node",
        /// Gives such a node another event, the second parameter.
        SetNodeEvent = "set-node-event",
        /// Gives such a node of an instantiated graph another event, the third parameter.
        SetExecNodeEvent = "set-exec-node-event",
        /// Records an event on a stream.
        RecordEvent = "record-event",
        /// Records an event on a stream, or, as flags in the third parameter say, at each launch of a captured graph.
        RecordEventWithFlags = "record-event-with-flags",
        /// Records an event after all work of a context.
        RecordContextEvent = "record-context-event",
        /// Lets a stream wait for an event.
        StreamWaitEvent = "stream-wait-event",
        /// Lets all work of a context wait for an event.
        ContextWaitEvent = "context-wait-event",
        /// Destroys an event: another one may get its handle.
        DestroyEvent = "destroy-event",
        /// Anything else that may take long, such as making a context.
        OtherCall = "other-call",
        /// Lets a stream wait for a value in memory.
        WaitValue = "wait-value",
        /// Puts several waits for values, and writes of them, on a stream.
        BatchMemoryOperations = "batch-memory-operations",
        /// Lets a stream wait for a semaphore of another API or process.
        WaitExternal = "wait-external",
        /// Moves managed memory, or discards it, when a stream gets there.
        Prefetch = "prefetch",
        /// Decompresses memory when a stream gets there.
        Decompress = "decompress",
        /// Instantiates a graph, the second parameter, into what the first one points to.
        InstantiateGraph = "instantiate-graph",
        /// Destroys an instantiated graph: another one may get its handle.
        DestroyGraphExec = "destroy-graph-exec",
    }
}

impl FunctionClass {
    /// The class of a function; `None` for those that are of no interest. The name may have suffixes.
    pub fn of_function(name: &str) -> Option<FunctionClass> {
        let find = |name| {
            let found = table::FUNCTIONS.binary_search_by_key(&name, |(known, _)| *known);
            found.ok().map(|at| table::FUNCTIONS[at].1)
        };
        // One version of a function has a class of its own.
        find(name).or_else(|| find(base_name(name)))
    }

    /// True for functions whose calls are recorded; of the others only what they do to events matters.
    pub fn is_recorded(self) -> bool {
        !matches!(self, Self::RecordContextEvent | Self::DestroyEvent)
    }

    /// True for functions that launch kernels or graphs.
    pub fn is_launch(self) -> bool {
        matches!(self, Self::LaunchKernel | Self::LaunchGraph)
    }

    /// True for functions that put on a stream what leaves no record of the device: the stream waits for it like for work.
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

    /// What the device does for a call without a record of it.
    pub fn unrecorded_work(self) -> Option<LossKind> {
        match self {
            Self::Prefetch => Some(LossKind::ManagedMemoryMoves),
            Self::Decompress => Some(LossKind::Decompressions),
            _ => None,
        }
    }

    /// True for functions that ask for a state, which is a wait where their calls follow each other.
    pub fn is_poll(self) -> bool {
        matches!(self, Self::PollStream | Self::PollEvent)
    }

    /// True for functions that return when the device has got somewhere, but for those that copy.
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

    /// What a call hands to a stream, where it does.
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

    /// The kind of host call that a call is.
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

/// A function's name without suffixes for versions and for the thread's own default stream: `cudaLaunchKernel` of
/// `cudaLaunchKernel_ptsz_v7000`, `cuMemAlloc` of `cuMemAlloc_v2`.
pub fn base_name(name: &str) -> &str {
    let mut base = name;
    while let Some((before, suffix)) = base.rsplit_once('_') {
        let is_version = suffix
            .strip_prefix('v')
            .is_some_and(|digits| !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit()));
        if !is_version && !["ptsz", "ptds"].contains(&suffix) {
            break;
        }
        base = before;
    }
    base
}

/// True for the version of a function to which a null stream is the thread's own default stream.
pub fn is_per_thread(name: &str) -> bool {
    name.split('_')
        .any(|suffix| ["ptsz", "ptds"].contains(&suffix))
}

/// What a submission by this function hands to its queue: for traces of format version 1, which have only names.
/// [`SubmissionKind::Unknown`] where the function is not one of CUDA that causes work.
pub fn submission_kind(name: &str) -> SubmissionKind {
    FunctionClass::of_function(name)
        .and_then(FunctionClass::submission_kind)
        .unwrap_or_default()
}

#[cfg(test)]
mod tests;
