//! What is known of the whole profile.

use super::clock::Clock;
use super::entry::{DeviceInfo, Sampling};

/// What is known of the whole.
#[derive(Debug, Clone, Default)]
pub(super) struct About {
    pub clock: Clock,
    pub sampling: Sampling,
    pub device: DeviceInfo,
    pub notes: Vec<String>,
    pub since_ns: u64,
    /// An integration that has no clock samples mapped times by bounds: how many, and the greatest error.
    pub bounds: Option<(u64, u64)>,
}

impl About {
    /// Samples or bounds by which times were mapped.
    pub fn clock_samples(&self) -> u64 {
        self.bounds.map_or(self.clock.pairs().len() as u64, |b| b.0)
    }

    /// The greatest error of a mapped time.
    pub fn clock_error_ns(&self) -> Option<u64> {
        match self.bounds {
            Some((_, error_ns)) => Some(error_ns),
            None => self.clock.error_ns(),
        }
    }
}
