//! Remembers when streams were captured into graphs: between the start and the end of a capture, calls are recorded
//! instead of run. A launch in such a period may only be recorded into a graph, and run nothing.

use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// The number of starts and ends that are remembered; the oldest are forgotten first.
const MAX_EDGES: usize = 1 << 12;

/// The stream captures of one process. The stream and the thread do not matter: work is captured from other threads, too.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct StreamCaptures {
    /// Starts and ends in order of time.
    edges: VecDeque<Edge>,
    /// Captures before this time are forgotten.
    since_ns: Option<i64>,
}

/// One end of a capture.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
struct Edge {
    at_ns: i64,
    /// The change of the number of captures in progress: 1 at a start, -1 at an end.
    step: i32,
}

impl StreamCaptures {
    /// Notes that a capture began.
    pub fn started(&mut self, at_ns: i64) {
        self.add(Edge { at_ns, step: 1 });
    }

    /// Notes that a capture ended.
    pub fn ended(&mut self, at_ns: i64) {
        self.add(Edge { at_ns, step: -1 });
    }

    /// Adds a start or an end at its place in time.
    fn add(&mut self, edge: Edge) {
        let at = self.edges.partition_point(|other| *other < edge);
        self.edges.insert(at, edge);
        if self.edges.len() > MAX_EDGES {
            self.since_ns = self.edges.pop_front().map(|edge| edge.at_ns);
        }
    }

    /// Returns the periods in which captures were in progress, or may have been.
    pub fn periods(&self) -> Periods {
        let mut periods = Vec::new();
        if let Some(since_ns) = self.since_ns {
            periods.push(Period {
                start_ns: i64::MIN,
                end_ns: since_ns,
            });
        }
        let (mut open, mut start_ns) = (0, 0);
        for Edge { at_ns, step } in &self.edges {
            if open == 0 && *step > 0 {
                start_ns = *at_ns;
            }
            // An end whose start is not known closes nothing.
            let before = open;
            open = (open + step).max(0);
            if before > 0 && open == 0 {
                periods.push(Period {
                    start_ns,
                    end_ns: *at_ns,
                });
            }
        }
        if open > 0 {
            periods.push(Period {
                start_ns,
                end_ns: i64::MAX,
            });
        }
        Periods(periods)
    }
}

/// Periods of time, in order.
pub struct Periods(Vec<Period>);

/// A period, both ends included.
struct Period {
    start_ns: i64,
    end_ns: i64,
}

impl Periods {
    /// Tells whether a time lies in one of the periods.
    pub fn contain(&self, at_ns: i64) -> bool {
        let after = self.0.partition_point(|period| period.start_ns <= at_ns);
        let last = after.checked_sub(1).and_then(|at| self.0.get(at));
        last.is_some_and(|period| at_ns <= period.end_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn captures_may_nest_and_come_in_any_order() {
        let mut captures = StreamCaptures::default();
        // The runtime's call and the driver's inside it.
        captures.ended(50);
        captures.started(10);
        captures.started(11);
        captures.ended(49);
        captures.started(100);
        let periods = captures.periods();
        for (at_ns, inside) in [(9, false), (10, true), (50, true), (51, false), (100, true)] {
            assert_eq!(periods.contain(at_ns), inside, "{at_ns}");
        }
        assert!(periods.contain(1_000_000), "it has not ended");
    }

    #[test]
    fn a_time_before_what_is_remembered_may_be_in_a_capture() {
        let mut captures = StreamCaptures::default();
        for turn in 0..MAX_EDGES as i64 {
            captures.started(turn * 10);
            captures.ended(turn * 10 + 5);
        }
        let periods = captures.periods();
        assert!(periods.contain(7), "nothing is known of that time");
        assert!(!periods.contain(MAX_EDGES as i64 * 10 - 13));
        assert!(periods.contain(MAX_EDGES as i64 * 10 - 7));
    }
}
