//! Analyses the control flow of a [`Program`]: finds for each block where the ways from it meet again, and which
//! branches decide whether it runs. A block is a sequence of operations that ends with a jump, a branch or the end of
//! the kernel.

use super::program::{BlockId, Program};

/// The most pairs of a block and a branch that decides over it; beyond them the analysis fails.
const MAX_PAIRS: usize = 4_000_000;

/// The control flow of a program.
#[derive(Debug)]
pub(crate) struct Flow {
    /// For each block whether a way from the entry leads to it.
    pub reached: Vec<bool>,
    /// For each block the first block that every way from it to the end goes through; `None` for the end itself.
    pub after: Vec<Option<BlockId>>,
    /// For each block the blocks whose branches decide whether it runs.
    pub deciders: Vec<Vec<BlockId>>,
}

impl Flow {
    /// Analyses a program; returns `None` if its branches are nested too deeply.
    pub fn new(program: &Program) -> Option<Flow> {
        let count = program.blocks.len();
        let targets: Vec<Vec<BlockId>> = program.blocks.iter().map(|b| b.end.targets()).collect();
        let reached = program.reached();
        let after = Ends::new(&targets, &reached).dominators();
        let mut deciders = vec![Vec::new(); count];
        let mut pairs = 0;
        for (block, targets) in targets.iter().enumerate() {
            if targets.len() < 2 || !reached[block] {
                continue;
            }
            let block = block as BlockId;
            for target in targets {
                let mut at = Some(*target);
                while let Some(here) = at
                    && at != after[block as usize]
                {
                    let of = &mut deciders[here as usize];
                    if of.last() != Some(&block) {
                        of.push(block);
                        pairs += 1;
                    }
                    if pairs > MAX_PAIRS {
                        return None;
                    }
                    at = after[here as usize];
                }
            }
        }
        Some(Flow {
            reached,
            after,
            deciders,
        })
    }
}

/// The reversed control flow, from a common end to the entry.
struct Ends {
    /// Blocks in an order in which most come after those that every way from them goes through.
    order: Vec<usize>,
    /// The position of each block in that order.
    place: Vec<usize>,
    /// The targets of each block. The common end has the last number.
    targets: Vec<Vec<usize>>,
}

impl Ends {
    /// Adds a common end after all blocks that stop, and an edge to it from every endless loop.
    fn new(targets: &[Vec<BlockId>], reached: &[bool]) -> Ends {
        let count = targets.len();
        let end = count;
        let mut sources = vec![Vec::new(); count + 1];
        let mut all: Vec<Vec<usize>> = vec![Vec::new(); count + 1];
        for (block, to) in targets
            .iter()
            .enumerate()
            .filter(|(block, _)| reached[*block])
        {
            all[block] = to.iter().map(|to| *to as usize).collect();
            if to.is_empty() {
                all[block].push(end);
            }
            for to in &all[block] {
                sources[*to].push(block);
            }
        }
        let mut order = Vec::new();
        let mut seen = vec![false; count + 1];
        walk(end, &sources, &mut seen, &mut order);
        // An endless loop counts as ending in the first of its blocks that is met.
        for block in (0..count).rev() {
            if reached[block] && !seen[block] {
                all[block].push(end);
                sources[end].push(block);
                let last = order.pop();
                walk(block, &sources, &mut seen, &mut order);
                order.extend(last);
            }
        }
        order.reverse();
        let mut place = vec![usize::MAX; count + 1];
        for (at, block) in order.iter().enumerate() {
            place[*block] = at;
        }
        Ends {
            order,
            place,
            targets: all,
        }
    }

    /// Returns for each block the nearest one that every way to the end goes through, by the algorithm of Cooper,
    /// Harvey and Kennedy.
    fn dominators(&self) -> Vec<Option<BlockId>> {
        let end = self.targets.len() - 1;
        let mut found: Vec<Option<usize>> = vec![None; self.targets.len()];
        found[end] = Some(end);
        let mut changed = true;
        while changed {
            changed = false;
            for block in self.order.iter().skip(1) {
                let mut nearest = None;
                for to in &self.targets[*block] {
                    if found[*to].is_none() {
                        continue;
                    }
                    nearest = Some(match nearest {
                        None => *to,
                        Some(other) => self.meet(&found, other, *to),
                    });
                }
                if nearest.is_some() && found[*block] != nearest {
                    found[*block] = nearest;
                    changed = true;
                }
            }
        }
        (found.iter().take(end))
            .map(|to| to.filter(|to| *to != end).map(|to| to as BlockId))
            .collect()
    }

    /// Returns the nearest block that every way from `a` and from `b` to the end goes through, by what was found so
    /// far.
    fn meet(&self, found: &[Option<usize>], mut a: usize, mut b: usize) -> usize {
        while a != b {
            while self.place[a] > self.place[b] {
                a = found[a].unwrap_or(self.order[0]);
            }
            while self.place[b] > self.place[a] {
                b = found[b].unwrap_or(self.order[0]);
            }
        }
        a
    }
}

/// Appends the nodes that are reached from `from` to `order`, each after the nodes that its edges lead to.
fn walk(from: usize, edges: &[Vec<usize>], seen: &mut [bool], order: &mut Vec<usize>) {
    if std::mem::replace(&mut seen[from], true) {
        return;
    }
    let mut stack = vec![(from, 0)];
    while let Some((node, next)) = stack.last_mut() {
        match edges[*node].get(*next) {
            Some(to) => {
                *next += 1;
                let to = *to;
                if !std::mem::replace(&mut seen[to], true) {
                    stack.push((to, 0));
                }
            }
            None => {
                order.push(*node);
                stack.pop();
            }
        }
    }
}
