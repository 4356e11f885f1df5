//! Graphs that programs make in labels, and the labels of their work.

use super::*;
use crate::LabelScope;
use crate::labels::{CategoryId, LabelDomain, LabelStart};
use crate::output::LabelRows;

const THREAD: Option<ThreadId> = Some(ThreadId(7));
const GRAPH: GraphId = GraphId(1);

fn node(graph: u32, place: u32) -> GraphNodeId {
    GraphNodeId::new(GraphId(graph), place)
}

/// A process whose only thread makes graphs, one change a nanosecond.
#[derive(Default)]
struct Program {
    thread_labels: ThreadLabels,
    labels: Labels,
    ledger: Ledger,
    tables: Tables,
    nodes: GraphNodes,
    now_ns: i64,
}

impl Program {
    fn change(&mut self, change: impl FnOnce(i64) -> GraphChange) {
        self.now_ns += 1;
        (self.nodes).changed(THREAD, change(self.now_ns), &self.thread_labels);
    }

    fn create(&mut self, graph: GraphId) {
        self.change(|at_ns| GraphChange::Created { graph, at_ns });
    }

    fn add(&mut self, node: GraphNodeId) {
        self.change(|at_ns| GraphChange::NodeCreated { node, at_ns });
    }

    /// Copies a node, as an instantiation does.
    fn clone(&mut self, node: GraphNodeId, original: GraphNodeId) {
        self.add(node);
        self.change(|_| GraphChange::NodeCloned { node, original });
    }

    fn begin(&mut self, text: &str) {
        self.now_ns += 1;
        let start = LabelStart {
            thread: THREAD,
            domain: LabelDomain::Program(0),
            text: self.labels.text(text),
            at_ns: self.now_ns,
            category: CategoryId::default(),
            payload: None,
            labels_work: true,
            has_row: true,
        };
        let out = &mut LabelRows {
            process: ProcessId(1),
            labels: &mut self.labels,
            tables: &mut self.tables,
        };
        self.thread_labels.begin(start, out);
    }

    fn end(&mut self) {
        self.now_ns += 1;
        let out = &mut LabelRows {
            process: ProcessId(1),
            labels: &mut self.labels,
            tables: &mut self.tables,
        };
        let scope = LabelScope::Thread(LabelDomain::Program(0));
        self.thread_labels.end(THREAD, scope, self.now_ns, out);
    }

    /// Runs a node in a launch inside of labels, and returns the labels of its work.
    fn run(&mut self, node: GraphNodeId, launched: &[&str]) -> Vec<String> {
        let launched = launched
            .iter()
            .fold(None, |around, text| Some(self.labels.named(around, text)));
        let out = (&mut self.labels, &mut self.ledger, &mut self.tables);
        let launched = (launched, Some(self.now_ns));
        let label = self.nodes.ran(node, launched, ProcessId(1), out);
        let path = path(label, &self.labels).into_iter();
        path.map(|(_, text)| self.labels.text_of(text).to_owned())
            .collect()
    }
}

/// Captures two nodes in different labels and instantiates them as the executable graph 2.
fn captured() -> Program {
    let mut program = Program::default();
    program.begin("warm-up");
    program.create(GRAPH);
    for (place, module) in ["attention", "mlp"].into_iter().enumerate() {
        program.begin("layer");
        program.begin(module);
        program.add(node(1, place as u32));
        program.end();
        program.end();
    }
    program.end();
    program.create(GraphId(2));
    program.clone(node(2, 0), node(1, 0));
    program.clone(node(2, 1), node(1, 1));
    program.change(|_| GraphChange::Instantiated { graph: GraphId(2) });
    program
}

#[test]
fn work_has_the_labels_of_its_capture_inside_those_of_its_launch() {
    let mut program = captured();
    assert_eq!(
        program.run(node(2, 0), &["decode"]),
        ["decode", "layer", "attention"]
    );
    assert_eq!(
        program.run(node(2, 1), &["decode"]),
        ["decode", "layer", "mlp"]
    );
    assert_eq!(
        program.run(node(2, 1), &[]),
        ["warm-up", "layer", "mlp"],
        "nothing is around the launch"
    );
    assert_eq!(
        program.run(node(2, 1), &["decode", "layer"]),
        ["decode", "layer", "mlp"],
        "the layer launches the graph of itself"
    );
    assert_eq!(
        program.tables.graph_nodes.node,
        [node(2, 0).0, node(2, 1).0]
    );
    assert!(program.ledger.losses().is_empty());
}

#[test]
fn a_node_that_nobody_saw_is_a_loss_and_has_the_label_of_its_launch() {
    let mut program = captured();
    assert_eq!(program.run(node(9, 0), &["decode"]), ["decode"]);
    let losses = program.ledger.losses();
    assert_eq!((losses.len(), losses[0].count), (1, 1));
}

#[test]
fn an_update_takes_the_labels_of_the_new_capture() {
    let mut program = captured();
    program.create(GraphId(3));
    program.begin("other");
    program.add(node(3, 1));
    program.end();
    let (node, source) = (node(2, 1), node(3, 1));
    let launched_ns = program.now_ns;
    program.change(|at_ns| GraphChange::NodeUpdated {
        node,
        source,
        at_ns,
    });
    assert_eq!(program.run(node, &["decode"]), ["decode", "other"]);
    program.now_ns = launched_ns;
    let before = program.run(node, &["decode"]);
    assert_eq!(before, ["decode", "layer", "mlp"], "its record comes late");
}

/// The changes are those that CUPTI 13.0 told on an H100 of a graph of a kernel, a graph inside, and another kernel.
fn with_graph_inside(next: u32) -> Program {
    let mut program = captured();
    program.create(GraphId(8));
    program.begin("before");
    program.add(node(8, 0));
    program.end();
    program.create(GraphId(9));
    program.clone(node(9, 0), node(1, 0));
    program.clone(node(9, 1), node(1, 1));
    program.add(node(8, 1));
    program.begin("after");
    program.add(node(8, 2));
    program.end();
    program.create(GraphId(10));
    program.clone(node(10, 0), node(8, 0));
    program.create(GraphId(11));
    program.clone(node(11, 0), node(9, 0));
    program.clone(node(11, 1), node(9, 1));
    program.clone(node(10, 1), node(8, 1));
    program.clone(node(10, 2), node(8, 2));
    program.add(node(12, 1));
    program.change(|_| GraphChange::Destroyed { graph: GraphId(11) });
    program.add(node(10, next));
    program.change(|_| GraphChange::Instantiated { graph: GraphId(10) });
    program
}

#[test]
fn the_nodes_of_a_graph_inside_are_found_under_their_new_numbers() {
    let mut program = with_graph_inside(5);
    let labels = [0, 2, 3, 4].map(|place| program.run(node(10, place), &["decode"]));
    assert_eq!(labels[0], ["decode", "before"]);
    assert_eq!(labels[1], ["decode", "after"]);
    assert_eq!(labels[2], ["decode", "layer", "attention"]);
    assert_eq!(labels[3], ["decode", "layer", "mlp"]);
}

#[test]
fn damaged_numbers_and_times_are_no_trouble() {
    let mut program = captured();
    let last = node(2, u32::MAX);
    program.clone(last, node(1, 0));
    program.change(|_| GraphChange::Instantiated { graph: GraphId(2) });
    let source = node(1, 1);
    program.change(|_| GraphChange::NodeUpdated {
        node: last,
        source,
        at_ns: i64::MIN,
    });
    assert_eq!(program.run(last, &["decode"]), ["decode", "layer", "mlp"]);
}

#[test]
fn nodes_inside_are_unknown_where_their_count_is_not_that_of_the_missing_numbers() {
    let mut program = with_graph_inside(6);
    assert_eq!(program.run(node(10, 3), &["decode"]), ["decode"]);
    assert_eq!(program.run(node(10, 2), &["decode"]), ["decode", "after"]);
    assert!(!program.ledger.losses().is_empty());
}
