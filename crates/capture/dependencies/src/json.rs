//! Dependencies for programs. Keys are stable; what is not known is null, and `unknown` says what and why.

use std::collections::HashSet;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::Serialize;

use crate::findings::{Dependencies, Need};
use crate::fusion::{Fusion, Refusal};
use crate::graph::{Access, Edge, Node, NodeKind};
use crate::traffic::Bandwidth;

/// Ranges that are written of a set of bytes.
const RANGES_AT_MOST: usize = 64;

/// What is written.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Json<'a> {
    /// Commands, by id from 0 in the order in which they were executed.
    nodes: Vec<JsonNode<'a>>,
    /// What depends on what.
    edges: Vec<JsonEdge<'a>>,
    /// Edges that nothing orders.
    hazards: Vec<JsonEdge<'a>>,
    /// Edges that nothing orders, of bytes that are bounds: they may not be there.
    possible_hazards: Vec<JsonEdge<'a>>,
    /// Barriers that no edge needs.
    needless_barriers: Vec<JsonBarrier<'a>>,
    /// All barriers.
    barriers: Vec<JsonBarrier<'a>>,
    /// The longest chain; null where it is not known.
    critical_path: Option<JsonPath>,
    /// Dispatches that follow each other and could be one.
    fusion: Vec<JsonFusion>,
    /// How fast the device moves bytes; null where it was not measured.
    bandwidth: Option<&'a Bandwidth>,
    /// What is not known, and why.
    unknown: Vec<Unknown<'a>>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct JsonFusion {
    /// Id of the first node.
    first: usize,
    /// Id of the second.
    second: usize,
    /// The buffer between them.
    buffer: Arc<str>,
    /// Absent where they cannot be merged.
    saved_bytes: Option<u64>,
    /// Somebody else reads what lies between them, so that it must be stored nevertheless.
    store_needed: Option<bool>,
    /// Why they cannot be merged; null where they can.
    refused: Option<&'static str>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct JsonNode<'a> {
    /// Its id: the index among the nodes.
    id: usize,
    /// `dispatch`, a kind of transfer, or `unknown`.
    kind: &'static str,
    /// The kernel, or what the transfer does.
    name: &'a str,
    /// Labels around it, outermost first.
    labels: &'a [String],
    /// Number of the submission in the window.
    submission: usize,
    /// Number of the queue.
    queue: u32,
    /// Different bytes that it reads and writes: at least, where they are exact, else at most.
    read_bytes: u64,
    /// Different bytes that it writes, likewise.
    written_bytes: u64,
    /// Its bytes are exact: no address depends on data that is not known.
    exact: bool,
    /// How long the device took, where that was recorded.
    duration_ns: Option<u64>,
    /// Bytes that it certainly reads and writes; all of them, where they are exact.
    least_bytes: Option<u64>,
    /// What these take at the device's bandwidth.
    least_time_ns: Option<f64>,
    /// That, of its time.
    bandwidth_share: Option<f64>,
    /// What it reads and writes, by binding.
    accesses: Vec<JsonAccess<'a>>,
    /// It may reach memory that is not among its accesses: why.
    beyond: Option<&'a str>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct JsonAccess<'a> {
    /// The buffer.
    buffer: &'a str,
    /// Descriptor set; null of a transfer.
    set: Option<u32>,
    /// Binding in the set.
    binding: Option<u32>,
    /// Element of an array binding.
    element: Option<u32>,
    /// `read` or `write`.
    direction: &'static str,
    /// Different bytes.
    bytes: u64,
    /// They are exact; else they are what is bound: at most these.
    exact: bool,
    /// Why the bytes are not exact.
    reason: Option<&'a str>,
    /// Number of the memory.
    memory: u64,
    /// How many ranges the bytes are: `ranges` has the first of them.
    range_count: usize,
    /// Where in the memory: from, to.
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
    /// Bytes that both reach.
    bytes: u64,
    /// They are exact; else at most these.
    exact: bool,
    /// What orders them; `nothing` of a hazard.
    ordered_by: &'static str,
    /// Buffers in which the bytes are.
    buffers: &'a [Arc<str>],
}

#[derive(Debug, Serialize, JsonSchema)]
struct JsonBarrier<'a> {
    /// Number of the barrier.
    barrier: usize,
    /// Whether an edge needs it.
    need: &'static str,
    /// Why that is not known.
    reason: Option<&'a str>,
    /// Number of the submission in the window.
    submission: usize,
    /// Number of the command buffer.
    commands: u32,
    /// Which of its commands it is.
    index: usize,
    /// Which of the executed commands of the window it is.
    executed: usize,
    /// Nodes before it.
    position: usize,
}

#[derive(Debug, Serialize, JsonSchema)]
struct JsonPath {
    /// Ids of the nodes, in order.
    nodes: Vec<usize>,
    /// `ns`, or `nodes` where not all times are known.
    unit: &'static str,
    /// How long it is, in that unit.
    length: u64,
    /// All nodes together, in that unit.
    work: u64,
    /// The one over the other.
    parallelism: Option<f64>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct Unknown<'a> {
    /// What: a key of this object.
    what: &'static str,
    /// Why.
    reason: &'a str,
}

impl Dependencies {
    /// For programs.
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
                unknown.push(Unknown { what, reason });
            }
        }
        if self.graph.cut_at.is_some() {
            let reason = "there are too many dependencies to look at";
            for what in ["edges", "critical_path"] {
                unknown.push(Unknown { what, reason });
            }
        }
        if let Err(reason) = &self.bandwidth {
            for what in ["bandwidth", "least_time_ns", "bandwidth_share"] {
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

    /// For graphviz: nodes in boxes, the critical path thick, hazards red, edges of bounded bytes dashed.
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
    let ranges = access.set.shifted(access.offset).take(RANGES_AT_MOST);
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

/// A name as a string of DOT.
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
