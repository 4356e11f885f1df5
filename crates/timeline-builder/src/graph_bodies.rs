//! Finds the launches that bodies of conditional nodes belong to. The device runs such a body as often as it decides,
//! and its work has no correlation (the number that joins work to its call), but the number of the executable graph.
//! The other nodes of the graph have both numbers.
//!
//! In go the starts of work of graphs, with and without correlation; out comes the launch of a body. An executable
//! graph never runs beside itself, so that a body belongs to the launch of its graph that began last before it.

use crate::bounds::Bounds;
use crate::input::{Correlation, DeviceWork, GraphId};
use gapscope_trace::ids::QueueId;
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// The launches of a graph that are remembered, for bodies that come late.
const KEPT_LAUNCHES: usize = 16;

/// The executable graphs of a process whose work has come.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct GraphBodies {
    graphs: FxHashMap<GraphId, GraphRuns>,
    /// The graphs in the order in which their work first came; the oldest are forgotten.
    order: VecDeque<GraphId>,
    /// The bodies of all graphs that wait for a launch.
    waiting: usize,
}

/// The runs of one executable graph.
#[derive(Debug, Default, Serialize, Deserialize)]
struct GraphRuns {
    /// The last launches, by their start.
    launches: VecDeque<GraphStart>,
    /// Bodies before which no launch is known.
    bodies: Vec<DeviceWork>,
}

/// The first work of a launch of a graph.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(crate) struct GraphStart {
    start_ns: i64,
    pub(crate) correlation: Correlation,
    /// The queue that the graph was launched on. Bodies run on streams of the driver's own.
    pub(crate) queue: QueueId,
}

impl GraphBodies {
    /// Notes work of a graph that has a correlation. Returns the bodies that have waited for this launch.
    pub(crate) fn started(
        &mut self,
        graph: GraphId,
        correlation: Correlation,
        work: &DeviceWork,
        bounds: &Bounds,
    ) -> Vec<DeviceWork> {
        let Some(span) = work.span else {
            return Vec::new();
        };
        let runs = self.runs(graph, bounds);
        let known = runs
            .launches
            .iter()
            .rposition(|launch| launch.correlation == correlation);
        match known {
            // Most nodes of a launch follow its first one.
            Some(at) if runs.launches[at].start_ns <= span.start_ns => return Vec::new(),
            Some(at) => {
                runs.launches.remove(at);
            }
            None => {}
        }
        let launch = GraphStart {
            start_ns: span.start_ns,
            correlation,
            queue: work.queue,
        };
        let at = (runs.launches).partition_point(|known| known.start_ns <= launch.start_ns);
        runs.launches.insert(at, launch);
        if runs.launches.len() > KEPT_LAUNCHES {
            runs.launches.pop_front();
        }
        let is_after = |body: &mut DeviceWork| {
            body.span
                .is_some_and(|span| launch.start_ns <= span.start_ns)
        };
        let bodies: Vec<DeviceWork> = runs.bodies.extract_if(.., is_after).collect();
        self.waiting -= bodies.len();
        bodies
    }

    /// Returns the launch that a body belongs to; `None` where none is known that began before it.
    pub(crate) fn launch_of(&self, graph: GraphId, body: &DeviceWork) -> Option<GraphStart> {
        let start_ns = body.span?.start_ns;
        let launches = &self.graphs.get(&graph)?.launches;
        let after = launches.partition_point(|launch| launch.start_ns <= start_ns);
        launches.get(after.checked_sub(1)?).copied()
    }

    /// Keeps a body until a launch comes that it belongs to. Returns false where there is no room, or the body has no
    /// times to tell the launch by.
    pub(crate) fn wait(&mut self, graph: GraphId, body: DeviceWork, bounds: &Bounds) -> bool {
        let waits = body.span.is_some() && self.waiting < bounds.waiting;
        if waits {
            self.waiting += 1;
            self.runs(graph, bounds).bodies.push(body);
        }
        waits
    }

    /// Takes the bodies whose launches never came, in the order of graphs.
    pub(crate) fn take_all(&mut self) -> Vec<DeviceWork> {
        self.waiting = 0;
        let mut bodies = Vec::new();
        for graph in std::mem::take(&mut self.order) {
            bodies.extend(
                self.graphs
                    .remove(&graph)
                    .into_iter()
                    .flat_map(|runs| runs.bodies),
            );
        }
        bodies
    }

    /// Returns the runs of a graph. A new one takes the place of the oldest that no body waits for.
    fn runs(&mut self, graph: GraphId, bounds: &Bounds) -> &mut GraphRuns {
        if !self.graphs.contains_key(&graph) {
            if self.order.len() >= bounds.graphs {
                let is_idle = |graph: &GraphId| {
                    self.graphs
                        .get(graph)
                        .is_none_or(|runs| runs.bodies.is_empty())
                };
                if let Some(at) = self.order.iter().position(is_idle)
                    && let Some(oldest) = self.order.remove(at)
                {
                    self.graphs.remove(&oldest);
                }
            }
            self.order.push_back(graph);
        }
        self.graphs.entry(graph).or_default()
    }
}
