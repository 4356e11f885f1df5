//! Derives findings from the graph and the barriers of a capture: hazards (dependent commands that nothing orders),
//! and for each barrier whether a dependency needs it.
//!
//! A node is a command, an edge a pair of commands of which the later one depends on the bytes that the earlier one
//! accessed, and a part of an edge some of these bytes in one memory. A barrier covers an edge if by Vulkan's rules
//! it orders the two commands for those bytes; a batch is an element of a submission, with its own semaphores.

use std::borrow::Cow;
use std::collections::HashMap;
use std::ops::Range;

use gapscope_capture::Capture;
use gapscope_capture::model::CommandsId;

use schemars::JsonSchema;
use serde::Serialize;

use crate::bytes::ByteSet;
use crate::footprint::Limits;
use crate::graph::{Edge, EdgePart, Graph, Node};
use crate::order::{Barriers, Batches, Order};
use crate::traffic::{Bandwidth, UnknownBandwidth};
use crate::window::{Barrier, Window};

/// The dependencies between the commands of a window, and the findings about its barriers.
#[derive(Debug)]
pub struct Dependencies {
    /// The commands as nodes, and the edges between them.
    pub graph: Graph,
    /// For each edge of the graph, what orders its two ends.
    pub orders: Vec<Order>,
    /// Indices of edges with exact bytes whose ends must be ordered but are not.
    pub hazards: Vec<usize>,
    /// Indices of edges whose ends are not ordered, and that may not exist, because their bytes are only an upper
    /// bound.
    pub possible_hazards: Vec<usize>,
    /// The barriers in the order of submission.
    pub barriers: Vec<BarrierUse>,
    /// Why hazards and needs of barriers are not known; `None` where they are known.
    pub unknown: Option<String>,
    /// The bandwidth of the device's memory, or why it is not known. Callers measure it and set this field.
    pub bandwidth: Result<Bandwidth, UnknownBandwidth>,
}

/// A barrier, and whether a dependency needs it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BarrierUse {
    /// Number of nodes before the barrier, of all queues.
    pub position: usize,
    /// Number of the submission, from 0.
    pub submission: usize,
    /// Id of the command recording that has the barrier.
    pub commands: CommandsId,
    /// Index of the barrier in that recording.
    pub index: usize,
    /// Index of the barrier among [`Capture::executed`].
    pub executed: usize,
    /// Whether a dependency needs the barrier.
    pub need: Need,
    /// Why the need is not known; `None` unless `need` is [`Need::Unknown`].
    pub reason: Option<String>,
}

/// The need for a barrier.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Need {
    /// A dependency needs the barrier, and no other one covers it.
    Needed,
    /// Without this barrier and all other needless ones, every dependency of the window is covered as before.
    Needless,
    /// Not known, as the barrier orders nothing of the window before or after it in its submission, but may order
    /// other work.
    Outside,
    /// Not known, as the barrier is for the host.
    Host,
    /// Not known, for the reason in [`BarrierUse::reason`].
    Unknown,
}

impl Need {
    /// Returns the value's name.
    pub fn as_str(self) -> &'static str {
        match self {
            Need::Needed => "needed",
            Need::Needless => "needless",
            Need::Outside => "outside",
            Need::Host => "host",
            Need::Unknown => "unknown",
        }
    }
}

impl Dependencies {
    /// Finds the dependencies of a capture. `progress` is called with the number of commands that are done.
    pub fn from_capture(
        capture: &Capture,
        limits: Limits,
        progress: &mut dyn FnMut(usize),
    ) -> Dependencies {
        let window = Window::new(capture, limits, progress);
        let Window {
            nodes,
            barriers,
            batches,
        } = window;
        let graph = Graph::new(nodes);
        let mut unknown = unknown(&graph);
        let mut finder = Finder {
            batches: Batches::new(&batches),
            covers: Barriers::new(&barriers),
            graph: &graph,
        };
        let orders: Vec<Order> = graph.edges.iter().map(|e| finder.order(e)).collect();
        let mut hazards = Vec::new();
        let mut possible_hazards = Vec::new();
        for (number, edge) in graph.edges.iter().enumerate() {
            if orders[number] != Order::Nothing {
                continue;
            }
            match finder.is_hazard(edge) {
                true => hazards.push(number),
                false if edge.parts.iter().any(|p| !p.atomic) => possible_hazards.push(number),
                false => {}
            }
        }
        if unknown.is_none() && finder.covers.is_spent() {
            unknown = Some(MANY_BARRIERS.to_owned());
        }
        let barriers = finder.needs(&barriers, &orders, unknown.as_deref());
        Dependencies {
            graph,
            orders,
            hazards,
            possible_hazards,
            barriers,
            unknown,
            bandwidth: Err(UnknownBandwidth::NotMeasured),
        }
    }

    /// Finds the dependencies of nodes whose barriers are not known for the given reason.
    pub fn without_barriers(nodes: Vec<Node>, reason: &str) -> Dependencies {
        let graph = Graph::new(nodes);
        Dependencies {
            orders: vec![Order::Unknown; graph.edges.len()],
            graph,
            hazards: Vec::new(),
            possible_hazards: Vec::new(),
            barriers: Vec::new(),
            unknown: Some(reason.to_owned()),
            bandwidth: Err(UnknownBandwidth::NotMeasured),
        }
    }
}

/// Returns why barriers cannot be judged; `None` if they can.
fn unknown(graph: &Graph) -> Option<String> {
    if graph.cut_at.is_some() {
        return Some("there are too many dependencies to look at".to_owned());
    }
    graph.nodes.iter().find_map(|node| {
        let reason = node.beyond.as_ref()?;
        Some(format!(
            "{} reaches memory that is not known: {reason}",
            node.name
        ))
    })
}

/// The reason that is given when the search through barriers exceeds its limit.
const MANY_BARRIERS: &str = "there are too many barriers to look at";
/// The reasons for which it is not known whether a barrier is needed: first for an edge within a submission that no
/// barrier covers.
const IN_PART: &str = "a dependency inside of a submission may rely on it, though by Vulkan's rules it does not order it";
/// For an edge between submissions.
const MAYBE_WAITED: &str = "a dependency between submissions may rely on it: what orders that is not known, for the host may have waited or not";
/// For an edge that a semaphore orders in part.
const BEYOND_SEMAPHORES: &str = "a dependency between batches may rely on it: the stages of semaphores are not all that it needs";

/// The state of judging barriers: the graph, its barriers, and the order of its batches.
struct Finder<'a> {
    graph: &'a Graph,
    /// The barriers, which tell what they cover.
    covers: Barriers<'a>,
    /// The batches, which tell what semaphores order.
    batches: Batches,
}

/// Selects every part of an edge.
fn every(_: &EdgePart) -> bool {
    true
}

impl Finder<'_> {
    fn ends(&self, edge: &Edge) -> (&Node, &Node) {
        (&self.graph.nodes[edge.from], &self.graph.nodes[edge.to])
    }

    /// Returns what orders the ends of an edge: a semaphore, or else barriers of the same queue. What orders commands
    /// of two submissions is unknown where neither does.
    fn order(&mut self, edge: &Edge) -> Order {
        let (from, to) = self.ends(edge);
        if self.batches.order(from, to) {
            return Order::Semaphore;
        }
        let same_submission = from.submission == to.submission;
        if from.queue == to.queue {
            match self.covers.cover(from.queue, edge, &every, &|_| true) {
                Some(true) => return Order::Barrier,
                Some(false) => {}
                None => return Order::Unknown,
            }
        }
        match same_submission {
            true => Order::Nothing,
            false => Order::Unknown,
        }
    }

    /// Returns whether an edge is a hazard: its ends are not ordered, and it has exact bytes that are not only
    /// reached by atomic operations.
    fn is_hazard(&mut self, edge: &Edge) -> bool {
        let certain = |part: &EdgePart| part.exact && !part.atomic;
        let queue = self.ends(edge).0.queue;
        self.covers.cover(queue, edge, &certain, &|_| true) == Some(false)
    }

    /// Finds a set of barriers that covers every edge, or piece of an edge, that all barriers together cover. The
    /// shortest edges are covered first.
    fn needs(
        &mut self,
        barriers: &[Barrier],
        orders: &[Order],
        unknown: Option<&str>,
    ) -> Vec<BarrierUse> {
        let mut needed = vec![false; barriers.len()];
        let mut reasons: Vec<Option<&str>> = vec![None; barriers.len()];
        let unknown = match unknown {
            Some(reason) => Some(reason),
            None if self.judge(orders, &mut needed, &mut reasons).is_none() => Some(MANY_BARRIERS),
            None => None,
        };
        let nodes = &self.graph.nodes;
        let uses = barriers.iter().enumerate().map(|(number, barrier)| {
            let inside = |node: Option<&Node>| {
                node.is_some_and(|node| {
                    node.submission == barrier.submission && node.queue == barrier.queue
                })
            };
            let before = barrier.position.checked_sub(1);
            let has_both = inside(before.and_then(|before| nodes.get(before)))
                && inside(nodes.get(barrier.position));
            let (need, reason) = match () {
                () if unknown.is_some() => (Need::Unknown, unknown),
                () if needed[number] => (Need::Needed, None),
                () if barrier.parts.iter().any(|(scopes, _)| scopes.is_for_host()) => {
                    (Need::Host, None)
                }
                () if !has_both => (Need::Outside, None),
                () if reasons[number].is_some() => (Need::Unknown, reasons[number]),
                () => (Need::Needless, None),
            };
            BarrierUse {
                position: barrier.position,
                submission: barrier.submission,
                commands: barrier.commands,
                index: barrier.index,
                executed: barrier.executed,
                need,
                reason: reason.map(str::to_owned),
            }
        });
        uses.collect()
    }

    /// Marks needed barriers, and notes why the need of others is not known; returns `None` if the search takes too
    /// long.
    fn judge(
        &mut self,
        orders: &[Order],
        needed: &mut [bool],
        reasons: &mut [Option<&'static str>],
    ) -> Option<()> {
        self.covers.renew();
        let graph = self.graph;
        // Bytes of edges that are not ordered or may not exist, from which other edges do not follow.
        let mut loose: HashMap<u64, Vec<Range<u64>>> = HashMap::new();
        let mut covered: Vec<Cow<'_, Edge>> = Vec::new();
        for (edge, order) in graph.edges.iter().zip(orders) {
            match order {
                Order::Barrier => covered.push(Cow::Borrowed(edge)),
                Order::Semaphore if self.batches.suffice(edge) => {}
                Order::Semaphore => self.around(edge, BEYOND_SEMAPHORES, reasons),
                Order::Nothing | Order::Unknown => {
                    let (from, to) = self.ends(edge);
                    let queue = from.queue;
                    let reason = match from.submission == to.submission {
                        true => IN_PART,
                        false => MAYBE_WAITED,
                    };
                    if queue != to.queue {
                        self.around(edge, reason, reasons);
                        continue;
                    }
                    // The pieces that are covered must stay so.
                    for (piece, is_covered) in self.covers.split(queue, edge)? {
                        match is_covered {
                            true => covered.push(Cow::Owned(piece)),
                            false => {
                                for part in &piece.parts {
                                    let ends = (piece.from, piece.to);
                                    for number in self.covers.leading(queue, ends, part)? {
                                        reasons[number] = Some(reason);
                                    }
                                    if *order == Order::Nothing || !part.exact {
                                        let ranges = loose.entry(part.memory).or_default();
                                        ranges.extend(part.ranges.iter().cloned());
                                    }
                                }
                            }
                        }
                    }
                }
            }
        }
        self.beyond(loose, reasons)?;
        covered.sort_by_key(|edge| edge.to - edge.from);
        for edge in &covered {
            self.keep(edge, needed)?;
        }
        Some(())
    }

    /// Handles bytes on which a later access may depend beyond its edges: on the write before the last write, if the
    /// last one may not exist. For barriers that could order such a dependency, it is not known whether they are
    /// needless. Returns `None` if the search takes too long.
    fn beyond(
        &mut self,
        loose: HashMap<u64, Vec<Range<u64>>>,
        reasons: &mut [Option<&'static str>],
    ) -> Option<()> {
        if loose.is_empty() {
            return Some(());
        }
        let loose: HashMap<u64, ByteSet> = (loose.into_iter())
            .map(|(memory, ranges)| (memory, ByteSet::from_unsorted(ranges)))
            .collect();
        let nodes = &self.graph.nodes;
        for (number, node) in nodes.iter().enumerate() {
            for access in &node.accesses {
                let Some(set) = loose.get(&access.memory) else {
                    continue;
                };
                let reached = access.set.shifted(access.offset);
                let part = EdgePart {
                    memory: access.memory,
                    ranges: reached.flat_map(|range| set.within(range)).collect(),
                    from: access.scope,
                    to: access.scope,
                    exact: false,
                    atomic: false,
                };
                if part.ranges.is_empty() {
                    continue;
                }
                let ends = (number, nodes.len());
                for barrier in self.covers.leading(node.queue, ends, &part)? {
                    reasons[barrier] = reasons[barrier].or(Some(IN_PART));
                }
            }
        }
        Some(())
    }

    /// Notes that it is not known whether the barriers between the ends of an edge, on either queue, are needed.
    fn around(&self, edge: &Edge, reason: &'static str, reasons: &mut [Option<&'static str>]) {
        let (from, to) = self.ends(edge);
        for queue in [from.queue, to.queue] {
            for number in self.covers.between(queue, edge.from, edge.to) {
                reasons[*number] = Some(reason);
            }
        }
    }

    /// Marks barriers as needed until an edge is covered; returns `None` if the search takes too long.
    fn keep(&mut self, edge: &Edge, needed: &mut [bool]) -> Option<()> {
        let queue = self.ends(edge).0.queue;
        if self.covers.cover(queue, edge, &every, &|n| needed[n])? {
            return Some(());
        }
        let between = self.covers.between(queue, edge.from, edge.to).to_vec();
        for one in between.iter().rev().filter(|one| !needed[**one]) {
            if self
                .covers
                .cover(queue, edge, &every, &|n| needed[n] || n == *one)?
            {
                needed[*one] = true;
                return Some(());
            }
        }
        for one in between {
            needed[one] = true;
        }
        Some(())
    }
}
