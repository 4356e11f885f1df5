//! Measures how large dispatches are: their workgroups, and the threads in these.
//!
//! A dispatch of fewer threads does less work, or the same work in fewer threads, each of which does more. So the sizes of
//! two programs' launches show that something differs, and mostly not what.

use crate::Timeline;
use gapscope_trace::tables::{Kernels, Table};
use serde::{Deserialize, Serialize};

/// The workgroups and threads of a dispatch, or the sums of several dispatches. A sum with an unknown number in it is
/// unknown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct LaunchSize {
    /// The number of workgroups.
    pub groups: Option<u64>,
    /// The number of threads.
    pub threads: Option<u64>,
}

impl Default for LaunchSize {
    /// Returns the sum of no dispatches.
    fn default() -> LaunchSize {
        LaunchSize {
            groups: Some(0),
            threads: Some(0),
        }
    }
}

impl LaunchSize {
    /// The size of dispatches of which nothing is known.
    pub const UNKNOWN: LaunchSize = LaunchSize {
        groups: None,
        threads: None,
    };

    /// Adds the size of other dispatches.
    #[inline]
    pub fn add(&mut self, other: LaunchSize) {
        let sum = |a: Option<u64>, b: Option<u64>| Some(a?.saturating_add(b?));
        self.groups = sum(self.groups, other.groups);
        self.threads = sum(self.threads, other.threads);
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
        LaunchSize {
            groups,
            threads: groups
                .zip(threads)
                .map(|(groups, threads)| groups.saturating_mul(threads)),
        }
    }
}
