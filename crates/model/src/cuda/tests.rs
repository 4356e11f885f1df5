//! Tests the table of CUDA's functions: it is complete, and each function has the class of what it does.

use super::*;
use crate::LossKind;
use std::collections::BTreeSet;

/// Returns the functions of CUDA 12.0 to 13.5, without suffixes, each with its decision from `names.txt`.
fn decisions() -> impl Iterator<Item = (&'static str, &'static str)> {
    let lines = include_str!("names.txt").lines();
    lines
        .filter(|line| !line.starts_with('#'))
        .map(|line| line.split_once(' ').unwrap_or((line, "")))
}

fn all_names() -> BTreeSet<&'static str> {
    decisions().map(|(name, _)| name).collect()
}

#[test]
fn of_each_function_it_is_decided_whether_its_work_is_recorded() {
    let page = include_str!("../../../../docs/cuda.md");
    for (name, decision) in decisions() {
        let in_table = FunctionClass::from_function(name).is_some();
        match decision {
            "" => assert!(
                in_table,
                "{name}: table.rs lacks it, and nothing is decided"
            ),
            "none" | "windows" | "32-bit" => assert!(!in_table, "{name}: table.rs has it"),
            // A runtime function does the same as the driver function of that name.
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
        let class = FunctionClass::from_function(name).expect("in the table");
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
        let prefixes: &[&str] = match name.trim_start_matches('_').starts_with("cu") {
            true => &[""],
            false => &["cu", "cuda"],
        };
        for name in prefixes.iter().map(|prefix| format!("{prefix}{name}")) {
            assert!(names.contains(base_name(&name)), "{name}");
            assert_eq!(FunctionClass::from_function(&name), Some(*class));
        }
    }
    assert_eq!(FunctionClass::from_function("EventQuery"), None);
}

/// Fails for new functions of a new CUDA version once they are in `names.txt`: each needs a decision.
#[test]
fn no_function_that_launches_copies_waits_or_allocates_is_forgotten() {
    const TELLING: &str = "Launch Memcpy Memset Synchronize StreamQuery EventQuery RecordEvent EventRecord \
        WaitEvent MemAlloc Malloc MemFree cudaFree ModuleLoad LibraryLoad Capture WaitValue \
        BatchMemOp WaitExternal Prefetch AddCallback";
    // These read or change properties of a graph or a stream, or are not for 64-bit programs.
    const LEFT_OUT: &str = "GetParams BatchMemOpNode GetEvent cu64 CaptureInfo IsCapturing CaptureMode \
        CaptureDependencies StreamCreateForCapture";
    let telling = |name: &&str| TELLING.split(' ').any(|part| name.contains(part));
    let forgotten: Vec<&str> = all_names()
        .into_iter()
        .filter(telling)
        .filter(|name| !LEFT_OUT.split(' ').any(|part| name.contains(part)))
        .filter(|name| FunctionClass::from_function(name).is_none())
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
    for (class, name) in [
        (LaunchKernel, "cudaLaunchKernel_v7000"),
        (LaunchKernel, "cudaLaunchKernelExC_ptsz_v11060"),
        (LaunchKernel, "cudaLaunchCooperativeKernel_v9000"),
        (LaunchKernel, "cuLaunchKernelEx"),
        (LaunchKernel, "cuLaunchGridAsync"),
        (LaunchGraph, "cudaGraphLaunch_v10000"),
        (LaunchGraph, "cuGraphLaunch_ptsz"),
        (LaunchHostFunction, "cudaLaunchHostFunc_v2_ptsz_v13020"),
        (LaunchHostFunction, "cuLaunchHostFunc_v2"),
        (LaunchHostFunction, "cudaStreamAddCallback_ptsz_v7000"),
        (LaunchHostFunction, "cuStreamAddCallback"),
        (WaitValue, "cuStreamWaitValue32"),
        (WaitValue, "cuStreamWaitValue64_v2_ptsz"),
        (BatchMemoryOperations, "cuStreamBatchMemOp_v2"),
        (WaitExternal, "cudaWaitExternalSemaphoresAsync_v11020"),
        (WaitExternal, "cuWaitExternalSemaphoresAsync_ptsz"),
        (Prefetch, "cudaMemPrefetchAsync_v12020"),
        (Prefetch, "cuMemPrefetchAsync_v2_ptsz"),
        (Prefetch, "cudaMemDiscardAndPrefetchBatchAsync_v13000"),
        (Prefetch, "cuMemDiscardBatchAsync"),
        (DestroyGraphExec, "cuGraphExecDestroy"),
        (OtherCall, "cudaStreamDestroy_v5050"),
        (OtherCall, "cuCtxSetLimit"),
        (Transfer, "cudaMemcpyAsync_v3020"),
        (Transfer, "cuMemcpyDtoHAsync_v2"),
        (Transfer, "cuMemsetD32_v2_ptds"),
        (CopyAndWait, "cudaMemcpy_v3020"),
        (CopyAndWait, "cuMemcpyHtoD_v2"),
        (WaitStream, "cudaStreamSynchronize_ptsz_v7000"),
        (WaitContext, "cuCtxSynchronize"),
        (WaitContext, "cudaDeviceSynchronize_v3020"),
        (WaitContext, "cudaThreadSynchronize_v3020"),
        (WaitNamedContext, "cuCtxSynchronize_v2"),
        (WaitExecutionContext, "cudaExecutionCtxSynchronize_v13010"),
        (WaitEvent, "cudaEventSynchronize_v3020"),
        (PollEvent, "cudaEventQuery_v3020"),
        (PollStream, "cuStreamQuery_ptsz"),
        (AllocateMemory, "cudaMallocAsync_v11020"),
        (AllocateMemory, "cuMemAllocManaged"),
        (FreeMemory, "cudaFreeAsync_v11020"),
        (FreeMemory, "cudaFree_v3020"),
        (FreeMemory, "cuMemFree_v2"),
        (LoadModule, "cuModuleLoadData"),
        (LoadModule, "cuLibraryLoadData"),
        (BeginCapture, "cudaStreamBeginCaptureToGraph_v12030"),
        (EndCapture, "cuStreamEndCapture"),
        (InstantiateGraph, "cudaGraphInstantiateWithFlags_v11040"),
        (BuildGraph, "cudaGraphUpload_v10000"),
        (BuildGraph, "cuGraphExecUpdate_v2"),
        (AddEventNode, "cudaGraphAddEventRecordNode_v11010"),
        (RecordEvent, "cudaEventRecord_v3020"),
        (RecordEvent, "cuEventRecord_ptsz"),
        (RecordEventWithFlags, "cuEventRecordWithFlags_ptsz"),
        (StreamWaitEvent, "cudaStreamWaitEvent_ptsz_v7000"),
        (DestroyEvent, "cuEventDestroy"),
        (DestroyEvent, "cuEventDestroy_v2"),
    ] {
        assert_eq!(FunctionClass::from_function(name), Some(class), "{name}");
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
        assert_eq!(FunctionClass::from_function(name), None, "{name}");
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
