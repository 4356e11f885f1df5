//! The command-buffer table.

use crate::durations::Durations;
use serde::Serialize;

/// Command buffers over the whole recording.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct CommandBuffers {
    /// Submitted instances.
    pub count: u64,
    /// Submissions (batches).
    pub submission_count: u64,
    /// Those with neither dispatch, transfer nor opaque work.
    pub empty_count: u64,
    /// By whether their times are known, in the trace's words, most first.
    pub timings: Vec<TimingCount>,
    /// Mean number of dispatches in one; absent without command buffers.
    pub mean_dispatches: Option<f64>,
    /// Most dispatches in one.
    pub max_dispatches: Option<u32>,
    /// Durations on the device.
    pub durations: Durations,
    /// From the start of one to the start of the next on the same queue.
    pub start_to_start: Durations,
    /// The longest, the longest first.
    pub longest: Vec<CommandBufferRow>,
}

/// How many command buffers have a timing.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TimingCount {
    /// `measured`, `bracketed`, or why the times are unknown.
    pub timing: &'static str,
    /// Command buffers.
    pub count: u64,
}

/// One command buffer.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct CommandBufferRow {
    /// Id in the trace.
    pub id: u64,
    /// Name that the program gave it.
    pub name: Option<String>,
    /// Path of its label.
    pub label: Option<String>,
    /// Id of the queue.
    pub queue_id: u32,
    /// When the device began it.
    pub start_ns: Option<i64>,
    /// How long it took.
    pub duration_ns: Option<i64>,
    /// Dispatches in it.
    pub dispatch_count: u32,
    /// Transfers in it.
    pub transfer_count: u32,
}
