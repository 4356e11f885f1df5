//! Turns dependencies between commands of a capture, or of a range of a trace, into a message of bounded size for the
//! page. The nodes are commands (or dispatches and transfers of a trace), the edges say which of two must come first
//! because of the memory that both use. A hazard is an edge whose order nothing ensures, such as a barrier.

use crate::protocol::{
    self, CriticalPath, DependencyAccess, DependencyBarrier, DependencyEdge, DependencyNode,
    DependencySubmission, Direction, HazardCertainty, NodePlace, PathUnit,
};
use crate::texts::cut;
use gapscope_dependencies::{Access, BarrierUse, Dependencies, Need, Node, Order};
use rustc_hash::FxHashMap;
use std::cmp::Reverse;
use std::ops::Range;

/// The most nodes in one answer, as many as the page can lay out well; further ones are in the next part.
pub const MAX_DEPENDENCY_NODES: usize = 2_000;
/// The most edges in one answer; the smallest are left out.
const MAX_DEPENDENCY_EDGES: usize = 10_000;
/// The most accesses that are listed for a node.
const MAX_NODE_ACCESSES: usize = 64;
/// The most buffers that are listed for an edge.
pub const MAX_EDGE_BUFFERS: usize = 8;
/// The most barriers in one answer.
const MAX_BARRIERS: usize = 10_000;

/// A part of a graph of dependencies, from which a message is made.
pub struct DependenciesPart<'a> {
    /// The whole analysed graph.
    pub found: &'a Dependencies,
    /// The nodes of this part.
    pub nodes: Range<usize>,
    /// Number of nodes before the first one that was analysed, which the page counts, too.
    pub before: usize,
    /// Number of all nodes of the graph.
    pub count: usize,
    /// Returns the row of a trace that a node stands for.
    pub place: &'a dyn Fn(usize) -> Option<NodePlace>,
    /// Returns the description of a submission.
    pub submission: &'a dyn Fn(usize) -> DependencySubmission,
    /// Sentences for the page.
    pub remarks: Vec<String>,
}

impl DependenciesPart<'_> {
    /// Makes the message, in which numbers of nodes count from the first of all and not from the first that was
    /// analysed.
    pub fn answer(&self) -> protocol::Dependencies {
        let graph = &self.found.graph;
        let nodes = &graph.nodes[self.nodes.clone()];
        let path = graph.critical_path();
        let on_path = path.as_ref().map_or(&[][..], |path| &path.nodes);
        let (edges, edges_left_out, edges_outside) = self.edges(on_path);
        let mut submissions: Vec<usize> = nodes.iter().map(|node| node.submission).collect();
        submissions.sort_unstable();
        submissions.dedup();
        let barriers = (self.found.barriers.iter())
            .filter(|barrier| (self.nodes.start..=self.nodes.end).contains(&barrier.position));
        let needless = |barrier: &&BarrierUse| barrier.need == Need::Needless;
        protocol::Dependencies {
            first: self.before + self.nodes.start,
            node_count: self.count,
            nodes: (self.nodes.clone().zip(nodes))
                .map(|(number, node)| self.node(number, node))
                .collect(),
            edge_count: graph.edges.len(),
            edges: edges.iter().map(|number| self.edge(*number)).collect(),
            edges_left_out,
            edges_outside,
            hazard_count: self.found.hazards.len(),
            possible_hazard_count: self.found.possible_hazards.len(),
            barrier_count: self.found.barriers.len(),
            needless_count: self.found.barriers.iter().filter(needless).count(),
            barriers: (barriers.take(MAX_BARRIERS))
                .map(|barrier| DependencyBarrier {
                    position: self.before + barrier.position,
                    submission: barrier.submission,
                    command: barrier.index,
                    need: barrier.need,
                    reason: barrier.reason.as_deref().map(cut),
                })
                .collect(),
            submissions: (submissions.into_iter()).map(self.submission).collect(),
            critical_path: path.as_ref().map(|path| CriticalPath {
                nodes: (path.nodes.iter())
                    .filter(|node| self.nodes.contains(node))
                    .map(|node| self.before + node)
                    .collect(),
                node_count: path.nodes.len(),
                unit: match path.timed {
                    true => PathUnit::Ns,
                    false => PathUnit::Commands,
                },
                length: path.length.to_string(),
                work: path.work.to_string(),
                parallelism: path.parallelism(),
            }),
            cut_at: graph.cut_at.map(|at| self.before + at),
            unknown: self.found.unknown.as_deref().map(cut),
            remarks: self.remarks.iter().map(|remark| cut(remark)).collect(),
        }
    }

    /// Returns the edges between the nodes of this part (if there are too many, hazards first, then those on `path`,
    /// then those of the most bytes), the number of those that are left out, and the number of edges with one end in
    /// another part.
    fn edges(&self, path: &[usize]) -> (Vec<usize>, usize, usize) {
        let mut inside = Vec::new();
        let mut outside = 0;
        for (number, edge) in self.found.graph.edges.iter().enumerate() {
            match (
                self.nodes.contains(&edge.from),
                self.nodes.contains(&edge.to),
            ) {
                (true, true) => inside.push(number),
                (false, false) => {}
                _ => outside += 1,
            }
        }
        let left_out = inside.len().saturating_sub(MAX_DEPENDENCY_EDGES);
        if left_out > 0 {
            let next: FxHashMap<usize, usize> =
                path.windows(2).map(|two| (two[0], two[1])).collect();
            let rank = |number: &usize| {
                let edge = &self.found.graph.edges[*number];
                let is_hazard = self.hazard(*number).is_some();
                let is_on_path = next.get(&edge.from) == Some(&edge.to);
                (!is_hazard, !is_on_path, Reverse(edge.bytes), *number)
            };
            inside.sort_by_cached_key(rank);
            inside.truncate(MAX_DEPENDENCY_EDGES);
            inside.sort_unstable();
        }
        (inside, left_out, outside)
    }

    /// Returns how certain it is that an edge is a hazard; `None` for an edge that is none.
    fn hazard(&self, edge: usize) -> Option<HazardCertainty> {
        match () {
            () if self.found.hazards.binary_search(&edge).is_ok() => Some(HazardCertainty::Certain),
            () if self.found.possible_hazards.binary_search(&edge).is_ok() => {
                Some(HazardCertainty::Possible)
            }
            () => None,
        }
    }

    /// Returns the message of the edge with this index.
    fn edge(&self, number: usize) -> DependencyEdge {
        let edge = &self.found.graph.edges[number];
        let names = edge.buffers.iter().take(MAX_EDGE_BUFFERS);
        DependencyEdge {
            from: self.before + edge.from,
            to: self.before + edge.to,
            kind: edge.kind,
            bytes: edge.bytes.to_string(),
            exact: edge.exact,
            ordered_by: (self.found.orders.get(number)).map_or(Order::Unknown, |order| *order),
            hazard: self.hazard(number),
            buffers: names.map(|name| cut(name)).collect(),
            buffer_count: edge.buffers.len(),
        }
    }

    /// Returns the message of a node and its index.
    fn node(&self, number: usize, node: &Node) -> DependencyNode {
        let (read, written) = node.bytes();
        let accesses = node.accesses.iter().take(MAX_NODE_ACCESSES).map(access);
        DependencyNode {
            id: self.before + number,
            kind: node.kind,
            name: cut(&node.name),
            labels: node.labels.iter().map(|label| cut(label)).collect(),
            submission: node.submission,
            read_bytes: read.to_string(),
            written_bytes: written.to_string(),
            exact: node.is_exact(),
            beyond: node.beyond.as_deref().map(cut),
            duration_ns: node.duration_ns,
            accesses: accesses.collect(),
            access_count: node.accesses.len(),
            place: (self.place)(number),
        }
    }
}

fn access(access: &Access) -> DependencyAccess {
    DependencyAccess {
        buffer: cut(&access.buffer),
        binding: access
            .binding
            .map(|(set, binding, element)| [set, binding, element]),
        direction: match access.writes() {
            true => Direction::Write,
            false => Direction::Read,
        },
        bytes: access.set.bytes().to_string(),
        reason: access.bound.as_deref().map(cut),
    }
}
