//! Defines [`Rate`], nanoseconds per tick as a fixed-point number, so that products with large tick counts are exact
//! to a nanosecond.

use serde::{Deserialize, Serialize};

/// The number of binary digits behind the point.
const SHIFT: u32 = 52;
const MIN_NS: i128 = i64::MIN as i128;
const MAX_NS: i128 = i64::MAX as i128;

/// A rate in nanoseconds per tick as a fixed-point number: 1 is exact, and 10^12 ticks are mapped to within 1 ns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rate(i128);

impl Rate {
    /// Returns `ns / ticks`; `ticks` is positive.
    pub fn from_ratio(ns: i64, ticks: i64) -> Rate {
        Rate((i128::from(ns) << SHIFT) / i128::from(ticks.max(1)))
    }

    /// Converts a floating-point rate.
    pub fn from_f64(rate: f64) -> Rate {
        Rate((rate * (1u64 << SHIFT) as f64) as i128)
    }

    /// Converts to a floating-point rate.
    pub fn as_f64(self) -> f64 {
        self.0 as f64 / (1u64 << SHIFT) as f64
    }

    /// Returns the nanoseconds of a number of ticks, rounded to the nearest and clamped to some decades.
    #[inline]
    pub fn ns(self, ticks: i64) -> i64 {
        let product = i128::from(ticks).saturating_mul(self.0);
        super::within_decades(
            (product.saturating_add(1 << (SHIFT - 1)) >> SHIFT).clamp(MIN_NS, MAX_NS) as i64,
        )
    }
}
