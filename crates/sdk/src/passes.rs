//! Derives the times of passes (encoders) and of the dispatches in them from each other if only one of the two is
//! timed.

use crate::interval::Interval;
use std::borrow::Cow;
use std::ops::Range;

/// The interval in which something ran, or why it is not known.
pub(crate) type MeasuredInterval = Result<Interval, Cow<'static, str>>;

/// A pass with its measured interval.
#[derive(Debug, Clone)]
pub(crate) struct MeasuredPass {
    /// The dispatches of the pass, by their indices in the command buffer.
    pub inside: Range<usize>,
    /// The measured interval; `None` if the pass was not timed itself.
    pub measured: Option<MeasuredInterval>,
    /// The pass may hold dispatches that are not listed.
    pub hides_dispatches: bool,
}

/// The intervals of the passes and dispatches of a command buffer.
#[derive(Debug)]
pub(crate) struct WorkTimes {
    pub passes: Vec<MeasuredInterval>,
    pub dispatches: Vec<MeasuredInterval>,
}

/// The reason for dispatches without times in a program that did not ask for them.
pub(crate) const WANTED_NO_MORE: &str = "the program wanted times of command buffers only";

/// The reason for dispatches without times in passes that have times.
const NOT_ALONE: Cow<'static, str> =
    Cow::Borrowed("only its pass was timed, which holds other dispatches too");

/// The reason for times that work without times of its own may lie outside of.
pub(crate) const HIDDEN: &str =
    "the program encoded through wgpu's own encoder or pass, and that work may lie outside of it";

/// Returns the interval of each pass and of each dispatch. A pass that was not timed itself extends from its first
/// dispatch to its last. A dispatch that was not timed has the interval of its pass if it is alone in it.
pub(crate) fn settle(
    passes: &[MeasuredPass],
    dispatches: &[Option<MeasuredInterval>],
) -> WorkTimes {
    let unknown = || Err(NOT_ALONE);
    let mut of_dispatches: Vec<MeasuredInterval> = dispatches
        .iter()
        .map(|measured| measured.clone().unwrap_or_else(unknown))
        .collect();
    let mut of_passes = Vec::with_capacity(passes.len());
    for pass in passes {
        let MeasuredPass {
            inside, measured, ..
        } = pass;
        let of_pass = match measured {
            Some(measured) => measured.clone(),
            None if pass.hides_dispatches => Err(Cow::Borrowed(HIDDEN)),
            None => hull(&of_dispatches[inside.clone()]),
        };
        let alone = match (&of_pass, inside.len()) {
            (Ok(_), 2..) => Err(NOT_ALONE),
            (Ok(_), _) if pass.hides_dispatches => Err(NOT_ALONE),
            _ => of_pass.clone(),
        };
        for index in inside.clone().filter(|index| dispatches[*index].is_none()) {
            of_dispatches[index] = alone.clone();
        }
        of_passes.push(of_pass);
    }
    WorkTimes {
        passes: of_passes,
        dispatches: of_dispatches,
    }
}

/// Returns the interval from the first known start to the last known end, or the first reason why none is known.
pub(crate) fn hull(measured: &[MeasuredInterval]) -> MeasuredInterval {
    let known = measured.iter().filter_map(|one| one.as_ref().ok().copied());
    let why = || measured.iter().find_map(|one| one.clone().err());
    let hull = known.reduce(Interval::hull);
    hull.ok_or_else(|| why().unwrap_or(Cow::Borrowed("nothing ran in it")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ran(start_ns: u64, end_ns: u64) -> MeasuredInterval {
        Ok(Interval { start_ns, end_ns })
    }

    fn lost() -> MeasuredInterval {
        Err("no queries".into())
    }

    fn pass(inside: Range<usize>, measured: Option<MeasuredInterval>) -> MeasuredPass {
        MeasuredPass {
            inside,
            measured,
            hides_dispatches: false,
        }
    }

    #[test]
    fn dispatches_that_are_timed_make_the_time_of_their_pass() {
        let dispatches = [ran(5, 7), lost(), ran(8, 12), lost()];
        let passes = [pass(0..3, None), pass(3..4, None)];
        let settled = settle(&passes, &dispatches.clone().map(Some));
        assert_eq!(settled.passes, [ran(5, 12), lost()]);
        assert_eq!(settled.dispatches, dispatches);
    }

    #[test]
    fn a_pass_that_is_timed_makes_the_time_of_a_dispatch_that_is_alone() {
        let passes = [
            pass(0..2, Some(ran(1, 9))),
            pass(2..3, Some(ran(9, 11))),
            pass(3..4, Some(lost())),
        ];
        let settled = settle(&passes, &[None, None, None, None]);
        assert_eq!(settled.passes, [ran(1, 9), ran(9, 11), lost()]);
        let alone = Err(NOT_ALONE);
        assert_eq!(
            settled.dispatches,
            [alone.clone(), alone, ran(9, 11), lost()]
        );
    }

    #[test]
    fn a_dispatch_beside_dispatches_that_are_not_listed_has_no_time_of_its_pass() {
        let hiding = |measured| MeasuredPass {
            hides_dispatches: true,
            ..pass(0..1, measured)
        };
        let timed_pass = settle(&[hiding(Some(ran(1, 9)))], &[None]);
        assert_eq!(timed_pass.passes, [ran(1, 9)]);
        assert_eq!(timed_pass.dispatches, [Err(NOT_ALONE)]);
        let timed_dispatch = settle(&[hiding(None)], &[Some(ran(3, 4))]);
        assert_eq!(timed_dispatch.passes, [Err(HIDDEN.into())]);
        assert_eq!(timed_dispatch.dispatches, [ran(3, 4)]);
    }

    #[test]
    fn a_pass_without_dispatches_has_its_own_time_or_none() {
        let settled = settle(&[pass(0..0, None), pass(0..0, Some(ran(1, 2)))], &[]);
        assert_eq!(settled.passes, [Err("nothing ran in it".into()), ran(1, 2)]);
    }
}
