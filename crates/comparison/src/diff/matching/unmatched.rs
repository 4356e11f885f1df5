//! Holds the kernels of both sides that are not matched yet, and pairs those that a rule matches; `matching.rs` says in which
//! order rules apply.

use super::{How, Pair, SideKernel};
use crate::diff::names;
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// The kernels of both sides that are not matched yet, and the pairs so far.
pub(super) struct Unmatched<'a> {
    pub before: Vec<SideKernel<'a>>,
    pub after: Vec<SideKernel<'a>>,
    pub pairs: Vec<Pair<'a>>,
}

impl<'a> Unmatched<'a> {
    /// Adds a pair.
    pub fn pair(&mut self, before: Vec<SideKernel<'a>>, after: Vec<SideKernel<'a>>, how: How) {
        self.pairs.push(Pair { before, after, how });
    }

    /// Returns the names and paths of the kernels whose names were exchanged: the code of a name before has another name
    /// after under the same path, and the code of that name after had another name before.
    pub fn exchanged(&self) -> BTreeSet<(&'a str, &'a str)> {
        let codes = |kernels: &[SideKernel<'a>]| -> HashMap<(&'a str, &'a str), Option<String>> {
            let key = |kernel: &SideKernel<'a>| ((kernel.name, kernel.path), kernel.code());
            kernels.iter().map(key).collect()
        };
        let (before, after) = (codes(&self.before), codes(&self.after));
        let homes = |kernels: &HashMap<(&'a str, &'a str), Option<String>>| {
            let home = |((_, path), code): (&(&'a str, &'a str), &Option<String>)| {
                Some((code.clone()?, *path))
            };
            kernels.iter().filter_map(home).collect::<BTreeSet<_>>()
        };
        let (homes_before, homes_after) = (homes(&before), homes(&after));
        let is_exchanged = |key: &&(&'a str, &'a str)| {
            let codes = (before.get(*key).cloned().flatten())
                .zip(after.get(*key).cloned().flatten())
                .filter(|(before, after)| before != after);
            codes.is_some_and(|(before, after)| {
                homes_after.contains(&(before, key.1)) && homes_before.contains(&(after, key.1))
            })
        };
        before.keys().filter(is_exchanged).copied().collect()
    }

    /// Returns the codes of which each side runs one function, under however many labels.
    pub fn single_functions(&self) -> BTreeSet<String> {
        let single = |kernels: &[SideKernel<'a>]| -> BTreeSet<String> {
            let mut functions: BTreeMap<String, BTreeSet<&str>> = BTreeMap::new();
            for kernel in kernels {
                if let Some(module) = kernel.module() {
                    functions.entry(module).or_default().insert(kernel.name);
                }
            }
            functions.retain(|_, names| names.len() == 1);
            functions.into_keys().collect()
        };
        let (before, after) = (single(&self.before), single(&self.after));
        before.intersection(&after).cloned().collect()
    }

    /// Pairs a kernel with the only other that can have replaced it: under a label that nothing else is gone from and nothing else
    /// is new under, which ran as often; or, where several are, the only one that ran as often with the same workgroups and threads.
    pub fn match_only_ones(&mut self, evaluations: [f64; 2]) {
        let often = |kernel: &SideKernel, side: usize| {
            // Counts that differ by less than a thousandth of an evaluation are equal.
            (kernel.count_each() / evaluations[side] * 1e3).round() as u64
        };
        self.match_unique(
            |kernel, _| (!kernel.path.is_empty()).then(|| (String::new(), kernel.path)),
            |before, after| often(before, 0) == often(after, 1),
        );
        self.match_unique(
            |kernel, side| {
                let [groups, threads] = kernel.mean_size()?;
                let often = often(kernel, side);
                Some((format!("{often} {groups} {threads}"), kernel.path))
            },
            |_, _| true,
        );
    }

    /// Pairs kernels that have the same key, where no other kernel of their sides has it, and that `fit`.
    fn match_unique<'k>(
        &mut self,
        key: impl Fn(&SideKernel<'a>, usize) -> Option<(String, &'k str)>,
        fit: impl Fn(&SideKernel, &SideKernel) -> bool,
    ) {
        let mut places: BTreeMap<(String, &str), [Vec<usize>; 2]> = BTreeMap::new();
        for (side, kernels) in [&self.before, &self.after].into_iter().enumerate() {
            for (at, kernel) in kernels.iter().enumerate() {
                if let Some(key) = key(kernel, side) {
                    places.entry(key).or_default()[side].push(at);
                }
            }
        }
        let all = |kernels: &mut Vec<SideKernel<'a>>| -> Vec<Option<SideKernel<'a>>> {
            kernels.drain(..).map(Some).collect()
        };
        let mut sides = [all(&mut self.before), all(&mut self.after)];
        for places in places.values() {
            let ([before], [after]) = (&places[0][..], &places[1][..]) else {
                continue;
            };
            let two = (sides[0][*before].take(), sides[1][*after].take());
            match two {
                (Some(before), Some(after)) if fit(&before, &after) => {
                    self.pair(vec![before], vec![after], How::Replaced);
                }
                (first, second) => (sides[0][*before], sides[1][*after]) = (first, second),
            }
        }
        [self.before, self.after] = sides.map(|side| side.into_iter().flatten().collect());
    }

    /// Pairs kernels with the same key, in order of appearance; the others, and those without a key, stay unmatched.
    pub fn match_by<'k>(
        &mut self,
        how: How,
        key: impl Fn(&SideKernel<'a>) -> Option<(String, &'k str)>,
    ) {
        let mut there: HashMap<(String, &str), Vec<usize>> = HashMap::new();
        for (at, kernel) in self.after.iter().enumerate().rev() {
            if let Some(key) = key(kernel) {
                there.entry(key).or_default().push(at);
            }
        }
        let mut taken: Vec<Option<SideKernel>> = self.after.drain(..).map(Some).collect();
        for kernel in std::mem::take(&mut self.before) {
            let partner = key(&kernel).and_then(|key| there.get_mut(&key)?.pop());
            match partner.and_then(|at| taken[at].take()) {
                Some(partner) => self.pair(vec![kernel], vec![partner], how),
                None => self.before.push(kernel),
            }
        }
        self.after = taken.into_iter().flatten().collect();
    }
}

/// Removes from `ones` each kernel that took the place of at least two of `others`, and returns it with the kernels
/// it replaced.
pub(super) fn chains<'a>(
    ones: &mut Vec<SideKernel<'a>>,
    others: &mut Vec<SideKernel<'a>>,
) -> Vec<(SideKernel<'a>, Vec<SideKernel<'a>>)> {
    let mut alone: BTreeMap<&str, u32> = BTreeMap::new();
    for one in ones.iter() {
        *alone.entry(one.path).or_default() += 1;
    }
    let mut chains = Vec::new();
    for one in std::mem::take(ones) {
        let here = |other: &SideKernel| other.path == one.path;
        let operations = names::fused_operations(one.name).unwrap_or_default();
        let listed = |other: &SideKernel| {
            let name = other.name.to_ascii_lowercase();
            here(other) && operations.iter().any(|operation| name.contains(operation))
        };
        let is_only = !one.path.is_empty() && alone.get(one.path) == Some(&1);
        let takes = |other: &SideKernel| match is_only {
            true => here(other),
            false => listed(other),
        };
        if others.iter().filter(|other| takes(other)).count() < 2 {
            ones.push(one);
            continue;
        }
        let (several, rest) = others.drain(..).partition(|other| takes(other));
        *others = rest;
        chains.push((one, several));
    }
    chains
}
