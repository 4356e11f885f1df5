//! Builds the graph of dependencies between dispatches and transfers, and folds repeated work into one node. An item
//! is a dispatch or a transfer; a node stands for items that do the same, an edge for reads of what others wrote.
//! Repeated work is folded by label where that gives few enough nodes, otherwise by labels without their numbers,
//! otherwise by name.

use super::reads_and_writes::{ByteRange, Dataflow, Item, UnknownDataflow};
use gapscope_timeline::WorkKind;
use gapscope_timeline::intervals::Interval;
use gapscope_trace::ids::{BufferId, KernelId, LabelId};
use gapscope_trace::tables::{Table, TransferKind};
use schemars::JsonSchema;
use serde::Serialize;
use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap, btree_map};

/// The folded dependency graph of a range, or of the whole trace.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[schemars(rename = "Graph")]
pub struct FlowGraph {
    /// The nodes, in the order in which their first items ran.
    pub nodes: Vec<FlowNode>,
    /// The edges, sorted by their nodes.
    pub edges: Vec<FlowEdge>,
    /// Says in a sentence what was folded.
    pub folded: String,
    /// Dispatches and transfers in the range.
    #[serde(rename = "dispatches")]
    pub dispatch_count: u64,
    /// How many of them, from the first on, are in the graph.
    #[serde(rename = "considered")]
    pub considered_count: u64,
    /// How many of these have no known buffers, and so no edges.
    #[serde(rename = "unknown")]
    pub unknown_count: u64,
}

/// The kind of work that a node stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(rename = "FlowNodeKind")]
pub enum NodeKind {
    /// Dispatches of one kernel.
    Dispatch,
    /// Transfers of one kind.
    Transfer,
    /// All work without a node of its own.
    Rest,
}

/// Dispatches or transfers that do the same.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct FlowNode {
    /// Its index.
    pub id: u32,
    /// The kernel, or the kind of transfer.
    pub name: String,
    /// Path of the label around them, where it distinguishes them.
    pub label: Option<String>,
    /// The kind of its work.
    pub kind: NodeKind,
    /// How many dispatches or transfers it stands for.
    pub count: u64,
    /// Sum of their durations; absent when none is known.
    pub total_ns: Option<i64>,
    /// When the first began.
    pub first_start_ns: Option<i64>,
}

/// Reads of what others wrote.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[schemars(rename = "GraphEdge")]
pub struct FlowEdge {
    /// The node that wrote.
    pub from: u32,
    /// The node that read.
    pub to: u32,
    /// How many pairs of items there are.
    pub count: u64,
    /// Names of the buffers, at most [`MAX_BUFFERS`].
    pub buffers: Vec<String>,
    /// Bytes that may have been read, summed over the pairs; in JSON as digits, since they may pass 2^53.
    #[serde(serialize_with = "digits")]
    #[schemars(with = "String")]
    pub bytes: u64,
}

fn digits<S: serde::Serializer>(number: &u64, to: S) -> Result<S::Ok, S::Error> {
    to.collect_str(number)
}

/// The maximum number of buffers that an edge names. Further ones are left out.
pub const MAX_BUFFERS: usize = 8;

/// The properties by which nodes are distinguished, from the finest level to the coarsest. The first level that gives
/// few enough nodes is taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Level {
    Label,
    /// Numbers in labels are ignored: `step 1` and `step 2` are the same.
    NumberlessLabel,
    Name,
}

/// The sums over the reads that one edge stands for. The count is of pairs of items.
#[derive(Debug, Default)]
struct EdgeSums {
    count: u64,
    bytes: u64,
    buffers: Vec<BufferId>,
}

impl Dataflow<'_> {
    /// Returns the kind and row of each dispatch and transfer that starts in `window`, or of all without a window, in
    /// the order in which they ran.
    pub fn work(&self, window: Option<Interval>) -> impl Iterator<Item = (WorkKind, usize)> + '_ {
        let inside = move |item: &&Item| Interval::counts(window, self.start_ns(**item));
        (self.items.iter().filter(inside)).map(|item| (item.kind(), item.row()))
    }

    /// Builds the folded graph of the work that starts in `window`, with at most `max_nodes` nodes, from the first `max_items`
    /// items.
    ///
    /// # Errors
    ///
    /// Fails where the trace lacks the data that the graph is made of.
    pub fn graph(
        &self,
        window: Option<Interval>,
        max_nodes: usize,
        max_items: usize,
    ) -> Result<FlowGraph, UnknownDataflow> {
        let inside = |item: &&Item| Interval::counts(window, self.start_ns(**item));
        let mut all = self.items.iter().filter(inside).copied();
        let items: Vec<Item> = all.by_ref().take(max_items).collect();
        let dispatch_count = (items.len() + all.count()) as u64;
        if items.is_empty() {
            return Err(UnknownDataflow::NoWork);
        }
        let tables = &self.timeline.trace.tables;
        let bindings = &tables.dispatches.bindings;
        let mut dispatches = items.iter().filter(|item| !item.is_transfer());
        if !dispatches.any(|item| bindings.at(item.row()).is_some()) {
            return Err(match tables.bindings.is_empty() {
                true => UnknownDataflow::NoBindings,
                false => UnknownDataflow::NoBindingsHere,
            });
        }
        let (mut nodes, node_of_item, mut folded) = self.nodes(&items, max_nodes.max(1));
        let (edges, unknown_count) = self.edges(&items, &node_of_item);
        self.measure(&items, &node_of_item, &mut nodes);
        if (items.len() as u64) < dispatch_count {
            folded.push_str(&format!(
                " It is of the first {} dispatches and transfers only.",
                items.len()
            ));
        }
        Ok(FlowGraph {
            nodes,
            edges,
            folded,
            dispatch_count,
            considered_count: items.len() as u64,
            unknown_count,
        })
    }

    /// Returns the nodes, the node index of each item, and a sentence that says which nodes were folded.
    fn nodes(&self, items: &[Item], max: usize) -> (Vec<FlowNode>, Vec<u32>, String) {
        let levels = [
            (
                Level::Label,
                "Work of one kernel under one label is one node.",
            ),
            (
                Level::NumberlessLabel,
                "Work of one kernel under labels that differ only in numbers is one node.",
            ),
            (Level::Name, "All work of one kernel is one node."),
        ];
        for (level, sentence) in levels {
            let mut folder = Folder::new(self, level);
            let node_of_item: Vec<u32> = items.iter().map(|item| folder.node(*item)).collect();
            if folder.nodes.len() <= max {
                return (folder.nodes, node_of_item, sentence.to_owned());
            }
            if level == Level::Name {
                return keep_most(folder.nodes, node_of_item, max);
            }
        }
        unreachable!("the last level always gives nodes")
    }

    /// Returns the edges, and the number of items whose reads and writes are not known. An item reads a byte from the
    /// item that wrote it last.
    fn edges(&self, items: &[Item], node_of_item: &[u32]) -> (Vec<FlowEdge>, u64) {
        // The segments of each memory, with the last writers of their bytes.
        let mut written: HashMap<u64, Segments> = HashMap::new();
        let mut edges: HashMap<(u32, u32), EdgeSums> = HashMap::new();
        let mut ranges = Vec::new();
        let mut reads: Vec<Read> = Vec::new();
        let mut unknown_count = 0;
        for (at, item) in items.iter().enumerate() {
            if !self.ranges_of(*item, &mut ranges) {
                unknown_count += 1;
                continue;
            }
            reads.clear();
            for range in ranges.iter().filter(|range| range.reads) {
                let Some(segments) = written.get(&range.memory) else {
                    continue;
                };
                reads.extend(overlaps(segments, range));
            }
            reads.sort_unstable_by_key(|read| read.writer);
            for of_writer in reads.chunk_by(|a, b| a.writer == b.writer) {
                let key = (node_of_item[of_writer[0].writer as usize], node_of_item[at]);
                let edge = edges.entry(key).or_default();
                edge.count += 1;
                for read in of_writer {
                    edge.bytes = edge.bytes.saturating_add(read.bytes);
                    if edge.buffers.len() < MAX_BUFFERS && !edge.buffers.contains(&read.buffer) {
                        edge.buffers.push(read.buffer);
                    }
                }
            }
            let is_written = |range: &&ByteRange| range.writes && range.start < range.end;
            for range in ranges.iter().filter(is_written) {
                write(written.entry(range.memory).or_default(), range, at as u32);
            }
        }
        let mut edges: Vec<FlowEdge> = edges
            .into_iter()
            .map(|((from, to), edge)| FlowEdge {
                from,
                to,
                count: edge.count,
                buffers: (edge.buffers.iter().map(|id| self.buffer_name(*id))).collect(),
                bytes: edge.bytes,
            })
            .collect();
        edges.sort_unstable_by_key(|edge| (edge.from, edge.to));
        (edges, unknown_count)
    }

    /// Adds to each node the count, durations and first start of its items.
    fn measure(&self, items: &[Item], node_of_item: &[u32], nodes: &mut [FlowNode]) {
        for (item, node) in items.iter().zip(node_of_item) {
            let node = &mut nodes[*node as usize];
            node.count += 1;
            if let Some(ns) = self.duration_ns(*item) {
                node.total_ns = Some(node.total_ns.unwrap_or(0).saturating_add(ns));
            }
            node.first_start_ns = node.first_start_ns.or_else(|| self.start_ns(*item));
        }
    }
}

/// The disjoint segments of a memory, by the segment's start.
type Segments = BTreeMap<u64, WrittenSegment>;

/// A segment of memory, and the index of the item that wrote it last.
#[derive(Debug, Clone, Copy)]
struct WrittenSegment {
    /// The byte after the segment's last.
    end: u64,
    writer: u32,
}

/// Bytes that an item read and another item wrote.
#[derive(Debug, Clone, Copy)]
struct Read {
    /// The index of the item, as in [`WrittenSegment`], that wrote the bytes.
    writer: u32,
    bytes: u64,
    buffer: BufferId,
}

/// Returns the segments that begin in a range of bytes, and the last that begins before it.
fn near<'s>(
    segments: &'s Segments,
    range: &ByteRange,
) -> btree_map::Range<'s, u64, WrittenSegment> {
    let mut before = segments.range(..=range.start);
    let first = before.next_back().map_or(range.start, |(from, _)| *from);
    segments.range(first..range.end.max(first))
}

/// Returns the writers of the bytes of a range, and how many bytes each wrote.
fn overlaps<'s>(segments: &'s Segments, range: &ByteRange) -> impl Iterator<Item = Read> + 's {
    let (start, end, buffer) = (range.start, range.end, range.buffer);
    near(segments, range).filter_map(move |(from, written)| {
        let bytes = end.min(written.end).saturating_sub(start.max(*from));
        (bytes > 0).then_some(Read {
            writer: written.writer,
            bytes,
            buffer,
        })
    })
}

/// Makes `writer` the last writer of the bytes of a range.
fn write(segments: &mut Segments, range: &ByteRange, writer: u32) {
    let (start, end) = (range.start, range.end);
    let touched: Vec<(u64, WrittenSegment)> = near(segments, range)
        .map(|(from, written)| (*from, *written))
        .filter(|(from, written)| *from < end && start < written.end)
        .collect();
    for (from, other) in touched {
        segments.remove(&from);
        if from < start {
            let end = start;
            segments.insert(from, WrittenSegment { end, ..other });
        }
        if end < other.end {
            segments.insert(end, other);
        }
    }
    segments.insert(start, WrittenSegment { end, writer });
}

/// Assigns nodes to items.
struct Folder<'a> {
    flow: &'a Dataflow<'a>,
    level: Level,
    nodes: Vec<FlowNode>,
    /// The node of each kernel or kind under each label's text; `None` for work without a label.
    by_name: HashMap<(NodeKind, String, Option<String>), u32>,
    /// The node of each operation and label id that was found before. This is faster than a look-up by texts, and
    /// there are many items.
    by_ids: HashMap<(Operation, Option<LabelId>), u32>,
}

/// What an item does: it runs a kernel, or makes a kind of transfer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Operation {
    Dispatch(KernelId),
    Transfer(TransferKind),
}

impl<'a> Folder<'a> {
    fn new(flow: &'a Dataflow<'a>, level: Level) -> Folder<'a> {
        Folder {
            flow,
            level,
            nodes: Vec::new(),
            by_name: HashMap::new(),
            by_ids: HashMap::new(),
        }
    }

    /// Returns the node of an item, and adds it where it is new. An item without a label has the label of its command
    /// buffer.
    fn node(&mut self, item: Item) -> u32 {
        let timeline = self.flow.timeline;
        let tables = &timeline.trace.tables;
        let what = match item.is_transfer() {
            true => Operation::Transfer(tables.transfers.kind[item.row()]),
            false => Operation::Dispatch(tables.dispatches.kernel[item.row()]),
        };
        let columns = self.flow.columns(item);
        let around = || {
            let row = (timeline.command_buffer_ids).get(columns.command_buffer?)?;
            tables.command_buffers.label.at(row)
        };
        let label = columns.label.or_else(around);
        let label = label.filter(|_| self.level != Level::Name);
        let quick = (what, label);
        if let Some(node) = self.by_ids.get(&quick) {
            return *node;
        }
        let (kind, name) = match what {
            Operation::Transfer(kind) => (NodeKind::Transfer, kind.as_str().to_owned()),
            Operation::Dispatch(kernel) => {
                let kernel = timeline.kernel_ids.get(kernel);
                let name = kernel.map_or("unknown kernel", |row| timeline.kernel_names.name(row));
                (NodeKind::Dispatch, name.to_owned())
            }
        };
        let label = label.and_then(|id| timeline.label_path(id));
        let label = match self.level {
            Level::NumberlessLabel => label.as_deref().map(numberless),
            _ => label,
        };
        let fresh = self.nodes.len() as u32;
        let node = *self
            .by_name
            .entry((kind, name.clone(), label.clone()))
            .or_insert(fresh);
        if node == fresh {
            self.nodes.push(FlowNode::new(fresh, kind, name, label));
        }
        self.by_ids.insert(quick, node);
        node
    }
}

impl FlowNode {
    /// Makes a node that stands for no work yet.
    fn new(id: u32, kind: NodeKind, name: String, label: Option<String>) -> FlowNode {
        FlowNode {
            id,
            name,
            label,
            kind,
            count: 0,
            total_ns: None,
            first_start_ns: None,
        }
    }
}

/// Replaces each number in a text by `#`.
fn numberless(text: &str) -> String {
    let mut result = String::with_capacity(text.len());
    for c in text.chars() {
        match c.is_ascii_digit() {
            true if result.ends_with('#') => {}
            true => result.push('#'),
            false => result.push(c),
        }
    }
    result
}

/// Keeps the `max` - 1 nodes with the most items, and adds one node for all others, which comes last. Returns the
/// nodes, the new node of each item, and a sentence that says so.
fn keep_most(
    nodes: Vec<FlowNode>,
    mut node_of_item: Vec<u32>,
    max: usize,
) -> (Vec<FlowNode>, Vec<u32>, String) {
    let mut counts: Vec<(u64, u32)> = (0..nodes.len() as u32).map(|id| (0, id)).collect();
    for node in &node_of_item {
        counts[*node as usize].0 += 1;
    }
    counts.sort_by_key(|(count, id)| (Reverse(*count), *id));
    let mut kept: Vec<u32> = counts.iter().take(max - 1).map(|(_, id)| *id).collect();
    kept.sort_unstable();
    let rest = kept.len() as u32;
    let mut place = vec![rest; nodes.len()];
    for (at, id) in kept.iter().enumerate() {
        place[*id as usize] = at as u32;
    }
    for node in &mut node_of_item {
        *node = place[*node as usize];
    }
    let others = nodes.len() - kept.len();
    let mut shown: Vec<FlowNode> = nodes
        .into_iter()
        .filter(|node| place[node.id as usize] != rest)
        .collect();
    for (at, node) in shown.iter_mut().enumerate() {
        node.id = at as u32;
    }
    let name = format!("{others} other kernels");
    shown.push(FlowNode::new(rest, NodeKind::Rest, name, None));
    let sentence = format!(
        "All work of one kernel is one node; the {others} kernels of fewest dispatches share one."
    );
    (shown, node_of_item, sentence)
}
