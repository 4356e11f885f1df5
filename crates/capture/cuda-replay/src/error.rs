//! Defines [`Error`], the reasons why a capture of CUDA cannot be run.

use std::io;

/// Why a capture of CUDA cannot be run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The driver's library cannot be loaded, or lacks a function.
    #[error(
        "CUDA's driver cannot be used ({0}): a replay needs NVIDIA's driver for CUDA 12 or later"
    )]
    NoDriver(String),
    /// The driver has no GPU.
    #[error("CUDA's driver finds no GPU")]
    NoDevice,
    /// No GPU has the number or name that was asked for.
    #[error("no GPU is `{asked}`: there {there}")]
    NoSuchDevice {
        /// The number or name.
        asked: String,
        /// The GPUs that there are, as a part of the sentence.
        there: String,
    },
    /// The GPU has another architecture than the code.
    #[error(
        "nothing was run: the capture has code for compute capability {captured} ({captured_device}), and {device} has {here}"
    )]
    Architecture {
        /// The captured GPU's compute capability.
        captured: String,
        /// The captured GPU.
        captured_device: String,
        /// The GPU here.
        device: String,
        /// The compute capability of the GPU here.
        here: String,
    },
    /// A function of the driver failed.
    #[error("{call} failed with {code} {what}")]
    Call {
        /// The driver's function.
        call: &'static str,
        /// The name of the error.
        code: String,
        /// What the call was for, as a part of the sentence.
        what: String,
    },
    /// An address of the program is taken in this process.
    #[error(
        "the memory at {wanted:#x} ({bytes} bytes) cannot be at its address in this process: {reason}"
    )]
    Address {
        /// The recorded address.
        wanted: u64,
        /// Size.
        bytes: u64,
        /// The answer of the driver or of the system.
        reason: String,
    },
    /// A kernel does not end.
    #[error(
        "launch {launch} ({kernel}) did not end within {seconds} s: it may wait for another kernel"
    )]
    TimeLimit {
        /// Number of the launch in the capture.
        launch: u64,
        /// The kernel.
        kernel: String,
        /// The limit.
        seconds: u64,
    },
    /// A kernel failed.
    #[error("launch {launch} ({kernel}) failed with {code}")]
    Launch {
        /// Number of the launch in the capture.
        launch: u64,
        /// The kernel.
        kernel: String,
        /// The name of the error.
        code: String,
    },
    /// The capture has no launch of this number.
    #[error("there is no launch {asked}: the capture has {count}, and the first is 0")]
    NoSuchLaunch {
        /// The number.
        asked: u64,
        /// Number of launches.
        count: u64,
    },
    /// The capture has no launch.
    #[error("the capture has no launch")]
    Empty,
    /// Content is missing or damaged.
    #[error("the capture is damaged: {0}")]
    Content(io::Error),
    /// A file could not be read or written.
    #[error("{path}: {error}")]
    File {
        /// The file.
        path: String,
        /// The system's error.
        error: io::Error,
    },
    /// The options ask for something that cannot be done with this capture.
    #[error("{0}")]
    Unsupported(String),
}
