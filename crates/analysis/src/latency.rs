//! Launch latency and queue depth.

use crate::durations::Durations;
use serde::Serialize;

/// Launch latency and queue depth of one queue, over the whole recording.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct QueueLatency {
    /// Index of the device in the findings.
    pub device: u32,
    /// Id of the queue in the trace.
    pub queue_id: u32,
    /// Submissions with timed work.
    pub submission_count: u64,
    /// From the begin of the submission call to the start of its first work: all submissions.
    pub submit_to_start: Durations,
    /// The same for submissions that found the queue without unfinished work: launch latency proper. The others
    /// waited in the queue.
    pub submit_to_start_idle: Durations,
    /// Submissions whose work seems to start before the call that submitted it, by more than the clock's error.
    pub started_before_submission_count: u64,
    /// Submission calls: time inside.
    pub submit_calls: Durations,
    /// Most submissions outstanding at once: submitted and not finished.
    pub max_depth: Option<u32>,
    /// Mean over time, from the first submission to the end of the last work.
    pub mean_depth: Option<f64>,
    /// Time with nothing outstanding in that window: the host had given the queue nothing to do.
    pub depth_zero_ns: Option<i64>,
}
