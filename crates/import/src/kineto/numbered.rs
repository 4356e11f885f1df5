//! Gives objects consecutive numbers in the order in which they are first seen.

use super::facts::Stream;
use rustc_hash::{FxHashMap, FxHashSet};
use std::hash::Hash;

/// The maximum numbers of devices and of streams. A file that names more is not a trace of a program.
const MAX_DEVICES: usize = 1 << 10;
const MAX_STREAMS: usize = 1 << 13;

/// Objects with their numbers, in the order in which they were first seen.
#[derive(Debug)]
pub(super) struct Numbered<T> {
    numbers: FxHashMap<T, u32>,
    pub(super) all: Vec<T>,
}

impl<T> Default for Numbered<T> {
    fn default() -> Self {
        Numbered {
            numbers: FxHashMap::default(),
            all: Vec::new(),
        }
    }
}

impl<T: Copy + Eq + Hash> Numbered<T> {
    pub(super) fn number(&mut self, of: T) -> u32 {
        *self.numbers.entry(of).or_insert_with(|| {
            self.all.push(of);
            self.all.len() as u32 - 1
        })
    }
}

/// The streams with their numbers, up to a maximum.
#[derive(Debug, Default)]
pub(super) struct Streams {
    numbered: Numbered<Stream>,
    devices: FxHashSet<Option<u32>>,
}

impl Streams {
    /// Returns the number of a stream; `None` if there are too many streams.
    pub(super) fn number(&mut self, stream: Stream) -> Option<u32> {
        if let Some(known) = self.numbered.numbers.get(&stream) {
            return Some(*known);
        }
        let is_new = !self.devices.contains(&stream.device);
        if self.numbered.all.len() >= MAX_STREAMS || (is_new && self.devices.len() >= MAX_DEVICES) {
            return None;
        }
        self.devices.insert(stream.device);
        Some(self.numbered.number(stream))
    }

    /// Returns all streams in the order of their numbers.
    pub(super) fn all(&self) -> &[Stream] {
        &self.numbered.all
    }
}
