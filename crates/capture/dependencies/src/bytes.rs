//! Defines [`ByteSet`], a set of byte offsets in some memory. Footprints (what dispatches access) and edges
//! (dependencies) are made of such sets. All ranges are from the first byte to the one after the last.

use std::ops::Range;

/// A set of byte offsets, as sorted ranges that neither overlap nor touch.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ByteSet {
    ranges: Vec<Range<u64>>,
}

impl ByteSet {
    /// Makes the set of all bytes of a range.
    pub fn from_range(range: Range<u64>) -> ByteSet {
        ByteSet::from_unsorted(vec![range])
    }

    /// Makes a set from ranges that are sorted and do not touch.
    pub(crate) fn from_sorted(ranges: Vec<Range<u64>>) -> ByteSet {
        ByteSet { ranges }
    }

    /// Makes a set from any ranges.
    pub fn from_unsorted(mut ranges: Vec<Range<u64>>) -> ByteSet {
        ranges.retain(|range| !range.is_empty());
        ranges.sort_unstable_by_key(|range| range.start);
        let mut merged: Vec<Range<u64>> = Vec::with_capacity(ranges.len());
        for range in ranges {
            match merged.last_mut() {
                Some(last) if range.start <= last.end => last.end = last.end.max(range.end),
                _ => merged.push(range),
            }
        }
        ByteSet { ranges: merged }
    }

    /// Returns the ranges, which are sorted and do not touch.
    pub fn ranges(&self) -> &[Range<u64>] {
        &self.ranges
    }

    /// Returns the number of bytes in the set.
    pub fn bytes(&self) -> u64 {
        self.ranges
            .iter()
            .map(|range| range.end - range.start)
            .sum()
    }

    /// Returns whether the set is empty.
    pub fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// Adds the bytes of another set.
    pub fn add(&mut self, more: &ByteSet) {
        let mut all = std::mem::take(&mut self.ranges);
        all.extend_from_slice(&more.ranges);
        *self = ByteSet::from_unsorted(all);
    }

    /// Removes the bytes of a range from the set.
    pub fn remove(&mut self, gone: &Range<u64>) {
        let parts = self.ranges.drain(..).flat_map(|of| {
            let before = of.start..of.end.min(gone.start);
            let after = of.start.max(gone.end)..of.end;
            [before, after]
        });
        self.ranges = parts.filter(|part| !part.is_empty()).collect();
    }

    /// Returns whether a byte of the set is in a range.
    pub fn overlaps(&self, range: &Range<u64>) -> bool {
        self.within(range.clone()).next().is_some()
    }

    /// Returns the ranges of the set, moved up by an offset.
    pub fn shifted(&self, by: u64) -> impl Iterator<Item = Range<u64>> + '_ {
        (self.ranges.iter())
            .map(move |range| range.start.saturating_add(by)..range.end.saturating_add(by))
    }

    /// Returns the parts of the set's ranges that are in a range.
    pub fn within(&self, range: Range<u64>) -> impl Iterator<Item = Range<u64>> + '_ {
        let first = self.ranges.partition_point(|of| of.end <= range.start);
        (self.ranges[first..].iter())
            .take_while(move |of| of.start < range.end)
            .map(move |of| of.start.max(range.start)..of.end.min(range.end))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_that_touch_are_one() {
        let set = ByteSet::from_unsorted(vec![8..12, 0..4, 4..8, 20..20, 16..24, 18..20]);
        assert_eq!(set.ranges(), [0..12, 16..24]);
        assert_eq!(set.bytes(), 20);
        let within: Vec<_> = set.within(10..17).collect();
        assert_eq!(within, [10..12, 16..17]);
    }
}
