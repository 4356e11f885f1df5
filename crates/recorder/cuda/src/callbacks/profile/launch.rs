//! Classifies a launch for profiling: whether it runs a kernel now, becomes part of a graph, or cannot be told.

use crate::callbacks::data::CallbackData;
use crate::callbacks::target::is_capturing;
use crate::streams::StreamHandle;
use gapscope_spool::model::cuda::base_name;

/// The kind of a launch, on which depends whether it can be profiled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LaunchKind {
    /// The launch runs a kernel now.
    Kernel,
    /// The launch becomes part of a graph.
    Captured,
    /// The launch's stream is not known, or the launch is on several devices.
    Unknown,
}

/// The stream's place, in words, in cuLaunchKernel_params and cuLaunchCooperativeKernel_params: behind the function and seven numbers
/// of 32 bits.
const STREAM: usize = 5;
/// The stream's place in CUlaunchConfig, to which cuLaunchKernelEx_params points: behind seven numbers of 32 bits.
const STREAM_OF_CONFIG: usize = 4;

impl LaunchKind {
    /// Returns the kind of a launch by the driver's function `function`. `per_thread` says that its default stream
    /// is the thread's own.
    ///
    /// # Safety
    /// The data is CUPTI's, at the start of this call of the driver.
    pub unsafe fn classify(data: &CallbackData, function: &str, per_thread: bool) -> LaunchKind {
        // SAFETY: as the caller promises: these calls have these parameters (generated_cuda_meta.h), and the driver reads the same.
        let stream = unsafe {
            match base_name(function) {
                "cuLaunchKernel" | "cuLaunchCooperativeKernel" => data.parameter(STREAM),
                "cuLaunchKernelEx" => {
                    let config = data.parameter(0) as *const usize;
                    if config.is_null() {
                        return LaunchKind::Unknown;
                    }
                    config.add(STREAM_OF_CONFIG).read_unaligned()
                }
                _ => return LaunchKind::Unknown,
            }
        };
        match is_capturing(StreamHandle::new(stream, per_thread)) {
            Some(false) => LaunchKind::Kernel,
            Some(true) => LaunchKind::Captured,
            None => LaunchKind::Unknown,
        }
    }
}
