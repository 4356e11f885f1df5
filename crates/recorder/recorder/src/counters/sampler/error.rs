//! Defines the errors of sampling hardware counters (quantities that a GPU counts) with libcupti, NVIDIA's profiling
//! library (CUPTI), with advice for the user who can change that.

use gapscope_cupti::{Failure, code};
use std::path::{Path, PathBuf};

/// The reason why hardware counters cannot be sampled, as a sentence without its full stop.
#[derive(Debug, Clone, thiserror::Error)]
pub enum SamplerError {
    /// No session is at the other end of stdin.
    #[error("only `gapscope record --counters` starts this, with a socket as stdin")]
    NoSession,
    /// The CUDA driver cannot be used, for this reason.
    #[error("{0}")]
    Driver(String),
    /// CUDA has no device.
    #[error("CUDA has no GPU")]
    NoGpu,
    /// CUDA has no device with the UUID of the GPU.
    #[error(
        "CUDA has no whole GPU with its UUID: parts of GPUs (MIG) have no counters of their own"
    )]
    NoWholeGpu,
    /// No libcupti was found.
    #[error(
        "libcupti was found neither in the Python packages of the program nor in a CUDA toolkit: install it (`pip install \
         nvidia-cuda-cupti`), or name its file in {}",
        gapscope_spool::env::CUPTI
    )]
    NoCupti,
    /// A libcupti lacks what sampling needs, for this reason.
    #[error("{0}")]
    UnusableCupti(String),
    /// CUPTI does not accept the clock of the trace.
    #[error("{0}")]
    Clock(Failure),
    /// The libcupti of this file refused a call.
    #[error("{}", sentence(.0, .1))]
    Cupti(Failure, PathBuf),
    /// CUPTI has no counters for the chip of this name.
    #[error("CUPTI knows no counters of the chip {0}")]
    UnknownChip(String),
    /// CUPTI has none of the counters that were asked for, for the chip of this name.
    #[error("CUPTI knows none of these counters of its chip {0}")]
    NoCounters(String),
}

/// Returns the meaning of a refusal by the libcupti `file`, without a full stop.
fn sentence(failure: &Failure, file: &Path) -> String {
    let words = match failure.code {
        code::HARDWARE_BUSY => {
            "another profiler has the counters of this GPU: end it (nsys, ncu, a second gapscope), or have an administrator pause \
             DCGM with `dcgmi profile --pause`"
        }
        code::INSUFFICIENT_PRIVILEGES => {
            "the driver gives counters to administrators only: have one write `options nvidia \
             NVreg_RestrictProfilingToAdminUsers=0` into a file of /etc/modprobe.d and load the driver again, or record as root (a \
             container needs `--cap-add SYS_ADMIN`)"
        }
        code::VIRTUALIZED_DEVICE_INSUFFICIENT_PRIVILEGES => {
            "profiling is switched off for this virtual GPU: have an administrator of the host switch it on \
             (`pciPassthru0.cfg.enable_profiling` and its like)"
        }
        code::VIRTUALIZED_DEVICE_NOT_SUPPORTED => {
            "this virtual GPU has no counters: they need a GPU that the host passes through"
        }
        code::CONFIDENTIAL_COMPUTING_NOT_SUPPORTED => {
            "confidential computing keeps counters secret: it would have to be switched off"
        }
        code::MIG_DEVICE_NOT_SUPPORTED => {
            "a part of a GPU (MIG) has no counters of its own here: have an administrator switch MIG off with `nvidia-smi -mig 0`"
        }
        code::WSL_DEVICE_NOT_SUPPORTED => "the Linux of Windows (WSL) gives no counters to sample",
        code::INVALID_CHIP_NAME => {
            "this libcupti does not know the GPU's chip: install a newer one (`pip install -U nvidia-cuda-cupti`)"
        }
        code::NOT_SUPPORTED => {
            "this GPU, its driver or this libcupti cannot sample at times: Ampere GA10x or newer and CUDA 12.6 or newer can"
        }
        code::NOT_INITIALIZED if failure.function.starts_with("cuptiProfilerHost") => {
            "libnvperf_host.so is not beside libcupti: install the whole package (`pip install nvidia-cuda-cupti`), or put the \
             toolkit's extras/CUPTI/lib64 into LD_LIBRARY_PATH"
        }
        code::OLD_PROFILER_API_INITIALIZED => "an older profiler has the counters: end it",
        _ => return format!("{failure}, with {}", file.display()),
    };
    format!("{words} ({failure}, with {})", file.display())
}
