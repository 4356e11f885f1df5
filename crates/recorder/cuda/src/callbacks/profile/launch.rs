//! What kind of launch a call is.

use crate::callbacks::data::CallbackData;
use crate::callbacks::target::is_capturing;
use crate::streams::Handle;
use gapscope_spool::model::cuda::base_name;

/// A launch, as far as profiling is concerned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Launch {
    /// It launches a kernel now.
    Kernel,
    /// It becomes part of a graph.
    Captured,
    /// On which stream is not known, or it is on several devices.
    Unknown,
}

/// Where the stream is in cuLaunchKernel_params and cuLaunchCooperativeKernel_params: behind the function and seven numbers of 32
/// bits, in words.
const STREAM: usize = 5;
/// Where it is in CUlaunchConfig, which cuLaunchKernelEx_params points to: behind seven numbers of 32 bits.
const STREAM_OF_CONFIG: usize = 4;

impl Launch {
    /// # Safety
    /// The data is CUPTI's, at the start of this call of the driver.
    pub unsafe fn of(data: &CallbackData, function: &str, per_thread: bool) -> Launch {
        // SAFETY: as the caller promises: these calls have these parameters (generated_cuda_meta.h), and the driver reads the same.
        let stream = unsafe {
            match base_name(function) {
                "cuLaunchKernel" | "cuLaunchCooperativeKernel" => data.parameter(STREAM),
                "cuLaunchKernelEx" => {
                    let config = data.parameter(0) as *const usize;
                    if config.is_null() {
                        return Launch::Unknown;
                    }
                    config.add(STREAM_OF_CONFIG).read_unaligned()
                }
                _ => return Launch::Unknown,
            }
        };
        match is_capturing(Handle::new(stream, per_thread)) {
            Some(false) => Launch::Kernel,
            Some(true) => Launch::Captured,
            None => Launch::Unknown,
        }
    }
}
