//! Summarises a running recording for a live display: the numbers so far, and how busy the GPU is.

use crate::assembler::BusyInterval;
use std::collections::VecDeque;
use std::time::Duration;

/// The time over which the busy share is taken.
const WINDOW_NS: i64 = 1_000_000_000;

/// The numbers of a running recording, so far.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Progress {
    /// The time since the command started.
    pub elapsed: Duration,
    /// False before the delay or the label that starts recording.
    pub recording: bool,
    /// The number of processes that have been recorded so far.
    pub processes: u32,
    /// The number of dispatches so far, in command buffers that were seen finished.
    pub dispatches: u64,
    /// The part of the last second, of 1, in which a GPU ran command buffers that were seen finished; absent when
    /// there was none.
    pub gpu_busy_share: Option<f64>,
    /// The size of the trace so far.
    pub bytes_written: u64,
}

/// The command buffers of the last second.
#[derive(Debug, Default)]
pub struct RecentActivity {
    /// Their times on the GPU, as far as they were seen finished.
    busy: VecDeque<BusyInterval>,
}

impl RecentActivity {
    pub fn add(&mut self, busy: Vec<BusyInterval>) {
        self.busy.extend(busy);
    }

    /// Returns the share of the last second that the union of the command buffers covers.
    pub fn busy_share(&mut self, now_ns: i64) -> Option<f64> {
        let from_ns = now_ns - WINDOW_NS;
        self.busy.retain(|a| a.end_ns > from_ns);
        if self.busy.is_empty() {
            return None;
        }
        let intervals = self.busy.make_contiguous();
        intervals.sort_unstable_by_key(|a| a.start_ns);
        let (mut busy_ns, mut reached_ns) = (0, from_ns);
        for interval in intervals {
            let start_ns = interval.start_ns.max(reached_ns);
            let end_ns = interval.end_ns.min(now_ns);
            if end_ns > start_ns {
                busy_ns += end_ns - start_ns;
                reached_ns = end_ns;
            }
        }
        Some(busy_ns as f64 / WINDOW_NS as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_busy_share_is_of_the_union_in_the_last_second() {
        let mut recent = RecentActivity::default();
        assert_eq!(recent.busy_share(5_000_000_000), None);
        let of = |start_ms: i64, end_ms: i64| BusyInterval {
            start_ns: start_ms * 1_000_000,
            end_ns: end_ms * 1_000_000,
        };
        recent.add(vec![
            of(4500, 4700),
            of(3900, 4100),
            of(4600, 4800),
            of(1000, 2000),
            of(4550, 4560),
        ]);
        assert_eq!(recent.busy_share(5_000_000_000), Some(0.4));
        assert_eq!(recent.busy_share(9_000_000_000), None);
    }
}
