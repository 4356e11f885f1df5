//! Returns the class, call kind and API of a function of a GPU API from its name, for all importers.
//!
//! [`gapscope_model::cuda`] has the table of CUDA's functions. HIP names its functions after them. The few functions
//! of oneAPI, MTIA and Vulkan that matter to a timeline are listed here.

use gapscope_model::cuda::{FunctionClass, base_name};
use gapscope_trace::manifest::Api;
use gapscope_trace::tables::HostCallKind;

/// Returns the class of a function of CUDA, HIP, oneAPI or MTIA; `None` for functions without a class and for other
/// names.
pub(crate) fn class_of(name: &str) -> Option<FunctionClass> {
    FunctionClass::from_function(name).or_else(|| match name.strip_prefix("hip") {
        Some(rest) => hip_class(base_name(rest).trim_end_matches("_spt")),
        None => other_class(name),
    })
}

/// Returns the class of a function of HIP from its name behind `hip`: that of CUDA's function of the same name or,
/// where names differ, of the one that does the same.
fn hip_class(rest: &str) -> Option<FunctionClass> {
    let same = match rest {
        "ExtModuleLaunchKernel"
        | "HccModuleLaunchKernel"
        | "ModuleLaunchKernel"
        | "DrvLaunchKernelEx" => "cuLaunchKernel",
        "ModuleLaunchCooperativeKernel" => "cuLaunchCooperativeKernel",
        "ExtLaunchKernel" | "LaunchByPtr" | "ExtLaunchMultiKernelMultiDevice" => "cudaLaunchKernel",
        "MemcpyWithStream" => "cudaMemcpy",
        "ExtStreamCreateWithCUMask" => "cudaStreamCreateWithFlags",
        "ExtMallocWithFlags" => "cudaMalloc",
        _ => {
            let of = |start: &str| FunctionClass::from_function(&format!("{start}{rest}"));
            return of("cuda").or_else(|| of("cu"));
        }
    };
    FunctionClass::from_function(same)
}

/// Returns the class of a function of oneAPI or MTIA.
fn other_class(name: &str) -> Option<FunctionClass> {
    Some(match name {
        "Node@launch"
        | "MTIA_launch"
        | "urEnqueueKernelLaunch"
        | "zeCommandListAppendLaunchKernel"
        | "urEnqueueKernelLaunchCustomExp"
        | "urEnqueueCooperativeKernelLaunchExp" => FunctionClass::LaunchKernel,
        "urEnqueueUSMMemcpy"
        | "urEnqueueUSMFill"
        | "zeCommandListAppendMemoryCopy"
        | "zeCommandListAppendMemoryFill" => FunctionClass::Transfer,
        "clEnqueueNDRangeKernel" => FunctionClass::LaunchKernel,
        "clFinish"
        | "AscendCL@aclrtSynchronizeStream"
        | "AscendCL@aclrtSynchronizeStreamWithTimeout" => FunctionClass::WaitStream,
        "AscendCL@aclrtSynchronizeDevice" | "AscendCL@aclrtSynchronizeDeviceWithTimeout" => {
            FunctionClass::WaitContext
        }
        "urQueueFinish" | "zeCommandQueueSynchronize" | "zeCommandListHostSynchronize" => {
            FunctionClass::WaitStream
        }
        "urEventWait" | "zeEventHostSynchronize" | "zeFenceHostSynchronize" => {
            FunctionClass::WaitEvent
        }
        _ => return None,
    })
}

/// Returns the kind of a call of CUDA, HIP, HSA, oneAPI, MTIA or Vulkan; `None` if the name is none of their functions.
/// Text behind the function's name, such as parameters, is ignored. A function of CUDA, HIP, HSA or Vulkan that is in no
/// table is [`HostCallKind::OtherCall`].
pub(crate) fn host_call_kind(name: &str) -> Option<HostCallKind> {
    let name = bare_name(name);
    if let Some(class) = class_of(name) {
        return Some(class.host_call_kind());
    }
    if let Some(rest) = after(name, "vk") {
        return Some(vulkan_call_kind(rest));
    }
    let is_call = api_of(name).is_some() || name.starts_with("hsa_") || name.starts_with("__hip");
    is_call.then_some(HostCallKind::OtherCall)
}

/// Returns the name of a function without the text behind it, such as parameters.
pub(crate) fn bare_name(name: &str) -> &str {
    let end = name.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_'));
    &name[..end.unwrap_or(name.len())]
}

/// Returns a kernel's name without what AMD's compiler adds to the name of the object that describes the kernel:
/// `.kd`, or ` [clone .kd]` in demangled names.
pub(crate) fn kernel_name(name: &str) -> &str {
    let bare = name.strip_suffix(" [clone .kd]");
    bare.or(name.strip_suffix(".kd")).unwrap_or(name)
}

/// Returns the API of the devices that a function of CUDA or HIP uses; `None` for other functions. Vulkan does not
/// count, because a process may call Vulkan beside CUDA or HIP.
pub(crate) fn api_of(name: &str) -> Option<Api> {
    let apis = [("cuda", Api::Cuda), ("hip", Api::Hip), ("cu", Api::Cuda)];
    let mut apis = apis.into_iter();
    apis.find_map(|(prefix, api)| after(name, prefix).map(|_| api))
}

/// Returns the kind of a function of Vulkan from its name behind `vk`.
fn vulkan_call_kind(rest: &str) -> HostCallKind {
    match rest {
        "QueueSubmit" | "QueueSubmit2" | "QueueSubmit2KHR" => HostCallKind::Launch,
        "WaitForFences" => HostCallKind::WaitFences,
        "WaitSemaphores" | "WaitSemaphoresKHR" => HostCallKind::WaitSemaphores,
        "QueueWaitIdle" => HostCallKind::WaitQueueIdle,
        "DeviceWaitIdle" => HostCallKind::WaitDeviceIdle,
        "GetFenceStatus" => HostCallKind::PollFence,
        "AllocateMemory" => HostCallKind::AllocateMemory,
        "FreeMemory" => HostCallKind::FreeMemory,
        "MapMemory" => HostCallKind::MapMemory,
        "QueuePresentKHR" => HostCallKind::Present,
        "AcquireNextImageKHR" => HostCallKind::AcquireImage,
        "CreateShaderModule" => HostCallKind::CreateShaderModule,
        "CreateComputePipelines" | "CreateGraphicsPipelines" => HostCallKind::CreatePipelines,
        _ => HostCallKind::OtherCall,
    }
}

/// Returns the part of a name behind a prefix, and an underscore if there is one, if that part starts with a capital
/// letter, as in the names of functions.
fn after<'a>(function: &'a str, prefix: &str) -> Option<&'a str> {
    let rest = function.strip_prefix(prefix)?;
    let rest = rest.strip_prefix('_').unwrap_or(rest);
    rest.starts_with(|c: char| c.is_ascii_uppercase())
        .then_some(rest)
}

#[cfg(test)]
mod tests {
    use super::*;

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
        for name in [
            "cudaGetDevice",
            "hipGetDevice",
            "hsa_queue_create",
            "nonsense",
        ] {
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
}
