//! Collects which invocation reaches what, as runs of invocations whose offsets grow in equal steps.

use std::collections::HashMap;

use crate::kernel::program::Direction;

/// The most runs that are kept.
const MAX_RUNS: usize = 1 << 20;
/// The limit as the reason names it.
pub(crate) const RUNS: &str = "1,048,576 runs of equal steps";

/// Consecutive invocations, in the order of workgroups and of invocations in them, whose offsets grow in equal steps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Run {
    /// Number of the first invocation.
    pub first: u64,
    /// Number of invocations.
    pub count: u64,
    /// Offset of the first invocation, from the first bound byte.
    pub offset: u64,
    /// Bytes from one offset to the next, modulo 2⁶⁴.
    pub step: u64,
    /// Bytes that each invocation reaches at once.
    pub bytes: u32,
}

impl Run {
    /// Returns each invocation with its offset.
    pub fn each(self) -> impl Iterator<Item = (u64, u64)> {
        (0..self.count).map(move |at| {
            let offset = self.offset.wrapping_add(self.step.wrapping_mul(at));
            (self.first + at, offset)
        })
    }
}

/// The runs of each place in the code that reaches a buffer.
#[derive(Debug, Default)]
pub(crate) struct Sites {
    pub found: HashMap<usize, Site>,
    runs: usize,
    /// There are too many runs, or an access that cannot be part of one.
    pub overflow: bool,
}

/// A place in the code that reaches a buffer.
#[derive(Debug)]
pub(crate) struct Site {
    pub buffer: u32,
    pub direction: Direction,
    pub runs: Vec<Run>,
}

impl Sites {
    /// Adds an invocation that reaches bytes from an offset on.
    pub fn add(
        &mut self,
        site: usize,
        (buffer, bytes, direction): (u32, u32, Direction),
        invocation: u64,
        offset: u64,
    ) {
        if self.overflow {
            return;
        }
        let site = self.found.entry(site).or_insert_with(|| Site {
            buffer,
            direction,
            runs: Vec::new(),
        });
        if let Some(last) = site.runs.last_mut() {
            let next = last.first + last.count;
            let is_next = invocation == next;
            if is_next && last.count == 1 {
                last.step = offset.wrapping_sub(last.offset);
                last.count = 2;
                return;
            }
            if is_next && offset == last.offset.wrapping_add(last.step.wrapping_mul(last.count)) {
                last.count += 1;
                return;
            }
        }
        self.runs += 1;
        self.overflow = self.runs > MAX_RUNS;
        site.runs.push(Run {
            first: invocation,
            count: 1,
            offset,
            step: 0,
            bytes,
        });
    }
}
