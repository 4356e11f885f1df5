//! What functions of runtimes do, by the one table of CUDA's functions.

use gapscope_model::cuda::{FunctionClass, base_name};
use std::borrow::Cow;

/// What a function does. HIP's are named after CUDA's, those of other runtimes are taken by what their names say.
pub(super) fn class_of(name: &str) -> FunctionClass {
    if let Some(class) = FunctionClass::of_function(name) {
        return class;
    }
    if let Some(rest) = name.strip_prefix("hip") {
        return class_of_hip(rest);
    }
    match name {
        "MTIA_launch"
        | "urEnqueueKernelLaunch"
        | "zeCommandListAppendLaunchKernel"
        | "urEnqueueKernelLaunchCustomExp"
        | "urEnqueueCooperativeKernelLaunchExp" => FunctionClass::LaunchKernel,
        "urEnqueueUSMMemcpy"
        | "urEnqueueUSMFill"
        | "zeCommandListAppendMemoryCopy"
        | "zeCommandListAppendMemoryFill" => FunctionClass::Transfer,
        "urQueueFinish" | "zeCommandQueueSynchronize" | "zeCommandListHostSynchronize" => {
            FunctionClass::WaitStream
        }
        "urEventWait" | "zeEventHostSynchronize" | "zeFenceHostSynchronize" => {
            FunctionClass::WaitEvent
        }
        _ => FunctionClass::Unknown,
    }
}

fn class_of_hip(rest: &str) -> FunctionClass {
    let rest = base_name(rest).trim_end_matches("_spt");
    let found = |name: Cow<str>| FunctionClass::of_function(&name);
    let same = match rest {
        "ExtModuleLaunchKernel" | "HccModuleLaunchKernel" | "ModuleLaunchKernel" => {
            "cuLaunchKernel"
        }
        "ModuleLaunchCooperativeKernel" => "cuLaunchCooperativeKernel",
        "ExtLaunchKernel" | "LaunchByPtr" | "LaunchKernel" | "ExtLaunchMultiKernelMultiDevice" => {
            "cudaLaunchKernel"
        }
        "MemcpyWithStream" => "cudaMemcpy",
        "ExtStreamCreateWithCUMask" => "cudaStreamCreateWithFlags",
        "ExtMallocWithFlags" => "cudaMalloc",
        "MemcpyHtoD" => "cuMemcpyHtoD",
        "MemcpyDtoH" => "cuMemcpyDtoH",
        "MemcpyDtoD" => "cuMemcpyDtoD",
        "MemcpyHtoDAsync" => "cuMemcpyHtoDAsync",
        "MemcpyDtoHAsync" => "cuMemcpyDtoHAsync",
        "MemcpyDtoDAsync" => "cuMemcpyDtoDAsync",
        other => {
            return found(Cow::Owned(format!("cuda{other}")))
                .or_else(|| found(Cow::Owned(format!("cu{other}"))))
                .unwrap_or(FunctionClass::Unknown);
        }
    };
    found(Cow::Borrowed(same)).unwrap_or(FunctionClass::Unknown)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hip_is_taken_as_cuda() {
        for (name, class) in [
            ("cudaLaunchKernel", FunctionClass::LaunchKernel),
            ("cuLaunchKernelEx", FunctionClass::LaunchKernel),
            ("hipLaunchKernel", FunctionClass::LaunchKernel),
            ("hipExtModuleLaunchKernel", FunctionClass::LaunchKernel),
            ("hipModuleLaunchKernel", FunctionClass::LaunchKernel),
            ("hipGraphLaunch", FunctionClass::LaunchGraph),
            ("hipMemcpyWithStream", FunctionClass::CopyAndWait),
            ("hipMemcpyAsync", FunctionClass::Transfer),
            ("hipMemsetAsync", FunctionClass::Transfer),
            ("hipStreamSynchronize", FunctionClass::WaitStream),
            ("hipDeviceSynchronize", FunctionClass::WaitContext),
            ("hipEventQuery", FunctionClass::PollEvent),
            ("hipMalloc", FunctionClass::AllocateMemory),
            ("hipModuleLoadData", FunctionClass::LoadModule),
            ("cudaGetDevice", FunctionClass::Unknown),
            ("nonsense", FunctionClass::Unknown),
        ] {
            assert_eq!(class_of(name), class, "{name}");
        }
    }
}
