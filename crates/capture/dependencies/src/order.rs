//! Decides what orders the two commands of an edge (a dependency of a later command on an earlier one): barriers on
//! their queue, semaphores between their batches, or nothing.
//!
//! A part of an edge is some of its bytes; a barrier has parts too, each for a range of memory or for all. A barrier
//! is between two commands if it was submitted after the first and before the second.

use std::collections::HashMap;
use std::ops::Range;

use schemars::JsonSchema;
use serde::Serialize;

use crate::graph::{Edge, EdgeKind, EdgePart, Node};
use crate::scope::{Scope, Scopes, Stages};
use crate::window::{Barrier, WindowBatch};

/// The most barriers that are examined for all edges together; beyond them the order is unknown.
const MAX_LOOKS: u64 = 100_000_000;

/// The order of the ends of an edge.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Order {
    /// Barriers between them.
    Barrier,
    /// Semaphores between their batches.
    Semaphore,
    /// Nothing in their submission.
    Nothing,
    /// Not known: the host may have waited between their submissions, or the search takes too long.
    Unknown,
}

impl Order {
    /// Returns the value's name.
    pub fn as_str(self) -> &'static str {
        match self {
            Order::Barrier => "barrier",
            Order::Semaphore => "semaphore",
            Order::Nothing => "nothing",
            Order::Unknown => "unknown",
        }
    }
}

/// The barriers of a window, by queue.
pub(crate) struct Barriers<'a> {
    /// The barriers in the order of submission.
    all: &'a [Barrier],
    /// The indices of the barriers of each queue.
    by_queue: HashMap<u32, Vec<usize>>,
    /// By queue and allocation, the barriers with a part for that allocation.
    in_part: HashMap<(u32, u64), Vec<usize>>,
    /// The union of the scopes of all barriers of a queue.
    scopes: HashMap<u32, Scopes>,
    /// The barriers that may still be examined.
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
            looks_left: MAX_LOOKS,
        }
    }

    /// Returns the indices of the barriers between two nodes of a queue.
    pub fn between(&self, queue: u32, from: usize, to: usize) -> &[usize] {
        self.within(self.by_queue.get(&queue), from, to)
    }

    /// Returns those of the given barriers that are between two nodes.
    fn within<'s>(&self, of: Option<&'s Vec<usize>>, from: usize, to: usize) -> &'s [usize] {
        let of = of.map_or(&[][..], Vec::as_slice);
        let begin = of.partition_point(|number| self.all[*number].position <= from);
        let end = of.partition_point(|number| self.all[*number].position <= to);
        &of[begin..end.max(begin)]
    }

    /// Returns whether the barriers of a queue that `takes` selects, by their indices, order the ends of an edge for
    /// those of its parts that `parts` selects; `None` if the search takes too long. A write after a read only needs
    /// the stages to wait; other edges need each piece of memory to be made visible.
    pub fn cover(
        &mut self,
        queue: u32,
        edge: &Edge,
        parts: &dyn Fn(&EdgePart) -> bool,
        takes: &dyn Fn(usize) -> bool,
    ) -> Option<bool> {
        let between: Vec<usize> = (self.between(queue, edge.from, edge.to).iter())
            .copied()
            .filter(|number| takes(*number))
            .collect();
        for part in edge.parts.iter().filter(|part| parts(part)) {
            let pieces = match edge.kind {
                // An execution dependency, which holds for all memory, is enough here.
                EdgeKind::WriteAfterRead => vec![Range::default()],
                _ => self.pieces(part, &between),
            };
            for piece in pieces {
                let mut way = Reached::default();
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

    /// Splits an edge into its parts, and these at the ends of the ranges of barriers unless it is a write after a
    /// read, and returns for each piece whether the barriers between its ends order it; `None` if the search takes
    /// too long.
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
                    parts: vec![EdgePart { ranges, ..*part }],
                    ..*edge
                };
                let is_covered = self.cover(queue, &one, &|_| true, &|_| true)?;
                found.push((one, is_covered));
            }
        }
        Some(found)
    }

    /// Returns the barriers of a queue that order more work after a node than earlier barriers do. Without the other
    /// barriers, all work after the node is ordered as before. `part` has the way in which the node reaches the
    /// bytes; the later access may be any, up to the node `to`. Returns `None` if the search takes too long.
    pub fn leading(
        &mut self,
        queue: u32,
        (from, to): (usize, usize),
        part: &EdgePart,
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
            // No barrier of the queue carries `way` further than this.
            let end = Reached {
                stages: most.before(),
                available: is_available,
                visible: is_available && most.makes_visible(to_scope),
            };
            let part = EdgePart {
                to: to_scope,
                ranges: Vec::new(),
                ..*part
            };
            let mut way = Reached::default();
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

    /// Counts a step; returns `None` once there are too many.
    fn look(&mut self) -> Option<()> {
        self.looks_left = self.looks_left.saturating_sub(1);
        (self.looks_left > 0).then_some(())
    }

    /// Resets the count, unless there were too many steps.
    pub fn renew(&mut self) {
        if !self.is_spent() {
            self.looks_left = MAX_LOOKS;
        }
    }

    /// Returns whether the limit of steps was reached.
    pub fn is_spent(&self) -> bool {
        self.looks_left == 0
    }

    /// Splits the ranges of a part where the range of a barrier begins or ends in them.
    fn pieces(&self, part: &EdgePart, between: &[usize]) -> Vec<Range<u64>> {
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

/// The work that waits for the first command of an edge, as far as barriers are taken in order: the stages that wait,
/// and whether its writes are available and visible to the second command.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Reached {
    /// The stages that wait for the first command.
    stages: Stages,
    /// Whether the first command's writes have left the caches: available, in Vulkan's words.
    available: bool,
    /// Whether the second command is sure to see these writes.
    visible: bool,
}

impl Reached {
    /// Takes the next barrier, which carries on what waits if it waits for the first command, or for a stage that
    /// already does.
    fn pass(&mut self, barrier: &Barrier, part: &EdgePart, piece: &Range<u64>) {
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

/// The order of batches by semaphores: for each batch and each queue, the last batch of that queue that semaphores
/// place before it.
pub(crate) struct Batches {
    /// By the batch, then by the queue.
    before: Vec<HashMap<u32, usize>>,
    /// The stages that every wait for a semaphore holds back.
    waiting: Stages,
    /// The stages that every signal of a semaphore comes after.
    signalled: Stages,
}

impl Batches {
    pub fn new(batches: &[WindowBatch]) -> Batches {
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
        let common = |of: &dyn Fn(&WindowBatch) -> Stages| {
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

    /// Returns whether semaphores alone order the ends of an edge, without a barrier that goes on from them.
    pub fn suffice(&self, edge: &Edge) -> bool {
        let of =
            |part: &EdgePart| self.signalled.contain(part.from) && self.waiting.contain(part.to);
        edge.parts.iter().all(of)
    }

    /// Returns whether semaphores order the batches of two nodes.
    pub fn order(&self, from: &Node, to: &Node) -> bool {
        from.batch != to.batch
            && (self.before.get(to.batch))
                .and_then(|before| before.get(&from.queue))
                .is_some_and(|last| *last >= from.batch)
    }
}
