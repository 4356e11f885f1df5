//! Finds dispatches that could be merged, as the second reads element by element what the first wrote.
//!
//! Both run the same number of workgroups of the same size, and each invocation of the second reads exactly what the
//! same invocation of the first wrote. In a merged kernel the value need not go through memory. This saves the read,
//! and the write as well if the result is overwritten in the window before another command reads it.
//!
//! The pairs are read-after-write edges between two dispatches; a map is a hash of which invocation reaches which
//! bytes. An access is the bytes that a node reads or writes through one buffer.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use crate::bytes::ByteSet;
use crate::graph::{Access, Edge, EdgeKind, Graph, Node, NodeKind};

/// Two dispatches of which the second reads what the first wrote.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fusion {
    /// Index of the node that writes.
    pub first: usize,
    /// Index of the node that reads.
    pub second: usize,
    /// The buffer that is written and read.
    pub buffer: Arc<str>,
    /// The saving of merging the dispatches, or why they cannot be merged.
    pub saving: Result<Saving, Refusal>,
}

/// The saving of merging two dispatches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Saving {
    /// Number of bytes that a merged kernel no longer moves.
    pub bytes: u64,
    /// Whether the result must still be written: another command reads it, or no command of the window overwrites it.
    pub store_needed: bool,
}

/// Why two dispatches cannot be merged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// The bytes that one of them reaches are not known exactly.
    NotExact,
    /// The dispatches are on different queues or in different submissions.
    Apart,
    /// The dispatches have different workgroups.
    Grid,
    /// The second dispatch reads more or fewer bytes than the first wrote.
    Part,
    /// An invocation reads bytes that another invocation wrote.
    Map,
    /// The second dispatch overwrites bytes that another invocation of the first reads or writes.
    Overwrites,
    /// A command in between depends on the first dispatch, and the second depends on a command in between.
    Between,
}

impl Refusal {
    /// Returns the reason as a part of a sentence.
    pub fn as_str(self) -> &'static str {
        match self {
            Refusal::NotExact => "what one of them reads or writes is not known exactly",
            Refusal::Apart => "they are in different submissions or on different queues",
            Refusal::Grid => "their workgroups differ in number or size",
            Refusal::Part => "the second reads other bytes of the buffer than the first writes",
            Refusal::Map => "invocations read what other invocations wrote",
            Refusal::Overwrites => {
                "the second overwrites what other invocations of the first reach"
            }
            Refusal::Between => "commands between them depend on the first, and the second on such",
        }
    }
}

impl Graph {
    /// Returns the pairs of dispatches of which the second reads what the first wrote last, mergeable or not.
    pub fn fusions(&self) -> Vec<Fusion> {
        let is_dispatch = |node: usize| self.nodes[node].kind == Some(NodeKind::Dispatch);
        let mut after: HashMap<usize, Vec<&Edge>> = HashMap::new();
        let mut before: HashMap<usize, Vec<&Edge>> = HashMap::new();
        for edge in &self.edges {
            after.entry(edge.from).or_default().push(edge);
            before.entry(edge.to).or_default().push(edge);
        }
        let finder = Finder {
            graph: self,
            after,
            before,
        };
        let raw = (self.edges.iter()).filter(|edge| {
            edge.kind == EdgeKind::ReadAfterWrite && is_dispatch(edge.from) && is_dispatch(edge.to)
        });
        let fusions = raw.map(|edge| Fusion {
            first: edge.from,
            second: edge.to,
            buffer: edge.buffers.first().cloned().unwrap_or_default(),
            saving: finder.saving(edge),
        });
        fusions.collect()
    }
}

/// The graph with the edges by their earlier node (`after`) and by their later node (`before`).
struct Finder<'a> {
    graph: &'a Graph,
    after: HashMap<usize, Vec<&'a Edge>>,
    before: HashMap<usize, Vec<&'a Edge>>,
}

impl Finder<'_> {
    /// Returns what merging the two ends of an edge saves, or the first reason against it in the order of these
    /// checks: exact bytes, one submission and queue, equal workgroups, the same bytes by the same invocations, and
    /// the order of commands.
    fn saving(&self, edge: &Edge) -> Result<Saving, Refusal> {
        let (first, second) = (&self.graph.nodes[edge.from], &self.graph.nodes[edge.to]);
        if !first.is_exact() || !second.is_exact() {
            return Err(Refusal::NotExact);
        }
        if (first.queue, first.submission) != (second.queue, second.submission) {
            return Err(Refusal::Apart);
        }
        if first.grid.is_none() || first.grid != second.grid {
            return Err(Refusal::Grid);
        }
        let mut bytes = 0_u64;
        let mut passed = Vec::new();
        for write in first.accesses.iter().filter(|access| access.writes()) {
            let reads = second.accesses.iter().filter(|access| !access.writes());
            for read in reads.filter(|read| meet(write, read)) {
                if place(write) != place(read) || write.set != read.set {
                    return Err(Refusal::Part);
                }
                if write.map.is_none() || write.map != read.map || write.atomic || read.atomic {
                    return Err(Refusal::Map);
                }
                bytes = bytes.saturating_add(read.set.bytes());
                passed.push(write);
            }
        }
        self.keeps_order(first, second, edge)?;
        let store_needed = passed.iter().any(|write| !self.is_dead(edge, write));
        if !store_needed {
            bytes = bytes.saturating_mul(2);
        }
        Ok(Saving {
            bytes,
            store_needed,
        })
    }

    /// Checks that the second dispatch overwrites bytes of the first only in the same invocation, and that no command
    /// must come between the two.
    fn keeps_order(&self, first: &Node, second: &Node, edge: &Edge) -> Result<(), Refusal> {
        for write in second.accesses.iter().filter(|access| access.writes()) {
            for other in first.accesses.iter().filter(|other| meet(write, other)) {
                let same = place(write) == place(other) && write.map == other.map;
                if !same || write.map.is_none() {
                    return Err(Refusal::Overwrites);
                }
            }
        }
        let inside = |at: usize| edge.from < at && at < edge.to;
        let of = |edges: &HashMap<usize, Vec<&Edge>>, at, end: fn(&Edge) -> usize| {
            let edges = edges.get(&at).map_or(&[][..], Vec::as_slice);
            edges.iter().any(|edge| inside(end(edge)))
        };
        let follows = of(&self.after, edge.from, |edge| edge.to);
        let leads = of(&self.before, edge.to, |edge| edge.from);
        match follows && leads {
            true => Err(Refusal::Between),
            false => Ok(()),
        }
    }

    /// Returns whether a result is overwritten in the window, and until then only the second node reads it.
    fn is_dead(&self, edge: &Edge, write: &Access) -> bool {
        let others = self.after.get(&edge.from).map_or(&[][..], Vec::as_slice);
        let reads = (others.iter()).filter(|other| other.kind == EdgeKind::ReadAfterWrite);
        let touches = |other: &Edge| {
            other.parts.iter().any(|part| {
                let is_of = part.memory == write.memory;
                is_of
                    && part
                        .ranges
                        .iter()
                        .any(|range| overlaps(write, range.clone()))
            })
        };
        if reads
            .clone()
            .any(|other| other.to != edge.to && touches(other))
        {
            return false;
        }
        // The node that overwrites the result depends on the reader, unless it is the reader itself.
        let mut overwritten: Vec<Range<u64>> = Vec::new();
        let second = &self.graph.nodes[edge.to];
        let later = self.after.get(&edge.to).map_or(&[][..], Vec::as_slice);
        let writers = (later.iter())
            .filter(|later| later.kind == EdgeKind::WriteAfterRead)
            .map(|later| &self.graph.nodes[later.to]);
        for node in std::iter::once(second).chain(writers) {
            for access in node.accesses.iter().filter(|access| access.writes()) {
                if access.memory == write.memory && access.bound.is_none() {
                    overwritten.extend(access.set.shifted(access.offset));
                }
            }
        }
        let overwritten = ByteSet::from_unsorted(overwritten);
        (write.set.shifted(write.offset)).all(|range| {
            let covered: u64 = overwritten
                .within(range.clone())
                .map(|r| r.end - r.start)
                .sum();
            covered == range.end - range.start
        })
    }
}

/// Returns the place from which the bytes of an access count: its allocation, and the offset there.
fn place(access: &Access) -> (u64, u64) {
    (access.memory, access.offset)
}

/// Returns whether two accesses have a byte in common.
fn meet(a: &Access, b: &Access) -> bool {
    a.memory == b.memory && b.set.shifted(b.offset).any(|range| overlaps(a, range))
}

/// Returns whether an access reaches a byte of a range of its allocation.
fn overlaps(access: &Access, range: Range<u64>) -> bool {
    let from = range.start.max(access.offset) - access.offset;
    let to = range.end.max(access.offset) - access.offset;
    from < to && access.set.within(from..to).next().is_some()
}
