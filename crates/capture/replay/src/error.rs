//! Defines [`Error`], the reasons why a capture cannot be run.

use std::io;

use ash::vk;

/// Why a capture cannot be run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Vulkan's loader cannot be loaded.
    #[error("the Vulkan loader could not be loaded ({0}): install it and a driver")]
    NoLoader(String),
    /// There is no usable device.
    #[error("no Vulkan device of version 1.3 that computes was found{0}")]
    NoDevice(String),
    /// No device has the number or name that was asked for.
    #[error("no device is `{asked}`: there {there}")]
    NoSuchDevice {
        /// The number or name.
        asked: String,
        /// The devices that there are, as a part of the sentence.
        there: String,
    },
    /// The capture has no dispatch of this number.
    #[error("there is no dispatch {asked}: the capture has {count}, and the first is 0")]
    NoSuchDispatch {
        /// The number.
        asked: u64,
        /// Number of dispatches.
        count: u64,
    },
    /// The capture has no buffer of this name or number.
    #[error("the capture has no buffer `{0}`")]
    NoSuchBuffer(String),
    /// The device lacks something, or a kernel is invalid.
    #[error("nothing was run: {}", sentences(.0))]
    Unfit(Vec<Unfit>),
    /// Content is missing or damaged.
    #[error("the capture is damaged: {0}")]
    Content(io::Error),
    /// The device has too little memory.
    #[error("the device has no memory for the {bytes} bytes that the capture touches")]
    Memory {
        /// Bytes that the capture touches.
        bytes: u64,
    },
    /// The device's queue writes no timestamps.
    #[error("{0} has no timestamps")]
    NoTimestamps(String),
    /// The device was lost.
    #[error("the device was lost while {0}")]
    DeviceLost(&'static str),
    /// The driver refused a call.
    #[error("the driver could not {call}: {result}")]
    Vulkan {
        /// The purpose of the call, as a part of the sentence.
        call: &'static str,
        /// The driver's answer.
        result: vk::Result,
    },
    /// A file could not be written.
    #[error("{path} cannot be written: {error}")]
    Write {
        /// The file.
        path: String,
        /// The system's error.
        error: io::Error,
    },
    /// The trace could not be written.
    #[error(transparent)]
    Trace(#[from] gapscope_trace::Error),
    /// The options ask for something that cannot be done with this capture.
    #[error("{0}")]
    Unsupported(String),
}

/// Why a kernel cannot or must not run on a device.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, serde::Serialize, schemars::JsonSchema)]
pub struct Unfit {
    /// The kernel; none: the reason is one of the whole capture.
    pub kernel: Option<String>,
    /// The reason, such as `the device lacks shaderFloat16`.
    pub reason: String,
}

impl Error {
    /// Returns a function that makes an error from the result of a call.
    pub(crate) fn from_call(call: &'static str) -> impl Fn(vk::Result) -> Error {
        move |result| match result {
            vk::Result::ERROR_DEVICE_LOST => Error::DeviceLost(call),
            result => Error::Vulkan { call, result },
        }
    }
}

/// The most reasons that the sentence of [`Error::Unfit`] names; the JSON has all.
const MAX_SENTENCES: usize = 8;

/// Joins the reasons, the first of them only if there are many.
fn sentences(all: &[Unfit]) -> String {
    let each = all
        .iter()
        .take(MAX_SENTENCES)
        .map(|unfit| match &unfit.kernel {
            Some(kernel) => format!("kernel {kernel}: {}", unfit.reason),
            None => unfit.reason.clone(),
        });
    let mut text = each.collect::<Vec<_>>().join("; ");
    if let Some(more) = all.len().checked_sub(MAX_SENTENCES + 1) {
        text.push_str(&format!("; and {} more", more + 1));
    }
    text
}
