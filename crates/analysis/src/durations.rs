//! Statistics of durations.

use serde::Serialize;

/// Statistics of durations in nanoseconds. All but the count are absent when the count is 0.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct Durations {
    /// How many durations are known, and so in these figures.
    pub timed_count: u64,
    /// Their sum. Work that ran at the same time counts more than once: see the union beside it.
    pub total_ns: Option<i64>,
    /// Their arithmetic mean.
    pub mean_ns: Option<f64>,
    /// The median by nearest rank: the smallest duration that at least half of them do not exceed.
    pub p50_ns: Option<i64>,
    /// The 99th percentile by nearest rank.
    pub p99_ns: Option<i64>,
    /// The shortest.
    pub min_ns: Option<i64>,
    /// The longest.
    pub max_ns: Option<i64>,
}
