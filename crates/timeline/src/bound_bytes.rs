//! Measures the bytes that a dispatch may read and write through its bindings (the buffer ranges that the program
//! gave it).
//!
//! The bytes of a dispatch are those of the buffer ranges bound to it: for reading, those that its code may read; for
//! writing likewise. A byte that two bindings of one direction cover counts once. That is an upper bound on the
//! distinct bytes the dispatch reaches through bindings, and for kernels that touch each element of their arrays once
//! it is that very number. It is not a measurement of memory traffic: a kernel may touch less than is bound, or the same
//! byte many times, and caches stand between. Memory that is reached through device
//! addresses, push constants and images is not counted. A binding with unknown access counts in both directions.

use crate::intervals::{Interval, length_ns, union};
use gapscope_trace::Trace;
use gapscope_trace::ids::{BindingSetId, BufferId};
use gapscope_trace::lookup::IdIndex;
use gapscope_trace::tables::{Access, Table};

/// The bytes that one dispatch may reach.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct BoundBytes {
    /// The bytes that the dispatch may read.
    pub read_bytes: u64,
    /// The bytes that the dispatch may write.
    pub written_bytes: u64,
}

/// A buffer range that is bound to a dispatch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BoundRange {
    /// Descriptor set.
    pub set: u32,
    /// Binding in the set.
    pub binding: u32,
    /// The number of bytes, as far as the buffer reaches.
    pub bytes: u64,
    /// Access of the kernel's code to the range.
    pub access: Access,
}

/// The bytes that dispatches may reach, for every set of bindings of a trace.
#[derive(Debug, Default)]
pub struct BindingSets {
    /// The place of each set in `bytes`, by the set's id.
    ids: IdIndex<BindingSetId>,
    bytes: Vec<BoundBytes>,
    /// The ranges of all sets.
    ranges: Vec<BoundRange>,
    /// The end of each set's ranges.
    ends: Vec<usize>,
}

impl BindingSets {
    /// Measures all sets of bindings of a trace.
    pub fn new(trace: &Trace) -> BindingSets {
        let rows = &trace.tables.bindings;
        let buffers = &trace.tables.buffers;
        let buffer_ids = IdIndex::new(&buffers.id);
        let mut order: Vec<u32> = (0..rows.len() as u32).collect();
        order.sort_by_key(|row| rows.id[*row as usize]);
        let mut ids = Vec::new();
        let mut bytes = Vec::new();
        let mut ranges = Vec::new();
        let mut ends = Vec::new();
        let mut read: Vec<(BufferId, Interval)> = Vec::new();
        let mut written: Vec<(BufferId, Interval)> = Vec::new();
        for set in order.chunk_by(|a, b| rows.id[*a as usize] == rows.id[*b as usize]) {
            read.clear();
            written.clear();
            for row in set.iter().map(|row| *row as usize) {
                let offset = rows.offset_bytes[row];
                let end = offset.saturating_add(rows.bytes[row]);
                let end = match buffer_ids.get(rows.buffer[row]) {
                    Some(buffer) => end.min(buffers.bytes[buffer]),
                    None => end,
                };
                let range = Interval::new(clamp(offset), clamp(end));
                let access = rows.access[row];
                ranges.push(BoundRange {
                    set: rows.set[row],
                    binding: rows.binding[row],
                    bytes: range.length_ns().max(0) as u64,
                    access,
                });
                if access != Access::Write {
                    read.push((rows.buffer[row], range));
                }
                if access != Access::Read {
                    written.push((rows.buffer[row], range));
                }
            }
            ends.push(ranges.len());
            ids.push(rows.id[set[0] as usize]);
            bytes.push(BoundBytes {
                read_bytes: distinct(&mut read),
                written_bytes: distinct(&mut written),
            });
        }
        BindingSets {
            ids: IdIndex::new(&ids),
            bytes,
            ranges,
            ends,
        }
    }

    /// Returns whether no bindings are known.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Returns the ranges of a set; none where they are not known.
    pub fn ranges(&self, bindings: Option<BindingSetId>) -> &[BoundRange] {
        let Some(row) = bindings.and_then(|id| self.ids.get(id)) else {
            return &[];
        };
        let start = row.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.ranges[start..self.ends[row]]
    }

    /// Returns the bytes of a dispatch with these bindings, or `None` when they are not known.
    #[inline]
    pub fn bytes(&self, bindings: Option<BindingSetId>) -> Option<BoundBytes> {
        self.ids.get(bindings?).map(|row| self.bytes[row])
    }
}

/// Converts an offset to the type of intervals.
fn clamp(bytes: u64) -> i64 {
    i64::try_from(bytes).unwrap_or(i64::MAX)
}

/// Returns the number of bytes in ranges of buffers, each byte counted once.
fn distinct(ranges: &mut [(BufferId, Interval)]) -> u64 {
    ranges.sort();
    ranges
        .chunk_by(|a, b| a.0 == b.0)
        .map(|of_buffer| {
            let mut set: Vec<Interval> = of_buffer.iter().map(|(_, range)| *range).collect();
            union(&mut set);
            length_ns(&set) as u64
        })
        .fold(0, u64::saturating_add)
}
