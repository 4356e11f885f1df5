//! Splits the time of a program into phases where its parts change.
//!
//! Slices of the time go in; the [`Phase`]s come out, at most [`MAX_PHASES`], or none. The slices are split where the parts
//! of the time on both sides differ most, again and again, wherever that is: a slow start keeps its own length.
//! Pieces that are no phases are left out, and neighbours with one verdict joined. Then each phase must be alike throughout,
//! and each change sharp: a program that does the same things in turns, or drifts, has no phases.

use super::walk::bounds_ns;
use super::{MAX_PHASES, Phase, Sum};
use gapscope_timeline::intervals::Interval;
use gapscope_timeline::quantity::{Nanoseconds, Percent, ratio};
use gapscope_timeline::thresholds::{PHASE_DIFFERENCE, PHASE_SHARPNESS, VERDICT_PHASE_SHARE};
use std::ops::Range;

/// The most pieces that the time is split into.
const MAX_PIECES: usize = 8;

/// A piece of the time that may be a phase.
struct Piece {
    slices: Range<usize>,
    sum: Sum,
}

/// Returns the phases of a window; none where it has no changes of the verdict. `start_ns` is the program's first work, and
/// `origin_ns` the start of the recording.
pub(super) fn phases(
    slices: &[Sum],
    window: Interval,
    start_ns: i64,
    origin_ns: i64,
) -> Vec<Phase> {
    let pieces = joined(slices, split(slices));
    let differ = pieces
        .windows(2)
        .any(|two| two[0].sum.bound() != two[1].sum.bound());
    if !differ || pieces.len() > MAX_PHASES || !are_phases(slices, &pieces) {
        return Vec::new();
    }
    let whole_ns = Sum::new(slices).window_ns();
    let bounds = bounds_ns(window, slices.len());
    let from_start = |ns: i64| Nanoseconds(ns.saturating_sub(origin_ns));
    (pieces.into_iter())
        .map(|Piece { slices, sum }| {
            let interval = Interval::new(bounds[slices.start], bounds[slices.end]);
            let time = match interval.start_ns <= start_ns {
                true => format!("The first {}", Nanoseconds(interval.length_ns())),
                false => format!(
                    "From {} to {}",
                    from_start(interval.start_ns),
                    from_start(interval.end_ns)
                ),
            };
            let share = Percent(ratio(sum.window_ns(), whole_ns));
            sum.phase(None, interval, &format!("{time}, {share} of the time"))
        })
        .collect()
}

/// Splits the slices where the parts of their time change, those with the greatest change first.
fn split(slices: &[Sum]) -> Vec<Range<usize>> {
    let mut pieces: Vec<Range<usize>> = std::iter::once(0..slices.len()).collect();
    while pieces.len() < MAX_PIECES {
        let splits = pieces.iter().enumerate().filter_map(|(at, piece)| {
            let (middle, gain) = best_split(slices, piece.clone())?;
            Some((at, middle, gain))
        });
        let Some((at, middle, _)) = splits.max_by(|a, b| a.2.total_cmp(&b.2)) else {
            break;
        };
        let piece = pieces[at].clone();
        pieces.splice(at..=at, [piece.start..middle, middle..piece.end]);
    }
    pieces
}

/// Returns the slice at which a piece is best split, and how much that tells the sides apart.
fn best_split(slices: &[Sum], piece: Range<usize>) -> Option<(usize, f64)> {
    let running = |sum: &mut Sum, slice: &Sum| {
        *sum = Sum::new([&*sum, slice]);
        Some(*sum)
    };
    let piece_slices = &slices[piece.clone()];
    let lefts = piece_slices.iter().scan(Sum::default(), running);
    let rights = piece_slices.iter().rev().scan(Sum::default(), running);
    let rights: Vec<Sum> = rights.collect();
    // The right side of the first split is all but the first slice.
    let sides = lefts.zip(rights.iter().rev().skip(1));
    let splits = sides.enumerate().filter_map(|(at, (left, right))| {
        let difference = left.difference(right);
        let lengths = [&left, right].map(|side| side.window_ns() as f64);
        let weight = lengths[0] * lengths[1] / (lengths[0] + lengths[1]);
        let counts = difference >= PHASE_DIFFERENCE && weight > 0.0;
        counts.then_some((piece.start + at + 1, difference * difference * weight))
    });
    splits.max_by(|a, b| a.1.total_cmp(&b.1))
}

/// Returns the pieces that are long and even enough to be phases. Neighbours with one verdict are one, with the short
/// piece between them.
fn joined(slices: &[Sum], pieces: Vec<Range<usize>>) -> Vec<Piece> {
    let sum = |range: &Range<usize>| Sum::new(&slices[range.clone()]);
    let whole_ns = Sum::new(slices).window_ns();
    let mut joined: Vec<Piece> = Vec::new();
    for piece in pieces {
        let new = Piece {
            sum: sum(&piece),
            slices: piece,
        };
        if !new.sum.is_phase(whole_ns) {
            continue;
        }
        match joined.last_mut() {
            Some(last)
                if last.sum.bound() == new.sum.bound()
                    && ratio(
                        sum(&(last.slices.end..new.slices.start)).window_ns(),
                        whole_ns,
                    ) < VERDICT_PHASE_SHARE =>
            {
                last.slices.end = new.slices.end;
                last.sum = sum(&last.slices);
            }
            _ => joined.push(new),
        }
    }
    joined
}

/// Returns true where the time within each piece is more like that piece than like one with another verdict, and where what
/// lies right before a change differs from what lies right after as much as the pieces do.
fn are_phases(slices: &[Sum], pieces: &[Piece]) -> bool {
    let shortest = pieces.iter().map(|piece| piece.slices.len()).min();
    let length = (shortest.unwrap_or(0) / 2).max(1);
    let is_alike = |piece: &Piece| {
        let others = || {
            pieces
                .iter()
                .filter(|other| other.sum.bound() != piece.sum.bound())
        };
        let blocks = slices[piece.slices.clone()].chunks(length).map(Sum::new);
        let odd = blocks.filter(|block| {
            let own = block.difference(&piece.sum);
            others().any(|other| block.difference(&other.sum) < own)
        });
        let odd_ns = odd.fold(0, |ns, block| i64::saturating_add(ns, block.window_ns()));
        ratio(odd_ns, piece.sum.window_ns()) < VERDICT_PHASE_SHARE
    };
    let is_sharp = |two: &[Piece]| {
        let (before, after) = (&two[0].slices, &two[1].slices);
        let last = Sum::new(&slices[before.end - length..before.end]);
        let first = Sum::new(&slices[after.start..after.start + length]);
        let needed = PHASE_SHARPNESS * two[0].sum.difference(&two[1].sum);
        last.difference(&first) >= needed.max(PHASE_DIFFERENCE)
    };
    let changes = |two: &&[Piece]| two[0].sum.bound() != two[1].sum.bound();
    pieces.iter().all(is_alike) && pieces.windows(2).filter(changes).all(is_sharp)
}
