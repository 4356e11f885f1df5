//! Why launches were not profiled, in sentences for the report.

use gapscope_cupti::{Failure, code};
use gapscope_spool::model::kernel_profile::Wanted;

pub fn communicates(kernel: &str) -> String {
    format!(
        "{kernel} was not profiled: by its name it communicates with other devices, and run again without them it would hang."
    )
}

pub fn captured(kernel: &str) -> String {
    format!(
        "Launches of {kernel} that are captured into a graph were not profiled, nor are kernels of graphs: only launches by themselves can be."
    )
}

pub fn unknown_launch(kernel: &str) -> String {
    format!("Launches of {kernel} by a function that gapscope does not know were not profiled.")
}

/// What became of a choice that was not met.
pub fn unmet(wanted: &Wanted, profiled: u32, seen: bool) -> String {
    let Wanted { name, launches } = wanted;
    match (profiled, seen) {
        (0, false) => format!(
            "--profile-kernel: no kernel whose name contains \"{name}\" was launched by itself in a process that launched others."
        ),
        (0, true) => format!(
            "--profile-kernel: no launch of a kernel whose name contains \"{name}\" could be profiled."
        ),
        _ => format!(
            "--profile-kernel: of {launches} launches of kernels whose name contains \"{name}\" there were {profiled}."
        ),
    }
}

/// What CUPTI's refusal means; a sentence without its full stop.
pub fn of(failure: Failure) -> String {
    let meaning = match failure.code {
        code::HARDWARE_BUSY => {
            "another profiler has the GPU's counters: end it, such as ncu, nsys, DCGM or a sampler of gapscope"
        }
        code::INSUFFICIENT_PRIVILEGES => {
            "the driver gives counters to administrators only: run as root, or load the driver with \
             NVreg_RestrictProfilingToAdminUsers=0"
        }
        code::VIRTUALIZED_DEVICE_NOT_SUPPORTED
        | code::VIRTUALIZED_DEVICE_INSUFFICIENT_PRIVILEGES => {
            "the virtual GPU has no profiling: its host has to allow it"
        }
        code::CONFIDENTIAL_COMPUTING_NOT_SUPPORTED => "confidential computing forbids it",
        code::MIG_DEVICE_NOT_SUPPORTED => "CUPTI does not profile parts of GPUs (MIG)",
        code::WSL_DEVICE_NOT_SUPPORTED => "the driver for WSL has no counters",
        code::NOT_INITIALIZED => {
            "libnvperf_host.so is missing beside libcupti; `pip install nvidia-cuda-cupti` has both"
        }
        code::NOT_SUPPORTED => "this libcupti or the GPU cannot do it; CUDA 12.6 or later can",
        code::OLD_PROFILER_API_INITIALIZED => {
            "an older profiler inside the program has the counters"
        }
        code::OUT_OF_MEMORY => "there is not enough memory to keep what the kernel writes",
        code::INVALID_CHIP_NAME => "this libcupti does not know the GPU: a newer one may",
        _ => return failure.to_string(),
    };
    format!("{meaning} ({failure})")
}
