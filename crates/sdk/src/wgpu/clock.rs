//! Maps the device's clock to the host's by bounds: a command buffer ran after the program finished it, and before
//! its end was seen.

use crate::interval::Interval;
use gapscope_model::clock::{Brackets, RATE_TOLERANCE, Ticks};

/// The device's clock in nanoseconds, with bounds of its offset to the host's clock.
#[derive(Debug)]
pub(super) struct DeviceClock {
    /// The first tick that was seen. Later ticks are counted from it, so that no precision is lost.
    first: Option<u64>,
    /// The bounds; their ticks are the device's nanoseconds.
    brackets: Brackets,
}

/// The offset from device to host time for one command buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Offset {
    /// Host time less device time.
    offset_ns: i64,
    pub error_ns: u64,
}

impl Offset {
    /// Converts a device time; `None` if it lies before the zero of the host's clock.
    pub fn host_ns(self, device_ns: u64) -> Option<u64> {
        u64::try_from(i128::from(device_ns) + i128::from(self.offset_ns)).ok()
    }
}

impl Default for DeviceClock {
    fn default() -> DeviceClock {
        DeviceClock {
            first: None,
            brackets: Brackets::new(1.0),
        }
    }
}

impl DeviceClock {
    /// Converts ticks to nanoseconds of the device's clock. Returns `None` for 0, which drivers deliver in place of
    /// missing ticks.
    pub fn device_ns(&mut self, ticks: u64, period_ns: f64) -> Option<u64> {
        if ticks == 0 {
            return None;
        }
        let first = *self.first.get_or_insert(ticks);
        // The clock starts a second before the first tick, so that earlier work has a time as well.
        let base_ns = 1_000_000_000_i128;
        let since = i128::from(ticks) - i128::from(first);
        let ns = if period_ns == 1.0 {
            since
        } else {
            (since as f64 * period_ns).round() as i128
        };
        u64::try_from(base_ns + ns).ok()
    }

    /// Returns the offset for a command buffer, which ran after the program finished it and before its end was seen.
    /// Returns `None` if it took longer than that, which means that its device times are wrong.
    pub fn bracket(&mut self, ran: Interval, finished_ns: u64, seen_ns: u64) -> Option<Offset> {
        let most_ns = seen_ns.checked_sub(finished_ns)?;
        if ran.duration_ns() > most_ns {
            return None;
        }
        let [start, end, finished, seen] =
            [ran.start_ns, ran.end_ns, finished_ns, seen_ns].map(|ns| i64::try_from(ns).ok());
        let (start, end) = (Ticks(start?), Ticks(end?));
        let (finished, seen) = (finished?, seen?);
        self.brackets.add(start, end, finished, seen);
        let offset = self.brackets.offset(start).or_else(|| {
            // The clock has jumped, so that earlier bounds no longer hold.
            self.brackets = Brackets::new(1.0);
            self.brackets.add(start, end, finished, seen);
            self.brackets.offset(start)
        })?;
        // The clocks may drift apart until the end of the command buffer.
        let drift_ns = (ran.duration_ns() as f64 * RATE_TOLERANCE).ceil() as u64;
        Some(Offset {
            offset_ns: offset.offset_ns,
            error_ns: offset.error_ns.unsigned_abs().saturating_add(drift_ns),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The true offset of the test's clock.
    const TRUE: u64 = 1_000_000;

    fn interval(start_ns: u64, end_ns: u64) -> Interval {
        Interval { start_ns, end_ns }
    }

    #[test]
    fn the_offset_is_within_its_error_and_gets_better() {
        let mut clock = DeviceClock::default();
        let mut errors = Vec::new();
        for (n, (late, seen)) in [(500, 900), (50, 700), (300, 100)].into_iter().enumerate() {
            let start = 10_000 * (n as u64 + 1);
            let (finished, end) = (start + TRUE - late, start + 1_000);
            let offset = clock
                .bracket(interval(start, end), finished, end + TRUE + seen)
                .unwrap();
            let host = offset.host_ns(start).unwrap();
            assert!(host.abs_diff(start + TRUE) <= offset.error_ns, "{offset:?}");
            errors.push(offset.error_ns);
        }
        // The error is half of the tightest bounds plus the drift since then.
        for (error_ns, width_ns) in errors.iter().zip([1_400, 750, 150]) {
            let half_ns = width_ns / 2;
            assert!((half_ns..half_ns + 5).contains(error_ns), "{errors:?}");
        }
    }

    #[test]
    fn after_a_jump_of_the_clock_earlier_bounds_are_left_behind() {
        let mut clock = DeviceClock::default();
        let before = clock.bracket(interval(1_000, 1_100), 2_000, 2_200);
        assert_eq!(before.unwrap().host_ns(1_000), Some(2_050));
        // The offset is now 5000, which contradicts all earlier bounds.
        let offset = clock.bracket(interval(2_000, 2_100), 7_000, 7_200).unwrap();
        assert_eq!(offset.host_ns(2_000), Some(7_050));
        assert!((50..55).contains(&offset.error_ns), "{offset:?}");
    }

    #[test]
    fn a_command_buffer_that_took_longer_than_the_host_saw_is_refused() {
        let mut clock = DeviceClock::default();
        assert_eq!(clock.bracket(interval(0, 1_000), 5_000, 5_500), None);
    }
}
