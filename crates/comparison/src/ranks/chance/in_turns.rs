//! Tells ranks that take turns in being late from chance. Each of two ranks that are late at every other collective is late too seldom to be
//! beyond chance among few ranks; both together are late too often.
//!
//! A set of ranks is tested as one rank is: by the sum of their leads over all changes of places, times the number of sets that it may have been.
//! Where some ranks are late by themselves, the others are compared with each other alone.

use super::{Blocks, LateRank, LateRanks};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

/// The sizes of sets that are tested.
const SIZES: [usize; 2] = [2, 3];

/// A rank that takes turns with another has at least this share of that rank's leads.
const ALIKE_SHARE: f64 = 0.5;

impl LateRanks {
    /// Returns the ranks besides the `late` ones that are late beyond chance where these are set aside, or as a set where none is late by
    /// itself; `most` is the probability with which equal ranks may have such ones.
    pub(in super::super) fn in_turns(&self, late: &[LateRank], most: f64) -> Vec<LateRank> {
        let Some(latest) = late.first() else {
            return self.set(most);
        };
        let is_late = |rank: usize| late.iter().any(|row| row.rank == rank);
        let all = self.0.values().flat_map(|blocks| &blocks.blocks);
        let rest: BTreeSet<usize> = all
            .flat_map(|block| block.leads.keys().copied())
            .filter(|rank| !is_late(*rank))
            .collect();
        let mut others = self.among(&rest).beyond_chance(most);
        others.retain(|row| {
            let is_alike = row.lead_ns as f64 >= ALIKE_SHARE * latest.lead_ns as f64;
            !is_late(row.rank) && is_alike
        });
        others
    }

    /// Returns the smallest set of ranks that is late beyond chance.
    fn set(&self, most: f64) -> Vec<LateRank> {
        let tested = (SIZES.len() * self.0.len()) as f64;
        for size in SIZES {
            for blocks in self.0.values().filter(|blocks| blocks.ranks > size) {
                let mut sums: BTreeMap<usize, i64> = BTreeMap::new();
                for (rank, ns) in blocks.blocks.iter().flat_map(|block| &block.leads) {
                    let sum = sums.entry(*rank).or_default();
                    *sum = sum.saturating_add(*ns);
                }
                let mut sums: Vec<(usize, i64)> = sums.into_iter().collect();
                sums.sort_by_key(|(rank, ns)| (Reverse(*ns), *rank));
                sums.truncate(size);
                let alike = |(first, last): (&(usize, i64), &(usize, i64))| {
                    last.1 as f64 >= ALIKE_SHARE * first.1 as f64
                };
                if sums.len() < size || !sums.first().zip(sums.last()).is_some_and(alike) {
                    continue;
                }
                let set: BTreeSet<usize> = sums.iter().map(|(rank, _)| *rank).collect();
                let chance = blocks.chance_of_set(&set) + ln_binomial(blocks.ranks, size);
                let chance = chance.exp() * tested;
                if chance <= most {
                    let rows = sums.into_iter().filter_map(|(rank, lead_ns)| {
                        let (stretch, whole) = blocks.stretch(rank)?;
                        Some(LateRank {
                            rank,
                            lead_ns,
                            chance,
                            stretch,
                            whole,
                        })
                    });
                    return rows.collect();
                }
            }
        }
        Vec::new()
    }
}

impl Blocks {
    /// Returns the logarithm of an upper bound of the probability that a set of ranks has at least its certain leads if all ranks are equal.
    fn chance_of_set(&self, set: &BTreeSet<usize>) -> f64 {
        let blocks: Vec<BTreeMap<usize, i64>> = (self.blocks.iter())
            .map(|block| {
                let mut leads = block.leads.clone();
                let changes = block.changes.iter();
                for ((_, other), ns) in changes.filter(|((of, _), _)| set.contains(of)) {
                    let sum = leads.entry(*other).or_default();
                    *sum = sum.saturating_add(*ns).max(0);
                }
                leads
            })
            .collect();
        let leads = || blocks.iter().flatten();
        let own = leads().filter(|(rank, _)| set.contains(rank));
        let sum: f64 = own.map(|(_, ns)| *ns as f64).sum();
        let most = leads().map(|(_, ns)| *ns).max().unwrap_or(0);
        if sum <= 0.0 || most <= 0 {
            return 0.0;
        }
        let bound = |power: i32| {
            let rate = 2f64.powi(power) / most as f64;
            let of_block = |leads: &BTreeMap<usize, i64>| {
                let exponents = leads.values().map(|ns| rate * *ns as f64);
                mean_over_sets(exponents, self.ranks, set.len())
            };
            blocks.iter().map(of_block).sum::<f64>() - rate * sum
        };
        (-6..=16).map(bound).fold(0.0, f64::min)
    }
}

/// Returns the logarithm of the mean of `exp(sum)` over all sets of `size` of `count` values, of which those that are not given are 0.
fn mean_over_sets(values: impl Iterator<Item = f64>, count: usize, size: usize) -> f64 {
    // The logarithms of the sums over all sets of each size of the given values.
    let mut sums = vec![f64::NEG_INFINITY; size + 1];
    sums[0] = 0.0;
    let mut given = 0;
    for value in values {
        for at in (1..=size).rev() {
            sums[at] = ln_sum(sums[at], sums[at - 1] + value);
        }
        given += 1;
    }
    let zeros = count.saturating_sub(given);
    let with_zeros = (0..=size).map(|at| sums[at] + ln_binomial(zeros, size - at));
    with_zeros.fold(f64::NEG_INFINITY, ln_sum) - ln_binomial(count.max(given), size)
}

/// Returns the logarithm of the sum of two values of which the logarithms are given.
fn ln_sum(a: f64, b: f64) -> f64 {
    let (more, less) = (a.max(b), a.min(b));
    match more == f64::NEG_INFINITY {
        true => more,
        false => more + (less - more).exp().ln_1p(),
    }
}

/// Returns the logarithm of the number of sets of `size` of `count` things.
fn ln_binomial(count: usize, size: usize) -> f64 {
    if size > count {
        return f64::NEG_INFINITY;
    }
    (0..size)
        .map(|at| ((count - at) as f64 / (at + 1) as f64).ln())
        .sum()
}

#[cfg(test)]
mod tests {
    use super::super::tests::{Noise, behind};
    use super::*;

    fn late(ranks: usize, count: i64, late_ns: impl FnMut(i64, usize) -> i64) -> Vec<usize> {
        let all = behind(ranks, count, 10, late_ns);
        let mut late = all.beyond_chance(0.0025);
        late.extend(all.in_turns(&late, 0.0025));
        let mut late: Vec<usize> = late.iter().map(|row| row.rank).collect();
        late.sort_unstable();
        late
    }

    #[test]
    fn means_over_sets_are_exact() {
        // Of 1, 2 and 4 as exponentials and a 1 that is not given: (2 + 4 + 1 + 8 + 2 + 4) / 6.
        let values = [1f64, 2.0, 4.0].map(f64::ln);
        let mean = mean_over_sets(values.into_iter(), 4, 2);
        assert!((mean.exp() - 21.0 / 6.0).abs() < 1e-9, "{mean}");
        let far = mean_over_sets([60_000.0, 1.0].into_iter(), 2, 2);
        assert!((far - 60_001.0).abs() < 1e-6, "{far}");
    }

    #[test]
    fn ranks_that_take_turns_are_late_and_equal_ones_are_not() {
        for (ranks, pair, count) in [(3, [0, 2], 40), (4, [1, 2], 20), (8, [2, 5], 30)] {
            let mut noise = Noise(5);
            let each_second = |number: i64, rank: usize| {
                let turn = pair[(number % 2) as usize] == rank;
                noise.below(50) + if turn { 3_000 } else { 0 }
            };
            assert_eq!(late(ranks, count, each_second), pair, "{ranks}");
            let mut noise = Noise(6);
            let halves = |number: i64, rank: usize| {
                let turn = pair[usize::from(2 * number >= count)] == rank;
                noise.below(50) + if turn { 3_000 } else { 0 }
            };
            assert_eq!(late(ranks, count, halves), pair, "{ranks}");
        }
        for (ranks, count) in [(3, 100), (4, 40), (8, 60)] {
            let blamed = |seed: u64| {
                let mut noise = Noise(seed);
                let equal = |_, _| noise.below(1_000) * (1 + 50 * (noise.below(40) / 39));
                !late(ranks, count, equal).is_empty()
            };
            let false_ones = (0..30).filter(|seed| blamed(*seed)).count();
            assert!(false_ones <= 1, "{ranks} ranks: {false_ones} of 30");
        }
        // One rank is always late, and each of the others once by much.
        let mut noise = Noise(8);
        let stalls = |number: i64, rank: usize| {
            let stall = number == 20 * rank as i64 + 7;
            noise.below(50) + if rank == 1 { 1_000 } else { 0 } + if stall { 4_000 } else { 0 }
        };
        assert_eq!(late(4, 80, stalls), [1]);
    }
}
