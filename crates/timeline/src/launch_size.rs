//! Measures how large dispatches are: their workgroups, and the threads in these.
//!
//! A dispatch of fewer threads does less work, or the same work in fewer threads, each of which does more. So the sizes of
//! two programs' launches show that something differs, and mostly not what.

use crate::Timeline;
use crate::thresholds::SAME_SIZE_SHARE;
use gapscope_trace::tables::{Kernels, Table};
use serde::{Deserialize, Serialize};

/// The workgroups and threads of a dispatch, or the sums of several dispatches. A sum with an unknown number in it is
/// unknown.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct LaunchSize {
    /// The number of workgroups.
    pub groups: Option<u64>,
    /// The number of threads.
    pub threads: Option<u64>,
    /// The distribution of the workgroups of single dispatches; unknown in baselines that were saved without.
    #[serde(default)]
    pub single_groups: Option<SizeMoments>,
    /// The distribution of the threads of single dispatches.
    #[serde(default)]
    pub single_threads: Option<SizeMoments>,
}

impl Default for LaunchSize {
    /// Returns the sum of no dispatches.
    fn default() -> LaunchSize {
        LaunchSize {
            groups: Some(0),
            threads: Some(0),
            single_groups: Some(SizeMoments::default()),
            single_threads: Some(SizeMoments::default()),
        }
    }
}

impl LaunchSize {
    /// The size of dispatches of which nothing is known.
    pub const UNKNOWN: LaunchSize = LaunchSize {
        groups: None,
        threads: None,
        single_groups: None,
        single_threads: None,
    };

    /// Returns the size of one dispatch.
    #[inline]
    pub fn new(groups: Option<u64>, threads: Option<u64>) -> LaunchSize {
        LaunchSize {
            groups,
            threads,
            single_groups: groups.map(SizeMoments::new),
            single_threads: threads.map(SizeMoments::new),
        }
    }

    /// Adds the size of other dispatches.
    #[inline]
    pub fn add(&mut self, other: LaunchSize) {
        let sum = |a: Option<u64>, b: Option<u64>| Some(a?.saturating_add(b?));
        self.groups = sum(self.groups, other.groups);
        self.threads = sum(self.threads, other.threads);
        let joined = |a: Option<SizeMoments>, b: Option<SizeMoments>| Some(a?.plus(b?));
        self.single_groups = joined(self.single_groups, other.single_groups);
        self.single_threads = joined(self.single_threads, other.single_threads);
    }
}

/// The greatest size that counts as such, 64 GiB or so many threads: the cubes of a million such sizes are whole numbers of 128 bits.
const MAX_SIZE: u64 = 1 << 36;

/// Sums over the sizes of single launches or copies, from which follows how the sizes are distributed. Two sets of sizes with one mean,
/// one variance and one skewness count as the same sizes, in any order.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct SizeMoments {
    count: u64,
    // Whole numbers, whose sums do not depend on the order of adding. In files they are floating-point numbers, of which JSON has no greater.
    #[serde(with = "as_float")]
    sum: u128,
    #[serde(with = "as_float")]
    squares: u128,
    #[serde(with = "as_float")]
    cubes: u128,
}

/// Writes a whole number as a floating-point number, and reads it back as precisely as that holds it.
mod as_float {
    use serde::{Deserialize, Deserializer, Serializer};

    pub fn serialize<S: Serializer>(number: &u128, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_f64(*number as f64)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u128, D::Error> {
        Ok(f64::deserialize(deserializer)? as u128)
    }
}

impl SizeMoments {
    /// Returns the sums over one size.
    #[inline]
    pub fn new(size: u64) -> SizeMoments {
        let size = u128::from(size.min(MAX_SIZE));
        SizeMoments {
            count: 1,
            sum: size,
            squares: size * size,
            cubes: size * size * size,
        }
    }

    /// Returns the sums over the sizes of both.
    #[inline]
    pub fn plus(self, other: SizeMoments) -> SizeMoments {
        SizeMoments {
            count: self.count + other.count,
            sum: self.sum.saturating_add(other.sum),
            squares: self.squares.saturating_add(other.squares),
            cubes: self.cubes.saturating_add(other.cubes),
        }
    }

    /// Returns the number of sizes.
    pub const fn count(self) -> u64 {
        self.count
    }

    /// Returns the mean, the standard deviation, and the cube root of the third central moment.
    fn shape(self) -> [f64; 3] {
        let count = self.count as f64;
        let [mean, squares, cubes] =
            [self.sum, self.squares, self.cubes].map(|sum| sum as f64 / count);
        let third = cubes - 3.0 * mean * squares + 2.0 * mean.powi(3);
        [mean, (squares - mean * mean).max(0.0).sqrt(), third.cbrt()]
    }

    /// Returns true where the sizes of both are distributed alike, however many there are: their shapes differ by at most
    /// [`SAME_SIZE_SHARE`] of the mean.
    pub fn is_like(self, other: SizeMoments) -> bool {
        if self.count == 0 || other.count == 0 {
            return self.count == other.count;
        }
        let (a, b) = (self.shape(), other.shape());
        let least = SAME_SIZE_SHARE * a[0].max(b[0]);
        a.into_iter().zip(b).all(|(a, b)| (a - b).abs() <= least)
    }
}

/// The threads in a workgroup of each kernel, by the row of the kernel.
#[derive(Debug, Default)]
pub struct GroupThreads(Vec<Option<u64>>);

impl GroupThreads {
    /// Multiplies the local sizes of all kernels.
    pub fn new(kernels: &Kernels) -> GroupThreads {
        let threads = |row: usize| {
            let axes = [&kernels.local_x, &kernels.local_y, &kernels.local_z];
            let mut axes = axes.into_iter().map(|axis| axis.get(row));
            axes.try_fold(1_u64, |all, axis| all.checked_mul(u64::from(axis?)))
        };
        GroupThreads((0..kernels.len()).map(threads).collect())
    }

    /// Returns the size of the dispatch in a row.
    #[inline]
    pub fn launch(&self, timeline: &Timeline, row: usize) -> LaunchSize {
        let groups = timeline.dispatches.groups(row).map(u64::from);
        let threads = timeline.kernel_row(row);
        let threads = threads.and_then(|row| *self.0.get(row)?);
        let all = groups.zip(threads);
        LaunchSize::new(
            groups,
            all.map(|(groups, threads)| groups.saturating_mul(threads)),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn moments(sizes: &[u64]) -> SizeMoments {
        let sizes = sizes.iter().map(|size| SizeMoments::new(*size));
        sizes.fold(SizeMoments::default(), SizeMoments::plus)
    }

    #[test]
    fn sizes_are_alike_in_any_order_and_number_and_not_by_their_sum_alone() {
        let alike = |a: &[u64], b: &[u64]| moments(a).is_like(moments(b));
        assert!(alike(&[100, 300], &[300, 100, 100, 300]));
        assert!(alike(&[1 << 40; 3], &[1 << 40; 1000]));
        assert!(alike(&[], &[]));
        assert!(!alike(&[100, 300], &[200, 200]));
        assert!(!alike(&[190, 210], &[200, 200]));
        // The same sums of squares, and one mirrors the other.
        assert!(!alike(&[100, 400, 400], &[200, 200, 500]));
        assert!(!alike(&[1, 5, 6], &[2, 3, 7]));
        assert!(!alike(&[], &[1]));
    }

    #[test]
    fn the_order_of_adding_changes_nothing() {
        let sizes = [3, 1 << 33, 1 << 20, 7, u64::MAX, (1 << 34) + 1];
        let mut backwards = sizes;
        backwards.reverse();
        assert_eq!(moments(&sizes), moments(&backwards));
    }
}
