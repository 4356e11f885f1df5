//! Compares the arrivals of ranks at matched collectives (operations of several ranks; a rank arrives with the start
//! of its kernel): skews (from the first arrival to the last), waits, and the rank that was last. After
//! [`Comparison::add`] for each collective, the results are taken, [`Comparison::kinds`] last.

use super::chance::{BehindMedian, LastArrival, LateRank, LateRanks};
use super::digest::RankDigest;
use super::findings::{Arrival, Collective, CollectiveKind, LateRankRow, Straggler, WhyLate};
use super::late::{LateCause, Lateness, LatenessByCommunicator, UsualParts};
use super::late_group::{Arrived, LateGroup};
use super::late_reason;
use super::matched::{KindCounts, Matched, later_parts, median_part};
use super::part::CollectivePart;
use super::rank_row::RankRow;
use gapscope_timeline::collectives::{SEND_RECV, facts};
use gapscope_timeline::durations::Durations;
use gapscope_timeline::intervals::{Interval, length_ns, union};
use gapscope_timeline::quantity::ratio;
use gapscope_timeline::thresholds::{ADVICE_SHARE, FALSE_BLAME, LATE_CAUSE_SHARE, LATE_PART_SHARE};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

/// The number of collectives that are kept besides those that will be listed. Beyond it, those with small skews are
/// dropped.
const KEPT: usize = 1_000;

/// A comparison of the arrivals at all collectives.
pub(super) struct Comparison {
    /// The row of each rank, by the rank's index.
    rows: Vec<RankRow>,
    /// For each rank, the times for which it waited for other ranks.
    waits: Vec<Vec<Interval>>,
    /// For each rank, what it did for longer than the others where it was last.
    late: Vec<LatenessByCommunicator>,
    /// For each rank, the leads of its late arrivals.
    leads: LateRanks,
    /// For each rank, by how much it arrived later than the median rank.
    behind: LateRanks,
    /// For each rank, by how much it arrived earlier than the median rank.
    ahead: LateRanks,
    /// For each rank, the sum of the times from the median arrival to its own; negative where it is earlier.
    offset_ns: Vec<i64>,
    /// For each rank, the number of collectives at which it arrived earlier than the median rank, by more than the clocks' error.
    ahead_count: Vec<u64>,
    /// For each rank, what it did for longer than the mean of all ranks.
    unlike_mean: Vec<LatenessByCommunicator>,
    /// For each rank, what it did for longer than the ranks that were not late, where it arrived later than the median rank.
    late_of_several: Vec<LatenessByCommunicator>,
    /// For each rank, the number of collectives at which it arrived later than the median rank, by more than the clocks' error.
    behind_count: Vec<u64>,
    /// The number of collectives of which that is known.
    ordered_count: u64,
    /// The arrivals at the collectives that tell lateness.
    arrived: Arrived,
    kinds: BTreeMap<&'static str, Compared>,
    /// The collectives with the greatest skews, and some more.
    all: Vec<Collective>,
    /// The number of collectives to list.
    longest: usize,
}

/// The share of programs of equal ranks in which one may be called late by its leads.
const BY_LEADS: f64 = FALSE_BLAME / 2.0;
/// The same by what is earlier than the median rank.
const BY_EARLINESS: f64 = FALSE_BLAME / 4.0;
/// The same by what is later than the median rank.
const BY_LATENESS: f64 = FALSE_BLAME * 3.0 / 16.0;
/// The same by turns.
const BY_TURNS: f64 = FALSE_BLAME / 16.0;

/// The figures of the collectives of one kind.
#[derive(Default)]
struct Compared {
    matched: u64,
    /// The number of collectives whose arrivals can be compared.
    comparable: u64,
    /// The number of those that cannot be one collective.
    contradictory: u64,
    /// The number of skews within the clocks' error.
    uncertain: u64,
    /// The number of other skews without a certain last rank.
    last_unknown: u64,
    /// The skews above the clocks' error, in nanoseconds.
    skews: Vec<i64>,
}

impl Comparison {
    /// Returns a comparison of ranks that will list the `longest` collectives with the greatest skews.
    pub(super) fn new(digests: &[&RankDigest], longest: usize) -> Comparison {
        Comparison {
            rows: digests.iter().map(|d| d.row.clone()).collect(),
            waits: vec![Vec::new(); digests.len()],
            late: vec![LatenessByCommunicator::default(); digests.len()],
            leads: LateRanks::default(),
            behind: LateRanks::default(),
            ahead: LateRanks::default(),
            offset_ns: vec![0; digests.len()],
            ahead_count: vec![0; digests.len()],
            unlike_mean: vec![LatenessByCommunicator::default(); digests.len()],
            late_of_several: vec![LatenessByCommunicator::default(); digests.len()],
            behind_count: vec![0; digests.len()],
            ordered_count: 0,
            arrived: Arrived::default(),
            kinds: BTreeMap::new(),
            all: Vec::new(),
            longest,
        }
    }

    /// Adds a collective, whose parts (one of each rank) are kernels if `overlaps`, and whose last rank kept the others
    /// waiting if `tells_lateness`. `error_ns` returns the error of the times of two ranks (indices), or `None` if they
    /// cannot be compared. Returns false where the parts cannot be of one collective.
    pub(super) fn add(
        &mut self,
        one: &Matched,
        error_ns: impl Fn(usize, usize) -> Option<i64>,
        overlaps: bool,
        tells_lateness: bool,
    ) -> bool {
        let compared = self.kinds.entry(one.kind).or_default();
        compared.matched += 1;
        let bytes: BTreeSet<u64> = one.parts.iter().filter_map(|(_, p)| p.bytes).collect();
        let contradicts = one.kind != SEND_RECV && bytes.len() > 1;
        if one.may_be_shifted {
            return false;
        }
        let start_ns = |at: usize| one.parts[at].1.interval.start_ns;
        let of_parts = 0..one.parts.len();
        let (Some(first), Some(last)) = (
            of_parts.clone().min_by_key(|at| start_ns(*at)),
            of_parts.clone().min_by_key(|at| Reverse(start_ns(*at))),
        ) else {
            return false;
        };
        // The error of each arrival against the last, or `None` where one cannot be compared.
        let against_last = of_parts.clone().map(|at| match at == last {
            true => Some(0),
            false => error_ns(one.parts[at].0, one.parts[last].0),
        });
        let Some(errors) = against_last.collect::<Option<Vec<i64>>>() else {
            return !contradicts;
        };
        compared.comparable += 1;
        let early = !overlaps || facts(one.kind).is_some_and(|facts| facts.may_end_early);
        let apart = |at: usize| {
            let end_ns = one.parts[at].1.interval.end_ns;
            start_ns(last) > end_ns.saturating_add(errors[at])
        };
        if contradicts || !early && of_parts.clone().any(apart) {
            compared.contradictory += 1;
            return false;
        }
        for (at, _) in &one.parts {
            let row = &mut self.rows[*at];
            row.waited_ns.get_or_insert(0);
            row.last_count.get_or_insert(0);
            row.last_skew_ns.get_or_insert(0);
        }
        let late_ns = |at: usize| start_ns(last).saturating_sub(start_ns(at));
        for at in of_parts.clone() {
            if late_ns(at) > errors[at] {
                let wait = Interval::new(start_ns(at), start_ns(last));
                self.waits[one.parts[at].0].push(wait);
            }
        }
        let skew_ns = late_ns(first);
        let others = of_parts.clone().filter(|at| *at != last);
        let second = others.clone().min_by_key(|at| late_ns(*at));
        if let Some(second) = second.filter(|_| tells_lateness) {
            let third_ns = others.filter(|at| *at != second).map(late_ns).min();
            self.leads.add(&LastArrival {
                communicator: one.communicator,
                ranks: one.parts.len(),
                time: Interval::new(start_ns(first), start_ns(last)),
                rank: one.parts[last].0,
                lead_ns: late_ns(second),
                second: one.parts[second].0,
                second_lead_ns: third_ns.map_or(i64::MAX, |ns| ns.saturating_sub(late_ns(second))),
                error_ns: errors[second],
            });
        }
        if tells_lateness {
            self.arrived.add(one);
            self.add_behind(one, &error_ns);
            self.add_ahead(one, &error_ns);
        }
        let compared = self.kinds.entry(one.kind).or_default();
        if skew_ns <= errors[first] {
            compared.uncertain += 1;
            return true;
        }
        compared.skews.push(skew_ns);
        let rank = one.parts[last].0;
        if of_parts
            .clone()
            .any(|at| at != last && late_ns(at) <= errors[at])
        {
            compared.last_unknown += 1;
        } else if tells_lateness {
            let row = &mut self.rows[rank];
            row.last_count = row.last_count.map(|count| count + 1);
            row.last_skew_ns = row.last_skew_ns.map(|ns| ns.saturating_add(skew_ns));
            if let Some(usual) = UsualParts::new(one, of_parts.clone().filter(|at| *at != last)) {
                self.late[rank].add(one, one.parts[last].1, &usual, errors[first]);
            }
        }
        let mut arrivals: Vec<Arrival> = of_parts
            .map(|at| {
                let (rank, part) = one.parts[at];
                Arrival {
                    rank: self.rows[rank].rank,
                    start_ns: start_ns(at),
                    end_ns: part.interval.end_ns,
                    queue: part.queue,
                    waited_ns: Some(late_ns(at)).filter(|ns| *ns > errors[at]),
                }
            })
            .collect();
        arrivals.sort_by_key(|arrival| (arrival.start_ns, arrival.rank));
        self.all.push(Collective {
            arrivals,
            kind: one.kind,
            communicator: one.communicator,
            number: one.number,
            first_ns: start_ns(first),
            skew_ns,
            first_rank: self.rows[one.parts[first].0].rank,
            last_rank: self.rows[rank].rank,
        });
        // Few of a million collectives are kept.
        if self.all.len() > 2 * self.longest + KEPT {
            self.keep_longest();
        }
        true
    }

    /// Adds the ranks that arrived later than the median rank. Of two ranks one is the median, so that they are told by their leads alone.
    fn add_behind(&mut self, one: &Matched, error_ns: impl Fn(usize, usize) -> Option<i64>) {
        let Some(median) = median_part(one, |part| part.interval.start_ns) else {
            return;
        };
        let behind = later_parts(one, median, |part| part.interval.start_ns, error_ns);
        self.ordered_count += 1;
        let certain = |late: &&(usize, i64, i64)| late.1 > late.2;
        if behind.iter().any(|late| certain(&late)) {
            let is_late = |at: &usize| behind.iter().any(|late| late.0 == *at && late.1 > late.2);
            let in_time = (0..one.parts.len()).filter(|at| !is_late(at));
            let usual = UsualParts::new(one, in_time);
            for (at, _, error_ns) in behind.iter().filter(certain) {
                let (rank, part) = one.parts[*at];
                self.behind_count[rank] += 1;
                if let Some(usual) = &usual {
                    self.late_of_several[rank].add(one, part, usual, *error_ns);
                }
            }
        }
        let start_ns = one.parts[median].1.interval.start_ns;
        let latest_ns = behind.iter().map(|(_, ns, _)| *ns).max().unwrap_or(0);
        self.behind.add_behind(BehindMedian {
            communicator: one.communicator,
            ranks: one.parts.len(),
            time: Interval::new(start_ns, start_ns.saturating_add(latest_ns)),
            late: (behind.into_iter())
                .map(|(at, ns, error_ns)| (one.parts[at].0, ns, error_ns))
                .collect(),
        });
    }

    /// Adds the ranks that arrived earlier than the median rank: of an even number the upper middle one, as the lower one may be early.
    fn add_ahead(&mut self, one: &Matched, error_ns: impl Fn(usize, usize) -> Option<i64>) {
        let earliness = |part: &CollectivePart| part.interval.start_ns.saturating_neg();
        let Some(median) = median_part(one, earliness) else {
            return;
        };
        let ahead = later_parts(one, median, earliness, error_ns);
        let start_ns = one.parts[median].1.interval.start_ns;
        for (rank, part) in &one.parts {
            let offset_ns = part.interval.start_ns.saturating_sub(start_ns);
            self.offset_ns[*rank] = self.offset_ns[*rank].saturating_add(offset_ns);
        }
        if let Some(usual) = UsualParts::new(one, 0..one.parts.len()) {
            for (rank, part) in &one.parts {
                self.unlike_mean[*rank].add(one, part, &usual, 0);
            }
        }
        for (at, ..) in ahead.iter().filter(|(_, ns, error_ns)| ns > error_ns) {
            self.ahead_count[one.parts[*at].0] += 1;
        }
        let earliest_ns = ahead.iter().map(|(_, ns, _)| *ns).max().unwrap_or(0);
        self.ahead.add_behind(BehindMedian {
            communicator: one.communicator,
            ranks: one.parts.len(),
            time: Interval::new(start_ns.saturating_sub(earliest_ns), start_ns),
            late: (ahead.into_iter())
                .map(|(at, ns, error_ns)| (one.parts[at].0, ns, error_ns))
                .collect(),
        });
    }

    /// Returns the ranks that are late by more than chance, where that costs a share of the time worth telling: those later than the
    /// median rank, and all but those in time where the median rank is late itself.
    pub(super) fn late_ranks(&self, digests: &[&RankDigest]) -> Vec<LateRankRow> {
        let counts =
            |late: &LateRank| late.lead_ns as f64 >= ADVICE_SHARE * late.whole.length_ns() as f64;
        let mut late = self.behind.beyond_chance(BY_LATENESS);
        late.retain(counts);
        late.extend(
            self.behind
                .in_turns(&late, BY_TURNS)
                .into_iter()
                .filter(counts),
        );
        let mut early = self.ahead.beyond_chance(BY_EARLINESS);
        early.retain(counts);
        let is_in = |set: &[LateRank], rank: usize| set.iter().any(|row| row.rank == rank);
        let took_part = |rank: &usize| self.rows[*rank].last_count.is_some();
        let usual: Vec<usize> = (0..digests.len())
            .filter(|rank| took_part(rank) && !is_in(&late, *rank) && !is_in(&early, *rank))
            .collect();
        let all = (0..digests.len()).filter(took_part).count();
        let row = |late_rank: &LateRank| {
            let others = (0..digests.len()).filter(|rank| !is_in(&late, *rank));
            let why = WhyLate::new(
                late_rank,
                &self.late_of_several[late_rank.rank].greatest(),
                digests,
                others,
            );
            let count = self.behind_count[late_rank.rank];
            self.late_row(late_rank, count, Vec::new(), why)
        };
        let mut rows: Vec<LateRankRow> = late.iter().map(row).collect();
        // Where ranks between the late and the early ones are most of all, they are the usual ones.
        if let (Some(first), true) = (early.first(), late.is_empty() || 2 * usual.len() <= all) {
            let in_time: Vec<usize> = early.iter().map(|row| row.rank).collect();
            let latest_ns = in_time.iter().map(|rank| self.offset_ns[*rank]).max();
            let count = in_time.iter().map(|rank| self.ahead_count[*rank]).min();
            let mut numbers: Vec<u32> = in_time.iter().map(|rank| self.rows[*rank].rank).collect();
            numbers.sort_unstable();
            rows.extend(usual.iter().map(|rank| {
                let late_rank = LateRank {
                    rank: *rank,
                    lead_ns: self.offset_ns[*rank].saturating_sub(latest_ns.unwrap_or(0)),
                    ..*first
                };
                let others: Vec<&LatenessByCommunicator> =
                    in_time.iter().map(|at| &self.unlike_mean[*at]).collect();
                let lateness = self.unlike_mean[*rank].against(&others);
                let why = WhyLate::new(&late_rank, &lateness, digests, in_time.iter().copied());
                self.late_row(&late_rank, count.unwrap_or(0), numbers.clone(), why)
            }));
            rows.retain(|row| row.late_ns > 0);
        }
        rows.sort_by_key(|row| (Reverse(row.late_ns), row.rank));
        rows
    }

    fn late_row(
        &self,
        late: &LateRank,
        late_count: u64,
        later_than: Vec<u32>,
        why: WhyLate,
    ) -> LateRankRow {
        LateRankRow {
            rank: self.rows[late.rank].rank,
            late_count,
            of_count: self.ordered_count,
            late_ns: late.lead_ns,
            group_count: self.arrived.group_count(late.rank),
            later_than,
            chance: late.chance,
            why,
        }
    }

    /// Returns the row of each rank, with the time that it waited, overlaps counted once. Empties the rows, so that
    /// [`Self::straggler`] must be asked before.
    pub(super) fn rows(&mut self) -> Vec<RankRow> {
        for (row, waits) in self.rows.iter_mut().zip(&mut self.waits) {
            union(waits);
            row.waited_ns = row.waited_ns.map(|_| length_ns(waits));
        }
        std::mem::take(&mut self.rows)
    }

    /// Sorts the kept collectives by skew, and drops all but those that will be listed.
    fn keep_longest(&mut self) {
        self.all.sort_by_key(|c| (Reverse(c.skew_ns), c.first_ns));
        self.all.truncate(self.longest);
    }

    /// Returns the collectives with the greatest skews.
    pub(super) fn longest(&mut self) -> Vec<Collective> {
        self.keep_longest();
        std::mem::take(&mut self.all)
    }

    /// Returns the kinds of collectives, the greatest sum of skews first.
    pub(super) fn kinds(
        mut self,
        counts: BTreeMap<&'static str, KindCounts>,
    ) -> Vec<CollectiveKind> {
        let row = |(kind, counts): (_, KindCounts)| {
            let mut compared = self.kinds.remove(kind).unwrap_or_default();
            // Which are one is not known, so that their skews mean nothing.
            if counts.unequal && counts.order_alone {
                compared = Compared {
                    matched: compared.matched,
                    ..Compared::default()
                };
            }
            let known = |count: u64| (compared.comparable > 0).then_some(count);
            CollectiveKind {
                kind,
                matched_count: compared.matched,
                counts: counts.counts,
                unassigned_count: counts.unassigned,
                incomplete_count: counts.incomplete,
                unequal: counts.unequal,
                unpaired_count: counts.unpaired,
                by_order_alone: counts.order_alone,
                shifted_count: counts.shifted,
                contradictory_count: known(compared.contradictory),
                uncertain_count: known(compared.uncertain),
                last_unknown_count: known(compared.last_unknown),
                skew: Durations::from_slice(&mut compared.skews),
            }
        };
        let mut rows: Vec<CollectiveKind> = counts.into_iter().map(row).collect();
        rows.sort_by_key(|row| Reverse(row.skew.total_ns));
        rows
    }

    /// Returns the rank that the others wait for most and by more than chance, if there is one. Where it is one of several late ranks,
    /// it must be beyond chance among these, too.
    pub(super) fn straggler(
        &self,
        digests: &[&RankDigest],
        late_ranks: &[LateRankRow],
    ) -> Option<Straggler> {
        let late = self.leads.beyond_chance(BY_LEADS).into_iter();
        let late = late.max_by_key(|late| (late.lead_ns, Reverse(late.rank)))?;
        let worst = late.rank;
        let is_late = |at: &usize| late_ranks.iter().any(|row| row.rank == self.rows[*at].rank);
        let together: BTreeSet<usize> = (0..self.rows.len()).filter(is_late).collect();
        if together.contains(&worst) && together.len() > 1 {
            let mut again = self
                .leads
                .among(&together)
                .beyond_chance(BY_LEADS)
                .into_iter();
            again.find(|late| late.rank == worst)?;
        }
        let rows = self.rows.iter();
        let total_ns = (rows.clone().filter_map(|row| row.last_skew_ns))
            .fold(0i64, |sum, ns| sum.saturating_add(ns));
        let row = &self.rows[worst];
        let (last_count, skew_ns) = (row.last_count?, row.last_skew_ns?);
        let others = (0..digests.len()).filter(|rank| *rank != worst);
        let why = WhyLate::new(&late, &self.late[late.rank].greatest(), digests, others);
        Some(Straggler {
            rank: row.rank,
            last_count,
            of_count: rows.filter_map(|row| row.last_count).sum(),
            skew_ns,
            group_count: self.arrived.group_count(worst),
            share: ratio(skew_ns, total_ns),
            cost_ns: late.lead_ns,
            chance: late.chance,
            why,
        })
    }
}

impl Comparison {
    /// Returns the late ranks that the others wait for.
    pub(super) fn late_group(
        &self,
        straggler: Option<&Straggler>,
        late_ranks: &[LateRankRow],
    ) -> Option<LateGroup> {
        let late = late_ranks.iter().map(|row| row.rank);
        let late: BTreeSet<u32> = late.chain(straggler.map(|row| row.rank)).collect();
        let all = 0..self.rows.len();
        let late: Vec<usize> = all
            .filter(|at| late.contains(&self.rows[*at].rank))
            .collect();
        self.arrived.group(&late, |at| self.rows[at].rank)
    }
}

/// Returns the stretch of a rank's lateness, where that is a part of the time only.
fn part_of_time(late: &LateRank) -> Option<Interval> {
    let most_ns = LATE_PART_SHARE * late.whole.length_ns() as f64;
    (late.stretch.length_ns() as f64 <= most_ns).then_some(late.stretch)
}

impl WhyLate {
    /// Finds what made a rank late, whose work is compared with that of `others`. `digests` are by rank.
    fn new(
        late: &LateRank,
        lateness: &Lateness,
        digests: &[&RankDigest],
        others: impl Iterator<Item = usize>,
    ) -> WhyLate {
        let ranks = late_reason::Ranks {
            late: digests[late.rank],
            others: others.map(|rank| digests[rank]).collect(),
            stretch: part_of_time(late),
        };
        let longer = lateness.causes();
        let named = |cause: &&LateCause| cause.share >= LATE_CAUSE_SHARE;
        let cause = longer.first().filter(named).copied();
        let explained = cause.map(|cause| late_reason::reason(&cause, lateness, &ranks));
        let (reason, evidence) = explained.unzip();
        WhyLate {
            stretch: ranks.stretch,
            cause,
            reason: reason.flatten(),
            evidence,
            longer,
        }
    }
}
