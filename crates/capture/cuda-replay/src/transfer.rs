//! Copies content from a capture to memory and hashes memory, through page-locked memory of the host in two halves: while
//! one half is copied, all cores decompress or hash the other one.

use std::sync::atomic::{AtomicUsize, Ordering};

use gapscope_capture::Hash;
use gapscope_capture::cuda::CudaCapture;
use gapscope_capture::model::{Content, MemoryId};

use crate::driver::Driver;
use crate::error::Error;
use crate::memory::{MemoryAddress, Placed};

/// The size of each half.
const HALF_BYTES: usize = 64 << 20;
/// The size of each half where there is little to copy; page-locked memory takes time to make.
const SMALL_HALF_BYTES: usize = 4 << 20;

/// A range of a memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Range {
    pub memory: MemoryId,
    pub offset: u64,
    pub bytes: u64,
}

/// Page-locked memory of the host for copies.
pub struct Stager {
    halves: [*mut u8; 2],
    half_bytes: usize,
}

// SAFETY: the memory is used by whoever has the stager.
unsafe impl Send for Stager {}

/// A piece in a half: where it begins there, and its range.
type Staged = (usize, Range);

impl Stager {
    /// Makes the memory, for a capture with so many bytes.
    pub fn new(driver: &Driver, bytes: u64) -> Result<Stager, Error> {
        let half_bytes = match bytes > 4 * SMALL_HALF_BYTES as u64 {
            true => HALF_BYTES,
            false => SMALL_HALF_BYTES,
        };
        Ok(Stager {
            halves: [
                driver.allocate_host(half_bytes)?,
                driver.allocate_host(half_bytes)?,
            ],
            half_bytes,
        })
    }

    /// Copies the pieces of contents to their memory.
    pub fn upload(
        &mut self,
        driver: &Driver,
        placed: &Placed,
        capture: &CudaCapture,
        contents: &[&Content],
    ) -> Result<(), Error> {
        let mut pieces = Vec::new();
        for content in contents {
            let mut offset = content.offset;
            for hash in &content.chunks {
                let bytes = capture.chunk_bytes(*hash).map_or(0, u64::from);
                pieces.push((
                    Range {
                        memory: content.memory,
                        offset,
                        bytes,
                    },
                    *hash,
                ));
                offset += bytes;
            }
        }
        self.write(driver, placed, &pieces, |(_, hash), to| {
            let bytes = capture.chunk(*hash).map_err(Error::Content)?;
            to.copy_from_slice(&bytes);
            Ok(())
        })
    }

    /// Fills pieces by `fill`, on all cores, and copies them to their memory.
    pub fn write<T: Sync>(
        &mut self,
        driver: &Driver,
        placed: &Placed,
        pieces: &[(Range, T)],
        fill: impl Fn(&(Range, T), &mut [u8]) -> Result<(), Error> + Sync,
    ) -> Result<(), Error> {
        let ranges: Vec<Range> = pieces.iter().map(|(range, _)| *range).collect();
        let mut is_copying = false;
        for (number, (first, batch)) in batches(&ranges, self.half_bytes)?.into_iter().enumerate() {
            let half = self.halves[number % 2];
            let base = half.expose_provenance();
            on_all_cores(batch.len(), |index| {
                let (at, range) = batch[index];
                let to = std::ptr::with_exposed_provenance_mut::<u8>(base + at);
                // SAFETY: the pieces of a batch do not overlap and lie in the half, and the copies from it have ended.
                let to = unsafe { std::slice::from_raw_parts_mut(to, range.bytes as usize) };
                fill(&pieces[first + index], to)
            })?;
            // The copies from the other half, which is filled next.
            if is_copying {
                driver.finish()?;
            }
            for (at, range) in &joined(&batch) {
                let from = half.wrapping_add(*at);
                let bytes = range.bytes as usize;
                match placed.place(range.memory)? {
                    // SAFETY: the half stays as it is until the copies were waited for.
                    MemoryAddress::Device(address) => unsafe {
                        driver.copy_to_device(address + range.offset, from, bytes)?;
                    },
                    // SAFETY: the memory is mapped, and no kernel runs.
                    MemoryAddress::Host(address) => unsafe {
                        std::ptr::copy_nonoverlapping(from, host(address + range.offset), bytes);
                    },
                }
            }
            is_copying = true;
        }
        driver.finish()
    }

    /// Copies ranges to the host, and hands each to `take`, on all cores, with its index. Returns the answers in order.
    pub fn read<T: Send + Default>(
        &mut self,
        driver: &Driver,
        placed: &Placed,
        ranges: &[Range],
        take: impl Fn(usize, &[u8]) -> T + Sync,
    ) -> Result<Vec<T>, Error> {
        let mut all: Vec<T> = Vec::with_capacity(ranges.len());
        let mut waiting: Option<(usize, Vec<Staged>, *mut u8)> = None;
        let mut finish = |(first, batch, half): (usize, Vec<Staged>, *mut u8)| {
            let base = half.expose_provenance();
            let taken = collect_on_all_cores(batch.len(), |index| {
                let (at, range) = batch[index];
                let from = std::ptr::with_exposed_provenance::<u8>(base + at);
                // SAFETY: the copies to this half have ended, and the pieces lie in it.
                let from = unsafe { std::slice::from_raw_parts(from, range.bytes as usize) };
                take(first + index, from)
            });
            all.extend(taken);
        };
        for (number, (first, batch)) in batches(ranges, self.half_bytes)?.into_iter().enumerate() {
            let half = self.halves[number % 2];
            for (at, range) in &joined(&batch) {
                let to = half.wrapping_add(*at);
                let bytes = range.bytes as usize;
                match placed.place(range.memory)? {
                    // SAFETY: nothing else uses the half until the copies were waited for.
                    MemoryAddress::Device(address) => unsafe {
                        driver.copy_to_host(to, address + range.offset, bytes)?;
                    },
                    // SAFETY: the memory is mapped, and no kernel runs.
                    MemoryAddress::Host(address) => unsafe {
                        std::ptr::copy_nonoverlapping(host(address + range.offset), to, bytes);
                    },
                }
            }
            if let Some(before) = waiting.take() {
                finish(before);
            }
            driver.finish()?;
            waiting = Some((first, batch, half));
        }
        if let Some(last) = waiting {
            finish(last);
        }
        Ok(all)
    }

    /// Returns the hashes of ranges.
    pub fn hashes(
        &mut self,
        driver: &Driver,
        placed: &Placed,
        ranges: &[Range],
    ) -> Result<Vec<Hash>, Error> {
        let hashes = self.read(driver, placed, ranges, |_, bytes| Some(Hash::new(bytes)))?;
        Ok(hashes.into_iter().flatten().collect())
    }

    /// Returns the bytes of ranges.
    pub fn bytes(
        &mut self,
        driver: &Driver,
        placed: &Placed,
        ranges: &[Range],
    ) -> Result<Vec<Vec<u8>>, Error> {
        self.read(driver, placed, ranges, |_, bytes| bytes.to_vec())
    }
}

/// Returns a pointer to memory of the host that this process has mapped.
fn host(address: u64) -> *mut u8 {
    std::ptr::with_exposed_provenance_mut(address as usize)
}

/// Splits ranges into batches that fit into a half, each with the index of its first range.
fn batches(ranges: &[Range], half_bytes: usize) -> Result<Vec<(usize, Vec<Staged>)>, Error> {
    let mut all: Vec<(usize, Vec<Staged>)> = Vec::new();
    let mut used = half_bytes;
    for (index, range) in ranges.iter().enumerate() {
        let bytes = usize::try_from(range.bytes)
            .ok()
            .filter(|bytes| *bytes <= half_bytes);
        let Some(bytes) = bytes else {
            let bytes = range.bytes;
            return Err(Error::Unsupported(format!(
                "a piece of content has {bytes} bytes"
            )));
        };
        if half_bytes - used < bytes {
            all.push((index, Vec::new()));
            used = 0;
        }
        if let Some((_, batch)) = all.last_mut() {
            batch.push((used, *range));
        }
        used += bytes;
    }
    Ok(all)
}

/// Joins the neighbours of a batch that are neighbours in memory, too, so that each is one copy.
fn joined(batch: &[Staged]) -> Vec<Staged> {
    let mut all: Vec<Staged> = Vec::new();
    for (at, range) in batch {
        match all.last_mut() {
            Some((_, last))
                if last.memory == range.memory && last.offset + last.bytes == range.offset =>
            {
                last.bytes += range.bytes;
            }
            _ => all.push((*at, *range)),
        }
    }
    all
}

/// Calls `work` for each number below `count`, on all cores, until one fails.
fn on_all_cores(
    count: usize,
    work: impl Fn(usize) -> Result<(), Error> + Sync,
) -> Result<(), Error> {
    let results = collect_on_all_cores(count, |index| Some(work(index)));
    results.into_iter().flatten().collect()
}

/// Returns the results of `work` for each number below `count`, computed on all cores.
pub fn collect_on_all_cores<T: Send + Default>(
    count: usize,
    work: impl Fn(usize) -> T + Sync,
) -> Vec<T> {
    /// Numbers that a thread takes at once.
    const AT_ONCE: usize = 8;
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let threads = cores.min(count.div_ceil(AT_ONCE));
    if threads <= 1 {
        return (0..count).map(work).collect();
    }
    let next = AtomicUsize::new(0);
    let worker = || {
        let mut done = Vec::new();
        loop {
            let first = next.fetch_add(AT_ONCE, Ordering::Relaxed);
            if first >= count {
                return done;
            }
            done.extend((first..count.min(first + AT_ONCE)).map(|index| (index, work(index))));
        }
    };
    let mut all: Vec<T> = std::iter::repeat_with(T::default).take(count).collect();
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(worker)).collect();
        for worker in workers {
            let done = worker
                .join()
                .unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            for (index, result) in done {
                all[index] = result;
            }
        }
    });
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range(memory: u32, offset: u64, bytes: u64) -> Range {
        Range {
            memory: MemoryId(memory),
            offset,
            bytes,
        }
    }

    #[test]
    fn batches_fit_and_neighbours_are_copied_at_once() {
        let ranges = [
            range(1, 0, 4),
            range(1, 4, 4),
            range(2, 8, 4),
            range(2, 12, 6),
        ];
        let batches = batches(&ranges, 12).unwrap();
        assert_eq!(batches.len(), 2);
        assert_eq!(
            joined(&batches[0].1),
            [(0, range(1, 0, 8)), (8, range(2, 8, 4))]
        );
        assert_eq!(batches[1], (3, vec![(0, range(2, 12, 6))]));
        assert!(super::batches(&[range(1, 0, 13)], 12).is_err());
    }

    #[test]
    fn results_are_in_order() {
        let squares = collect_on_all_cores(1000, |index| index * index);
        assert!(
            squares
                .iter()
                .enumerate()
                .all(|(index, square)| *square == index * index)
        );
    }
}
