//! Remembers the lines that a thread has written to its log, with their ids.

use super::python::Place;
use crate::ids;
use crate::writer::generation;

/// Number of slots. Lines that share a slot evict each other and are then written again.
const PLACES: usize = 1 << 9;

/// Lines by their positions in code.
pub struct Cache {
    /// A forked child has another log.
    generation: u32,
    last: u32,
    places: Box<[(Place, ids::Frame)]>,
}

impl Cache {
    pub fn new() -> Cache {
        Cache {
            generation: generation(),
            last: 0,
            places: vec![(Place::default(), ids::Frame::NONE); PLACES].into(),
        }
    }

    /// Returns the id of a line; a new one is written first. Returns `None` when the line cannot be read.
    pub fn id<W: FnOnce(ids::Frame)>(
        &mut self,
        place: &Place,
        line: impl FnOnce() -> Option<W>,
    ) -> Option<ids::Frame> {
        if self.generation != generation() {
            *self = Cache::new();
        }
        let known = &mut self.places[place.hash() % PLACES];
        if known.0 == *place && known.1 != ids::Frame::NONE {
            return Some(known.1);
        }
        let write = line()?;
        self.last = self.last.wrapping_add(1).max(1);
        *known = (*place, ids::Frame(self.last));
        write(known.1);
        Some(known.1)
    }
}
