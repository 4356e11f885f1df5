//! Collects which invocation reaches what, as runs of invocations whose offsets grow in equal steps.

use std::collections::HashMap;

use crate::kernel::program::Direction;
use crate::trail::Run;

/// The most runs that are kept.
const MAX_RUNS: usize = 1 << 20;
/// The limit as the reason names it.
pub(crate) const RUNS: &str = "1,048,576 runs of equal steps";

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
