//! Maps a device's ticks (the units of its clock) to the host's time in nanoseconds, with an error bound. A sample is
//! a reading of both clocks at one moment.
//!
//! Where both clocks can be read at once, the map is a straight line from sample to sample ([`Line`]), and three
//! samples show how far the clocks bend away from it. [`Calibrated`] maps times during a recording, however long: its
//! memory is bounded, times come roughly in order, and its bound covers all times that it has mapped. [`PairedClock`]
//! maps any time, with a bound for each. Where the clocks cannot be read at once, [`Brackets`] bounds the offset
//! between them by what encloses each command buffer.

mod brackets;
mod calibrated;
mod line;
mod paired;
mod rate;

pub use brackets::{Brackets, Offset};
pub use calibrated::Calibrated;
pub use line::{Line, Point};
pub use paired::{ClockPair, HostTime, NoTime, PairedClock};
pub use rate::Rate;

use serde::{Deserialize, Serialize};

/// Device ticks since the clock's first reading, unwrapped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Ticks(pub i64);

/// The quality of a clock's map.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Fit {
    /// The greatest error of a mapped time; `None` where the readings contradict each other.
    pub error_ns: Option<i64>,
    /// Number of samples or bounds that the map rests on.
    pub samples: u32,
    /// Rate of the device's clock against the host's, less one, in parts per million; `None` when unknown.
    pub drift_ppm: Option<f64>,
}

/// The greatest relative deviation of an oscillator from its nominal rate, the host's steering included.
pub const RATE_TOLERANCE: f64 = 200e-6;

/// Clamps a value to within decades of its clock's zero, so that computations with damaged values cannot overflow.
pub fn within_decades(value: i64) -> i64 {
    // As nanoseconds, 36 years.
    const FARTHEST: i64 = 1 << 60;
    value.clamp(-FARTHEST, FARTHEST)
}
