//! Facts about a profile as a whole.

use super::Clock;
use super::entry::{DeviceInfo, Sampling};

/// The facts about a profile as a whole.
#[derive(Debug, Clone, Default)]
pub(super) struct ProfileInfo {
    pub clock: Clock,
    pub sampling: Sampling,
    pub device: DeviceInfo,
    pub notes: Vec<String>,
    pub since_ns: u64,
    /// The bounds by which an integration without clock samples mapped times.
    pub bounds: Option<ClockBounds>,
}

/// The bounds by which times were mapped.
#[derive(Debug, Clone, Copy)]
pub(super) struct ClockBounds {
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
