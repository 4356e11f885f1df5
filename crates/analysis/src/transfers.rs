//! Transfers: bytes moved, and how fast.

use crate::durations::Durations;
use serde::Serialize;

/// Transfers of one kind, over the whole recording.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct TransferRow {
    /// `copy`, `fill`, …
    pub kind: &'static str,
    /// Transfers.
    pub count: u64,
    /// Bytes written by those of known size.
    pub bytes: u64,
    /// Transfers of unknown size: not in `bytes`.
    pub unknown_bytes_count: u64,
    /// Transfers whose times are unknown.
    pub untimed_count: u64,
    /// Durations.
    #[serde(flatten)]
    pub durations: Durations,
    /// Time in which at least one of them ran.
    pub busy_ns: Option<i64>,
    /// Bytes written each second of `busy_ns`, by transfers whose size and times are both known. A copy also reads
    /// as many.
    pub bytes_per_second: Option<f64>,
}
