//! Wraps Metal's objects and times their work. The code is type-checked, linted and linked for macOS; it has not run
//! on a Mac.

mod command_buffer;
mod counters;
mod device;
mod pass;

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
