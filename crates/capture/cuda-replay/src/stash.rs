//! Keeps copies of memory on the GPU: of the bytes that launches change, so that each run begins with the same bytes, and of
//! content that replaces bytes between two launches.

use gapscope_capture::cuda::CudaCapture;
use gapscope_capture::model::Content;

use crate::driver::Driver;
use crate::error::Error;
use crate::known::KnownHashes;
use crate::memory::{MemoryAddress, Placed};
use crate::session::Session;
use crate::transfer::Range;

/// Copies of ranges of memory.
pub struct Stash {
    /// The copies' memory.
    address: u64,
    /// The ranges, one behind the other in the copies' memory.
    ranges: Vec<Range>,
    /// What was known of memory when it was copied.
    known: KnownHashes,
}

impl Stash {
    /// Copies the bytes that stages may change. `None` where the GPU has no room, or memory of the host is among them, which
    /// is restored from the capture instead.
    pub fn of_changes(
        session: &Session<'_>,
        stages: std::ops::Range<usize>,
    ) -> Result<Option<Stash>, Error> {
        let mut ranges = Vec::new();
        for stage in &session.plan.stages[stages] {
            ranges.extend(stage.outcomes.iter().map(|outcome| Range {
                memory: outcome.memory,
                offset: outcome.offset,
                bytes: outcome.bytes,
            }));
            ranges.extend(
                stage
                    .contents
                    .iter()
                    .map(|content| range(session.capture, content)),
            );
        }
        Stash::new(session, merged(ranges))
    }

    /// Copies ranges as they are now.
    fn new(session: &Session<'_>, ranges: Vec<Range>) -> Result<Option<Stash>, Error> {
        let driver = &session.gpu.driver;
        let total: u64 = ranges.iter().map(|range| range.bytes).sum();
        let address = match total {
            0 => 0,
            total => match driver.allocate(total) {
                Ok(address) => address,
                Err(_) => return Ok(None),
            },
        };
        let stash = Stash {
            address,
            ranges,
            known: session.known.clone(),
        };
        match stash.copy(driver, &session.placed, true)? {
            true => Ok(Some(stash)),
            false => {
                stash.free(driver);
                Ok(None)
            }
        }
    }

    /// Gives memory the bytes back.
    pub fn restore(&self, session: &mut Session<'_>) -> Result<(), Error> {
        self.put(&session.gpu.driver, &session.placed)?;
        session.known = self.known.clone();
        Ok(())
    }

    /// Begins the copies to memory, in the order of the GPU's work.
    pub fn put(&self, driver: &Driver, placed: &Placed) -> Result<(), Error> {
        self.copy(driver, placed, false).map(drop)
    }

    /// Copies to or from memory. Returns false where memory of the host is among the ranges.
    fn copy(&self, driver: &Driver, placed: &Placed, is_taken: bool) -> Result<bool, Error> {
        let mut at = self.address;
        for range in &self.ranges {
            let MemoryAddress::Device(address) = placed.place(range.memory)? else {
                return Ok(false);
            };
            let there = address + range.offset;
            match is_taken {
                true => driver.copy(at, there, range.bytes)?,
                false => driver.copy(there, at, range.bytes)?,
            }
            at += range.bytes;
        }
        Ok(true)
    }

    /// Frees the copies' memory.
    pub fn free(&self, driver: &Driver) {
        if self.address != 0 {
            driver.free(self.address);
        }
    }

    /// Puts contents into memory, and copies them. The bytes that memory had are lost.
    pub fn of_contents(
        session: &mut Session<'_>,
        contents: &[&Content],
    ) -> Result<Option<Stash>, Error> {
        session.upload(contents)?;
        let ranges = contents
            .iter()
            .map(|content| range(session.capture, content))
            .collect();
        Stash::new(session, merged(ranges))
    }
}

/// Returns the range of a content.
pub fn range(capture: &CudaCapture, content: &Content) -> Range {
    Range {
        memory: content.memory,
        offset: content.offset,
        bytes: capture.total_bytes(&content.chunks),
    }
}

/// Sorts ranges and joins those that touch or overlap.
pub fn merged(mut ranges: Vec<Range>) -> Vec<Range> {
    ranges.sort_unstable_by_key(|range| (range.memory, range.offset));
    let mut all: Vec<Range> = Vec::new();
    for range in ranges {
        match all.last_mut() {
            Some(last)
                if last.memory == range.memory && last.offset + last.bytes >= range.offset =>
            {
                let end = (last.offset + last.bytes).max(range.offset + range.bytes);
                last.bytes = end - last.offset;
            }
            _ => all.push(range),
        }
    }
    all
}
