//! Remembers the Python source lines that a thread has written to its log, so that a stack names a line by its id and
//! each line is written seldom. The lines stand in a table of slots, each of which holds the last line with its hash.

use super::python::CodePosition;
use crate::ids;
use crate::writer::generation;

/// The number of slots. Lines that share a slot evict each other and are then written again.
const SLOTS: usize = 1 << 9;

/// The ids of lines, by their positions in the interpreter's code objects.
pub struct LineCache {
    /// The process's count of forks, since a forked child has another log.
    generation: u32,
    /// The last id that was given.
    last: u32,
    slots: Box<[(CodePosition, ids::Frame)]>,
}

impl LineCache {
    pub fn new() -> LineCache {
        LineCache {
            generation: generation(),
            last: 0,
            slots: vec![(CodePosition::default(), ids::Frame::NONE); SLOTS].into(),
        }
    }

    /// Returns the id of the line at a position. For a line that is not in its slot, `line` is called to read it and
    /// returns the function that writes it with its new id. Returns `None` when the line cannot be read.
    pub fn id<W: FnOnce(ids::Frame)>(
        &mut self,
        position: &CodePosition,
        line: impl FnOnce() -> Option<W>,
    ) -> Option<ids::Frame> {
        if self.generation != generation() {
            *self = LineCache::new();
        }
        let known = &mut self.slots[position.hash() % SLOTS];
        if known.0 == *position && known.1 != ids::Frame::NONE {
            return Some(known.1);
        }
        let write = line()?;
        self.last = self.last.wrapping_add(1).max(1);
        *known = (*position, ids::Frame(self.last));
        write(known.1);
        Some(known.1)
    }
}
