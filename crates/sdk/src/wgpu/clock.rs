//! The device's clock.

use super::bounds::Bounds;

/// Nanoseconds of a device's clock, and what is known of it on the host's.
#[derive(Debug, Default)]
pub(super) struct DeviceClock {
    /// The first tick that was seen: later ones are counted from it, so that no precision is lost.
    first: Option<u64>,
    pub bounds: Bounds,
}

impl DeviceClock {
    /// Nanoseconds of the device's clock. `None` for 0, which drivers deliver for nothing.
    pub fn device_ns(&mut self, ticks: u64, period_ns: f64) -> Option<u64> {
        if ticks == 0 {
            return None;
        }
        let first = *self.first.get_or_insert(ticks);
        // From a second before the first, so that what ran before it has a place as well.
        let base_ns = 1_000_000_000_i128;
        let since = i128::from(ticks) - i128::from(first);
        let ns = if period_ns == 1.0 {
            since
        } else {
            (since as f64 * period_ns).round() as i128
        };
        u64::try_from(base_ns + ns).ok()
    }
}
