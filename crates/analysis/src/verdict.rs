//! The verdict: what bounds the program's speed on the GPU.
//!
//! The analysed time of all devices with work is split into six parts that sum to it:
//!
//! | part | time |
//! |---|---|
//! | `compute` | the device ran something, not only transfers |
//! | `transfer` | the device ran transfers and nothing else |
//! | `host` | idle, with a cause on [`Side::Host`]: the host had not submitted |
//! | `sync` | idle, with a cause on [`Side::Sync`]: host and device, or queues, waited for each other |
//! | `launch` | idle, with a cause on [`Side::Launch`]: the device started or ordered what it had |
//! | `unknown` | idle, and the trace does not say why |
//!
//! `host-bound` needs [`IDLE_SHARE`] in `host`, `sync-bound` as much in `sync`, `transfer-bound` [`TRANSFER_SHARE`] in
//! `transfer`; `device-bound` needs [`DEVICE_SHARE`] in `compute`, `launch` and `transfer` together. Otherwise the
//! verdict is `mixed`, and the parts say of what. Nothing timed, or half of the time unexplained, is `unknown`.
//!
//! What this cannot know: whether the work itself is needed, or well done. A device that is always busy may be running
//! kernels that ought to be one, and time that another version of the program saves shows as idle time here: compare
//! equal work ([`crate::work`]) before believing in a busy device.

use crate::busy::DeviceBusy;
use crate::gaps::{Cause, IdleTime, Side};
use crate::quantity::{Nanoseconds, Percent, ratio};
use crate::thresholds::{DEVICE_SHARE, IDLE_SHARE, TRANSFER_SHARE, UNKNOWN_SHARE};
use serde::Serialize;
use std::cmp::Reverse;

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

/// The verdict on the analysed window of `devices`, whose idle time is `idle`.
pub fn verdict(devices: &[DeviceBusy], idle: &IdleTime) -> (Bound, Evidence) {
    let (mut window_ns, mut busy_ns, mut transfer_ns) = (0i64, 0i64, 0i64);
    let mut transfers_known = true;
    for share in devices.iter().filter_map(|device| device.analysed) {
        window_ns = window_ns.saturating_add(share.window_ns);
        busy_ns = busy_ns.saturating_add(share.busy_ns);
        transfers_known &= share.transfer_only_ns.is_some();
        transfer_ns = transfer_ns.saturating_add(share.transfer_only_ns.into_iter().sum());
    }
    if window_ns == 0 {
        return unknown(
            "No GPU work has known times, so nothing can be said about what bounds the program.",
        );
    }
    let of = |side: Side| {
        (idle.causes.iter())
            .filter(|total| total.cause.side() == side)
            .fold(0i64, |sum, total| sum.saturating_add(total.total_ns))
    };
    let host_ns = of(Side::Host);
    let sync_ns = of(Side::Sync);
    let launch_ns = of(Side::Launch);
    let unknown_ns = of(Side::Unknown).saturating_add(idle.below_threshold_ns);
    let compute_ns = busy_ns - transfer_ns;
    let part = |what, total_ns: i64, text: &str| {
        let share = ratio(total_ns, window_ns);
        Part {
            what,
            total_ns,
            share,
            sentence: format!("{} ({}) {text}", Nanoseconds(total_ns), Percent(share)),
        }
    };
    let (compute, transfer) = match transfers_known {
        true => (
            "the device computed.",
            "the device ran transfers and nothing else.",
        ),
        false => (
            "the device computed or moved data: command buffers with both are timed as a whole.",
            "at least, the device ran transfers and nothing else.",
        ),
    };
    let mut parts = vec![
        part("compute", compute_ns, compute),
        part("transfer", transfer_ns, transfer),
        part(
            "host",
            host_ns,
            &format!(
                "the device had nothing to do, because the host had not submitted it{}.",
                most(idle)
            ),
        ),
        part(
            "sync",
            sync_ns,
            "the device idled at synchronisation: a host that waited for it first, or another queue.",
        ),
        part(
            "launch",
            launch_ns,
            "the device idled with work submitted: launch latency, and barriers inside command buffers.",
        ),
        part(
            "unknown",
            unknown_ns,
            "the device idled and the trace does not say why.",
        ),
    ];
    parts.retain(|part| part.total_ns > 0);
    parts.sort_by_key(|part| Reverse(part.total_ns));

    let of_window = |ns: i64| ratio(ns, window_ns);
    let device_ns = busy_ns.saturating_add(launch_ns);
    let (bound, sentence) = if of_window(unknown_ns) >= UNKNOWN_SHARE {
        let sentence = format!(
            "The device idled for {} of the time, and the trace does not say why.",
            Percent(of_window(unknown_ns))
        );
        (Bound::Unknown, sentence)
    } else if of_window(host_ns) >= IDLE_SHARE {
        let sentence = format!(
            "The device waited for the host to submit for {} of the time.",
            Percent(of_window(host_ns))
        );
        (Bound::HostBound, sentence)
    } else if of_window(sync_ns) >= IDLE_SHARE {
        let sentence = format!(
            "The device idled at synchronisation for {} of the time.",
            Percent(of_window(sync_ns))
        );
        (Bound::SyncBound, sentence)
    } else if of_window(transfer_ns) >= TRANSFER_SHARE {
        let sentence = format!(
            "The device ran transfers and nothing else for {} of the time.",
            Percent(of_window(transfer_ns))
        );
        (Bound::TransferBound, sentence)
    } else if of_window(device_ns) >= DEVICE_SHARE {
        let sentence = match launch_ns > busy_ns {
            true => format!(
                "The device spent {} of the time on starting and ordering its work, and {} on the work.",
                Percent(of_window(launch_ns)),
                Percent(of_window(busy_ns))
            ),
            false => format!(
                "The device was busy for {} of the time.",
                Percent(of_window(busy_ns))
            ),
        };
        (Bound::DeviceBound, sentence)
    } else {
        let shares: Vec<String> = (parts.iter().take(3))
            .map(|part| format!("{} {}", part.what, Percent(part.share)))
            .collect();
        (
            Bound::Mixed,
            format!(
                "No single cause has most of the time: {}.",
                shares.join(", ")
            ),
        )
    };
    let evidence = Evidence {
        sentence,
        window_ns: Some(window_ns),
        parts,
    };
    (bound, evidence)
}

fn unknown(sentence: &str) -> (Bound, Evidence) {
    let evidence = Evidence {
        sentence: sentence.to_owned(),
        ..Evidence::default()
    };
    (Bound::Unknown, evidence)
}

/// What the host mostly did while it was late, as the end of a sentence.
fn most(idle: &IdleTime) -> String {
    let late = (idle.causes.iter()).filter_map(|total| Some((total, idle.host_was(total.cause)?)));
    let total_ns = (late.clone()).fold(0i64, |sum, (total, _)| sum.saturating_add(total.total_ns));
    let known = late.map(|(total, doing)| match total.cause {
        Cause::HostLate => (total.total_ns - idle.unknown_host_ns, doing),
        _ => (total.total_ns, doing),
    });
    // Of equals the first.
    match known.rev().max_by_key(|(ns, _)| *ns) {
        None => String::new(),
        // As in traces of programs that measured themselves.
        Some((ns, _)) if ns < idle.unknown_host_ns => format!(
            "; what it did for {} of that is not in the trace",
            Percent(ratio(idle.unknown_host_ns, total_ns))
        ),
        Some((ns, doing)) => format!(
            "; for {} of that it was {doing}",
            Percent(ratio(ns, total_ns))
        ),
    }
}
