//! Finds out whether launches repeat themselves so evenly that ranges fit as well around those of another time: the loop of a
//! program, or a test that plays the same launches again. Offsets of the clocks that are near are tried by `offset` itself.

use super::{AS_GOOD, MAX_OFFSET_NS, MIN_LEAD, ThreadPair, fit, inside_at, moved_by};
use std::ops::Range;

/// How far a repetition is looked for, in launches of the thread with most of them in the time of the ranges.
const MAX_LAUNCHES_AWAY: usize = 1 << 16;
/// How many launches are compared, and how many of them may come at another time in a repetition.
const COMPARED: usize = 32;
const OTHERS: usize = 8;
/// By how much a launch may come earlier or later in a repetition.
const UNEVEN_NS: i64 = 20_000;
/// The maximum number of repetitions that are tried.
const MAX_TRIED: usize = 4;

/// Another time at which the launches repeat themselves.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Repetition {
    /// How much later the launches of that time are; negative for earlier ones.
    pub later_ns: i64,
    /// The share of those launches that lie inside of an operator.
    pub share: f64,
}

impl Repetition {
    /// Returns how far away the repetition is, in words.
    pub(crate) fn distance(self) -> String {
        let ms = self.later_ns.unsigned_abs() as f64 / 1e6;
        let way = if self.later_ns < 0 {
            "earlier"
        } else {
            "later"
        };
        format!("{ms:.3} ms {way}")
    }
}

/// Returns the repetition whose launches fit best, where they fit nearly as well as those at the offset; `None` without one.
pub(super) fn find(pairs: &[ThreadPair], offset_ns: i64) -> Option<Repetition> {
    let (all, inside) = inside_at(pairs, offset_ns);
    let share = |all: u64, inside: u64| inside as f64 / all.max(1) as f64;
    let own = share(all, inside);
    let tried = shifts(pairs, offset_ns).into_iter().take(MAX_TRIED);
    let found = tried.filter_map(|later_ns| {
        let by = offset_ns.saturating_add(later_ns);
        let later = |ns: i64| ns.saturating_add(by);
        let moved = |segments: &[Range<i64>]| {
            let segments = segments.iter();
            segments.map(|s| later(s.start)..later(s.end)).collect()
        };
        let fit = moved_by(pairs, moved, fit)?;
        let (other_all, other_inside) = (fit.launches, fit.inside);
        let is_whole = other_all as f64 >= all as f64 * (1.0 - MIN_LEAD);
        is_whole.then_some(Repetition {
            later_ns,
            share: share(other_all, other_inside),
        })
    });
    // Of equal ones the most even, and then the nearest.
    let best = found.min_by(|a, b| b.share.total_cmp(&a.share))?;
    (best.share + MIN_LEAD + AS_GOOD > own).then_some(best)
}

/// Returns by how much later launches repeat themselves, the most even repetitions first.
fn shifts(pairs: &[ThreadPair], offset_ns: i64) -> Vec<i64> {
    let within = |pair: &ThreadPair| {
        let window = pair.window()?;
        let from_ns = window.start.saturating_add(offset_ns);
        let to_ns = window.end.saturating_add(offset_ns);
        let first = pair
            .launches
            .partition_point(|launch| launch.span.start_ns < from_ns);
        let end = pair
            .launches
            .partition_point(|launch| launch.span.start_ns < to_ns);
        (first < end).then_some(first..end)
    };
    let with_launches = pairs.iter().filter_map(|pair| Some((pair, within(pair)?)));
    let Some((pair, own)) = with_launches.max_by_key(|(_, own)| own.len()) else {
        return Vec::new();
    };
    let start_ns = |index: usize| pair.launches[index].span.start_ns;
    let every = own.len().div_ceil(COMPARED).max(1);
    let compared: Vec<usize> = own.clone().step_by(every).collect();
    let longest = MAX_LAUNCHES_AWAY.min(pair.launches.len());
    let mut shifts: Vec<(i64, i64)> = Vec::new();
    for away in 1..longest {
        for later in [true, false] {
            let moved = compared.iter().filter_map(|index| {
                let other = match later {
                    true => index
                        .checked_add(away)
                        .filter(|other| *other < pair.launches.len()),
                    false => index.checked_sub(away),
                };
                Some(start_ns(other?).saturating_sub(start_ns(*index)))
            });
            let mut moved: Vec<i64> = moved.collect();
            if moved.len() < compared.len() {
                continue;
            }
            moved.sort_unstable();
            let others = OTHERS.min(moved.len() / 4);
            let middle = moved[moved.len() / 2];
            let uneven = moved[moved.len() - 1 - others / 2].saturating_sub(moved[others / 2]);
            if uneven <= UNEVEN_NS && middle.saturating_abs() > MAX_OFFSET_NS {
                shifts.push((uneven, middle));
            }
        }
    }
    shifts.sort_unstable_by_key(|(uneven, shift)| (*uneven, shift.abs()));
    shifts.into_iter().map(|(_, shift)| shift).collect()
}
