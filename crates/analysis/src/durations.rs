//! Statistics of durations.

use schemars::JsonSchema;
use serde::Serialize;
use std::ops::Range;

/// Statistics of durations in nanoseconds. All but the count are absent when the count is 0.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, JsonSchema)]
pub struct Durations {
    /// How many durations are known, and so in these figures.
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
    /// Statistics of `durations`, which are put into another order.
    pub fn of<T: Copy + Ord + Into<i64>>(durations: &mut [T]) -> Durations {
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
        Durations::new(count, total, [min_ns, p50_ns, p99_ns, max_ns])
    }

    fn new(count: usize, total: i128, [min_ns, p50_ns, p99_ns, max_ns]: [i64; 4]) -> Durations {
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

/// A number that grows with the duration: its exponent and seven bits more, as a float has them. It is less than [`MAGNITUDES`].
#[inline]
fn magnitude(duration: u32) -> usize {
    let bits = (duration as f32).to_bits() >> BITS;
    bits.saturating_sub(UNIT) as usize + usize::from(duration > 0)
}

const MAGNITUDES: usize = 32 * 128 + 2;
/// Bits of a float that are left out, and what is left of those of 1.
const BITS: u32 = f32::MANTISSA_DIGITS - 1 - 7;
const UNIT: u32 = 1.0f32.to_bits() >> BITS;

/// Durations of many groups, for statistics of each group and of neighbours together.
///
/// Of a group with many durations none is kept. They are handed over twice: at first they are counted by magnitude, and then those of
/// the magnitudes that a percentile lies in by their values.
pub(crate) struct GroupedDurations {
    groups: Vec<Group>,
}

enum Group {
    Few(Vec<u32>),
    /// Of work that took longer than 4.29 s the narrow type has no room.
    Long(Vec<i64>),
    Many(Box<Many>),
}

impl Group {
    fn is_many(&self) -> bool {
        matches!(self, Group::Many(_))
    }
}

/// Durations that are counted.
struct Many {
    count: usize,
    total: u64,
    min: u32,
    max: u32,
    by_magnitude: Vec<u32>,
    /// Of the magnitudes that percentiles lie in.
    asked: Vec<Alike>,
}

impl Default for Many {
    fn default() -> Many {
        Many {
            count: 0,
            total: 0,
            min: u32::MAX,
            max: 0,
            by_magnitude: Vec::new(),
            asked: Vec::new(),
        }
    }
}

impl Many {
    #[inline]
    fn add(&mut self, count: usize, total: u64, [min, max]: [u32; 2]) {
        self.count += count;
        self.total += total;
        self.min = self.min.min(min);
        self.max = self.max.max(max);
    }
}

/// Durations of one magnitude, counted by value. The longer they are, the more values there are: at 8 ms 65,536, at a second eight
/// million, and that many durations of a second take more than two hours.
struct Alike {
    magnitude: usize,
    /// No more than the least of them.
    from: u32,
    counts: Vec<u32>,
}

impl Alike {
    fn of(magnitude: usize) -> Alike {
        // What is above 2^24 was rounded, by 2^7 at most.
        let least = f32::from_bits((magnitude as u32 + UNIT - 1) << BITS) as u32;
        Alike {
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

    /// Adds what another group has of the same magnitude.
    fn add(&mut self, other: &Alike) {
        let counts = self.counts.len().max(other.counts.len());
        self.counts.resize(counts, 0);
        let both = self.counts.iter_mut().zip(&other.counts);
        both.for_each(|(count, more)| *count += more);
    }

    /// The value of a rank.
    fn at(&self, rank: usize) -> i64 {
        let counts = self.counts.iter().map(|count| *count as usize);
        let (at, _) = place(counts, rank);
        i64::from(self.from) + at as i64
    }
}

/// Where, among counts of what is in order, a rank is, and its rank there.
fn place(counts: impl Iterator<Item = usize>, mut rank: usize) -> (usize, usize) {
    for (at, count) in counts.enumerate() {
        if rank < count {
            return (at, rank);
        }
        rank -= count;
    }
    (0, 0)
}

/// Magnitudes that percentiles lie in, and their ranks among those of the magnitude.
type Places = [(usize, usize); 2];

impl GroupedDurations {
    /// For so many durations of each group, none longer than `longest_ns`.
    pub(crate) fn new(counts: impl Iterator<Item = usize>, longest_ns: i64) -> GroupedDurations {
        let narrow = u32::try_from(longest_ns).is_ok();
        let groups = counts.map(|count| match (narrow, count) {
            (false, _) => Group::Long(Vec::with_capacity(count)),
            (true, MANY..) => Group::Many(Box::new(Many {
                by_magnitude: vec![0; magnitude(longest_ns as u32) + 1],
                ..Many::default()
            })),
            (true, _) => Group::Few(Vec::with_capacity(count)),
        });
        GroupedDurations {
            groups: groups.collect(),
        }
    }

    /// Hands over a duration for the first time.
    #[inline]
    pub(crate) fn push(&mut self, group: usize, duration_ns: i64) {
        match &mut self.groups[group] {
            Group::Few(durations) => durations.push(duration_ns as u32),
            Group::Long(durations) => durations.push(duration_ns),
            Group::Many(many) => {
                let duration = duration_ns as u32;
                many.add(1, u64::from(duration), [duration; 2]);
                many.by_magnitude[magnitude(duration)] += 1;
            }
        }
    }

    /// Says, between the times that durations are handed over, that statistics of neighbouring groups will be asked for.
    pub(crate) fn ask_for(&mut self, groups: Range<usize>) {
        if !self.groups[groups.clone()].iter().any(Group::is_many) {
            return;
        }
        let places = self.places(groups.clone()).unwrap_or_default();
        for group in &mut self.groups[groups] {
            let Group::Many(many) = group else { continue };
            for (magnitude, _) in places {
                if !many.asked.iter().any(|asked| asked.magnitude == magnitude) {
                    many.asked.push(Alike::of(magnitude));
                }
            }
        }
    }

    /// Whether durations have to be handed over for a second time.
    pub(crate) fn needs_again(&self) -> bool {
        self.groups.iter().any(Group::is_many)
    }

    /// Hands over a duration for the second time.
    #[inline]
    pub(crate) fn push_again(&mut self, group: usize, duration_ns: i64) {
        if let Group::Many(many) = &mut self.groups[group] {
            let duration = duration_ns as u32;
            let magnitude = magnitude(duration);
            for asked in &mut many.asked {
                if asked.magnitude == magnitude {
                    asked.count(duration);
                }
            }
        }
    }

    /// Statistics of neighbouring groups that were asked for.
    pub(crate) fn of(&mut self, groups: Range<usize>) -> Durations {
        if let Some(places) = self.places(groups.clone()) {
            return self.counted(groups, places);
        }
        match &mut self.groups[groups] {
            [Group::Few(durations)] => Durations::of(durations),
            [Group::Long(durations)] => Durations::of(durations),
            groups => {
                let mut all: Vec<i64> = Vec::new();
                for group in groups {
                    match group {
                        Group::Few(few) => all.extend(few.iter().map(|ns| i64::from(*ns))),
                        Group::Long(long) => all.extend_from_slice(long),
                        Group::Many(_) => {}
                    }
                }
                Durations::of(&mut all)
            }
        }
    }

    /// Where the percentiles of these groups lie; absent where their durations are few enough, or too long, to be put in order.
    fn places(&self, groups: Range<usize>) -> Option<Places> {
        let groups = &self.groups[groups];
        let counted = groups.iter().map(|group| match group {
            Group::Few(few) => Some(few.len()),
            Group::Long(_) => None,
            Group::Many(many) => Some(many.count),
        });
        let all = counted.sum::<Option<usize>>()?;
        if all == 0 || all < MANY && !groups.iter().any(Group::is_many) {
            return None;
        }
        let mut counts = vec![0usize; MAGNITUDES];
        for group in groups {
            match group {
                Group::Few(few) => few.iter().for_each(|ns| counts[magnitude(*ns)] += 1),
                Group::Long(_) => {}
                Group::Many(many) => {
                    let of_group = counts.iter_mut().zip(&many.by_magnitude);
                    of_group.for_each(|(count, more)| *count += *more as usize);
                }
            }
        }
        let place = |percent| place(counts.iter().copied(), nearest_rank(all, percent));
        Some([50, 99].map(place))
    }

    fn counted(&self, groups: Range<usize>, places: Places) -> Durations {
        let mut all = Many::default();
        let mut alike = places.map(|(magnitude, _)| Alike::of(magnitude));
        for group in &self.groups[groups] {
            match group {
                Group::Few(few) => {
                    for ns in few {
                        all.add(1, u64::from(*ns), [*ns; 2]);
                        let magnitude = magnitude(*ns);
                        let alike = alike.iter_mut().filter(|of| of.magnitude == magnitude);
                        alike.for_each(|alike| alike.count(*ns));
                    }
                }
                Group::Long(_) => {}
                Group::Many(many) => {
                    all.add(many.count, many.total, [many.min, many.max]);
                    for of in &mut alike {
                        let asked = many.asked.iter();
                        let mut asked = asked.filter(|asked| asked.magnitude == of.magnitude);
                        asked.next().into_iter().for_each(|asked| of.add(asked));
                    }
                }
            }
        }
        let [p50_ns, p99_ns] = [0, 1].map(|of| alike[of].at(places[of].1));
        let told = [all.min.into(), p50_ns, p99_ns, all.max.into()];
        Durations::new(all.count, all.total.into(), told)
    }
}

/// So many are counted: counts of all magnitudes take half of their space.
const MANY: usize = 1 << 13;

/// Index of the nearest-rank percentile among `count` (at least 1) sorted values.
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
        let d = Durations::of(&mut durations);
        assert_eq!((d.p50_ns, d.p99_ns), (Some(100), Some(198)));
        assert_eq!((d.min_ns, d.max_ns), (Some(1), Some(200)));
        assert_eq!(
            (d.total_ns, d.mean_ns, d.timed_count),
            (Some(20_100), Some(100.5), 200)
        );
    }

    #[test]
    fn one_duration_is_all_its_percentiles_and_none_is_unknown() {
        let d = Durations::of(&mut [7i64]);
        assert_eq!((d.p50_ns, d.p99_ns, d.max_ns), (Some(7), Some(7), Some(7)));
        assert_eq!(Durations::of::<i64>(&mut []), Durations::default());
        assert_eq!(Durations::of(&mut [3i64, 9]).p50_ns, Some(3));
        assert_eq!(Durations::of(&mut [3i64, 9]).p99_ns, Some(9));
    }

    /// Statistics of ranges of groups, of durations that are handed over as a trace does it.
    fn grouped(rows: &[(usize, i64)], groups: usize, ranges: &[Range<usize>]) -> Vec<Durations> {
        let mut counts = vec![0; groups];
        rows.iter().for_each(|(group, _)| counts[*group] += 1);
        let longest_ns = rows.iter().map(|(_, ns)| *ns).max().unwrap_or(0);
        let mut grouped = GroupedDurations::new(counts.into_iter(), longest_ns);
        rows.iter()
            .for_each(|(group, ns)| grouped.push(*group, *ns));
        ranges
            .iter()
            .for_each(|range| grouped.ask_for(range.clone()));
        if grouped.needs_again() {
            rows.iter()
                .for_each(|(group, ns)| grouped.push_again(*group, *ns));
        }
        ranges
            .iter()
            .map(|range| grouped.of(range.clone()))
            .collect()
    }

    #[test]
    fn groups_and_ranges_of_them_have_their_own_statistics() {
        for long in [9, i64::MAX] {
            let rows = [(2, long), (0, 5), (2, 1), (0, 3), (2, 2)];
            let found = grouped(&rows, 3, &[2..3, 1..2, 1..3, 0..3]);
            assert_eq!(found[0], Durations::of(&mut [long, 1, 2]));
            assert_eq!(found[1], Durations::default());
            assert_eq!(found[2].p50_ns, Some(2));
            assert_eq!(found[3], Durations::of(&mut [long, 5, 1, 3, 2]));
        }
    }

    proptest! {
        #[test]
        fn many_are_as_few(
            few in prop::collection::vec(
                (0..3usize, prop_oneof![0..9i64, 0..1i64 << 26, 4000..5000i64, Just(1i64 << 26)]),
                1..60,
            ),
            times in [1usize..3, 1..400, 1..400],
        ) {
            // Each group as often as makes it few or many.
            let rows: Vec<(usize, i64)> = (few.iter())
                .flat_map(|row| std::iter::repeat_n(*row, times[row.0]))
                .collect();
            let ranges = [0..1, 1..2, 2..3, 0..2, 1..3, 0..3];
            let found = grouped(&rows, 3, &ranges);
            for (range, found) in ranges.into_iter().zip(found) {
                let of_range = rows.iter().filter(|(group, _)| range.contains(group));
                let mut durations: Vec<i64> = of_range.map(|(_, ns)| *ns).collect();
                prop_assert_eq!(found, Durations::of(&mut durations));
            }
        }

        #[test]
        fn durations_of_one_magnitude_follow_each_other(all in prop::collection::vec(any::<u32>(), 2..50)) {
            let mut all = all;
            all.sort_unstable();
            prop_assert!(all.is_sorted_by_key(|duration| magnitude(*duration)));
            for duration in all {
                prop_assert!(Alike::of(magnitude(duration)).from <= duration);
            }
        }
    }

    #[test]
    fn fewer_may_come_than_were_expected() {
        for came in [0, 3] {
            let mut grouped = GroupedDurations::new([MANY].into_iter(), 9);
            (0..came).for_each(|ns| grouped.push(0, ns));
            grouped.ask_for(0..1);
            (0..came).for_each(|ns| grouped.push_again(0, ns));
            let mut durations: Vec<i64> = (0..came).collect();
            assert_eq!(grouped.of(0..1), Durations::of(&mut durations));
        }
    }

    #[test]
    fn many_may_be_as_long_as_four_seconds() {
        let rows = vec![(0, i64::from(u32::MAX)); MANY + 1];
        let found = grouped(&rows, 1, std::slice::from_ref(&(0..1)))[0];
        assert_eq!(
            (found.p50_ns, found.p99_ns),
            (Some(rows[0].1), Some(rows[0].1))
        );
    }

    #[test]
    fn magnitudes_are_few() {
        assert_eq!([0, 1, 2].map(magnitude), [0, 1, 129]);
        assert_eq!(magnitude(u32::MAX), MAGNITUDES - 1);
    }

    #[test]
    fn a_sum_past_i64_stays_at_its_end() {
        let d = Durations::of(&mut [i64::MAX, i64::MAX]);
        assert_eq!(d.total_ns, Some(i64::MAX));
        assert_eq!(d.mean_ns, Some(i64::MAX as f64));
    }
}
