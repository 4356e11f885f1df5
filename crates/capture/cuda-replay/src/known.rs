//! Keeps the hashes of pieces of memory whose bytes are known. A write to a part of a piece makes the rest unknown.

use std::collections::BTreeMap;

use gapscope_capture::Hash;
use gapscope_capture::model::MemoryId;

/// The hashes of pieces that do not overlap.
#[derive(Debug, Clone, Default)]
pub struct KnownHashes {
    /// By memory and first byte: the size and the hash.
    pieces: BTreeMap<(MemoryId, u64), (u64, Hash)>,
}

impl KnownHashes {
    /// Adds a piece, and forgets those that it overlaps.
    pub fn insert(&mut self, memory: MemoryId, offset: u64, bytes: u64, hash: Hash) {
        self.forget(memory, offset, bytes);
        self.pieces.insert((memory, offset), (bytes, hash));
    }

    /// Forgets the pieces that overlap a range.
    pub fn forget(&mut self, memory: MemoryId, offset: u64, bytes: u64) {
        let end = offset.saturating_add(bytes);
        loop {
            let last = self.pieces.range((memory, 0)..(memory, end)).next_back();
            match last {
                Some((&key, &(size, _))) if key.1.saturating_add(size) > offset => {
                    self.pieces.remove(&key);
                }
                _ => return,
            }
        }
    }

    /// Returns the hash of a piece; `None` unless this very piece is known.
    pub fn get(&self, memory: MemoryId, offset: u64, bytes: u64) -> Option<Hash> {
        let (size, hash) = self.pieces.get(&(memory, offset))?;
        (*size == bytes).then_some(*hash)
    }

    /// Returns all pieces in order: memory, first byte, size, hash.
    pub fn all(&self) -> impl Iterator<Item = (MemoryId, u64, u64, Hash)> {
        let each = self.pieces.iter();
        each.map(|(&(memory, offset), &(bytes, hash))| (memory, offset, bytes, hash))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_write_to_a_part_makes_the_piece_unknown() {
        let (m, other) = (MemoryId(1), MemoryId(2));
        let [a, b] = [b"a", b"b"].map(|text| Hash::new(text));
        let mut known = KnownHashes::default();
        known.insert(m, 0, 64, a);
        known.insert(m, 64, 64, a);
        known.insert(m, 128, 64, a);
        known.insert(other, 64, 64, a);
        known.insert(m, 100, 40, b);
        assert_eq!(known.get(m, 0, 64), Some(a));
        assert_eq!(known.get(m, 64, 64), None);
        assert_eq!(known.get(m, 128, 64), None);
        assert_eq!(known.get(m, 100, 40), Some(b));
        assert_eq!(known.get(m, 100, 41), None);
        assert_eq!(known.get(other, 64, 64), Some(a));
        known.insert(m, 0, 200, b);
        assert_eq!(known.all().count(), 2);
    }
}
