//! Data flow: which dispatches and transfers read what others wrote.
//!
//! What a dispatch may read and write are the buffer ranges bound to it, by what its code may do with them; buffers in
//! one allocation share its bytes. A transfer may touch all of its buffers, since the trace does not say where in them.
//! Work is taken in the order in which the device began it, or, where single dispatches have no times, in the order of the command
//! buffers.
//!
//! What this cannot know: whether a kernel touches all that is bound to it, so a dependency here *may* be one; what it
//! reaches through device addresses, images and push constants; dispatches whose bindings are unknown, which have none.

mod fold;
mod hazards;

pub use fold::{FlowEdge, FlowGraph, FlowNode, NodeKind};
pub use hazards::{Dependency, Hazard, Neighbours};

use crate::intervals::Interval;
use crate::timeline::{Timeline, WorkKind};
use gapscope_trace::ids::{BindingSetId, BufferId, CommandBufferId, Id};
use gapscope_trace::lookup::IdIndex;
use gapscope_trace::manifest::SamplingMode;
use gapscope_trace::tables::{Access, Table};
use std::collections::HashMap;
use std::ops::Range;

/// The reads and writes of a trace.
#[derive(Debug)]
pub struct Dataflow<'a> {
    timeline: &'a Timeline<'a>,
    /// Dispatches and transfers in the order in which they ran.
    items: Vec<Item>,
    sets: HashMap<BindingSetId, Range<u32>>,
    /// Ranges of all sets of bindings, those of one set together.
    reaches: Vec<Reach>,
    buffer_ids: IdIndex<BufferId>,
    /// True when dispatches have times of their own.
    timed: bool,
}

/// A dispatch or a transfer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Item(u32);

const TRANSFER: u32 = 1 << 31;

impl Item {
    fn new(transfer: bool, row: usize) -> Item {
        Item(row as u32 | if transfer { TRANSFER } else { 0 })
    }

    fn is_transfer(self) -> bool {
        self.0 & TRANSFER != 0
    }

    fn row(self) -> usize {
        (self.0 & !TRANSFER) as usize
    }

    fn kind(self) -> WorkKind {
        match self.is_transfer() {
            true => WorkKind::Transfer,
            false => WorkKind::Dispatch,
        }
    }
}

/// Bytes that may be read or written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Reach {
    memory: u64,
    start: u64,
    end: u64,
    buffer: BufferId,
    reads: bool,
    writes: bool,
}

/// Memory of buffers whose allocation is unknown: one for each.
const OWN_MEMORY: u64 = 1 << 32;

impl<'a> Dataflow<'a> {
    /// The reads and writes of all dispatches and transfers.
    pub fn of(timeline: &'a Timeline<'a>) -> Dataflow<'a> {
        let tables = &timeline.trace.tables;
        let buffer_ids = IdIndex::new(&tables.buffers.id);
        let mut flow = Dataflow {
            timeline,
            items: Vec::new(),
            sets: HashMap::new(),
            reaches: Vec::new(),
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

    fn find_sets(&mut self) {
        let rows = &self.timeline.trace.tables.bindings;
        let mut order: Vec<u32> = (0..rows.len() as u32).collect();
        order.sort_by_key(|row| rows.id[*row as usize]);
        for set in order.chunk_by(|a, b| rows.id[*a as usize] == rows.id[*b as usize]) {
            let from = self.reaches.len() as u32;
            for row in set.iter().map(|row| *row as usize) {
                let access = rows.access[row];
                let offset = rows.offset_bytes[row];
                let end = offset.saturating_add(rows.bytes[row]);
                let reach = self.reach(rows.buffer[row], offset, Some(end));
                self.reaches.push(Reach {
                    reads: access != Access::Write,
                    writes: access != Access::Read,
                    ..reach
                });
            }
            let to = self.reaches.len() as u32;
            self.sets.insert(rows.id[set[0] as usize], from..to);
        }
    }

    fn find_items(&mut self) {
        let timeline = self.timeline;
        if self.timed {
            let several = timeline
                .gpus
                .iter()
                .filter(|gpu| !gpu.works.is_empty())
                .count()
                > 1;
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
        let place = |command_buffer: Option<CommandBufferId>| {
            let row = command_buffer.and_then(|id| timeline.command_buffer_ids.get(id));
            let start_ns = row.and_then(|row| timeline.command_buffers[row].own);
            (start_ns.map_or(i64::MAX, |own| own.start_ns), row)
        };
        let dispatches = &tables.dispatches;
        let transfers = &tables.transfers;
        let mut items: Vec<_> = (0..dispatches.len())
            .map(|row| {
                (
                    place(dispatches.command_buffer.at(row)),
                    dispatches.position[row],
                    Item::new(false, row),
                )
            })
            .chain((0..transfers.len()).map(|row| {
                (
                    place(transfers.command_buffer.at(row)),
                    transfers.position[row],
                    Item::new(true, row),
                )
            }))
            .collect();
        items.sort_by_key(|(place, position, _)| (*place, *position));
        self.items = items.into_iter().map(|(_, _, item)| item).collect();
    }

    /// A part of a buffer; all of it where `end` is not known.
    fn reach(&self, buffer: BufferId, start: u64, end: Option<u64>) -> Reach {
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
        Reach {
            memory,
            start: start.min(end).saturating_add(offset),
            end: end.saturating_add(offset),
            buffer,
            reads: true,
            writes: true,
        }
    }

    /// What an item may read and write. False when that is not known.
    fn reaches(&self, item: Item, reaches: &mut Vec<Reach>) -> bool {
        reaches.clear();
        let tables = &self.timeline.trace.tables;
        let row = item.row();
        if item.is_transfer() {
            let table = &tables.transfers;
            let ends = [
                (table.source.at(row), true),
                (table.destination.at(row), false),
            ];
            for (buffer, reads) in ends {
                reaches.extend(buffer.map(|buffer| Reach {
                    reads,
                    writes: !reads,
                    ..self.reach(buffer, 0, None)
                }));
            }
            return !reaches.is_empty();
        }
        let set = tables
            .dispatches
            .bindings
            .at(row)
            .and_then(|id| self.sets.get(&id));
        let Some(set) = set else { return false };
        reaches.extend_from_slice(&self.reaches[set.start as usize..set.end as usize]);
        true
    }

    fn start_ns(&self, item: Item) -> Option<i64> {
        let tables = &self.timeline.trace.tables;
        let (own, command_buffer) = match item.is_transfer() {
            true => (
                tables.transfers.start_ns.at(item.row()),
                tables.transfers.command_buffer.at(item.row()),
            ),
            false => (
                tables.dispatches.start_ns.at(item.row()),
                tables.dispatches.command_buffer.at(item.row()),
            ),
        };
        if self.timed {
            return own;
        }
        let row = self.timeline.command_buffer_ids.get(command_buffer?)?;
        Some(self.timeline.command_buffers[row].own?.start_ns)
    }

    fn duration_ns(&self, item: Item) -> Option<i64> {
        let tables = &self.timeline.trace.tables;
        let (start_ns, duration_ns) = match item.is_transfer() {
            true => (
                tables.transfers.start_ns.at(item.row()),
                tables.transfers.duration_ns.at(item.row()),
            ),
            false => (
                tables.dispatches.start_ns.at(item.row()),
                tables.dispatches.duration_ns.at(item.row()),
            ),
        };
        Interval::of_row(start_ns, duration_ns).map(Interval::length_ns)
    }

    /// Name that the program gave a buffer, or one with its id.
    pub fn buffer_name(&self, id: BufferId) -> String {
        let row = self.buffer_ids.get(id);
        let name = row.and_then(|row| self.timeline.trace.tables.buffers.name[row].clone());
        name.map_or_else(|| format!("buffer {id}"), |name| name.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gapscope_trace::Trace;

    /// x -> double -> y -> add -> z, twice; `lonely` shares nothing.
    const CHAIN: &str = "
        device id=1
        queue id=1 device=1
        buffer id=1 device=1 bytes=100 name=x
        buffer id=2 device=1 bytes=100 name=y
        buffer id=3 device=1 bytes=100 name=z
        binding id=1 binding=0 buffer=1 bytes=100 access=read
        binding id=1 binding=1 buffer=2 bytes=100 access=write
        binding id=2 binding=0 buffer=2 offset_bytes=50 bytes=50 access=read
        binding id=2 binding=1 buffer=3 bytes=100 access=write
        kernel id=1 name=double
        kernel id=2 name=add
        kernel id=3 name=lonely
        dispatch queue=1 kernel=1 start_ns=100 duration_ns=10 bindings=1
        dispatch queue=1 kernel=3 start_ns=115 duration_ns=2
        dispatch queue=1 kernel=2 start_ns=120 duration_ns=10 bindings=2
        dispatch queue=1 kernel=1 start_ns=140 duration_ns=10 bindings=1
        dispatch queue=1 kernel=2 start_ns=160 duration_ns=10 bindings=2";

    fn with<T>(text: &str, check: impl FnOnce(&Dataflow) -> T) -> T {
        let trace = Trace::from_text(text).unwrap();
        let timeline = Timeline::of(&trace);
        check(&Dataflow::of(&timeline))
    }

    fn rows(dependencies: &[Dependency]) -> Vec<(usize, Hazard, u64)> {
        dependencies
            .iter()
            .map(|d| (d.row, d.hazard, d.bytes))
            .collect()
    }

    #[test]
    fn a_reader_depends_on_the_last_writer_of_the_bytes_that_it_reads() {
        with(CHAIN, |flow| {
            let add = flow.neighbours(WorkKind::Dispatch, 2, 64).unwrap();
            assert_eq!(rows(&add.predecessors), [(0, Hazard::ReadAfterWrite, 50)]);
            assert_eq!(flow.buffer_name(add.predecessors[0].buffers[0]), "y");
            // The next `double` overwrites what this `add` read, the next `add` what it wrote.
            assert_eq!(
                rows(&add.successors),
                [
                    (3, Hazard::WriteAfterRead, 50),
                    (4, Hazard::WriteAfterWrite, 100)
                ]
            );
            let last = flow.neighbours(WorkKind::Dispatch, 4, 64).unwrap();
            assert_eq!(last.predecessors[0].row, 3);
        });
    }

    #[test]
    fn unknown_bindings_have_no_neighbours_to_name() {
        with(CHAIN, |flow| {
            assert!(flow.neighbours(WorkKind::Dispatch, 1, 64).is_err());
        });
    }

    #[test]
    fn repeats_fold_into_one_node() {
        with(CHAIN, |flow| {
            let graph = flow.graph(None, 150, 1000).unwrap();
            let names: Vec<_> = graph
                .nodes
                .iter()
                .map(|n| (n.name.as_str(), n.count))
                .collect();
            assert_eq!(names, [("double", 2), ("lonely", 1), ("add", 2)]);
            assert_eq!(graph.edges.len(), 1);
            assert_eq!((graph.edges[0].from, graph.edges[0].to), (0, 2));
            assert_eq!((graph.edges[0].count, graph.edges[0].bytes), (2, 100));
            assert_eq!((graph.dispatch_count, graph.considered_count), (5, 5));
        });
    }

    #[test]
    fn a_small_graph_folds_what_it_cannot_show() {
        with(CHAIN, |flow| {
            let graph = flow.graph(None, 2, 1000).unwrap();
            assert_eq!(graph.nodes.len(), 2);
            assert_eq!(graph.nodes.iter().map(|n| n.count).sum::<u64>(), 5);
            assert!(graph.nodes.iter().any(|n| n.kind == NodeKind::Rest));
        });
    }

    #[test]
    fn labels_that_count_steps_fold_when_there_are_too_many() {
        let mut text =
            "device id=1\nqueue id=1 device=1\nkernel id=1 name=k\nbuffer id=1 device=1 bytes=8\n\
                        binding id=1 buffer=1 bytes=8 access=read-write\n"
                .to_owned();
        for step in 0..20 {
            text.push_str(&format!("label id={step} text=\"step {step}\"\n"));
            text.push_str(&format!(
                "dispatch queue=1 kernel=1 start_ns={} duration_ns=5 bindings=1 label={step}\n",
                step * 10
            ));
        }
        with(&text, |flow| {
            assert_eq!(flow.graph(None, 20, 1000).unwrap().nodes.len(), 20);
            let folded = flow.graph(None, 10, 1000).unwrap();
            assert_eq!(folded.nodes.len(), 1);
            assert_eq!(folded.nodes[0].label.as_deref(), Some("step #"));
            assert_eq!(folded.edges[0].count, 19);
        });
    }

    #[test]
    fn without_bindings_the_graph_says_so() {
        let text = "device id=1\nqueue id=1 device=1\nkernel id=1 name=k\ndispatch queue=1 kernel=1 start_ns=1 duration_ns=1";
        with(text, |flow| {
            let missing = flow.graph(None, 150, 1000).unwrap_err();
            assert!(missing.contains("bindings"), "{missing}");
        });
    }

    #[test]
    fn buffers_in_one_allocation_share_bytes() {
        let text = "
            device id=1
            queue id=1 device=1
            kernel id=1 name=k
            buffer id=1 device=1 bytes=64 allocation=7 offset_bytes=0
            buffer id=2 device=1 bytes=64 allocation=7 offset_bytes=32
            binding id=1 buffer=1 bytes=64 access=write
            binding id=2 buffer=2 bytes=64 access=read
            dispatch queue=1 kernel=1 start_ns=1 duration_ns=1 bindings=1
            dispatch queue=1 kernel=1 start_ns=3 duration_ns=1 bindings=2";
        with(text, |flow| {
            let reader = flow.neighbours(WorkKind::Dispatch, 1, 64).unwrap();
            assert_eq!(
                rows(&reader.predecessors),
                [(0, Hazard::ReadAfterWrite, 32)]
            );
        });
    }

    #[test]
    fn without_times_the_order_is_that_of_the_command_buffers() {
        let text = "
            manifest sampling_mode=command-buffer
            device id=1
            queue id=1 device=1
            kernel id=1 name=k
            buffer id=1 device=1 bytes=64
            binding id=1 buffer=1 bytes=64 access=write
            binding id=2 buffer=1 bytes=64 access=read
            command_buffer id=1 queue=1 start_ns=50 duration_ns=10 dispatches=1
            command_buffer id=2 queue=1 start_ns=10 duration_ns=10 dispatches=1
            dispatch command_buffer=1 queue=1 kernel=1 bindings=2
            dispatch command_buffer=2 queue=1 kernel=1 bindings=1";
        with(text, |flow| {
            let reader = flow.neighbours(WorkKind::Dispatch, 0, 64).unwrap();
            assert_eq!(
                rows(&reader.predecessors),
                [(1, Hazard::ReadAfterWrite, 64)]
            );
        });
    }
}
