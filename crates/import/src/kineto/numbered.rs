//! Things that get numbers.

use super::facts::Stream;
use rustc_hash::{FxHashMap, FxHashSet};
use std::hash::Hash;

/// A file that names more devices, or streams, is not of a program.
const MOST_DEVICES: usize = 1 << 10;
const MOST_STREAMS: usize = 1 << 13;

/// Things that get numbers, in the order in which they are first seen.
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

/// Streams, of which there are not too many.
#[derive(Debug, Default)]
pub(super) struct Streams {
    numbered: Numbered<Stream>,
    devices: FxHashSet<Option<u32>>,
}

impl Streams {
    /// The number of a stream; `None` where there are too many.
    pub(super) fn number(&mut self, stream: Stream) -> Option<u32> {
        if let Some(known) = self.numbered.numbers.get(&stream) {
            return Some(*known);
        }
        let is_new = !self.devices.contains(&stream.device);
        if self.numbered.all.len() >= MOST_STREAMS || (is_new && self.devices.len() >= MOST_DEVICES)
        {
            return None;
        }
        self.devices.insert(stream.device);
        Some(self.numbered.number(stream))
    }

    /// All of them, by their numbers.
    pub(super) fn all(&self) -> &[Stream] {
        &self.numbered.all
    }
}
