//! Which calls of the program are recorded.
//!
//! In PyTorch four of five runtime calls are cudaGetDevice and cudaGetLastError; each record costs the program about
//! 0.1 µs. So only calls are recorded that cause work on the device, wait for it, or may take long.
//!
//! Calls that ask whether work is done wait for it where a program repeats them: without them, a host that spins would
//! look like one that computes. A program that spins has the time for their records, which are folded before they are
//! written.

use crate::cupti::{Cupti, numbers::domain};
use crate::notes;
use crate::recorder::Recorder;

/// Numbers of calls are below this in every CUPTI so far.
pub const MOST_CALLS: u32 = 2000;

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

/// Switches the other calls off. The opposite way, to switch on the wanted ones alone, records nothing once CUPTI is
/// initialised and too much before.
pub fn exclude_noise(recorder: &Recorder, cupti: &Cupti) {
    for domain in [domain::RUNTIME, domain::DRIVER] {
        let mut refused = 0;
        for call in 1..MOST_CALLS {
            let Some(name) = cupti.call_name(domain, call) else {
                continue;
            };
            if is_wanted(name) {
                continue;
            }
            let Some(code) = cupti.leave_out(domain, call) else {
                notes::note(
                    recorder,
                    "This libcupti, older than that of CUDA 12.6, cannot leave out calls that only ask for a state: recording \
                     costs the program up to twice as much.",
                );
                return;
            };
            refused += u64::from(code != 0);
        }
        if refused > 0 {
            recorder.loss(
                "exclusions of calls",
                refused,
                "CUPTI refused: recording costs the program more",
            );
        }
    }
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
