//! The device's clock on the host's, by bounds.

use crate::interval::Interval;
use std::collections::VecDeque;

/// Command buffers whose bounds count. Clocks drift apart, so old bounds are wrong in the end: crystals differ by up
/// to 100 ppm, 100 us in a second.
const MOST: usize = 64;
/// Bounds older than this do not count, in device nanoseconds: at 100 ppm they are wrong by 50 us.
const OLDEST_NS: i128 = 500_000_000;

/// What one command buffer says of the offset from device to host time: it started after the program finished it, and
/// ended before that was seen.
#[derive(Debug, Clone, Copy)]
struct Bound {
    at_ns: i128,
    least: i128,
    most: i128,
}

/// Maps device times to host times.
#[derive(Debug, Default)]
pub(super) struct Bounds {
    recent: VecDeque<Bound>,
}

/// A map: host time = device time + offset, within the error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Offset {
    offset_ns: i128,
    pub error_ns: u64,
}

impl Offset {
    /// `None` before the host's clock started.
    pub fn host_ns(self, device_ns: u64) -> Option<u64> {
        u64::try_from(i128::from(device_ns) + self.offset_ns).ok()
    }
}

impl Bounds {
    /// Adds what a command buffer says; the map for it. `None` when it contradicts itself: its device times are wrong.
    pub fn add(
        &mut self,
        Interval { start_ns, end_ns }: Interval,
        finished_ns: u64,
        seen_ns: u64,
    ) -> Option<Offset> {
        let bound = Bound {
            at_ns: start_ns.into(),
            least: i128::from(finished_ns) - i128::from(start_ns),
            most: i128::from(seen_ns) - i128::from(end_ns),
        };
        if bound.least > bound.most {
            return None;
        }
        self.recent.push_back(bound);
        while self.recent.len() > MOST
            || self
                .recent
                .front()
                .is_some_and(|b| bound.at_ns - b.at_ns > OLDEST_NS)
        {
            self.recent.pop_front();
        }
        // From the newest back, as far as they agree.
        let (mut least, mut most) = (bound.least, bound.most);
        for earlier in self.recent.iter().rev() {
            let (l, m) = (least.max(earlier.least), most.min(earlier.most));
            if l > m {
                break;
            }
            (least, most) = (l, m);
        }
        let error_ns = u64::try_from((most - least + 1) / 2).unwrap_or(u64::MAX);
        Some(Offset {
            offset_ns: least + (most - least) / 2,
            error_ns,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The true offset of the planted clock.
    const TRUE: u64 = 1_000_000;

    fn interval(start_ns: u64, end_ns: u64) -> Interval {
        Interval { start_ns, end_ns }
    }

    #[test]
    fn the_offset_is_within_its_error_and_gets_better() {
        let mut bounds = Bounds::default();
        let mut errors = Vec::new();
        for (n, (late, seen)) in [(500, 900), (50, 700), (300, 100)].into_iter().enumerate() {
            let start = 10_000 * (n as u64 + 1);
            let (finished, end) = (start + TRUE - late, start + 1_000);
            let offset = bounds
                .add(interval(start, end), finished, end + TRUE + seen)
                .unwrap();
            let host = offset.host_ns(start).unwrap();
            assert!(host.abs_diff(start + TRUE) <= offset.error_ns, "{offset:?}");
            errors.push(offset.error_ns);
        }
        assert_eq!(errors, [700, 375, 75]);
    }

    #[test]
    fn bounds_that_drift_out_of_agreement_are_left_behind() {
        let mut bounds = Bounds::default();
        bounds.add(interval(1_000, 1_100), 2_000, 2_200).unwrap();
        // The offset is 5000 now: nothing in common with before.
        let offset = bounds.add(interval(2_000, 2_100), 7_000, 7_200).unwrap();
        assert_eq!(offset.host_ns(2_000), Some(7_050));
        assert_eq!(offset.error_ns, 50);
    }

    #[test]
    fn a_command_buffer_that_took_longer_than_the_host_saw_is_refused() {
        let refused = Bounds::default().add(interval(0, 1_000), 5_000, 5_500);
        assert_eq!(refused, None);
    }
}
