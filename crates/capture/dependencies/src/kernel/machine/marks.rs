//! Marks the scalars of a buffer that invocations reach, with one bit for reads and one for writes; [`Marks::set_of`]
//! turns them into sets of bytes.
//!
//! A mark is a bit for a scalar at a multiple of the scalar's size; a lane is one of the invocations that run
//! together, and a side is reads or writes.

use crate::bytes::ByteSet;
use crate::kernel::program::Direction;

/// Number of marks in a page.
const PAGE: u64 = 1 << 15;
/// Number of words of 64 marks in a page.
const WORDS: usize = (PAGE / 64) as usize;
/// The marks of a page; `None` while none of them is set.
type Page = Option<Box<[u64; WORDS]>>;

/// The scalars of a buffer that invocations read and wrote.
#[derive(Debug)]
pub(crate) struct Marks {
    /// Size of the buffer.
    bytes: u64,
    /// Binary logarithm of the number of bytes that one mark stands for.
    scale: u32,
    /// The scalars that were read; `written` has those that were written.
    pub read: ReachedScalars,
    pub written: ReachedScalars,
    /// Whether bytes were reached that do not begin and end where marks do.
    pub uneven: bool,
}

/// The scalars of a buffer that invocations reach in one direction.
#[derive(Debug, Default)]
pub(crate) struct ReachedScalars {
    bits: Bits,
    /// Whether bytes beyond the buffer's end were reached.
    pub outside: bool,
    /// The sum of hashes of all pairs of invocation and bytes. Runs in which the same invocations reach the same
    /// bytes have equal sums.
    pub map: u128,
}

/// A set of bits, in pages that are allocated when a bit of them is set.
#[derive(Debug, Default)]
struct Bits {
    pages: Vec<Page>,
    /// Number of pages with a mark.
    allocated: u64,
}

impl Marks {
    /// Makes empty marks for a buffer of `bytes` bytes with scalars of `scalar_bytes` bytes.
    pub fn new(bytes: u64, scalar_bytes: u32) -> Marks {
        Marks {
            bytes,
            scale: scalar_bytes.max(1).trailing_zeros(),
            read: ReachedScalars::default(),
            written: ReachedScalars::default(),
            uneven: false,
        }
    }

    /// Returns the sides that an access in a direction reaches: both for an atomic operation.
    fn sides(&mut self, direction: Direction) -> impl Iterator<Item = &mut ReachedScalars> {
        let read = direction.reads().then_some(&mut self.read);
        let written = direction.writes().then_some(&mut self.written);
        read.into_iter().chain(written)
    }

    /// Marks `bytes` bytes from the offset of each active lane on. `first` is the number of the invocation in lane 0.
    pub fn mark(
        &mut self,
        offsets: &[u64],
        first: u64,
        active: u64,
        bytes: u32,
        direction: Direction,
    ) {
        let mut run: Option<(u64, u64)> = None;
        let mut map = 0_u128;
        for (lane, begin) in offsets.iter().enumerate() {
            if active >> lane & 1 == 0 {
                continue;
            }
            let end = match begin.checked_add(bytes.into()) {
                Some(end) if end <= self.bytes => end,
                _ => {
                    self.sides(direction).for_each(|side| side.outside = true);
                    continue;
                }
            };
            map = map.wrapping_add(mixed(first + lane as u64, *begin, bytes));
            run = Some(match run {
                Some((from, to)) if to == *begin => (from, end),
                Some((from, to)) if from <= *begin && end <= to => (from, to),
                Some((from, to)) => {
                    self.set(from, to, direction);
                    (*begin, end)
                }
                None => (*begin, end),
            });
        }
        if let Some((from, to)) = run {
            self.set(from, to, direction);
        }
        for side in self.sides(direction) {
            side.map = side.map.wrapping_add(map);
        }
    }

    /// Marks the bytes of a range, widened to whole marks.
    fn set(&mut self, from: u64, to: u64, direction: Direction) {
        let rest = (1 << self.scale) - 1;
        self.uneven |= (from | to) & rest != 0;
        let (from, to) = (from >> self.scale, (to + rest) >> self.scale);
        for side in self.sides(direction) {
            side.bits.set(from, to);
        }
    }

    /// Adds the marks of another thread.
    pub fn join(&mut self, other: Marks) {
        for (side, other) in [
            (&mut self.read, other.read),
            (&mut self.written, other.written),
        ] {
            side.bits.join(other.bits);
            side.outside |= other.outside;
            side.map = side.map.wrapping_add(other.map);
        }
        self.uneven |= other.uneven;
    }

    /// Returns the number of bytes of memory that the marks take.
    pub fn memory_bytes(&self) -> u64 {
        let sides = [&self.read.bits, &self.written.bits];
        let each = sides.map(|bits| bits.allocated * PAGE / 8 + bits.pages.len() as u64 * 8);
        each.iter().sum()
    }

    /// Returns the bytes that were reached in one direction; `None` if they have more than `most` ranges.
    pub fn set_of(&self, side: &ReachedScalars, most: usize) -> Option<ByteSet> {
        side.bits.ranges(self.scale, self.bytes, most)
    }
}

/// Hashes an invocation with the bytes that it reaches, by two finalizers of SplitMix64 with different constants.
fn mixed(invocation: u64, begin: u64, bytes: u32) -> u128 {
    let half = |seed: u64| {
        let both = invocation.wrapping_mul(seed).rotate_left(31) ^ begin.wrapping_add(seed);
        let mut word = both.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ u64::from(bytes);
        word = (word ^ word >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        word = (word ^ word >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        word ^ word >> 31
    };
    let (low, high) = (half(0xd6e8_feb8_6659_fd93), half(0xa076_1d64_78bd_642f));
    u128::from(low) | u128::from(high) << 64
}

impl Bits {
    /// Sets the bits from `from` to before `to`.
    fn set(&mut self, from: u64, to: u64) {
        let mut at = from;
        while at < to {
            let page = (at / PAGE) as usize;
            let end = to.min((at / PAGE + 1) * PAGE);
            if self.pages.len() <= page {
                self.pages.resize(page + 1, None);
            }
            let words = match &mut self.pages[page] {
                Some(words) => words,
                missing => {
                    self.allocated += 1;
                    missing.insert(Box::new([0; WORDS]))
                }
            };
            let (first, last) = (at % PAGE, (end - 1) % PAGE);
            let (low, high) = ((first / 64) as usize, (last / 64) as usize);
            let from_first = u64::MAX << (first % 64);
            let to_last = u64::MAX >> (63 - last % 64);
            if low == high {
                words[low] |= from_first & to_last;
            } else {
                words[low] |= from_first;
                words[low + 1..high].fill(u64::MAX);
                words[high] |= to_last;
            }
            at = end;
        }
    }

    fn join(&mut self, other: Bits) {
        if self.pages.len() < other.pages.len() {
            self.pages.resize(other.pages.len(), None);
        }
        for (page, other) in self.pages.iter_mut().zip(other.pages) {
            match (page, other) {
                (_, None) => {}
                (Some(words), Some(other)) => {
                    words.iter_mut().zip(*other).for_each(|(a, b)| *a |= b);
                }
                (missing, other) => {
                    self.allocated += 1;
                    *missing = other;
                }
            }
        }
    }

    /// Returns the runs of set bits as ranges of bytes, each bit for 2 to the power of `scale` bytes and none beyond
    /// `bytes`; `None` if there are more than `most`.
    fn ranges(&self, scale: u32, bytes: u64, most: usize) -> Option<ByteSet> {
        let mut ranges = Vec::new();
        let mut open: Option<u64> = None;
        let mut close = |open: &mut Option<u64>, at: u64| {
            if let Some(from) = open.take() {
                ranges.push(from << scale..(at << scale).min(bytes));
            }
            ranges.len() <= most
        };
        for (number, page) in self.pages.iter().enumerate() {
            let begin = number as u64 * PAGE;
            let Some(words) = page else {
                if !close(&mut open, begin) {
                    return None;
                }
                continue;
            };
            for (index, word) in words.iter().enumerate() {
                let begin = begin + index as u64 * 64;
                match *word {
                    u64::MAX => {
                        open.get_or_insert(begin);
                    }
                    0 => {
                        if !close(&mut open, begin) {
                            return None;
                        }
                    }
                    word => {
                        let mut at = 0;
                        while at < 64 {
                            let rest = word >> at;
                            let is_set = rest & 1 == 1;
                            if is_set {
                                open.get_or_insert(begin + at);
                                at += u64::from(rest.trailing_ones());
                            } else {
                                if !close(&mut open, begin + at) {
                                    return None;
                                }
                                at += u64::from(rest.trailing_zeros()).max(1);
                            }
                        }
                    }
                }
            }
        }
        let end = self.pages.len() as u64 * PAGE;
        close(&mut open, end).then(|| ByteSet::from_sorted(ranges))
    }
}
