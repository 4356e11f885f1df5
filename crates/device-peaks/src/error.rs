//! Defines [`Error`], the reasons why a device, or one of its figures, cannot be measured.

use std::ffi::{NulError, c_int};

/// Why a device, or one figure of it, cannot be measured. The text is the end of a sentence.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A call of Vulkan failed, or there is no device.
    #[error(transparent)]
    Vulkan(#[from] gapscope_replay::Error),
    /// A library cannot be loaded, or lacks a function.
    #[error("{0}")]
    Library(#[from] libloading::Error),
    /// No libcublas can be loaded.
    #[error(
        "libcublas cannot be loaded, which comes with CUDA's toolkit and PyTorch ({})",
        .0.as_ref().map(ToString::to_string).unwrap_or_default()
    )]
    NoCublas(Option<libloading::Error>),
    /// A text for CUDA has a zero byte in it.
    #[error(transparent)]
    Text(#[from] NulError),
    /// CUDA or cuBLAS refused a call.
    #[error("{call} says {code}")]
    Call {
        /// The function.
        call: &'static str,
        /// Its answer.
        code: c_int,
    },
    /// CUDA refused a module.
    #[error("cuModuleLoadDataEx says {code}: {line}")]
    Module {
        /// The answer.
        code: c_int,
        /// The first line of the log.
        line: String,
    },
    /// The device measured a time of 0 or less.
    #[error("the device says that it took {0} ns")]
    Time(f64),
    /// The memory is too small for the buffers.
    #[error("it has too little memory")]
    Memory,
    /// Too little memory is free for the buffers.
    #[error("it has too little free memory")]
    FreeMemory,
    /// All figures are unknown, for these reasons.
    #[error("{}", .0.join(" "))]
    NoFigures(Vec<String>),
}
