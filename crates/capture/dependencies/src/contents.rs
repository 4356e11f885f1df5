//! Keeps track of the bytes in memory while the commands of a window, the recorded part of a program's GPU work, are
//! followed in order: those of the capture, until a command overwrites them. Kernels whose addresses depend on loaded
//! indices are evaluated with these bytes: in between, `set`, `write`, `fill`, `copy` and `forget` are called for
//! what changes.

use std::collections::BTreeMap;
use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use gapscope_capture::model::{Content, MemoryId};
use gapscope_capture::{Capture, Hash};

/// The most chunks (pieces of memory that a capture stores under a hash) that are kept after they were read.
const MAX_CHUNKS: usize = 256;

/// The known contents of memory at one moment of the window.
#[derive(Debug, Default)]
pub(crate) struct Contents {
    /// The known ranges of each allocation, by the offset of their first byte.
    known: HashMap<MemoryId, BTreeMap<u64, KnownRange>>,
    /// The chunks that were read; `None` for one that could not be.
    chunks: HashMap<Hash, Option<Arc<[u8]>>>,
}

/// A range of memory whose bytes are known; its first byte is its key in the map.
#[derive(Debug, Clone)]
struct KnownRange {
    /// The offset after the last byte.
    end: u64,
    source: Source,
    /// Offset in the source of the range's first byte.
    at: u64,
}

/// Where the bytes of a known range are: in a chunk of the capture, here, or in a word that is repeated.
#[derive(Debug, Clone)]
enum Source {
    Chunk(Hash),
    Bytes(Arc<[u8]>),
    /// A word in little-endian order.
    Word(u32),
}

impl Contents {
    /// Sets the bytes of a content record of the capture.
    pub fn set(&mut self, capture: &Capture, content: &Content) {
        let mut begin = content.offset;
        for hash in &content.chunks {
            let bytes = u64::from(capture.chunk_bytes(*hash).unwrap_or(0));
            let range = begin..begin + bytes;
            begin = range.end;
            self.insert(content.memory, range, Source::Chunk(*hash), 0);
        }
    }

    /// Records that bytes were written at an offset of an allocation.
    pub fn write(&mut self, memory: MemoryId, offset: u64, bytes: &[u8]) {
        let range = offset..offset + bytes.len() as u64;
        self.insert(memory, range, Source::Bytes(bytes.into()), 0);
    }

    /// Records that a range was filled with a repeated word.
    pub fn fill(&mut self, memory: MemoryId, range: Range<u64>, word: u32) {
        self.insert(memory, range, Source::Word(word), 0);
    }

    /// Records that bytes were copied, between places given as an allocation and an offset. Unknown bytes make their
    /// new place unknown, too.
    pub fn copy(&mut self, from: (MemoryId, u64), to: (MemoryId, u64), bytes: u64) {
        let end = from.1 + bytes;
        let pieces: Vec<(u64, KnownRange)> = match self.known.get(&from.0) {
            Some(known) => within(known, from.1..end)
                .map(|(at, known)| (at, known.clone()))
                .collect(),
            None => Vec::new(),
        };
        self.forget(to.0, to.1..to.1 + bytes);
        for (begin, known) in pieces {
            let cut = begin.max(from.1);
            let at = known.at + (cut - begin);
            let begin = to.1 + (cut - from.1);
            let length = known.end.min(end) - cut;
            self.insert(to.0, begin..begin + length, known.source, at);
        }
    }

    /// Forgets the bytes of a range, because unknown bytes overwrite them.
    pub fn forget(&mut self, memory: MemoryId, range: Range<u64>) {
        let Some(known) = self.known.get_mut(&memory) else {
            return;
        };
        if range.is_empty() {
            return;
        }
        let touched: Vec<(u64, KnownRange)> = within(known, range.clone())
            .map(|(begin, known)| (begin, known.clone()))
            .collect();
        for (begin, old) in touched {
            known.remove(&begin);
            if begin < range.start {
                let end = range.start;
                known.insert(begin, KnownRange { end, ..old.clone() });
            }
            if range.end < old.end {
                let at = old.at + (range.end - begin);
                known.insert(range.end, KnownRange { at, ..old });
            }
        }
    }

    /// Forgets the bytes of all memory.
    pub fn forget_all(&mut self) {
        self.known.clear();
    }

    /// Replaces the bytes of a range by those of a source from the offset `at` on.
    fn insert(&mut self, memory: MemoryId, range: Range<u64>, source: Source, at: u64) {
        if range.is_empty() {
            return;
        }
        self.forget(memory, range.clone());
        let known = KnownRange {
            end: range.end,
            source,
            at,
        };
        self.known
            .entry(memory)
            .or_default()
            .insert(range.start, known);
    }

    /// Returns the bytes of a range if all of them are known.
    pub fn get(
        &mut self,
        capture: &Capture,
        memory: MemoryId,
        range: Range<u64>,
    ) -> Option<Vec<u8>> {
        let chunks = &mut self.chunks;
        read(self.known.get(&memory)?, range, |hash| {
            chunk(chunks, capture, hash)
        })
    }
}

/// Returns the bytes of a range if all of them are known. `chunk` returns the bytes of a chunk.
fn read(
    known: &BTreeMap<u64, KnownRange>,
    range: Range<u64>,
    mut chunk: impl FnMut(Hash) -> Option<Arc<[u8]>>,
) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    let mut at = range.start;
    for (begin, known) in within(known, range.clone()) {
        if begin > at {
            return None;
        }
        let end = known.end.min(range.end);
        let from = known.at + (at - begin);
        let source = match &known.source {
            Source::Word(word) => {
                let word = word.to_le_bytes();
                bytes.extend((from..from + (end - at)).map(|i| word[(i % 4) as usize]));
                at = end;
                continue;
            }
            Source::Chunk(hash) => chunk(*hash)?,
            Source::Bytes(bytes) => bytes.clone(),
        };
        let (from, length) = (from as usize, (end - at) as usize);
        bytes.extend_from_slice(source.get(from..from.checked_add(length)?)?);
        at = end;
    }
    (at == range.end).then_some(bytes)
}

/// Returns the bytes of a chunk, and keeps them. All kept chunks are dropped once there are [`MAX_CHUNKS`].
fn chunk(
    chunks: &mut HashMap<Hash, Option<Arc<[u8]>>>,
    capture: &Capture,
    hash: Hash,
) -> Option<Arc<[u8]>> {
    if chunks.len() >= MAX_CHUNKS {
        chunks.clear();
    }
    let read = || capture.chunk(hash).ok().map(Arc::from);
    chunks.entry(hash).or_insert_with(read).clone()
}

/// Returns the known ranges that overlap a range, each with the offset of its first byte.
fn within(
    known: &BTreeMap<u64, KnownRange>,
    range: Range<u64>,
) -> impl Iterator<Item = (u64, &KnownRange)> {
    let before = known.range(..=range.start).next_back();
    let first = before.map_or(range.start, |(begin, _)| *begin);
    (known.range(first..range.end.max(first)))
        .filter(move |(begin, known)| range.start < known.end && **begin < range.end)
        .map(|(begin, known)| (*begin, known))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_known_and_what_is_not_is_forgotten() {
        let (a, b) = (MemoryId(1), MemoryId(2));
        let mut contents = Contents::default();
        contents.write(a, 8, &[1, 2, 3, 4, 5, 6, 7, 8]);
        contents.fill(a, 16..24, 0x0403_0201);
        contents.copy((a, 10), (b, 0), 10);
        let get = |contents: &Contents, memory, range| {
            read(contents.known.get(&memory)?, range, |_| None)
        };
        let copied = get(&contents, b, 0..10).unwrap();
        assert_eq!(copied, [3, 4, 5, 6, 7, 8, 1, 2, 3, 4]);
        contents.forget(b, 2..4);
        assert_eq!(get(&contents, b, 0..10), None);
        assert_eq!(get(&contents, b, 4..10).unwrap(), [7, 8, 1, 2, 3, 4]);
        assert_eq!(get(&contents, b, 0..2).unwrap(), [3, 4]);
    }
}
