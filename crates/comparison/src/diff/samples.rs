//! Keeps sums and a histogram of a run's times of one kernel, in bounded memory, to compare them with another run.

use serde::{Deserialize, Serialize};

/// The maximum number of blocks. Beyond it, blocks are joined in pairs, so a run with enough values has at least half
/// as many.
pub(super) const MAX_BLOCKS: usize = 64;

/// Sums over blocks of equally many consecutive values. Blocks grow as values come, so that there are never more than
/// [`MAX_BLOCKS`]. Two series of the same length have the same blocks.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Blocks {
    /// The sums; the last block may have fewer values.
    sums: Vec<f64>,
    /// The number of values in a whole block.
    size: u64,
    /// The number of values in the last block.
    filled: u64,
}

impl Default for Blocks {
    fn default() -> Blocks {
        Blocks {
            sums: Vec::new(),
            size: 1,
            filled: 0,
        }
    }
}

impl Blocks {
    /// Adds the next value.
    pub(super) fn push(&mut self, value: f64) {
        match self.sums.last_mut() {
            Some(last) if self.filled < self.size => {
                *last += value;
                self.filled += 1;
                return;
            }
            _ => {}
        }
        if self.sums.len() == MAX_BLOCKS {
            self.sums = self.sums.chunks(2).map(|two| two.iter().sum()).collect();
            self.size *= 2;
        }
        self.sums.push(value);
        self.filled = 1;
    }

    /// Returns the sums of whole blocks.
    pub(super) fn whole(&self) -> &[f64] {
        let whole = self.sums.len() - usize::from(self.filled < self.size && !self.sums.is_empty());
        &self.sums[..whole]
    }
}

/// A histogram of durations, with sixteen bins for each factor of two, from which a typical duration is found despite
/// outliers.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Lengths {
    /// The number of the first bin that `bins` holds.
    first: usize,
    bins: Vec<Bin>,
    count: u64,
}

/// The number of durations in a bin, and their sum in nanoseconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(into = "(u64, f64)", from = "(u64, f64)")]
struct Bin {
    count: u64,
    sum: f64,
}

impl From<Bin> for (u64, f64) {
    fn from(bin: Bin) -> (u64, f64) {
        (bin.count, bin.sum)
    }
}

impl From<(u64, f64)> for Bin {
    fn from((count, sum): (u64, f64)) -> Bin {
        Bin { count, sum }
    }
}

impl Lengths {
    /// Adds a duration; what is below 1 ns counts as 1 ns.
    pub(super) fn push(&mut self, ns: i64) {
        let ns = ns.max(1) as u64;
        let exponent = ns.ilog2();
        let fraction = match exponent {
            4.. => (ns >> (exponent - 4)) & 15,
            _ => (ns << (4 - exponent)) & 15,
        };
        let bin = self.bin(exponent as usize * 16 + fraction as usize);
        bin.count += 1;
        bin.sum += ns as f64;
        self.count += 1;
    }

    /// Returns the bin with a number, and makes room for it where the histogram does not reach so far.
    fn bin(&mut self, number: usize) -> &mut Bin {
        if self.bins.is_empty() {
            self.first = number;
        }
        if number < self.first {
            let padding = std::iter::repeat_n(Bin::default(), self.first - number);
            self.bins.splice(0..0, padding);
            self.first = number;
        }
        let at = number - self.first;
        if at >= self.bins.len() {
            self.bins.resize(at + 1, Bin::default());
        }
        &mut self.bins[at]
    }

    /// Returns the mean of the middle half in nanoseconds, or `None` without durations. Bins that the quarters cut count in part.
    pub(super) fn typical(&self) -> Option<f64> {
        let quarter = self.count as f64 / 4.0;
        let (from, to) = (quarter, 3.0 * quarter);
        let (mut below, mut sum) = (0.0, 0.0);
        for bin in self.bins.iter().filter(|bin| bin.count > 0) {
            let count = bin.count as f64;
            let inside = (below + count).min(to) - f64::max(below, from);
            if inside > 0.0 {
                sum += bin.sum * inside / count;
            }
            below += count;
        }
        (self.count > 0).then(|| sum / (to - from))
    }

    /// Adds the durations of another histogram.
    pub(super) fn add(&mut self, other: &Lengths) {
        for (at, bin) in other.bins.iter().enumerate().filter(|(_, b)| b.count > 0) {
            let sum = self.bin(other.first + at);
            sum.count += bin.count;
            sum.sum += bin.sum;
        }
        self.count += other.count;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_hold_equally_many_values_and_all_of_them() {
        for count in [1, 63, 64, 65, 1000, 100_000] {
            let mut blocks = Blocks::default();
            (0..count).for_each(|_| blocks.push(1.0));
            let whole = blocks.whole();
            assert!(whole.len() <= MAX_BLOCKS && whole.len() >= MAX_BLOCKS.min(count as usize) / 2);
            assert!(whole.iter().all(|sum| *sum == blocks.size as f64));
            assert_eq!(blocks.sums.iter().sum::<f64>(), f64::from(count));
        }
    }

    #[test]
    fn the_middle_half_does_not_see_outliers_and_sees_a_small_change() {
        let typical = |scale: i64, outlier: i64| {
            let mut lengths = Lengths::default();
            (0..1000).for_each(|at| lengths.push((10_000 + at) * scale / 1000));
            lengths.push(outlier);
            lengths.typical().unwrap()
        };
        let plain = typical(1000, 10_500);
        assert!((plain / 10_499.5 - 1.0).abs() < 1e-2, "{plain}");
        assert!((typical(1000, 90_000_000) / plain - 1.0).abs() < 1e-3);
        assert!((typical(1000, 1) / plain - 1.0).abs() < 1e-3);
        let slower = typical(1020, 10_500) / plain;
        assert!((slower - 1.02).abs() < 2e-3, "{slower}");
        assert_eq!(Lengths::default().typical(), None);
    }

    #[test]
    fn lengths_of_two_are_those_of_both() {
        let of = |values: &[i64]| {
            let mut lengths = Lengths::default();
            values.iter().for_each(|ns| lengths.push(*ns));
            lengths
        };
        let mut both = of(&[500, 800]);
        both.add(&of(&[3, 90_000]));
        assert_eq!(both.typical(), of(&[3, 500, 800, 90_000]).typical());
    }
}
