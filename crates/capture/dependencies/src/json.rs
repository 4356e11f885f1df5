//! Writes [`Dependencies`] as JSON and as DOT (the graph format of Graphviz). Keys of the JSON are stable. Unknown
//! values are null, and `unknown` lists them with reasons. The structs are the schema of the JSON; the functions fill
//! them from the graph.

use std::borrow::Cow;
use std::collections::HashSet;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::Serialize;

use crate::findings::{Dependencies, Need};
use crate::fusion::{Fusion, Refusal};
use crate::graph::{Access, Edge, Node, NodeKind};
use crate::traffic::Bandwidth;

/// The most ranges of a set of bytes that are written.
const MAX_RANGES: usize = 64;

/// The JSON of a window's dependencies.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Json<'a> {
    /// Commands by id, from 0, in the order in which they were executed.
    nodes: Vec<JsonNode<'a>>,
    /// Dependencies between commands.
    edges: Vec<JsonEdge<'a>>,
    /// Edges that nothing orders.
    hazards: Vec<JsonEdge<'a>>,
    /// Edges that nothing orders, and that may not exist, as their bytes are only bounded.
    possible_hazards: Vec<JsonEdge<'a>>,
    /// Barriers that no edge needs.
    needless_barriers: Vec<JsonBarrier<'a>>,
    /// All barriers.
    barriers: Vec<JsonBarrier<'a>>,
    /// The longest chain; null if it is not known.
    critical_path: Option<JsonPath>,
    /// Consecutive dispatches that could be merged.
    fusion: Vec<JsonFusion>,
    /// How fast the device moves bytes; null if it was not measured.
    bandwidth: Option<&'a Bandwidth>,
    /// What is not known, and why.
    unknown: Vec<Unknown<'a>>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct JsonFusion {
    /// Id of the first node.
    first: usize,
    /// Id of the second node.
    second: usize,
    /// The buffer between them.
    buffer: Arc<str>,
    /// Bytes that merging saves; absent if they cannot be merged.
    saved_bytes: Option<u64>,
    /// The buffer between them must still be written, as another command reads it.
    store_needed: Option<bool>,
    /// Why they cannot be merged; null if they can.
    refused: Option<&'static str>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct JsonNode<'a> {
    /// Id of the node: its index among the nodes.
    id: usize,
    /// `dispatch`, a kind of transfer, or `unknown`.
    kind: &'static str,
    /// Name of the kernel, or the kind of transfer.
    name: &'a str,
    /// Labels around the node, the outermost first.
    labels: &'a [String],
    /// Number of the submission in the window.
    submission: usize,
    /// Number of the queue.
    queue: u32,
    /// Number of different bytes that the node reads: exactly if they are exact, else at most.
    read_bytes: u64,
    /// Number of different bytes that the node writes, likewise.
    written_bytes: u64,
    /// The bytes are exact: no address depends on unknown data.
    exact: bool,
    /// Duration on the device in nanoseconds, if it was recorded.
    duration_ns: Option<u64>,
    /// Number of bytes that the node certainly reads and writes; all of them if they are exact.
    least_bytes: Option<u64>,
    /// Nanoseconds that these bytes take at the device's bandwidth.
    least_time_ns: Option<f64>,
    /// The share of that time in the duration.
    bandwidth_share: Option<f64>,
    /// The bytes that the node reads and writes, by binding.
    accesses: Vec<JsonAccess<'a>>,
    /// Why the node may reach other memory than its accesses.
    beyond: Option<&'a str>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct JsonAccess<'a> {
    /// Name or number of the buffer.
    buffer: &'a str,
    /// Descriptor set; null for a transfer.
    set: Option<u32>,
    /// Binding in the set.
    binding: Option<u32>,
    /// Element of an array binding.
    element: Option<u32>,
    /// `read` or `write`.
    direction: &'static str,
    /// Number of different bytes.
    bytes: u64,
    /// The bytes are exact. Otherwise they are all that is bound, of which some may not be reached.
    exact: bool,
    /// Why the bytes are not exact.
    reason: Option<&'a str>,
    /// Number of the allocation.
    memory: u64,
    /// Number of ranges of the bytes, of which `ranges` has the first.
    range_count: usize,
    /// First byte and end of each range in the allocation.
    ranges: Vec<[u64; 2]>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct JsonEdge<'a> {
    /// Id of the node that comes first.
    from: usize,
    /// Id of the node that depends on it.
    to: usize,
    /// `RAW` (a read after a write), `WAR` or `WAW`.
    kind: &'static str,
    /// Number of bytes that both nodes reach.
    bytes: u64,
    /// The bytes are exact. Otherwise they are at most these.
    exact: bool,
    /// What orders the nodes; `nothing` for a hazard.
    ordered_by: &'static str,
    /// Buffers that the bytes belong to.
    buffers: &'a [Arc<str>],
}

#[derive(Debug, Serialize, JsonSchema)]
struct JsonBarrier<'a> {
    /// Number of the barrier.
    barrier: usize,
    /// Whether an edge needs the barrier.
    need: &'static str,
    /// Why that is not known.
    reason: Option<&'a str>,
    /// Number of the submission in the window.
    submission: usize,
    /// Number of the command buffer's commands.
    commands: u32,
    /// Index of the barrier in these commands.
    index: usize,
    /// Index of the barrier among the executed commands of the window.
    executed: usize,
    /// Number of nodes before the barrier.
    position: usize,
}

#[derive(Debug, Serialize, JsonSchema)]
struct JsonPath {
    /// Ids of the nodes, in order.
    nodes: Vec<usize>,
    /// `ns`, or `nodes` if not all durations are known.
    unit: &'static str,
    /// Length of the chain in that unit.
    length: u64,
    /// Sum over all nodes in that unit.
    work: u64,
    /// `work` divided by `length`.
    parallelism: Option<f64>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct Unknown<'a> {
    /// A key of this object.
    what: &'static str,
    /// Why it is not known.
    reason: Cow<'a, str>,
}

impl Dependencies {
    /// Returns the dependencies as JSON.
    pub fn json(&self) -> Json<'_> {
        let edges = |numbers: &[usize]| numbers.iter().map(|n| self.json_edge(*n)).collect();
        let barriers = |of: &dyn Fn(Need) -> bool| {
            let all = self.barriers.iter().enumerate();
            let some = all.filter(|(_, barrier)| of(barrier.need));
            let each = some.map(|(number, barrier)| JsonBarrier {
                barrier: number,
                need: barrier.need.as_str(),
                reason: barrier.reason.as_deref(),
                submission: barrier.submission,
                commands: barrier.commands.0,
                index: barrier.index,
                executed: barrier.executed,
                position: barrier.position,
            });
            each.collect()
        };
        let mut unknown = Vec::new();
        if let Some(reason) = &self.unknown {
            for what in ["hazards", "needless_barriers"] {
                let reason = reason.into();
                unknown.push(Unknown { what, reason });
            }
        }
        if self.graph.cut_at.is_some() {
            for what in ["edges", "critical_path"] {
                let reason = "there are too many dependencies to look at".into();
                unknown.push(Unknown { what, reason });
            }
        }
        if let Err(reason) = &self.bandwidth {
            for what in ["bandwidth", "least_time_ns", "bandwidth_share"] {
                let reason = reason.to_string().into();
                unknown.push(Unknown { what, reason });
            }
        }
        let bandwidth = self.bandwidth.as_ref().ok();
        Json {
            nodes: (self.graph.nodes.iter().enumerate())
                .map(|(id, node)| json_node(id, node, bandwidth))
                .collect(),
            edges: (0..self.graph.edges.len())
                .map(|n| self.json_edge(n))
                .collect(),
            hazards: edges(&self.hazards),
            possible_hazards: edges(&self.possible_hazards),
            needless_barriers: barriers(&|need| need == Need::Needless),
            barriers: barriers(&|_| true),
            critical_path: self.graph.critical_path().map(|path| JsonPath {
                unit: if path.timed { "ns" } else { "nodes" },
                length: path.length,
                work: path.work,
                parallelism: path.parallelism(),
                nodes: path.nodes,
            }),
            fusion: self.graph.fusions().into_iter().map(json_fusion).collect(),
            bandwidth,
            unknown,
        }
    }

    fn json_edge(&self, number: usize) -> JsonEdge<'_> {
        let edge = &self.graph.edges[number];
        JsonEdge {
            from: edge.from,
            to: edge.to,
            kind: edge.kind.as_str(),
            bytes: edge.bytes,
            exact: edge.exact,
            ordered_by: self.orders[number].as_str(),
            buffers: &edge.buffers,
        }
    }

    /// Returns the graph in DOT: nodes in boxes, the critical path thick, hazards red, and edges of bounded bytes
    /// dashed.
    pub fn dot(&self) -> String {
        let path = self.graph.critical_path();
        let on_path: HashSet<usize> = path.iter().flat_map(|path| path.nodes.clone()).collect();
        let mut text = "digraph dependencies {\n  node [shape=box, fontname=sans];\n".to_owned();
        for (id, node) in self.graph.nodes.iter().enumerate() {
            let thick = if on_path.contains(&id) {
                ", penwidth=2"
            } else {
                ""
            };
            let label = quoted(&format!("{id} {}", node.name));
            text.push_str(&format!("  n{id} [label={label}{thick}];\n"));
        }
        for (number, edge) in self.graph.edges.iter().enumerate() {
            text.push_str(&self.dot_edge(number, edge));
        }
        text.push_str("}\n");
        text
    }

    fn dot_edge(&self, number: usize, edge: &Edge) -> String {
        let Edge {
            from,
            to,
            kind,
            bytes,
            exact,
            ..
        } = edge;
        let style = if *exact { "" } else { ", style=dashed" };
        let colour = match self.hazards.binary_search(&number) {
            Ok(_) => ", color=red",
            Err(_) => "",
        };
        let label = format!("{} {bytes} B", kind.as_str());
        format!("  n{from} -> n{to} [label=\"{label}\"{style}{colour}];\n")
    }
}

fn json_fusion(fusion: Fusion) -> JsonFusion {
    let saving = fusion.saving.ok();
    JsonFusion {
        first: fusion.first,
        second: fusion.second,
        buffer: fusion.buffer,
        saved_bytes: saving.map(|saving| saving.bytes),
        store_needed: saving.map(|saving| saving.store_needed),
        refused: fusion.saving.err().map(Refusal::as_str),
    }
}

fn json_node<'a>(id: usize, node: &'a Node, bandwidth: Option<&Bandwidth>) -> JsonNode<'a> {
    let (read_bytes, written_bytes) = node.bytes();
    JsonNode {
        id,
        kind: node.kind.map_or("unknown", NodeKind::as_str),
        name: &node.name,
        labels: &node.labels,
        submission: node.submission,
        queue: node.queue,
        read_bytes,
        written_bytes,
        exact: node.is_exact(),
        duration_ns: node.duration_ns,
        least_bytes: node.least_bytes(),
        least_time_ns: (node.least_bytes().zip(bandwidth)).map(|(bytes, of)| of.time_ns(bytes)),
        bandwidth_share: bandwidth.and_then(|of| node.bandwidth_share(of)),
        accesses: node.accesses.iter().map(json_access).collect(),
        beyond: node.beyond.as_deref(),
    }
}

fn json_access(access: &Access) -> JsonAccess<'_> {
    let ranges = access.set.shifted(access.offset).take(MAX_RANGES);
    JsonAccess {
        buffer: &access.buffer,
        set: access.binding.map(|(set, _, _)| set),
        binding: access.binding.map(|(_, binding, _)| binding),
        element: access.binding.map(|(_, _, element)| element),
        direction: if access.writes() { "write" } else { "read" },
        bytes: access.set.bytes(),
        exact: access.bound.is_none(),
        reason: access.bound.as_deref(),
        memory: access.memory,
        range_count: access.set.ranges().len(),
        ranges: ranges.map(|range| [range.start, range.end]).collect(),
    }
}

/// Quotes a name as a string of DOT.
fn quoted(name: &str) -> String {
    let mut text = "\"".to_owned();
    for c in name.chars() {
        match c {
            '"' => text.push_str("\\\""),
            '\\' => text.push_str("\\\\"),
            c if c.is_control() => text.push(' '),
            c => text.push(c),
        }
    }
    text.push('"');
    text
}

#[cfg(test)]
mod tests {
    use super::quoted;

    #[test]
    fn a_name_stays_inside_of_its_quotes() {
        assert_eq!(quoted("a\"]; x\\\n"), r#""a\"]; x\\ ""#);
    }
}
