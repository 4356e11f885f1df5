//! Numbers that order and count rows, although many threads add rows at once.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// The numbers that a shard (the rows of some threads) takes at once, so that threads do not wait for one cache line.
const BLOCK: u64 = 32;

/// The numbers of one kind of row, over all shards. Those of one thread increase, and those of several threads are in
/// order up to a block. The type has a cache line of its own.
#[repr(align(128))]
#[derive(Debug, Default)]
pub(super) struct Sequence(AtomicU64);

/// The numbers that a shard has taken and not used.
#[derive(Debug, Default)]
pub(super) struct Block {
    /// The next number to be used.
    next: u64,
    /// The number behind the last one that was taken.
    end: u64,
}

impl Sequence {
    pub fn reset(&self) {
        self.0.store(0, Relaxed);
    }

    /// Returns the next number if it is below `limit`; the shard takes another block of numbers when its own is used
    /// up. With a small limit, no shard keeps unused numbers.
    #[inline]
    pub fn next(&self, block: &mut Block, limit: u64) -> Option<u64> {
        if block.next == block.end {
            let size = BLOCK.min(limit / 1024).max(1);
            block.next = self.0.fetch_add(size, Relaxed);
            block.end = block.next + size;
        }
        let number = block.next;
        block.next += 1;
        (number < limit).then_some(number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_number_is_given_twice_and_none_past_the_limit() {
        for limit in [0, 3, 100_000] {
            let sequence = Sequence::default();
            let mut blocks = [Block::default(), Block::default(), Block::default()];
            let mut given = std::collections::BTreeSet::new();
            for index in 0..2 * limit as usize + 3 {
                let block = &mut blocks[index % 3];
                let last = block.next.max(1) - 1;
                if let Some(number) = sequence.next(block, limit) {
                    assert!(given.insert(number) && number >= last && number < limit);
                }
            }
            let unused = (limit as usize).saturating_sub(given.len());
            assert_eq!(unused, 0, "limit {limit}");
        }
    }
}
