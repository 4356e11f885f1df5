//! Finds the work that a dispatch or transfer depends on, and the work that depends on it, by the bytes that both may
//! touch. An item is a dispatch or a transfer, and a hazard is the reason why two items must run in their order.

use super::reads_and_writes::{ByteRange, Dataflow, Item, UnknownDataflow};
use gapscope_timeline::WorkKind;
use gapscope_trace::ids::BufferId;
use gapscope_trace::tables::Table;
use schemars::JsonSchema;
use serde::Serialize;

/// The reason why one item must run after another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Hazard {
    /// The later one reads what the earlier one wrote.
    ReadAfterWrite,
    /// The later one overwrites what the earlier one read.
    WriteAfterRead,
    /// The later one overwrites what the earlier one wrote.
    WriteAfterWrite,
}

/// A dispatch or transfer that another one depends on, or that depends on the other one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Dependency {
    /// Tells a dispatch from a transfer.
    pub kind: WorkKind,
    /// The row in the table of that kind.
    pub row: usize,
    /// The way in which the two conflict.
    pub hazard: Hazard,
    /// The ids of the buffers that both may touch.
    pub buffers: Vec<BufferId>,
    /// The number of bytes that both may touch.
    pub bytes: u64,
}

/// The neighbours of an item in the graph of dependencies.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Neighbours {
    /// The items that the searched item depends on, the latest first.
    pub predecessors: Vec<Dependency>,
    /// The items that depend on the searched item, the earliest first.
    pub successors: Vec<Dependency>,
    /// A sentence on the part that was searched; `None` where everything was searched.
    pub note: Option<String>,
}

/// The maximum number of items that are examined on each side, which takes some milliseconds. The search ends there,
/// and `Neighbours::note` says so.
const MAX_EXAMINED: usize = 200_000;

impl Dataflow<'_> {
    /// Finds the neighbours of a dispatch or transfer, at most `max` on each side.
    ///
    /// # Errors
    ///
    /// Fails where the reads and writes of the item, or the time at which it ran, are not known.
    pub fn neighbours(
        &self,
        kind: WorkKind,
        row: usize,
        max: usize,
    ) -> Result<Neighbours, UnknownDataflow> {
        let item = match kind {
            WorkKind::Dispatch => Item::new(false, row),
            WorkKind::Transfer => Item::new(true, row),
            _ => return Err(UnknownDataflow::OtherWork),
        };
        let Some(at) = self.find(item) else {
            return Err(UnknownDataflow::Untimed);
        };
        let mut mine = Vec::new();
        if !self.ranges_of(item, &mut mine) {
            return Err(match item.is_transfer() {
                true => UnknownDataflow::TransferBuffers,
                false if self.timeline.trace.tables.bindings.is_empty() => {
                    UnknownDataflow::NoBindingsInTrace
                }
                false => UnknownDataflow::DispatchBindings,
            });
        }
        let mut neighbours = Neighbours::default();
        let before = self.items[..at].iter().rev();
        let after = self.items[at + 1..].iter();
        let mut cut = self.search(before, &mine, max, true, &mut neighbours.predecessors);
        cut |= self.search(after, &mine, max, false, &mut neighbours.successors);
        neighbours.note = cut.then(|| {
            format!("Looked for among the {MAX_EXAMINED} dispatches and transfers before and after it, up to {max} on each side.")
        });
        Ok(neighbours)
    }

    /// Returns the index of an item in the order of running, or `None` where it is not among the items.
    fn find(&self, item: Item) -> Option<usize> {
        let start_ns = self.start_ns(item);
        let from = match self.timed {
            true => self
                .items
                .partition_point(|other| self.start_ns(*other) < start_ns),
            false => 0,
        };
        Some(from + self.items[from..].iter().position(|other| *other == item)?)
    }

    /// Walks away from an item in one direction, `backwards` or forwards over `others`, and adds to `found` the items
    /// that touch bytes of `mine` which no nearer item wrote. Returns true where the walk ended before everything was
    /// found.
    fn search<'i>(
        &self,
        others: impl Iterator<Item = &'i Item>,
        mine: &[ByteRange],
        max: usize,
        backwards: bool,
        found: &mut Vec<Dependency>,
    ) -> bool {
        let mut reads = RemainingBytes::new(mine.iter().filter(|range| range.reads));
        let mut writes = RemainingBytes::new(mine.iter().filter(|range| range.writes));
        let mut theirs = Vec::new();
        for (count, other) in others.enumerate() {
            if reads.is_empty() && writes.is_empty() {
                return false;
            }
            if count >= MAX_EXAMINED || found.len() >= max {
                return true;
            }
            self.ranges_of(*other, &mut theirs);
            // Bytes that the other item writes have nothing to do with items beyond it. Bytes that it reads do, so reads are
            // examined first.
            let mut add = |hazard, buffer, bytes| match found.last_mut() {
                _ if bytes == 0 => {}
                Some(last)
                    if last.row == other.row()
                        && last.kind == other.kind()
                        && last.hazard == hazard =>
                {
                    last.bytes = last.bytes.saturating_add(bytes);
                    if !last.buffers.contains(&buffer) {
                        last.buffers.push(buffer);
                    }
                }
                _ => found.push(Dependency {
                    kind: other.kind(),
                    row: other.row(),
                    hazard,
                    buffers: vec![buffer],
                    bytes,
                }),
            };
            for range in theirs.iter().filter(|range| range.reads) {
                let hazard = match backwards {
                    true => Hazard::WriteAfterRead,
                    false => Hazard::ReadAfterWrite,
                };
                add(hazard, range.buffer, writes.overlap(range));
            }
            for range in theirs.iter().filter(|range| range.writes) {
                let hazard = match backwards {
                    true => Hazard::ReadAfterWrite,
                    false => Hazard::WriteAfterRead,
                };
                add(hazard, range.buffer, reads.take(range));
            }
            for range in theirs.iter().filter(|range| range.writes) {
                add(Hazard::WriteAfterWrite, range.buffer, writes.take(range));
            }
        }
        false
    }
}

/// The ranges of bytes for which no other item has been found yet.
#[derive(Debug, Default)]
struct RemainingBytes(Vec<MemoryRange>);

/// A range of the bytes of a memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct MemoryRange {
    /// The number of the memory, as in [`ByteRange::memory`].
    memory: u64,
    start: u64,
    /// The byte after the last.
    end: u64,
}

impl RemainingBytes {
    /// Joins ranges that overlap or touch.
    fn new<'r>(ranges: impl Iterator<Item = &'r ByteRange>) -> RemainingBytes {
        let mut ranges: Vec<MemoryRange> = ranges
            .filter(|range| range.start < range.end)
            .map(|range| MemoryRange {
                memory: range.memory,
                start: range.start,
                end: range.end,
            })
            .collect();
        ranges.sort_unstable();
        ranges.dedup_by(|next, kept| {
            let joins = next.memory == kept.memory && next.start <= kept.end;
            if joins {
                kept.end = kept.end.max(next.end);
            }
            joins
        });
        RemainingBytes(ranges)
    }

    fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns how many of the remaining bytes lie in a range.
    fn overlap(&self, other: &ByteRange) -> u64 {
        let ranges = self.0.iter().filter(|range| range.memory == other.memory);
        ranges
            .map(|range| {
                let start = other.start.max(range.start);
                other.end.min(range.end).saturating_sub(start)
            })
            .fold(0, u64::saturating_add)
    }

    /// Removes the bytes of a range, and returns how many there were.
    fn take(&mut self, other: &ByteRange) -> u64 {
        let bytes = self.overlap(other);
        if bytes > 0 {
            let cut = |range: MemoryRange| {
                let MemoryRange { memory, start, end } = range;
                let whole = memory != other.memory || other.end <= start || end <= other.start;
                let parts = match whole {
                    true => [(start, end), (0, 0)],
                    false => [(start, other.start.min(end)), (other.end.max(start), end)],
                };
                let parts = parts.into_iter().filter(|(start, end)| start < end);
                parts.map(move |(start, end)| MemoryRange { memory, start, end })
            };
            self.0 = std::mem::take(&mut self.0)
                .into_iter()
                .flat_map(cut)
                .collect();
        }
        bytes
    }
}
