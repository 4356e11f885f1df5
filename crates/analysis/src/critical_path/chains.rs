//! Cuts the critical path of a device at its collectives, so that the paths of ranks whose traces are read one after the other can be
//! joined: which chain of work and idle time led from one collective to the arrival at another.
//!
//! A timeline goes in with the device and what counts as a collective; out comes a [`Chain`] for each, and one for the end of the
//! window. Chains that meet share their beginning: every [`CHECKPOINT`]th piece of work keeps its sum, and a later chain that comes
//! upon it goes no further.

use super::parts::PathParts;
use super::peers::WorkIndex;
use super::walk::{Graph, Walk};
use crate::gaps::{Cause, GapFinder, Side};
use gapscope_timeline::intervals::Interval;
use gapscope_timeline::{Timeline, Work};
use std::collections::HashMap;

/// The number of pieces of work of a chain from one kept sum to the next.
const CHECKPOINT: u64 = 32;

/// The parts of the path that led to a collective, or to the end of the window.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Chain {
    /// The time since the collective before on the path, or since the start of the window.
    pub parts: PathParts,
    /// The number of that collective among those of the device in order of start; `None` where the path reaches the start of the
    /// window without one.
    pub from: Option<usize>,
    /// When the path leaves that collective.
    pub from_ns: i64,
    /// The arrival at the collective that the chain leads to, or the end of the last work.
    pub until_ns: i64,
}

/// The chains of a device.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Chains {
    /// The chain to each collective, in order of their starts; empty where the device has none.
    pub to_collectives: Vec<Chain>,
    /// The chain to the end of the last work in the window; `None` without work.
    pub to_end: Option<Chain>,
}

impl Chains {
    /// Returns the chains of a device in a window, whose collectives `is_collective` tells.
    pub fn new(
        timeline: &Timeline,
        gpu: usize,
        window: Interval,
        is_collective: impl Fn(&Work) -> bool,
    ) -> Chains {
        let finder = GapFinder::new(timeline);
        let graph = Graph::new(timeline, finder.explainer.order(), false);
        let mut collectives: Vec<WorkIndex> = Vec::new();
        let mut last: Option<(i64, WorkIndex)> = None;
        for (work, at) in timeline.gpus[gpu].works.iter().zip(0u32..) {
            let place = WorkIndex {
                gpu: gpu as u32,
                at,
            };
            if is_collective(&work) {
                collectives.push(place);
            }
            let end_ns = work.interval.end_ns;
            if work.interval.start_ns < window.end_ns && last.is_none_or(|(ns, _)| ns < end_ns) {
                last = Some((end_ns, place));
            }
        }
        if collectives.is_empty() {
            return Chains::default();
        }
        let mut idle: Vec<(Interval, Cause)> = Vec::new();
        finder.each(gpu, |_, parts| {
            idle.extend(parts.iter().map(|part| (part.interval(), part.cause)));
        });
        let mut search = Search {
            timeline,
            graph: &graph,
            walk: graph.within(window),
            window,
            collectives: &collectives,
            idle,
            checkpoints: HashMap::new(),
            chains: Vec::with_capacity(collectives.len()),
        };
        for place in &collectives {
            let chain = search.chain(*place, false);
            search.chains.push(chain);
        }
        let to_end = last.map(|(_, place)| search.chain(place, true));
        Chains {
            to_collectives: search.chains,
            to_end,
        }
    }
}

/// The sum of a chain up to the start of a piece of work, counted from where the chain leads to.
#[derive(Debug, Clone, Copy)]
struct Checkpoint {
    /// The number of the chain.
    chain: usize,
    parts: PathParts,
}

struct Search<'g, 'a> {
    timeline: &'g Timeline<'a>,
    graph: &'g Graph<'a>,
    walk: Walk<'g, 'a>,
    window: Interval,
    collectives: &'g [WorkIndex],
    /// The idle time of the device by cause, in order of time.
    idle: Vec<(Interval, Cause)>,
    checkpoints: HashMap<WorkIndex, Checkpoint>,
    /// The chains so far.
    chains: Vec<Chain>,
}

impl Search<'_, '_> {
    /// Returns the chain that leads to the start of a piece of work, or to its end.
    fn chain(&mut self, last: WorkIndex, to_its_end: bool) -> Chain {
        let mut work = self.graph.work(last);
        let mut place = last;
        let mut chain = Chain {
            until_ns: work.interval.start_ns,
            from_ns: work.interval.start_ns,
            ..Chain::default()
        };
        if to_its_end {
            chain.until_ns = work.interval.end_ns;
            if let Some(number) = self.number(place) {
                chain.from = Some(number);
                chain.from_ns = work.interval.end_ns;
                return chain;
            }
            let ran = work.interval.intersection(self.window);
            chain
                .parts
                .add_work(self.timeline.content(&work), ran.length_ns());
        }
        let mut steps: u64 = 0;
        while work.interval.start_ns > self.window.start_ns {
            let before = self.walk.before(place, &work);
            let Some((earlier, ended)) = before.filter(|(earlier, _)| earlier.gpu == last.gpu)
            else {
                break;
            };
            let until_ns = ended.interval.end_ns.min(work.interval.start_ns);
            self.add_idle(
                &work,
                Interval::new(until_ns, work.interval.start_ns),
                &mut chain.parts,
            );
            if let Some(number) = self.number(earlier) {
                chain.from = Some(number);
                chain.from_ns = until_ns;
                return chain;
            }
            let ran = Interval::new(ended.interval.start_ns, until_ns).intersection(self.window);
            let mut with_work = chain.parts;
            with_work.add_work(self.timeline.content(&ended), ran.length_ns());
            // The end of this work may have been cut by what it started; the sum up to its start does not depend on that.
            if let Some(met) = self.checkpoints.get(&earlier) {
                let shared = self.chains[met.chain];
                return Chain {
                    parts: with_work.plus(shared.parts.without(met.parts)),
                    until_ns: chain.until_ns,
                    ..shared
                };
            }
            chain.parts = with_work;
            steps += 1;
            if steps.is_multiple_of(CHECKPOINT) {
                let checkpoint = Checkpoint {
                    chain: self.chains.len(),
                    parts: chain.parts,
                };
                self.checkpoints.insert(earlier, checkpoint);
            }
            (place, work) = (earlier, ended);
        }
        chain.from_ns = work.interval.start_ns.max(self.window.start_ns);
        chain
    }

    /// Returns the number of a piece of work among the collectives.
    fn number(&self, place: WorkIndex) -> Option<usize> {
        self.collectives.binary_search(&place).ok()
    }

    /// Adds the time before a piece of work in which none of the path ran: what the device idled for, and else what the host did.
    fn add_idle(&self, work: &Work, gap: Interval, parts: &mut PathParts) {
        let gap = gap.intersection(self.window);
        if gap.is_empty() {
            return;
        }
        let mut rest_ns = gap.length_ns();
        let first = self
            .idle
            .partition_point(|(idle, _)| idle.end_ns <= gap.start_ns);
        for (idle, cause) in self.idle[first..]
            .iter()
            .take_while(|(idle, _)| idle.start_ns < gap.end_ns)
        {
            let ns = idle.intersection(gap).length_ns();
            rest_ns -= ns;
            // Time with this cause would not exist without the recording.
            if *cause != Cause::Recording {
                parts.add_idle(cause.side(), ns);
            }
        }
        // The device ran other work, and has no gap here.
        let row = self.timeline.submission_of(work) as usize;
        let call_ns = self.timeline.trace.tables.submissions.start_ns.get(row);
        let late_ns = call_ns.map_or(0, |call_ns| call_ns.saturating_sub(gap.start_ns));
        let late_ns = late_ns.clamp(0, rest_ns);
        parts.add_idle(Side::Host, late_ns);
        parts.add_idle(Side::Unknown, rest_ns - late_ns);
    }
}
