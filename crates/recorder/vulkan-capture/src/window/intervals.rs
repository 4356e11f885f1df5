//! Keeps a set of bytes as intervals that do not touch. Ranges are added; the parts of a range that are missing
//! come out.

use std::collections::BTreeMap;
use std::ops::Range;

/// A set of bytes.
/// The end of each interval, by its first byte.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Intervals(BTreeMap<u64, u64>);

impl Intervals {
    /// Adds a range.
    pub fn add(&mut self, range: Range<u64>) {
        if range.is_empty() {
            return;
        }
        let (mut start, mut end) = (range.start, range.end);
        while let Some((&other, &other_end)) = self.0.range(..=end).next_back() {
            if other_end < start {
                break;
            }
            self.0.remove(&other);
            start = start.min(other);
            end = end.max(other_end);
        }
        self.0.insert(start, end);
    }

    /// Returns the parts of a range that are not in the set.
    pub fn missing(&self, range: Range<u64>) -> Vec<Range<u64>> {
        let mut missing = Vec::new();
        let mut at = range.start;
        let before = self.0.range(..=range.start).next_back();
        let inside = self.0.range(range.start..range.end);
        for (&start, &end) in before.into_iter().chain(inside) {
            if start > at && start < range.end {
                missing.push(at..start);
            }
            at = at.max(end);
        }
        if at < range.end {
            missing.push(at..range.end);
        }
        missing
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(ranges: &[(u64, u64)]) -> Intervals {
        let mut set = Intervals::default();
        ranges.iter().for_each(|(start, end)| set.add(*start..*end));
        set
    }

    #[test]
    fn ranges_that_meet_are_one() {
        assert_eq!(set(&[(0, 4), (8, 12), (4, 8)]), set(&[(0, 12)]));
        assert_eq!(set(&[(0, 4), (6, 8), (2, 7)]), set(&[(0, 8)]));
        assert_eq!(set(&[(5, 5)]), set(&[]));
    }

    #[test]
    fn what_is_missing_is_between_the_ranges() {
        let set = set(&[(2, 4), (6, 8)]);
        assert_eq!(set.missing(0..10), [0..2, 4..6, 8..10]);
        assert_eq!(set.missing(3..7), vec![4..6]);
        assert_eq!(set.missing(2..4), []);
        assert_eq!(set.missing(8..9), vec![8..9]);
    }
}
