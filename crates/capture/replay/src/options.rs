//! The options of a replay.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::Serialize;

use crate::adapter::DeviceChoice;
use crate::program::Extent;

/// Options of a replay.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// The device; none: the one with the captured device's name, else the first.
    pub device: Option<DeviceChoice>,
    /// Order and overlap of the submissions.
    pub schedule: Schedule,
    /// The part of the capture that runs.
    pub extent: Extent,
    /// Number of runs that are timed; 0 means 1.
    pub repeat: u32,
    /// Number of runs before those.
    pub warm_up: u32,
    /// The folder for a trace of the timed runs.
    pub trace: Option<PathBuf>,
    /// Run only this dispatch, on memory as the work before it leaves it.
    pub only: Option<u64>,
    /// The greatest error of a floating-point value, as a share of the greater of 1 and the captured value. It counts
    /// only where the capture has the bytes of its outputs.
    pub tolerance: Option<f64>,
    /// Keep accesses outside of buffers inside, where the device can.
    pub robust: bool,
}

/// Order and overlap of the work.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Schedule {
    /// Submission by submission, as captured.
    #[default]
    AsCaptured,
    /// As captured, with a barrier after each dispatch and transfer.
    Serialised,
    /// All work in one submission, without the host in between.
    Tight,
}
