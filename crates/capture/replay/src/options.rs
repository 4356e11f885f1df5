//! Defines [`Options`], the settings of a replay: device, order of the work, number of runs, tolerance.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::Serialize;

use crate::adapter::DeviceChoice;
use crate::program::Extent;

/// Options of a replay.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// The device; `None` for the device with the captured device's name, else the first.
    pub device: Option<DeviceChoice>,
    /// Order and overlap of the submissions.
    pub schedule: Schedule,
    /// The part of the capture that runs.
    pub extent: Extent,
    /// Number of runs that are timed; 0 means 1.
    pub repeat: u32,
    /// Number of untimed runs before the timed ones.
    pub warm_up: u32,
    /// The folder for a trace of the timed runs; `None` for no trace.
    pub trace: Option<PathBuf>,
    /// The only dispatch to time, on memory as the work before it leaves it; `None` for all work.
    pub only: Option<u64>,
    /// The greatest error of a floating-point value, as a share of the greater of 1 and the captured value. It
    /// applies only where the capture has the bytes of its outputs.
    pub tolerance: Option<f64>,
    /// Whether to keep accesses within the bounds of their buffers, if the device can.
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
