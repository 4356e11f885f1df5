//! Facts about a profile as a whole: device, clock, sampling mode and notes.

use super::Clock;
use super::entry::{DeviceInfo, Sampling};

/// The facts about a profile as a whole.
#[derive(Debug, Clone, Default)]
pub(super) struct ProfileInfo {
    /// Maps the device's ticks to the host's clock, by samples of both.
    pub clock: Clock,
    pub sampling: Sampling,
    pub device: DeviceInfo,
    /// Sentences that every result shows.
    pub notes: Vec<String>,
    /// When the profile was created or last reset, on the host's clock.
    pub since_ns: u64,
    /// The bounds by which an integration without clock samples mapped times.
    pub bounds: Option<ClockBounds>,
}

/// The bounds (from the submission to the end that was seen) by which times were mapped to the host's clock.
#[derive(Debug, Clone, Copy)]
pub(super) struct ClockBounds {
    /// The number of command buffers whose times were mapped so.
    pub samples: u64,
    /// The greatest error.
    pub error_ns: u64,
}

impl ProfileInfo {
    /// Returns the number of samples or bounds by which times were mapped.
    pub fn clock_samples(&self) -> u64 {
        match self.bounds {
            Some(bounds) => bounds.samples,
            None => self.clock.pairs().len() as u64,
        }
    }

    /// Returns the greatest error of a mapped time.
    pub fn clock_error_ns(&self) -> Option<u64> {
        match self.bounds {
            Some(bounds) => Some(bounds.error_ns),
            None => self.clock.error_ns(),
        }
    }
}
