//! Keeps for an allocation of memory which bytes a capture knows so far (a replay of the capture has them at this
//! point), with their hashes, so that only unknown or changed memory is written.

use std::collections::BTreeMap;
use std::ops::Range;

use gapscope_capture::Hash;

/// The pieces of an allocation whose content is in the capture, or follows from it.
#[derive(Debug, Default)]
pub struct KnownContent {
    /// The end and the hash of each piece, by its first byte. A piece without a hash is known to a replay, but cannot
    /// be compared any more.
    pieces: BTreeMap<u64, (u64, Option<Hash>)>,
}

impl KnownContent {
    /// Returns the parts of a range that no piece covers.
    pub fn missing(&self, range: Range<u64>) -> Vec<Range<u64>> {
        let mut missing = Vec::new();
        let mut at = range.start;
        for (start, end) in self.overlapping(&range) {
            if start > at {
                missing.push(at..start);
            }
            at = at.max(end);
        }
        if at < range.end {
            missing.push(at..range.end);
        }
        missing
    }

    /// Returns whether exactly this piece is known to hold exactly this content.
    pub fn is(&self, piece: &Range<u64>, hash: Hash) -> bool {
        self.pieces.get(&piece.start) == Some(&(piece.end, Some(hash)))
    }

    /// Returns whether some of the piece is known.
    pub fn touches(&self, piece: &Range<u64>) -> bool {
        self.overlapping(piece).next().is_some()
    }

    /// Sets the content of a piece. The remaining parts of overlapping pieces stay known, without a hash.
    pub fn set(&mut self, piece: Range<u64>, hash: Option<Hash>) {
        let overlapping: Vec<_> = self.overlapping(&piece).collect();
        for (start, end) in overlapping {
            self.pieces.remove(&start);
            if start < piece.start {
                self.pieces.insert(start, (piece.start, None));
            }
            if end > piece.end {
                self.pieces.insert(piece.end, (end, None));
            }
        }
        self.pieces.insert(piece.start, (piece.end, hash));
    }

    /// Returns the start and the end of each piece that has a byte in the range.
    fn overlapping(&self, range: &Range<u64>) -> impl Iterator<Item = (u64, u64)> {
        let range = range.clone();
        let before = self.pieces.range(..range.start).next_back();
        let inside = self.pieces.range(range.start..range.end);
        let all = before.into_iter().chain(inside);
        all.map(|(start, (end, _))| (*start, *end))
            .filter(move |(start, end)| *start < range.end && *end > range.start)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_piece_that_is_written_in_part_is_known_and_not_comparable() {
        let [one, two] = [b"one", b"two"].map(|bytes| Hash::new(bytes));
        let mut known = KnownContent::default();
        known.set(0..100, Some(one));
        assert!(known.is(&(0..100), one) && !known.is(&(0..100), two) && !known.is(&(0..50), one));
        known.set(40..60, Some(two));
        assert!(known.is(&(40..60), two) && !known.is(&(0..40), one) && !known.is(&(0..100), one));
        assert_eq!(known.missing(0..120), vec![100..120]);
        assert!(known.touches(&(99..101)) && !known.touches(&(100..101)));
    }
}
