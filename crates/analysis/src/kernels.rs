//! Kernel breakdown: which kernels cost what.

use crate::durations::Durations;
use serde::Serialize;

/// All dispatches of the kernels with one name, over the whole recording.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Kernel {
    /// The kernel's name.
    pub name: String,
    /// Where the name comes from.
    pub name_source: &'static str,
    /// Kernels with this name: other code, entry point, specialisation or process.
    pub variants: u32,
    /// Dispatches, with or without known times.
    pub count: u64,
    /// Dispatches whose times are unknown: in no duration below.
    pub untimed_count: u64,
    /// Durations of the dispatches.
    #[serde(flatten)]
    pub durations: Durations,
    /// Time in which at least one of them ran.
    pub busy_ns: Option<i64>,
    /// `busy_ns` over the busy time of all devices. Kernels that ran at the same time sum to more than 1.
    pub busy_share: Option<f64>,
    /// Duration of the first timed dispatch: far above the median, it was a warm-up.
    pub first_ns: Option<i64>,
    /// Bytes of the buffer ranges bound for reading, summed over dispatches: an upper bound on the distinct bytes
    /// read through bindings. Absent when no bindings are known.
    pub bound_read_bytes: Option<u64>,
    /// The same for writing.
    pub bound_written_bytes: Option<u64>,
    /// Dispatches with known bindings, which these bytes are of.
    pub bound_count: u64,
}
