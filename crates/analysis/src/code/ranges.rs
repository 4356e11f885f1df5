//! Tells the code behind idle time from the ranges that host threads were in: functions of Python, operators and
//! annotations, as PyTorch's profiler records them, and labels that the program set. Traces that have samples of
//! stacks are told by those instead.
//!
//! Ranges have exact times, so that each moment of a thread belongs to the range that began last and goes on, and no
//! share of time is an estimate. A *node* is a chain of nested ranges, which stands for a stack; ranges that nest
//! alike have one node. A node with little of the time is told under its caller, because a program has thousands of
//! stacks.

use super::idle_code::{CauseCode, Code, CodeSource, CodeTime};
use super::{SummedGaps, each_idle_part, sort, until};
use crate::gaps::{Cause, Gap, GapFinder};
use crate::host_ranges::ThreadRanges;
use crate::range_name::frame_of_range;
use crate::stacks::{CodeFrame, MAX_FRAMES, is_idle_event_loop};
use gapscope_timeline::Timeline;
use gapscope_timeline::host::HostThread;
use gapscope_timeline::intervals::Interval;
use gapscope_timeline::thresholds::RANGE_TOLD;
use gapscope_trace::ids::LabelId;
use gapscope_trace::lookup::{IdIndex, NONE};
use rustc_hash::{FxHashMap, FxHashSet};
use std::cmp::Reverse;

/// The ranges of the threads that submit work.
#[derive(Debug)]
pub struct CodeRanges<'a> {
    pub(super) timeline: &'a Timeline<'a>,
    threads: FxHashMap<HostThread, NodesOfRanges<'a>>,
    pub(super) nodes: Nodes,
}

/// The ranges of a thread, with the node of each.
#[derive(Debug)]
struct NodesOfRanges<'a> {
    ranges: &'a ThreadRanges<'a>,
    nodes: Vec<u32>,
}

/// The time of a node for one cause.
#[derive(Debug, Clone, Copy, Default)]
struct NodeSum {
    /// The time in the node itself, and in what it calls as far as that is told under the node.
    own_ns: i64,
    /// The time in the node and in all that it calls.
    all_ns: i64,
}

/// The time of each node, by the number of the cause and the node.
type NodeTimes = FxHashMap<(usize, u32), i64>;

impl<'a> CodeRanges<'a> {
    /// Lays out the ranges of the threads that submit work, or returns `None` where these threads have none.
    pub fn new(finder: &'a GapFinder) -> Option<CodeRanges<'a>> {
        let timeline = finder.timeline();
        let tables = &timeline.trace.tables;
        let submissions = &tables.submissions;
        let submitters: FxHashSet<HostThread> = (submissions.process.iter().enumerate())
            .filter_map(|(row, process)| HostThread::from_row(*process, submissions.thread.at(row)))
            .collect();
        let threads = finder.explainer.ranges().iter();
        let threads = threads.filter(|(thread, _)| submitters.contains(thread));
        let mut nodes = Nodes::default();
        let labels = IdIndex::new(&tables.labels.id);
        let text = |label| {
            labels
                .get(label)
                .map_or("", |row| &*tables.labels.text[row])
        };
        let threads: FxHashMap<HostThread, NodesOfRanges> = threads
            .map(|(thread, ranges)| {
                let nodes = nodes_of(ranges, text, &mut nodes);
                (*thread, NodesOfRanges { ranges, nodes })
            })
            .collect();
        (!threads.is_empty()).then_some(CodeRanges {
            timeline,
            threads,
            nodes,
        })
    }

    /// Sums up the code of gaps.
    pub fn code(&self, gaps: &SummedGaps) -> Code {
        let mut totals = [0_i64; Cause::ALL.len()];
        let mut times = NodeTimes::default();
        each_idle_part(gaps.finder, gaps.window, gaps.threshold_ns, |part| {
            let total = &mut totals[part.cause as usize];
            *total = total.saturating_add(part.interval.length_ns());
            self.add(part.thread, part.cause, part.interval, &mut times);
        });
        let mut causes: Vec<CauseCode> = (Cause::ALL.into_iter().zip(totals))
            .filter(|(_, total_ns)| *total_ns > 0)
            .map(|(cause, total_ns)| {
                let code = self.told(cause, &times, total_ns);
                let in_ranges_ns: i64 = code.iter().map(|time| time.total_ns).sum();
                CauseCode {
                    cause,
                    source: CodeSource::Ranges,
                    total_ns,
                    without_samples_ns: total_ns - in_ranges_ns,
                    samples: 0,
                    code,
                    exact: Vec::new(),
                    sleeps: Vec::new(),
                }
            })
            .collect();
        causes.sort_by_key(|cause| Reverse(cause.total_ns));
        Code {
            causes,
            longest: gaps.longest.iter().map(|gap| self.in_gap(gap)).collect(),
            ..Code::default()
        }
    }

    /// Returns the code that ran in a gap, the greatest time first.
    pub(super) fn in_gap(&self, gap: &Gap) -> Vec<CodeTime> {
        let Some((thread, until_ns)) = super::submitter_of_gap(self.timeline, gap) else {
            return Vec::new();
        };
        let mut times = NodeTimes::default();
        let parts = gap.parts.iter();
        for part in parts.filter(|part| part.cause != Cause::Recording) {
            let interval = until(part.interval(), until_ns);
            self.add(thread, part.cause, interval, &mut times);
        }
        let causes = Cause::ALL.into_iter();
        let code = causes.flat_map(|cause| self.told(cause, &times, gap.duration_ns));
        let mut code: Vec<CodeTime> = code.collect();
        sort(&mut code);
        code
    }

    /// Adds the time that a thread spent in each node in an interval.
    fn add(&self, thread: HostThread, cause: Cause, interval: Interval, times: &mut NodeTimes) {
        self.each_in(thread, interval, |node, interval| {
            *times.entry((cause as usize, node)).or_default() += interval.length_ns();
        });
    }

    /// Visits the nodes that a thread was in during an interval, each with the time in it and in no node inside of it.
    pub(super) fn each_in(
        &self,
        thread: HostThread,
        interval: Interval,
        mut visit: impl FnMut(u32, Interval),
    ) {
        let Some(NodesOfRanges { ranges, nodes }) = self.threads.get(&thread) else {
            return;
        };
        let mut next = ranges.begun(interval.start_ns);
        let mut innermost = match next {
            0 => NONE,
            next => next - 1,
        };
        let is_range = |place: u32| (place as usize) < ranges.len();
        let mut now_ns = interval.start_ns;
        while now_ns < interval.end_ns {
            let next_ns = match is_range(next) {
                true => ranges.interval(next).start_ns,
                false => i64::MAX,
            };
            let end_ns = next_ns.min(interval.end_ns);
            while now_ns < end_ns && is_range(innermost) {
                let range_end_ns = ranges.interval(innermost).end_ns;
                let left_ns = range_end_ns.min(end_ns);
                if left_ns > now_ns {
                    visit(nodes[innermost as usize], Interval::new(now_ns, left_ns));
                    now_ns = left_ns;
                }
                if range_end_ns <= now_ns {
                    innermost = ranges.outer(innermost);
                }
            }
            now_ns = end_ns;
            if now_ns < interval.end_ns {
                innermost = next;
                next += 1;
            }
        }
    }

    /// Returns the code of a cause: each node with at least [`RANGE_TOLD`] of `whole_ns` in it and in what it calls,
    /// without the time of those nodes that are told themselves. The time of a node with less is its caller's.
    fn told(&self, cause: Cause, times: &NodeTimes, whole_ns: i64) -> Vec<CodeTime> {
        let of_cause = times.iter().filter(|((of, _), _)| *of == cause as usize);
        let mut sums: FxHashMap<u32, NodeSum> = of_cause
            .map(|((_, node), ns)| {
                (
                    *node,
                    NodeSum {
                        own_ns: *ns,
                        all_ns: *ns,
                    },
                )
            })
            .collect();
        let mut nodes: Vec<u32> = sums.keys().copied().collect();
        let mut at = 0;
        while let Some(node) = nodes.get(at) {
            let caller = self.nodes.all[*node as usize].caller;
            if caller != NONE && !sums.contains_key(&caller) {
                sums.insert(caller, NodeSum::default());
                nodes.push(caller);
            }
            at += 1;
        }
        // A caller has a lower number than what it calls.
        nodes.sort_unstable_by_key(|node| Reverse(*node));
        let least_ns = (RANGE_TOLD * whole_ns as f64) as i64;
        let mut code = Vec::new();
        for node in nodes {
            let NodeSum { own_ns, all_ns } = sums.get(&node).copied().unwrap_or_default();
            let caller = self.nodes.all[node as usize].caller;
            if let Some(caller) = sums.get_mut(&caller) {
                caller.all_ns += all_ns;
                if all_ns < least_ns {
                    caller.own_ns += own_ns;
                    continue;
                }
            }
            if own_ns > 0 {
                let frames = self.nodes.frames(node);
                code.push(CodeTime {
                    cause,
                    total_ns: own_ns,
                    samples: 0,
                    blocked: 0,
                    is_idle_event_loop: is_idle_event_loop(&frames),
                    frames,
                });
            }
        }
        sort(&mut code);
        code
    }
}

/// The nodes of all threads.
#[derive(Debug, Default)]
pub(super) struct Nodes {
    /// The nodes, each caller before what it calls.
    pub(super) all: Vec<Node>,
    numbers: FxHashMap<Node, u32>,
    /// The distinct frames, and the number of the frame of each label.
    pub(super) frames: Vec<CodeFrame>,
    frame_numbers: FxHashMap<CodeFrame, u32>,
    of_label: FxHashMap<LabelId, u32>,
}

/// A chain of nested ranges.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Node {
    /// The node around it, or [`NONE`].
    pub(super) caller: u32,
    /// The number of the innermost range's frame.
    pub(super) frame: u32,
}

impl Nodes {
    /// Returns the number of the node of a range with a label, inside of another node or [`NONE`].
    fn number<'t>(
        &mut self,
        caller: u32,
        label: LabelId,
        text: impl Fn(LabelId) -> &'t str,
    ) -> u32 {
        let (frames, numbers) = (&mut self.frames, &mut self.frame_numbers);
        let frame = *self.of_label.entry(label).or_insert_with(|| {
            let frame = frame_of_range(text(label));
            *numbers.entry(frame).or_insert_with_key(|frame| {
                frames.push(frame.clone());
                frames.len() as u32 - 1
            })
        });
        let node = Node { caller, frame };
        let all = &mut self.all;
        *self.numbers.entry(node).or_insert_with(|| {
            all.push(node);
            all.len() as u32 - 1
        })
    }

    /// Returns a node and the nodes around it.
    pub(super) fn outwards(&self, node: u32) -> impl Iterator<Item = &Node> {
        let node_of = |number: u32| self.all.get(number as usize);
        std::iter::successors(node_of(node), move |node| node_of(node.caller)).take(MAX_FRAMES)
    }

    /// Returns the frames of a node, the innermost first.
    pub(super) fn frames(&self, node: u32) -> Vec<CodeFrame> {
        self.outwards(node)
            .map(|node| self.frames[node.frame as usize].clone())
            .collect()
    }
}

/// Returns the node of each range of a thread. Of ranges that overlap without one containing the other, the later one is the inner,
/// and the innermost range that contains a range is its caller.
fn nodes_of<'t>(
    ranges: &ThreadRanges,
    text: impl Fn(LabelId) -> &'t str,
    nodes: &mut Nodes,
) -> Vec<u32> {
    let mut told: Vec<u32> = Vec::with_capacity(ranges.len());
    for place in 0..ranges.len() as u32 {
        let end_ns = ranges.interval(place).end_ns;
        let contains = |around: &u32| ranges.interval(*around).end_ns >= end_ns;
        let caller = ranges.outwards(ranges.outer(place)).find(contains);
        let caller = caller.map_or(NONE, |caller| told[caller as usize]);
        told.push(nodes.number(caller, ranges.label(place), &text));
    }
    told
}
