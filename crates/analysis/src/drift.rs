//! Drift: the time of the work in a command buffer against the command buffer's own time.

use serde::Serialize;

/// Drift over all command buffers that have both times.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Drift {
    /// Command buffers compared.
    pub count: u64,
    /// Sum of the durations of their work, over the sum of their own durations. Above 1 where work overlaps.
    pub sum_ratio: Option<f64>,
    /// Sum of the unions of their work, over the sum of their own durations: at most 1 when the clocks are right.
    pub union_ratio: Option<f64>,
    /// Median over command buffers of union / duration.
    pub p50_union_ratio: Option<f64>,
    /// The smallest.
    pub min_union_ratio: Option<f64>,
    /// The greatest.
    pub max_union_ratio: Option<f64>,
    /// Command buffers that break the bound of the mode by more than the tolerance: clock or sampling trouble.
    pub violation_count: u64,
    /// The worst, the worst first.
    pub worst: Vec<DriftRow>,
    /// What is compared, in which direction, and what was found, in one sentence.
    pub sentence: String,
}

/// Drift of one command buffer.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct DriftRow {
    /// Id of the command buffer.
    pub command_buffer: u64,
    /// Its duration.
    pub duration_ns: i64,
    /// Sum of the durations of its work.
    pub sum_ns: i64,
    /// Union of its work.
    pub union_ns: i64,
    /// How far its work reaches out of its own interval.
    pub outside_ns: i64,
}
