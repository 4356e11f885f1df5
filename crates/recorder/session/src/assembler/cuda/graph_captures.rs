//! When streams were captured into graphs: what is launched meanwhile may only be recorded into one.

use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// Begins and ends that are remembered.
const MOST: usize = 1 << 12;

/// Begins and ends of captures of one process, whatever the stream and the thread: work is captured from other threads
/// too.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct GraphCaptures {
    /// Time, and 1 for a begin, -1 for an end; in order of time.
    edges: VecDeque<(i64, i32)>,
    /// Nothing is known before this.
    since_ns: Option<i64>,
}

impl GraphCaptures {
    /// A capture began.
    pub fn began(&mut self, at_ns: i64) {
        self.add((at_ns, 1));
    }

    /// A capture ended.
    pub fn ended(&mut self, at_ns: i64) {
        self.add((at_ns, -1));
    }

    fn add(&mut self, edge: (i64, i32)) {
        let at = self.edges.partition_point(|other| *other < edge);
        self.edges.insert(at, edge);
        if self.edges.len() > MOST {
            self.since_ns = self.edges.pop_front().map(|(at_ns, _)| at_ns);
        }
    }

    /// When captures were in progress, or may have been.
    pub fn periods(&self) -> Periods {
        let mut periods = Vec::new();
        if let Some(since_ns) = self.since_ns {
            periods.push((i64::MIN, since_ns));
        }
        let (mut open, mut begin_ns) = (0, 0);
        for (at_ns, step) in &self.edges {
            if open == 0 && *step > 0 {
                begin_ns = *at_ns;
            }
            // An end whose begin is not known closes nothing.
            let before = open;
            open = (open + step).max(0);
            if before > 0 && open == 0 {
                periods.push((begin_ns, *at_ns));
            }
        }
        if open > 0 {
            periods.push((begin_ns, i64::MAX));
        }
        Periods(periods)
    }
}

/// Periods of time in order.
pub struct Periods(Vec<(i64, i64)>);

impl Periods {
    /// True when a time lies in one.
    pub fn contain(&self, at_ns: i64) -> bool {
        let after = self.0.partition_point(|(begin_ns, _)| *begin_ns <= at_ns);
        let last = after.checked_sub(1).and_then(|at| self.0.get(at));
        last.is_some_and(|(_, end_ns)| at_ns <= *end_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn captures_may_nest_and_be_told_of_in_any_order() {
        let mut captures = GraphCaptures::default();
        // The runtime's call and the driver's inside it.
        captures.ended(50);
        captures.began(10);
        captures.began(11);
        captures.ended(49);
        captures.began(100);
        let periods = captures.periods();
        for (at_ns, inside) in [(9, false), (10, true), (50, true), (51, false), (100, true)] {
            assert_eq!(periods.contain(at_ns), inside, "{at_ns}");
        }
        assert!(periods.contain(1_000_000), "it has not ended");
    }

    #[test]
    fn long_ago_is_not_known() {
        let mut captures = GraphCaptures::default();
        for turn in 0..MOST as i64 {
            captures.began(turn * 10);
            captures.ended(turn * 10 + 5);
        }
        let periods = captures.periods();
        assert!(periods.contain(7), "nothing is known of that time");
        assert!(!periods.contain(MOST as i64 * 10 - 13));
        assert!(periods.contain(MOST as i64 * 10 - 7));
    }
}
