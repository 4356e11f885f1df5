//! Saves the memory that kernels can reach, and puts it back: a kernel of a graph is captured by running a part of the
//! graph before the program's own launch, which must find memory as it was.

use super::copier::{CopiedPart, Copier, DriverError, Range, check};
use super::driver_functions::DriverFunctions;
use super::reached_memory::{AddressSpace, allocation_at};
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
        let space = AddressSpace::of_this_process();
        let mut saved: Vec<(Range, Vec<u8>)> = Vec::new();
        let (mut new, mut words) = (variables, words);
        loop {
            for word in words.drain(..) {
                let known = saved.iter().map(|(range, _)| range).chain(&new);
                let lies_in =
                    |range: &Range| (range.address..range.address + range.bytes).contains(&word);
                if known.into_iter().any(lies_in) {
                    continue;
                }
                if let Some(allocation) = allocation_at(driver, word, device, kernel)? {
                    new.push(allocation.range);
                }
            }
            if new.is_empty() {
                return Ok(SavedMemory(saved));
            }
            let sizes = saved.iter().map(|(range, _)| range).chain(&new);
            let bytes: u64 = sizes.clone().map(|range| range.bytes).sum();
            if bytes > most_bytes {
                return Err(Refusal::TooLarge {
                    kernel: kernel.to_owned(),
                    bytes,
                    most: most_bytes,
                    largest: sizes.map(|range| range.bytes).max().unwrap_or(0),
                });
            }
            let copies: Vec<_> = new
                .iter()
                .map(|range| Mutex::new(vec![0; range.bytes as usize]))
                .collect();
            let found = Mutex::new(FxHashSet::default());
            let work = |part: CopiedPart<'_>| {
                let mut own = FxHashSet::default();
                space.scan(part.bytes, &mut own);
                let start = part.offset as usize;
                let mut copy = copies[part.range]
                    .lock()
                    .unwrap_or_else(PoisonError::into_inner);
                copy[start..start + part.bytes.len()].copy_from_slice(part.bytes);
                drop(copy);
                (found.lock().unwrap_or_else(PoisonError::into_inner)).extend(own);
            };
            let copied = copier.read(driver, &new, &work, &mut || {});
            copied.map_err(|error| Refusal::Driver {
                kernel: kernel.to_owned(),
                function: error.function,
                code: error.code,
            })?;
            let copies = copies
                .into_iter()
                .map(|copy| copy.into_inner().unwrap_or_default());
            saved.extend(new.drain(..).zip(copies));
            words.extend(found.into_inner().unwrap_or_default());
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
