//! Compares two sets of samples of one quantity, and decides whether their difference is more than chance.
//!
//! The figure of a set is its median, which outliers do not move. Two sets are compared by the ratio of their medians,
//! with an interval that holds the true ratio in [`CONFIDENCE`] of all cases: where it holds 1, the two may be the same,
//! and a difference is called *within noise*. So at most 5 in 100 comparisons of a thing with itself find a difference.
//!
//! Method: the median of `n` samples lies between the `k`-th smallest and the `k`-th greatest as often as `n` throws of a coin
//! show at least `k` heads and `k` tails. That is exact for every distribution, and needs [`LEAST_EVALUATIONS`](gapscope_timeline::thresholds::LEAST_EVALUATIONS) samples. The
//! two intervals become one of the ratio on the scale of logarithms, each contributing the square of its distance from its median
//! on the side that counts (Zou and Donner's MOVER). Neither a normal distribution nor equal spreads are assumed.
//!
//! Samples must not depend on each other. Those of a program often do: clocks rise and fall over many evaluations. So where there
//! are many samples, the medians of at least [`EVALUATION_BLOCKS`] blocks of neighbours take their place, and what lasts for a
//! small part of the run is seen as the noise that it is.
//!
//! What this cannot know: what differs between the two besides the work, as when one runs on a cold GPU and the other on a warm
//! one. Take turns, or record several runs.

use gapscope_timeline::thresholds::{CONFIDENCE, EVALUATION_BLOCKS};
use schemars::JsonSchema;
use serde::Serialize;

/// The statistics of one set of samples, in the unit of its quantity.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, JsonSchema)]
pub struct Spread {
    /// How many samples there are.
    pub count: u64,
    /// Their arithmetic mean.
    pub mean: f64,
    /// Half of them are at most this; between the two middle ones of an even number.
    pub median: f64,
    /// A quarter of them are at most this.
    pub p25: f64,
    /// Three quarters of them are at most this.
    pub p75: f64,
    /// The smallest.
    pub min: f64,
    /// The greatest.
    pub max: f64,
}

/// The ratio of the medians of two sets of samples.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MedianRatio {
    /// The median before the change over the median after it.
    pub ratio: f64,
    /// The bounds, from low to high, of the true ratio; `None` where there are too few samples.
    pub interval: Option<[f64; 2]>,
}

impl Spread {
    /// Computes the statistics of samples, or returns `None` without any.
    pub fn from_samples(samples: &[f64]) -> Option<Spread> {
        let sorted = sorted(samples);
        let (min, max) = (*sorted.first()?, *sorted.last()?);
        Some(Spread {
            count: sorted.len() as u64,
            mean: sorted.iter().sum::<f64>() / sorted.len() as f64,
            median: quantile(&sorted, 0.5),
            p25: quantile(&sorted, 0.25),
            p75: quantile(&sorted, 0.75),
            min,
            max,
        })
    }
}

impl MedianRatio {
    /// Compares samples, each set in order of time. Returns `None` when a set is empty or a median is not above 0.
    pub fn from_samples(before: &[f64], after: &[f64]) -> Option<MedianRatio> {
        let [first, second] = [before, after].map(Median::new);
        let (first, second) = (first?, second?);
        let ratio = first.value / second.value;
        let interval = first.interval.zip(second.interval).map(|(a, b)| {
            let below = (first.value / a[0]).ln().hypot((b[1] / second.value).ln());
            let above = (a[1] / first.value).ln().hypot((second.value / b[0]).ln());
            [ratio * (-below).exp(), ratio * above.exp()]
        });
        Some(MedianRatio {
            ratio,
            interval: interval.filter(|ends| ends.iter().all(|end| end.is_finite())),
        })
    }

    /// Returns whether the difference may be chance, or `None` when that is not known.
    pub fn is_within_noise(&self) -> Option<bool> {
        self.interval.map(|[low, high]| low <= 1.0 && 1.0 <= high)
    }
}

/// A median above 0, and the interval that holds the true median.
struct Median {
    value: f64,
    /// `None` where there are too few samples.
    interval: Option<[f64; 2]>,
}

impl Median {
    /// Returns `None` without samples, or where the median is not above 0.
    fn new(samples: &[f64]) -> Option<Median> {
        let value = quantile(&sorted(samples), 0.5);
        if samples.is_empty() || value <= 0.0 || !value.is_finite() {
            return None;
        }
        let blocks = sorted(&blocks(samples));
        let interval = rank(blocks.len()).map(|rank| {
            let (low, high) = (blocks[rank - 1], blocks[blocks.len() - rank]);
            // The median of the blocks' medians can differ a little from the median of all samples.
            [low.min(value), high.max(value)]
        });
        Some(Median { value, interval })
    }
}

/// Returns the medians of blocks of neighbours, or the samples themselves where there are few. Samples after the last
/// whole block are left out.
fn blocks(samples: &[f64]) -> Vec<f64> {
    let size = samples.len() / EVALUATION_BLOCKS;
    // The median of a block of odd size is as often above the true median as below.
    let size = size.saturating_sub(1) / 2 * 2 + 1;
    let medians = samples.chunks_exact(size);
    medians.map(|block| quantile(&sorted(block), 0.5)).collect()
}

/// Returns the rank `k` for which the `k`-th smallest and the `k`-th greatest of `count` samples hold the median between them with the
/// wanted confidence, or `None` when even the smallest and the greatest do not.
fn rank(count: usize) -> Option<usize> {
    // The chance of at most `k` heads in `count` throws, one `k` after the other.
    let mut chance_of = 0.5f64.powi(i32::try_from(count).ok()?);
    let mut at_most = 0.0;
    for heads in 0..count {
        at_most += chance_of;
        if at_most > (1.0 - CONFIDENCE) / 2.0 {
            return (heads > 0).then_some(heads);
        }
        chance_of *= (count - heads) as f64 / (heads + 1) as f64;
    }
    None
}

fn sorted(samples: &[f64]) -> Vec<f64> {
    let mut sorted = samples.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    sorted
}

/// Returns the value that `part` of the sorted samples do not exceed, interpolated between neighbours, or 0 without samples.
fn quantile(sorted: &[f64], part: f64) -> f64 {
    let at = part * sorted.len().saturating_sub(1) as f64;
    let [below, above] = [at.floor(), at.ceil()].map(|at| sorted.get(at as usize));
    let (below, above) = (below.copied().unwrap_or(0.0), above.copied().unwrap_or(0.0));
    below + (above - below) * at.fract()
}
