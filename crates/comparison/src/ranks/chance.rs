//! Tells a late rank from chance. Of equal ranks one is always last, and each of `n` is the last of one collective in `n`.
//!
//! The *lead* of a rank at a collective is the time by which it arrived later than the second to last: what the others would
//! not have waited had it come with them. The leads at a communicator are added up in blocks of neighbouring collectives, because
//! neighbours resemble each other: a moment of noise makes one rank late several times. Within a block, equal ranks could change places.
//! From this follows an upper bound for the probability that a rank of equal ones has at least its sum of leads, by Chernoff's method
//! (the expected `exp(λ lead)` over all changes of places, block by block, for the best of some λ). The bound is multiplied by the number of
//! ranks and communicators that are tested, so that with many of them a false one is no more frequent.
//!
//! Ranks that are late together have no lead over each other. They are told by another measure in the same way: the time by which each rank came
//! later than the median rank. The ends of a collective's parts are compared so, too.
//!
//! Where most ranks are late, the median rank is late itself. Then the few in time are told instead, by how much earlier they come than
//! the median rank, and all others are late.
//!
//! Of ranks that are late together, one is last more often than a rank that is in time. It is the one that all wait for only where it is
//! last more often than chance explains among the late ones alone ([`LateRanks::among`]).
//!
//! An error of the clocks could make one rank look late at every collective. A rank is therefore tested as if it had arrived earlier by the
//! error: its own leads are shorter by it, and those of the ranks that it was last but one behind are longer.
//!
//! Ranks that take turns in being late are told as a set (`chance/in_turns.rs`).
//!
//! What this cannot know: whether noise lasts for longer than a block, which is at least a 64th of a communicator's collectives.

mod in_turns;

use super::part::Communicator;
use gapscope_timeline::intervals::Interval;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

/// The number of blocks from which on two neighbours are joined.
const MAX_BLOCKS: usize = 64;

/// The maximum number of ranks of a communicator that are tested: those with the greatest leads.
const MAX_TESTED: usize = 16;

/// The share of a rank's leads that the stretch of its lateness holds.
const STRETCH_SHARE: f64 = 0.9;

/// The leads at neighbouring collectives of one communicator.
#[derive(Debug, Clone, Default)]
struct Block {
    /// From the first arrival at the first of the collectives to the last arrival at the last.
    time: Option<Interval>,
    count: u64,
    /// The leads in nanoseconds, as measured, by the index of the rank.
    leads: BTreeMap<usize, i64>,
    /// The changes of these leads where a rank arrived earlier by the clocks' error, by the indices of that rank and of
    /// the rank whose leads change.
    changes: BTreeMap<(usize, usize), i64>,
}

impl Block {
    fn join(&mut self, other: Block) {
        self.time = match (self.time, other.time) {
            (Some(a), Some(b)) => Some(a.hull(b)),
            (a, b) => a.or(b),
        };
        self.count += other.count;
        for (rank, ns) in other.leads {
            let sum = self.leads.entry(rank).or_default();
            *sum = sum.saturating_add(ns);
        }
        for (ranks, ns) in other.changes {
            let sum = self.changes.entry(ranks).or_default();
            *sum = sum.saturating_add(ns);
        }
    }

    /// Returns the leads of all ranks that have some where the tested rank arrived earlier by the clocks' error.
    fn tested(&self, rank: usize) -> BTreeMap<usize, i64> {
        let mut leads = self.leads.clone();
        for ((_, other), ns) in self.changes.range((rank, 0)..=(rank, usize::MAX)) {
            let sum = leads.entry(*other).or_default();
            *sum = sum.saturating_add(*ns).max(0);
        }
        leads
    }
}

/// The leads at the collectives of one communicator.
#[derive(Debug, Clone, Default)]
struct Blocks {
    /// The number of ranks.
    ranks: usize,
    /// The number of collectives of a block.
    size: u64,
    blocks: Vec<Block>,
}

impl Blocks {
    fn add(&mut self, collective: Block) {
        match self.blocks.last_mut() {
            Some(last) if last.count < self.size => last.join(collective),
            _ => self.blocks.push(collective),
        }
        if self.blocks.len() > MAX_BLOCKS {
            self.size = 2 * self.size.max(1);
            let mut joined: Vec<Block> = Vec::with_capacity(MAX_BLOCKS);
            for (at, block) in std::mem::take(&mut self.blocks).into_iter().enumerate() {
                match joined.last_mut() {
                    Some(last) if at % 2 == 1 => last.join(block),
                    _ => joined.push(block),
                }
            }
            self.blocks = joined;
        }
    }

    /// Returns an upper bound of the probability that a rank has at least its certain leads if all ranks are equal.
    fn chance(&self, rank: usize) -> f64 {
        let blocks: Vec<_> = self.blocks.iter().map(|block| block.tested(rank)).collect();
        let own = blocks
            .iter()
            .map(|leads| leads.get(&rank).copied().unwrap_or(0));
        let sum: f64 = own.map(|ns| ns as f64).sum();
        let most = blocks
            .iter()
            .flat_map(|leads| leads.values().copied())
            .max();
        let (true, Some(most)) = (sum > 0.0, most) else {
            return 1.0;
        };
        let bound = |power: i32| {
            let rate = 2f64.powi(power) / most as f64;
            let of_block = |leads: &BTreeMap<usize, i64>| {
                let exponents = leads.values().map(|ns| rate * *ns as f64);
                mean_of_exponentials(exponents, self.ranks)
            };
            let all: f64 = blocks.iter().map(of_block).sum();
            all - rate * sum
        };
        let least = (-6..=16).map(bound).fold(0.0, f64::min);
        least.exp()
    }
}

/// Returns the logarithm of the mean of `exp(x)` over `count` values, of which those that are not given are 0.
fn mean_of_exponentials(values: impl Iterator<Item = f64> + Clone, count: usize) -> f64 {
    let greatest = values.clone().fold(0.0, f64::max);
    let given = values.clone().count();
    let zeros = count.saturating_sub(given) as f64 * (-greatest).exp();
    let sum: f64 = values.map(|value| (value - greatest).exp()).sum();
    greatest + ((sum + zeros) / count.max(1) as f64).ln()
}

/// A collective at which a rank was last.
pub(super) struct LastArrival {
    pub(super) communicator: Communicator,
    /// The number of ranks that took part.
    pub(super) ranks: usize,
    /// From the first arrival to the last.
    pub(super) time: Interval,
    /// The index of the rank that arrived last.
    pub(super) rank: usize,
    /// The time by which it arrived later than the second to last.
    pub(super) lead_ns: i64,
    /// The index of the second to last.
    pub(super) second: usize,
    /// The time by which that arrived later than the third to last; the greatest number where there is none.
    pub(super) second_lead_ns: i64,
    /// The error within which the last two arrivals compare.
    pub(super) error_ns: i64,
}

/// A collective at which ranks came, or ended, later than the median rank, or earlier.
pub(super) struct BehindMedian {
    pub(super) communicator: Communicator,
    /// The number of ranks that took part.
    pub(super) ranks: usize,
    /// The time of the collective.
    pub(super) time: Interval,
    /// The index of each such rank, the time by which it was later or earlier, and the error within which both times compare.
    pub(super) late: Vec<(usize, i64, i64)>,
}

/// The leads of all ranks at the collectives of all communicators.
#[derive(Debug, Clone, Default)]
pub(super) struct LateRanks(BTreeMap<Communicator, Blocks>);

/// A rank that is late by more than chance explains.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct LateRank {
    /// The index of the rank.
    pub(super) rank: usize,
    /// The sum of the rank's leads.
    pub(super) lead_ns: i64,
    /// An upper bound of the probability that equal ranks have one that is as late.
    pub(super) chance: f64,
    /// The shortest stretch that has nine tenths of the leads, and the time of all collectives.
    pub(super) stretch: Interval,
    pub(super) whole: Interval,
}

impl LateRanks {
    pub(super) fn add(&mut self, last: &LastArrival) {
        let blocks = self.0.entry(last.communicator).or_default();
        blocks.ranks = blocks.ranks.max(last.ranks);
        let (lead_ns, error_ns) = (last.lead_ns, last.error_ns);
        let overtaken_ns = error_ns
            .saturating_sub(lead_ns)
            .clamp(0, last.second_lead_ns);
        let changes = [
            ((last.rank, last.rank), -lead_ns.min(error_ns)),
            ((last.rank, last.second), overtaken_ns),
            ((last.second, last.rank), error_ns.min(last.second_lead_ns)),
        ];
        blocks.add(Block {
            time: Some(last.time),
            count: 1,
            leads: BTreeMap::from([(last.rank, lead_ns)]),
            changes: changes.into_iter().filter(|(_, ns)| *ns != 0).collect(),
        });
    }

    pub(super) fn add_behind(&mut self, behind: BehindMedian) {
        let blocks = self.0.entry(behind.communicator).or_default();
        blocks.ranks = blocks.ranks.max(behind.ranks);
        let late = behind.late.iter();
        blocks.add(Block {
            time: Some(behind.time),
            count: 1,
            leads: late.clone().map(|(rank, ns, _)| (*rank, *ns)).collect(),
            changes: late
                .map(|(rank, ns, error_ns)| ((*rank, *rank), -ns.min(error_ns)))
                .collect(),
        });
    }

    /// Returns the leads as if only some ranks had taken part. A communicator in which fewer than two of them have leads stays as it is.
    pub(super) fn among(&self, ranks: &BTreeSet<usize>) -> LateRanks {
        let own = |blocks: &Blocks| -> BTreeSet<usize> {
            let leads = blocks.blocks.iter().flat_map(|block| {
                let changed = block.changes.keys().map(|(_, rank)| *rank);
                block.leads.keys().copied().chain(changed)
            });
            leads.filter(|rank| ranks.contains(rank)).collect()
        };
        let filtered = self.0.iter().map(|(communicator, blocks)| {
            let own = own(blocks);
            let mut blocks = blocks.clone();
            if own.len() > 1 {
                blocks.ranks = blocks.ranks.min(own.len());
                for block in &mut blocks.blocks {
                    block.leads.retain(|rank, _| own.contains(rank));
                    (block.changes).retain(|(a, b), _| own.contains(a) && own.contains(b));
                }
            }
            (*communicator, blocks)
        });
        LateRanks(filtered.collect())
    }

    /// Returns the ranks whose leads equal ranks have with at most the probability `most`, those with the greatest
    /// sum of leads first.
    pub(super) fn beyond_chance(&self, most: f64) -> Vec<LateRank> {
        let tested: usize = self.0.values().map(|blocks| blocks.ranks).sum();
        let mut late: BTreeMap<usize, LateRank> = BTreeMap::new();
        for blocks in self.0.values() {
            let sums = (blocks.blocks.iter()).fold(BTreeMap::new(), |mut sums, block| {
                for (rank, ns) in &block.leads {
                    let sum = sums.entry(*rank).or_insert(0i64);
                    *sum = sum.saturating_add(*ns);
                }
                sums
            });
            let mut sums: Vec<(usize, i64)> = sums.into_iter().collect();
            sums.sort_by_key(|(rank, ns)| (Reverse(*ns), *rank));
            for (rank, lead_ns) in sums.into_iter().take(MAX_TESTED) {
                let chance = blocks.chance(rank) * tested as f64;
                let (true, Some((stretch, whole))) = (chance <= most, blocks.stretch(rank)) else {
                    continue;
                };
                let of_rank = late.entry(rank).or_insert(LateRank {
                    rank,
                    lead_ns: 0,
                    chance,
                    stretch,
                    whole,
                });
                of_rank.lead_ns = of_rank.lead_ns.saturating_add(lead_ns);
                of_rank.chance = of_rank.chance.min(chance);
                of_rank.stretch = of_rank.stretch.hull(stretch);
                of_rank.whole = of_rank.whole.hull(whole);
            }
        }
        let mut late: Vec<LateRank> = late.into_values().collect();
        late.sort_by_key(|rank| (Reverse(rank.lead_ns), rank.rank));
        late
    }
}

impl Blocks {
    /// Returns the shortest run of blocks that has [`STRETCH_SHARE`] of a rank's leads, and the time of all blocks.
    fn stretch(&self, rank: usize) -> Option<(Interval, Interval)> {
        let timed: Vec<(Interval, f64)> = (self.blocks.iter())
            .filter_map(|block| {
                let ns = block.leads.get(&rank).copied().unwrap_or(0);
                Some((block.time?, ns as f64))
            })
            .collect();
        let whole = timed.first()?.0.hull(timed.last()?.0);
        let needed = STRETCH_SHARE * timed.iter().map(|(_, leads)| leads).sum::<f64>();
        let mut shortest = whole;
        let (mut from, mut sum) = (0, 0.0);
        for to in 0..timed.len() {
            sum += timed[to].1;
            while from < to && sum - timed[from].1 >= needed {
                sum -= timed[from].1;
                from += 1;
            }
            let run = timed[from].0.hull(timed[to].0);
            if sum >= needed && run.length_ns() < shortest.length_ns() {
                shortest = run;
            }
        }
        Some((shortest, whole))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A linear congruential generator: the same numbers in each run.
    pub(super) struct Noise(pub(super) u64);

    impl Noise {
        pub(super) fn below(&mut self, end: i64) -> i64 {
            self.0 = (self.0)
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            (self.0 >> 33) as i64 % end
        }
    }

    /// Plays collectives, one a millisecond, at which each rank arrives with the lateness that the function gives it by number and rank.
    fn play(
        ranks: usize,
        count: i64,
        error_ns: i64,
        mut late_ns: impl FnMut(i64, usize) -> i64,
    ) -> Vec<LateRank> {
        let mut all = LateRanks::default();
        for number in 0..count {
            let mut arrivals: Vec<(i64, usize)> = (0..ranks)
                .map(|rank| (late_ns(number, rank), rank))
                .collect();
            arrivals.sort_unstable();
            let (last_ns, rank) = arrivals[ranks - 1];
            let (second_ns, second) = arrivals[ranks - 2];
            let third_ns = ranks.checked_sub(3).map(|third| arrivals[third].0);
            let start_ns = 1_000_000 * number;
            all.add(&LastArrival {
                communicator: Communicator::Only,
                ranks,
                time: Interval::new(start_ns, start_ns + 1_000),
                rank,
                lead_ns: last_ns - second_ns,
                second,
                second_lead_ns: third_ns.map_or(i64::MAX, |third_ns| second_ns - third_ns),
                error_ns,
            });
        }
        all.beyond_chance(0.01)
    }

    #[test]
    fn of_equal_ranks_none_is_late_in_ninety_nine_of_a_hundred_programs() {
        for (ranks, count) in [(2, 40), (2, 300), (4, 200), (8, 30), (64, 100)] {
            let blamed = |seed: u64| {
                let mut noise = Noise(seed);
                // Some are much later than usual, as in real programs.
                let late = |_, _| noise.below(1_000) * (1 + 50 * (noise.below(40) / 39));
                !play(ranks, count, 10, late).is_empty()
            };
            let false_ones = (0..60).filter(|seed| blamed(*seed)).count();
            assert!(false_ones <= 2, "{ranks} ranks: {false_ones} of 60");
        }
    }

    #[test]
    fn noise_that_lasts_for_several_collectives_blames_none() {
        let blamed = |seed: u64| {
            let mut noise = Noise(seed);
            let mut lasting = [0; 4];
            let late = |number: i64, rank: usize| {
                if number % 10 == 0 {
                    lasting[rank] = noise.below(1_000);
                }
                lasting[rank] + noise.below(100)
            };
            !play(4, 640, 10, late).is_empty()
        };
        let false_ones = (0..60).filter(|seed| blamed(*seed)).count();
        assert!(false_ones <= 2, "{false_ones} of 60");
    }

    #[test]
    fn a_clock_that_is_off_within_its_error_blames_none() {
        let blamed = |seed: u64| {
            let mut noise = Noise(seed);
            let late = |_, rank: usize| noise.below(1_000) + if rank == 1 { 300 } else { 0 };
            !play(4, 500, 300, late).is_empty()
        };
        let false_ones = (0..60).filter(|seed| blamed(*seed)).count();
        assert!(false_ones <= 2, "{false_ones} of 60");
    }

    #[test]
    fn a_rank_that_is_late_always_or_for_a_part_of_the_time_is_blamed() {
        let mut noise = Noise(7);
        let always = play(4, 100, 10, |_, rank| {
            noise.below(1_000) + if rank == 2 { 5_000 } else { 0 }
        });
        assert_eq!(always.len(), 1);
        assert_eq!(always[0].rank, 2);
        // A fifth of the time, by ten times the noise.
        let part = play(4, 200, 10, |number, rank| {
            let slow = rank == 1 && (100..140).contains(&number);
            noise.below(1_000) + if slow { 10_000 } else { 0 }
        });
        assert_eq!(part.len(), 1);
        let late = part[0];
        assert_eq!(late.rank, 1);
        let stretch = late.stretch;
        assert!(
            stretch.start_ns >= 80_000_000 && stretch.end_ns <= 160_000_000,
            "{late:?}"
        );
        // Four of four collectives are chance: one of four ranks is last at all of them in 1 of 64 programs.
        assert_eq!(play(4, 4, 10, |_, rank| 5_000 * i64::from(rank == 2)), []);
        assert_eq!(
            play(4, 6, 10, |_, rank| 5_000 * i64::from(rank == 2)).len(),
            1
        );
    }

    /// Plays collectives as [`play`] does, and compares each rank with the median rank.
    pub(super) fn behind(
        ranks: usize,
        count: i64,
        error_ns: i64,
        mut late_ns: impl FnMut(i64, usize) -> i64,
    ) -> LateRanks {
        let mut all = LateRanks::default();
        for number in 0..count {
            let arrivals: Vec<i64> = (0..ranks).map(|rank| late_ns(number, rank)).collect();
            let mut sorted = arrivals.clone();
            sorted.sort_unstable();
            let median_ns = sorted[(ranks - 1) / 2];
            let later = arrivals.iter().enumerate();
            let later = later.map(|(rank, ns)| (rank, ns - median_ns, error_ns));
            let start_ns = 1_000_000 * number;
            all.add_behind(BehindMedian {
                communicator: Communicator::Only,
                ranks,
                time: Interval::new(start_ns, start_ns + 1_000),
                late: later.filter(|(_, ns, _)| *ns > 0).collect(),
            });
        }
        all
    }

    /// Returns the ranks that are later than the median rank beyond chance.
    fn play_behind(
        ranks: usize,
        count: i64,
        error_ns: i64,
        late_ns: impl FnMut(i64, usize) -> i64,
    ) -> Vec<usize> {
        let late = behind(ranks, count, error_ns, late_ns)
            .beyond_chance(0.005)
            .into_iter();
        let mut late: Vec<usize> = late.map(|late| late.rank).collect();
        late.sort_unstable();
        late
    }

    /// The same with how much earlier each rank is than the median rank, of an even number the upper middle one.
    fn play_ahead(ranks: usize, count: i64, late_ns: impl Fn(i64, usize) -> i64) -> Vec<usize> {
        play_behind(ranks, count, 10, |number, rank| {
            1_000_000 - late_ns(number, rank)
        })
    }

    #[test]
    fn most_ranks_may_be_late_and_equal_ones_are_not() {
        let noises = |seed: u64, ranks: usize, count: usize| -> Vec<i64> {
            let mut noise = Noise(seed);
            let mut late = || noise.below(1_000) * (1 + 50 * (noise.below(40) / 39));
            (0..ranks * count).map(|_| late()).collect()
        };
        for (ranks, count) in [(3, 200), (4, 40), (4, 300), (8, 100), (64, 60)] {
            let blamed = |seed: u64| {
                let noises = noises(seed, ranks, count);
                let late = |number: i64, rank: usize| noises[number as usize * ranks + rank];
                !play_ahead(ranks, count as i64, late).is_empty()
            };
            let false_ones = (0..60).filter(|seed| blamed(*seed)).count();
            assert!(false_ones <= 2, "{ranks} ranks: {false_ones} of 60");
        }
        // All but few are late: the few are told, whoever they are.
        for (ranks, early) in [
            (3, &[0][..]),
            (4, &[2]),
            (5, &[1, 3]),
            (8, &[5]),
            (8, &[0, 4, 6]),
        ] {
            let late = |number: i64, rank: usize| {
                let noise = (number * 7_919 + rank as i64 * 104_729) % 1_000;
                noise + if early.contains(&rank) { 0 } else { 3_000 }
            };
            assert_eq!(play_ahead(ranks, 80, late), early, "{ranks}");
        }
    }

    #[test]
    fn of_two_that_are_late_together_neither_is_the_one_that_all_wait_for() {
        let mut noise = Noise(11);
        let mut all = LateRanks::default();
        for number in 0..400 {
            let mut late: Vec<(i64, usize)> = (0..3)
                .map(|rank| (noise.below(1_000) + 5_000 * i64::from(rank > 0), rank))
                .collect();
            late.sort_unstable();
            all.add(&LastArrival {
                communicator: Communicator::Only,
                ranks: 3,
                time: Interval::new(1_000_000 * number, 1_000_000 * number + 1_000),
                rank: late[2].1,
                lead_ns: late[2].0 - late[1].0,
                second: late[1].1,
                second_lead_ns: late[1].0 - late[0].0,
                error_ns: 10,
            });
        }
        assert!(!all.beyond_chance(0.005).is_empty());
        let together = BTreeSet::from([1, 2]);
        assert_eq!(all.among(&together).beyond_chance(0.005), []);
    }

    #[test]
    fn ranks_that_are_late_together_are_told_and_equal_ones_are_not() {
        for (ranks, count) in [(3, 200), (4, 40), (4, 300), (8, 100), (64, 60)] {
            let blamed = |seed: u64| {
                let mut noise = Noise(seed);
                let late = |_, _| noise.below(1_000) * (1 + 50 * (noise.below(40) / 39));
                !play_behind(ranks, count, 10, late).is_empty()
            };
            let false_ones = (0..60).filter(|seed| blamed(*seed)).count();
            assert!(false_ones <= 2, "{ranks} ranks: {false_ones} of 60");
        }
        let rotating = |number: i64, rank: usize| {
            let first = (number * 7919 % 8) as usize;
            5_000 * i64::from(rank == first || rank == (first + 3) % 8)
        };
        assert!(play_behind(8, 400, 10, rotating).is_empty());
        let within_error = |_, rank: usize| 9 * i64::from(rank == 2);
        assert!(play_behind(8, 400, 10, within_error).is_empty());
        let mut noise = Noise(3);
        let two = |_, rank: usize| noise.below(1_000) + 3_000 * i64::from(rank == 2 || rank == 6);
        assert_eq!(play_behind(8, 60, 10, two), [2, 6]);
    }
}
