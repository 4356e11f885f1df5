//! Passes and their dispatches: where only the one or the other is timed, what that says of both.

use std::borrow::Cow;
use std::ops::Range;

/// Begin and end in nanoseconds of one clock; else why they are not known.
pub(crate) type Interval = Result<(u64, u64), Cow<'static, str>>;

/// Why a dispatch has no time where the program asked for none.
pub(crate) const WANTED_NO_MORE: &str = "the program wanted times of command buffers only";

/// Why a dispatch has no time where its pass has one.
const NOT_ALONE: Cow<'static, str> =
    Cow::Borrowed("only the time of its pass can be had, which holds others too");

/// The time of each pass and of each dispatch, by what was measured. `None`: it was not timed itself. A pass is then
/// from its first dispatch to its last, and a dispatch that is alone in its pass has the pass's time.
pub(crate) fn settle(
    passes: &[(Range<usize>, Option<Interval>)],
    dispatches: &[Option<Interval>],
) -> (Vec<Interval>, Vec<Interval>) {
    let unknown = || Err(NOT_ALONE);
    let mut of_dispatches: Vec<Interval> = dispatches
        .iter()
        .map(|measured| measured.clone().unwrap_or_else(unknown))
        .collect();
    let mut of_passes = Vec::with_capacity(passes.len());
    for (inside, measured) in passes {
        let of_pass = match measured {
            Some(measured) => measured.clone(),
            None => hull(&of_dispatches[inside.clone()]),
        };
        let alone = match (&of_pass, inside.len()) {
            (Ok(_), 2..) => Err(NOT_ALONE),
            _ => of_pass.clone(),
        };
        for index in inside.clone().filter(|index| dispatches[*index].is_none()) {
            of_dispatches[index] = alone.clone();
        }
        of_passes.push(of_pass);
    }
    (of_passes, of_dispatches)
}

/// From the first begin to the last end of those that are known.
pub(crate) fn hull(intervals: &[Interval]) -> Interval {
    let known = intervals
        .iter()
        .filter_map(|interval| interval.clone().ok());
    let hull = known.reduce(|(a, b), (c, d)| (a.min(c), b.max(d)));
    let why = || intervals.iter().find_map(|interval| interval.clone().err());
    hull.ok_or_else(|| why().unwrap_or(Cow::Borrowed("nothing ran in it")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lost<T>() -> Result<T, Cow<'static, str>> {
        Err("no queries".into())
    }

    #[test]
    fn dispatches_that_are_timed_make_the_time_of_their_pass() {
        let dispatches = [
            Some(Ok((5, 7))),
            Some(lost()),
            Some(Ok((8, 12))),
            Some(lost()),
        ];
        let (passes, of_dispatches) = settle(&[(0..3, None), (3..4, None)], &dispatches);
        assert_eq!(passes, [Ok((5, 12)), lost()]);
        assert_eq!(of_dispatches, dispatches.map(Option::unwrap));
    }

    #[test]
    fn a_pass_that_is_timed_makes_the_time_of_a_dispatch_that_is_alone() {
        let passes = [
            (0..2, Some(Ok((1, 9)))),
            (2..3, Some(Ok((9, 11)))),
            (3..4, Some(lost())),
        ];
        let (of_passes, dispatches) = settle(&passes, &[None, None, None, None]);
        assert_eq!(of_passes, [Ok((1, 9)), Ok((9, 11)), lost()]);
        assert_eq!(
            dispatches,
            [Err(NOT_ALONE), Err(NOT_ALONE), Ok((9, 11)), lost()]
        );
    }

    #[test]
    fn a_pass_without_dispatches_has_its_own_time_or_none() {
        let (passes, _) = settle(&[(0..0, None), (0..0, Some(Ok((1, 2))))], &[]);
        assert_eq!(passes, [Err("nothing ran in it".into()), Ok((1, 2))]);
    }
}
