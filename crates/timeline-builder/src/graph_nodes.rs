//! Where the program made each node of its graphs: takes what the driver says while graphs are made, and gives work of graphs the label that the
//! program was in when it made the node, inside the label around the launch.
//!
//! A program captures work into a graph, or makes nodes by calls. Instantiating the graph copies it into an executable one, whose numbers the
//! records of work have. A graph inside of the graph is copied as a graph of its own, which is then dissolved: its nodes get the next numbers
//! of the executable graph without a word of the driver (CUPTI 13.0 does all of this on an H100). Those numbers are
//! missing among the nodes that are made next, so that their count shows whether all were found.

use crate::labels::ThreadLabels;
use gapscope_model::{GraphChange, GraphId, GraphNodeId, Ledger, LossKind};
use gapscope_trace::build::{Labels, TextId};
use gapscope_trace::ids::{LabelId, ProcessId, ThreadId};
use gapscope_trace::tables::{GraphNode, Table, Tables};
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// The most nodes that are remembered, about 150 MiB; the oldest are forgotten.
const MAX_NODES: usize = 1 << 20;
/// How long the record of work may come after the launch. The flusher takes records every 100 ms, and a graph may run for seconds.
const LATE_RECORDS_NS: i64 = 10_000_000_000;
/// The most graphs whose beginnings are remembered.
const MAX_GRAPHS: usize = 1 << 16;
/// The most pairs of labels whose combination is remembered.
const MAX_COMBINED: usize = 1 << 16;

/// Where a node was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
struct Made {
    thread: Option<ThreadId>,
    at_ns: i64,
    /// The innermost label of the thread then.
    label: Option<LabelId>,
    /// The innermost label of the thread that began to make the graph, at that time.
    around: Option<LabelId>,
}

/// A node, as far as it is known.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Node {
    made: Made,
    /// Where the node was made before updates, with the times of these, in order. Records of work come late.
    before: VecDeque<(i64, Made)>,
    /// The node has a row.
    has_row: bool,
}

/// A change of a thread that counts where it instantiates a graph.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
enum Step {
    Created(GraphNodeId),
    Cloned(GraphNodeId),
    Destroyed(GraphId),
}

/// The nodes of the graphs of one process.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct GraphNodes {
    nodes: FxHashMap<GraphNodeId, Node>,
    /// The nodes, in the order in which they came.
    order: VecDeque<GraphNodeId>,
    /// The innermost label of the thread that began to make a graph, at that time.
    around: FxHashMap<GraphId, Option<LabelId>>,
    /// The changes of each thread since it has instantiated a graph.
    steps: FxHashMap<Option<ThreadId>, Vec<Step>>,
    /// The labels of work: by the label around the launch, and both labels of a [`Made`].
    #[serde(skip)]
    combined: FxHashMap<[Option<LabelId>; 3], Option<LabelId>>,
}

impl GraphNodes {
    /// Takes a change of a graph.
    pub(crate) fn changed(
        &mut self,
        thread: Option<ThreadId>,
        change: GraphChange,
        labels: &ThreadLabels,
    ) {
        let label_at = |at_ns| labels.at(thread, at_ns).unwrap_or(None);
        match change {
            GraphChange::Created { graph, at_ns } => {
                if self.around.len() >= MAX_GRAPHS {
                    self.around.clear();
                }
                self.around.insert(graph, label_at(at_ns));
            }
            GraphChange::NodeCreated { node, at_ns } => {
                self.step(thread, Step::Created(node));
                let made = Made {
                    thread,
                    at_ns,
                    label: label_at(at_ns),
                    around: self.around.get(&node.graph()).copied().flatten(),
                };
                self.insert(node, made);
            }
            GraphChange::NodeCloned { node, original } => {
                self.step(thread, Step::Cloned(node));
                if !self.copy(node, original) {
                    // The thread that copies the graph is not where the program made the node.
                    self.nodes.remove(&node);
                }
            }
            GraphChange::NodeUpdated {
                node,
                source,
                at_ns,
            } => self.update(node, source, at_ns),
            GraphChange::Destroyed { graph } => {
                self.step(thread, Step::Destroyed(graph));
                self.around.remove(&graph);
            }
            GraphChange::Instantiated { graph } => {
                let steps = self.steps.remove(&thread).unwrap_or_default();
                self.dissolve(graph, &steps);
            }
        }
    }

    fn step(&mut self, thread: Option<ThreadId>, step: Step) {
        let steps = self.steps.entry(thread).or_default();
        if steps.len() >= MAX_NODES {
            steps.clear();
        }
        steps.push(step);
    }

    /// Gives the nodes of the graphs that were dissolved into an executable graph their numbers there. Of what the thread did before, graphs
    /// with greater numbers are those that were made for the executable one.
    fn dissolve(&mut self, executable: GraphId, steps: &[Step]) {
        let mut inner: FxHashMap<GraphId, Vec<GraphNodeId>> = FxHashMap::default();
        let mut dissolved: Vec<GraphNodeId> = Vec::new();
        let mut next = 0u32;
        for step in steps {
            match *step {
                Step::Created(node) if node.graph() == executable => {
                    let missing = node.place().saturating_sub(next) as usize;
                    if missing == dissolved.len() {
                        self.take_places(executable, next, &dissolved);
                    }
                    if missing > 0 {
                        dissolved.clear();
                    }
                    next = next.max(node.place().saturating_add(1));
                }
                Step::Cloned(node) if node.graph() > executable => {
                    inner.entry(node.graph()).or_default().push(node);
                }
                Step::Destroyed(graph) => {
                    dissolved.extend(inner.remove(&graph).unwrap_or_default());
                }
                Step::Created(_) | Step::Cloned(_) => {}
            }
        }
        self.take_places(executable, next, &dissolved);
    }

    /// Gives nodes the places of an executable graph from `first` on.
    fn take_places(&mut self, executable: GraphId, first: u32, nodes: &[GraphNodeId]) {
        for (place, node) in (first..=u32::MAX).zip(nodes) {
            self.copy(GraphNodeId::new(executable, place), *node);
        }
    }

    /// Notes that a node was made where another one was; returns false where that is not known.
    fn copy(&mut self, node: GraphNodeId, original: GraphNodeId) -> bool {
        let made = self.nodes.get(&original).map(|original| original.made);
        made.map(|made| self.insert(node, made)).is_some()
    }

    /// Notes that from a time on, a node does what another one does.
    fn update(&mut self, node: GraphNodeId, source: GraphNodeId, at_ns: i64) {
        let Some(made) = self.nodes.get(&source).map(|source| source.made) else {
            return;
        };
        let Some(node) = self.nodes.get_mut(&node) else {
            return self.insert(node, made);
        };
        let before = std::mem::replace(&mut node.made, made);
        if (before.label, before.around) != (made.label, made.around) {
            node.before.push_back((at_ns, before));
            let is_old =
                |(until_ns, _): &mut (i64, Made)| *until_ns < at_ns.saturating_sub(LATE_RECORDS_NS);
            while node.before.pop_front_if(is_old).is_some() {}
        }
    }

    fn insert(&mut self, node: GraphNodeId, made: Made) {
        let new = Node {
            made,
            before: VecDeque::new(),
            has_row: false,
        };
        if self.nodes.insert(node, new).is_none() {
            self.order.push_back(node);
        }
        if self.order.len() > MAX_NODES
            && let Some(oldest) = self.order.pop_front()
        {
            self.nodes.remove(&oldest);
        }
    }

    /// Returns the label of work that a node did in a launch inside the label `launched`, called at `called_ns`, and writes the node's row where
    /// the work is its first. Where it is not known how the node was made, the work has the label of its launch, and that is a loss where labels exist.
    pub(crate) fn ran(
        &mut self,
        node: GraphNodeId,
        (launched, called_ns): (Option<LabelId>, Option<i64>),
        process: ProcessId,
        (labels, ledger, tables): (&mut Labels, &mut Ledger, &mut Tables),
    ) -> Option<LabelId> {
        let Some(known) = self.nodes.get_mut(&node) else {
            if !labels.is_empty() {
                let reason = "it is not known how their graph was made";
                ledger.add(LossKind::LabelsOfWork, 1, reason);
            }
            return launched;
        };
        let earlier = called_ns.and_then(|called_ns| {
            let mut before = known.before.iter();
            before.find(|(until_ns, _)| called_ns < *until_ns)
        });
        let made = earlier.map_or(known.made, |(_, made)| *made);
        if !std::mem::replace(&mut known.has_row, true) {
            tables.graph_nodes.push(GraphNode {
                process,
                graph: node.graph().0,
                node: node.0,
                label: made.label,
                thread: made.thread,
                made_ns: made.at_ns,
            });
        }
        let Made { label, around, .. } = made;
        if label.is_none() {
            return launched;
        }
        if self.combined.len() >= MAX_COMBINED {
            self.combined.clear();
        }
        *(self.combined)
            .entry([launched, around, label])
            .or_insert_with(|| combined(launched, around, label, labels))
    }
}

/// Returns the label of work: the labels that began while its graph was made, inside the label `launched`. Work that was launched inside of no
/// label has all the labels in which its node was made. `around` is the label in which the making of the graph began.
///
/// Labels that end the one path and begin the other count once: a module that launches a graph of itself.
fn combined(
    launched: Option<LabelId>,
    around: Option<LabelId>,
    made: Option<LabelId>,
    labels: &mut Labels,
) -> Option<LabelId> {
    let Some(launched) = launched else {
        return made;
    };
    let mut inner = path(made, labels);
    if let Some(begun) = inner.iter().position(|(label, _)| Some(*label) == around) {
        inner.drain(..=begun);
    }
    let inner: Vec<TextId> = inner.into_iter().map(|(_, text)| text).collect();
    let outer = path(Some(launched), labels);
    let outer: Vec<TextId> = outer.into_iter().map(|(_, text)| text).collect();
    let shared = (0..=inner.len().min(outer.len()))
        .rev()
        .find(|shared| outer.ends_with(&inner[..*shared]));
    let added = inner[shared.unwrap_or(0)..].iter();
    Some(added.fold(launched, |label, text| labels.label(Some(label), *text)))
}

/// Returns the labels from the outermost one to a label, with their texts.
fn path(label: Option<LabelId>, labels: &Labels) -> Vec<(LabelId, TextId)> {
    let mut path = Vec::new();
    let mut next = label;
    while let Some(label) = next
        && let Some((around, text)) = labels.parts_of(label)
    {
        path.push((label, text));
        next = around;
    }
    path.reverse();
    path
}

#[cfg(test)]
mod tests;
