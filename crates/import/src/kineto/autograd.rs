//! Gives the work of a backward pass the labels of the thread that called it. The engine of PyTorch's autograd runs the nodes of a
//! graph on a thread of its own, on which the program sets no labels, while the calling thread waits.
//!
//! The calling thread is the one from which the file's arrows `fwdbwd` come, which join an operator with its backward node.
//! Without arrows it is the only thread with labels around the nodes, if it makes no calls while they run. Nodes whose
//! calling thread is not told keep no label.

use super::collect::Collector;
use super::event::Event;
use super::facts::{Autograd, STEP};
use crate::profile::{HostRange, Span};
use gapscope_trace::ids::{ProcessId, ThreadId};
use rustc_hash::FxHashMap;
use std::cmp::Reverse;

/// How the names of operators begin that run a node of the graph.
const NODE: &[u8] = b"autograd::engine::evaluate_function";

/// A thread of a process.
type ThreadKey = (ProcessId, Option<ThreadId>);

impl Collector<'_, '_> {
    /// Keeps when an operator ran, if it is a node of a backward pass.
    pub(super) fn backward_node(&mut self, event: &Event, span: Span) {
        if event.name.starts_with(NODE)
            && let Some(lane) = self.lane(event)
        {
            self.autograd.nodes.entry(lane).or_default().push(span);
        }
    }

    /// Keeps an end of an arrow from an operator to its backward node; returns false for other arrows.
    pub(super) fn backward_arrow(&mut self, event: &Event) -> bool {
        if event.category != b"fwdbwd" {
            return false;
        }
        if let Some(lane) = self.lane(event) {
            let begins = event.phase == b's';
            match self.autograd.arrows.remove(event.id) {
                Some((other, other_begins)) if begins != other_begins => {
                    let ends = if begins { (lane, other) } else { (other, lane) };
                    *self.autograd.origins.entry(ends).or_default() += 1;
                }
                _ => {
                    let end = (lane, begins);
                    self.autograd.arrows.insert(event.id.into(), end);
                }
            }
        }
        true
    }

    /// Adds the labels of calling threads to the threads that run nodes of their backward passes.
    pub(super) fn add_labels_of_backward_passes(&mut self) {
        let Autograd { nodes, origins, .. } = std::mem::take(&mut self.autograd);
        let step = self.profile.text(STEP);
        // Steps have been added to all threads.
        let is_label =
            |range: &&HostRange| range.labels_work && range.has_row && range.text != step;
        let mut labels: FxHashMap<ThreadKey, Vec<HostRange>> = FxHashMap::default();
        for range in self.profile.recorded.ranges.iter().filter(is_label) {
            let key = (range.process, range.thread);
            labels.entry(key).or_default().push(range.clone());
        }
        for (lane, mut nodes) in nodes {
            let key_of = |lane: u32| {
                let lane = &self.lanes.all[lane as usize];
                (lane.process, Some(lane.thread))
            };
            let own = key_of(lane);
            let arrows = origins.iter().filter(|((_, to), _)| *to == lane);
            let most = arrows.max_by_key(|((from, _), count)| (**count, Reverse(*from)));
            nodes.sort_by_key(|span| span.start_ns);
            let caller = match most {
                Some(((from, _), _)) => Some(key_of(*from)),
                None => self.waiting_caller(own, &labels, &nodes),
            };
            let Some(labels) = caller
                .filter(|caller| *caller != own)
                .and_then(|key| labels.get(&key))
            else {
                continue;
            };
            let thread = own.1;
            let copies = labels.iter().filter_map(|range| {
                let inside = inside(range, &nodes)?;
                Some(HostRange {
                    thread,
                    has_row: false,
                    start_ns: inside.start_ns,
                    end_ns: Some(inside.end_ns()),
                    ..range.clone()
                })
            });
            self.profile.recorded.ranges.extend(copies);
        }
    }

    /// Returns the only other thread of a process that has labels around nodes, if it makes no calls while they run.
    fn waiting_caller(
        &self,
        (process, thread): ThreadKey,
        labels: &FxHashMap<ThreadKey, Vec<HostRange>>,
        nodes: &[Span],
    ) -> Option<ThreadKey> {
        let has_nodes =
            |ranges: &[HostRange]| ranges.iter().any(|range| inside(range, nodes).is_some());
        let mut callers = labels.iter().filter(|((of_process, of_thread), ranges)| {
            *of_process == process && *of_thread != thread && has_nodes(ranges)
        });
        let (caller, _) = callers.next()?;
        let is_in_node = |at_ns: i64| {
            let after = nodes.partition_point(|node| node.start_ns <= at_ns);
            after
                .checked_sub(1)
                .is_some_and(|last| at_ns < nodes[last].end_ns())
        };
        let mut calls = self.profile.recorded.calls.iter();
        let calls_meanwhile = calls.any(|(process, call)| {
            (*process, call.thread) == *caller && is_in_node(call.span.start_ns)
        });
        (callers.next().is_none() && !calls_meanwhile).then_some(*caller)
    }
}

/// Returns the time from the first to the last of the nodes, which are in order of start, that lie in a range.
fn inside(range: &HostRange, nodes: &[Span]) -> Option<Span> {
    let from = nodes.partition_point(|node| node.start_ns < range.start_ns);
    let is_inside = |node: &&Span| range.end_ns.is_none_or(|end_ns| node.end_ns() <= end_ns);
    let nodes: &[Span] = &nodes[from..];
    let first = nodes.first().filter(is_inside)?;
    let end_ns = nodes
        .iter()
        .take_while(is_inside)
        .map(|node| node.end_ns())
        .max()?;
    Some(Span::between(first.start_ns, end_ns))
}
