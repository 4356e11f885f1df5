//! What one dispatch or transfer depends on, and what depends on it.

use super::{Dataflow, Item, Reach};
use crate::timeline::WorkKind;
use gapscope_trace::ids::BufferId;
use gapscope_trace::tables::Table;
use schemars::JsonSchema;
use serde::Serialize;

/// Why one must run after the other.
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

/// An item that another depends on, or that depends on it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Dependency {
    /// Dispatch or transfer.
    pub kind: WorkKind,
    /// Its row.
    pub row: usize,
    /// Why.
    pub hazard: Hazard,
    /// Ids of the buffers.
    pub buffers: Vec<BufferId>,
    /// Bytes that both reach.
    pub bytes: u64,
}

/// The neighbours of an item in the graph of dependencies.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Neighbours {
    /// What it depends on, the latest first.
    pub predecessors: Vec<Dependency>,
    /// What depends on it, the earliest first.
    pub successors: Vec<Dependency>,
    /// What was searched, in a sentence, where that is not all.
    pub note: Option<String>,
}

/// Items that are looked at on each side: enough for some milliseconds.
const FARTHEST: usize = 200_000;

impl Dataflow<'_> {
    /// The neighbours of a dispatch or transfer, at most `most` on each side.
    ///
    /// # Errors
    /// A sentence: it is not known what the item reads and writes, or when it ran.
    pub fn neighbours(
        &self,
        kind: WorkKind,
        row: usize,
        most: usize,
    ) -> Result<Neighbours, String> {
        let item = match kind {
            WorkKind::Dispatch => Item::new(false, row),
            WorkKind::Transfer => Item::new(true, row),
            _ => return Err("Only dispatches and transfers have known buffers.".to_owned()),
        };
        let Some(at) = self.find(item) else {
            return Err(
                "Its times are unknown, so what ran before and after it is too.".to_owned(),
            );
        };
        let mut mine = Vec::new();
        if !self.reaches(item, &mut mine) {
            return Err(match item.is_transfer() {
                true => "The trace does not name the buffers of this transfer.".to_owned(),
                false if self.timeline.trace.tables.bindings.is_empty() => {
                    "The trace has no buffer bindings.".to_owned()
                }
                false => "The bindings of this dispatch are unknown, or it has none.".to_owned(),
            });
        }
        let mut neighbours = Neighbours::default();
        let before = self.items[..at].iter().rev();
        let after = self.items[at + 1..].iter();
        let mut cut = self.search(before, &mine, most, true, &mut neighbours.predecessors);
        cut |= self.search(after, &mine, most, false, &mut neighbours.successors);
        neighbours.note = cut.then(|| {
            format!("Looked for among the {FARTHEST} dispatches and transfers before and after it, up to {most} on each side.")
        });
        Ok(neighbours)
    }

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

    /// Walks away from an item. True when the walk ended before everything was found.
    fn search<'i>(
        &self,
        others: impl Iterator<Item = &'i Item>,
        mine: &[Reach],
        most: usize,
        backwards: bool,
        found: &mut Vec<Dependency>,
    ) -> bool {
        let mut reads = Remaining::of(mine.iter().filter(|reach| reach.reads));
        let mut writes = Remaining::of(mine.iter().filter(|reach| reach.writes));
        let mut theirs = Vec::new();
        for (count, other) in others.enumerate() {
            if reads.is_empty() && writes.is_empty() {
                return false;
            }
            if count >= FARTHEST || found.len() >= most {
                return true;
            }
            self.reaches(*other, &mut theirs);
            // What the other writes ends what earlier (or later) ones could have to do with these bytes; what it
            // reads does not, so reads are looked at first.
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
            for reach in theirs.iter().filter(|reach| reach.reads) {
                let hazard = match backwards {
                    true => Hazard::WriteAfterRead,
                    false => Hazard::ReadAfterWrite,
                };
                add(hazard, reach.buffer, writes.overlap(reach));
            }
            for reach in theirs.iter().filter(|reach| reach.writes) {
                let hazard = match backwards {
                    true => Hazard::ReadAfterWrite,
                    false => Hazard::WriteAfterRead,
                };
                add(hazard, reach.buffer, reads.take(reach));
            }
            for reach in theirs.iter().filter(|reach| reach.writes) {
                add(Hazard::WriteAfterWrite, reach.buffer, writes.take(reach));
            }
        }
        false
    }
}

/// Bytes whose other end has not been found.
#[derive(Debug, Default)]
struct Remaining(Vec<Range>);

/// Bytes of a memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Range {
    memory: u64,
    start: u64,
    end: u64,
}

impl Remaining {
    fn of<'r>(reaches: impl Iterator<Item = &'r Reach>) -> Remaining {
        let mut ranges: Vec<Range> = reaches
            .filter(|reach| reach.start < reach.end)
            .map(|reach| Range {
                memory: reach.memory,
                start: reach.start,
                end: reach.end,
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
        Remaining(ranges)
    }

    fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn overlap(&self, reach: &Reach) -> u64 {
        let ranges = self.0.iter().filter(|range| range.memory == reach.memory);
        ranges
            .map(|range| {
                let start = reach.start.max(range.start);
                reach.end.min(range.end).saturating_sub(start)
            })
            .fold(0, u64::saturating_add)
    }

    /// Removes the bytes of `reach`; gives how many there were.
    fn take(&mut self, reach: &Reach) -> u64 {
        let bytes = self.overlap(reach);
        if bytes > 0 {
            let cut = |range: Range| {
                let Range { memory, start, end } = range;
                let whole = memory != reach.memory || reach.end <= start || end <= reach.start;
                let parts = match whole {
                    true => [(start, end), (0, 0)],
                    false => [(start, reach.start.min(end)), (reach.end.max(start), end)],
                };
                let parts = parts.into_iter().filter(|(start, end)| start < end);
                parts.map(move |(start, end)| Range { memory, start, end })
            };
            self.0 = std::mem::take(&mut self.0)
                .into_iter()
                .flat_map(cut)
                .collect();
        }
        bytes
    }
}
