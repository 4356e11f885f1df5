//! What orders the ends of an edge: barriers on its queue, or semaphores between its batches.

use std::collections::HashMap;
use std::ops::Range;

use schemars::JsonSchema;
use serde::Serialize;

use crate::graph::{Edge, EdgeKind, Node, Part};
use crate::scope::{Scope, Scopes, Stages};
use crate::window::{Barrier, OfBatch};

/// Barriers that are looked at for all edges together.
const LOOKS_AT_MOST: u64 = 100_000_000;

/// What orders the ends of an edge.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Order {
    /// Barriers between them.
    Barrier,
    /// Semaphores between their batches.
    Semaphore,
    /// Nothing, inside of one submission.
    Nothing,
    /// Not known: the host may have waited between their submissions, or there was too much to look at.
    Unknown,
}

impl Order {
    /// In a word.
    pub fn as_str(self) -> &'static str {
        match self {
            Order::Barrier => "barrier",
            Order::Semaphore => "semaphore",
            Order::Nothing => "nothing",
            Order::Unknown => "unknown",
        }
    }
}

/// All barriers, by queue.
pub(crate) struct Barriers<'a> {
    all: &'a [Barrier],
    by_queue: HashMap<u32, Vec<usize>>,
    /// Those that are for a part of an allocation, by queue and allocation.
    in_part: HashMap<(u32, u64), Vec<usize>>,
    /// All scopes of a queue's barriers together.
    scopes: HashMap<u32, Scopes>,
    looks_left: u64,
}

impl<'a> Barriers<'a> {
    pub fn new(all: &'a [Barrier]) -> Barriers<'a> {
        let mut by_queue: HashMap<u32, Vec<usize>> = HashMap::new();
        let mut scopes: HashMap<u32, Scopes> = HashMap::new();
        let mut in_part: HashMap<(u32, u64), Vec<usize>> = HashMap::new();
        for (number, barrier) in all.iter().enumerate() {
            by_queue.entry(barrier.queue).or_default().push(number);
            let of = scopes.entry(barrier.queue).or_default();
            *of = (barrier.parts.iter()).fold(*of, |all, (scopes, _)| all.and(*scopes));
            for (memory, _) in barrier.parts.iter().filter_map(|(_, range)| range.as_ref()) {
                let of = in_part.entry((barrier.queue, *memory)).or_default();
                if of.last() != Some(&number) {
                    of.push(number);
                }
            }
        }
        Barriers {
            all,
            by_queue,
            in_part,
            scopes,
            looks_left: LOOKS_AT_MOST,
        }
    }

    /// The barriers between two nodes of a queue.
    pub fn between(&self, queue: u32, from: usize, to: usize) -> &[usize] {
        self.within(self.by_queue.get(&queue), from, to)
    }

    /// Those of some that are between two nodes.
    fn within<'s>(&self, of: Option<&'s Vec<usize>>, from: usize, to: usize) -> &'s [usize] {
        let of = of.map_or(&[][..], Vec::as_slice);
        let begin = of.partition_point(|number| self.all[*number].position <= from);
        let end = of.partition_point(|number| self.all[*number].position <= to);
        &of[begin..end.max(begin)]
    }

    /// Whether barriers of a queue, those that `takes` says, order the ends of an edge; none: too much was looked at.
    pub fn cover(
        &mut self,
        queue: u32,
        edge: &Edge,
        parts: &dyn Fn(&Part) -> bool,
        takes: &dyn Fn(usize) -> bool,
    ) -> Option<bool> {
        let between: Vec<usize> = (self.between(queue, edge.from, edge.to).iter())
            .copied()
            .filter(|number| takes(*number))
            .collect();
        for part in edge.parts.iter().filter(|part| parts(part)) {
            let pieces = match edge.kind {
                // Only that the other has run counts, for all memory at once.
                EdgeKind::WriteAfterRead => vec![Range::default()],
                _ => self.pieces(part, &between),
            };
            for piece in pieces {
                let mut way = Way::default();
                let mut is_covered = false;
                for number in &between {
                    self.look()?;
                    way.pass(&self.all[*number], part, &piece);
                    is_covered = match edge.kind {
                        EdgeKind::WriteAfterRead => way.stages.contain(part.to),
                        _ => way.visible,
                    };
                    if is_covered {
                        break;
                    }
                }
                if !is_covered {
                    return Some(false);
                }
            }
        }
        Some(true)
    }

    /// Each piece of an edge as an edge of its own, and whether the barriers between its ends order it; none: too much was looked at.
    pub fn split(&mut self, queue: u32, edge: &Edge) -> Option<Vec<(Edge, bool)>> {
        let between = self.between(queue, edge.from, edge.to).to_vec();
        let mut found = Vec::new();
        for part in &edge.parts {
            let pieces = match edge.kind {
                EdgeKind::WriteAfterRead => vec![part.ranges.clone()],
                _ => (self.pieces(part, &between).into_iter())
                    .map(|piece| vec![piece])
                    .collect(),
            };
            for ranges in pieces {
                self.look()?;
                let one = Edge {
                    buffers: Vec::new(),
                    parts: vec![Part { ranges, ..*part }],
                    ..*edge
                };
                let is_covered = self.cover(queue, &one, &|_| true, &|_| true)?;
                found.push((one, is_covered));
            }
        }
        Some(found)
    }

    /// Barriers of a queue that bring the end of a node farther, as far as others have not: without those that are not among them,
    /// what comes after the node is ordered as before. `part` says how the node reaches what; its other end counts no matter which it
    /// is, up to the node `to`. None: too much was looked at.
    pub fn leading(
        &mut self,
        queue: u32,
        (from, to): (usize, usize),
        part: &Part,
    ) -> Option<Vec<usize>> {
        let all = self.all;
        let in_part = self.in_part.get(&(queue, part.memory));
        let pieces = self.pieces(part, self.within(in_part, from, to));
        let most = self.scopes.get(&queue).copied().unwrap_or_default();
        let is_available = most.makes_available(part.from);
        let mut leading = Vec::new();
        let mut looks = 0;
        for (piece, to_scope) in pieces
            .iter()
            .flat_map(|piece| Scope::ALL.map(|to| (piece, to)))
        {
            // No barrier of the queue brings it farther than this.
            let end = Way {
                stages: most.before(),
                available: is_available,
                visible: is_available && most.makes_visible(to_scope),
            };
            let part = Part {
                to: to_scope,
                ranges: Vec::new(),
                ..*part
            };
            let mut way = Way::default();
            for number in self.between(queue, from, to) {
                looks += 1;
                let before = way;
                way.pass(&all[*number], &part, piece);
                if way != before {
                    leading.push(*number);
                }
                if way == end || looks >= self.looks_left {
                    break;
                }
            }
        }
        self.looks_left = self.looks_left.saturating_sub(looks);
        if self.is_spent() {
            return None;
        }
        Some(leading)
    }

    /// Counts; none: that was too much, from here on.
    fn look(&mut self) -> Option<()> {
        self.looks_left = self.looks_left.saturating_sub(1);
        (self.looks_left > 0).then_some(())
    }

    /// As much may be looked at again, unless it was too much.
    pub fn renew(&mut self) {
        if !self.is_spent() {
            self.looks_left = LOOKS_AT_MOST;
        }
    }

    /// More was to be looked at than is.
    pub fn is_spent(&self) -> bool {
        self.looks_left == 0
    }

    /// The ranges of a part, cut where a barrier's range begins or ends in them.
    fn pieces(&self, part: &Part, between: &[usize]) -> Vec<Range<u64>> {
        let mut cuts = Vec::new();
        for number in between {
            for (_, range) in &self.all[*number].parts {
                if let Some((memory, range)) = range
                    && *memory == part.memory
                {
                    cuts.extend([range.start, range.end]);
                }
            }
        }
        cuts.sort_unstable();
        cuts.dedup();
        let mut pieces = Vec::new();
        for range in &part.ranges {
            let mut at = range.start;
            let first = cuts.partition_point(|cut| *cut <= at);
            for cut in cuts[first..].iter().take_while(|cut| **cut < range.end) {
                pieces.push(at..*cut);
                at = *cut;
            }
            pieces.push(at..range.end);
        }
        pieces
    }
}

/// How far barriers have brought the end of the first command.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Way {
    /// Stages that wait for it.
    stages: Stages,
    available: bool,
    visible: bool,
}

impl Way {
    fn pass(&mut self, barrier: &Barrier, part: &Part, piece: &Range<u64>) {
        let before = *self;
        for (scopes, range) in &barrier.parts {
            if !scopes.is_after(part.from) && !scopes.follows(before.stages) {
                continue;
            }
            self.stages = self.stages.and(scopes.before());
            let is_for = range.as_ref().is_none_or(|(memory, range)| {
                *memory == part.memory && range.start <= piece.start && piece.end <= range.end
            });
            if !is_for {
                continue;
            }
            let available = before.available || scopes.makes_available(part.from);
            self.available |= available;
            self.visible |= available && scopes.makes_visible(part.to);
        }
    }
}

/// Which batches are ordered by semaphores: of each, the last one of each queue that comes before it.
pub(crate) struct Batches {
    before: Vec<HashMap<u32, usize>>,
    /// Stages that every wait holds back.
    waiting: Stages,
    /// Stages that every signal comes after.
    signalled: Stages,
}

impl Batches {
    pub fn new(batches: &[OfBatch]) -> Batches {
        let mut before: Vec<HashMap<u32, usize>> = Vec::new();
        let mut last: HashMap<u32, usize> = HashMap::new();
        let mut signals: HashMap<u32, Vec<(Option<u64>, usize)>> = HashMap::new();
        for (number, batch) in batches.iter().enumerate() {
            let mut clock = match last.insert(batch.queue, number) {
                Some(earlier) => before[earlier].clone(),
                None => HashMap::new(),
            };
            let mut join = |queue: u32, batch: usize| {
                let of = clock.entry(queue).or_insert(batch);
                *of = batch.max(*of);
            };
            for (semaphore, value) in &batch.waits {
                let signalled = signals.get(semaphore).into_iter().flatten();
                let by = match value {
                    None => signalled.last(),
                    Some(value) => signalled
                        .filter(|(at, _)| at.is_some_and(|at| at >= *value))
                        .min_by_key(|(at, _)| *at),
                };
                if let Some((_, by)) = by {
                    join(batches[*by].queue, *by);
                    for (queue, batch) in &before[*by] {
                        join(*queue, *batch);
                    }
                }
            }
            before.push(clock);
            for (semaphore, value) in &batch.signals {
                signals
                    .entry(*semaphore)
                    .or_default()
                    .push((*value, number));
            }
        }
        let common = |of: &dyn Fn(&OfBatch) -> Stages| {
            batches
                .iter()
                .map(of)
                .fold(Stages::ALL, |all, one| all.both(one))
        };
        Batches {
            before,
            waiting: common(&|batch| batch.waiting),
            signalled: common(&|batch| batch.signalled),
        }
    }

    /// True when semaphores alone order the ends of an edge between batches that they order, without a barrier that goes on from them.
    pub fn suffice(&self, edge: &Edge) -> bool {
        let of = |part: &Part| self.signalled.contain(part.from) && self.waiting.contain(part.to);
        edge.parts.iter().all(of)
    }

    /// True when semaphores order two batches.
    pub fn order(&self, from: &Node, to: &Node) -> bool {
        from.batch != to.batch
            && (self.before.get(to.batch))
                .and_then(|before| before.get(&from.queue))
                .is_some_and(|last| *last >= from.batch)
    }
}
