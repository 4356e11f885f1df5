//! Wraps Metal's objects and times their work. The code is type-checked, linted and linked for macOS; it has not run
//! on a Mac.

mod capture;
mod command_buffer;
mod counters;
mod device;
mod pass;

pub use capture::AppleCaptureManager;
pub(crate) use capture::default_capture;
pub use command_buffer::CommandBuffer;
pub use device::{Device, Queue};
pub use pass::ComputePass;

/// An object that Metal did not create.
///
/// ```no_run
/// # use gapscope_sdk::metal::MetalError;
/// assert_eq!(MetalError::NoQueue.to_string(), "Metal gave no command queue");
/// ```
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum MetalError {
    /// Metal created no command queue.
    #[error("Metal gave no command queue")]
    NoQueue,
    /// Metal created no command buffer.
    #[error("Metal gave no command buffer")]
    NoCommandBuffer,
    /// Metal created no encoder.
    #[error("Metal gave no compute encoder")]
    NoEncoder,
    /// A library could not be compiled.
    #[error("the library `{name}` cannot be compiled: {reason}")]
    Library {
        /// The name of the library.
        name: String,
        /// The error of the compiler.
        reason: String,
    },
}

/// Returns the current time in nanoseconds of Mach's absolute clock, the base of all of Metal's times.
pub(crate) fn mach_now_ns() -> u64 {
    let mut now = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: the pointer is of a local that outlives the call. The clock is always there.
    unsafe { libc::clock_gettime(libc::CLOCK_UPTIME_RAW, &mut now) };
    crate::kernel_profile::nanoseconds(now.tv_sec, now.tv_nsec)
}
