//! The verdict: what bounds the program's speed on the GPU.
//!
//! All devices with timed work are judged over one window, from the first work of any in the analysed window to the last.
//! Of the time of each, what passes while the recording itself holds the submitting thread up ([`Cause::Recording`](crate::gaps::Cause::Recording), as while it
//! profiles a kernel) is left out. The rest is split into parts; over the devices they sum to the window times the devices, without that time:
//!
//! | part | time |
//! |---|---|
//! | `compute` | the device computed, whatever else it did |
//! | `communication` | it ran kernels that communicate, and none that compute: exposed communication |
//! | `transfer` | it ran transfers and nothing else |
//! | `host` | idle, with a cause on [`Side::Host`]: the host had not submitted, or the queue waited for its function |
//! | `sync` | idle, with a cause on [`Side::Sync`]: host and device, or queues, waited for each other |
//! | `launch` | idle, with a cause on [`Side::Launch`]: the device started or ordered what it had |
//! | `imbalance` | it had no work while another device had: before its own first work and after its last |
//! | `unknown` | idle, and the trace does not say why |
//!
//! The verdict is the first of these whose share is reached:
//!
//! | verdict | of the time | has at least |
//! |---|---|---|
//! | `unknown` | `unknown`; or nothing was timed | [`UNKNOWN_SHARE`] |
//! | `host-bound` | `host` | [`IDLE_SHARE`] |
//! | `sync-bound` | `sync` | [`IDLE_SHARE`] |
//! | `communication-bound` | `communication` | [`COMMUNICATION_SHARE`] |
//! | `transfer-bound` | `transfer` | [`TRANSFER_SHARE`] |
//! | `latency-bound` | `launch`, and the part of `compute` in which the device was [underfilled](crate::fill) | [`IDLE_SHARE`] |
//! | `device-bound` | `compute` and `transfer` | [`DEVICE_SHARE`] |
//! | `mixed` | none of these | |
//!
//! What this cannot know: whether the work itself is needed, or well done. A device that is always busy may be running
//! kernels that ought to be one, and time that another version of the program saves shows as idle time here: compare
//! equal work ([`crate::equal_work`]) before believing in a busy device.

mod share;
mod times;
mod words;

use crate::busy::{self, DeviceBusy};
use crate::fill::{self, DeviceFill};
#[cfg(doc)]
use crate::gaps::Side;
use crate::gaps::{self, IdleTime};
use crate::intervals::Interval;
use crate::thresholds::*;
use crate::timeline::Timeline;
use gapscope_trace::parallel;
use schemars::JsonSchema;
use serde::Serialize;
pub(crate) use share::{Share, together};
use times::Times;

/// What bounds the speed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Bound {
    /// The device waits for the host to submit.
    HostBound,
    /// The device computes and moves data.
    DeviceBound,
    /// The device moves data and does nothing else.
    TransferBound,
    /// Host and device, or queues, wait for each other.
    SyncBound,
    /// The device runs collectives and other communication, and computes nothing meanwhile.
    CommunicationBound,
    /// The device starts and orders its work for longer than it works, or its work fills a small part of it.
    LatencyBound,
    /// None of these alone.
    Mixed,
    /// Nothing was timed.
    #[default]
    Unknown,
}

impl Bound {
    /// Its stable name, as in the JSON.
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
    pub parts: Vec<Part>,
}

/// A part of the judged time.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Part {
    /// Where the time went: `compute`, `communication`, `transfer`, `host`, `sync`, `launch`, `imbalance`, `unknown`.
    pub what: &'static str,
    /// How much.
    pub total_ns: i64,
    /// Of `window_ns`.
    pub share: f64,
    /// In one sentence.
    pub sentence: String,
}

/// The verdict on a window, with all that it rests on.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Judgement {
    /// Busy time of the devices.
    pub devices: Vec<DeviceBusy>,
    /// Their idle time, with a verdict on each.
    pub idle_time: IdleTime,
    /// How much of them their kernels could use.
    pub fill: Vec<DeviceFill>,
    /// What bounds the speed.
    pub bound: Bound,
    /// Why.
    pub evidence: Evidence,
}

impl Judgement {
    /// Judges `window`: with none, nothing was timed. Gaps shorter than `gap_threshold_ns` are not explained, and of long
    /// gaps and the like `longest` are listed.
    pub fn of(
        timeline: &Timeline,
        window: Option<Interval>,
        gap_threshold_ns: i64,
        longest: usize,
    ) -> Judgement {
        let Some(window) = window else {
            let (bound, evidence) = Times::default().verdict();
            return Judgement {
                devices: busy::busy(timeline, None),
                bound,
                evidence,
                ..Judgement::default()
            };
        };
        // Of ten million dispatches each takes tenths of a second.
        let (mut idle_time, (devices, fill)) = parallel::both(
            || gaps::idle_time(timeline, window, gap_threshold_ns, longest),
            || {
                let devices = busy::busy(timeline, Some(window));
                let fill = fill::fill(timeline, window, &devices, longest);
                (devices, fill)
            },
        );
        let judged = Times::of_devices(&devices, &idle_time, &fill);
        let (bound, evidence) = Times::of_all(&judged, &devices, &idle_time).verdict();
        let each: Vec<_> = judged.iter().map(Times::verdict).collect();
        for (device, (bound, evidence)) in idle_time.devices.iter_mut().zip(each) {
            device.verdict = bound;
            device.verdict_sentence = evidence.sentence;
            device.verdict_window_ns = evidence.window_ns;
            device.verdict_evidence = evidence.parts;
        }
        Judgement {
            devices,
            idle_time,
            fill,
            bound,
            evidence,
        }
    }
}

impl Bound {
    fn of(times: &Times) -> Bound {
        let reached = |ns: i64, share: f64| times.share(ns) >= share;
        let latency_ns = times.launch_ns.saturating_add(times.underfilled_ns());
        let working_ns = (times.busy.compute_ns).saturating_add(times.busy.transfer_ns);
        match () {
            () if times.window_ns == 0 => Bound::Unknown,
            () if reached(times.unknown_ns, UNKNOWN_SHARE) => Bound::Unknown,
            () if reached(times.host_ns, IDLE_SHARE) => Bound::HostBound,
            () if reached(times.sync_ns, IDLE_SHARE) => Bound::SyncBound,
            () if reached(times.busy.communication_ns, COMMUNICATION_SHARE) => {
                Bound::CommunicationBound
            }
            () if reached(times.busy.transfer_ns, TRANSFER_SHARE) => Bound::TransferBound,
            () if reached(latency_ns, IDLE_SHARE) => Bound::LatencyBound,
            () if reached(working_ns, DEVICE_SHARE) => Bound::DeviceBound,
            () => Bound::Mixed,
        }
    }
}
