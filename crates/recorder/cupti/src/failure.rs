//! Turns the results of the functions of CUPTI (NVIDIA's profiling library) into failures that say what CUPTI says.

use std::ffi::c_int;
use std::fmt;

/// The values of CUptiResult (cupti_result.h) that callers may want to tell apart.
pub mod code {
    use std::ffi::c_int;

    /// A parameter does not fit.
    pub const INVALID_PARAMETER: c_int = 1;
    /// There is not enough memory. Sampling gives this code also where samples were lost, because they were not fetched as fast
    /// as the hardware wrote them.
    pub const OUT_OF_MEMORY: c_int = 8;
    /// CUPTI could not be initialised; the host functions of its profiler say so where they do not find libnvperf_host.so.
    pub const NOT_INITIALIZED: c_int = 15;
    /// Another profiler uses the counters.
    pub const HARDWARE_BUSY: c_int = 26;
    /// The device or the driver does not support it.
    pub const NOT_SUPPORTED: c_int = 27;
    /// The device is a virtual GPU without profiling.
    pub const VIRTUALIZED_DEVICE_NOT_SUPPORTED: c_int = 33;
    /// The driver gives counters to administrators only.
    pub const INSUFFICIENT_PRIVILEGES: c_int = 35;
    /// The process uses CUPTI's older profiling interface (events and metrics), which excludes this one.
    pub const OLD_PROFILER_API_INITIALIZED: c_int = 36;
    /// The device is a virtual GPU whose profiling is switched off.
    pub const VIRTUALIZED_DEVICE_INSUFFICIENT_PRIVILEGES: c_int = 40;
    /// Confidential computing forbids it.
    pub const CONFIDENTIAL_COMPUTING_NOT_SUPPORTED: c_int = 41;
    /// The device is a part of a GPU.
    pub const MIG_DEVICE_NOT_SUPPORTED: c_int = 43;
    /// The system is the Windows Subsystem for Linux.
    pub const WSL_DEVICE_NOT_SUPPORTED: c_int = 45;
    /// This libcupti does not know the chip.
    pub const INVALID_CHIP_NAME: c_int = 46;
    /// An unknown error; among others, a metric that the chip or the device lacks.
    pub const UNKNOWN: c_int = 999;
}

/// A call that CUPTI refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Failure {
    /// The function's name.
    pub function: &'static str,
    /// Its result, a CUptiResult.
    pub code: c_int,
}

impl Failure {
    /// Returns CUPTI's name of the result, where it is one of [`code`] or another common one.
    pub fn name(&self) -> Option<&'static str> {
        Some(match self.code {
            code::INVALID_PARAMETER => "CUPTI_ERROR_INVALID_PARAMETER",
            2 => "CUPTI_ERROR_INVALID_DEVICE",
            3 => "CUPTI_ERROR_INVALID_CONTEXT",
            7 => "CUPTI_ERROR_INVALID_OPERATION",
            code::OUT_OF_MEMORY => "CUPTI_ERROR_OUT_OF_MEMORY",
            9 => "CUPTI_ERROR_HARDWARE",
            code::NOT_INITIALIZED => "CUPTI_ERROR_NOT_INITIALIZED",
            17 => "CUPTI_ERROR_INVALID_METRIC_NAME",
            code::HARDWARE_BUSY => "CUPTI_ERROR_HARDWARE_BUSY",
            code::NOT_SUPPORTED => "CUPTI_ERROR_NOT_SUPPORTED",
            code::VIRTUALIZED_DEVICE_NOT_SUPPORTED => {
                "CUPTI_ERROR_VIRTUALIZED_DEVICE_NOT_SUPPORTED"
            }
            code::INSUFFICIENT_PRIVILEGES => "CUPTI_ERROR_INSUFFICIENT_PRIVILEGES",
            code::OLD_PROFILER_API_INITIALIZED => "CUPTI_ERROR_OLD_PROFILER_API_INITIALIZED",
            code::VIRTUALIZED_DEVICE_INSUFFICIENT_PRIVILEGES => {
                "CUPTI_ERROR_VIRTUALIZED_DEVICE_INSUFFICIENT_PRIVILEGES"
            }
            code::CONFIDENTIAL_COMPUTING_NOT_SUPPORTED => {
                "CUPTI_ERROR_CONFIDENTIAL_COMPUTING_NOT_SUPPORTED"
            }
            code::MIG_DEVICE_NOT_SUPPORTED => "CUPTI_ERROR_MIG_DEVICE_NOT_SUPPORTED",
            code::WSL_DEVICE_NOT_SUPPORTED => "CUPTI_ERROR_WSL_DEVICE_NOT_SUPPORTED",
            code::INVALID_CHIP_NAME => "CUPTI_ERROR_INVALID_CHIP_NAME",
            code::UNKNOWN => "CUPTI_ERROR_UNKNOWN",
            _ => return None,
        })
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => write!(f, "{} says {name} ({})", self.function, self.code),
            None => write!(f, "{} says error {}", self.function, self.code),
        }
    }
}

impl std::error::Error for Failure {}
