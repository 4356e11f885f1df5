//! Tests the classes of functions by their names: each function that may matter has one, and similar names have none.

use super::*;
use std::collections::BTreeSet;

/// Returns the functions of the APIs besides CUDA and Vulkan, each with true where it needs no class.
fn decisions() -> impl Iterator<Item = (&'static str, bool)> {
    let lines = include_str!("names.txt").lines();
    let lines = lines.filter(|line| !line.starts_with('#'));
    lines.map(|line| match line.strip_suffix(" none") {
        Some(name) => (name, true),
        None => (line, false),
    })
}

#[test]
fn each_function_that_may_matter_has_a_class_or_a_decision_that_it_has_none() {
    for (name, has_none) in decisions() {
        assert_eq!(class_of(name).is_none(), has_none, "{name}");
    }
    let listed: BTreeSet<&str> = decisions().map(|(name, _)| name).collect();
    for (name, _) in tables::OTHERS {
        assert!(listed.contains(name), "names.txt lacks {name}");
    }
    for (name, same) in tables::HIP {
        let name = format!("hip{name}");
        assert_eq!(
            class_of(&name),
            FunctionClass::from_function(same),
            "{name}"
        );
        assert!(class_of(&name).is_some(), "{name}");
    }
}

#[test]
fn the_tables_are_in_order() {
    assert!(tables::HIP.is_sorted_by(|a, b| a.0 < b.0));
    assert!(tables::OTHERS.is_sorted_by(|a, b| a.0 < b.0));
    assert!(tables::VULKAN.is_sorted_by(|a, b| a.0 < b.0));
}

/// What calls do, by API: CUDA's driver and runtime, HIP, Level Zero, Unified Runtime, OpenCL, HSA, Vulkan.
#[test]
fn what_a_call_does_has_one_kind_in_every_api() {
    use HostCallKind::*;
    for (kind, names) in [
        (
            AllocateMemory,
            "cuMemAlloc_v2 cudaMalloc cudaHostAlloc cudaMallocAsync cudaHostRegister hipMalloc hipHostMalloc hipMallocManaged \
             hipExtMallocWithFlags zeMemAllocDevice zeMemAllocShared urUSMDeviceAlloc clCreateBuffer clSVMAlloc \
             hsa_amd_memory_pool_allocate vkAllocateMemory",
        ),
        (
            FreeMemory,
            "cuMemFree_v2 cudaFree cudaFreeHost cudaFreeAsync hipFree hipHostFree zeMemFree urUSMFree clReleaseMemObject \
             clSVMFree hsa_amd_memory_pool_free vkFreeMemory",
        ),
        (
            LoadModule,
            "cuModuleLoadData cuLibraryLoadData cuModuleUnload hipModuleLoadData hiprtcCompileProgram nvrtcCompileProgram \
             zeModuleCreate zeModuleDynamicLink zeKernelCreate urProgramBuild urProgramCreateWithIL clBuildProgram \
             hsa_executable_freeze",
        ),
        (
            CreatePipelines,
            "vkCreateComputePipelines vkCreateRayTracingPipelinesKHR vkCreateShadersEXT",
        ),
        (
            Launch,
            "cuLaunchKernel cudaLaunchKernel cudaGraphLaunch hipLaunchKernel hipModuleLaunchKernel \
             zeCommandListAppendLaunchKernel zeCommandListAppendLaunchCooperativeKernel urEnqueueKernelLaunch \
             clEnqueueNDRangeKernel vkQueueSubmit vkQueueSubmit2 cudaMemcpyAsync hipMemcpyParam2DAsync \
             zeCommandListAppendMemoryCopy urEnqueueUSMMemcpy2D clEnqueueReadBuffer cudaMemset",
        ),
        (
            CopyAndWait,
            "cuMemcpyDtoH_v2 cudaMemcpy hipMemcpy hipMemcpyWithStream hipDrvMemcpy3D",
        ),
        (
            WaitQueueIdle,
            "cuStreamSynchronize cudaStreamSynchronize hipStreamSynchronize zeCommandQueueSynchronize urQueueFinish clFinish \
             vkQueueWaitIdle",
        ),
        (
            WaitDeviceIdle,
            "cuCtxSynchronize cudaDeviceSynchronize hipDeviceSynchronize zeDeviceSynchronize vkDeviceWaitIdle",
        ),
        (
            WaitEvent,
            "cuEventSynchronize cudaEventSynchronize hipEventSynchronize zeEventHostSynchronize urEventWait clWaitForEvents \
             hsa_signal_wait_scacquire",
        ),
        (WaitFences, "vkWaitForFences"),
        (WaitSemaphores, "vkWaitSemaphoresKHR"),
        (
            PollEvent,
            "cuEventQuery cudaStreamQuery hipEventQuery zeEventQueryStatus zeFenceQueryStatus urEventGetInfo clGetEventInfo \
             vkGetEventStatus",
        ),
        (PollFence, "vkGetFenceStatus"),
        (PollSemaphore, "vkGetSemaphoreCounterValue"),
        (GetQueryResults, "vkGetQueryPoolResults"),
        (AcquireImage, "vkAcquireNextImage2KHR"),
        (WaitPresent, "vkWaitForPresentKHR"),
        (
            OtherCall,
            "zeCommandQueueExecuteCommandLists clFlush hsa_amd_memory_async_copy zeDeviceGetProperties vkCreateBuffer",
        ),
    ] {
        for name in names.split_whitespace() {
            assert_eq!(host_call_kind(name), Some(kind), "{name}");
        }
    }
}

#[test]
fn hip_is_taken_as_cuda() {
    for (name, class) in [
        ("cudaLaunchKernel", FunctionClass::LaunchKernel),
        ("cudaLaunchKernel_v7000", FunctionClass::LaunchKernel),
        ("cuLaunchKernelEx", FunctionClass::LaunchKernel),
        ("hipLaunchKernel", FunctionClass::LaunchKernel),
        ("hipExtModuleLaunchKernel", FunctionClass::LaunchKernel),
        ("hipModuleLaunchKernel", FunctionClass::LaunchKernel),
        ("hipDrvLaunchKernelEx", FunctionClass::LaunchKernel),
        ("hipGraphLaunch", FunctionClass::LaunchGraph),
        ("hipMemcpyWithStream", FunctionClass::CopyAndWait),
        ("hipMemcpyAsync_spt", FunctionClass::Transfer),
        ("hipMemcpyHtoD", FunctionClass::CopyAndWait),
        ("hipMemcpyHtoDAsync", FunctionClass::Transfer),
        ("hipMemsetAsync", FunctionClass::Transfer),
        ("hipStreamSynchronize", FunctionClass::WaitStream),
        ("hipDeviceSynchronize", FunctionClass::WaitContext),
        ("hipEventQuery", FunctionClass::PollEvent),
        ("hipMalloc", FunctionClass::AllocateMemory),
        ("hipModuleLoadData", FunctionClass::LoadModule),
        ("urQueueFinish", FunctionClass::WaitStream),
    ] {
        assert_eq!(class_of(name), Some(class), "{name}");
    }
    for name in ["cudaGetDevice", "hipGetDevice", "nonsense"] {
        assert_eq!(class_of(name), None, "{name}");
    }
}

#[test]
fn the_api_is_told_by_the_start_of_a_name() {
    for (name, api) in [
        ("cudaGetDevice", Some(Api::Cuda)),
        ("cuInit", Some(Api::Cuda)),
        ("hipGetDevice", Some(Api::Hip)),
        ("vkQueueSubmit", None),
        ("hipster", None),
        ("cublasCreate", None),
    ] {
        assert_eq!(api_of(name), api, "{name}");
    }
}

#[test]
fn calls_are_known_by_their_names() {
    for (name, kind) in [
        ("cudaLaunchKernel", HostCallKind::Launch),
        ("hipModuleLaunchKernel", HostCallKind::Launch),
        ("cuLaunchKernelEx", HostCallKind::Launch),
        ("cudaGraphLaunch", HostCallKind::Launch),
        ("hipMemcpyAsync", HostCallKind::Launch),
        ("cudaMemset(1, 2)", HostCallKind::Launch),
        ("vkQueueSubmit", HostCallKind::Launch),
        ("urEnqueueKernelLaunch", HostCallKind::Launch),
        ("cudaMemcpy", HostCallKind::CopyAndWait),
        ("cuStreamSynchronize", HostCallKind::WaitQueueIdle),
        ("hipDeviceSynchronize", HostCallKind::WaitDeviceIdle),
        ("cudaFreeAsync", HostCallKind::FreeMemory),
        ("hipMalloc", HostCallKind::AllocateMemory),
        ("vkWaitForFences", HostCallKind::WaitFences),
        ("cudaStreamBeginCapture", HostCallKind::BuildGraph),
        ("cudaLaunchHostFunc", HostCallKind::OtherCall),
        ("cudaGetDevice", HostCallKind::OtherCall),
        ("hsa_queue_create", HostCallKind::OtherCall),
        ("__hipPushCallConfiguration", HostCallKind::OtherCall),
    ] {
        assert_eq!(host_call_kind(name), Some(kind), "{name}");
    }
    for name in ["cumsum", "custom", "aten::copy_", "hipster"] {
        assert_eq!(host_call_kind(name), None, "{name}");
    }
}
