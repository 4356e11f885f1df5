//! Estimates how much a figure changed, and how likely noise alone makes such a difference.
//!
//! With several runs on a side a run is a sample: the dispatches of a run share its clocks, its heat and its place in memory, so
//! that a million of them tell no more about the next run than one. Runs are compared on the scale of logarithms by Welch's test.
//! Where runs of both sides took turns, a straight line over their order is removed from both, since a drift is not the change.
//! A single run on one side is assumed to vary as those of the other side do.
//!
//! With one run on each side, only the variation inside of a run can be measured: sums over up to 64 blocks of neighbours, pair by
//! pair where both did the work in the same order. Neighbours resemble each other where something slows a run for a while, so
//! that the error of their sum is taken from the length of blocks that shows the greatest. How much runs differ besides is
//! then assumed (`spread.rs`).
//!
//! A figure of which a side lost a part is a lower bound there, and not compared.

use super::spread::AssumedSpread;
use super::student;
use gapscope_timeline::thresholds::CONFIDENCE;

/// A figure of one run, with its blocks.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sample<'a> {
    /// The figure; `None` where it is unknown.
    pub value: Option<f64>,
    /// The blocks of the run, whose sums make up the figure as far as they are known.
    pub blocks: &'a [f64],
    /// The assumed standard deviation of the figure's logarithm from run to run, for where it cannot be measured.
    pub spread: f64,
}

/// The way in which runs were made.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Design {
    /// The positions of the runs before, then of those after, in order of time; `None` where the sides did not take
    /// turns.
    pub turns: Option<[Vec<f64>; 2]>,
    /// The spread from run to run, where it cannot be measured.
    pub spread: AssumedSpread,
}

/// The estimate of a figure's change, with the interval of the true ratio from `low` to `high`.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Estimate {
    pub before: Option<f64>,
    pub after: Option<f64>,
    /// The figure after divided by the figure before.
    pub ratio: Option<f64>,
    pub low: Option<f64>,
    pub high: Option<f64>,
    /// The chance that noise alone makes a difference as great; `None` where nothing varies, or the chance is not
    /// known.
    pub p: Option<f64>,
    /// True where all runs of each side have the same value.
    pub exact: bool,
    /// The noise that a difference must exceed; `None` where it is not known.
    pub noise: Option<Noise>,
    /// The standard error that the parts of two runs show, of the logarithm of the ratio; `None` where runs are compared, or there are
    /// too few parts.
    pub inside: Option<f64>,
    /// True for each side of which some of what the figure counts was lost, so that its value is a lower bound.
    pub at_least: [bool; 2],
}

/// The noise of a difference: its standard error, with the degrees of freedom.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Noise {
    error: f64,
    freedom: f64,
    /// True for a difference of logarithms; else it is a part of the value before.
    is_logarithm: bool,
}

impl Noise {
    /// Returns the least ratio above 1 whose difference noise alone makes in at most `level` of comparisons.
    pub fn least_ratio(&self, level: f64) -> f64 {
        let reach = self.error * student::limit(level, self.freedom);
        match self.is_logarithm {
            true => reach.exp(),
            false => 1.0 + reach,
        }
    }
}

/// A difference with its standard error and degrees of freedom, of logarithms or as parts of the value before.
struct Difference {
    by: f64,
    error: f64,
    freedom: f64,
}

impl Estimate {
    /// Compares counts and bytes. Where they do not vary, any difference is exact; else runs are compared as for
    /// times.
    pub fn from_counts(before: &[Sample], after: &[Sample], design: &Design) -> Estimate {
        let Some([b, a]) = values(before, after) else {
            return Estimate::partial(before, after);
        };
        let constant = |values: &[f64]| values.iter().all(|value| *value == values[0]);
        if !constant(&b) || !constant(&a) {
            return Estimate::from_runs(&b, &a, design);
        }
        let (first, second) = (b[0], a[0]);
        let ratio = (first > 0.0).then(|| second / first);
        Estimate {
            before: Some(first),
            after: Some(second),
            ratio: ratio.or((first == second).then_some(1.0)),
            low: ratio,
            high: ratio,
            // One run does not tell how others would vary.
            p: (first != second && b.len() > 1 && a.len() > 1).then_some(0.0),
            exact: true,
            noise: None,
            ..Estimate::default()
        }
    }

    /// Compares times: run by run, or block by block where each side has one run.
    pub fn from_times(before: &[Sample], after: &[Sample], design: &Design) -> Estimate {
        let Some([b, a]) = values(before, after) else {
            return Estimate::partial(before, after);
        };
        match (before, after) {
            ([before], [after]) => Estimate::from_two(*before, *after),
            _ => Estimate::from_runs(&b, &a, design),
        }
    }

    /// Returns the least ratio above 1 that is told from noise at a level; `None` where there is nothing before, or the noise is
    /// not known.
    pub fn least_ratio(&self, level: f64) -> Option<f64> {
        let noise = self.noise.filter(|_| self.before > Some(0.0))?;
        Some(noise.least_ratio(level))
    }

    /// Returns the figures, which are not compared, as those of some sides are lower bounds.
    pub fn bounds(before: &[Sample], after: &[Sample], at_least: [bool; 2]) -> Estimate {
        Estimate {
            at_least,
            ..Estimate::partial(before, after)
        }
    }

    /// Returns true where a figure is known on both sides, and more than a lower bound.
    pub fn is_known(&self) -> bool {
        self.before.is_some() && self.after.is_some() && self.at_least == [false; 2]
    }

    /// Returns the estimate of a figure that cannot be compared, such as one that is known on at most one side.
    fn partial(before: &[Sample], after: &[Sample]) -> Estimate {
        let mean_of = |samples: &[Sample]| {
            let known: Option<Vec<f64>> = samples.iter().map(|sample| sample.value).collect();
            known
                .filter(|known| !known.is_empty())
                .map(|known| mean(&known))
        };
        Estimate {
            before: mean_of(before),
            after: mean_of(after),
            ..Estimate::default()
        }
    }

    /// Compares runs on the scale of logarithms, or as they are where a value is 0.
    fn from_runs(before: &[f64], after: &[f64], design: &Design) -> Estimate {
        let positive = before.iter().chain(after).all(|value| *value > 0.0);
        let logarithms = |values: &[f64]| -> Vec<f64> { values.iter().map(|v| v.ln()).collect() };
        let [b, a] = match positive {
            true => [logarithms(before), logarithms(after)],
            false => [before.to_vec(), after.to_vec()],
        };
        let difference = match &design.turns {
            Some(turns) => beside_a_trend(&b, &a, turns),
            None => between_means(&b, &a),
        };
        let value = |values: &[f64], logs: &[f64]| match positive {
            true => mean(logs).exp(),
            false => mean(values),
        };
        let (first, second) = (value(before, &b), value(after, &a));
        match positive {
            true => Estimate::from_difference(first, second, difference, true),
            false => {
                // A difference from nothing has no relative size.
                let scale = if first > 0.0 { first } else { 1.0 };
                let part = difference.map(|d| Difference {
                    by: d.by / scale,
                    error: d.error / scale,
                    freedom: d.freedom,
                });
                Estimate::from_difference(first, second, part, false)
            }
        }
    }

    /// Compares two runs by their blocks, with the assumed variation from run to run added.
    fn from_two(before: Sample, after: Sample) -> Estimate {
        let [b, a] = [before, after].map(|sample| sample.value.unwrap_or(0.0) + 0.0);
        let inside = relative_error(before.blocks, after.blocks);
        let between = before.spread.powi(2) + after.spread.powi(2);
        let difference = match inside {
            Some((error, freedom)) if b > 0.0 && a > 0.0 => {
                let variance = error * error + between;
                Some(Difference {
                    by: (a / b).ln(),
                    error: variance.sqrt(),
                    // The degrees of freedom are those of Welch and Satterthwaite, with the assumed variance taken as
                    // known.
                    freedom: freedom * (variance / (error * error)).powi(2),
                })
            }
            _ => None,
        };
        Estimate {
            inside: inside.map(|(error, _)| error),
            ..Estimate::from_difference(b, a, difference, true)
        }
    }

    /// Makes the chance and the interval from a difference, which is one of logarithms or a part of the value before.
    fn from_difference(
        before: f64,
        after: f64,
        difference: Option<Difference>,
        is_logarithm: bool,
    ) -> Estimate {
        let ratio_of = |by: f64| match is_logarithm {
            true => by.exp(),
            false => 1.0 + by,
        };
        let mut estimate = Estimate {
            before: Some(before),
            after: Some(after),
            ratio: (before > 0.0).then(|| after / before),
            ..Estimate::default()
        };
        let Some(Difference { by, error, freedom }) = difference else {
            return estimate;
        };
        estimate.p = Some(match error > 0.0 {
            // However small the chance is, it is one.
            true => student::two_sided(by / error, freedom).max(f64::MIN_POSITIVE),
            false if by == 0.0 => 1.0,
            false => 0.0,
        });
        if before > 0.0 && by.is_finite() && error.is_finite() {
            let reach = error * student::limit(1.0 - CONFIDENCE, freedom);
            estimate.ratio = Some(ratio_of(by));
            estimate.low = Some(ratio_of(by - reach).max(0.0));
            estimate.high = Some(ratio_of(by + reach));
        }
        estimate.noise = error.is_finite().then_some(Noise {
            error,
            freedom,
            is_logarithm,
        });
        estimate
    }
}

/// Returns the values of the runs before, then of those after, or `None` where one of them is not known.
fn values(before: &[Sample], after: &[Sample]) -> Option<[Vec<f64>; 2]> {
    // An empty sum of floating-point numbers is −0.
    let positive = |sample: &Sample| sample.value.map(|value| value + 0.0);
    let of = |samples: &[Sample]| samples.iter().map(positive).collect();
    let (b, a): (Option<Vec<f64>>, Option<Vec<f64>>) = (of(before), of(after));
    let known = |values: &Vec<f64>| !values.is_empty() && values.iter().all(|v| v.is_finite());
    Some([b.filter(known)?, a.filter(known)?])
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// Returns the sum of the squared distances from the mean.
fn squares(values: &[f64]) -> f64 {
    let mean = mean(values);
    values.iter().map(|value| (value - mean).powi(2)).sum()
}

/// Compares means by Welch's test. A side with a single run has the spread of the other.
fn between_means(before: &[f64], after: &[f64]) -> Option<Difference> {
    let by = mean(after) - mean(before);
    let [n, m] = [before.len() as f64, after.len() as f64];
    if before.len() < 2 || after.len() < 2 {
        let freedom = n + m - 2.0;
        let variance = (squares(before) + squares(after)) / freedom;
        let error = (variance * (1.0 / n + 1.0 / m)).sqrt();
        return (freedom > 0.0).then_some(Difference { by, error, freedom });
    }
    let [first, second] = [
        squares(before) / (n - 1.0) / n,
        squares(after) / (m - 1.0) / m,
    ];
    let variance = first + second;
    let freedom = match variance > 0.0 {
        true => variance.powi(2) / (first.powi(2) / (n - 1.0) + second.powi(2) / (m - 1.0)),
        false => n + m - 2.0,
    };
    Some(Difference {
        by,
        error: variance.sqrt(),
        freedom,
    })
}

/// Compares by least squares, with a straight line over the order of the runs that is the same for both sides.
fn beside_a_trend(before: &[f64], after: &[f64], turns: &[Vec<f64>; 2]) -> Option<Difference> {
    let side = |count: usize, side: f64| std::iter::repeat_n(side, count);
    let sides: Vec<f64> = side(before.len(), 0.0)
        .chain(side(after.len(), 1.0))
        .collect();
    let places: Vec<f64> = turns.iter().flatten().copied().collect();
    let all: Vec<f64> = before.iter().chain(after).copied().collect();
    if places.len() != all.len() {
        return between_means(before, after);
    }
    let product = |a: &[f64], b: &[f64]| -> f64 {
        let (of_a, of_b) = (mean(a), mean(b));
        a.iter().zip(b).map(|(a, b)| (a - of_a) * (b - of_b)).sum()
    };
    let (ss, tt, st) = (
        product(&sides, &sides),
        product(&places, &places),
        product(&sides, &places),
    );
    let (sy, ty, yy) = (
        product(&sides, &all),
        product(&places, &all),
        product(&all, &all),
    );
    let determinant = ss * tt - st * st;
    let freedom = all.len() as f64 - 3.0;
    if determinant <= 0.0 || freedom <= 0.0 {
        return between_means(before, after);
    }
    let by = (sy * tt - ty * st) / determinant;
    let slope = (ty * ss - sy * st) / determinant;
    // A rest that rounding leaves is nothing.
    let rest = (yy - by * sy - slope * ty).max(yy * 1e-14);
    Some(Difference {
        by,
        error: (rest / freedom * tt / determinant).sqrt(),
        freedom,
    })
}

/// The number of blocks that both runs need for a comparison of blocks.
const MIN_BLOCKS: usize = 6;

/// The number of longer blocks that both runs need: the error of fewer is itself too uncertain to replace that of short ones.
const MIN_LONGER_BLOCKS: usize = 8;

/// Returns the standard error of the logarithm of the ratio of two sums over blocks, with its degrees of freedom: the greatest
/// over blocks, pairs of them, and so on.
fn relative_error(before: &[f64], after: &[f64]) -> Option<(f64, f64)> {
    let mut greatest = error_of_blocks(before, after)?;
    let pairs = |blocks: &[f64]| -> Vec<f64> {
        let pairs = blocks.chunks_exact(2);
        pairs.map(|two| two[0] + two[1]).collect()
    };
    let (mut before, mut after) = (pairs(before), pairs(after));
    while before.len().min(after.len()) >= MIN_LONGER_BLOCKS
        && let Some(longer) = error_of_blocks(&before, &after)
    {
        if longer.0 > greatest.0 {
            greatest = longer;
        }
        (before, after) = (pairs(&before), pairs(&after));
    }
    Some(greatest)
}

/// Returns the standard error and the degrees of freedom that blocks of one length show, by the jackknife: by how much the ratio differs
/// without each of the blocks. So one block that is most of the sum does not hide its own noise. Where both have equally
/// many blocks, each is left out with the block in its place: a program that does other work in the middle does so in both.
fn error_of_blocks(before: &[f64], after: &[f64]) -> Option<(f64, f64)> {
    if before.len() < MIN_BLOCKS || after.len() < MIN_BLOCKS {
        return None;
    }
    let logarithms = |without: &dyn Fn(usize) -> f64, count: usize| -> Option<f64> {
        let all: Vec<f64> = (0..count).map(|block| without(block).ln()).collect();
        let variance = squares(&all) * (count - 1) as f64 / count as f64;
        variance.is_finite().then_some(variance)
    };
    let [first, second] = [before, after].map(|blocks| blocks.iter().sum::<f64>());
    let variance = match before.len() == after.len() {
        true => logarithms(
            &|block| (second - after[block]) / (first - before[block]),
            before.len(),
        )?,
        false => {
            logarithms(&|block| first - before[block], before.len())?
                + logarithms(&|block| second - after[block], after.len())?
        }
    };
    let freedom = even_blocks(before).min(even_blocks(after)) - 1.0;
    (freedom > 0.0).then(|| (variance.sqrt(), freedom))
}

/// Returns the number of equal blocks that would tell as much as some blocks of which a few may be most of the sum.
fn even_blocks(blocks: &[f64]) -> f64 {
    let squares: f64 = blocks.iter().map(|block| block * block).sum();
    blocks.iter().sum::<f64>().powi(2) / squares
}

/// Corrects the chances of several comparisons for the search for the least of them, by Holm's correction (*A Simple Sequentially
/// Rejective Multiple Test Procedure*, 1979). Comparisons below a level after it are all true, except in that share of diffs.
pub(super) fn corrected(chances: &[Option<f64>]) -> Vec<Option<f64>> {
    let mut order: Vec<usize> = (0..chances.len())
        .filter(|at| chances[*at].is_some())
        .collect();
    order.sort_by(|a, b| f64::total_cmp(&chances[*a].unwrap_or(1.0), &chances[*b].unwrap_or(1.0)));
    let mut corrected = vec![None; chances.len()];
    let mut greatest: f64 = 0.0;
    for (rank, at) in order.iter().enumerate() {
        let left = (order.len() - rank) as f64;
        greatest = greatest.max(chances[*at].unwrap_or(1.0) * left).min(1.0);
        corrected[*at] = Some(greatest);
    }
    corrected
}

#[cfg(test)]
mod tests;
