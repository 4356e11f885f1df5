//! CUDA graphs (work that is launched as a whole): the numbers of graphs and their nodes, and how programs make them.

use serde::{Deserialize, Serialize};

/// The number that the tracing library gives a graph in its process.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
#[repr(transparent)]
pub struct GraphId(pub u32);

impl GraphId {
    /// The number of no graph, where a graph is optional.
    pub const NONE: GraphId = GraphId(0);

    /// Returns the graph, unless it is [`Self::NONE`].
    #[inline]
    pub fn some(self) -> Option<GraphId> {
        (self != Self::NONE).then_some(self)
    }
}

/// The number that the tracing library gives a node of a graph in its process: the upper half is the graph's number, and the lower
/// half the node's place among all that the graph has had.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
#[repr(transparent)]
pub struct GraphNodeId(pub u64);

impl GraphNodeId {
    /// The number of no node, for work outside of graphs.
    pub const NONE: GraphNodeId = GraphNodeId(0);
    /// The lower half of a node of which nothing but its graph is known.
    const UNKNOWN_PLACE: u32 = u32::MAX;

    /// Returns the node, unless it is [`Self::NONE`].
    #[inline]
    pub fn some(self) -> Option<GraphNodeId> {
        (self != Self::NONE).then_some(self)
    }

    /// Returns the node in a place of a graph.
    #[inline]
    pub fn new(graph: GraphId, place: u32) -> GraphNodeId {
        match graph {
            GraphId::NONE => GraphNodeId::NONE,
            GraphId(graph) => GraphNodeId(u64::from(graph) << 32 | u64::from(place)),
        }
    }

    /// Returns the node of `graph` with a number. The place is not known where the number is of another graph.
    #[inline]
    pub fn in_graph(graph: GraphId, number: u64) -> GraphNodeId {
        let node = GraphNodeId(number);
        match node.graph() == graph {
            true => node,
            false => GraphNodeId::new(graph, GraphNodeId::UNKNOWN_PLACE),
        }
    }

    /// Returns the node with the number that another tool wrote; `None` for the numbers of other producers and of no node.
    pub fn from_file(number: i64) -> Option<GraphNodeId> {
        let node = GraphNodeId(u64::try_from(number).ok()?);
        node.graph().some().and(Some(node))
    }

    /// Returns the graph of the node; [`GraphId::NONE`] for work outside of graphs.
    #[inline]
    pub fn graph(self) -> GraphId {
        GraphId((self.0 >> 32) as u32)
    }

    /// Returns the place of the node among all that its graph has had.
    #[inline]
    pub fn place(self) -> u32 {
        self.0 as u32
    }
}

/// A change that a thread makes to a graph. The changes of a thread come in the order in which the driver makes them.
///
/// A graph is made node by node, and instantiated as an executable graph: a copy, whose nodes are copies too. Graphs inside of it are
/// copied, and then dissolved into it: their nodes get numbers of the executable graph, of which the driver says nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum GraphChange {
    /// The thread begins to make a graph.
    Created {
        /// The graph.
        graph: GraphId,
        /// When.
        at_ns: i64,
    },
    /// The thread makes a node.
    NodeCreated {
        /// The node.
        node: GraphNodeId,
        /// When.
        at_ns: i64,
    },
    /// A node is the copy of another one. [`GraphChange::NodeCreated`] came before.
    NodeCloned {
        /// The node.
        node: GraphNodeId,
        /// The node that was copied.
        original: GraphNodeId,
    },
    /// A node of an executable graph does from now on what the node of another graph does.
    NodeUpdated {
        /// The node of the executable graph.
        node: GraphNodeId,
        /// The node of the other graph.
        source: GraphNodeId,
        /// When.
        at_ns: i64,
    },
    /// A graph ends.
    Destroyed {
        /// The graph.
        graph: GraphId,
    },
    /// The thread has instantiated a graph.
    Instantiated {
        /// The executable graph.
        graph: GraphId,
    },
}

impl GraphChange {
    /// Returns the same change at another time.
    pub fn at(mut self, now_ns: i64) -> GraphChange {
        match &mut self {
            GraphChange::Created { at_ns, .. }
            | GraphChange::NodeCreated { at_ns, .. }
            | GraphChange::NodeUpdated { at_ns, .. } => *at_ns = now_ns,
            GraphChange::NodeCloned { .. }
            | GraphChange::Destroyed { .. }
            | GraphChange::Instantiated { .. } => {}
        }
        self
    }
}
