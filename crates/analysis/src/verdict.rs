//! The verdict: what bounds the program's speed on the GPU.

use serde::Serialize;

/// What bounds the speed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Bound {
    /// The device waits for the host to submit.
    HostBound,
    /// The device computes, or starts and orders what it has.
    DeviceBound,
    /// The device moves data and does nothing else.
    TransferBound,
    /// Host and device, or queues, wait for each other.
    SyncBound,
    /// None of these alone.
    Mixed,
    /// Nothing was timed.
    #[default]
    Unknown,
}

/// Why the verdict is what it is.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Evidence {
    /// The verdict and its main number in one sentence.
    pub sentence: String,
    /// Device time that was judged: the sum of the devices' analysed windows.
    pub window_ns: Option<i64>,
    /// Its parts, the largest first; they sum to `window_ns`.
    pub parts: Vec<Part>,
}

/// A part of the judged time.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Part {
    /// Where the time went: `compute`, `transfer`, `host`, `sync`, `launch`, `unknown`.
    pub what: &'static str,
    /// How much.
    pub total_ns: i64,
    /// Of `window_ns`.
    pub share: f64,
    /// In one sentence.
    pub sentence: String,
}
