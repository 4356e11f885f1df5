//! Walks over the gaps between pieces of work, of a device or of a queue. All code that needs gaps uses this walk.

use super::work::Work;
use super::works::{Iter, Works};
use crate::intervals::Interval;
use gapscope_trace::lookup::NONE;

/// A gap between two pieces of work, in which nothing ran.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Gap {
    /// The time from the latest end of earlier work to the start of the work that ends the gap.
    pub interval: Interval,
    /// The index of the work before the gap.
    pub before: u32,
    /// The index of the work that ends the gap.
    pub after: u32,
}

/// A position in a walk over work in order of start, with the latest end of the work so far.
#[derive(Debug, Clone, Copy)]
pub struct Cursor {
    /// The latest end of the work so far.
    end_ns: i64,
    /// The index of the work that ended last, or [`NONE`].
    before: u32,
    /// The row of that work's command buffer, or [`NONE`].
    command_buffer: u32,
}

impl Default for Cursor {
    fn default() -> Cursor {
        Cursor {
            end_ns: i64::MIN,
            before: NONE,
            command_buffer: NONE,
        }
    }
}

impl Cursor {
    /// Advances over a piece of work with its index, and returns the gap before that work, if there is one.
    #[inline]
    pub fn advance(&mut self, at: usize, work: &Work) -> Option<Gap> {
        let gap = (self.has_passed_work() && work.interval.start_ns > self.end_ns).then(|| Gap {
            interval: Interval::new(self.end_ns, work.interval.start_ns),
            before: self.before,
            after: at as u32,
        });
        if !self.has_passed_work() || work.interval.end_ns > self.end_ns {
            *self = Cursor {
                end_ns: work.interval.end_ns,
                before: at as u32,
                command_buffer: work.command_buffer,
            };
        }
        gap
    }

    /// Advances over all work that a later cursor, which started anew, has passed.
    pub fn join(&mut self, later: Cursor) {
        if !self.has_passed_work() || (later.has_passed_work() && later.end_ns > self.end_ns) {
            *self = later;
        }
    }

    /// Returns true once the cursor has passed work.
    #[inline]
    pub fn has_passed_work(&self) -> bool {
        self.before != NONE
    }

    /// Returns the row of the command buffer of the work that ended last, or [`NONE`].
    #[inline]
    pub fn command_buffer(&self) -> u32 {
        self.command_buffer
    }
}

/// The gaps between pieces of work, in order of time.
struct Gaps<'a> {
    works: std::iter::Enumerate<Iter<'a>>,
    cursor: Cursor,
}

impl Iterator for Gaps<'_> {
    type Item = Gap;

    #[inline]
    fn next(&mut self) -> Option<Gap> {
        loop {
            let (at, work) = self.works.next()?;
            let gap = self.cursor.advance(at, &work);
            if gap.is_some() {
                return gap;
            }
        }
    }
}

impl Works {
    /// Returns the gaps between pieces of work, in order of time.
    pub fn gaps(&self) -> impl Iterator<Item = Gap> + '_ {
        Gaps {
            works: self.iter().enumerate(),
            cursor: Cursor::default(),
        }
    }
}
