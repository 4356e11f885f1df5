//! The numbers and names of the calls that the stub has, as in cupti_runtime_cbid.h and cupti_driver_cbid.h of 13.0.85.

use std::ffi::CStr;

pub const DRIVER: u32 = 1;
pub const RUNTIME: u32 = 2;

/// A call: its domain, its number and its name.
pub type Call = (u32, u32, &'static CStr);

pub const CU_CTX_GET_DEVICE: Call = (DRIVER, 16, c"cuCtxGetDevice");
pub const CU_CTX_SYNCHRONIZE: Call = (DRIVER, 17, c"cuCtxSynchronize");
pub const CU_MODULE_LOAD_DATA: Call = (DRIVER, 19, c"cuModuleLoadData");
pub const CU_EVENT_RECORD: Call = (DRIVER, 119, c"cuEventRecord");
pub const CU_EVENT_QUERY: Call = (DRIVER, 120, c"cuEventQuery");
pub const CU_EVENT_SYNCHRONIZE: Call = (DRIVER, 121, c"cuEventSynchronize");
pub const CU_STREAM_CREATE: Call = (DRIVER, 124, c"cuStreamCreate");
pub const CU_STREAM_QUERY: Call = (DRIVER, 125, c"cuStreamQuery");
pub const CU_STREAM_SYNCHRONIZE: Call = (DRIVER, 126, c"cuStreamSynchronize");
pub const CU_MEMSET_D8_ASYNC: Call = (DRIVER, 216, c"cuMemsetD8Async");
pub const CU_MEM_ALLOC: Call = (DRIVER, 243, c"cuMemAlloc_v2");
pub const CU_MEM_FREE: Call = (DRIVER, 245, c"cuMemFree_v2");
pub const CU_MEMCPY_HTOD_ASYNC: Call = (DRIVER, 277, c"cuMemcpyHtoDAsync_v2");
pub const CU_MEMCPY_DTOH: Call = (DRIVER, 278, c"cuMemcpyDtoH_v2");
pub const CU_MEMCPY_DTOH_ASYNC: Call = (DRIVER, 279, c"cuMemcpyDtoHAsync_v2");
pub const CU_STREAM_WAIT_EVENT: Call = (DRIVER, 295, c"cuStreamWaitEvent");
pub const CU_CTX_GET_CURRENT: Call = (DRIVER, 304, c"cuCtxGetCurrent");
pub const CU_LAUNCH_KERNEL: Call = (DRIVER, 307, c"cuLaunchKernel");
pub const CU_MEMCPY_PEER_ASYNC: Call = (DRIVER, 319, c"cuMemcpyPeerAsync");
pub const CU_MEM_ALLOC_MANAGED: Call = (DRIVER, 371, c"cuMemAllocManaged");
pub const CU_GRAPH_LAUNCH: Call = (DRIVER, 514, c"cuGraphLaunch");
pub const CU_MEM_ALLOC_ASYNC: Call = (DRIVER, 598, c"cuMemAllocAsync");
pub const CU_MEM_FREE_ASYNC: Call = (DRIVER, 600, c"cuMemFreeAsync");
pub const CU_GRAPH_INSTANTIATE_WITH_FLAGS: Call = (DRIVER, 643, c"cuGraphInstantiateWithFlags");
pub const CU_MEM_BATCH_DECOMPRESS: Call = (DRIVER, 761, c"cuMemBatchDecompressAsync");
pub const CU_CTX_CREATE: Call = (DRIVER, 757, c"cuCtxCreate_v4");
pub const CUDA_GET_LAST_ERROR: Call = (RUNTIME, 10, c"cudaGetLastError_v3020");
pub const CUDA_GET_DEVICE: Call = (RUNTIME, 17, c"cudaGetDevice_v3020");
pub const CUDA_LAUNCH_KERNEL: Call = (RUNTIME, 211, c"cudaLaunchKernel_v7000");
pub const CU_EVENT_DESTROY: Call = (DRIVER, 325, c"cuEventDestroy_v2");
pub const CU_STREAM_SYNCHRONIZE_OWN: Call = (DRIVER, 440, c"cuStreamSynchronize_ptsz");
pub const CU_EVENT_RECORD_OWN: Call = (DRIVER, 441, c"cuEventRecord_ptsz");
pub const CU_STREAM_END_CAPTURE: Call = (DRIVER, 497, c"cuStreamEndCapture");
pub const CU_STREAM_BEGIN_CAPTURE: Call = (DRIVER, 539, c"cuStreamBeginCapture_v2");
pub const CU_EVENT_RECORD_WITH_FLAGS: Call = (DRIVER, 587, c"cuEventRecordWithFlags");
pub const CU_GRAPH_ADD_EVENT_RECORD_NODE: Call = (DRIVER, 589, c"cuGraphAddEventRecordNode");
pub const CUDA_STREAM_SYNCHRONIZE: Call = (RUNTIME, 131, c"cudaStreamSynchronize_v3020");
pub const CUDA_EVENT_RECORD: Call = (RUNTIME, 135, c"cudaEventRecord_v3020");
pub const CUDA_EVENT_DESTROY: Call = (RUNTIME, 136, c"cudaEventDestroy_v3020");
pub const CUDA_EVENT_SYNCHRONIZE: Call = (RUNTIME, 137, c"cudaEventSynchronize_v3020");
pub const CUDA_EVENT_QUERY: Call = (RUNTIME, 138, c"cudaEventQuery_v3020");
pub const CUDA_STREAM_WAIT_EVENT: Call = (RUNTIME, 147, c"cudaStreamWaitEvent_v3020");
pub const CUDA_DEVICE_SYNCHRONIZE: Call = (RUNTIME, 165, c"cudaDeviceSynchronize_v3020");
pub const CUDA_GRAPH_LAUNCH: Call = (RUNTIME, 311, c"cudaGraphLaunch_v10000");
pub const CU_STREAM_ADD_CALLBACK: Call = (DRIVER, 346, c"cuStreamAddCallback");
pub const CU_WAIT_EXTERNAL: Call = (DRIVER, 492, c"cuWaitExternalSemaphoresAsync");
pub const CU_GRAPH_EXEC_DESTROY: Call = (DRIVER, 516, c"cuGraphExecDestroy");
pub const CU_LAUNCH_HOST_FUNC: Call = (DRIVER, 527, c"cuLaunchHostFunc");
pub const CU_STREAM_WAIT_VALUE: Call = (DRIVER, 659, c"cuStreamWaitValue32_v2");
pub const CU_STREAM_BATCH_MEM_OP: Call = (DRIVER, 667, c"cuStreamBatchMemOp_v2");
pub const CU_MEM_PREFETCH: Call = (DRIVER, 716, c"cuMemPrefetchAsync_v2");
pub const CUDA_STREAM_ADD_CALLBACK: Call = (RUNTIME, 197, c"cudaStreamAddCallback_v5000");
pub const CUDA_LAUNCH_HOST_FUNC: Call = (RUNTIME, 284, c"cudaLaunchHostFunc_v10000");
pub const CUDA_WAIT_EXTERNAL: Call = (RUNTIME, 395, c"cudaWaitExternalSemaphoresAsync_v11020");
pub const CUDA_MEM_PREFETCH: Call = (RUNTIME, 449, c"cudaMemPrefetchAsync_v12020");
pub const CUDA_EVENT_RECORD_WITH_FLAGS: Call = (RUNTIME, 370, c"cudaEventRecordWithFlags_v11010");

const ALL: &[Call] = &[
    CU_CTX_GET_DEVICE,
    CU_CTX_SYNCHRONIZE,
    CU_MODULE_LOAD_DATA,
    CU_EVENT_RECORD,
    CU_EVENT_QUERY,
    CU_EVENT_SYNCHRONIZE,
    CU_STREAM_CREATE,
    CU_STREAM_QUERY,
    CU_STREAM_SYNCHRONIZE,
    CU_MEMSET_D8_ASYNC,
    CU_MEM_ALLOC,
    CU_MEM_FREE,
    CU_MEMCPY_HTOD_ASYNC,
    CU_MEMCPY_DTOH,
    CU_MEMCPY_DTOH_ASYNC,
    CU_STREAM_WAIT_EVENT,
    CU_CTX_GET_CURRENT,
    CU_LAUNCH_KERNEL,
    CU_MEMCPY_PEER_ASYNC,
    CU_MEM_ALLOC_MANAGED,
    CU_GRAPH_LAUNCH,
    CU_MEM_ALLOC_ASYNC,
    CU_MEM_FREE_ASYNC,
    CU_GRAPH_INSTANTIATE_WITH_FLAGS,
    CU_MEM_BATCH_DECOMPRESS,
    CU_CTX_CREATE,
    CUDA_GET_LAST_ERROR,
    CUDA_GET_DEVICE,
    CUDA_LAUNCH_KERNEL,
    CU_EVENT_DESTROY,
    CU_STREAM_SYNCHRONIZE_OWN,
    CU_EVENT_RECORD_OWN,
    CU_STREAM_END_CAPTURE,
    CU_STREAM_BEGIN_CAPTURE,
    CU_EVENT_RECORD_WITH_FLAGS,
    CU_GRAPH_ADD_EVENT_RECORD_NODE,
    CUDA_STREAM_SYNCHRONIZE,
    CUDA_EVENT_RECORD,
    CUDA_EVENT_DESTROY,
    CUDA_EVENT_SYNCHRONIZE,
    CUDA_EVENT_QUERY,
    CUDA_STREAM_WAIT_EVENT,
    CUDA_DEVICE_SYNCHRONIZE,
    CUDA_GRAPH_LAUNCH,
    CUDA_EVENT_RECORD_WITH_FLAGS,
    CU_STREAM_ADD_CALLBACK,
    CU_WAIT_EXTERNAL,
    CU_GRAPH_EXEC_DESTROY,
    CU_LAUNCH_HOST_FUNC,
    CU_STREAM_WAIT_VALUE,
    CU_STREAM_BATCH_MEM_OP,
    CU_MEM_PREFETCH,
    CUDA_STREAM_ADD_CALLBACK,
    CUDA_LAUNCH_HOST_FUNC,
    CUDA_WAIT_EXTERNAL,
    CUDA_MEM_PREFETCH,
];

/// Returns the name of a call, NUL-terminated.
pub fn name_of(domain: u32, call: u32) -> Option<&'static CStr> {
    ALL.iter()
        .find(|(d, c, _)| (*d, *c) == (domain, call))
        .map(|(_, _, name)| *name)
}
