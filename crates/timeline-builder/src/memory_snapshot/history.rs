//! Makes pieces of memory with their lives of the history of an allocator, entry by entry, and of its state at the end.

use super::{DeviceMemory, Piece, Range};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

/// The deepest nesting of ranges; more is damage.
const DEEPEST: usize = 1000;

/// An address and a number of bytes.
pub(super) type Place = (u64, u64);

/// The history of one device so far.
#[derive(Debug, Default)]
pub(super) struct History {
    /// The blocks that live, by address: their places in `blocks`.
    live: HashMap<u64, usize>,
    blocks: Vec<Piece>,
    /// The blocks of the state at the end.
    held: HashSet<u64>,
    /// The parts of segments that live, by address. The driver may take back a part of what it gave.
    mapped: BTreeMap<u64, Piece>,
    /// Segments that have ended.
    segments: Vec<Piece>,
    span_ns: Option<(i64, i64)>,
    pub out_of_memory: u64,
    ranges: Vec<Range>,
    /// The open ranges, the innermost last: their places in `ranges`.
    open: Vec<usize>,
}

impl History {
    fn spans(&mut self, at_ns: i64) {
        let (first, last) = self.span_ns.unwrap_or((at_ns, at_ns));
        self.span_ns = Some((first.min(at_ns), last.max(at_ns)));
    }

    /// The allocator gave out a block.
    pub fn allocated(&mut self, at_ns: i64, (address, bytes): Place, stack: Option<usize>) {
        self.spans(at_ns);
        // Without an entry that the one before was freed, it ends here at the latest.
        if let Some(before) = self.live.insert(address, self.blocks.len()) {
            self.blocks[before].freed_ns = Some(at_ns);
        }
        self.blocks.push(Piece {
            address,
            bytes,
            allocated_ns: Some(at_ns),
            freed_ns: None,
            stack,
        });
    }

    /// A block came back.
    pub fn freed(&mut self, at_ns: i64, (address, bytes): Place) {
        self.spans(at_ns);
        match self.live.remove(&address) {
            Some(block) => self.blocks[block].freed_ns = Some(at_ns),
            None => self.blocks.push(Piece {
                address,
                bytes,
                allocated_ns: None,
                freed_ns: Some(at_ns),
                stack: None,
            }),
        }
    }

    /// The driver gave memory to the allocator.
    pub fn reserved(&mut self, at_ns: i64, (address, bytes): Place, stack: Option<usize>) {
        self.returned_until(Some(at_ns), (address, bytes), false);
        self.spans(at_ns);
        let piece = Piece {
            address,
            bytes,
            allocated_ns: Some(at_ns),
            freed_ns: None,
            stack,
        };
        self.mapped.insert(address, piece);
    }

    /// The allocator gave memory back to the driver.
    pub fn returned(&mut self, at_ns: i64, place: Place) {
        self.spans(at_ns);
        self.returned_until(Some(at_ns), place, true);
    }

    /// Ends the parts of segments in a place at a time (`None`: they live at the end), cuts those that reach out of it,
    /// and adds what no segment covers as memory of before the history, where `adds` says so.
    fn returned_until(&mut self, freed_ns: Option<i64>, (address, bytes): Place, adds: bool) {
        let end = address.saturating_add(bytes);
        let before = self.mapped.range(..address).next_back();
        let first = before.filter(|(at, piece)| at.saturating_add(piece.bytes) > address);
        let first = first.map_or(address, |(at, _)| *at);
        let inside: Vec<u64> = self.mapped.range(first..end).map(|(at, _)| *at).collect();
        let mut uncovered = address;
        for at in inside {
            let Some(piece) = self.mapped.remove(&at) else {
                continue;
            };
            let piece_end = at.saturating_add(piece.bytes);
            let (from, to) = (at.max(address), piece_end.min(end));
            let cut = |from: u64, to: u64| Piece {
                address: from,
                bytes: to - from,
                ..piece.clone()
            };
            for (from, to) in [(at, from), (to, piece_end)] {
                if from < to {
                    self.mapped.insert(from, cut(from, to));
                }
            }
            if adds {
                self.before(uncovered, from, freed_ns);
            }
            uncovered = to;
            self.segments.push(Piece {
                freed_ns,
                ..cut(from, to)
            });
        }
        if adds {
            self.before(uncovered, end, freed_ns);
        }
    }

    /// Adds a segment of before the history.
    fn before(&mut self, from: u64, to: u64, freed_ns: Option<i64>) {
        if from < to {
            self.segments.push(Piece {
                address: from,
                bytes: to - from,
                allocated_ns: None,
                freed_ns,
                stack: None,
            });
        }
    }

    /// The state at the end has a segment.
    pub fn holds_segment(&mut self, place: Place) {
        self.returned_until(None, place, true);
    }

    /// The state at the end has a block.
    pub fn holds_block(&mut self, (address, bytes): Place, stack: Option<usize>) {
        if self.held.insert(address) && !self.live.contains_key(&address) {
            self.blocks.push(Piece {
                address,
                bytes,
                allocated_ns: None,
                freed_ns: None,
                stack,
            });
        }
    }

    /// A range of the program begins.
    pub fn begins(&mut self, at_ns: i64, name: Arc<str>) {
        self.spans(at_ns);
        if self.open.len() >= DEEPEST {
            return;
        }
        self.open.push(self.ranges.len());
        self.ranges.push(Range {
            name,
            begin_ns: at_ns,
            end_ns: None,
        });
    }

    /// A range ends: the innermost open one of its name, and those inside.
    pub fn ends(&mut self, at_ns: i64, name: &str) {
        self.spans(at_ns);
        let mut depth = self
            .open
            .iter()
            .rev()
            .enumerate()
            .filter(|(_, range)| &*self.ranges[**range].name == name);
        if let Some((depth, _)) = depth.next() {
            let ended = self.open.split_off(self.open.len() - 1 - depth);
            for range in ended {
                self.ranges[range].end_ns = Some(at_ns);
            }
        }
    }

    /// Returns the memory of the device; `None` where it has none.
    pub fn finish(mut self, device: u32) -> Option<DeviceMemory> {
        // What lives without being in the state at the end: the state is of another moment, or of a version that lists
        // less.
        self.segments.extend(self.mapped.into_values());
        let is_empty = self.segments.is_empty() && self.blocks.is_empty();
        (!is_empty).then_some(DeviceMemory {
            device,
            segments: self.segments,
            blocks: self.blocks,
            span_ns: self.span_ns,
            out_of_memory: self.out_of_memory,
            ranges: self.ranges,
        })
    }
}
