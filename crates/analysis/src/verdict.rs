//! Judges from busy and idle time what bounds the program's speed on the GPU: the verdict, with its evidence.
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
//! | `unknown` | idle, and the trace does not say why; or only command buffers or graphs ran that are timed as a whole, so that the device may have idled inside of them |
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
//!
//! Order: `times.rs` sums up the parts of each device and of all, `Bound::from_times` decides, and `words.rs` writes
//! the sentences.

mod times;
mod words;

use crate::fill::{self, DeviceFill};
#[cfg(doc)]
use crate::gaps::Side;
use crate::gaps::{self, IdleTime};
use gapscope_timeline::Timeline;
use gapscope_timeline::busy::{self, DeviceBusy};
use gapscope_timeline::intervals::Interval;
use gapscope_timeline::thresholds::*;
use gapscope_trace::parallel;
pub(crate) use times::Times;

pub use crate::bound::{Bound, Evidence, VerdictPart};

/// The verdict on a window, with the figures that it is made from.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Judgement {
    /// The busy time of the devices.
    pub devices: Vec<DeviceBusy>,
    /// The idle time of the devices, with a verdict on each device.
    pub idle_time: IdleTime,
    /// The share of each device that its kernels could use at once.
    pub fill: Vec<DeviceFill>,
    /// The verdict: what bounds the speed.
    pub bound: Bound,
    /// The evidence for the verdict.
    pub evidence: Evidence,
}

impl Judgement {
    /// Judges `window`. Without a window, the verdict says that nothing was timed. Gaps shorter than
    /// `gap_threshold_ns` are not explained; up to `longest` of the longest gaps and so on are listed.
    pub fn new(
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
        // With ten million dispatches each takes tenths of a second.
        let (mut idle_time, (devices, fill)) = parallel::both(
            || gaps::idle_time(timeline, window, gap_threshold_ns, longest),
            || {
                let devices = busy::busy(timeline, Some(window));
                let fill = fill::fill(timeline, window, &devices, longest);
                (devices, fill)
            },
        );
        let judged = Times::from_devices(&devices, &idle_time, &fill);
        let (bound, evidence) = Times::sum(&judged, &devices, &idle_time).verdict();
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
    /// Returns the first verdict of the table above whose share is reached.
    fn from_times(times: &Times) -> Bound {
        let reached = |ns: i64, share: f64| times.share(ns) >= share;
        let latency_ns = times.launch_ns.saturating_add(times.underfilled_ns());
        let working_ns = (times.busy.compute_ns).saturating_add(times.busy.transfer_ns);
        match () {
            () if times.window_ns == 0 => Bound::Unknown,
            () if reached(times.unmeasured_ns(), UNKNOWN_SHARE) => Bound::Unknown,
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
