//! Reads what the profiler says of itself: the lines of its log that it writes beside the events, in the members `INFO`, `WARNING` and
//! `ERROR`. A line such as `Record counts: Out-of-range = 3829, Blocklisted runtime = 56517, …` counts what is not in the file.

use super::json::elements;
use crate::inventory::Inventory;
use gapscope_trace::LossKind;

/// The counts of records that the file lacks. Records whose times are out of order stand in the file, and are judged by their times.
#[derive(Debug, Default, Clone, PartialEq)]
pub(super) struct Log {
    /// Records that began before the window that the profiler was to record, or ended after it.
    out_of_range: u64,
    /// Calls that the profiler never writes, because they only ask or set something.
    block_listed: u64,
    /// Records of kinds that the profiler does not know.
    unexpected: u64,
    /// Records for which CUPTI had no room.
    dropped: u64,
    /// True if the profiler stopped before the end of the window, because its memory was full.
    stopped_early: bool,
}

impl Log {
    /// Reads the lines of a member.
    pub(super) fn read(&mut self, lines: &[u8]) {
        for line in elements(lines) {
            let line = String::from_utf8_lossy(line);
            let add = |sum: &mut u64, before: &str| {
                *sum = sum.saturating_add(number_behind(&line, before).unwrap_or(0));
            };
            add(&mut self.out_of_range, "Out-of-range = ");
            add(&mut self.block_listed, "Blocklisted runtime = ");
            add(&mut self.unexpected, "Unexpected CUDA events = ");
            if line.contains(" activity records") {
                add(&mut self.dropped, "Dropped ");
            }
            self.stopped_early |= number_behind(&line, " stopped early? = ") == Some(1);
        }
    }

    /// Counts what the file lacks.
    pub(super) fn count_losses(&self, inventory: &mut Inventory) {
        for (kind, count, reason) in [
            (
                LossKind::CudaActivities,
                self.out_of_range,
                "the profiler's log says that they began before the time that it was to record, or ended after it",
            ),
            (
                "calls on the profiler's block list".into(),
                self.block_listed,
                "the profiler leaves out calls that only ask or set something, such as cudaGetDevice",
            ),
            (
                "records of unknown kinds".into(),
                self.unexpected,
                "the profiler's log says that it did not know their kinds",
            ),
            (
                LossKind::DroppedCudaActivities,
                self.dropped,
                "the profiler's log says that CUPTI had no room for them",
            ),
            (
                LossKind::CudaActivitiesAtSuddenEnd,
                u64::from(self.stopped_early),
                "the profiler's log says that it stopped early, because its memory was full; there may be more",
            ),
        ] {
            inventory.lose(kind, count, reason);
        }
    }
}

/// Returns the number that stands in a line behind a text.
fn number_behind(line: &str, before: &str) -> Option<u64> {
    let (_, rest) = line.split_once(before)?;
    rest.split(|c: char| !c.is_ascii_digit())
        .next()?
        .parse()
        .ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lines_of_the_log_say_what_the_file_lacks() {
        let mut log = Log::default();
        log.read(
            br#"["INFO:2024-04-03 18:51:36 1102:1102 CuptiActivityProfiler.cpp:300] Record counts: Out-of-range = 3829, Blocklisted runtime = 56517, Invalid ext correlations = 0, CPU GPU out-of-order = 7, Unexpected CUDA events = 2, CUPTI stopped early? = 0"]"#,
        );
        log.read(
            br#"["WARNING: CuptiActivityApi.cpp:326] Dropped 12 activity records", "Dropped 3 activity records", "Dropped 4 frames"]"#,
        );
        let expected = Log {
            out_of_range: 3829,
            block_listed: 56_517,
            unexpected: 2,
            dropped: 15,
            stopped_early: false,
        };
        assert_eq!(log, expected);
        log.read(br#"["Out-of-range = -1, GPU stopped early? = 1", "Out-of-range = 99999999999999999999999"]"#);
        assert!(log.stopped_early);
        assert_eq!(log.out_of_range, 3829);
    }
}
