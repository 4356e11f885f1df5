//! What functions of CUDA and HIP do, by the one table of CUDA's.

use gapscope_model::cuda::{FunctionClass, base_name};

/// What a function does; HIP's are named after CUDA's.
pub(super) fn class_of(name: &str) -> Option<FunctionClass> {
    let known = FunctionClass::of_function(name);
    known.or_else(|| of_hip(base_name(name.strip_prefix("hip")?).trim_end_matches("_spt")))
}

fn of_hip(rest: &str) -> Option<FunctionClass> {
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
            let of = |start: &str| FunctionClass::of_function(&format!("{start}{rest}"));
            return of("cuda").or_else(|| of("cu"));
        }
    };
    FunctionClass::of_function(same)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hip_is_taken_as_cuda() {
        for (name, class) in [
            ("hipLaunchKernel", FunctionClass::LaunchKernel),
            ("hipExtModuleLaunchKernel", FunctionClass::LaunchKernel),
            ("hipModuleLaunchKernel", FunctionClass::LaunchKernel),
            ("hipGraphLaunch", FunctionClass::LaunchGraph),
            ("hipMemcpyWithStream", FunctionClass::CopyAndWait),
            ("hipMemcpyAsync", FunctionClass::Transfer),
            ("hipMemcpyHtoD", FunctionClass::CopyAndWait),
            ("hipStreamSynchronize", FunctionClass::WaitStream),
            ("hipDeviceSynchronize", FunctionClass::WaitContext),
            ("hipEventQuery", FunctionClass::PollEvent),
            ("cudaLaunchKernel_v7000", FunctionClass::LaunchKernel),
        ] {
            assert_eq!(class_of(name), Some(class), "{name}");
        }
        assert_eq!(class_of("hipGetDevice"), None);
        assert_eq!(class_of("hsa_queue_create"), None);
    }
}
