//! Splits intervals that overlap in time into lanes (numbered rows of a drawing), within which none overlap.
//!
//! Each interval goes to the lane with the lowest number that is free at its start, so there are no more lanes than
//! intervals at one time. Where a longer interval comes before a shorter one that begins with it, a nested interval
//! has a higher lane than the interval around it.

use crate::intervals::Interval;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Assigns lanes to intervals, one after the other; more may follow at any time.
#[derive(Debug, Clone, Default)]
pub struct Lanes {
    /// The end of each lane.
    ends: Vec<i64>,
    /// The lanes that are taken, by their ends. Both heaps hold lanes for times from `now_ns` on, and are made anew
    /// for an interval that starts earlier.
    taken: BinaryHeap<Reverse<(i64, u32)>>,
    /// The lanes that are free at `now_ns`, the lowest number first.
    free: BinaryHeap<Reverse<u32>>,
    /// The start of the interval that was placed last; `i64::MAX` where the heaps are not up to date.
    now_ns: i64,
}

impl Lanes {
    /// Returns the lane of the next interval. Intervals in order of start take the fewest lanes. An interval that is
    /// added late begins after all others in its lane.
    pub fn place(&mut self, interval: Interval) -> u32 {
        // In most traces nothing overlaps.
        if let [end_ns] = self.ends.as_mut_slice()
            && *end_ns <= interval.start_ns
        {
            *end_ns = interval.end_ns;
            self.now_ns = i64::MAX;
            return 0;
        }
        if interval.start_ns < self.now_ns {
            let lanes = self.ends.iter().zip(0u32..);
            self.taken = lanes
                .map(|(end_ns, lane)| Reverse((*end_ns, lane)))
                .collect();
            self.free.clear();
        }
        self.now_ns = interval.start_ns;
        while let Some(Reverse((end_ns, lane))) = self.taken.peek().copied()
            && end_ns <= interval.start_ns
        {
            self.taken.pop();
            self.free.push(Reverse(lane));
        }
        let lane = match self.free.pop() {
            Some(Reverse(lane)) => lane,
            None => {
                self.ends.push(i64::MIN);
                self.ends.len() as u32 - 1
            }
        };
        self.ends[lane as usize] = interval.end_ns;
        self.taken.push(Reverse((interval.end_ns, lane)));
        lane
    }

    /// Returns the number of lanes that were used.
    pub fn count(&self) -> usize {
        self.ends.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn intervals() -> impl Strategy<Value = Vec<Interval>> {
        proptest::collection::vec((0i64..60, 0i64..20), 0..80).prop_map(|times| {
            let times = times.into_iter();
            times
                .map(|(start_ns, ns)| Interval::new(start_ns, start_ns + ns))
                .collect()
        })
    }

    /// Returns the intervals of each lane, in the order in which they were placed.
    fn split(intervals: &[Interval]) -> Vec<Vec<Interval>> {
        let mut lanes = Lanes::default();
        let mut split: Vec<Vec<Interval>> = Vec::new();
        for interval in intervals {
            let lane = lanes.place(*interval) as usize;
            split.resize_with(lanes.count(), Vec::new);
            split[lane].push(*interval);
        }
        split
    }

    proptest! {
        #[test]
        fn within_a_lane_nothing_overlaps_in_whatever_order_it_comes(intervals in intervals()) {
            let lanes = split(&intervals);
            prop_assert_eq!(lanes.iter().map(Vec::len).sum::<usize>(), intervals.len());
            for lane in &lanes {
                prop_assert!(lane.windows(2).all(|two| two[0].end_ns <= two[1].start_ns));
            }
        }

        #[test]
        fn in_order_there_are_no_more_lanes_than_intervals_at_one_time(mut intervals in intervals()) {
            intervals.sort();
            let at = |ns: i64| intervals.iter().filter(|i| i.start_ns <= ns && ns < i.end_ns.max(i.start_ns + 1)).count();
            let most = (0..80).map(at).max().unwrap_or(0);
            prop_assert!(split(&intervals).len() <= most);
        }

        #[test]
        fn the_inner_has_a_higher_lane_than_the_outer(mut intervals in intervals()) {
            intervals.sort_by_key(|i| (i.start_ns, Reverse(i.end_ns)));
            let mut lanes = Lanes::default();
            let placed: Vec<(Interval, u32)> = intervals.iter().map(|i| (*i, lanes.place(*i))).collect();
            for (at, (outer, lane)) in placed.iter().enumerate() {
                for (inner, higher) in &placed[at + 1..] {
                    // An inside exists only where all intervals that overlap are nested in each other.
                    let crossing = placed.iter().any(|(other, _)| {
                        [outer, inner].iter().any(|one| {
                            let (a, b) = (one.start_ns.min(other.start_ns), one.end_ns.max(other.end_ns));
                            let overlap = one.start_ns.max(other.start_ns) < one.end_ns.min(other.end_ns);
                            overlap && Interval::new(a, b) != **one && Interval::new(a, b) != *other
                        })
                    });
                    let inside = outer.start_ns <= inner.start_ns && inner.end_ns <= outer.end_ns && inner.start_ns < outer.end_ns;
                    prop_assert!(!inside || crossing || higher > lane, "{outer:?} {inner:?}");
                }
            }
        }
    }
}
