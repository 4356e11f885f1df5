//! What the functions of CUDA do: decided here, once, by their exact names.
//!
//! The hook asks which functions it records and what their calls wait for, and passes the class on with the function;
//! the session makes rows of it. A trace of format version 1 has names alone, so that its reader asks here too.

mod table;

use crate::kind::kind;
use crate::{HostCallKind, LossKind, SubmissionKind};

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
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    /// Without suffixes, of CUDA 12.0 to 13.5, each with what `names.txt` says of it.
    fn decisions() -> impl Iterator<Item = (&'static str, &'static str)> {
        let lines = include_str!("cuda/names.txt").lines();
        lines
            .filter(|line| !line.starts_with('#'))
            .map(|line| line.split_once(' ').unwrap_or((line, "")))
    }

    fn all_names() -> BTreeSet<&'static str> {
        decisions().map(|(name, _)| name).collect()
    }

    #[test]
    fn of_each_function_it_is_decided_whether_its_work_is_recorded() {
        let page = include_str!("../../../docs/cuda.md");
        for (name, decision) in decisions() {
            let in_table = FunctionClass::of_function(name).is_some();
            match decision {
                "" => assert!(
                    in_table,
                    "{name}: table.rs lacks it, and nothing is decided"
                ),
                "none" | "windows" | "32-bit" => assert!(!in_table, "{name}: table.rs has it"),
                // A function of the runtime does as the driver's of that name.
                "unrecorded" => {
                    let driver = name.replacen("cuda", "cu", 1);
                    let is_said = page.contains(&format!("`{driver}`"));
                    assert!(
                        is_said,
                        "{name}: docs/cuda.md does not say that it is unrecorded"
                    );
                }
                other => panic!("{name}: {other} is no decision"),
            }
        }
    }

    #[test]
    fn work_without_a_record_is_a_loss_where_its_call_is_recorded() {
        for (name, lost) in [
            ("cuMemPrefetchAsync_v2", Some(LossKind::ManagedMemoryMoves)),
            ("cuMemBatchDecompressAsync", Some(LossKind::Decompressions)),
            ("cuLaunchKernel", None),
            ("cuStreamWaitValue32", None),
        ] {
            let class = FunctionClass::of_function(name).expect("in the table");
            assert_eq!(class.unrecorded_work(), lost, "{name}");
        }
    }

    #[test]
    fn each_function_is_in_the_table_once_and_is_one_of_cuda() {
        let names = all_names();
        for pair in table::FUNCTIONS.windows(2) {
            assert!(pair[0].0 < pair[1].0, "{} is out of order", pair[1].0);
        }
        for (name, class) in table::FUNCTIONS {
            assert!(names.contains(base_name(name)), "{name}");
            assert_eq!(FunctionClass::of_function(name), Some(*class));
        }
    }

    /// A new version of CUDA has new functions: extend `names.txt`, and each that this finds is to be decided.
    #[test]
    fn no_function_that_launches_copies_waits_or_allocates_is_forgotten() {
        const TELLING: [&str; 21] = [
            "Launch",
            "Memcpy",
            "Memset",
            "Synchronize",
            "StreamQuery",
            "EventQuery",
            "RecordEvent",
            "EventRecord",
            "WaitEvent",
            "MemAlloc",
            "Malloc",
            "MemFree",
            "cudaFree",
            "ModuleLoad",
            "LibraryLoad",
            "Capture",
            "WaitValue",
            "BatchMemOp",
            "WaitExternal",
            "Prefetch",
            "AddCallback",
        ];
        // They ask for or change what a graph or a stream is, or are not for 64-bit programs.
        const LEFT_OUT: [&str; 9] = [
            "GetParams",
            "BatchMemOpNode",
            "GetEvent",
            "cu64",
            "CaptureInfo",
            "IsCapturing",
            "CaptureMode",
            "CaptureDependencies",
            "StreamCreateForCapture",
        ];
        let telling = |name: &&str| TELLING.iter().any(|part| name.contains(part));
        let forgotten: Vec<&str> = all_names()
            .into_iter()
            .filter(telling)
            .filter(|name| !LEFT_OUT.iter().any(|part| name.contains(part)))
            .filter(|name| FunctionClass::of_function(name).is_none())
            .collect();
        assert_eq!(
            forgotten,
            [
                "cuGraphAddMemAllocNode",
                "cuGraphAddMemFreeNode",
                "cudaGraphAddMemAllocNode",
                "cudaGraphAddMemFreeNode",
            ]
        );
    }

    #[test]
    fn functions_of_both_interfaces_have_the_class_of_what_they_do() {
        use FunctionClass::*;
        for (class, names) in [
            (
                LaunchKernel,
                &[
                    "cudaLaunchKernel_v7000",
                    "cudaLaunchKernelExC_ptsz_v11060",
                    "cudaLaunchCooperativeKernel_v9000",
                    "cuLaunchKernelEx",
                    "cuLaunchGridAsync",
                ][..],
            ),
            (
                LaunchGraph,
                &["cudaGraphLaunch_v10000", "cuGraphLaunch_ptsz"],
            ),
            (
                LaunchHostFunction,
                &[
                    "cudaLaunchHostFunc_v2_ptsz_v13020",
                    "cuLaunchHostFunc_v2",
                    "cudaStreamAddCallback_ptsz_v7000",
                    "cuStreamAddCallback",
                ],
            ),
            (
                WaitValue,
                &["cuStreamWaitValue32", "cuStreamWaitValue64_v2_ptsz"],
            ),
            (BatchMemoryOperations, &["cuStreamBatchMemOp_v2"]),
            (
                WaitExternal,
                &[
                    "cudaWaitExternalSemaphoresAsync_v11020",
                    "cuWaitExternalSemaphoresAsync_ptsz",
                ],
            ),
            (
                Prefetch,
                &[
                    "cudaMemPrefetchAsync_v12020",
                    "cuMemPrefetchAsync_v2_ptsz",
                    "cudaMemDiscardAndPrefetchBatchAsync_v13000",
                    "cuMemDiscardBatchAsync",
                ],
            ),
            (DestroyGraphExec, &["cuGraphExecDestroy"]),
            (OtherCall, &["cudaStreamDestroy_v5050", "cuCtxSetLimit"]),
            (
                Transfer,
                &[
                    "cudaMemcpyAsync_v3020",
                    "cuMemcpyDtoHAsync_v2",
                    "cuMemsetD32_v2_ptds",
                ],
            ),
            (CopyAndWait, &["cudaMemcpy_v3020", "cuMemcpyHtoD_v2"]),
            (WaitStream, &["cudaStreamSynchronize_ptsz_v7000"]),
            (
                WaitContext,
                &[
                    "cuCtxSynchronize",
                    "cudaDeviceSynchronize_v3020",
                    "cudaThreadSynchronize_v3020",
                ],
            ),
            (WaitNamedContext, &["cuCtxSynchronize_v2"]),
            (
                WaitExecutionContext,
                &["cudaExecutionCtxSynchronize_v13010"],
            ),
            (WaitEvent, &["cudaEventSynchronize_v3020"]),
            (PollEvent, &["cudaEventQuery_v3020"]),
            (PollStream, &["cuStreamQuery_ptsz"]),
            (
                AllocateMemory,
                &["cudaMallocAsync_v11020", "cuMemAllocManaged"],
            ),
            (
                FreeMemory,
                &["cudaFreeAsync_v11020", "cudaFree_v3020", "cuMemFree_v2"],
            ),
            (LoadModule, &["cuModuleLoadData", "cuLibraryLoadData"]),
            (BeginCapture, &["cudaStreamBeginCaptureToGraph_v12030"]),
            (EndCapture, &["cuStreamEndCapture"]),
            (InstantiateGraph, &["cudaGraphInstantiateWithFlags_v11040"]),
            (
                BuildGraph,
                &["cudaGraphUpload_v10000", "cuGraphExecUpdate_v2"],
            ),
            (AddEventNode, &["cudaGraphAddEventRecordNode_v11010"]),
            (
                RecordEvent,
                &["cudaEventRecord_v3020", "cuEventRecord_ptsz"],
            ),
            (RecordEventWithFlags, &["cuEventRecordWithFlags_ptsz"]),
            (StreamWaitEvent, &["cudaStreamWaitEvent_ptsz_v7000"]),
            (DestroyEvent, &["cuEventDestroy", "cuEventDestroy_v2"]),
        ] {
            for name in names {
                assert_eq!(FunctionClass::of_function(name), Some(class), "{name}");
            }
        }
        for name in [
            "cudaGetDevice_v3020",
            "cudaGetLastError_v3020",
            "cudaStreamIsCapturing_v10000",
            "cuGraphAddKernelNode_v2",
            "cuStreamWaitValue",
            "cuStreamWriteValue32_v2",
            "vkQueueSubmit",
            "",
        ] {
            assert_eq!(FunctionClass::of_function(name), None, "{name}");
        }
    }

    #[test]
    fn submissions_of_old_traces_get_their_kind_by_the_function() {
        for (name, kind) in [
            ("cudaGraphLaunch", SubmissionKind::Graph),
            ("cuLaunchKernel", SubmissionKind::Kernel),
            ("cudaMemcpy", SubmissionKind::Transfer),
            ("cuLaunchHostFunc", SubmissionKind::HostFunction),
            ("vkQueueSubmit2", SubmissionKind::Unknown),
            ("", SubmissionKind::Unknown),
        ] {
            assert_eq!(submission_kind(name), kind, "{name}");
        }
    }

    #[test]
    fn a_suffix_says_whose_default_stream_is_meant() {
        for (name, own) in [
            ("cudaEventRecord_ptsz_v7000", true),
            ("cuMemcpyHtoD_v2_ptds", true),
            ("cuEventRecord", false),
        ] {
            assert_eq!(is_per_thread(name), own, "{name}");
        }
    }

    #[test]
    fn suffixes_of_versions_and_of_the_default_stream_are_not_part_of_the_name() {
        for (full, base) in [
            ("cudaLaunchKernel_v7000", "cudaLaunchKernel"),
            ("cudaLaunchKernel_ptsz_v7000", "cudaLaunchKernel"),
            (
                "cudaMemPrefetchAsync_v2_ptsz_v12020",
                "cudaMemPrefetchAsync",
            ),
            ("cuMemcpyHtoD_v2_ptds", "cuMemcpyHtoD"),
            ("cuLaunchKernel", "cuLaunchKernel"),
            ("__cudaLaunchKernel_v11060", "__cudaLaunchKernel"),
            ("cuda_value", "cuda_value"),
        ] {
            assert_eq!(base_name(full), base);
        }
    }
}
