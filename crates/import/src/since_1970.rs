//! Decides whether the times of a file count from 1970 or from the start of a machine or a session. The clock of a
//! trace counts from the start of the machine, and times that are decades from its zero are impossible there
//! ([`FARTHEST_NS`]), so that times since 1970 are made to count from the beginning of the file's first day.

use gapscope_model::Span;
use std::ops::Range;

/// The start of 1995. A later time counts from 1970, and an earlier one from the start of the machine.
const SINCE_1970_NS: i64 = 25 * 365 * DAY_NS;
const DAY_NS: i64 = 24 * 3600 * 1_000_000_000;

/// The greatest distance of a time from the zero of a trace's clock at which traces are read, in nanoseconds.
const FARTHEST_NS: i64 = 1 << 60;

/// Returns the span between two times on the clock of a trace; `None` where they are impossible there.
pub(crate) fn checked(start_ns: i64, end_ns: i64) -> Option<Span> {
    let is_near = |ns: i64| (-FARTHEST_NS..=FARTHEST_NS).contains(&ns);
    Span::checked(start_ns, end_ns).filter(|_| is_near(start_ns) && is_near(end_ns))
}

/// Returns what is added to all times of a file in which a time since 1970 is `first_ns`: times then count from the
/// beginning of its day. For other times that is 0.
pub(crate) fn shift_of(first_ns: i64) -> i64 {
    match first_ns {
        SINCE_1970_NS.. => first_ns % DAY_NS - first_ns,
        _ => 0,
    }
}

/// The times of a file, of which most decide from when all count: a file may have stray times of another clock.
#[derive(Debug, Default, Clone)]
pub(crate) struct Times {
    since_start: Group,
    since_1970: Group,
}

/// Times that count from one moment.
#[derive(Debug, Default, Clone)]
struct Group {
    count: u64,
    /// The first time of the file.
    first_ns: i64,
    span_ns: Option<Range<i64>>,
}

impl Times {
    /// Adds the times of an event. A start of 0 may stand for an unknown time, and decides nothing.
    #[inline]
    pub fn add(&mut self, start_ns: i64, end_ns: i64) {
        if start_ns == 0 {
            return;
        }
        let group = match shift_of(start_ns) {
            0 => &mut self.since_start,
            _ => &mut self.since_1970,
        };
        group.count += 1;
        let span_ns = group.span_ns.get_or_insert_with(|| {
            group.first_ns = start_ns;
            start_ns..end_ns
        });
        span_ns.start = span_ns.start.min(start_ns);
        span_ns.end = span_ns.end.max(end_ns);
    }

    /// Adds the times of another clock. `convert` converts one of them to this clock.
    pub fn add_converted(&mut self, other: &Times, mut convert: impl FnMut(i64) -> Option<i64>) {
        for group in [&other.since_start, &other.since_1970] {
            if let Some(first_ns) = convert(group.first_ns).filter(|_| group.count > 0) {
                self.add(first_ns, first_ns);
                let own = match shift_of(first_ns) {
                    0 => &mut self.since_start,
                    _ => &mut self.since_1970,
                };
                own.count += group.count - 1;
            }
        }
    }

    fn most(&self) -> &Group {
        match self.since_1970.count > self.since_start.count {
            true => &self.since_1970,
            false => &self.since_start,
        }
    }

    /// Returns the time from the first to the last of most times; `None` without times.
    pub fn span_ns(&self) -> Option<Range<i64>> {
        self.most().span_ns.clone()
    }

    /// Returns what is added to all times of the file.
    pub fn shift_ns(&self) -> i64 {
        shift_of(self.most().first_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: i64 = 1_764_000_000_000_000_000;

    #[test]
    fn most_times_decide_from_when_all_count() {
        let shift = |starts: &[i64]| {
            let mut times = Times::default();
            starts.iter().for_each(|start| times.add(*start, start + 1));
            times.shift_ns()
        };
        assert_eq!(shift(&[]), 0);
        assert_eq!(shift(&[7, 8, NOW]), 0);
        assert_eq!(shift(&[0, 7, NOW, NOW + 5]), NOW % DAY_NS - NOW);
        assert_eq!(shift(&[NOW + 5, NOW]), (NOW + 5) % DAY_NS - NOW - 5);
    }

    #[test]
    fn times_decades_from_zero_are_impossible() {
        assert_eq!(checked(1, 2), Some(Span::between(1, 2)));
        assert_eq!(checked(NOW, NOW + 1), None);
        assert_eq!(checked(-NOW, 1), None);
        assert_eq!(checked(2, 1), None);
    }
}
