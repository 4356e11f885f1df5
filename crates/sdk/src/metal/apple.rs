//! What talks to Metal. Type-checked, linted and linked for macOS; it has not run on a Mac.

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

/// What Metal did not give.
///
/// ```no_run
/// # use gapscope_sdk::metal::MetalError;
/// assert_eq!(MetalError::NoQueue.to_string(), "Metal gave no command queue");
/// ```
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum MetalError {
    /// No command queue.
    #[error("Metal gave no command queue")]
    NoQueue,
    /// No command buffer.
    #[error("Metal gave no command buffer")]
    NoCommandBuffer,
    /// No encoder.
    #[error("Metal gave no compute encoder")]
    NoEncoder,
    /// A library that cannot be compiled.
    #[error("the library `{name}` cannot be compiled: {reason}")]
    Library {
        /// Its name.
        name: String,
        /// What the compiler said.
        reason: String,
    },
}

/// Now, in nanoseconds of Mach's absolute clock, the base of all of Metal's times.
pub(crate) fn mach_now_ns() -> u64 {
    let mut now = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: the pointer is of a local that outlives the call. The clock is always there.
    unsafe { libc::clock_gettime(libc::CLOCK_UPTIME_RAW, &mut now) };
    crate::kernel_profile::nanoseconds(now.tv_sec, now.tv_nsec)
}
