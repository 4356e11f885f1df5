//! Finds which late ranks must be in time together for the others to wait less, and by how much.
//!
//! At each collective the others wait for the last arrival. Without the lateness of some ranks they would wait for the last of the other ranks:
//! the difference, added up over the collectives of a rank, is the most that it can bring to that rank. The rank with the greatest sum bounds
//! what it can bring to the run: lateness goes from one communicator to the next, where other ranks wait for it again. Of ranks that are late
//! alike, one alone brings nothing, since the others wait for the next one all the same.

use super::matched::Matched;
use gapscope_timeline::quantity::Nanoseconds;
use gapscope_timeline::rank_list::named;
use gapscope_timeline::thresholds::{LATE_GROUP_SHARE, LATE_TOGETHER_SHARE};
use gapscope_timeline::vocabulary::capitalized;
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::BTreeMap;

/// The maximum number of arrivals that are kept of a collective: the latest ones and the first.
const KEPT_ARRIVALS: usize = 32;

/// Of more late ranks than these none is left out, as each would have to be tried.
const MAX_TRIED: usize = 8;

/// The ranks that the others wait for, and what their lateness costs the others.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct LateGroup {
    /// The numbers of the ranks; one where the others wait for it alone.
    pub ranks: Vec<u32>,
    /// How they are late.
    pub how: LateHow,
    /// Each of the others would have waited at most so much less without the lateness of all these ranks, in nanoseconds.
    pub cost_ns: i64,
    /// The same without the lateness of one of them alone, in the order of `ranks`.
    pub alone: Vec<LateAlone>,
    /// The group in one sentence. Absent where it is one rank, which has a sentence of its own.
    pub sentence: Option<String>,
}

/// How ranks of a group are late.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum LateHow {
    /// It is one rank.
    Alone,
    /// The ranks are late at the same collectives, so that all of them but one in time bring next to nothing.
    Together,
    /// The ranks are late at different collectives.
    InTurns,
    /// The ranks are late at the same collectives by different times, or at some together and at others not.
    Both,
}

/// What the lateness of one rank of a group costs the others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
pub struct LateAlone {
    /// The number of the rank.
    pub rank: u32,
    /// Each of the others would have waited at most so much less had this rank alone been in time, in nanoseconds.
    pub cost_ns: i64,
}

/// The arrivals at one collective, the latest first, each by the index of the rank.
type Arrivals = Box<[(usize, i64)]>;

/// The arrivals at collectives.
#[derive(Debug, Default)]
pub(super) struct Arrived {
    /// For each set of ranks that take part together, by index, its collectives.
    of_sets: BTreeMap<Box<[usize]>, Vec<Arrivals>>,
}

impl Arrived {
    pub(super) fn add(&mut self, one: &Matched) {
        let parts = one.parts.iter();
        let mut arrivals: Vec<(usize, i64)> = parts
            .map(|(rank, part)| (*rank, part.interval.start_ns))
            .collect();
        arrivals.sort_unstable_by_key(|(rank, start_ns)| (std::cmp::Reverse(*start_ns), *rank));
        if let Some(first) = arrivals.get(KEPT_ARRIVALS..).and_then(<[_]>::last) {
            let first = *first;
            arrivals.truncate(KEPT_ARRIVALS - 1);
            arrivals.push(first);
        }
        let mut set: Box<[usize]> = one.parts.iter().map(|(rank, _)| *rank).collect();
        set.sort_unstable();
        let collectives = self.of_sets.entry(set).or_default();
        collectives.push(arrivals.into_boxed_slice());
    }

    /// Returns the number of sets of ranks with which a rank takes part.
    pub(super) fn group_count(&self, rank: usize) -> usize {
        let sets = self.of_sets.keys();
        sets.filter(|set| set.contains(&rank)).count()
    }

    /// Returns how much less any of the others would have waited, at most, without the lateness of some ranks.
    fn cost_ns(&self, of: &[usize]) -> i64 {
        let mut of_ranks: BTreeMap<usize, i64> = BTreeMap::new();
        for (set, collectives) in &self.of_sets {
            let costs = collectives.iter().filter_map(|arrivals| {
                let (_, last_ns) = arrivals.first()?;
                let others = arrivals.iter().find(|(rank, _)| !of.contains(rank));
                // Where all ranks of a communicator are late, they would wait for the first of them.
                let (_, next_ns) = others.or(arrivals.last())?;
                Some(last_ns.saturating_sub(*next_ns))
            });
            let cost_ns = costs.fold(0, i64::saturating_add);
            let all_are_late = set.iter().all(|rank| of.contains(rank));
            for rank in set.iter().filter(|rank| all_are_late || !of.contains(rank)) {
                let sum_ns = of_ranks.entry(*rank).or_default();
                *sum_ns = sum_ns.saturating_add(cost_ns);
            }
        }
        of_ranks.into_values().max().unwrap_or(0)
    }

    /// Returns those of the late ranks, given by index, whose lateness costs the others most of what all of it costs. `number` returns a
    /// rank's number.
    pub(super) fn group(&self, late: &[usize], number: impl Fn(usize) -> u32) -> Option<LateGroup> {
        let mut group = late.to_vec();
        group.sort_by_key(|rank| number(*rank));
        let needed_ns = LATE_GROUP_SHARE * self.cost_ns(&group) as f64;
        let without = |group: &[usize], rank: usize| -> Vec<usize> {
            group
                .iter()
                .copied()
                .filter(|other| *other != rank)
                .collect()
        };
        while (2..=MAX_TRIED).contains(&group.len()) {
            let smaller = group.iter().map(|rank| without(&group, *rank));
            let costs = smaller.map(|group| (self.cost_ns(&group), group));
            let Some((cost_ns, smaller)) = costs.max_by_key(|(cost_ns, _)| *cost_ns) else {
                break;
            };
            if (cost_ns as f64) < needed_ns {
                break;
            }
            group = smaller;
        }
        let cost_ns = self.cost_ns(&group);
        if cost_ns <= 0 {
            return None;
        }
        let alone = group.iter().map(|rank| LateAlone {
            rank: number(*rank),
            cost_ns: self.cost_ns(&[*rank]),
        });
        let mut found = LateGroup {
            ranks: group.iter().map(|rank| number(*rank)).collect(),
            how: LateHow::Alone,
            cost_ns,
            alone: alone.collect(),
            sentence: None,
        };
        found.how = found.how(|left_out| self.cost_ns(&without(&group, group[left_out])));
        found.sentence = found.sentence();
        Some(found)
    }
}

impl LateGroup {
    /// Returns how the ranks are late. `cost_without` returns what the lateness of all of them costs but of the one at an index.
    fn how(&self, cost_without: impl Fn(usize) -> i64) -> LateHow {
        let next_to_nothing =
            |cost_ns: i64| cost_ns as f64 <= LATE_TOGETHER_SHARE * self.cost_ns as f64;
        let costs = self.alone.iter().map(|alone| alone.cost_ns);
        let (sum_ns, most_ns) = costs.fold((0i64, 0), |(sum, most), ns| {
            (sum.saturating_add(ns), most.max(ns))
        });
        if self.ranks.len() < 2 {
            LateHow::Alone
        } else if next_to_nothing(most_ns)
            && (0..self.ranks.len()).map(cost_without).all(next_to_nothing)
        {
            LateHow::Together
        } else if sum_ns as f64 >= LATE_GROUP_SHARE * self.cost_ns as f64 && self.each_counts() {
            LateHow::InTurns
        } else {
            LateHow::Both
        }
    }

    /// Returns true where each rank alone has its part of the cost.
    fn each_counts(&self) -> bool {
        let least_ns = LATE_TOGETHER_SHARE * self.cost_ns as f64 / self.ranks.len() as f64;
        (self.alone.iter()).all(|alone| alone.cost_ns as f64 >= least_ns)
    }

    /// Returns the rank that brings most alone.
    pub fn most_alone(&self) -> Option<LateAlone> {
        self.alone.iter().copied().max_by_key(|alone| alone.cost_ns)
    }

    fn sentence(&self) -> Option<String> {
        let who = capitalized(&named(&self.ranks));
        let how = match self.how {
            LateHow::Alone => return None,
            LateHow::Together => "are late together",
            LateHow::InTurns => {
                "take turns in being late, so that none of them is the one to blame"
            }
            LateHow::Both => "are late",
        };
        let most = self.most_alone()?;
        Some(format!(
            "{who} {how}: without their lateness each of the others would have waited at most {} less, and without that of rank {} alone at most {}.",
            Nanoseconds(self.cost_ns),
            most.rank,
            Nanoseconds(most.cost_ns),
        ))
    }
}
