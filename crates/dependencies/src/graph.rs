//! The graph of what depends on what.
//!
//! All memory is one space of bytes, by allocation and place. Commands are taken in the order in which they were handed over; each
//! byte has its last write and the reads since, and a command that reaches it depends on those.

mod segments;

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::Serialize;

use crate::bytes::ByteSet;
use crate::footprint::Grid;
use crate::scope::Scope;
use segments::{Mark, Segments};

/// Edges of a graph.
const EDGES_AT_MOST: usize = 1_000_000;
/// Pieces of memory that are looked at.
const LOOKS_AT_MOST: u64 = 200_000_000;
/// Ranges that a part of an edge keeps.
const RANGES_AT_MOST: usize = 64;

/// What a command does.
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
    /// In a word.
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
    /// What it does; none is never the case in a graph.
    pub kind: Option<NodeKind>,
    /// The kernel, or the kind of transfer.
    pub name: String,
    /// The labels around it, the outermost first.
    pub labels: Vec<String>,
    /// The submission, from 0.
    pub submission: usize,
    /// The batch, from 0, of all submissions.
    pub batch: usize,
    /// The queue's number.
    pub queue: u32,
    /// What it reaches.
    pub accesses: Vec<Access>,
    /// It may reach memory that is not among these: why.
    pub beyond: Option<String>,
    /// How long it takes, in nanoseconds.
    pub duration_ns: Option<u64>,
    /// Workgroups and invocations of a dispatch, where they are known.
    pub grid: Option<Grid>,
}

/// Bytes that a node reaches.
#[derive(Debug, Clone)]
pub struct Access {
    /// The number of the allocation.
    pub memory: u64,
    /// Where the set begins there.
    pub offset: u64,
    /// The bytes.
    pub set: Arc<ByteSet>,
    /// How they are reached.
    pub scope: Scope,
    /// Why maybe not all of these are reached; none: they are exact.
    pub bound: Option<String>,
    /// Only atomic operations reach them.
    pub atomic: bool,
    /// What they belong to: the name of a buffer, or its number.
    pub buffer: Arc<str>,
    /// A number for which invocation reaches what: equal where that is equal. None: not known.
    pub map: Option<u128>,
    /// Number of the descriptor set, of the binding and of its element, of a dispatch.
    pub binding: Option<(u32, u32, u32)>,
}

impl Access {
    /// True when it writes.
    pub fn writes(&self) -> bool {
        matches!(
            self.scope,
            Scope::StorageWrite | Scope::CopyWrite | Scope::ClearWrite
        )
    }
}

impl Node {
    /// True when all bytes that it reaches are known exactly.
    pub fn is_exact(&self) -> bool {
        self.beyond.is_none() && self.accesses.iter().all(|access| access.bound.is_none())
    }
}

/// Why one command must come after another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, JsonSchema)]
pub enum EdgeKind {
    /// It reads what the other wrote.
    #[serde(rename = "RAW")]
    ReadAfterWrite,
    /// It writes what the other read.
    #[serde(rename = "WAR")]
    WriteAfterRead,
    /// It writes what the other wrote, and nobody read in between.
    #[serde(rename = "WAW")]
    WriteAfterWrite,
}

impl EdgeKind {
    /// In three letters.
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
    /// The node that comes first.
    pub from: usize,
    /// The node that comes after it.
    pub to: usize,
    /// Why.
    pub kind: EdgeKind,
    /// Bytes that both reach: exactly, or at most.
    pub bytes: u64,
    /// Both reach exactly these bytes.
    pub exact: bool,
    /// Buffers that the bytes belong to, as the later node has them.
    pub buffers: Vec<Arc<str>>,
    pub(crate) parts: Vec<Part>,
}

/// Bytes of an edge that both nodes reach in one way.
#[derive(Debug, Clone)]
pub(crate) struct Part {
    pub memory: u64,
    pub ranges: Vec<Range<u64>>,
    pub from: Scope,
    pub to: Scope,
    /// Both ends are exact.
    pub exact: bool,
    /// Both ends are atomic.
    pub atomic: bool,
}

impl Part {
    fn add(&mut self, range: Range<u64>) {
        let is_full = self.ranges.len() >= RANGES_AT_MOST;
        match self.ranges.last_mut() {
            Some(last) if last.end == range.start => last.end = range.end,
            // So many are taken as one: what covers them all is a barrier for all memory or for a large part of it.
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
    /// In the order in which they were handed over.
    pub nodes: Vec<Node>,
    /// By the later node, then by the earlier.
    pub edges: Vec<Edge>,
    /// From this node on there are no edges: there are too many.
    pub cut_at: Option<usize>,
}

impl Graph {
    /// Finds the edges between nodes.
    pub fn of(nodes: Vec<Node>) -> Graph {
        let mut graph = Graph::default();
        let mut memories: HashMap<u64, Segments> = HashMap::new();
        let mut looks = 0;
        for (number, node) in nodes.iter().enumerate() {
            let mut found = Found::new(&nodes, number);
            for writes in [false, true] {
                for (index, access) in node.accesses.iter().enumerate() {
                    if access.writes() != writes {
                        continue;
                    }
                    let mark = Mark {
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
            if graph.edges.len() > EDGES_AT_MOST || looks > LOOKS_AT_MOST {
                graph.cut_at = Some(number + 1);
                break;
            }
        }
        graph.nodes = nodes;
        graph
    }
}

/// Edges to a node.
struct Found<'a> {
    nodes: &'a [Node],
    to: usize,
    edges: HashMap<(u32, EdgeKind), Edge>,
}

impl Found<'_> {
    fn new(nodes: &[Node], to: usize) -> Found<'_> {
        Found {
            nodes,
            to,
            edges: HashMap::new(),
        }
    }

    fn add(&mut self, on: Mark, by: Mark, range: Range<u64>, kind: EdgeKind) {
        let of = |mark: Mark| &self.nodes[mark.node as usize].accesses[mark.access as usize];
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
        let same = |part: &&mut Part| {
            (part.memory, part.from, part.to) == (to.memory, from.scope, to.scope)
                && (part.exact, part.atomic) == (exact, atomic)
        };
        match edge.parts.iter_mut().find(same) {
            Some(part) => part.add(range),
            None => edge.parts.push(Part {
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
