//! Finds out from the gaps of a device whether they come regularly, and with which period.
//!
//! Only the gaps that carry the idle time count: half of the idle time is in gaps of some length or longer, and gaps of at
//! least half that length are taken. So small gaps between large ones do not count, and gaps of varying length do. The gaps
//! are regular if half of the distances from each gap to the next, or to the one after that and so on up to
//! [`REGULAR_MOST_IN_PERIOD`], differ from their median by at most [`REGULAR_SPREAD`] of the mean distance of neighbours.
//! Quartiles are used, so that a pause or an additional gap changes nothing. Distances are taken between starts or ends of
//! gaps, whichever differ less.
//!
//! What this cannot know: what has the period. Gaps of two periods, of which neither has most of the idle time, are
//! irregular.

use gapscope_timeline::intervals::Interval;
use gapscope_timeline::quantity::ratio;
use gapscope_timeline::thresholds::{REGULAR_LEAST_GAPS, REGULAR_MOST_IN_PERIOD, REGULAR_SPREAD};
use schemars::JsonSchema;
use serde::Serialize;

/// The maximum number of gaps that are examined, from the first on, so that memory is bounded. Later gaps are
/// ignored.
const MAX_GAPS: usize = 1 << 20;

/// Whether gaps come regularly.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Regularity {
    /// They have a period.
    Regular,
    /// They have none.
    Irregular,
    /// There are too few to tell.
    #[default]
    Unknown,
}

/// How the gaps that carry the idle time follow each other.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
pub struct Pattern {
    /// Whether they come regularly.
    pub regularity: Regularity,
    /// From one to the next, or from one to the one as many later as there are in a period: the median. Absent unless
    /// they are regular.
    pub period_ns: Option<i64>,
    /// Gaps in a period.
    pub gaps_per_period: Option<u64>,
    /// Half of the periods differ from `period_ns` by at most this share of it. Absent unless they are regular.
    pub spread_share: Option<f64>,
    /// From one to the next: a quarter comes sooner. Absent without at least two.
    pub apart_p25_ns: Option<i64>,
    /// A quarter comes later.
    pub apart_p75_ns: Option<i64>,
    /// How many gaps these are.
    pub gap_count: u64,
    /// Their sum.
    pub total_ns: i64,
    /// Of the device's idle time; absent without any.
    pub share: Option<f64>,
    /// Why it is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

impl Pattern {
    /// Finds the pattern of gaps. `gaps` returns them in order of time, each time it is called.
    pub(super) fn new<I: Iterator<Item = Interval>>(gaps: impl Fn() -> I) -> Pattern {
        let (least_ns, idle_ns) = least_length(gaps());
        let mut pattern = Pattern::default();
        let mut carriers = Vec::new();
        for gap in gaps().filter(|gap| gap.length_ns() >= least_ns) {
            pattern.gap_count += 1;
            pattern.total_ns = pattern.total_ns.saturating_add(gap.length_ns());
            if carriers.len() < MAX_GAPS {
                carriers.push(gap);
            }
        }
        pattern.share = (idle_ns > 0).then(|| ratio(pattern.total_ns, idle_ns));
        let mut apart = distances(&carriers, 1, |gap| gap.start_ns);
        if let Some(quartiles) = Quartiles::new(&mut apart) {
            pattern.apart_p25_ns = Some(quartiles.p25);
            pattern.apart_p75_ns = Some(quartiles.p75);
        }
        if pattern.gap_count < REGULAR_LEAST_GAPS {
            pattern.reason = Some(match pattern.gap_count {
                0 => "There are no gaps.".to_owned(),
                _ => "There are too few of them to tell.".to_owned(),
            });
            return pattern;
        }
        // At least twice as many distances are needed as there are gaps in a period.
        let most = REGULAR_MOST_IN_PERIOD.min(pattern.gap_count / 3);
        let found = (1..=most).find_map(|count| period(&carriers, count as usize));
        match found {
            None => pattern.regularity = Regularity::Irregular,
            Some(found) => {
                pattern.regularity = Regularity::Regular;
                pattern.period_ns = Some(found.quartiles.p50);
                pattern.gaps_per_period = Some(found.gaps as u64);
                pattern.spread_share = Some(ratio(found.quartiles.spread(), found.quartiles.p50));
            }
        }
        pattern
    }
}

/// A period, and the number of gaps in it.
struct Period {
    gaps: usize,
    quartiles: Quartiles,
}

/// Returns the period of gaps of which each resembles the gap `count` places before, or `None` where they do not.
fn period(gaps: &[Interval], count: usize) -> Option<Period> {
    let edges: [fn(&Interval) -> i64; 2] = [|gap| gap.start_ns, |gap| gap.end_ns];
    let best = edges
        .into_iter()
        .filter_map(|edge| Quartiles::new(&mut distances(gaps, count, edge)))
        .min_by_key(Quartiles::spread)?;
    let allowed = best.p50 as f64 / count as f64 * REGULAR_SPREAD;
    (best.p50 > 0 && best.spread() as f64 <= allowed).then_some(Period {
        gaps: count,
        quartiles: best,
    })
}

/// Returns the distance from each gap to the one `count` places later, between their edges.
fn distances(gaps: &[Interval], count: usize, edge: impl Fn(&Interval) -> i64) -> Vec<i64> {
    let later = gaps.iter().skip(count);
    let pairs = gaps.iter().zip(later);
    pairs.map(|(gap, later)| edge(later) - edge(gap)).collect()
}

/// The quartiles of some numbers.
pub(super) struct Quartiles {
    pub(super) p25: i64,
    pub(super) p50: i64,
    p75: i64,
}

impl Quartiles {
    /// Returns the quartiles by nearest rank, or `None` without numbers. The order of the numbers changes.
    pub(super) fn new(numbers: &mut [i64]) -> Option<Quartiles> {
        let last = numbers.len().checked_sub(1)?;
        let mut at = |place: usize| *numbers.select_nth_unstable(place).1;
        Some(Quartiles {
            p25: at(last / 4),
            p50: at(last / 2),
            p75: at(last - last / 4),
        })
    }

    /// Returns the distance from their middle within which half of the numbers lie.
    pub(super) fn spread(&self) -> i64 {
        (self.p75 - self.p25 + 1) / 2
    }
}

/// Returns the length from which on gaps carry the idle time, then the sum of the idle time.
fn least_length(gaps: impl Iterator<Item = Interval>) -> (i64, i64) {
    // Sixteen bins for each doubling.
    const BIN_BITS: u32 = 4;
    let mut bins = vec![0_i64; 64 << BIN_BITS];
    let mut idle_ns = 0_i64;
    let bin = |ns: i64| {
        let doublings = ns.max(1).ilog2();
        let rest = match doublings.checked_sub(BIN_BITS) {
            Some(shift) => ns >> shift,
            None => ns << (BIN_BITS - doublings),
        };
        ((doublings as usize) << BIN_BITS) + (rest as usize & ((1 << BIN_BITS) - 1))
    };
    for gap in gaps {
        let ns = gap.length_ns();
        bins[bin(ns)] = bins[bin(ns)].saturating_add(ns);
        idle_ns = idle_ns.saturating_add(ns);
    }
    let mut longer_ns = 0_i64;
    let half = (0..bins.len()).rev().find(|at| {
        longer_ns = longer_ns.saturating_add(bins[*at]);
        longer_ns >= idle_ns / 2
    });
    let at = half.unwrap_or(0);
    let (doublings, part) = (at >> BIN_BITS, (at & ((1 << BIN_BITS) - 1)) as i64);
    let length = ((1_i128 << BIN_BITS) + i128::from(part)) << doublings >> BIN_BITS;
    (((length / 2) as i64).max(1), idle_ns)
}
