//! Computes medians and ratios of times with their intervals.

/// The number of groups into which turns are divided, and Student's quantile for 99 % with one degree of freedom less.
/// Neighbouring turns, which are alike when the clock wanders, are in the same group.
const GROUPS: [(usize, f64); 3] = [(32, 2.744), (16, 2.947), (8, 3.499)];
/// The fewest turns of a group, where there are enough.
const MIN_TURNS_OF_GROUP: usize = 2;
/// The share of the shortest times, and of the longest, that a group leaves out.
const TRIMMED: f64 = 0.25;

/// Sorts values, and returns the lower end of the 95 % interval of their median, the median, and the upper end. The interval
/// is from order statistics, which hold for any distribution. There is at least one value.
pub fn median_with_interval(values: &mut [f64]) -> [f64; 3] {
    values.sort_by(f64::total_cmp);
    let count = values.len() as f64;
    let half_width = 1.96 * count.sqrt() / 2.0;
    let at = |index: f64| values[(index.max(0.0) as usize).min(values.len() - 1)];
    let middle = values.len() / 2;
    let median = match values.len() % 2 {
        1 => values[middle],
        _ => values[middle - 1].midpoint(values[middle]),
    };
    [
        at((count / 2.0 - half_width).floor() - 1.0),
        median,
        at((count / 2.0 + half_width).ceil()),
    ]
}

/// Returns the lower end of the 99 % interval of the ratio of `b` to `a`, the ratio, and the upper end. The values are those of the
/// same turns, in order.
pub fn ratio_with_interval(a: &[f64], b: &[f64]) -> [f64; 3] {
    let turns = a.len();
    let fits = GROUPS
        .iter()
        .find(|(groups, _)| turns >= groups * MIN_TURNS_OF_GROUP);
    let (groups, quantile) = *fits.unwrap_or(&GROUPS[GROUPS.len() - 1]);
    let logarithms: Vec<f64> = (0..groups)
        .filter_map(|group| {
            let range = group * turns / groups..(group + 1) * turns / groups;
            let ratio = trimmed_mean(&b[range.clone()])? / trimmed_mean(&a[range])?;
            (ratio.is_finite() && ratio > 0.0).then(|| ratio.ln())
        })
        .collect();
    let count = logarithms.len() as f64;
    let mean = logarithms.iter().sum::<f64>() / count;
    let squares: f64 = logarithms.iter().map(|one| (one - mean).powi(2)).sum();
    let error = (squares / (count - 1.0) / count).sqrt();
    [-quantile, 0.0, quantile].map(|times| (mean + times * error).exp())
}

/// Returns the mean without the shortest and the longest times; `None` without values.
fn trimmed_mean(values: &[f64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let cut = (sorted.len() as f64 * TRIMMED) as usize;
    let kept = sorted.get(cut..sorted.len() - cut)?;
    (!kept.is_empty()).then(|| kept.iter().sum::<f64>() / kept.len() as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns numbers that look random, from 0 to 1.
    fn noise(seed: u64) -> impl Iterator<Item = f64> {
        let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
        std::iter::from_fn(move || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            Some((state >> 11) as f64 / (1_u64 << 53) as f64)
        })
    }

    /// Returns times with noise of 3 %, with a few that are twice as long, on a clock that wanders by 5 %.
    fn times(seed: u64, turns: usize, factor: f64) -> Vec<f64> {
        let pairs = noise(seed).zip(noise(seed + 7777));
        let each = pairs.enumerate().take(turns).map(|(turn, (spread, rare))| {
            let clock = 1.0 + 0.05 * (turn as f64 / 100.0).sin();
            let interrupted = if rare < 0.01 { 2.0 } else { 1.0 };
            10_000.0 * factor * clock * interrupted * (1.0 + 0.03 * spread)
        });
        each.collect()
    }

    #[test]
    fn equal_kernels_are_called_different_in_at_most_one_of_a_hundred_comparisons() {
        const ALL: u64 = 2000;
        let is_wrong = |number: &u64| {
            let (a, b) = (
                times(2 * number + 1, 500, 1.0),
                times(2 * number + 2, 500, 1.0),
            );
            let [low, _, high] = ratio_with_interval(&a, &b);
            !(low..=high).contains(&1.0)
        };
        let wrong = (0..ALL).filter(is_wrong).count();
        // 1 % is 20, and chance makes it 31 in one of a hundred tests.
        assert!(wrong <= 31, "{wrong} of {ALL}");
    }

    #[test]
    fn a_kernel_that_is_one_percent_faster_is_found() {
        let is_found = |number: &u64| {
            let (a, b) = (
                times(2 * number + 1, 500, 1.0),
                times(2 * number + 2, 500, 0.99),
            );
            let [low, ratio, high] = ratio_with_interval(&a, &b);
            high < 1.0 && low < 0.99 && (ratio - 0.99).abs() < 0.005
        };
        let found = (0..100).filter(is_found).count();
        assert!(found >= 95, "{found} of 100");
    }

    #[test]
    fn the_interval_of_a_median_holds_it() {
        let [low, median, high] = median_with_interval(&mut [3.0, 1.0, 2.0]);
        assert_eq!([low, median, high], [1.0, 2.0, 3.0]);
        let mut many: Vec<f64> = noise(5).take(1000).collect();
        let [low, median, high] = median_with_interval(&mut many);
        assert!(low < median && median < high && high - low < 0.08);
    }
}
