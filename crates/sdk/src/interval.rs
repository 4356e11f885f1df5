//! Intervals of time.

/// An interval in nanoseconds of one clock, whose end is no earlier than its start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Interval {
    pub start_ns: u64,
    pub end_ns: u64,
}

impl Interval {
    pub fn duration_ns(self) -> u64 {
        self.end_ns.saturating_sub(self.start_ns)
    }

    /// Returns the interval from the earlier start to the later end.
    pub fn hull(self, other: Interval) -> Interval {
        Interval {
            start_ns: self.start_ns.min(other.start_ns),
            end_ns: self.end_ns.max(other.end_ns),
        }
    }

    /// Returns the time that at least one of the intervals covers.
    pub fn union_ns(mut intervals: Vec<Interval>) -> u64 {
        intervals.sort_unstable();
        let (mut covered, mut until) = (0, 0);
        for Interval { start_ns, end_ns } in intervals {
            if end_ns > until {
                covered += end_ns - start_ns.max(until);
                until = end_ns;
            }
        }
        covered
    }
}
