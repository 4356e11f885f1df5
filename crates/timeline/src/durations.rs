//! Computes statistics of durations, such as their median, of lists and of large groups that are not kept in memory.

use schemars::JsonSchema;
use serde::Serialize;
use std::ops::Range;

/// Statistics of durations in nanoseconds. All but the count are absent when the count is 0.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, JsonSchema)]
pub struct Durations {
    /// How many durations are known and counted.
    pub timed_count: u64,
    /// Their sum. Work that ran at the same time counts more than once: see the union beside it.
    pub total_ns: Option<i64>,
    /// Their arithmetic mean.
    pub mean_ns: Option<f64>,
    /// The median by nearest rank: the smallest duration that at least half of them do not exceed.
    pub p50_ns: Option<i64>,
    /// The 99th percentile by nearest rank.
    pub p99_ns: Option<i64>,
    /// The shortest.
    pub min_ns: Option<i64>,
    /// The longest.
    pub max_ns: Option<i64>,
}

impl Durations {
    /// Computes the statistics of `durations`, and reorders them.
    pub fn from_slice<T: Copy + Ord + Into<i64>>(durations: &mut [T]) -> Durations {
        let count = durations.len();
        let (Some(min), Some(max)) = (durations.iter().min(), durations.iter().max()) else {
            return Durations::default();
        };
        let (min_ns, max_ns) = ((*min).into(), (*max).into());
        let total = durations.iter().map(|d| i128::from((*d).into())).sum();
        let p50 = nearest_rank(count, 50);
        let p99 = nearest_rank(count, 99);
        let (_, p50_ns, above) = durations.select_nth_unstable(p50);
        let p50_ns = (*p50_ns).into();
        let p99_ns = match p99.checked_sub(p50 + 1) {
            Some(at) => (*above.select_nth_unstable(at).1).into(),
            None => p50_ns,
        };
        Durations::from_figures(count, total, [min_ns, p50_ns, p99_ns, max_ns])
    }

    /// Assembles the statistics of `count` durations, at least 1, from their exact sum and the four named values.
    fn from_figures(
        count: usize,
        total: i128,
        [min_ns, p50_ns, p99_ns, max_ns]: [i64; 4],
    ) -> Durations {
        Durations {
            timed_count: count as u64,
            total_ns: Some(total.clamp(i64::MIN.into(), i64::MAX.into()) as i64),
            mean_ns: Some(total as f64 / count as f64),
            p50_ns: Some(p50_ns),
            p99_ns: Some(p99_ns),
            min_ns: Some(min_ns),
            max_ns: Some(max_ns),
        }
    }
}

/// Returns the exponent of a duration and its seven bits after the first, as the bits of a float have them. The
/// result grows with the duration and is less than [`MAGNITUDES`].
#[inline]
fn magnitude(duration: u32) -> usize {
    let bits = (duration as f32).to_bits() >> OMITTED_BITS;
    bits.saturating_sub(UNIT) as usize + usize::from(duration > 0)
}

/// The number of magnitudes: 0 for the duration 0, then 128 for each of the 32 exponents, and one for the longest
/// durations, which rounding lifts to the next exponent.
const MAGNITUDES: usize = 32 * 128 + 2;
/// The number of bits of a float that are left out.
const OMITTED_BITS: u32 = f32::MANTISSA_DIGITS - 1 - 7;
/// The bits of the float 1 without the [`OMITTED_BITS`].
const UNIT: u32 = 1.0f32.to_bits() >> OMITTED_BITS;

/// The durations of many groups, for statistics of each group and of neighbouring groups together.
///
/// The durations of a large group are not kept. They are handed over twice: they are counted by magnitude first, and then by
/// value in the magnitudes that a percentile lies in.
pub struct GroupedDurations {
    groups: Vec<DurationGroup>,
}

/// How the durations of one group are held.
enum DurationGroup {
    /// The durations themselves, because the group has fewer than [`MIN_COUNTED`].
    Few(Vec<u32>),
    /// The durations in the wide type, because one of the trace is longer than the 4.29 s that fit into `u32`.
    Long(Vec<i64>),
    /// Counts only, because the group has at least [`MIN_COUNTED`] durations.
    Many(Box<DurationCounts>),
}

impl DurationGroup {
    fn is_many(&self) -> bool {
        matches!(self, DurationGroup::Many(_))
    }
}

/// Counts of a group's durations by magnitude, and by value where that is needed.
struct DurationCounts {
    /// The number, sum, least and greatest of the durations in nanoseconds.
    count: usize,
    total: u64,
    min: u32,
    max: u32,
    /// The number of durations by magnitude. Empty where a value sums up several groups.
    by_magnitude: Vec<u32>,
    /// Counts by value, for the magnitudes that percentiles lie in.
    by_value: Vec<ValueCounts>,
}

impl Default for DurationCounts {
    fn default() -> DurationCounts {
        DurationCounts {
            count: 0,
            total: 0,
            min: u32::MAX,
            max: 0,
            by_magnitude: Vec::new(),
            by_value: Vec::new(),
        }
    }
}

impl DurationCounts {
    /// Adds `count` durations by their sum, their least and their greatest, but to no counts by magnitude or value.
    #[inline]
    fn add(&mut self, count: usize, total: u64, [min, max]: [u32; 2]) {
        self.count += count;
        self.total += total;
        self.min = self.min.min(min);
        self.max = self.max.max(max);
    }
}

/// Durations of one magnitude, counted by value. There are more values the longer the durations are: 65,536 at 8 ms, and eight
/// million at a second, though that many durations of a second take more than two hours.
struct ValueCounts {
    magnitude: usize,
    /// The value of the first count, which is at most the least value of the magnitude.
    from: u32,
    /// The number of durations by nanosecond from `from` on; the list ends with the longest that was counted.
    counts: Vec<u32>,
}

impl ValueCounts {
    fn new(magnitude: usize) -> ValueCounts {
        // Values above 2^24 were rounded, by 2^7 at most.
        let least = f32::from_bits((magnitude as u32 + UNIT - 1) << OMITTED_BITS) as u32;
        ValueCounts {
            magnitude,
            from: if magnitude == 0 {
                0
            } else {
                least.saturating_sub(1 << 7)
            },
            counts: Vec::new(),
        }
    }

    #[inline]
    fn count(&mut self, duration: u32) {
        let at = (duration - self.from) as usize;
        if at >= self.counts.len() {
            self.counts.resize(at + 1, 0);
        }
        self.counts[at] += 1;
    }

    /// Adds the counts of another group that has the same magnitude.
    fn add(&mut self, other: &ValueCounts) {
        let counts = self.counts.len().max(other.counts.len());
        self.counts.resize(counts, 0);
        let both = self.counts.iter_mut().zip(&other.counts);
        both.for_each(|(count, more)| *count += more);
    }

    /// Returns the value with a rank among the counted durations.
    fn at(&self, rank: usize) -> i64 {
        let counts = self.counts.iter().map(|count| *count as usize);
        let (at, _) = place(counts, rank);
        i64::from(self.from) + at as i64
    }
}

/// Returns the index of the count that a rank lies in, and the rank within that count. The counts are of values in
/// ascending order.
fn place(counts: impl Iterator<Item = usize>, mut rank: usize) -> (usize, usize) {
    for (at, count) in counts.enumerate() {
        if rank < count {
            return (at, rank);
        }
        rank -= count;
    }
    (0, 0)
}

/// The magnitude that each of the two percentiles lies in, with the percentile's rank within the magnitude.
type Places = [(usize, usize); 2];

impl GroupedDurations {
    /// Prepares for groups that are numbered as `counts` lists them. `counts` has the number of durations that each
    /// group will have at most, and none of them is longer than `longest_ns`.
    pub fn new(counts: impl Iterator<Item = usize>, longest_ns: i64) -> GroupedDurations {
        let narrow = u32::try_from(longest_ns).is_ok();
        let groups = counts.map(|count| match (narrow, count) {
            (false, _) => DurationGroup::Long(Vec::with_capacity(count)),
            (true, MIN_COUNTED..) => DurationGroup::Many(Box::new(DurationCounts {
                by_magnitude: vec![0; magnitude(longest_ns as u32) + 1],
                ..DurationCounts::default()
            })),
            (true, _) => DurationGroup::Few(Vec::with_capacity(count)),
        });
        GroupedDurations {
            groups: groups.collect(),
        }
    }

    /// Takes a duration of a group for the first time.
    #[inline]
    pub fn push(&mut self, group: usize, duration_ns: i64) {
        match &mut self.groups[group] {
            DurationGroup::Few(durations) => durations.push(duration_ns as u32),
            DurationGroup::Long(durations) => durations.push(duration_ns),
            DurationGroup::Many(many) => {
                let duration = duration_ns as u32;
                many.add(1, u64::from(duration), [duration; 2]);
                many.by_magnitude[magnitude(duration)] += 1;
            }
        }
    }

    /// Announces, before durations are handed over for the second time, that statistics of neighbouring groups will be needed.
    pub fn announce(&mut self, groups: Range<usize>) {
        if !self.groups[groups.clone()]
            .iter()
            .any(DurationGroup::is_many)
        {
            return;
        }
        let places = self.places(groups.clone()).unwrap_or_default();
        for group in &mut self.groups[groups] {
            let DurationGroup::Many(many) = group else {
                continue;
            };
            for (magnitude, _) in places {
                if !many.by_value.iter().any(|of| of.magnitude == magnitude) {
                    many.by_value.push(ValueCounts::new(magnitude));
                }
            }
        }
    }

    /// Returns true where durations have to be handed over for a second time.
    pub fn needs_again(&self) -> bool {
        self.groups.iter().any(DurationGroup::is_many)
    }

    /// Takes a duration of a group for the second time.
    #[inline]
    pub fn push_again(&mut self, group: usize, duration_ns: i64) {
        if let DurationGroup::Many(many) = &mut self.groups[group] {
            let duration = duration_ns as u32;
            let magnitude = magnitude(duration);
            for counts in &mut many.by_value {
                if counts.magnitude == magnitude {
                    counts.count(duration);
                }
            }
        }
    }

    /// Returns the statistics of neighbouring groups together, which [`GroupedDurations::announce`] was called for.
    /// The durations that are kept in memory are reordered.
    pub fn statistics(&mut self, groups: Range<usize>) -> Durations {
        if let Some(places) = self.places(groups.clone()) {
            return self.statistics_from_counts(groups, places);
        }
        match &mut self.groups[groups] {
            [DurationGroup::Few(durations)] => Durations::from_slice(durations),
            [DurationGroup::Long(durations)] => Durations::from_slice(durations),
            groups => {
                let mut all: Vec<i64> = Vec::new();
                for group in groups {
                    match group {
                        DurationGroup::Few(few) => all.extend(few.iter().map(|ns| i64::from(*ns))),
                        DurationGroup::Long(long) => all.extend_from_slice(long),
                        DurationGroup::Many(_) => {}
                    }
                }
                Durations::from_slice(&mut all)
            }
        }
    }

    /// Returns the magnitudes and ranks of the percentiles of these groups, or `None` where the durations are to be
    /// sorted, because they are few or too long, and where there are none.
    fn places(&self, groups: Range<usize>) -> Option<Places> {
        let groups = &self.groups[groups];
        let counted = groups.iter().map(|group| match group {
            DurationGroup::Few(few) => Some(few.len()),
            DurationGroup::Long(_) => None,
            DurationGroup::Many(many) => Some(many.count),
        });
        let all = counted.sum::<Option<usize>>()?;
        if all == 0 || all < MIN_COUNTED && !groups.iter().any(DurationGroup::is_many) {
            return None;
        }
        let mut counts = vec![0usize; MAGNITUDES];
        for group in groups {
            match group {
                DurationGroup::Few(few) => few.iter().for_each(|ns| counts[magnitude(*ns)] += 1),
                DurationGroup::Long(_) => {}
                DurationGroup::Many(many) => {
                    let of_group = counts.iter_mut().zip(&many.by_magnitude);
                    of_group.for_each(|(count, more)| *count += *more as usize);
                }
            }
        }
        let place = |percent| place(counts.iter().copied(), nearest_rank(all, percent));
        Some([50, 99].map(place))
    }

    /// Returns the statistics of groups that are counted, or few enough to count now; `places` are those of
    /// [`Self::places`].
    fn statistics_from_counts(&self, groups: Range<usize>, places: Places) -> Durations {
        let mut all = DurationCounts::default();
        let mut by_value = places.map(|(magnitude, _)| ValueCounts::new(magnitude));
        for group in &self.groups[groups] {
            match group {
                DurationGroup::Few(few) => {
                    for ns in few {
                        all.add(1, u64::from(*ns), [*ns; 2]);
                        let magnitude = magnitude(*ns);
                        let counts = by_value.iter_mut().filter(|of| of.magnitude == magnitude);
                        counts.for_each(|counts| counts.count(*ns));
                    }
                }
                DurationGroup::Long(_) => {}
                DurationGroup::Many(many) => {
                    all.add(many.count, many.total, [many.min, many.max]);
                    for sum in &mut by_value {
                        let counts = many.by_value.iter();
                        let mut counts = counts.filter(|of| of.magnitude == sum.magnitude);
                        counts.next().into_iter().for_each(|counts| sum.add(counts));
                    }
                }
            }
        }
        let [p50_ns, p99_ns] = [0, 1].map(|at| by_value[at].at(places[at].1));
        let figures = [all.min.into(), p50_ns, p99_ns, all.max.into()];
        Durations::from_figures(all.count, all.total.into(), figures)
    }
}

/// The number of durations of a group from which on they are counted, not kept: counts of all magnitudes take half of
/// the memory of so many durations.
const MIN_COUNTED: usize = 1 << 13;

/// Returns the index of the nearest-rank percentile among `count` (at least 1) sorted values.
fn nearest_rank(count: usize, percent: usize) -> usize {
    (count * percent).div_ceil(100).max(1) - 1
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn percentiles_are_values_that_occur() {
        let mut durations: Vec<i64> = (1..=200).rev().collect();
        let d = Durations::from_slice(&mut durations);
        assert_eq!((d.p50_ns, d.p99_ns), (Some(100), Some(198)));
        assert_eq!((d.min_ns, d.max_ns), (Some(1), Some(200)));
        assert_eq!(d.total_ns, Some(20_100));
        assert_eq!(d.mean_ns, Some(100.5));
        assert_eq!(d.timed_count, 200);
    }

    #[test]
    fn one_duration_is_all_its_percentiles_and_none_is_unknown() {
        let d = Durations::from_slice(&mut [7i64]);
        assert_eq!((d.p50_ns, d.p99_ns, d.max_ns), (Some(7), Some(7), Some(7)));
        assert_eq!(Durations::from_slice::<i64>(&mut []), Durations::default());
        assert_eq!(Durations::from_slice(&mut [3i64, 9]).p50_ns, Some(3));
        assert_eq!(Durations::from_slice(&mut [3i64, 9]).p99_ns, Some(9));
    }

    /// Computes the statistics of ranges of groups, with durations that are handed over as a trace hands them over.
    fn grouped(rows: &[(usize, i64)], groups: usize, ranges: &[Range<usize>]) -> Vec<Durations> {
        let mut counts = vec![0; groups];
        rows.iter().for_each(|(group, _)| counts[*group] += 1);
        let longest_ns = rows.iter().map(|(_, ns)| *ns).max().unwrap_or(0);
        let mut grouped = GroupedDurations::new(counts.into_iter(), longest_ns);
        rows.iter()
            .for_each(|(group, ns)| grouped.push(*group, *ns));
        ranges
            .iter()
            .for_each(|range| grouped.announce(range.clone()));
        if grouped.needs_again() {
            rows.iter()
                .for_each(|(group, ns)| grouped.push_again(*group, *ns));
        }
        ranges
            .iter()
            .map(|range| grouped.statistics(range.clone()))
            .collect()
    }

    #[test]
    fn groups_and_ranges_of_them_have_their_own_statistics() {
        for long in [9, i64::MAX] {
            let rows = [(2, long), (0, 5), (2, 1), (0, 3), (2, 2)];
            let found = grouped(&rows, 3, &[2..3, 1..2, 1..3, 0..3]);
            assert_eq!(found[0], Durations::from_slice(&mut [long, 1, 2]));
            assert_eq!(found[1], Durations::default());
            assert_eq!(found[2].p50_ns, Some(2));
            assert_eq!(found[3], Durations::from_slice(&mut [long, 5, 1, 3, 2]));
        }
    }

    proptest! {
        #[test]
        fn counted_durations_have_the_statistics_of_sorted_ones(
            few in prop::collection::vec(
                (0..3usize, prop_oneof![0..9i64, 0..1i64 << 26, 4000..5000i64, Just(1i64 << 26)]),
                1..60,
            ),
            times in [1usize..3, 1..400, 1..400],
        ) {
            // Each row is repeated as often as makes its group small or large.
            let rows: Vec<(usize, i64)> = (few.iter())
                .flat_map(|row| std::iter::repeat_n(*row, times[row.0]))
                .collect();
            let ranges = [0..1, 1..2, 2..3, 0..2, 1..3, 0..3];
            let found = grouped(&rows, 3, &ranges);
            for (range, found) in ranges.into_iter().zip(found) {
                let of_range = rows.iter().filter(|(group, _)| range.contains(group));
                let mut durations: Vec<i64> = of_range.map(|(_, ns)| *ns).collect();
                prop_assert_eq!(found, Durations::from_slice(&mut durations));
            }
        }

        #[test]
        fn durations_of_one_magnitude_follow_each_other(all in prop::collection::vec(any::<u32>(), 2..50)) {
            let mut all = all;
            all.sort_unstable();
            prop_assert!(all.is_sorted_by_key(|duration| magnitude(*duration)));
            for duration in all {
                prop_assert!(ValueCounts::new(magnitude(duration)).from <= duration);
            }
        }
    }

    #[test]
    fn fewer_may_come_than_were_expected() {
        for came in [0, 3] {
            let mut grouped = GroupedDurations::new([MIN_COUNTED].into_iter(), 9);
            (0..came).for_each(|ns| grouped.push(0, ns));
            grouped.announce(0..1);
            (0..came).for_each(|ns| grouped.push_again(0, ns));
            let mut durations: Vec<i64> = (0..came).collect();
            assert_eq!(
                grouped.statistics(0..1),
                Durations::from_slice(&mut durations)
            );
        }
    }

    #[test]
    fn counted_durations_may_be_as_long_as_four_seconds() {
        let rows = vec![(0, i64::from(u32::MAX)); MIN_COUNTED + 1];
        let found = grouped(&rows, 1, std::slice::from_ref(&(0..1)))[0];
        assert_eq!(found.p50_ns, Some(rows[0].1));
        assert_eq!(found.p99_ns, Some(rows[0].1));
    }

    #[test]
    fn magnitudes_are_few() {
        assert_eq!([0, 1, 2].map(magnitude), [0, 1, 129]);
        assert_eq!(magnitude(u32::MAX), MAGNITUDES - 1);
    }

    #[test]
    fn a_sum_past_i64_stays_at_its_end() {
        let d = Durations::from_slice(&mut [i64::MAX, i64::MAX]);
        assert_eq!(d.total_ns, Some(i64::MAX));
        assert_eq!(d.mean_ns, Some(i64::MAX as f64));
    }
}
