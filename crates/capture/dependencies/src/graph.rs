//! Finds the edges between commands of a window (captured GPU work) that reach the same bytes: [`Node`]s with their
//! accesses go in, a [`Graph`] comes out.
//!
//! A byte is addressed by its allocation and offset. Commands are taken in the order of submission. Each byte has its
//! last write and the reads since, and a command that reaches the byte depends on those.

mod segments;

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::Serialize;

use crate::bytes::ByteSet;
use crate::footprint::Grid;
use crate::scope::Scope;
use segments::{AccessRef, Segments};

/// The most edges of a graph; beyond them the graph ends at [`Graph::cut_at`].
const MAX_EDGES: usize = 1_000_000;
/// The most pieces of memory that are examined; beyond them the graph ends at [`Graph::cut_at`].
const MAX_LOOKS: u64 = 200_000_000;
/// The most ranges that a part of an edge keeps; further ones are merged with the last.
const MAX_RANGES: usize = 64;

/// The kind of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum NodeKind {
    /// A kernel runs.
    Dispatch,
    /// Bytes are copied.
    Copy,
    /// A range is filled.
    Fill,
    /// Bytes of the command buffer are written.
    Update,
}

impl NodeKind {
    /// Returns the value's name.
    pub fn as_str(self) -> &'static str {
        match self {
            NodeKind::Dispatch => "dispatch",
            NodeKind::Copy => "copy",
            NodeKind::Fill => "fill",
            NodeKind::Update => "update",
        }
    }
}

/// A dispatch or a transfer of the window, with the bytes that it reaches.
#[derive(Debug, Clone, Default)]
pub struct Node {
    /// Kind of the command, which is never `None` in a graph.
    pub kind: Option<NodeKind>,
    /// Name of the kernel, or the kind of transfer.
    pub name: String,
    /// The labels around the node, the outermost first.
    pub labels: Vec<String>,
    /// Number of the submission, from 0.
    pub submission: usize,
    /// Number of the batch (an element of a submission, with its own semaphores) among all submissions' batches, from
    /// 0.
    pub batch: usize,
    /// Number of the queue.
    pub queue: u32,
    /// The bytes that the node reaches.
    pub accesses: Vec<Access>,
    /// Why the node may reach memory outside of its accesses; `None` if it does not.
    pub beyond: Option<String>,
    /// Duration on the device in nanoseconds, if it was recorded.
    pub duration_ns: Option<u64>,
    /// Workgroups and invocations of a dispatch, if they are known.
    pub grid: Option<Grid>,
}

/// Bytes that a node reaches in one way, through one buffer.
#[derive(Debug, Clone)]
pub struct Access {
    /// Number of the allocation.
    pub memory: u64,
    /// Offset in the allocation from which `set` counts.
    pub offset: u64,
    /// The reached bytes, counted from `offset`.
    pub set: Arc<ByteSet>,
    /// The way in which the bytes are reached.
    pub scope: Scope,
    /// Why `set` is only an upper bound; `None` if it is exact.
    pub bound: Option<String>,
    /// Whether only atomic operations reach the bytes.
    pub atomic: bool,
    /// Name of the buffer, or its number.
    pub buffer: Arc<str>,
    /// A hash of the pairs of invocation and bytes. Equal hashes mean that the same invocations reach the same bytes.
    /// `None` if unknown.
    pub map: Option<u128>,
    /// Set, binding and element of the descriptor; `None` for a transfer.
    pub binding: Option<(u32, u32, u32)>,
}

impl Access {
    /// Returns whether the access writes.
    pub fn writes(&self) -> bool {
        matches!(
            self.scope,
            Scope::StorageWrite | Scope::CopyWrite | Scope::ClearWrite
        )
    }
}

impl Node {
    /// Returns whether all bytes that the node reaches are known exactly.
    pub fn is_exact(&self) -> bool {
        self.beyond.is_none() && self.accesses.iter().all(|access| access.bound.is_none())
    }
}

/// Why a command must come after another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, JsonSchema)]
pub enum EdgeKind {
    /// The later command reads what the earlier one wrote.
    #[serde(rename = "RAW")]
    ReadAfterWrite,
    /// The later command writes what the earlier one read.
    #[serde(rename = "WAR")]
    WriteAfterRead,
    /// The later command writes what the earlier one wrote, and no command read it in between.
    #[serde(rename = "WAW")]
    WriteAfterWrite,
}

impl EdgeKind {
    /// Returns the kind as three letters.
    pub fn as_str(self) -> &'static str {
        match self {
            EdgeKind::ReadAfterWrite => "RAW",
            EdgeKind::WriteAfterRead => "WAR",
            EdgeKind::WriteAfterWrite => "WAW",
        }
    }
}

/// A dependency of a later node on an earlier one.
#[derive(Debug, Clone)]
pub struct Edge {
    /// Index of the earlier node.
    pub from: usize,
    /// Index of the later node.
    pub to: usize,
    /// Why the nodes must be in this order.
    pub kind: EdgeKind,
    /// Number of bytes that both nodes reach, an upper bound unless `exact`.
    pub bytes: u64,
    /// Whether the accesses of both nodes are exact.
    pub exact: bool,
    /// The buffers that the bytes belong to, as the later node names them.
    pub buffers: Vec<Arc<str>>,
    /// The bytes, by the way in which both nodes reach them.
    pub(crate) parts: Vec<EdgePart>,
}

/// The bytes of an edge in one allocation that the earlier node reaches in one way, and the later node in one way.
#[derive(Debug, Clone)]
pub(crate) struct EdgePart {
    /// Number of the allocation.
    pub memory: u64,
    pub ranges: Vec<Range<u64>>,
    pub from: Scope,
    pub to: Scope,
    /// Whether the accesses of both ends are exact.
    pub exact: bool,
    /// Whether only atomic operations reach the bytes at both ends.
    pub atomic: bool,
}

impl EdgePart {
    /// Adds a range. Ranges beyond [`MAX_RANGES`] widen the last one.
    fn add(&mut self, range: Range<u64>) {
        let is_full = self.ranges.len() >= MAX_RANGES;
        match self.ranges.last_mut() {
            Some(last) if last.end == range.start => last.end = range.end,
            // All further ranges are merged with the last one. Only a barrier for all memory or for a large part
            // covers so many anyway.
            Some(last) if is_full => {
                last.start = last.start.min(range.start);
                last.end = last.end.max(range.end);
            }
            _ => self.ranges.push(range),
        }
    }
}

/// The commands of a window as nodes, and their dependencies as edges.
#[derive(Debug, Default)]
pub struct Graph {
    /// Nodes in the order of submission.
    pub nodes: Vec<Node>,
    /// Edges, sorted by the later node, then by the earlier one.
    pub edges: Vec<Edge>,
    /// Index of the node from which on edges are missing, because a limit was reached; `None` if all edges are there.
    pub cut_at: Option<usize>,
}

impl Graph {
    /// Finds the edges between nodes, which are in the order of submission.
    pub fn new(nodes: Vec<Node>) -> Graph {
        let mut graph = Graph::default();
        let mut memories: HashMap<u64, Segments> = HashMap::new();
        let mut looks = 0;
        for (number, node) in nodes.iter().enumerate() {
            let mut found = EdgesToNode::new(&nodes, number);
            for writes in [false, true] {
                for (index, access) in node.accesses.iter().enumerate() {
                    if access.writes() != writes {
                        continue;
                    }
                    let mark = AccessRef {
                        node: number as u32,
                        access: index as u32,
                    };
                    let segments = memories.entry(access.memory).or_default();
                    for range in access.set.shifted(access.offset) {
                        looks += segments.reach(range, mark, writes, &mut |on, range, kind| {
                            found.add(on, mark, range, kind);
                        });
                    }
                }
            }
            graph.edges.extend(found.edges());
            if graph.edges.len() > MAX_EDGES || looks > MAX_LOOKS {
                graph.cut_at = Some(number + 1);
                break;
            }
        }
        graph.nodes = nodes;
        graph
    }
}

/// The edges to one later node, by the earlier node and the kind of edge, while they are collected.
struct EdgesToNode<'a> {
    nodes: &'a [Node],
    /// Index of the later node.
    to: usize,
    edges: HashMap<(u32, EdgeKind), Edge>,
}

impl EdgesToNode<'_> {
    fn new(nodes: &[Node], to: usize) -> EdgesToNode<'_> {
        EdgesToNode {
            nodes,
            to,
            edges: HashMap::new(),
        }
    }

    /// Adds to the edge from the node of `on` that the access `by` of the later node depends on it for a range of
    /// bytes.
    fn add(&mut self, on: AccessRef, by: AccessRef, range: Range<u64>, kind: EdgeKind) {
        let of = |mark: AccessRef| &self.nodes[mark.node as usize].accesses[mark.access as usize];
        let (from, to) = (of(on), of(by));
        let exact = from.bound.is_none() && to.bound.is_none();
        let atomic = from.atomic && to.atomic;
        let edge = self.edges.entry((on.node, kind)).or_insert_with(|| Edge {
            from: on.node as usize,
            to: self.to,
            kind,
            bytes: 0,
            exact: true,
            buffers: Vec::new(),
            parts: Vec::new(),
        });
        edge.bytes = edge.bytes.saturating_add(range.end - range.start);
        edge.exact &= exact;
        if !edge.buffers.contains(&to.buffer) {
            edge.buffers.push(to.buffer.clone());
        }
        let same = |part: &&mut EdgePart| {
            (part.memory, part.from, part.to) == (to.memory, from.scope, to.scope)
                && (part.exact, part.atomic) == (exact, atomic)
        };
        match edge.parts.iter_mut().find(same) {
            Some(part) => part.add(range),
            None => edge.parts.push(EdgePart {
                memory: to.memory,
                ranges: vec![range],
                from: from.scope,
                to: to.scope,
                exact,
                atomic,
            }),
        }
    }

    /// Returns the edges, sorted by the earlier node.
    fn edges(self) -> Vec<Edge> {
        let mut edges: Vec<Edge> = self.edges.into_values().collect();
        edges.sort_unstable_by_key(|edge| (edge.from, edge.kind));
        edges
    }
}
