//! Numbers the pages of memory whose content a capture has before its first launch.

use gapscope_capture::cuda::CudaCapture;

use crate::error::Error;
use crate::plan::Plan;
use crate::stash;
use crate::transfer;

/// The size of a page, but for the first and the last of an allocation's content.
pub const PAGE_BYTES: u64 = 4096;

/// The pages of captured content, by numbers from 0, in the order of memories and offsets.
#[derive(Debug, Clone)]
pub struct Pages {
    /// Content without a hole, each with the number of its first page.
    runs: Vec<(u64, transfer::Range)>,
    count: u64,
}

impl Pages {
    /// Returns the pages of a capture.
    ///
    /// # Errors
    /// The capture has no launch.
    pub fn from_capture(capture: &CudaCapture) -> Result<Pages, Error> {
        let plan = Plan::new(capture)?;
        let first = plan.first.iter();
        let ranges = first.map(|content| stash::range(capture, content));
        Ok(Pages::new(stash::merged(ranges.collect())))
    }

    fn new(ranges: Vec<transfer::Range>) -> Pages {
        let mut pages = Pages {
            runs: Vec::with_capacity(ranges.len()),
            count: 0,
        };
        for range in ranges {
            pages.runs.push((pages.count, range));
            let first = range.offset / PAGE_BYTES;
            let end = (range.offset + range.bytes).div_ceil(PAGE_BYTES);
            pages.count += end - first;
        }
        pages
    }

    /// Returns the number of pages.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Returns the number of bytes of all pages.
    pub fn all_bytes(&self) -> u64 {
        self.runs.iter().map(|(_, run)| run.bytes).sum()
    }

    /// Returns the number of bytes of pages.
    pub fn bytes(&self, numbers: &[std::ops::Range<u64>]) -> u64 {
        self.ranges(numbers).iter().map(|range| range.bytes).sum()
    }

    /// Returns the memory of pages, in the order of their numbers, which must ascend.
    pub(super) fn ranges(&self, numbers: &[std::ops::Range<u64>]) -> Vec<transfer::Range> {
        let mut all = Vec::new();
        for wanted in numbers {
            let before = self
                .runs
                .partition_point(|(first, _)| *first <= wanted.start);
            let from = before.saturating_sub(1);
            for (first, run) in &self.runs[from..] {
                if *first >= wanted.end {
                    break;
                }
                let boundary = |number: u64| {
                    let page = run.offset / PAGE_BYTES + number.saturating_sub(*first);
                    (page * PAGE_BYTES).clamp(run.offset, run.offset + run.bytes)
                };
                let (start, end) = (boundary(wanted.start), boundary(wanted.end));
                if start < end {
                    all.push(transfer::Range {
                        memory: run.memory,
                        offset: start,
                        bytes: end - start,
                    });
                }
            }
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gapscope_capture::model::MemoryId;

    #[test]
    fn pages_end_at_multiples_of_their_size_and_with_the_content() {
        let range = |memory, offset, bytes| transfer::Range {
            memory: MemoryId(memory),
            offset,
            bytes,
        };
        let pages = Pages::new(vec![
            range(1, 4000, 4300),
            range(1, 9000, 1),
            range(2, 0, 4096),
        ]);
        assert_eq!(pages.count(), 5);
        let of = |start, end| pages.ranges(std::slice::from_ref(&(start..end)));
        assert_eq!(of(0, 1), [range(1, 4000, 96)]);
        assert_eq!(of(1, 3), [range(1, 4096, 4204)]);
        let all = [range(1, 4000, 4300), range(1, 9000, 1), range(2, 0, 4096)];
        assert_eq!(of(0, 5), all);
        assert_eq!(of(2, 4), [range(1, 8192, 108), range(1, 9000, 1)]);
        assert_eq!(pages.bytes(&[0..1, 3..5]), 96 + 1 + 4096);
    }
}
