//! The table of the nodes of CUDA graphs.

use crate::ids::*;
use crate::table::table;

table! {
    /// Nodes of CUDA graphs that ran: where the program made each of them. A node that a program captured, or made by a call, keeps
    /// this in the executable graph and its copies.
    GraphNodes of GraphNode, "graph_node" in "graph_nodes" {
        /// Id of the process.
        process: ProcessId,
        /// Number of the executable graph in its process, as CUPTI counts them.
        graph: u32,
        /// Id of the node, unique in its process: dispatches and transfers name it.
        node: u64,
        /// Id of the innermost label that the thread was in when it made the node. The label of the node's work is the part of this
        /// label's path that began while the graph was made, inside the label around the graph's launch.
        label: Option<LabelId>,
        /// Number of the thread that made the node.
        thread: Option<ThreadId>,
        /// When the thread made it.
        made_ns: i64,
    }
}
