//! Finds the launches that bodies of conditional nodes belong to. The device runs such a body as often as it decides,
//! and its work has no correlation (the number that joins work to its call), but the number of the executable graph.
//! The other nodes of the graph have both numbers.
//!
//! In go work of graphs, with and without correlation, and calls that launch graphs, in any order; out come bodies with
//! their launches, some time later. An executable graph never runs beside itself, so that a body belongs to the launch of
//! its graph that began last before it. A launch began with its first work that has its correlation. One without such
//! work, as of a graph that is a loop and nothing else, began after its call and after the work that was put on its queue
//! before it. Where several such launches in a row are called before the first of them has ended, with no other work
//! between them, the last ones take the bodies of those before.

use crate::bounds::Bounds;
use crate::input::{ApiCall, CallQueue, Correlation, DeviceWork};
use gapscope_model::GraphId;
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
    /// Launches that are known by their calls alone so far.
    called: Vec<(GraphId, Correlation)>,
    /// The ends of work by queue, while there are such launches, or bodies whose launches may come.
    ends: FxHashMap<QueueId, Vec<(Correlation, i64)>>,
}

/// The start of a launch of a graph, as far as it is known.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(crate) struct GraphStart {
    start_ns: i64,
    pub(crate) correlation: Correlation,
    /// The queue that the graph was launched on; `None` where it is not known. Bodies run on streams of the driver's own.
    pub(crate) queue: Option<QueueId>,
    /// The start is that of the first work, and not that of the call.
    has_work: bool,
}

impl GraphBodies {
    /// Notes a call that launched a graph.
    pub(crate) fn called(&mut self, call: &ApiCall, bounds: &Bounds) {
        let (Some(graph), Some(correlation), 0) = (call.graph, call.correlation, call.result)
        else {
            return;
        };
        let queue = match call.queue {
            CallQueue::Known(queue) => Some(queue),
            _ => None,
        };
        let launches = self.launches.entry(graph).or_default();
        if (launches.iter().rev()).all(|launch| launch.correlation != correlation) {
            let start = GraphStart {
                start_ns: call.span.start_ns,
                correlation,
                queue,
                has_work: false,
            };
            self.called.push((graph, correlation));
            self.insert(graph, start, bounds);
        }
    }

    /// Notes the queue of a call that launched a graph.
    pub(crate) fn queue(&mut self, graph: GraphId, correlation: Correlation, queue: QueueId) {
        let launches = self.launches.get_mut(&graph).into_iter().flatten();
        for launch in launches.filter(|launch| launch.correlation == correlation) {
            launch.queue = Some(queue);
        }
    }

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
            queue: Some(work.queue),
            has_work: true,
        };
        let launches = self.launches.entry(graph).or_default();
        let known = (launches.iter()).rposition(|launch| launch.correlation == correlation);
        if let Some(at) = known {
            let before = launches[at];
            // Most nodes of a launch follow its first one.
            if before.has_work && before.start_ns <= start.start_ns {
                return;
            }
            launches.remove(at);
            launches.insert(place(launches, &start), start);
            return;
        }
        self.insert(graph, start, bounds);
    }

    /// Notes that work with a correlation ran: a launch that was called later on its queue began after it.
    #[inline]
    pub(crate) fn ran(&mut self, correlation: Correlation, work: &DeviceWork) {
        if !(self.called.is_empty() && self.bodies.is_empty())
            && let Some(span) = work.span
        {
            let ends = self.ends.entry(work.queue).or_default();
            ends.push((correlation, span.end_ns()));
        }
    }

    /// Adds a launch, and forgets the oldest where there are too many.
    fn insert(&mut self, graph: GraphId, start: GraphStart, bounds: &Bounds) {
        let launches = self.launches.entry(graph).or_default();
        launches.insert(place(launches, &start), start);
        self.order.push_back(graph);
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

    /// Moves the starts of launches that are known by their calls alone behind the work before them. All work that
    /// began until `until_ns` has come.
    fn settle_calls(&mut self, until_ns: Option<i64>) {
        for ends in self.ends.values_mut() {
            ends.sort();
            let mut latest_ns = i64::MIN;
            for (_, end_ns) in ends {
                latest_ns = latest_ns.max(*end_ns);
                *end_ns = latest_ns;
            }
        }
        let (launches, ends) = (&mut self.launches, &self.ends);
        self.called.retain(|(graph, correlation)| {
            let Some(launches) = launches.get_mut(graph) else {
                return false;
            };
            let found = launches
                .iter()
                .rposition(|launch| launch.correlation == *correlation);
            let Some(at) = found.filter(|at| !launches[*at].has_work) else {
                return false;
            };
            let mut launch = launches[at];
            if until_ns.is_some_and(|until_ns| launch.start_ns > until_ns) {
                return true;
            }
            let before = launch.queue.and_then(|queue| ends.get(&queue));
            let before = before.and_then(|ends| {
                let after = ends.partition_point(|(ended, _)| ended < correlation);
                ends.get(after.checked_sub(1)?)
            });
            if let Some((_, end_ns)) = before {
                launch.start_ns = launch.start_ns.max(*end_ns);
                launches.remove(at);
                launches.insert(place(launches, &launch), launch);
            }
            false
        });
        // Of the work before the launches that may come, the last counts.
        let least = self
            .called
            .iter()
            .map(|(_, correlation)| *correlation)
            .min();
        let Some(old_ns) = until_ns.filter(|_| least.is_some() || !self.bodies.is_empty()) else {
            return self.ends.clear();
        };
        let old_ns = old_ns.saturating_sub(SETTLED_NS);
        for ends in self.ends.values_mut() {
            let is_over = |(ended, end_ns): &(Correlation, i64)| {
                *end_ns <= old_ns && least.is_none_or(|least| *ended < least)
            };
            let over = ends.partition_point(is_over);
            ends.drain(..over.saturating_sub(1));
        }
    }

    /// Takes the bodies whose launches are certain at `now_ns`, or all where that is `None`, in the order of their
    /// starts. A body has no launch where none is known that began before it.
    pub(crate) fn take(
        &mut self,
        now_ns: Option<i64>,
    ) -> Vec<(GraphId, DeviceWork, Option<GraphStart>)> {
        let start_ns = |body: &DeviceWork| body.span.map_or(i64::MIN, |span| span.start_ns);
        let until_ns = now_ns.map(|now_ns| now_ns.saturating_sub(SETTLED_NS));
        self.settle_calls(until_ns);
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

/// Returns the place of a launch among those of its graph.
fn place(launches: &VecDeque<GraphStart>, new: &GraphStart) -> usize {
    let key = |launch: &GraphStart| (launch.start_ns, launch.correlation);
    launches.partition_point(|known| key(known) <= key(new))
}
