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
        let total: i128 = durations.iter().map(|d| i128::from((*d).into())).sum();
        let p50 = nearest_rank(count, 50);
        let p99 = nearest_rank(count, 99);
        let (_, p50_ns, above) = durations.select_nth_unstable(p50);
        let p50_ns = (*p50_ns).into();
        let p99_ns = match p99.checked_sub(p50 + 1) {
            Some(at) => (*above.select_nth_unstable(at).1).into(),
            None => p50_ns,
        };
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

/// Durations of many groups, those of one group together. Ten million take forty megabytes.
pub(crate) struct GroupedDurations {
    values: Values,
    /// Where each group begins and, after the last, where that ends.
    begins: Vec<usize>,
    /// Where the next duration of each group goes.
    next: Vec<usize>,
}

/// Of work that took longer than 4.29 s the narrow type has no room.
enum Values {
    Narrow(Vec<u32>),
    Wide(Vec<i64>),
}

impl GroupedDurations {
    /// Space for so many durations of each group, none longer than `longest_ns`.
    pub(crate) fn new(counts: impl Iterator<Item = usize>, longest_ns: i64) -> GroupedDurations {
        let mut begins = vec![0];
        let mut end = 0;
        begins.extend(counts.map(|count| {
            end += count;
            end
        }));
        GroupedDurations {
            values: match u32::try_from(longest_ns) {
                Ok(_) => Values::Narrow(vec![0; end]),
                Err(_) => Values::Wide(vec![0; end]),
            },
            next: begins.clone(),
            begins,
        }
    }

    #[inline]
    pub(crate) fn push(&mut self, group: usize, duration_ns: i64) {
        let at = &mut self.next[group];
        match &mut self.values {
            Values::Narrow(values) => values[*at] = duration_ns as u32,
            Values::Wide(values) => values[*at] = duration_ns,
        }
        *at += 1;
    }

    /// Statistics of neighbouring groups. What is in their own place stays there in any order, so that wider ranges may be
    /// asked for later, and narrower ones not.
    pub(crate) fn of(&mut self, groups: Range<usize>) -> Durations {
        let range = self.begins[groups.start]..self.begins[groups.end];
        match &mut self.values {
            Values::Narrow(values) => Durations::of(&mut values[range]),
            Values::Wide(values) => Durations::of(&mut values[range]),
        }
    }
}

/// Index of the nearest-rank percentile among `count` (at least 1) sorted values.
fn nearest_rank(count: usize, percent: usize) -> usize {
    (count * percent).div_ceil(100).max(1) - 1
}

#[cfg(test)]
mod tests {
    use super::*;

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

    #[test]
    fn groups_and_ranges_of_them_have_their_own_statistics() {
        for longest_ns in [9, i64::MAX] {
            let mut grouped = GroupedDurations::new([2, 0, 3].into_iter(), longest_ns);
            for (group, ns) in [(2, 9), (0, 5), (2, 1), (0, 3), (2, 2)] {
                grouped.push(group, ns);
            }
            assert_eq!(grouped.of(2..3), Durations::of(&mut [9i64, 1, 2]));
            assert_eq!(grouped.of(1..2), Durations::default());
            assert_eq!(grouped.of(1..3).p50_ns, Some(2));
            assert_eq!(grouped.of(0..3), Durations::of(&mut [9i64, 5, 1, 3, 2]));
        }
    }

    #[test]
    fn a_sum_past_i64_stays_at_its_end() {
        let d = Durations::of(&mut [i64::MAX, i64::MAX]);
        assert_eq!(d.total_ns, Some(i64::MAX));
        assert_eq!(d.mean_ns, Some(i64::MAX as f64));
    }
}
