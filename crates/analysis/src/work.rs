//! Equal work: two parts of a trace, or two traces, that do the same work in different ways.

use serde::Serialize;

/// What a part of a trace cost.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Work {
    /// The label, or what the caller calls the trace.
    pub name: String,
    /// How often the work was done: instances of the label. Absent when it is not known; then figures are totals and
    /// comparing them is right only when both sides did the work equally often.
    pub evaluations: Option<u64>,
    /// Dispatches.
    pub dispatch_count: u64,
    /// Bytes of the ranges bound for reading, summed over dispatches; absent unless all dispatches have bindings.
    pub bound_read_bytes: Option<u64>,
    /// The same for writing.
    pub bound_written_bytes: Option<u64>,
    /// Transfers.
    pub transfer_count: u64,
    /// Their bytes, where all are known.
    pub transfer_bytes: Option<u64>,
    /// Time in which at least one piece of the work ran.
    pub gpu_busy_ns: Option<i64>,
    /// `gpu_busy_ns` and the idle time between consecutive pieces of this work.
    pub wall_ns: Option<i64>,
}

/// One figure of two works, each for one evaluation where both are known.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Ratio {
    /// `dispatches`, `bytes bound`, `transfer bytes`, `GPU busy ns`, `wall ns`.
    pub what: &'static str,
    /// Before.
    pub before: Option<f64>,
    /// After.
    pub after: Option<f64>,
    /// `before / after`: above 1, after needs less.
    pub ratio: Option<f64>,
}

/// Two works compared.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct WorkComparison {
    /// The work before.
    pub before: Work,
    /// The work after.
    pub after: Work,
    /// True when the figures in `ratios` are for one evaluation; else for all of the work.
    pub per_evaluation: bool,
    /// The figures.
    pub ratios: Vec<Ratio>,
    /// What they mean, in sentences.
    pub sentences: Vec<String>,
}
