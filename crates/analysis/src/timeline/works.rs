//! The work of a GPU, in half the memory of its pieces.

use super::work::{Work, WorkKind};
use crate::intervals::Interval;
use gapscope_trace::lookup::NONE;
use std::fmt;
use std::ops::Range;

/// Pieces of work in a block.
pub(super) const BLOCK: usize = 512;

/// All work of a GPU, in order of start.
///
/// Ten million pieces are not rare, and most lie near each other in time and in their tables: a block keeps how far each is from the
/// first of all of them.
#[derive(Default)]
pub struct Works {
    /// Full but for the last.
    blocks: Vec<Block>,
    len: usize,
}

/// Some pieces of work that follow each other.
struct Block {
    first: First,
    packed: Packed,
}

/// What the numbers of a block count from.
#[derive(Clone, Copy)]
struct First {
    start_ns: i64,
    command_buffer: u32,
    /// By the table that they are rows of.
    rows: [u32; WorkKind::COUNT],
}

enum Packed {
    Near(Box<[Near]>),
    /// They are too far from each other.
    Far(Box<[Work]>),
}

/// A piece of work as seen from the first of its block.
#[derive(Clone, Copy)]
struct Near {
    /// Nanoseconds after its start, and the table.
    start: u32,
    length_ns: u32,
    row: u16,
    /// How many rows after its command buffer, or [`NO_COMMAND_BUFFER`].
    command_buffer: u16,
}

const START_BITS: u32 = 30;
const NO_COMMAND_BUFFER: u16 = u16::MAX;

impl First {
    fn of(works: &[Work]) -> First {
        let mut first = First {
            start_ns: works.first().map_or(0, |work| work.interval.start_ns),
            command_buffer: NONE,
            rows: [NONE; WorkKind::COUNT],
        };
        for work in works {
            first.command_buffer = first.command_buffer.min(work.command_buffer);
            let row = &mut first.rows[work.kind() as usize];
            *row = (*row).min(work.row() as u32);
        }
        first
    }

    /// `None` where the work is too far away.
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
        Work::of_source(interval, command_buffer, Work::source(kind, row))
    }
}

impl Block {
    fn of(works: &[Work]) -> Block {
        let first = First::of(works);
        let near: Option<Box<[Near]>> = works.iter().map(|work| first.pack(work)).collect();
        Block {
            first,
            packed: near.map_or_else(|| Packed::Far(works.into()), Packed::Near),
        }
    }

    #[inline]
    fn at(&self, at: usize) -> Work {
        match &self.packed {
            Packed::Near(works) => self.first.unpack(works[at]),
            Packed::Far(works) => works[at],
        }
    }

    /// The pieces from one to before another.
    fn left(&self, range: Range<usize>) -> Left<'_> {
        match &self.packed {
            Packed::Near(works) => Left::Near(self.first, works[range].iter()),
            Packed::Far(works) => Left::Far(works[range].iter()),
        }
    }
}

impl Works {
    /// How many pieces there are.
    pub fn len(&self) -> usize {
        self.len
    }

    /// True where there are none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Appends pieces that come after all others. Those before must fill whole blocks.
    pub(super) fn extend(&mut self, works: &[Work]) {
        debug_assert_eq!(self.len % BLOCK, 0);
        self.blocks.extend(works.chunks(BLOCK).map(Block::of));
        self.len += works.len();
    }

    /// The piece at `at`.
    #[inline]
    pub fn get(&self, at: usize) -> Option<Work> {
        (at < self.len).then(|| self.at(at))
    }

    /// The same, which there must be.
    #[inline]
    pub(crate) fn at(&self, at: usize) -> Work {
        self.blocks[at / BLOCK].at(at % BLOCK)
    }

    /// All pieces.
    pub fn iter(&self) -> Iter<'_> {
        self.range(0..self.len)
    }

    /// Some of them.
    pub(crate) fn range(&self, range: Range<usize>) -> Iter<'_> {
        let mut iter = Iter {
            blocks: self.blocks.get(range.start / BLOCK..).unwrap_or_default(),
            left: Left::Far([].iter()),
            rest: range.len(),
        };
        iter.begin(range.start % BLOCK);
        iter
    }

    /// The blocks one after the other, each gone once the next is asked for.
    pub(super) fn into_blocks(self) -> impl Iterator<Item = Works> {
        self.blocks.into_iter().map(|block| Works {
            len: match &block.packed {
                Packed::Near(works) => works.len(),
                Packed::Far(works) => works.len(),
            },
            blocks: vec![block],
        })
    }

    /// How many of the first pieces are such, where no later one is.
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

    fn into_iter(self) -> Iter<'a> {
        self.iter()
    }
}

/// Pieces of work, one after the other.
pub struct Iter<'a> {
    /// Those that were not begun.
    blocks: &'a [Block],
    /// What is left of the one before.
    left: Left<'a>,
    /// Pieces in `blocks` that are wanted.
    rest: usize,
}

/// What is left of a block.
enum Left<'a> {
    Near(First, std::slice::Iter<'a, Near>),
    Far(std::slice::Iter<'a, Work>),
}

impl Iter<'_> {
    /// Goes to the next block, of which `skipped` pieces are not wanted. False at the end.
    #[cold]
    fn begin(&mut self, skipped: usize) -> bool {
        let Some((block, blocks)) = self.blocks.split_first().filter(|_| self.rest > 0) else {
            return false;
        };
        let end = BLOCK.min(skipped + self.rest);
        self.left = block.left(skipped..end);
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
                Left::Near(first, works) => {
                    if let Some(near) = works.next() {
                        return Some(first.unpack(*near));
                    }
                }
                Left::Far(works) => {
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
            Left::Near(_, works) => works.len(),
            Left::Far(works) => works.len(),
        };
        (left + self.rest, Some(left + self.rest))
    }
}

impl ExactSizeIterator for Iter<'_> {}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

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
