//! Busy time: when a GPU ran something.

use crate::intervals::Interval;
use gapscope_trace::manifest::ClockMethod;
use serde::Serialize;

/// A physical GPU: all devices of the trace, of whatever process, with one uuid.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct DeviceBusy {
    /// Index of the GPU in the findings.
    pub index: u32,
    /// Name.
    pub name: String,
    /// `vulkan`, `cuda`, `metal`.
    pub api: String,
    /// Driver and version.
    pub driver: String,
    /// The uuid as hexadecimal; empty when it is not known.
    pub uuid: String,
    /// Ids of its devices in the trace.
    pub device_ids: Vec<u32>,
    /// Ids of the processes that used it.
    pub process_ids: Vec<u32>,
    /// True when the driver said that the device was lost.
    pub lost: bool,
    /// How device times were mapped to host times.
    pub clock_method: ClockMethod,
    /// The greatest error of a mapped time; absent when it is not known.
    pub clock_error_ns: Option<i64>,
    /// From the begin of its first work to the end of its last. Absent when nothing on it was timed.
    pub work_window: Option<Interval>,
    /// Time in which it ran something, over the whole recording: the union of its work.
    pub busy_ns: Option<i64>,
    /// Part of `busy_ns` in which it ran transfers and nothing else. Absent where sampling cannot tell.
    pub transfer_only_ns: Option<i64>,
    /// From the begin of the recording to its first work.
    pub before_first_ns: Option<i64>,
    /// From the end of its last work to the end of the recording.
    pub after_last_ns: Option<i64>,
    /// The same over the analysed window (without warm-up): `busy_ns + idle_ns == window_ns`.
    pub analysed: Option<BusyShare>,
    /// Command buffers that count as busy from begin to end, because not all that is inside has times: their inner
    /// gaps are not seen, so `busy_ns` is an upper bound by those.
    pub command_buffers_counted_whole: u64,
    /// Command buffers without any known time: not in `busy_ns`.
    pub command_buffers_untimed: u64,
    /// Its queues.
    pub queues: Vec<QueueBusy>,
}

/// A queue's part of its GPU.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct QueueBusy {
    /// Id of the queue in the trace.
    pub queue_id: u32,
    /// Name that the program gave it.
    pub name: Option<String>,
    /// What it can do.
    pub capabilities: Vec<String>,
    /// From the begin of its first work to the end of its last.
    pub work_window: Option<Interval>,
    /// Time in which it ran something, over the whole recording.
    pub busy_ns: Option<i64>,
    /// The same over the part of the analysed window between its own first and last work.
    pub analysed: Option<BusyShare>,
}

/// Busy and idle time in a window.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct BusyShare {
    /// The window.
    pub window: Interval,
    /// Its length.
    pub window_ns: i64,
    /// The part in which something ran.
    pub busy_ns: i64,
    /// The rest.
    pub idle_ns: i64,
    /// `busy_ns / window_ns`.
    pub busy_share: f64,
}
