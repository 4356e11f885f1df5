//! Calls by their names: which are recorded.
//!
//! In PyTorch four of five runtime calls are cudaGetDevice and cudaGetLastError. Only calls are recorded that cause work
//! on the device, wait for it, or may take long; of the others CUPTI tells nothing, and they cost nothing.
//!
//! Calls that ask whether work is done wait for it where a program repeats them: without them, a host that spins would
//! look like one that computes.

/// Parts of the names of calls that are recorded.
const WANTED: [&str; 54] = [
    "LaunchKernel",
    "LaunchCooperative",
    "LaunchHostFunc",
    "cuLaunch",
    "GraphLaunch",
    "GraphInstantiate",
    "GraphExecUpdate",
    "StreamBeginCapture",
    "StreamEndCapture",
    "Memcpy",
    "Memset",
    "MemPrefetch",
    "MemAdvise",
    "MemGetInfo",
    "StreamCreate",
    "Synchronize",
    "StreamWait",
    "CtxWaitEvent",
    "StreamQuery",
    "EventQuery",
    "EventRecord",
    "cudaMalloc",
    "cudaFree",
    "cudaHostAlloc",
    "HostRegister",
    "HostUnregister",
    "cuMemAlloc",
    "cuMemFree",
    "cuMemHostAlloc",
    "cuMemCreate",
    "cuMemRelease",
    "cuMemMap",
    "cuMemUnmap",
    "cuMemSetAccess",
    "cuMemAddress",
    "MemPoolCreate",
    "MemPoolDestroy",
    "MemPoolTrim",
    "cuArray",
    "ModuleLoad",
    "ModuleUnload",
    "FuncLoad",
    "LibraryLoad",
    "LibraryUnload",
    "LibraryGetKernel",
    "cuLink",
    "CtxCreate",
    "CtxDestroy",
    "PrimaryCtxRetain",
    "PrimaryCtxRe",
    "DeviceReset",
    "InitDevice",
    "IpcOpen",
    "ImportExternal",
];

/// Whether calls of this name are recorded.
pub fn is_wanted(name: &str) -> bool {
    WANTED.iter().any(|part| name.contains(part))
}

/// Whether calls of this name ask for a state, and are a wait where they follow each other.
pub fn is_poll(name: &str) -> bool {
    let name = plain_name(name);
    name.ends_with("EventQuery") || name.ends_with("StreamQuery")
}

/// Whether calls of this name launch kernels, graphs or functions of the host.
pub fn is_launch(name: &str) -> bool {
    [
        "cuLaunch",
        "LaunchKernel",
        "LaunchCooperative",
        "LaunchHostFunc",
        "GraphLaunch",
    ]
    .iter()
    .any(|part| name.contains(part))
}

/// The name without what tells versions apart: `cudaLaunchKernel_v7000`, `cuMemAlloc_v2`, `cuLaunchKernel_ptsz`.
pub fn plain_name(name: &str) -> &str {
    let mut name = name;
    for suffix in ["_ptsz", "_ptds"] {
        name = name.strip_suffix(suffix).unwrap_or(name);
    }
    if let Some((plain, version)) = name.rsplit_once("_v")
        && !version.is_empty()
        && version.bytes().all(|b| b.is_ascii_digit())
    {
        name = plain;
    }
    for suffix in ["_ptsz", "_ptds"] {
        name = name.strip_suffix(suffix).unwrap_or(name);
    }
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_launches_waits_allocates_or_loads_is_recorded_and_what_asks_is_not() {
        for name in [
            "cudaLaunchKernel_v7000",
            "cudaLaunchKernelExC_v11060",
            "cuLaunchKernelEx",
            "cudaGraphLaunch_v10000",
            "cudaMemcpyAsync_v3020",
            "cuMemsetD32Async",
            "cudaStreamSynchronize_v3020",
            "cudaStreamWaitEvent_v3020",
            "cudaMallocAsync_v11020",
            "cudaFreeHost_v3020",
            "cuModuleLoadDataEx",
            "cuLibraryLoadData",
            "cuLaunchKernelEx_ptsz",
            "cuLaunchCooperativeKernel",
            "cuLaunchGridAsync",
            "cudaEventQuery_v3020",
            "cuStreamQuery",
        ] {
            assert!(is_wanted(name), "{name}");
        }
        for name in [
            "cudaEventQuery_v3020",
            "cuStreamQuery_ptsz",
            "cudaStreamQuery_ptsz_v7000",
        ] {
            assert!(is_poll(name), "{name}");
        }
        assert!(!is_poll("cudaEventSynchronize_v3020"));
        for name in [
            "cudaGetDevice_v3020",
            "cudaGetLastError_v3020",
            "cudaPeekAtLastError_v3020",
            "cudaSetDevice_v3020",
            "cudaStreamIsCapturing_v10000",
            "cuCtxGetCurrent",
            "cuGraphAddKernelNode_v2",
            "cuPointerGetAttribute",
        ] {
            assert!(!is_wanted(name), "{name}");
        }
    }

    #[test]
    fn launches_of_the_runtime_and_of_the_driver_are_told_from_what_prepares_them() {
        for name in [
            "cudaLaunchKernel_v7000",
            "cudaLaunchKernelExC_ptsz_v11060",
            "cudaLaunchCooperativeKernel_v9000",
            "cudaLaunchHostFunc_v10000",
            "cudaGraphLaunch_v10000",
            "cuLaunchKernelEx",
            "cuLaunchGridAsync",
            "cuGraphLaunch_ptsz",
        ] {
            assert!(is_launch(name) && is_wanted(name), "{name}");
        }
        for name in [
            "cudaGraphInstantiate_v10000",
            "cudaMemcpyAsync_v3020",
            "cudaFuncSetAttribute_v9000",
        ] {
            assert!(!is_launch(name), "{name}");
        }
    }

    #[test]
    fn suffixes_of_versions_and_of_the_default_stream_are_no_part_of_the_name() {
        for (full, plain) in [
            ("cudaLaunchKernel_v7000", "cudaLaunchKernel"),
            ("cudaLaunchKernel_ptsz_v7000", "cudaLaunchKernel"),
            ("cuMemAlloc_v2", "cuMemAlloc"),
            ("cuMemcpyHtoD_v2_ptds", "cuMemcpyHtoD"),
            ("cuLaunchKernel", "cuLaunchKernel"),
            ("cuda_value", "cuda_value"),
        ] {
            assert_eq!(plain_name(full), plain);
        }
    }
}
