//! Reads which thread made which node of which CUDA graph, and when, into the profile: the work of a node has the labels in which the node was
//! made. nsys writes a row where the program makes a graph or a node, and where an instantiation copies a node. Of the end of a graph there is none.

use super::import::{Import, thread_of};
use crate::Error;
use crate::profile::{GraphChange, GraphId, GraphNodeId, MadeGraph};
use crate::sqlite::Row;
use gapscope_model::Span;
use gapscope_trace::LossKind;

/// The tables of graphs and of their nodes.
const GRAPHS: &str = "CUDA_GRAPH_EVENTS";
const NODES: &str = "CUDA_GRAPH_NODE_EVENTS";

/// Rows that are not understood.
#[derive(Default)]
struct Refused {
    /// Rows without a number, a thread or a time.
    damaged: u64,
    /// Rows of other kinds of changes.
    others: u64,
}

impl Import {
    /// Reads how graphs and their nodes were made.
    pub(super) fn read_graphs(&mut self) -> Result<(), Error> {
        let mut refused = Refused::default();
        let columns = ["start", "globalTid", "nameId", "graphId", "graphExecId"];
        self.scan(GRAPHS, &columns, |import, row| {
            let graph = |at: usize| row.small(at).and_then(|number| GraphId(number).some());
            let change = match (graph(4), graph(3)) {
                (Some(graph), _) => Some(GraphChange::Instantiated { graph }),
                (None, Some(graph)) => Some(GraphChange::Created { graph, at_ns: 0 }),
                (None, None) => None,
            };
            import.add_changes(row, &mut refused, change.map(|change| [Some(change), None]));
        })?;
        self.lose_rows(GRAPHS, std::mem::take(&mut refused));
        let columns = [
            "start",
            "globalTid",
            "nameId",
            "graphNodeId",
            "originalGraphNodeId",
        ];
        self.scan(NODES, &columns, |import, row| {
            let node = |at: usize| row.integer(at).and_then(GraphNodeId::from_file);
            let changes = node(3).map(|node_made| {
                let created = GraphChange::NodeCreated {
                    node: node_made,
                    at_ns: 0,
                };
                let cloned = node(4).map(|original| GraphChange::NodeCloned {
                    node: node_made,
                    original,
                });
                [Some(created), cloned]
            });
            import.add_changes(row, &mut refused, changes);
        })?;
        self.lose_rows(NODES, refused);
        Ok(())
    }

    /// Adds the changes of a row, whose first columns are the time, the thread and the name of the change.
    fn add_changes(
        &mut self,
        row: &Row,
        refused: &mut Refused,
        changes: Option<[Option<GraphChange>; 2]>,
    ) {
        let Some(global) = row.integer(1) else {
            refused.damaged += 1;
            return;
        };
        let Some(process) = self.process(Some(global)) else {
            return;
        };
        let name = row.integer(2).and_then(|name| self.strings.get(name));
        if name.is_some_and(|name| !is_made(&name)) {
            refused.others += 1;
            return;
        }
        let at_ns = row
            .integer(0)
            .filter(|ns| Span::checked(*ns, *ns).is_some());
        let (Some(at_ns), Some(changes)) = (at_ns, changes) else {
            refused.damaged += 1;
            return;
        };
        let made = changes.into_iter().flatten().map(|change| MadeGraph {
            process,
            thread: Some(thread_of(global)),
            at_ns,
            change,
        });
        self.profile.recorded.graphs.extend(made);
    }

    fn lose_rows(&mut self, table: &str, Refused { damaged, others }: Refused) {
        let kind = LossKind::from_text(format!("rows of {table}"));
        let losses = &mut self.profile.inventory;
        losses.lose(
            kind.clone(),
            damaged,
            "the file has no times, threads or numbers of them, or impossible ones",
        );
        let reason = "they are of a kind that gapscope does not know";
        losses.lose(kind, others, reason);
    }
}

/// Returns true for the name of a row that says that a graph or a node was made: `Graph Node Creation`, `GraphExec Creation`.
fn is_made(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    ["creation", "clone", "cloning"]
        .iter()
        .any(|end| name.ends_with(end))
}
