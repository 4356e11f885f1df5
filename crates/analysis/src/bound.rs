//! The verdict's types: the resource or wait that bounds a program's speed on the GPU, and the figures that support
//! this. `verdict.rs` makes them.

use schemars::JsonSchema;
use serde::Serialize;

/// What bounds the speed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Bound {
    /// The device waits for the host to submit.
    HostBound,
    /// The device computes and moves data.
    DeviceBound,
    /// The device moves data and does nothing else, or what else it does waits for that.
    TransferBound,
    /// Host and device, or queues, wait for each other.
    SyncBound,
    /// The device runs collectives and other communication, and computes nothing meanwhile, or waits for them to compute.
    CommunicationBound,
    /// The device starts and orders its work for longer than it works, or its work fills a small part of it.
    LatencyBound,
    /// None of these alone.
    Mixed,
    /// Nothing was timed, the trace does not say why the device idled, or the clock's error leaves it open.
    #[default]
    Unknown,
}

impl Bound {
    /// Returns the stable name that JSON has.
    pub const fn as_str(self) -> &'static str {
        match self {
            Bound::HostBound => "host-bound",
            Bound::DeviceBound => "device-bound",
            Bound::TransferBound => "transfer-bound",
            Bound::SyncBound => "sync-bound",
            Bound::CommunicationBound => "communication-bound",
            Bound::LatencyBound => "latency-bound",
            Bound::Mixed => "mixed",
            Bound::Unknown => "unknown",
        }
    }
}

impl std::fmt::Display for Bound {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.as_str())
    }
}

/// Why the verdict is what it is.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
pub struct Evidence {
    /// The verdict and its main number in one sentence.
    #[serde(rename = "verdict_sentence")]
    pub sentence: String,
    /// Device time that was judged: the window of all devices, once for each, without idle time that the recording itself caused.
    #[serde(rename = "verdict_window_ns")]
    pub window_ns: Option<i64>,
    /// The parts of that time, the largest first; they sum to it.
    #[serde(rename = "verdict_evidence")]
    pub parts: Vec<VerdictPart>,
}

/// A part of the judged time.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct VerdictPart {
    /// Where the time went: `compute`, `communication`, `peers` (kernels that communicate wait for another device of the trace), `transfer`, `host`, `sync`, `launch`, `imbalance`, `unknown`.
    pub what: &'static str,
    /// How much.
    pub total_ns: i64,
    /// Of `window_ns`.
    pub share: f64,
    /// In one sentence.
    pub sentence: String,
    /// What happened in that time, as the end of a sentence without its details: `it computed`.
    #[serde(skip)]
    pub clause: String,
}
