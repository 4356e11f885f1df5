//! Defines [`Options`], the settings of a replay.

use gapscope_replay::{DeviceChoice, Element, Extent, Schedule};

/// Options of a replay.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// The GPU; `None` for the one with the captured GPU's name, else the first.
    pub device: Option<DeviceChoice>,
    /// Launch by launch, or tight.
    pub schedule: Schedule,
    /// The part of the capture that runs.
    pub extent: Extent,
    /// The only launch to time, on memory as the launches before it leave it.
    pub only: Option<u64>,
    /// Number of runs that are timed; 0 means 1.
    pub repeat: u32,
    /// Number of untimed runs before the timed ones.
    pub warm_up: u32,
    /// The type of elements in memory; `None`: not known.
    pub element: Option<Element>,
}
