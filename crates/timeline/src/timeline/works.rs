//! Stores the work of a GPU in blocks that take half the memory of the unpacked pieces.

use super::work::{Work, WorkKind};
use crate::intervals::Interval;
use gapscope_trace::lookup::NONE;
use std::fmt;
use std::ops::Range;

/// The number of pieces of work in a block.
pub(super) const BLOCK: usize = 512;

/// All work of a GPU, in order of start.
///
/// Ten million pieces are not rare, and most lie near each other in time and in their tables: a block keeps how far
/// each piece is from the block's origin.
#[derive(Default)]
pub struct Works {
    /// The blocks, all of which are full but the last.
    blocks: Vec<Block>,
    len: usize,
}

/// A block of consecutive pieces of work.
struct Block {
    origin: Origin,
    packed: Packed,
}

/// The least values in a block, relative to which its pieces are stored.
#[derive(Clone, Copy)]
struct Origin {
    start_ns: i64,
    command_buffer: u32,
    /// The least row of each kind of work.
    rows: [u32; WorkKind::COUNT],
}

/// The pieces of a block.
enum Packed {
    /// The pieces relative to the block's origin.
    Near(Box<[Near]>),
    /// The pieces as they are, where they are too far from each other to be packed.
    Far(Box<[Work]>),
}

/// A piece of work relative to the origin of its block.
#[derive(Clone, Copy)]
struct Near {
    /// The nanoseconds since the origin in the lower [`START_BITS`] bits, and the kind above them.
    start: u32,
    length_ns: u32,
    /// The number of rows after the origin's row of the same kind.
    row: u16,
    /// The number of rows after the origin's command buffer, or [`NO_COMMAND_BUFFER`].
    command_buffer: u16,
}

/// The number of bits of [`Near::start`] that hold the time.
const START_BITS: u32 = 30;
/// Stands for a piece of work in no command buffer.
const NO_COMMAND_BUFFER: u16 = u16::MAX;

impl Origin {
    fn new(works: &[Work]) -> Origin {
        let mut origin = Origin {
            start_ns: works.first().map_or(0, |work| work.interval.start_ns),
            command_buffer: NONE,
            rows: [NONE; WorkKind::COUNT],
        };
        for work in works {
            origin.command_buffer = origin.command_buffer.min(work.command_buffer);
            let row = &mut origin.rows[work.kind() as usize];
            *row = (*row).min(work.row() as u32);
        }
        origin
    }

    /// Packs a piece of work; returns `None` where it is too far away.
    #[inline]
    fn pack(&self, work: &Work) -> Option<Near> {
        let kind = work.kind();
        let start = work.interval.start_ns.checked_sub(self.start_ns)?;
        let start = u32::try_from(start)
            .ok()
            .filter(|at| at >> START_BITS == 0)?;
        let length = (work.interval.end_ns).checked_sub(work.interval.start_ns)?;
        let after =
            |first: u32, of: u32| of.checked_sub(first).and_then(|by| u16::try_from(by).ok());
        let command_buffer = match work.command_buffer {
            NONE => NO_COMMAND_BUFFER,
            row => after(self.command_buffer, row).filter(|by| *by != NO_COMMAND_BUFFER)?,
        };
        Some(Near {
            start: (kind as u32) << START_BITS | start,
            length_ns: u32::try_from(length).ok()?,
            row: after(self.rows[kind as usize], work.row() as u32)?,
            command_buffer,
        })
    }

    /// Returns the piece of work that [`Self::pack`] packed.
    #[inline]
    fn unpack(&self, near: Near) -> Work {
        let start_ns = self.start_ns + i64::from(near.start & ((1 << START_BITS) - 1));
        let kind = near.start >> START_BITS;
        let row = self.rows[kind as usize] + u32::from(near.row);
        let command_buffer = match near.command_buffer {
            NO_COMMAND_BUFFER => NONE,
            by => self.command_buffer + u32::from(by),
        };
        let interval = Interval::new(start_ns, start_ns + i64::from(near.length_ns));
        Work::from_source(interval, command_buffer, Work::source(kind, row))
    }
}

impl Block {
    fn new(works: &[Work]) -> Block {
        let origin = Origin::new(works);
        let near: Option<Box<[Near]>> = works.iter().map(|work| origin.pack(work)).collect();
        Block {
            origin,
            packed: near.map_or_else(|| Packed::Far(works.into()), Packed::Near),
        }
    }

    #[inline]
    fn at(&self, at: usize) -> Work {
        match &self.packed {
            Packed::Near(works) => self.origin.unpack(works[at]),
            Packed::Far(works) => works[at],
        }
    }

    /// Returns an iterator over the pieces in a range of indices within the block.
    fn range(&self, range: Range<usize>) -> BlockIter<'_> {
        match &self.packed {
            Packed::Near(works) => BlockIter::Near(self.origin, works[range].iter()),
            Packed::Far(works) => BlockIter::Far(works[range].iter()),
        }
    }
}

impl Works {
    /// Returns the number of pieces.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns true where there are no pieces.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Appends pieces that come after all others. The pieces before them must fill whole blocks.
    pub(super) fn extend(&mut self, works: &[Work]) {
        debug_assert_eq!(self.len % BLOCK, 0);
        self.blocks.extend(works.chunks(BLOCK).map(Block::new));
        self.len += works.len();
    }

    /// Returns the piece at an index.
    #[inline]
    pub fn get(&self, at: usize) -> Option<Work> {
        (at < self.len).then(|| self.at(at))
    }

    /// Returns the piece at an index that is within bounds.
    ///
    /// # Panics
    /// If the index is out of bounds.
    #[inline]
    pub fn at(&self, at: usize) -> Work {
        self.blocks[at / BLOCK].at(at % BLOCK)
    }

    /// Returns all pieces.
    #[inline]
    pub fn iter(&self) -> Iter<'_> {
        self.range(0..self.len)
    }

    /// Returns the pieces in a range of indices.
    pub fn range(&self, range: Range<usize>) -> Iter<'_> {
        let mut iter = Iter {
            blocks: self.blocks.get(range.start / BLOCK..).unwrap_or_default(),
            left: BlockIter::Far([].iter()),
            rest: range.len(),
        };
        iter.begin(range.start % BLOCK);
        iter
    }

    /// Returns each block as its own [`Works`], in order. Each block's memory is freed when the item is dropped.
    pub(super) fn into_blocks(self) -> impl Iterator<Item = Works> {
        self.blocks.into_iter().map(|block| Works {
            len: match &block.packed {
                Packed::Near(works) => works.len(),
                Packed::Far(works) => works.len(),
            },
            blocks: vec![block],
        })
    }

    /// Returns the index of the first piece for which `is` is false, as [`slice::partition_point`] does: `is` must be
    /// true for all pieces before one and false for all after.
    pub fn partition_point(&self, mut is: impl FnMut(&Work) -> bool) -> usize {
        let whole = (self.blocks).partition_point(|block| is(&block.at(0)));
        let begin = whole.saturating_sub(1) * BLOCK;
        let (mut from, mut to) = (begin, self.len.min(begin + BLOCK));
        while from < to {
            let middle = from.midpoint(to);
            match is(&self.at(middle)) {
                true => from = middle + 1,
                false => to = middle,
            }
        }
        from
    }
}

impl fmt::Debug for Works {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self).finish()
    }
}

impl<'a> IntoIterator for &'a Works {
    type Item = Work;
    type IntoIter = Iter<'a>;

    #[inline]
    fn into_iter(self) -> Iter<'a> {
        self.iter()
    }
}

/// An iterator over pieces of work.
pub struct Iter<'a> {
    /// The blocks that iteration has not reached.
    blocks: &'a [Block],
    /// The rest of the block that iteration is in.
    left: BlockIter<'a>,
    /// The number of pieces of `blocks` that are in the range.
    rest: usize,
}

/// An iterator over the pieces of a block.
enum BlockIter<'a> {
    /// The packed pieces, with the origin of their block.
    Near(Origin, std::slice::Iter<'a, Near>),
    Far(std::slice::Iter<'a, Work>),
}

impl Iter<'_> {
    /// Begins the next block after its first `skipped` pieces. Returns false at the end.
    #[cold]
    fn begin(&mut self, skipped: usize) -> bool {
        let Some((block, blocks)) = self.blocks.split_first().filter(|_| self.rest > 0) else {
            return false;
        };
        let end = BLOCK.min(skipped + self.rest);
        self.left = block.range(skipped..end);
        self.rest -= end - skipped;
        self.blocks = blocks;
        true
    }
}

impl Iterator for Iter<'_> {
    type Item = Work;

    #[inline]
    fn next(&mut self) -> Option<Work> {
        loop {
            match &mut self.left {
                BlockIter::Near(origin, works) => {
                    if let Some(near) = works.next() {
                        return Some(origin.unpack(*near));
                    }
                }
                BlockIter::Far(works) => {
                    if let Some(work) = works.next() {
                        return Some(*work);
                    }
                }
            }
            if !self.begin(0) {
                return None;
            }
        }
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = match &self.left {
            BlockIter::Near(_, works) => works.len(),
            BlockIter::Far(works) => works.len(),
        };
        (left + self.rest, Some(left + self.rest))
    }
}

impl ExactSizeIterator for Iter<'_> {}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Generates work at and beyond the limits of what can be packed.
    fn work() -> impl Strategy<Value = Work> {
        let kind = prop::sample::select(vec![
            WorkKind::Dispatch,
            WorkKind::Transfer,
            WorkKind::Opaque,
            WorkKind::CommandBuffer,
        ]);
        let start_ns = prop_oneof![0..1000i64, -(1i64 << 60)..1 << 60, Just(1 << 30)];
        let length_ns = prop_oneof![
            0..1000i64,
            0..1i64 << 60,
            Just(1 << 32),
            Just((1 << 32) - 1)
        ];
        let row = prop_oneof![0..100u32, 0..1u32 << 30, Just(1 << 16), Just((1 << 16) - 1)];
        let command_buffer = prop_oneof![0..9u32, Just(NONE), Just(0xffff), Just(0xfffe)];
        (kind, start_ns, length_ns, row, command_buffer).prop_map(
            |(kind, start_ns, length_ns, row, command_buffer)| {
                let interval = Interval::new(start_ns, start_ns + length_ns);
                Work::new(interval, command_buffer, kind, row as usize)
            },
        )
    }

    proptest! {
        #[test]
        fn what_is_packed_comes_out_as_it_was(
            mut few in prop::collection::vec(work(), 1..40),
            times in 1usize..60,
            range in (0usize..2500, 0usize..2500),
        ) {
            few.sort_by_key(|work| work.interval.start_ns);
            let all: Vec<Work> = few.iter().flat_map(|work| vec![*work; times]).collect();
            let mut works = Works::default();
            works.extend(&all);
            prop_assert_eq!(works.len(), all.len());
            prop_assert_eq!(works.iter().collect::<Vec<_>>(), all.clone());
            prop_assert_eq!(works.iter().size_hint().0, all.len());
            prop_assert!(all.iter().enumerate().all(|(at, work)| works.get(at) == Some(*work)));
            prop_assert_eq!(works.get(all.len()), None);
            let (from, to) = (range.0.min(all.len()), range.1.min(all.len()));
            let range = from.min(to)..from.max(to);
            prop_assert_eq!(works.range(range.clone()).collect::<Vec<_>>(), &all[range.clone()]);
            let split = all.get(from).map_or(i64::MAX, |work| work.interval.start_ns);
            prop_assert_eq!(
                works.partition_point(|work| work.interval.start_ns < split),
                all.partition_point(|work| work.interval.start_ns < split)
            );
        }
    }

    #[test]
    fn what_is_near_takes_half_of_the_memory() {
        assert_eq!((size_of::<Near>(), size_of::<Work>()), (12, 24));
        let work = |at: i64| {
            let interval = Interval::new(at * 1000, at * 1000 + 900);
            Work::new(interval, at as u32 / 50, WorkKind::Dispatch, at as usize)
        };
        let mut works = Works::default();
        works.extend(&(0..5000).map(work).collect::<Vec<_>>());
        let near = |block: &Block| matches!(block.packed, Packed::Near(_));
        assert!(works.blocks.iter().all(near));
    }
}
