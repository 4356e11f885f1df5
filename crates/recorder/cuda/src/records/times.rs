//! Reads CUPTI's times, in which 0 means unknown.

use gapscope_spool::event::Span;

/// Returns a time; `None` where CUPTI says 0, which means that it is unknown.
pub fn known(ns: u64) -> Option<i64> {
    i64::try_from(ns).ok().filter(|ns| *ns > 0)
}

/// Returns the times of something on the host, which may be shorter than the clock can resolve; `None` where a time
/// is unknown or the end lies before the start.
pub fn span(start: u64, end: u64) -> Option<Span> {
    let start_ns = known(start)?;
    let duration_ns = i64::try_from(end)
        .ok()?
        .checked_sub(start_ns)
        .filter(|d| *d >= 0)?;
    Some(Span {
        start_ns,
        duration_ns,
    })
}

/// Returns the times of work on a device. Work takes time: an end that is not after the start is wrong.
pub fn work_span(start: u64, end: u64) -> Option<Span> {
    span(start, end).filter(|span| span.duration_ns > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_that_cannot_be_are_unknown_and_never_zero() {
        assert_eq!(
            work_span(5, 9),
            Some(Span {
                start_ns: 5,
                duration_ns: 4
            })
        );
        for (start, end) in [
            (0, 0),
            (0, 9),
            (9, 0),
            (9, 9),
            (9, 5),
            (u64::MAX, u64::MAX),
            (5, u64::MAX),
        ] {
            assert_eq!(work_span(start, end), None, "{start}..{end}");
        }
        assert_eq!(
            span(9, 9),
            Some(Span {
                start_ns: 9,
                duration_ns: 0
            })
        );
        assert_eq!(span(9, 5), None);
    }
}
