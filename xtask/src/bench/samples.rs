//! Computes medians, ranges and differences of the repetitions of one measurement.

/// The measured values of one variant, in the order of the repetitions.
#[derive(Debug, Default, Clone)]
pub struct Samples(Vec<f64>);

impl Samples {
    pub fn push(&mut self, value: f64) {
        self.0.push(value);
    }

    pub fn median(&self) -> f64 {
        let mut sorted = self.0.clone();
        sorted.sort_by(f64::total_cmp);
        let middle = sorted.len() / 2;
        match sorted.len() {
            0 => f64::NAN,
            odd if odd % 2 == 1 => sorted[middle],
            _ => (sorted[middle - 1] + sorted[middle]) / 2.0,
        }
    }

    /// Returns the median with the range, such as `54.1 (52.9–60.3)`.
    pub fn shown(&self, digits: usize) -> String {
        let least = self.0.iter().copied().fold(f64::INFINITY, f64::min);
        let greatest = self.0.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        format!(
            "{:.digits$} ({least:.digits$}–{greatest:.digits$})",
            self.median()
        )
    }

    /// Returns by how many percent each value exceeds the value of the variant `base` in the same repetition.
    pub fn percent_over(&self, base: &Samples) -> Samples {
        let pairs = self.0.iter().zip(&base.0);
        Samples(
            pairs
                .map(|(value, base)| (value / base - 1.0) * 100.0)
                .collect(),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::Samples;

    #[test]
    fn the_median_is_that_of_the_sorted_values() {
        assert_eq!(Samples(vec![3.0, 1.0, 2.0]).median(), 2.0);
        assert_eq!(Samples(vec![4.0, 1.0, 2.0, 3.0]).median(), 2.5);
        assert!(Samples(vec![]).median().is_nan());
    }

    #[test]
    fn the_slow_down_is_taken_within_each_repetition() {
        let base = Samples(vec![100.0, 200.0, 50.0]);
        let slower = Samples(vec![110.0, 220.0, 55.0]);
        assert!((slower.percent_over(&base).median() - 10.0).abs() < 1e-9);
    }
}
