//! Collects from the tables of a trace the byte ranges that each dispatch and transfer may read and write. Transfers
//! and dispatches are called items here, and are kept in the order in which they ran. A set of bindings holds the
//! buffer ranges that a dispatch was given.

use gapscope_timeline::intervals::Interval;
use gapscope_timeline::{Timeline, WorkKind};
use gapscope_trace::ids::{BindingSetId, BufferId, CommandBufferId, Id, LabelId};
use gapscope_trace::lookup::IdIndex;
use gapscope_trace::manifest::SamplingMode;
use gapscope_trace::tables::{Access, Table};
use std::collections::HashMap;
use std::ops::Range;

/// The reason why the data flow of some work is unknown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum UnknownDataflow {
    /// No dispatch or transfer starts in the window.
    #[error("No dispatch or transfer with known order starts here.")]
    NoWork,
    /// The trace has no bindings.
    #[error(
        "The trace has no buffer bindings, so what its dispatches read and wrote is not known. \
         They are recorded where the API tells them: Vulkan's descriptor sets and push descriptors."
    )]
    NoBindings,
    /// No dispatch in the window has bindings.
    #[error("None of the dispatches here has known buffer bindings.")]
    NoBindingsHere,
    /// The work is neither a dispatch nor a transfer.
    #[error("Only dispatches and transfers have known buffers.")]
    OtherWork,
    /// The times of the dispatch or transfer are unknown.
    #[error("Its times are unknown, so what ran before and after it is too.")]
    Untimed,
    /// The buffers of the transfer are unknown.
    #[error("The trace does not name the buffers of this transfer.")]
    TransferBuffers,
    /// The trace has no bindings for its dispatches.
    #[error("The trace has no buffer bindings.")]
    NoBindingsInTrace,
    /// The bindings of the dispatch are unknown.
    #[error("No bindings of this dispatch were recorded.")]
    DispatchBindings,
}

/// The byte ranges that the dispatches and transfers of a trace may read and write.
#[derive(Debug)]
pub struct Dataflow<'a> {
    pub(super) timeline: &'a Timeline<'a>,
    /// The dispatches and transfers in the order in which they ran.
    pub(super) items: Vec<Item>,
    /// The places of each set's ranges in `ranges`.
    sets: HashMap<BindingSetId, Range<u32>>,
    /// The byte ranges of all sets of bindings. Those of one set are consecutive.
    ranges: Vec<ByteRange>,
    /// The row of each buffer.
    buffer_ids: IdIndex<BufferId>,
    /// True where dispatches have times of their own.
    pub(super) timed: bool,
}

/// The number of a dispatch or a transfer: its row, and the bit [`TRANSFER`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Item(u32);

/// The bit of an item's number that marks a transfer.
const TRANSFER: u32 = 1 << 31;

impl Item {
    pub(super) fn new(transfer: bool, row: usize) -> Item {
        Item(row as u32 | if transfer { TRANSFER } else { 0 })
    }

    pub(super) fn is_transfer(self) -> bool {
        self.0 & TRANSFER != 0
    }

    pub(super) fn row(self) -> usize {
        (self.0 & !TRANSFER) as usize
    }

    pub(super) fn kind(self) -> WorkKind {
        match self.is_transfer() {
            true => WorkKind::Transfer,
            false => WorkKind::Dispatch,
        }
    }
}

/// The columns of an item that the tables of dispatches and of transfers share.
pub(super) struct ItemColumns {
    pub(super) command_buffer: Option<CommandBufferId>,
    /// The place in the command buffer.
    position: u32,
    pub(super) label: Option<LabelId>,
    start_ns: Option<i64>,
    duration_ns: Option<i64>,
}

/// A range of bytes that an item may read or write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ByteRange {
    /// The number of the allocation, or, where that is not known, of the buffer with the bit [`OWN_MEMORY`].
    pub(super) memory: u64,
    pub(super) start: u64,
    /// The byte after the last.
    pub(super) end: u64,
    pub(super) buffer: BufferId,
    pub(super) reads: bool,
    pub(super) writes: bool,
}

/// The bit of the memory numbers of buffers whose allocation is unknown: each is a memory of its own.
const OWN_MEMORY: u64 = 1 << 32;

impl<'a> Dataflow<'a> {
    /// Collects the reads and writes of all dispatches and transfers.
    pub fn new(timeline: &'a Timeline<'a>) -> Dataflow<'a> {
        let tables = &timeline.trace.tables;
        let buffer_ids = IdIndex::new(&tables.buffers.id);
        let mut flow = Dataflow {
            timeline,
            items: Vec::new(),
            sets: HashMap::new(),
            ranges: Vec::new(),
            buffer_ids,
            timed: !matches!(
                timeline.trace.manifest.sampling_mode,
                SamplingMode::CommandBuffer | SamplingMode::Pass
            ),
        };
        flow.find_sets();
        flow.find_items();
        flow
    }

    /// Fills `sets` and `ranges` from the table of bindings.
    fn find_sets(&mut self) {
        let rows = &self.timeline.trace.tables.bindings;
        let mut order: Vec<u32> = (0..rows.len() as u32).collect();
        order.sort_by_key(|row| rows.id[*row as usize]);
        for set in order.chunk_by(|a, b| rows.id[*a as usize] == rows.id[*b as usize]) {
            let from = self.ranges.len() as u32;
            for row in set.iter().map(|row| *row as usize) {
                let access = rows.access[row];
                let offset = rows.offset_bytes[row];
                let end = offset.saturating_add(rows.bytes[row]);
                let range = self.byte_range(rows.buffer[row], offset, Some(end));
                self.ranges.push(ByteRange {
                    reads: access != Access::Write,
                    writes: access != Access::Read,
                    ..range
                });
            }
            let to = self.ranges.len() as u32;
            self.sets.insert(rows.id[set[0] as usize], from..to);
        }
    }

    /// Fills `items` in the order of running: by their own times, or else by the start of their command buffer and
    /// their position in it. With own times, untimed items are left out.
    fn find_items(&mut self) {
        let timeline = self.timeline;
        if self.timed {
            let used = timeline.gpus.iter().filter(|gpu| !gpu.works.is_empty());
            let several = used.count() > 1;
            let works = timeline.gpus.iter().flat_map(|gpu| &gpu.works);
            self.items = works
                .filter_map(|work| match work.kind() {
                    WorkKind::Dispatch => Some(Item::new(false, work.row())),
                    WorkKind::Transfer => Some(Item::new(true, work.row())),
                    WorkKind::Opaque | WorkKind::CommandBuffer => None,
                })
                .collect();
            if several {
                let mut items = std::mem::take(&mut self.items);
                items.sort_by_key(|item| self.start_ns(*item));
                self.items = items;
            }
            return;
        }
        let tables = &timeline.trace.tables;
        let dispatches = (0..tables.dispatches.len()).map(|row| Item::new(false, row));
        let transfers = (0..tables.transfers.len()).map(|row| Item::new(true, row));
        let mut items: Vec<Item> = dispatches.chain(transfers).collect();
        items.sort_by_cached_key(|item| {
            let columns = self.columns(*item);
            let row = (columns.command_buffer).and_then(|id| timeline.command_buffer_ids.get(id));
            let own = row.and_then(|row| timeline.command_buffers[row].own);
            let start_ns = own.map_or(i64::MAX, |own| own.start_ns);
            (start_ns, row, columns.position)
        });
        self.items = items;
    }

    /// Returns a part of a buffer, or all of it where `end` is not known.
    fn byte_range(&self, buffer: BufferId, start: u64, end: Option<u64>) -> ByteRange {
        let buffers = &self.timeline.trace.tables.buffers;
        let row = self.buffer_ids.get(buffer);
        let size = row.map_or(u64::MAX, |row| buffers.bytes[row]);
        let end = end.unwrap_or(size).min(size);
        let placed =
            row.and_then(|row| Some((buffers.allocation.at(row)?, buffers.offset_bytes.at(row)?)));
        let (memory, offset) = match placed {
            Some((allocation, offset)) => (allocation.number(), offset),
            None => (OWN_MEMORY | buffer.number(), 0),
        };
        ByteRange {
            memory,
            start: start.min(end).saturating_add(offset),
            end: end.saturating_add(offset),
            buffer,
            reads: true,
            writes: true,
        }
    }

    /// Puts the bytes that an item may read and write into `ranges`, in place of what was there. Returns false where
    /// they are not known.
    pub(super) fn ranges_of(&self, item: Item, ranges: &mut Vec<ByteRange>) -> bool {
        ranges.clear();
        let tables = &self.timeline.trace.tables;
        let row = item.row();
        if item.is_transfer() {
            let table = &tables.transfers;
            let ends = [
                (table.source.at(row), true),
                (table.destination.at(row), false),
            ];
            for (buffer, reads) in ends {
                ranges.extend(buffer.map(|buffer| ByteRange {
                    reads,
                    writes: !reads,
                    ..self.byte_range(buffer, 0, None)
                }));
            }
            return !ranges.is_empty();
        }
        let set = tables
            .dispatches
            .bindings
            .at(row)
            .and_then(|id| self.sets.get(&id));
        let Some(set) = set else { return false };
        ranges.extend_from_slice(&self.ranges[set.start as usize..set.end as usize]);
        true
    }

    /// Returns when an item began, or, where dispatches have no times of their own, when its command buffer began.
    pub(super) fn start_ns(&self, item: Item) -> Option<i64> {
        let columns = self.columns(item);
        if self.timed {
            return columns.start_ns;
        }
        let row = (self.timeline.command_buffer_ids).get(columns.command_buffer?)?;
        Some(self.timeline.command_buffers[row].own?.start_ns)
    }

    /// Returns the columns of an item that both tables have.
    pub(super) fn columns(&self, item: Item) -> ItemColumns {
        let (tables, row) = (&self.timeline.trace.tables, item.row());
        macro_rules! columns {
            ($table:ident) => {
                ItemColumns {
                    command_buffer: tables.$table.command_buffer.at(row),
                    position: tables.$table.position[row],
                    label: tables.$table.label.at(row),
                    start_ns: tables.$table.start_ns.at(row),
                    duration_ns: tables.$table.duration_ns.at(row),
                }
            };
        }
        match item.is_transfer() {
            true => columns!(transfers),
            false => columns!(dispatches),
        }
    }

    pub(super) fn duration_ns(&self, item: Item) -> Option<i64> {
        let columns = self.columns(item);
        Interval::from_row(columns.start_ns, columns.duration_ns).map(Interval::length_ns)
    }

    /// Returns the name that the program gave a buffer, or else a name made of its id.
    pub fn buffer_name(&self, id: BufferId) -> String {
        let row = self.buffer_ids.get(id);
        let name = row.and_then(|row| self.timeline.trace.tables.buffers.name[row].clone());
        name.map_or_else(|| format!("buffer {id}"), |name| name.to_string())
    }
}
