//! Runs the launches of a capture while pages of memory have other bytes than the captured ones, and tells whether they compute the same.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use gapscope_capture::cuda::CudaCapture;
use gapscope_capture::model::{Content, MemoryId};

use super::{Fill, Pages};
use crate::cells;
use crate::error::Error;
use crate::options::Options;
use crate::session::Session;
use crate::stash;
use crate::transfer::{self, Range};

/// The runs with the captured bytes that must all be equal before pages are changed.
const STEADY_RUNS: u32 = 3;
/// The longest time that a launch on changed pages may take: a multiple of what it takes otherwise, and at least so much. A wrong number
/// of iterations would otherwise take the limit of a replay each time.
const TIME_FACTOR: f64 = 50.0;
const MIN_TIME_LIMIT: Duration = Duration::from_secs(1);

/// The bytes of all memory of a capture.
pub type Bytes = BTreeMap<MemoryId, Vec<u8>>;

/// A piece of memory that a launch reaches, with its bytes after the launch where it changed them in the program.
struct Reached {
    range: Range,
    after: Option<Vec<u8>>,
}

/// A capture on a GPU, whose pages can be changed.
pub struct Trial<'a> {
    session: Session<'a>,
    pages: Pages,
    /// The captured bytes before the first launch.
    first: Bytes,
    /// The bytes that memory has in the program, launch after launch.
    captured: Bytes,
    /// The memory that changes there.
    changing: Vec<Range>,
    /// The bytes that memory has here, where runs have looked at it.
    here: Bytes,
    /// The pages with other bytes; `None` where what memory has is not known everywhere.
    known: Option<(Fill, Vec<std::ops::Range<u64>>)>,
    /// The memory that runs were seen to change since these bytes were put there.
    touched: Vec<Range>,
    /// What each launch reaches.
    reached: Vec<Vec<Reached>>,
}

impl<'a> Trial<'a> {
    /// Opens a GPU, and runs the launches on the captured bytes.
    ///
    /// # Errors
    /// The capture cannot be run, or its launches do not compute here what they computed in the program.
    pub fn open(capture: &'a CudaCapture, options: &Options) -> Result<Trial<'a>, Error> {
        let mut session = Session::open(capture, options.device.as_ref())?;
        let stages = 0..session.plan.stages.len();
        let mut longest_ns = 0.0_f64;
        for _ in 0..STEADY_RUNS {
            session.reset()?;
            let run = session.run(stages.clone())?;
            longest_ns = longest_ns.max(run.ns);
            if let Some(different) = run.different.first() {
                let number = session.stage(different.stage).number;
                return Err(Error::Unsupported(format!(
                    "launch {number} does not leave here what it left in the program, so that it cannot be told which pages it needs"
                )));
            }
        }
        let limit = Duration::from_secs_f64(longest_ns * TIME_FACTOR / 1e9);
        session.time_limit = limit.clamp(MIN_TIME_LIMIT, session.time_limit);
        session.reset()?;
        let zeros = |(id, memory): (&MemoryId, &gapscope_capture::cuda::CudaMemory)| {
            (*id, vec![0; memory.bytes as usize])
        };
        let mut first: Bytes = capture.memories.iter().map(zeros).collect();
        put_contents(&mut first, capture, &session.plan.first)?;
        let mut trial = Trial {
            pages: Pages::from_capture(capture)?,
            captured: first.clone(),
            changing: Vec::new(),
            here: first.clone(),
            known: None,
            touched: Vec::new(),
            first,
            reached: Vec::new(),
            session,
        };
        for stage in stages {
            let contents = &trial.session.stage(stage).contents;
            let ranges = contents
                .iter()
                .map(|content| stash::range(capture, content));
            trial.changing.extend(ranges);
            trial.put_contents_of(stage)?;
            trial.session.time(stage)?;
            let cells = cells::cells(capture, trial.session.stage(stage));
            let ranges: Vec<Range> = cells.iter().map(|cell| cell.range).collect();
            let after = trial.read(&ranges, |_, bytes, before| {
                (bytes != before).then(|| bytes.to_vec())
            })?;
            let mut reached = Vec::with_capacity(ranges.len());
            for (range, after) in ranges.into_iter().zip(after) {
                if let Some(bytes) = &after {
                    part_mut(&mut trial.here, range).copy_from_slice(bytes);
                    trial.changing.push(range);
                }
                reached.push(Reached { range, after });
            }
            trial.reached.push(reached);
        }
        Ok(trial)
    }

    /// Returns the pages.
    pub fn pages(&self) -> &Pages {
        &self.pages
    }

    /// Returns the capture.
    pub(super) fn capture(&self) -> &'a CudaCapture {
        self.session.capture
    }

    /// Returns whether all launches compute the same while pages have other bytes. A thorough run looks at all memory that launches reach;
    /// another one looks at what they changed in the program, and at the pages that have other bytes than in the run before.
    ///
    /// # Errors
    /// A launch fails, which ends all use of the GPU by this process, or memory cannot be copied.
    pub fn is_same(
        &mut self,
        fill: Fill,
        spare: &[std::ops::Range<u64>],
        is_thorough: bool,
    ) -> Result<bool, Error> {
        if is_thorough {
            self.forget();
        }
        let changed = self.set_memory(fill, spare)?;
        self.run(changed.as_deref(), |_| ())
    }

    /// Takes what memory has for unknown, so that all of it is put there anew.
    pub(super) fn forget(&mut self) {
        self.known = None;
    }

    /// Gives memory the captured bytes, but for those of the pages `spare`. Returns the pages that had other bytes before; `None`: not
    /// known.
    pub(super) fn set_memory(
        &mut self,
        fill: Fill,
        spare: &[std::ops::Range<u64>],
    ) -> Result<Option<Vec<Range>>, Error> {
        let known = self.known.take();
        let other = known
            .filter(|(of, _)| *of == fill)
            .map(|(_, before)| self.pages.ranges(&difference(&before, spare)));
        let all = match &other {
            Some(other) => {
                let touched = self.touched.iter().chain(other);
                let pieces = touched.flat_map(|range| whole_pieces(&self.first, *range));
                Vec::from_iter(pieces.collect::<BTreeSet<_>>())
            }
            None => self.at_first(),
        };
        self.touched.clear();
        let is_known = other.is_some();
        let ranges = self.pages.ranges(spare);
        let spare_ranges = &ranges;
        let changed = transfer::collect_on_all_cores(all.len(), |index| {
            let range = all[index];
            let mut wanted = part(&self.first, range).to_vec();
            for one in &spare_ranges[first_after(spare_ranges, range)..] {
                if (one.memory, one.offset) >= (range.memory, range.offset + range.bytes) {
                    break;
                }
                let start = one.offset.saturating_sub(range.offset) as usize;
                let end = (one.offset + one.bytes - range.offset).min(range.bytes) as usize;
                fill.put(&mut wanted[start..end]);
            }
            let is_there = is_known && wanted == part(&self.here, range);
            (!is_there).then_some((range, wanted))
        });
        let changed: Vec<_> = changed.into_iter().flatten().collect();
        let session = &mut self.session;
        session.stager.write(
            &session.gpu.driver,
            &session.placed,
            &changed,
            |(_, bytes), to| {
                to.copy_from_slice(bytes);
                Ok(())
            },
        )?;
        for (range, bytes) in changed {
            part_mut(&mut self.here, range).copy_from_slice(&bytes);
        }
        // Allocations at the same address overwrite each other's bytes in the window.
        let is_told = self.session.capture.replaced().next().is_none();
        self.known = is_told.then(|| (fill, spare.to_vec()));
        Ok(other)
    }

    /// Returns the pieces of the memory that has bytes before the first launch: of allocations at the same address, the first one.
    fn at_first(&self) -> Vec<Range> {
        let replaced = self.session.capture.replaced();
        let later: BTreeSet<_> = replaced.map(|(_, later)| later).collect();
        let all = self
            .first
            .iter()
            .filter(|(memory, _)| !later.contains(memory));
        let pieces = all.flat_map(|(memory, bytes)| {
            let range = Range {
                memory: *memory,
                offset: 0,
                bytes: bytes.len() as u64,
            };
            whole_pieces(&self.first, range)
        });
        pieces.collect()
    }

    /// Runs all launches on memory as it is, and returns whether each leaves what it left in the program, in what it changed there and in
    /// `looked_at`, or in all that it reaches. `after_each` gets the pieces that a launch changed here, with their bytes.
    pub(super) fn run(
        &mut self,
        looked_at: Option<&[Range]>,
        mut after_each: impl FnMut(&[(Range, Vec<u8>)]),
    ) -> Result<bool, Error> {
        let reached = std::mem::take(&mut self.reached);
        let mut captured = std::mem::take(&mut self.captured);
        for range in &self.changing {
            part_mut(&mut captured, *range).copy_from_slice(part(&self.first, *range));
        }
        let result = self.run_reaching(&reached, looked_at, &mut captured, &mut after_each);
        (self.reached, self.captured) = (reached, captured);
        result
    }

    fn run_reaching(
        &mut self,
        reached: &[Vec<Reached>],
        looked_at: Option<&[Range]>,
        captured: &mut Bytes,
        after_each: &mut impl FnMut(&[(Range, Vec<u8>)]),
    ) -> Result<bool, Error> {
        for (stage, reached) in reached.iter().enumerate() {
            put_contents(
                captured,
                self.session.capture,
                &self.session.stage(stage).contents,
            )?;
            self.put_contents_of(stage)?;
            self.session.time(stage)?;
            let is_looked_at = |one: &&Reached| {
                let overlaps = |all: &[Range]| {
                    let next = all.get(first_after(all, one.range));
                    next.is_some_and(|next| {
                        let end = (one.range.memory, one.range.offset + one.range.bytes);
                        (next.memory, next.offset) < end
                    })
                };
                one.after.is_some() || looked_at.is_none_or(overlaps)
            };
            let reached: Vec<&Reached> = reached.iter().filter(is_looked_at).collect();
            let ranges: Vec<Range> = reached.iter().map(|one| one.range).collect();
            let found = self.read(&ranges, |index, bytes, before| {
                let original = part(captured, ranges[index]);
                let expected = reached[index].after.as_deref().unwrap_or(original);
                let changed = (bytes != before).then(|| bytes.to_vec());
                (
                    left_the_same([original, expected], [before, bytes]),
                    changed,
                )
            })?;
            let mut is_same = true;
            let mut changed = Vec::new();
            for (one, (is_equal, bytes)) in reached.iter().zip(found) {
                is_same &= is_equal;
                if let Some(bytes) = bytes {
                    part_mut(&mut self.here, one.range).copy_from_slice(&bytes);
                    self.touched.push(one.range);
                    changed.push((one.range, bytes));
                }
                if let Some(after) = &one.after {
                    part_mut(captured, one.range).copy_from_slice(after);
                }
            }
            if !is_same {
                return Ok(false);
            }
            after_each(&changed);
        }
        Ok(true)
    }

    /// Gives memory what the program put there before a launch of the window.
    fn put_contents_of(&mut self, stage: usize) -> Result<(), Error> {
        let contents = std::mem::take(&mut self.session.plan.stages[stage].contents);
        let ranges = contents
            .iter()
            .map(|content| stash::range(self.session.capture, content));
        self.touched.extend(ranges);
        let done = self.session.upload(&contents);
        let put = put_contents(&mut self.here, self.session.capture, &contents);
        self.session.plan.stages[stage].contents = contents;
        done.and(put)
    }

    /// Reads memory, and hands each range to `take` with its bytes and the bytes that it had here before.
    fn read<T: Send + Default>(
        &mut self,
        ranges: &[Range],
        take: impl Fn(usize, &[u8], &[u8]) -> T + Sync,
    ) -> Result<Vec<T>, Error> {
        let session = &mut self.session;
        let here = &self.here;
        session.stager.read(
            &session.gpu.driver,
            &session.placed,
            ranges,
            |index, bytes| take(index, bytes, part(here, ranges[index])),
        )
    }
}

/// Returns the pages that are among one or the other, but not among both.
fn difference(
    one: &[std::ops::Range<u64>],
    other: &[std::ops::Range<u64>],
) -> Vec<std::ops::Range<u64>> {
    let ends = one
        .iter()
        .chain(other)
        .flat_map(|range| [range.start, range.end]);
    let mut ends: Vec<u64> = ends.collect();
    // Where both begin or end, nothing changes.
    ends.sort_unstable();
    let pairs = ends.chunks_exact(2).map(|pair| pair[0]..pair[1]);
    pairs.filter(|range| !range.is_empty()).collect()
}

/// Returns the place of the first range that ends behind the start of another one, among ranges in order.
fn first_after(all: &[Range], range: Range) -> usize {
    all.partition_point(|one| (one.memory, one.offset + one.bytes) <= (range.memory, range.offset))
}

/// Returns the pieces of memory that a range overlaps, whole.
fn whole_pieces(all: &Bytes, range: Range) -> impl Iterator<Item = Range> {
    let memory_bytes = all.get(&range.memory).map_or(0, Vec::len) as u64;
    let pieces = gapscope_capture::pieces(range.offset, range.bytes);
    pieces.map(move |(offset, _)| {
        let start = offset - offset % gapscope_capture::CHUNK_BYTES;
        Range {
            memory: range.memory,
            offset: start,
            bytes: gapscope_capture::CHUNK_BYTES.min(memory_bytes - start),
        }
    })
}

/// Returns the bytes of a range.
fn part(all: &Bytes, range: Range) -> &[u8] {
    let bytes = all.get(&range.memory).map_or(&[][..], Vec::as_slice);
    &bytes[range.offset as usize..(range.offset + range.bytes) as usize]
}

/// Returns the bytes of a range, to be changed.
fn part_mut(all: &mut Bytes, range: Range) -> &mut [u8] {
    let bytes = all
        .get_mut(&range.memory)
        .map_or(&mut [][..], Vec::as_mut_slice);
    &mut bytes[range.offset as usize..(range.offset + range.bytes) as usize]
}

/// Puts contents of a capture into memory.
fn put_contents(
    all: &mut Bytes,
    capture: &CudaCapture,
    contents: &[&Content],
) -> Result<(), Error> {
    for content in contents {
        let mut offset = content.offset;
        for hash in &content.chunks {
            let bytes = capture.chunk(*hash).map_err(Error::Content)?;
            let range = Range {
                memory: content.memory,
                offset,
                bytes: bytes.len() as u64,
            };
            part_mut(all, range).copy_from_slice(&bytes);
            offset += range.bytes;
        }
    }
    Ok(())
}

/// Returns whether a launch left in a piece what it left in the program. Both are given before and after the launch. A byte has the
/// captured value, or is one of those that the launch changed neither there nor here.
fn left_the_same(captured: [&[u8]; 2], here: [&[u8]; 2]) -> bool {
    if here[1] == captured[1] || (captured[0] == captured[1] && here[0] == here[1]) {
        return true;
    }
    let before = captured[0].iter().zip(here[0]);
    let after = captured[1].iter().zip(here[1]);
    before
        .zip(after)
        .all(|((captured_before, here_before), (captured, here))| {
            here == captured || (captured == captured_before && here == here_before)
        })
}

#[cfg(test)]
mod tests {
    use super::{difference, left_the_same};

    #[test]
    fn pages_that_are_in_both_do_not_differ() {
        assert_eq!(difference(&[0..4, 8..9], &[0..2, 4..5, 8..9]), [2..4, 4..5]);
        assert_eq!(difference(&[], &[3..5, 7..8]), [3..5, 7..8]);
        assert_eq!(difference(&[1..9, 20..21], &[1..3, 5..9]), [3..5, 20..21]);
    }

    #[test]
    fn bytes_that_nobody_changed_may_have_any_value() {
        let captured = [&[1, 2, 3, 4][..], &[1, 9, 3, 4][..]];
        // The first byte is written with the value that it had, the second is changed, and the others are left alone.
        assert!(left_the_same(captured, [&[7, 7, 7, 7], &[1, 9, 7, 7]]));
        assert!(left_the_same(captured, captured));
        // The change depends on what was there, and a byte is changed that was not.
        assert!(!left_the_same(captured, [&[7, 7, 7, 7], &[1, 14, 7, 7]]));
        assert!(!left_the_same(captured, [&[7, 7, 7, 7], &[1, 9, 7, 8]]));
        // A launch that no longer writes.
        assert!(!left_the_same(captured, [&[7, 7, 7, 7], &[7, 7, 7, 7]]));
    }
}
