//! The numbers and names of the calls that the stub has, as in cupti_runtime_cbid.h and cupti_driver_cbid.h of 13.0.85.

use std::ffi::CStr;

pub const DRIVER: u32 = 1;
pub const RUNTIME: u32 = 2;

/// A call: its domain, its number and its name.
pub type Call = (u32, u32, &'static CStr);

macro_rules! calls {
    ($($constant:ident $domain:ident $number:literal $name:literal,)+) => {
        $(pub const $constant: Call = ($domain, $number, $name);)+
        const ALL: &[Call] = &[$($constant,)+];
    };
}

calls! {
    CU_CTX_GET_DEVICE DRIVER 16 c"cuCtxGetDevice",
    CU_CTX_SYNCHRONIZE DRIVER 17 c"cuCtxSynchronize",
    CU_MODULE_LOAD_DATA DRIVER 19 c"cuModuleLoadData",
    CU_EVENT_RECORD DRIVER 119 c"cuEventRecord",
    CU_EVENT_QUERY DRIVER 120 c"cuEventQuery",
    CU_EVENT_SYNCHRONIZE DRIVER 121 c"cuEventSynchronize",
    CU_STREAM_CREATE DRIVER 124 c"cuStreamCreate",
    CU_STREAM_QUERY DRIVER 125 c"cuStreamQuery",
    CU_STREAM_SYNCHRONIZE DRIVER 126 c"cuStreamSynchronize",
    CU_MEMSET_D8_ASYNC DRIVER 216 c"cuMemsetD8Async",
    CU_MEM_ALLOC DRIVER 243 c"cuMemAlloc_v2",
    CU_MEM_FREE DRIVER 245 c"cuMemFree_v2",
    CU_MEMCPY_HTOD_ASYNC DRIVER 277 c"cuMemcpyHtoDAsync_v2",
    CU_MEMCPY_DTOH DRIVER 278 c"cuMemcpyDtoH_v2",
    CU_MEMCPY_DTOH_ASYNC DRIVER 279 c"cuMemcpyDtoHAsync_v2",
    CU_STREAM_WAIT_EVENT DRIVER 295 c"cuStreamWaitEvent",
    CU_CTX_GET_CURRENT DRIVER 304 c"cuCtxGetCurrent",
    CU_LAUNCH_KERNEL DRIVER 307 c"cuLaunchKernel",
    CU_MEMCPY_PEER_ASYNC DRIVER 319 c"cuMemcpyPeerAsync",
    CU_MEM_ALLOC_MANAGED DRIVER 371 c"cuMemAllocManaged",
    CU_GRAPH_LAUNCH DRIVER 514 c"cuGraphLaunch",
    CU_MEM_ALLOC_ASYNC DRIVER 598 c"cuMemAllocAsync",
    CU_MEM_FREE_ASYNC DRIVER 600 c"cuMemFreeAsync",
    CU_GRAPH_INSTANTIATE_WITH_FLAGS DRIVER 643 c"cuGraphInstantiateWithFlags",
    CU_MEM_BATCH_DECOMPRESS DRIVER 761 c"cuMemBatchDecompressAsync",
    CU_CTX_CREATE DRIVER 757 c"cuCtxCreate_v4",
    CU_MODULE_LOAD DRIVER 18 c"cuModuleLoad",
    CU_MODULE_LOAD_DATA_EX DRIVER 20 c"cuModuleLoadDataEx",
    CU_MODULE_LOAD_FAT_BINARY DRIVER 21 c"cuModuleLoadFatBinary",
    CU_MODULE_UNLOAD DRIVER 22 c"cuModuleUnload",
    CU_MEMSET_D16_ASYNC DRIVER 218 c"cuMemsetD16Async",
    CU_MEMSET_D32_ASYNC DRIVER 220 c"cuMemsetD32Async",
    CU_MEMSET_D8 DRIVER 249 c"cuMemsetD8_v2",
    CU_MEMSET_D16 DRIVER 250 c"cuMemsetD16_v2",
    CU_MEMSET_D32 DRIVER 251 c"cuMemsetD32_v2",
    CU_MEMCPY_HTOD DRIVER 276 c"cuMemcpyHtoD_v2",
    CU_MEMCPY_DTOD DRIVER 280 c"cuMemcpyDtoD_v2",
    CU_MEMCPY_DTOD_ASYNC DRIVER 281 c"cuMemcpyDtoDAsync_v2",
    CU_MEMCPY DRIVER 305 c"cuMemcpy",
    CU_MEMCPY_ASYNC DRIVER 306 c"cuMemcpyAsync",
    CU_LAUNCH_KERNEL_OWN DRIVER 442 c"cuLaunchKernel_ptsz",
    CU_LAUNCH_COOPERATIVE_KERNEL DRIVER 477 c"cuLaunchCooperativeKernel",
    CU_LAUNCH_COOPERATIVE_KERNEL_OWN DRIVER 478 c"cuLaunchCooperativeKernel_ptsz",
    CU_LAUNCH_KERNEL_EX DRIVER 652 c"cuLaunchKernelEx",
    CU_LAUNCH_KERNEL_EX_OWN DRIVER 653 c"cuLaunchKernelEx_ptsz",
    CU_GRAPH_INSTANTIATE_WITH_PARAMS DRIVER 656 c"cuGraphInstantiateWithParams",
    CU_LIBRARY_LOAD_DATA DRIVER 678 c"cuLibraryLoadData",
    CU_LIBRARY_LOAD_FROM_FILE DRIVER 679 c"cuLibraryLoadFromFile",
    CU_LIBRARY_UNLOAD DRIVER 680 c"cuLibraryUnload",
    CU_LIBRARY_GET_MODULE DRIVER 682 c"cuLibraryGetModule",
    CU_KERNEL_GET_FUNCTION DRIVER 683 c"cuKernelGetFunction",
    CU_LIBRARY_GET_GLOBAL DRIVER 684 c"cuLibraryGetGlobal",
    CUDA_GET_LAST_ERROR RUNTIME 10 c"cudaGetLastError_v3020",
    CUDA_GET_DEVICE RUNTIME 17 c"cudaGetDevice_v3020",
    CUDA_LAUNCH_KERNEL RUNTIME 211 c"cudaLaunchKernel_v7000",
    CU_EVENT_DESTROY DRIVER 325 c"cuEventDestroy_v2",
    CU_STREAM_SYNCHRONIZE_OWN DRIVER 440 c"cuStreamSynchronize_ptsz",
    CU_EVENT_RECORD_OWN DRIVER 441 c"cuEventRecord_ptsz",
    CU_STREAM_END_CAPTURE DRIVER 497 c"cuStreamEndCapture",
    CU_STREAM_BEGIN_CAPTURE DRIVER 539 c"cuStreamBeginCapture_v2",
    CU_EVENT_RECORD_WITH_FLAGS DRIVER 587 c"cuEventRecordWithFlags",
    CU_GRAPH_ADD_EVENT_RECORD_NODE DRIVER 589 c"cuGraphAddEventRecordNode",
    CUDA_STREAM_SYNCHRONIZE RUNTIME 131 c"cudaStreamSynchronize_v3020",
    CUDA_EVENT_RECORD RUNTIME 135 c"cudaEventRecord_v3020",
    CUDA_EVENT_DESTROY RUNTIME 136 c"cudaEventDestroy_v3020",
    CUDA_EVENT_SYNCHRONIZE RUNTIME 137 c"cudaEventSynchronize_v3020",
    CUDA_EVENT_QUERY RUNTIME 138 c"cudaEventQuery_v3020",
    CUDA_STREAM_WAIT_EVENT RUNTIME 147 c"cudaStreamWaitEvent_v3020",
    CUDA_DEVICE_SYNCHRONIZE RUNTIME 165 c"cudaDeviceSynchronize_v3020",
    CUDA_GRAPH_LAUNCH RUNTIME 311 c"cudaGraphLaunch_v10000",
    CU_STREAM_ADD_CALLBACK DRIVER 346 c"cuStreamAddCallback",
    CU_WAIT_EXTERNAL DRIVER 492 c"cuWaitExternalSemaphoresAsync",
    CU_GRAPH_EXEC_DESTROY DRIVER 516 c"cuGraphExecDestroy",
    CU_LAUNCH_HOST_FUNC DRIVER 527 c"cuLaunchHostFunc",
    CU_STREAM_WAIT_VALUE DRIVER 659 c"cuStreamWaitValue32_v2",
    CU_STREAM_BATCH_MEM_OP DRIVER 667 c"cuStreamBatchMemOp_v2",
    CU_MEM_PREFETCH DRIVER 716 c"cuMemPrefetchAsync_v2",
    CUDA_STREAM_ADD_CALLBACK RUNTIME 197 c"cudaStreamAddCallback_v5000",
    CUDA_LAUNCH_HOST_FUNC RUNTIME 284 c"cudaLaunchHostFunc_v10000",
    CUDA_WAIT_EXTERNAL RUNTIME 395 c"cudaWaitExternalSemaphoresAsync_v11020",
    CUDA_MEM_PREFETCH RUNTIME 449 c"cudaMemPrefetchAsync_v12020",
    CUDA_EVENT_RECORD_WITH_FLAGS RUNTIME 370 c"cudaEventRecordWithFlags_v11010",
}

/// Returns the name of a call, NUL-terminated.
pub fn name_of(domain: u32, call: u32) -> Option<&'static CStr> {
    ALL.iter()
        .find(|(d, c, _)| (*d, *c) == (domain, call))
        .map(|(_, _, name)| *name)
}
