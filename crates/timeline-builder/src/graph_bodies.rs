//! Finds the launches that bodies of conditional nodes belong to. The device runs such a body as often as it decides,
//! and its work has no correlation (the number that joins work to its call), but the number of the executable graph.
//! The other nodes of the graph have both numbers.
//!
//! In goes work of graphs, with and without correlation, in any order; out come bodies with their launches, some time
//! later. An executable graph never runs beside itself, so that a body belongs to the launch of its graph that began
//! last before it.

use crate::bounds::Bounds;
use crate::input::{Correlation, DeviceWork, GraphId};
use gapscope_trace::ids::QueueId;
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// Bodies that are older than this have got all launches before them: records come at least each 100 ms.
const SETTLED_NS: i64 = 1_000_000_000;

/// The launches of graphs, and the bodies that wait for one.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct GraphBodies {
    /// The launches of each graph, by their starts.
    launches: FxHashMap<GraphId, VecDeque<GraphStart>>,
    /// The graph of each launch, in the order in which they came; the oldest are forgotten.
    order: VecDeque<GraphId>,
    bodies: Vec<(GraphId, DeviceWork)>,
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
    /// Notes work of a graph that has a correlation.
    pub(crate) fn started(
        &mut self,
        graph: GraphId,
        correlation: Correlation,
        work: &DeviceWork,
        bounds: &Bounds,
    ) {
        let Some(span) = work.span else { return };
        let start = GraphStart {
            start_ns: span.start_ns,
            correlation,
            queue: work.queue,
        };
        let launches = self.launches.entry(graph).or_default();
        let known = (launches.iter()).rposition(|launch| launch.correlation == correlation);
        match known {
            // Most nodes of a launch follow its first one.
            Some(at) if launches[at].start_ns <= start.start_ns => return,
            Some(at) => {
                launches.remove(at);
            }
            None => self.order.push_back(graph),
        }
        let at = launches.partition_point(|known| known.start_ns <= start.start_ns);
        launches.insert(at, start);
        if self.order.len() > bounds.graphs
            && let Some(oldest) = self.order.pop_front()
            && let Some(launches) = self.launches.get_mut(&oldest)
        {
            launches.pop_front();
            if launches.is_empty() {
                self.launches.remove(&oldest);
            }
        }
    }

    /// Keeps a body until its launch is certain. Returns whether there is room for more.
    pub(crate) fn wait(&mut self, graph: GraphId, body: DeviceWork, bounds: &Bounds) -> bool {
        self.bodies.push((graph, body));
        self.bodies.len() < bounds.waiting
    }

    /// Takes the bodies whose launches are certain at `now_ns`, or all where that is `None`, in the order of their
    /// starts. A body has no launch where none is known that began before it.
    pub(crate) fn take(
        &mut self,
        now_ns: Option<i64>,
    ) -> Vec<(GraphId, DeviceWork, Option<GraphStart>)> {
        let start_ns = |body: &DeviceWork| body.span.map_or(i64::MIN, |span| span.start_ns);
        let until_ns = now_ns.map(|now_ns| now_ns.saturating_sub(SETTLED_NS));
        let is_settled = |(_, body): &mut (GraphId, DeviceWork)| {
            until_ns.is_none_or(|until_ns| start_ns(body) <= until_ns)
        };
        let mut bodies: Vec<_> = self.bodies.extract_if(.., is_settled).collect();
        bodies.sort_by_key(|(_, body)| start_ns(body));
        let with_launch = bodies.into_iter().map(|(graph, body)| {
            let launches = self.launches.get(&graph).filter(|_| body.span.is_some());
            let launch = launches.and_then(|launches| {
                let after = launches.partition_point(|known| known.start_ns <= start_ns(&body));
                launches.get(after.checked_sub(1)?).copied()
            });
            (graph, body, launch)
        });
        with_launch.collect()
    }
}
