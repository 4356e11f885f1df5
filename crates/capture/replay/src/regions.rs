//! Finds the parts of the program's memory that a capture touches, its regions. Only these exist in a replay, and
//! [`Regions::place`] finds in them the bytes of the program's allocations.

use std::collections::BTreeMap;
use std::ops::Range;

use gapscope_capture::model::{BufferRange, Command, Groups, MemoryId};
use gapscope_capture::{CHUNK_BYTES, Capture, Step};

/// A stretch of an allocation that the capture touches. Its bounds are multiples of [`CHUNK_BYTES`], so that offsets
/// keep their alignment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Region {
    /// The allocation.
    pub memory: MemoryId,
    /// The first byte in the allocation.
    pub start: u64,
    /// Size of the region.
    pub bytes: u64,
}

/// The place of a byte: a region and an offset in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RegionOffset {
    /// Number of the region.
    pub region: usize,
    /// Offset in the region.
    pub offset: u64,
}

/// The regions of a capture.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Regions {
    /// The regions; a region's number is its index.
    all: Vec<Region>,
    /// The numbers of each allocation's regions.
    of_memory: BTreeMap<MemoryId, Range<usize>>,
}

impl Regions {
    /// Finds the regions that content, outcomes, bindings and transfers touch.
    pub fn new(capture: &Capture) -> Regions {
        let mut touched = TouchedRanges::default();
        for step in &capture.steps {
            match step {
                Step::Content(content) => {
                    let bytes = capture.content_bytes(content);
                    touched.add_whole_chunks(content.memory, content.offset, bytes);
                }
                Step::Outcome(outcome) => {
                    touched.add_whole_chunks(outcome.memory, outcome.offset, outcome.bytes)
                }
                Step::Submission(_) => {}
            }
        }
        for command in capture.commands.values().flatten() {
            for range in ranges(command) {
                let (memory, offset) = capture.place(range);
                touched.add_whole_chunks(memory, offset, range.bytes);
            }
        }
        Regions::from_touched(touched)
    }

    /// Numbers the regions by allocation, then by start.
    fn from_touched(touched: TouchedRanges) -> Regions {
        let mut regions = Regions::default();
        for (memory, ranges) in touched.0 {
            let first = regions.all.len();
            regions.all.extend(ranges.iter().map(|(start, end)| Region {
                memory,
                start: *start,
                bytes: end - start,
            }));
            regions.of_memory.insert(memory, first..regions.all.len());
        }
        regions
    }

    /// Returns the regions in the order of their numbers.
    pub fn all(&self) -> &[Region] {
        &self.all
    }

    /// Returns the total size of the regions.
    pub fn bytes(&self) -> u64 {
        let sizes = self.all.iter().map(|region| region.bytes);
        sizes.fold(0, u64::saturating_add)
    }

    /// Returns the place of a byte of an allocation; `None` only for a byte that the capture does not touch.
    pub fn place(&self, memory: MemoryId, offset: u64) -> Option<RegionOffset> {
        let numbers = self.of_memory.get(&memory)?.clone();
        let regions = &self.all[numbers.clone()];
        let index = regions
            .partition_point(|region| region.start <= offset)
            .checked_sub(1)?;
        let region = regions[index];
        let within = offset - region.start;
        (within < region.bytes).then_some(RegionOffset {
            region: numbers.start + index,
            offset: within,
        })
    }

    /// Returns the place where a range of a buffer begins.
    pub fn buffer_place(&self, capture: &Capture, range: BufferRange) -> Option<RegionOffset> {
        let (memory, offset) = capture.place(range);
        self.place(memory, offset)
    }

    /// Returns the parts of an allocation's range that are in regions, each as offset in the range, place and size.
    pub fn parts(
        &self,
        memory: MemoryId,
        offset: u64,
        bytes: u64,
    ) -> Vec<(u64, RegionOffset, u64)> {
        let Some(numbers) = self.of_memory.get(&memory) else {
            return Vec::new();
        };
        let end = offset.saturating_add(bytes);
        let parts = numbers.clone().filter_map(|number| {
            let region = self.all[number];
            let from = offset.max(region.start);
            let to = end.min(region.start.saturating_add(region.bytes));
            let place = RegionOffset {
                region: number,
                offset: from.checked_sub(region.start)?,
            };
            (from < to).then(|| (from - offset, place, to - from))
        });
        parts.collect()
    }
}

/// Returns the ranges that a command reads or writes.
pub fn ranges(command: &Command) -> Vec<BufferRange> {
    match command {
        Command::Dispatch(dispatch) => {
            let indirect = match dispatch.groups {
                Groups::Indirect(range) => Some(range),
                Groups::Direct(_) => None,
            };
            let bound = dispatch.bindings.iter().filter_map(|binding| binding.range);
            indirect.into_iter().chain(bound).collect()
        }
        Command::Copy(copy) => (copy.regions.iter())
            .flat_map(|region| copy.ranges(region))
            .collect(),
        Command::Fill(fill) => vec![fill.range],
        Command::Update(update) => vec![update.range()],
        Command::Barrier(_) | Command::Label(_) => Vec::new(),
    }
}

/// Ranges of memory that something touches, of which none touches another: by allocation the end of each range by its
/// start.
#[derive(Debug, Default)]
pub struct TouchedRanges(BTreeMap<MemoryId, BTreeMap<u64, u64>>);

impl TouchedRanges {
    /// Adds a range, made larger so that its bounds are multiples of [`CHUNK_BYTES`]; nothing if it is empty.
    fn add_whole_chunks(&mut self, memory: MemoryId, offset: u64, bytes: u64) {
        if bytes > 0 {
            let start = offset / CHUNK_BYTES * CHUNK_BYTES;
            let end = offset.saturating_add(bytes).div_ceil(CHUNK_BYTES);
            self.add(memory, start, end.saturating_mul(CHUNK_BYTES) - start);
        }
    }

    /// Adds a range, joined with those that it touches.
    pub fn add(&mut self, memory: MemoryId, offset: u64, bytes: u64) {
        let of = self.0.entry(memory).or_default();
        let (mut start, mut end) = (offset, offset.saturating_add(bytes));
        while let Some((&from, &to)) = of.range(..=end).next_back() {
            if to < start {
                break;
            }
            of.remove(&from);
            (start, end) = (start.min(from), end.max(to));
        }
        of.insert(start, end);
    }

    /// Returns whether a range has a byte in common with these.
    pub fn overlaps(&self, memory: MemoryId, offset: u64, bytes: u64) -> bool {
        let end = offset.saturating_add(bytes);
        let before = self
            .0
            .get(&memory)
            .and_then(|of| of.range(..end).next_back());
        before.is_some_and(|(_, to)| *to > offset)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MEMORY: MemoryId = MemoryId(3);

    fn regions(ranges: &[(u64, u64)]) -> Regions {
        let mut touched = TouchedRanges::default();
        for (offset, bytes) in ranges {
            touched.add_whole_chunks(MEMORY, *offset, *bytes);
        }
        Regions::from_touched(touched)
    }

    #[test]
    fn what_overlaps_or_touches_is_one_region() {
        let regions = regions(&[(200_000, 10), (0, 70_000), (100_000, 40_000), (1 << 30, 0)]);
        let extents: Vec<_> = regions.all().iter().map(|r| (r.start, r.bytes)).collect();
        assert_eq!(extents, [(0, 4 << 16)]);
        assert_eq!(regions.bytes(), 4 << 16);
    }

    #[test]
    fn a_place_keeps_its_alignment_and_is_only_where_something_is() {
        let regions = regions(&[(10, 1), (1 << 20, 100)]);
        let place = |region, offset| Some(RegionOffset { region, offset });
        assert_eq!(regions.place(MEMORY, 65_535), place(0, 65_535));
        assert_eq!(regions.place(MEMORY, 65_536), None);
        assert_eq!(regions.place(MEMORY, (1 << 20) + 48), place(1, 48));
        assert_eq!(regions.place(MemoryId(4), 0), None);
    }

    #[test]
    fn a_range_over_a_hole_has_two_parts() {
        let regions = regions(&[(0, 1), (131_072, 1)]);
        let parts = regions.parts(MEMORY, 65_530, 65_550);
        let at = |region, offset| RegionOffset { region, offset };
        assert_eq!(parts, [(0, at(0, 65_530), 6), (65_542, at(1, 0), 8)]);
    }

    #[test]
    fn a_range_at_the_end_of_all_numbers_does_not_overflow() {
        let regions = regions(&[(u64::MAX - 10, 10)]);
        assert!(regions.place(MEMORY, u64::MAX - 5).is_some() || regions.bytes() > 0);
    }

    #[test]
    fn what_touches_becomes_one_range() {
        let memory = MEMORY;
        let mut touched = TouchedRanges::default();
        for (offset, bytes) in [(100, 10), (200, 10), (110, 90), (0, 5), (50, 1)] {
            touched.add(memory, offset, bytes);
        }
        let ranges: Vec<_> = touched.0[&memory].iter().map(|(a, b)| (*a, *b)).collect();
        assert_eq!(ranges, [(0, 5), (50, 51), (100, 210)]);
        assert!(touched.overlaps(memory, 209, 1) && touched.overlaps(memory, 0, 1_000));
        assert!(!touched.overlaps(memory, 5, 45) && !touched.overlaps(memory, 210, 5));
    }
}
