//! Saves the memory that kernels can reach, and puts it back: a kernel of a graph is captured by running a part of the
//! graph before the program's own launch, which must find memory as it was.

use super::copier::{CopiedPart, Copier, DriverError, Range, check};
use super::driver_functions::DriverFunctions;
use super::reached_memory::{AddressSpace, AllocationKind, allocation_at};
use super::refusal::Refusal;
use rustc_hash::FxHashSet;
use std::ffi::c_void;
use std::sync::{Mutex, PoisonError};

/// Memory and its bytes.
#[derive(Debug)]
pub struct SavedMemory(Vec<(Range, Vec<u8>)>);

impl SavedMemory {
    /// Saves these variables of code, and all memory that a word of `words`, of a variable or of saved memory leads to.
    ///
    /// # Errors
    /// Some of the memory cannot be put back, or it is too large.
    pub fn save(
        driver: &DriverFunctions,
        copier: &mut Copier,
        device: i32,
        kernel: &str,
        most_bytes: u64,
        variables: Vec<Range>,
        words: Vec<u64>,
    ) -> Result<SavedMemory, Refusal> {
        let mut saved = SavedMemory(Vec::new());
        let limits = (device, kernel, most_bytes);
        saved.follow(driver, copier, limits, variables, words)?;
        Ok(saved)
    }

    /// Saves memory to which words of saved memory lead now, and did not before.
    ///
    /// # Errors
    /// Some of the memory cannot be put back, or it is too large.
    pub fn save_more(
        &mut self,
        driver: &DriverFunctions,
        copier: &mut Copier,
        device: i32,
        kernel: &str,
        most_bytes: u64,
    ) -> Result<(), Refusal> {
        let ranges: Vec<Range> = self.0.iter().map(|(range, _)| *range).collect();
        let (words, _) = read(driver, copier, kernel, &ranges, false)?;
        let limits = (device, kernel, most_bytes);
        self.follow(driver, copier, limits, Vec::new(), words)
    }

    /// Saves new memory, and all that words lead to.
    fn follow(
        &mut self,
        driver: &DriverFunctions,
        copier: &mut Copier,
        (device, kernel, most_bytes): (i32, &str, u64),
        mut new: Vec<Range>,
        mut words: Vec<u64>,
    ) -> Result<(), Refusal> {
        loop {
            for word in words.drain(..) {
                let known = self.0.iter().map(|(range, _)| range).chain(&new);
                let lies_in =
                    |range: &Range| (range.address..range.address + range.bytes).contains(&word);
                if known.into_iter().any(lies_in) {
                    continue;
                }
                let Some(allocation) = allocation_at(driver, word, device, kernel)? else {
                    continue;
                };
                if allocation.kind == AllocationKind::Host {
                    return Err(Refusal::InGraph {
                        kernel: kernel.to_owned(),
                        reason: "the host could see what its page-locked memory has meanwhile",
                    });
                }
                new.push(allocation.range);
            }
            if new.is_empty() {
                return Ok(());
            }
            let sizes = self.0.iter().map(|(range, _)| range).chain(&new);
            let bytes: u64 = sizes.clone().map(|range| range.bytes).sum();
            if bytes > most_bytes {
                return Err(Refusal::TooLarge {
                    kernel: kernel.to_owned(),
                    bytes,
                    most: most_bytes,
                    largest: sizes.map(|range| range.bytes).max().unwrap_or(0),
                });
            }
            let (found, copies) = read(driver, copier, kernel, &new, true)?;
            self.0.extend(new.drain(..).zip(copies));
            words = found;
        }
    }

    /// Puts the memory back.
    ///
    /// # Errors
    /// The driver refused a copy.
    pub fn put_back(
        &self,
        driver: &DriverFunctions,
        stream: *mut c_void,
    ) -> Result<(), DriverError> {
        for (range, bytes) in &self.0 {
            // SAFETY: the driver's function; the bytes exist until the copies have ended.
            let code = unsafe {
                (driver.copy_to_device)(range.address, bytes.as_ptr().cast(), bytes.len(), stream)
            };
            check("cuMemcpyHtoDAsync", code)?;
        }
        // SAFETY: the driver's function with a stream of ours.
        check("cuStreamSynchronize", unsafe {
            (driver.synchronise_stream)(stream)
        })
    }
}

/// Copies ranges to the host. Returns the words that may be addresses, and the bytes of each range where they are kept.
fn read(
    driver: &DriverFunctions,
    copier: &mut Copier,
    kernel: &str,
    ranges: &[Range],
    is_kept: bool,
) -> Result<(Vec<u64>, Vec<Vec<u8>>), Refusal> {
    let space = AddressSpace::of_this_process();
    let sizes = ranges
        .iter()
        .map(|range| if is_kept { range.bytes } else { 0 });
    let copies: Vec<_> = sizes
        .map(|bytes| Mutex::new(vec![0; bytes as usize]))
        .collect();
    let found = Mutex::new(FxHashSet::default());
    let work = |part: CopiedPart<'_>| {
        let mut own = FxHashSet::default();
        space.scan(part.bytes, &mut own);
        if is_kept {
            let start = part.offset as usize;
            let mut copy = copies[part.range]
                .lock()
                .unwrap_or_else(PoisonError::into_inner);
            copy[start..start + part.bytes.len()].copy_from_slice(part.bytes);
        }
        (found.lock().unwrap_or_else(PoisonError::into_inner)).extend(own);
    };
    let copied = copier.read(driver, ranges, &work, &mut || {});
    copied.map_err(|error| Refusal::Driver {
        kernel: kernel.to_owned(),
        function: error.function,
        code: error.code,
    })?;
    let copies = copies
        .into_iter()
        .map(|copy| copy.into_inner().unwrap_or_default());
    let found = found.into_inner().unwrap_or_default();
    Ok((found.into_iter().collect(), copies.collect()))
}
