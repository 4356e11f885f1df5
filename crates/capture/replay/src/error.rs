//! Why a capture cannot be run.

use std::io;

use ash::vk;

/// Why a capture cannot be run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// There is no Vulkan.
    #[error("the Vulkan loader could not be loaded ({0}): install it and a driver")]
    NoLoader(String),
    /// There is no driver that can be used.
    #[error("no Vulkan device of version 1.3 that computes was found{0}")]
    NoDevice(String),
    /// None is the one that was asked for.
    #[error("no device is `{asked}`: there {there}")]
    NoSuchDevice {
        /// The number or name.
        asked: String,
        /// Those that are there, as a part of the sentence.
        there: String,
    },
    /// The capture names no such dispatch.
    #[error("there is no dispatch {asked}: the capture has {count}, and the first is 0")]
    NoSuchDispatch {
        /// What was asked for.
        asked: u64,
        /// How many there are.
        count: u64,
    },
    /// The capture names no such buffer.
    #[error("the capture has no buffer `{0}`")]
    NoSuchBuffer(String),
    /// The device lacks something, or a kernel is not what a replay can run.
    #[error("nothing was run: {}", sentences(.0))]
    Unfit(Vec<Unfit>),
    /// Content is missing or damaged.
    #[error("the capture is damaged: {0}")]
    Content(io::Error),
    /// There is not enough memory.
    #[error("the device has no memory for the {bytes} bytes that the capture touches")]
    Memory {
        /// How many.
        bytes: u64,
    },
    /// The device's queue writes no timestamps.
    #[error("{0} has no timestamps")]
    NoTimestamps(String),
    /// The device was lost.
    #[error("the device was lost while {0}")]
    DeviceLost(&'static str),
    /// The driver refused.
    #[error("the driver could not {call}: {result}")]
    Vulkan {
        /// What was asked of it.
        call: &'static str,
        /// Its answer.
        result: vk::Result,
    },
    /// A file could not be written.
    #[error("{path} cannot be written: {error}")]
    Write {
        /// The file.
        path: String,
        /// What the system says.
        error: io::Error,
    },
    /// The trace could not be written.
    #[error(transparent)]
    Trace(#[from] gapscope_trace::Error),
    /// What was asked for cannot be done with this capture.
    #[error("{0}")]
    Asked(String),
}

/// Why a kernel cannot run on a device, or must not.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, serde::Serialize, schemars::JsonSchema)]
pub struct Unfit {
    /// The kernel; none: all of the capture.
    pub kernel: Option<String>,
    /// What is missing: `the device lacks shaderFloat16`.
    pub reason: String,
}

impl Error {
    /// Of a call of Vulkan.
    pub(crate) fn of(call: &'static str) -> impl Fn(vk::Result) -> Error {
        move |result| match result {
            vk::Result::ERROR_DEVICE_LOST => Error::DeviceLost(call),
            result => Error::Vulkan { call, result },
        }
    }
}

/// A sentence with more is not read; JSON has all.
const MOST_SENTENCES: usize = 8;

fn sentences(all: &[Unfit]) -> String {
    let each = all
        .iter()
        .take(MOST_SENTENCES)
        .map(|unfit| match &unfit.kernel {
            Some(kernel) => format!("kernel {kernel}: {}", unfit.reason),
            None => unfit.reason.clone(),
        });
    let mut text = each.collect::<Vec<_>>().join("; ");
    if let Some(more) = all.len().checked_sub(MOST_SENTENCES + 1) {
        text.push_str(&format!("; and {} more", more + 1));
    }
    text
}
