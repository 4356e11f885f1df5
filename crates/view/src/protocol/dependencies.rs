//! The messages that say which commands of a capture, or of a range of a trace, depend on which. `dependencies` makes
//! them, the page draws them as a graph. A node is a command, an edge says that one node needs another to come first
//! because both use the same memory, and a hazard is an edge whose order nothing ensures. Numbers of nodes count from
//! the first of the whole graph, in the order of execution.

use gapscope_dependencies::{EdgeKind, Need, NodeKind, Order};
use schemars::JsonSchema;
use serde::Serialize;

/// A part of what depends on what in a capture, or in a range of a trace.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Dependencies {
    /// The number of the first node here.
    pub first: usize,
    /// Nodes in all.
    pub node_count: usize,
    /// At most 2,000 nodes, in the order of execution.
    pub nodes: Vec<DependencyNode>,
    /// Edges of the graph.
    pub edge_count: usize,
    /// At most 10,000 edges between these nodes.
    pub edges: Vec<DependencyEdge>,
    /// Edges between these nodes that are left out: the smallest.
    pub edges_left_out: usize,
    /// Edges with one end in another part.
    pub edges_outside: usize,
    pub hazard_count: usize,
    pub possible_hazard_count: usize,
    pub barrier_count: usize,
    pub needless_count: usize,
    pub barriers: Vec<DependencyBarrier>,
    pub submissions: Vec<DependencySubmission>,
    /// The longest chain of the whole graph; null where it is not known.
    pub critical_path: Option<CriticalPath>,
    /// From this node on there are no edges: there are too many.
    pub cut_at: Option<usize>,
    /// Why hazards and needless barriers are not known.
    pub unknown: Option<String>,
    pub remarks: Vec<String>,
}

/// A dispatch or transfer with what it reaches.
#[derive(Debug, Serialize, JsonSchema)]
pub struct DependencyNode {
    pub id: usize,
    /// Null is never the case in a graph.
    pub kind: Option<NodeKind>,
    pub name: String,
    /// From the outermost in.
    pub labels: Vec<String>,
    pub submission: usize,
    pub read_bytes: String,
    pub written_bytes: String,
    /// Its bytes are exact; else at most so many.
    pub exact: bool,
    /// Why it may reach memory that is not among its accesses.
    pub beyond: Option<String>,
    pub duration_ns: Option<u64>,
    /// At most 64 accesses.
    pub accesses: Vec<DependencyAccess>,
    pub access_count: usize,
    /// The row that it is, in a trace.
    pub place: Option<NodePlace>,
}

/// The row of a trace that a node is.
#[derive(Debug, Serialize, JsonSchema)]
pub struct NodePlace {
    pub table: &'static str,
    pub row: usize,
    pub track: Option<String>,
    pub start_ns: Option<i64>,
}

/// Whether an access reads or writes.
#[derive(Debug, Clone, Copy, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Direction {
    Read,
    Write,
}

/// Memory that a node reads or writes.
#[derive(Debug, Serialize, JsonSchema)]
pub struct DependencyAccess {
    pub buffer: String,
    /// Set, binding and element; null for a transfer.
    pub binding: Option<[u32; 3]>,
    pub direction: Direction,
    pub bytes: String,
    /// Why maybe not all of the bytes are reached; null: they are exact.
    pub reason: Option<String>,
}

/// How sure it is that nothing orders two nodes.
#[derive(Debug, Clone, Copy, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum HazardCertainty {
    Certain,
    Possible,
}

/// A dependency of one node on another.
#[derive(Debug, Serialize, JsonSchema)]
pub struct DependencyEdge {
    pub from: usize,
    pub to: usize,
    pub kind: EdgeKind,
    /// Bytes that both reach.
    pub bytes: String,
    pub exact: bool,
    pub ordered_by: Order,
    pub hazard: Option<HazardCertainty>,
    /// Names of at most 8 buffers.
    pub buffers: Vec<String>,
    pub buffer_count: usize,
}

/// A barrier.
#[derive(Debug, Serialize, JsonSchema)]
pub struct DependencyBarrier {
    /// Nodes before it.
    pub position: usize,
    pub submission: usize,
    /// Which of its command buffer's commands it is.
    pub command: usize,
    pub need: Need,
    /// Why its need is not known.
    pub reason: Option<String>,
}

/// A submission of nodes.
#[derive(Debug, Default, Serialize, JsonSchema)]
pub struct DependencySubmission {
    pub number: usize,
    /// Its id in a trace.
    pub name: Option<String>,
    pub queue: Option<String>,
    pub called_ns: Option<String>,
    pub device_ns: Option<String>,
}

/// The unit of a critical path.
#[derive(Debug, Clone, Copy, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum PathUnit {
    Ns,
    Commands,
}

/// The longest chain of dependencies.
#[derive(Debug, Serialize, JsonSchema)]
pub struct CriticalPath {
    /// Those of its nodes that are here.
    pub nodes: Vec<usize>,
    pub node_count: usize,
    pub unit: PathUnit,
    pub length: String,
    /// The length of all nodes one after the other.
    pub work: String,
    pub parallelism: Option<f64>,
}
