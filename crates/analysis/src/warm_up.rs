//! Warm-up: the part at the beginning that is not like the rest.

use crate::intervals::Interval;
use serde::Serialize;

/// The warm-up of a recording, if there is one.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct WarmUp {
    /// The part of the recording that is warm-up. Absent when none was found, or none that can safely be left out.
    pub excluded: Option<Interval>,
    /// Why it was excluded or kept, in one sentence.
    pub reason: String,
    /// Pipelines and shaders created in it, by calls.
    pub compile_calls: u64,
    /// Kernels whose first dispatch, in it, took much longer than their median.
    pub slow_first_dispatches: u64,
    /// Command buffers that start in it.
    pub command_buffer_count: u64,
}
