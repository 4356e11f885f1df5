//! Finds the edges between commands that reach the same bytes.
//!
//! Memory is one space of bytes, addressed by allocation and offset. Commands are taken in the order of submission.
//! Each byte has its last write and the reads since, and a command that reaches the byte depends on those.

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

/// The most edges of a graph.
const MAX_EDGES: usize = 1_000_000;
/// The most pieces of memory that are examined.
const MAX_LOOKS: u64 = 200_000_000;
/// The most ranges that a part of an edge keeps.
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

/// A dispatch or a transfer.
#[derive(Debug, Clone, Default)]
pub struct Node {
    /// Kind of the command, which is never none in a graph.
    pub kind: Option<NodeKind>,
    /// Name of the kernel, or the kind of transfer.
    pub name: String,
    /// The labels around the node, the outermost first.
    pub labels: Vec<String>,
    /// Number of the submission, from 0.
    pub submission: usize,
    /// Number of the batch among those of all submissions, from 0.
    pub batch: usize,
    /// Number of the queue.
    pub queue: u32,
    /// The bytes that the node reaches.
    pub accesses: Vec<Access>,
    /// Why the node may reach other memory than its accesses; none: it does not.
    pub beyond: Option<String>,
    /// Duration in nanoseconds.
    pub duration_ns: Option<u64>,
    /// Workgroups and invocations of a dispatch, if they are known.
    pub grid: Option<Grid>,
}

/// Bytes that a node reaches.
#[derive(Debug, Clone)]
pub struct Access {
    /// Number of the allocation.
    pub memory: u64,
    /// Offset of the set in the allocation.
    pub offset: u64,
    /// The bytes.
    pub set: Arc<ByteSet>,
    /// The way in which the bytes are reached.
    pub scope: Scope,
    /// Why some of the bytes may not be reached; none: the bytes are exact.
    pub bound: Option<String>,
    /// Only atomic operations reach the bytes.
    pub atomic: bool,
    /// Name of the buffer, or its number.
    pub buffer: Arc<str>,
    /// A hash of which invocation reaches what. Equal maps have equal hashes. None: not known.
    pub map: Option<u128>,
    /// Set, binding and element of the descriptor of a dispatch.
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

/// A dependency of one node on another.
#[derive(Debug, Clone)]
pub struct Edge {
    /// The earlier node.
    pub from: usize,
    /// The later node.
    pub to: usize,
    /// Why the nodes must be in this order.
    pub kind: EdgeKind,
    /// Number of bytes that both reach: exactly or at most.
    pub bytes: u64,
    /// Both nodes reach exactly these bytes.
    pub exact: bool,
    /// Buffers of the bytes, as the later node names them.
    pub buffers: Vec<Arc<str>>,
    pub(crate) parts: Vec<EdgePart>,
}

/// The bytes of an edge that both nodes reach in one way.
#[derive(Debug, Clone)]
pub(crate) struct EdgePart {
    pub memory: u64,
    pub ranges: Vec<Range<u64>>,
    pub from: Scope,
    pub to: Scope,
    /// The bytes of both ends are exact.
    pub exact: bool,
    /// Both ends are atomic.
    pub atomic: bool,
}

impl EdgePart {
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

/// Nodes and edges.
#[derive(Debug, Default)]
pub struct Graph {
    /// Nodes in the order of submission.
    pub nodes: Vec<Node>,
    /// Edges by the later node, then by the earlier one.
    pub edges: Vec<Edge>,
    /// The node from which on edges are missing, as there are too many.
    pub cut_at: Option<usize>,
}

impl Graph {
    /// Finds the edges between nodes.
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

/// The edges to a node.
struct EdgesToNode<'a> {
    nodes: &'a [Node],
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

    fn edges(self) -> Vec<Edge> {
        let mut edges: Vec<Edge> = self.edges.into_values().collect();
        edges.sort_unstable_by_key(|edge| (edge.from, edge.kind));
        edges
    }
}
