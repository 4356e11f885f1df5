//! Collects the offsets that each invocation reaches, compressed to [`Run`]s of invocations whose offsets grow in
//! equal steps. A site is an instruction that reaches a buffer.

use std::collections::HashMap;

use crate::kernel::program::Direction;

/// The most runs that are kept; beyond them the trail is unknown.
const MAX_RUNS: usize = 1 << 20;
/// The limit `MAX_RUNS` as a reason names it.
pub(crate) const RUNS: &str = "1,048,576 runs of equal steps";

/// Consecutive invocations that reach offsets in equal steps. Invocations are numbered by workgroup, then in their
/// workgroup.
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
    /// Number of bytes that each invocation reaches from its offset on.
    pub bytes: u32,
}

impl Run {
    /// Returns pairs of invocation and offset.
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
    /// The sites by the index of their instruction.
    pub found: HashMap<usize, Site>,
    runs: usize,
    /// Whether there are too many runs, or an access that cannot be part of a run.
    pub overflow: bool,
}

/// A place in the code that reaches a buffer.
#[derive(Debug)]
pub(crate) struct Site {
    /// Index of the bound buffer.
    pub buffer: u32,
    pub direction: Direction,
    pub runs: Vec<Run>,
}

impl Sites {
    /// Adds that an invocation reaches bytes from an offset on. A run is continued by the next invocation if its
    /// offset is one step further; otherwise a new run begins. Nothing is added after an overflow.
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
