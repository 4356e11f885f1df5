//! From a device's ticks to the host's time, by samples of both clocks, with an error bound.
//!
//! Both maps are straight lines from sample to sample ([`Line`]), and both take from three samples how far the clocks bend
//! away from such a line. [`Calibrated`] maps while a recording runs, for as long as it runs: its memory is bounded,
//! times come about in order, and its bound covers all times that it has mapped. [`PairedClock`] is asked for any time, and
//! says how far each may be off.

mod calibrated;
mod line;
mod paired;
mod rate;

pub use calibrated::{Calibrated, Fit};
pub use line::{Line, Point};
pub use paired::{ClockPair, HostTime, NoTime, PairedClock};
pub use rate::Rate;

use serde::{Deserialize, Serialize};

/// Device ticks since the clock's first reading, unwrapped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Ticks(pub i64);

/// The most by which an oscillator is off its nominal rate, the host's steering included.
pub const RATE_TOLERANCE: f64 = 200e-6;

/// A value within decades of its clock's zero: damage must not overflow what is computed with it.
pub fn within_decades(value: i64) -> i64 {
    const FARTHEST: i64 = 1 << 60;
    value.clamp(-FARTHEST, FARTHEST)
}
