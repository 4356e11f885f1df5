//! Explains the codes by which CUPTI refuses to profile or to sample, and says what the user can do.

use gapscope_cupti::{Failure, code};

/// Explains a refusal without a full stop; `otherwise` is the meaning of one that depends on the request.
pub fn explain(failure: Failure, otherwise: Option<&'static str>) -> String {
    match meaning(failure).or(otherwise) {
        Some(meaning) => format!("{meaning} ({failure})"),
        None => failure.to_string(),
    }
}

/// Returns the meaning and what to do about it; `None` for a refusal that depends on the request.
fn meaning(failure: Failure) -> Option<&'static str> {
    Some(match failure.code {
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
        code::OLD_PROFILER_API_INITIALIZED => {
            "an older profiler inside the program has the counters"
        }
        _ => return None,
    })
}
