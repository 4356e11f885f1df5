//! Half-open intervals of time, and operations on sets of them.
//!
//! A *set* here is a slice of non-empty, disjoint intervals sorted by start, as [`union`] makes it. Busy times are
//! lengths of such sets, never sums of durations.

use schemars::JsonSchema;
use serde::Serialize;

/// A half-open interval of nanoseconds, `start_ns..end_ns`.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, JsonSchema,
)]
pub struct Interval {
    /// Its first nanosecond.
    pub start_ns: i64,
    /// The nanosecond after its last.
    pub end_ns: i64,
}

impl Interval {
    /// Returns the interval from `start_ns` up to, but without, `end_ns`.
    pub const fn new(start_ns: i64, end_ns: i64) -> Interval {
        Interval { start_ns, end_ns }
    }

    /// Returns the interval of a start and a duration as a trace has them, or `None` when one of them is unknown,
    /// when the duration is negative, or when a time is impossible: more than 2^60 ns (36 years) from the clock's
    /// zero.
    #[inline]
    pub fn from_row(start_ns: Option<i64>, duration_ns: Option<i64>) -> Option<Interval> {
        const MAX_NS: i64 = 1 << 60;
        let (start_ns, duration_ns) = (start_ns?, duration_ns?);
        let possible =
            (-MAX_NS..=MAX_NS).contains(&start_ns) && (0..=MAX_NS).contains(&duration_ns);
        possible.then(|| Interval::new(start_ns, start_ns + duration_ns))
    }

    /// Returns true for times from the interval's start to before its end.
    #[inline]
    pub const fn contains(self, at_ns: i64) -> bool {
        self.start_ns <= at_ns && at_ns < self.end_ns
    }

    /// Returns true where work that starts at `start_ns` counts in `window`. Without a window all work counts, and in
    /// a window no work whose start is unknown.
    #[inline]
    pub fn counts(window: Option<Interval>, start_ns: Option<i64>) -> bool {
        match (window, start_ns) {
            (None, _) => true,
            (Some(_), None) => false,
            (Some(window), Some(start_ns)) => window.contains(start_ns),
        }
    }

    /// Returns the interval's length, which is 0 when it is empty.
    #[inline]
    pub const fn length_ns(self) -> i64 {
        if self.is_empty() {
            0
        } else {
            self.end_ns.saturating_sub(self.start_ns)
        }
    }

    /// Returns true when the interval contains no nanosecond.
    #[inline]
    pub const fn is_empty(self) -> bool {
        self.end_ns <= self.start_ns
    }

    /// Returns the part that both intervals have in common, which is empty when there is none.
    #[inline]
    pub fn intersection(self, other: Interval) -> Interval {
        let start_ns = self.start_ns.max(other.start_ns);
        Interval::new(start_ns, self.end_ns.min(other.end_ns).max(start_ns))
    }

    /// Returns the smallest interval that contains both intervals.
    #[inline]
    pub fn hull(self, other: Interval) -> Interval {
        Interval::new(
            self.start_ns.min(other.start_ns),
            self.end_ns.max(other.end_ns),
        )
    }
}

/// Turns intervals in any order into a set: sorts them if needed, joins those that overlap or touch, drops empty ones.
pub fn union(intervals: &mut Vec<Interval>) {
    if !intervals.is_sorted_by_key(|i| i.start_ns) {
        intervals.sort_by_key(|i| i.start_ns);
    }
    let mut kept = 0;
    for at in 0..intervals.len() {
        let next = intervals[at];
        if next.is_empty() {
            continue;
        }
        if kept > 0 && next.start_ns <= intervals[kept - 1].end_ns {
            let last = &mut intervals[kept - 1];
            last.end_ns = last.end_ns.max(next.end_ns);
        } else {
            intervals[kept] = next;
            kept += 1;
        }
    }
    intervals.truncate(kept);
}

/// The length of a union of intervals, which are added in order of start.
#[derive(Debug, Clone, Copy)]
pub struct Busy {
    /// The length of the union of the intervals that were added so far.
    pub length_ns: i64,
    /// The latest end of the intervals that were added so far.
    end_ns: i64,
}

impl Default for Busy {
    fn default() -> Self {
        Busy {
            length_ns: 0,
            end_ns: i64::MIN,
        }
    }
}

impl Busy {
    /// Adds an interval, which must start no earlier than those before it.
    #[inline]
    pub fn add(&mut self, interval: Interval) {
        let fresh = Interval::new(interval.start_ns.max(self.end_ns), interval.end_ns);
        self.length_ns = self.length_ns.saturating_add(fresh.length_ns());
        self.end_ns = self.end_ns.max(interval.end_ns);
    }
}

/// Returns the length of the union of intervals that are sorted by start, without making the union.
pub fn union_length_ns(sorted: impl IntoIterator<Item = Interval>) -> i64 {
    let mut busy = Busy::default();
    sorted.into_iter().for_each(|interval| busy.add(interval));
    busy.length_ns
}

/// Returns the sum of the lengths of a set's intervals.
pub fn length_ns(set: &[Interval]) -> i64 {
    set.iter()
        .fold(0i64, |sum, i| sum.saturating_add(i.length_ns()))
}

/// Returns the set of the times that are in both sets.
pub fn intersection(a: &[Interval], b: &[Interval]) -> Vec<Interval> {
    let (mut a, mut b) = (a.iter().peekable(), b.iter().peekable());
    let mut both = Vec::new();
    while let (Some(x), Some(y)) = (a.peek(), b.peek()) {
        let common = x.intersection(**y);
        if !common.is_empty() {
            both.push(common);
        }
        if x.end_ns <= y.end_ns {
            a.next();
        } else {
            b.next();
        }
    }
    both
}

/// Returns the set of the times in `window` that are not in `set`: its gaps.
pub fn complement(set: &[Interval], window: Interval) -> Vec<Interval> {
    let mut gaps = Vec::new();
    let mut from_ns = window.start_ns;
    for interval in set {
        let busy = interval.intersection(window);
        if busy.is_empty() {
            continue;
        }
        if busy.start_ns > from_ns {
            gaps.push(Interval::new(from_ns, busy.start_ns));
        }
        from_ns = busy.end_ns;
    }
    if window.end_ns > from_ns {
        gaps.push(Interval::new(from_ns, window.end_ns));
    }
    gaps
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn set(pairs: &[(i64, i64)]) -> Vec<Interval> {
        pairs.iter().map(|(a, b)| Interval::new(*a, *b)).collect()
    }

    #[test]
    fn overlapping_touching_and_nested_intervals_join() {
        let mut intervals = set(&[(10, 20), (0, 5), (15, 30), (16, 17), (30, 40), (50, 50)]);
        union(&mut intervals);
        assert_eq!(intervals, set(&[(0, 5), (10, 40)]));
    }

    #[test]
    fn gaps_are_what_the_window_has_left() {
        let busy = set(&[(0, 5), (10, 40)]);
        let idle = complement(&busy, Interval::new(2, 50));
        assert_eq!(idle, set(&[(5, 10), (40, 50)]));
        assert_eq!(complement(&[], Interval::new(2, 50)), set(&[(2, 50)]));
        assert_eq!(complement(&busy, Interval::new(12, 13)), set(&[]));
        assert_eq!(complement(&busy, Interval::new(9, 3)), set(&[]));
    }

    #[test]
    fn impossible_times_are_unknown() {
        assert_eq!(Interval::from_row(Some(5), Some(-1)), None);
        assert_eq!(Interval::from_row(Some(i64::MIN), Some(1)), None);
        assert_eq!(Interval::from_row(Some(0), Some(i64::MAX)), None);
        assert_eq!(Interval::from_row(Some(5), None), None);
        let empty = Interval::from_row(Some(5), Some(0));
        assert_eq!(empty, Some(Interval::new(5, 5)));
    }

    fn intervals() -> impl Strategy<Value = Vec<Interval>> {
        proptest::collection::vec((0i64..200, 0i64..30), 0..30)
            .prop_map(|v| v.iter().map(|(a, n)| Interval::new(*a, a + n)).collect())
    }

    /// Returns which nanoseconds of 0..240 a list covers: the plain definition.
    fn covered(list: &[Interval]) -> Vec<bool> {
        (0..240)
            .map(|t| list.iter().any(|i| i.start_ns <= t && t < i.end_ns))
            .collect()
    }

    proptest! {
        #[test]
        fn sets_agree_with_counting_nanoseconds(a in intervals(), b in intervals(), from in 0i64..240, n in 0i64..100) {
            let window = Interval::new(from, (from + n).min(240));
            let (mut x, mut y) = (a.clone(), b.clone());
            union(&mut x);
            union(&mut y);
            let (in_a, in_b) = (covered(&a), covered(&b));
            prop_assert_eq!(covered(&x), in_a.clone());
            prop_assert!(x.windows(2).all(|w| w[0].end_ns < w[1].start_ns));
            prop_assert_eq!(length_ns(&x), in_a.iter().filter(|c| **c).count() as i64);
            let mut sorted = a.clone();
            sorted.sort();
            prop_assert_eq!(union_length_ns(sorted.iter().copied()), length_ns(&x));
            prop_assert!(length_ns(&x) <= a.iter().map(|i| i.length_ns()).sum::<i64>());
            let both: Vec<bool> = in_a.iter().zip(&in_b).map(|(p, q)| *p && *q).collect();
            prop_assert_eq!(covered(&intersection(&x, &y)), both);
            let gaps = complement(&x, window);
            let busy = intersection(&x, &[window]);
            prop_assert_eq!(length_ns(&gaps) + length_ns(&busy), window.length_ns());
            prop_assert!(intersection(&gaps, &x).is_empty());
        }
    }
}
