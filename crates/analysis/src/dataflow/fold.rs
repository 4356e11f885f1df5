//! The graph of dependencies, with what repeats folded into one node.

use super::{Dataflow, Item, Reach};
use crate::intervals::Interval;
use crate::timeline::WorkKind;
use gapscope_trace::ids::{BufferId, KernelId, LabelId};
use gapscope_trace::tables::{Table, TransferKind};
use schemars::JsonSchema;
use serde::Serialize;
use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};

/// A folded graph.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct FlowGraph {
    /// In the order in which their first items ran.
    pub nodes: Vec<FlowNode>,
    /// By their ends.
    pub edges: Vec<FlowEdge>,
    /// What was folded, in a sentence.
    pub folded: String,
    /// Dispatches and transfers in the range.
    pub dispatch_count: u64,
    /// How many of them, from the first, the graph is of.
    pub considered_count: u64,
    /// How many of these have no known buffers, and so no edges.
    pub unknown_count: u64,
}

/// What a node stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(rename = "FlowNodeKind")]
pub enum NodeKind {
    /// Dispatches of one kernel.
    Dispatch,
    /// Transfers of one kind.
    Transfer,
    /// All that did not get a node of its own.
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
    /// What it stands for.
    pub kind: NodeKind,
    /// How many.
    pub count: u64,
    /// Sum of their durations; absent when none is known.
    pub total_ns: Option<i64>,
    /// When the first began.
    pub first_start_ns: Option<i64>,
}

/// Reads of what others wrote.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct FlowEdge {
    /// The node that wrote.
    pub from: u32,
    /// The node that read.
    pub to: u32,
    /// Pairs of items.
    pub count: u64,
    /// Names of the buffers, at most [`MAX_BUFFERS`].
    pub buffers: Vec<String>,
    /// Bytes that may have been read, summed over the pairs.
    pub bytes: u64,
}

/// Buffers that an edge names.
pub const MAX_BUFFERS: usize = 8;

/// How nodes are distinguished, from the finest on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Level {
    Label,
    /// Numbers in labels do not count: `step 1` and `step 2` are one.
    NumberlessLabel,
    Name,
}

#[derive(Debug, Default)]
struct Edge {
    count: u64,
    bytes: u64,
    buffers: Vec<BufferId>,
}

impl Dataflow<'_> {
    /// The dispatches and transfers that start in `window`, or all of them, in the order in which they ran; with their rows.
    pub fn work(&self, window: Option<Interval>) -> impl Iterator<Item = (WorkKind, usize)> + '_ {
        let inside = move |item: &&Item| Interval::counts(window, self.start_ns(**item));
        (self.items.iter().filter(inside)).map(|item| (item.kind(), item.row()))
    }

    /// The folded graph of what starts in `window`, with at most `most_nodes` nodes, of the first `most_items` items.
    ///
    /// # Errors
    /// A sentence: what the trace lacks for it.
    pub fn graph(
        &self,
        window: Option<Interval>,
        most_nodes: usize,
        most_items: usize,
    ) -> Result<FlowGraph, String> {
        let inside = |item: &&Item| Interval::counts(window, self.start_ns(**item));
        let mut all = self.items.iter().filter(inside).copied();
        let items: Vec<Item> = all.by_ref().take(most_items).collect();
        let dispatch_count = (items.len() + all.count()) as u64;
        if items.is_empty() {
            return Err("No dispatch or transfer with known order starts here.".to_owned());
        }
        if !items.iter().any(|item| {
            !item.is_transfer()
                && self
                    .timeline
                    .trace
                    .tables
                    .dispatches
                    .bindings
                    .at(item.row())
                    .is_some()
        }) {
            let has = self.timeline.trace.tables.bindings.is_empty();
            return Err(match has {
                true => "The trace has no buffer bindings, so what its dispatches read and wrote is not known. \
                         They are recorded where the API tells them: Vulkan's descriptor sets and push descriptors."
                    .to_owned(),
                false => "None of the dispatches here has known buffer bindings.".to_owned(),
            });
        }
        let (mut nodes, node_of_item, mut folded) = self.nodes(&items, most_nodes.max(1));
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

    /// The nodes, the node of each item, and what was folded.
    fn nodes(&self, items: &[Item], most: usize) -> (Vec<FlowNode>, Vec<u32>, String) {
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
            let mut keys = Keys::new(self, level);
            let node_of_item: Vec<u32> = items.iter().map(|item| keys.node(*item)).collect();
            if keys.nodes.len() <= most {
                return (keys.nodes, node_of_item, sentence.to_owned());
            }
            if level == Level::Name {
                return keep_most(keys.nodes, node_of_item, most);
            }
        }
        unreachable!("the last level always gives nodes")
    }

    fn edges(&self, items: &[Item], node_of_item: &[u32]) -> (Vec<FlowEdge>, u64) {
        // Of each memory, who wrote which bytes last: disjoint segments by their start.
        let mut written: HashMap<u64, Segments> = HashMap::new();
        let mut edges: HashMap<(u32, u32), Edge> = HashMap::new();
        let mut reaches = Vec::new();
        let mut reads: Vec<Read> = Vec::new();
        let mut unknown_count = 0;
        for (at, item) in items.iter().enumerate() {
            if !self.reaches(*item, &mut reaches) {
                unknown_count += 1;
                continue;
            }
            reads.clear();
            for reach in reaches.iter().filter(|reach| reach.reads) {
                let Some(segments) = written.get(&reach.memory) else {
                    continue;
                };
                reads.extend(overlaps(segments, reach));
            }
            reads.sort_unstable_by_key(|read| read.writer);
            for of_one in reads.chunk_by(|a, b| a.writer == b.writer) {
                let key = (node_of_item[of_one[0].writer as usize], node_of_item[at]);
                let edge = edges.entry(key).or_default();
                edge.count += 1;
                for read in of_one {
                    edge.bytes = edge.bytes.saturating_add(read.bytes);
                    if edge.buffers.len() < MAX_BUFFERS && !edge.buffers.contains(&read.buffer) {
                        edge.buffers.push(read.buffer);
                    }
                }
            }
            for reach in reaches
                .iter()
                .filter(|reach| reach.writes && reach.start < reach.end)
            {
                write(written.entry(reach.memory).or_default(), reach, at as u32);
            }
        }
        let mut edges: Vec<FlowEdge> = edges
            .into_iter()
            .map(|((from, to), edge)| FlowEdge {
                from,
                to,
                count: edge.count,
                buffers: edge
                    .buffers
                    .iter()
                    .map(|id| self.buffer_name(*id))
                    .collect(),
                bytes: edge.bytes,
            })
            .collect();
        edges.sort_unstable_by_key(|edge| (edge.from, edge.to));
        (edges, unknown_count)
    }

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

/// Segments of a memory, by their start.
type Segments = BTreeMap<u64, Written>;

/// A segment, and which item wrote it last.
#[derive(Debug, Clone, Copy)]
struct Written {
    end: u64,
    writer: u32,
}

/// Bytes that an item read of what another wrote.
#[derive(Debug, Clone, Copy)]
struct Read {
    writer: u32,
    bytes: u64,
    buffer: BufferId,
}

/// Who wrote the bytes of `reach`, and how many each.
fn overlaps<'s>(segments: &'s Segments, reach: &Reach) -> impl Iterator<Item = Read> + 's {
    let (start, end, buffer) = (reach.start, reach.end, reach.buffer);
    let first = segments
        .range(..=start)
        .next_back()
        .map_or(start, |(from, _)| *from);
    segments
        .range(first..end.max(first))
        .filter_map(move |(from, written)| {
            let bytes = end.min(written.end).saturating_sub(start.max(*from));
            (bytes > 0).then_some(Read {
                writer: written.writer,
                bytes,
                buffer,
            })
        })
}

/// Makes `writer` the last one of the bytes of `reach`.
fn write(segments: &mut Segments, reach: &Reach, writer: u32) {
    let (start, end) = (reach.start, reach.end);
    let first = segments
        .range(..=start)
        .next_back()
        .map_or(start, |(from, _)| *from);
    let touched: Vec<(u64, Written)> = segments
        .range(first..end.max(first))
        .map(|(from, written)| (*from, *written))
        .filter(|(from, written)| *from < end && start < written.end)
        .collect();
    for (from, other) in touched {
        segments.remove(&from);
        if from < start {
            let end = start;
            segments.insert(from, Written { end, ..other });
        }
        if end < other.end {
            segments.insert(end, other);
        }
    }
    segments.insert(start, Written { end, writer });
}

/// Gives items their nodes.
struct Keys<'a> {
    flow: &'a Dataflow<'a>,
    level: Level,
    nodes: Vec<FlowNode>,
    /// By kernel or kind, and by label.
    found: HashMap<(NodeKind, String, Option<String>), u32>,
    /// What was found before: names are texts, and there are many items.
    again: HashMap<(Operation, Option<LabelId>), u32>,
}

/// What an item does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Operation {
    Dispatch(KernelId),
    Transfer(TransferKind),
}

impl<'a> Keys<'a> {
    fn new(flow: &'a Dataflow<'a>, level: Level) -> Keys<'a> {
        Keys {
            flow,
            level,
            nodes: Vec::new(),
            found: HashMap::new(),
            again: HashMap::new(),
        }
    }

    fn node(&mut self, item: Item) -> u32 {
        let timeline = self.flow.timeline;
        let tables = &timeline.trace.tables;
        let row = item.row();
        let (what, own, command_buffer) = match item.is_transfer() {
            true => {
                let table = &tables.transfers;
                (
                    Operation::Transfer(table.kind[row]),
                    table.label.at(row),
                    table.command_buffer.at(row),
                )
            }
            false => {
                let table = &tables.dispatches;
                (
                    Operation::Dispatch(table.kernel[row]),
                    table.label.at(row),
                    table.command_buffer.at(row),
                )
            }
        };
        let label = own
            .or_else(|| {
                let row = timeline.command_buffer_ids.get(command_buffer?)?;
                tables.command_buffers.label.at(row)
            })
            .filter(|_| self.level != Level::Name);
        let quick = (what, label);
        if let Some(node) = self.again.get(&quick) {
            return *node;
        }
        let (kind, name) = match what {
            Operation::Transfer(kind) => (NodeKind::Transfer, kind.as_str().to_owned()),
            Operation::Dispatch(kernel) => {
                let kernel = timeline.kernel_ids.get(kernel);
                let name = kernel.map(|row| timeline.kernel_names.name(row).to_owned());
                (
                    NodeKind::Dispatch,
                    name.unwrap_or_else(|| "unknown kernel".to_owned()),
                )
            }
        };
        let label = label.and_then(|id| timeline.label_path(id));
        let label = match self.level {
            Level::NumberlessLabel => label.as_deref().map(numberless),
            _ => label,
        };
        let fresh = self.nodes.len() as u32;
        let node = *self
            .found
            .entry((kind, name.clone(), label.clone()))
            .or_insert(fresh);
        if node == fresh {
            self.nodes.push(FlowNode {
                id: fresh,
                name,
                label,
                kind,
                count: 0,
                total_ns: None,
                first_start_ns: None,
            });
        }
        self.again.insert(quick, node);
        node
    }
}

/// A text with `#` for each number in it.
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

/// Keeps the nodes of most items, and one for all others.
fn keep_most(
    nodes: Vec<FlowNode>,
    mut node_of_item: Vec<u32>,
    most: usize,
) -> (Vec<FlowNode>, Vec<u32>, String) {
    let mut counts: Vec<(u64, u32)> = (0..nodes.len() as u32).map(|id| (0, id)).collect();
    for node in &node_of_item {
        counts[*node as usize].0 += 1;
    }
    counts.sort_by_key(|(count, id)| (Reverse(*count), *id));
    let mut kept: Vec<u32> = counts.iter().take(most - 1).map(|(_, id)| *id).collect();
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
    shown.push(FlowNode {
        id: rest,
        name: format!("{others} other kernels"),
        label: None,
        kind: NodeKind::Rest,
        count: 0,
        total_ns: None,
        first_start_ns: None,
    });
    let sentence = format!(
        "All work of one kernel is one node; the {others} kernels of fewest dispatches share one."
    );
    (shown, node_of_item, sentence)
}
