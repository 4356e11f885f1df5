//! Finds slow networks: matched collectives go in, and ranks or pairs of ranks come out whose collectives take longer than the others' once
//! all have arrived.
//!
//! Two things show it. The part of one rank ends later than the median rank's, in collectives whose kernels end together otherwise. Or
//! collectives of one size that different groups of ranks run, such as messages between neighbours, take longer in some groups than in all
//! others: where one rank is in each of the slow groups, and in no other, the rank is named, and else the groups.
//!
//! What this cannot know: which rank is at fault where all ranks are in all collectives and end together, since each waits for the slowest. Nor
//! whether links between machines are slow, as they are slower by their nature than those within a machine: they are compared among themselves.

use super::bandwidth::{message_bytes, time_ns};
use super::chance::{BehindMedian, LateRanks};
use super::clocks::Clocks;
use super::digest::RankDigest;
use super::matched::{Matched, later_parts, median_part};
use gapscope_timeline::collectives::facts;
use gapscope_timeline::intervals::Interval;
use gapscope_timeline::quantity::{Nanoseconds, Percent, count_of, ratio};
use gapscope_timeline::rank_list::list;
use gapscope_timeline::thresholds::{ADVICE_SHARE, FALSE_BLAME, OUTLIER_MOST, OUTLIER_SHARE};
use schemars::JsonSchema;
use serde::Serialize;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

/// The number of groups of ranks from which on a slow one is unlike the others.
const LEAST_GROUPS: usize = 3;

/// A rank whose network is slow, or ranks among which it is.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct SlowLink {
    /// The numbers of the ranks: one where it is that rank's network, else those whose collectives with each other are slow.
    pub ranks: Vec<u32>,
    /// What shows it.
    pub basis: SlowLinkBasis,
    /// The kind of the collectives; absent for ends in collectives of several kinds.
    pub kind: Option<&'static str>,
    /// The number of the slow collectives.
    pub count: u64,
    /// The median time of the slow ones from the last arrival to the end, or the mean where the basis is the ends, in nanoseconds.
    pub time_ns: i64,
    /// The same of the others.
    pub usual_ns: i64,
    /// `time_ns` over `usual_ns`.
    pub ratio: f64,
    /// The time that the slow ones take longer, in all.
    pub cost_ns: i64,
    /// The finding in a sentence.
    pub sentence: String,
}

/// What shows a slow network.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum SlowLinkBasis {
    /// The rank's parts end later than the others'.
    LateEnds,
    /// Collectives with the rank, or among the ranks, take longer than the same among others.
    Groups,
}

/// Collectives that can be compared with each other: their kind, the number of ranks, the bytes of a message, and whether they cross machines.
type Alike = (&'static str, u32, u64, bool);

/// The times of collectives after the last arrival.
pub(super) struct Links<'a> {
    ranks: &'a [&'a RankDigest],
    /// The times of each group of ranks, by what can be compared.
    groups: BTreeMap<Alike, BTreeMap<Vec<usize>, Vec<i64>>>,
    /// By how much the parts of ranks end later than the median rank's.
    ends: LateRanks,
    /// The sums of the times after the last arrival: those of each rank, the median rank's, and the number of collectives.
    tails: BTreeMap<usize, (i64, i64, u64)>,
}

impl<'a> Links<'a> {
    pub(super) fn new(ranks: &'a [&'a RankDigest]) -> Links<'a> {
        Links {
            ranks,
            groups: BTreeMap::new(),
            ends: LateRanks::default(),
            tails: BTreeMap::new(),
        }
    }

    /// Adds a collective whose parts are of one.
    pub(super) fn add(&mut self, one: &Matched, clocks: &Clocks) {
        if let (Some(bytes), Some(ns)) = (message_bytes(one), time_ns(one, clocks)) {
            let group: Vec<usize> = one.parts.iter().map(|(rank, _)| *rank).collect();
            let machine = |rank: &usize| self.ranks[*rank].row.machine.as_deref();
            let crosses = group.iter().any(|rank| machine(rank) != machine(&group[0]));
            let alike = (one.kind, one.size, bytes, crosses);
            let groups = self.groups.entry(alike).or_default();
            groups.entry(group).or_default().push(ns);
        }
        self.add_ends(one, clocks);
    }

    /// Adds the ends of the parts, for kinds whose kernels end together.
    fn add_ends(&mut self, one: &Matched, clocks: &Clocks) {
        if facts(one.kind).is_none_or(|facts| facts.may_end_early) {
            return;
        }
        let arrived_ns = one
            .parts
            .iter()
            .map(|(_, part)| part.interval.start_ns)
            .max();
        let (Some(arrived_ns), Some(median)) =
            (arrived_ns, median_part(one, |part| part.interval.end_ns))
        else {
            return;
        };
        let error_ns = |a, b| clocks.device_error_ns(a, b);
        let (first, _) = one.parts[median];
        if one
            .parts
            .iter()
            .any(|(rank, _)| error_ns(*rank, first).is_none())
        {
            return;
        }
        let tail_ns = |at: usize| {
            one.parts[at]
                .1
                .interval
                .end_ns
                .saturating_sub(arrived_ns)
                .max(0)
        };
        for (at, (rank, _)) in one.parts.iter().enumerate() {
            let (own_ns, usual_ns, count) = self.tails.entry(*rank).or_default();
            *own_ns = own_ns.saturating_add(tail_ns(at));
            *usual_ns = usual_ns.saturating_add(tail_ns(median));
            *count += 1;
        }
        let later = later_parts(one, median, |part| part.interval.end_ns, error_ns);
        let starts = one.parts.iter().map(|(_, part)| part.interval.start_ns);
        let ends = one.parts.iter().map(|(_, part)| part.interval.end_ns);
        if let (Some(start_ns), Some(end_ns)) = (starts.min(), ends.max()) {
            self.ends.add_behind(BehindMedian {
                communicator: one.communicator,
                ranks: one.parts.len(),
                time: Interval::new(start_ns, end_ns),
                late: (later.into_iter())
                    .map(|(at, ns, error_ns)| (one.parts[at].0, ns, error_ns))
                    .collect(),
            });
        }
    }

    /// Returns the slow ones, the most costly first.
    pub(super) fn slow(self) -> Vec<SlowLink> {
        let mut slow = self.late_ends();
        for (alike, groups) in &self.groups {
            slow.extend(self.slow_groups(*alike, groups));
        }
        slow.sort_by_key(|link| Reverse(link.cost_ns));
        slow
    }

    /// Returns the ranks whose parts end later than the median rank's, by more than chance and by a share of the time worth telling.
    fn late_ends(&self) -> Vec<SlowLink> {
        let late = self.ends.beyond_chance(FALSE_BLAME / 2.0).into_iter();
        late.filter_map(|late| {
            let (own_ns, all_usual_ns, count) = *self.tails.get(&late.rank)?;
            let longer = ratio(own_ns, all_usual_ns);
            let whole_ns = late.whole.length_ns() as f64;
            let is_material = late.lead_ns as f64 >= ADVICE_SHARE * whole_ns;
            (is_material && longer > 1.0 + OUTLIER_SHARE).then_some(())?;
            let each = |ns: i64| (i128::from(ns) / i128::from(count.max(1))) as i64;
            let (rank, time_ns, usual_ns) = (self.number(late.rank), each(own_ns), each(all_usual_ns));
            Some(SlowLink {
                ranks: vec![rank],
                basis: SlowLinkBasis::LateEnds,
                kind: None,
                count,
                time_ns,
                usual_ns,
                ratio: longer,
                cost_ns: late.lead_ns,
                sentence: format!(
                    "Rank {rank} ends collectives later than the others, by {} in all: once all ranks have arrived, its part takes {} on average, \
                     the median rank's {}. Its network is slower than the others', or its device runs them slower.",
                    Nanoseconds(late.lead_ns),
                    Nanoseconds(time_ns),
                    Nanoseconds(usual_ns),
                ),
            })
        })
        .collect()
    }

    fn number(&self, rank: usize) -> u32 {
        self.ranks[rank].row.rank
    }

    /// Returns the groups of ranks whose collectives take longer than those of all other groups together: as one rank where that is what they
    /// have in common.
    fn slow_groups(
        &self,
        (kind, ..): Alike,
        groups: &BTreeMap<Vec<usize>, Vec<i64>>,
    ) -> Vec<SlowLink> {
        if groups.len() < LEAST_GROUPS {
            return Vec::new();
        }
        let all: Vec<i64> = groups.values().flatten().copied().collect();
        let Some(usual_ns) = quantile(all, 0.5) else {
            return Vec::new();
        };
        let is_slower = |times: &[i64]| {
            let median = quantile(times.to_vec(), 0.5);
            median.is_some_and(|ns| ratio(ns, usual_ns) > 1.0 + OUTLIER_SHARE)
        };
        // The groups that look slow are compared with those that do not, so that they do not hide each other.
        let (suspects, others): (Vec<_>, Vec<_>) =
            groups.iter().partition(|(_, times)| is_slower(times));
        let normal: Vec<i64> = others
            .iter()
            .flat_map(|(_, times)| times.iter().copied())
            .collect();
        let most = FALSE_BLAME / groups.len() as f64;
        let is_slow = |times: &[i64]| chance_of_slow(times, &normal) <= most;
        let slow: Vec<(&Vec<usize>, &Vec<i64>)> = suspects
            .into_iter()
            .filter(|(_, times)| is_slow(times))
            .collect();
        let part = ratio(slow.len() as i64, groups.len() as i64);
        let normal_ns = quantile(normal, 0.5).unwrap_or(usual_ns);
        let common = slow
            .iter()
            .map(|(group, _)| group.iter().copied().collect::<BTreeSet<usize>>());
        let common = common.reduce(|a, b| &a & &b).unwrap_or_default();
        let only_slow = |rank: &&usize| {
            let own = groups.keys().filter(|group| group.contains(*rank));
            own.count() == slow.len()
        };
        let mut only = common.iter().filter(only_slow);
        match (slow.len(), only.next(), only.next()) {
            (2.., Some(rank), None) if part <= 0.5 => {
                let times: Vec<i64> = slow
                    .iter()
                    .flat_map(|(_, times)| times.iter().copied())
                    .collect();
                vec![self.row(kind, &[*rank], times, normal_ns)]
            }
            // More groups that are slow are of another kind, such as those without a fast link.
            _ if part > OUTLIER_MOST => Vec::new(),
            _ => (slow.into_iter())
                .map(|(group, times)| self.row(kind, group, times.clone(), normal_ns))
                .collect(),
        }
        .into_iter()
        .flatten()
        .collect()
    }

    fn row(
        &self,
        kind: &'static str,
        ranks: &[usize],
        times: Vec<i64>,
        usual_ns: i64,
    ) -> Option<SlowLink> {
        let count = times.len() as u64;
        let sum_ns = times.iter().fold(0i64, |sum, ns| sum.saturating_add(*ns));
        let time_ns = quantile(times, 0.5)?;
        let cost_ns = sum_ns
            .saturating_sub(usual_ns.saturating_mul(count as i64))
            .max(0);
        let windows = ranks
            .iter()
            .filter_map(|rank| Some(self.ranks[*rank].row.idle?.window_ns));
        let window_ns = windows.max().unwrap_or(0);
        (cost_ns as f64 >= ADVICE_SHARE * window_ns as f64).then_some(())?;
        let ranks: Vec<u32> = ranks.iter().map(|rank| self.number(*rank)).collect();
        let longer = ratio(time_ns, usual_ns);
        let calls = count_of(count, "collective", "collectives");
        let among = match ranks.as_slice() {
            [rank] => format!("with rank {rank}"),
            several => format!("among ranks {}", list(several)),
        };
        let fault = match ranks.len() {
            1 => "its network is slower than the others'",
            _ => "the links between them are slower, or the network of one of them is",
        };
        let sentence = format!(
            "{kind} {among} takes {} longer than among others, once all have arrived ({} instead of {}, {calls}): {fault}.",
            Percent(longer - 1.0),
            Nanoseconds(time_ns),
            Nanoseconds(usual_ns),
        );
        Some(SlowLink {
            ranks,
            basis: SlowLinkBasis::Groups,
            kind: Some(kind),
            count,
            time_ns,
            usual_ns,
            ratio: longer,
            cost_ns,
            sentence,
        })
    }
}

/// Returns the value below which a share of the values lies.
fn quantile(mut values: Vec<i64>, share: f64) -> Option<i64> {
    let last = values.len().checked_sub(1)?;
    let at = (last as f64 * share) as usize;
    Some(*values.select_nth_unstable(at).1)
}

/// Returns the probability that at least as many of a group's times as here are in the upper quarter of the usual times, if they are no other.
fn chance_of_slow(times: &[i64], usual: &[i64]) -> f64 {
    const UPPER: f64 = 0.25;
    let Some(least_ns) = quantile(usual.to_vec(), 1.0 - UPPER) else {
        return 1.0;
    };
    let above = times.iter().filter(|ns| **ns > least_ns).count();
    let n = times.len() as f64;
    // Chernoff's bound of the tail of a binomial distribution.
    let share = above as f64 / n;
    if above == 0 || share <= UPPER {
        return 1.0;
    }
    let part = |share: f64, usual: f64| match share > 0.0 {
        true => share * (share / usual).ln(),
        false => 0.0,
    };
    (-n * (part(share, UPPER) + part(1.0 - share, 1.0 - UPPER))).exp()
}
