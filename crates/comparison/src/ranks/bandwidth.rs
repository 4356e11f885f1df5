//! Bandwidths of collectives, as nccl-tests define them: that of the algorithm is the size over the time, that of the bus what each
//! rank's connection must carry for it.
//!
//! The time is from the last arrival to the end of the last kernel, as the network is not at fault when ranks wait for each other. Where this
//! time is not known within [`BANDWIDTH_ERROR_SHARE`], it is the duration of the shortest kernel, which has no clock's error. Kinds whose
//! kernels may end early have no bandwidth then.

use super::clocks::Clocks;
use super::matched::Matched;
use super::part::CollectivePart;
use gapscope_timeline::collectives::{SEND_RECV, facts};
use gapscope_timeline::durations::Durations;
use gapscope_timeline::thresholds::BANDWIDTH_ERROR_SHARE;
use schemars::JsonSchema;
use serde::Serialize;
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// Bandwidth of the collectives of a kind and size.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Bandwidth {
    /// The kind of the collectives.
    pub kind: &'static str,
    /// The number of ranks that take part.
    pub ranks: u32,
    /// The size as nccl-tests count it. A gather, a scatter or an exchange among all has that of all ranks' parts together.
    pub bytes: u64,
    /// Times from the last arrival to the end.
    pub time: Durations,
    /// The size over the median of the times, in bytes a second.
    pub algorithm_bytes_per_s: f64,
    /// The bandwidth of the bus, in bytes a second.
    pub bus_bytes_per_s: f64,
}

/// The times of collectives by kind, then number of ranks, then size of a message in bytes.
#[derive(Default)]
pub(super) struct Bandwidths(BTreeMap<(&'static str, u32, u64), Vec<i64>>);

impl Bandwidths {
    /// Adds a collective whose size and time are known.
    pub(super) fn add(&mut self, one: &Matched, clocks: &Clocks) {
        if let (Some(bytes), Some(ns)) = (message_bytes(one), time_ns(one, clocks)) {
            let times = self.0.entry((one.kind, one.size, bytes)).or_default();
            times.push(ns);
        }
    }

    /// Returns the bandwidths. Those of the collectives with the greatest sum of times come first.
    pub(super) fn rows(self) -> Vec<Bandwidth> {
        let row = |((kind, ranks, message), mut times): (_, Vec<i64>)| {
            let traffic = facts(kind)?.traffic?;
            let time = Durations::from_slice(&mut times);
            let bytes = traffic.bytes(message, ranks);
            let algorithm_bytes_per_s = bytes as f64 * 1e9 / time.p50_ns? as f64;
            Some(Bandwidth {
                kind,
                ranks,
                bytes,
                time,
                algorithm_bytes_per_s,
                bus_bytes_per_s: algorithm_bytes_per_s * traffic.factor(ranks),
            })
        };
        let mut rows: Vec<Bandwidth> = self.0.into_iter().filter_map(row).collect();
        rows.sort_by_key(|row| Reverse(row.time.total_ns));
        rows
    }
}

/// Returns the size of a collective's message, or `None` unless all ranks agree on it.
pub(super) fn message_bytes(one: &Matched) -> Option<u64> {
    if one.kind == SEND_RECV {
        let [(_, a), (_, b)] = one.parts.as_slice() else {
            return None;
        };
        return Some(sent_bytes(a)?.max(sent_bytes(b)?)).filter(|bytes| *bytes > 0);
    }
    let (_, first) = one.parts.first()?;
    let same = one.parts.iter().all(|(_, part)| part.bytes == first.bytes);
    first.bytes.filter(|bytes| same && *bytes > 0)
}

/// Returns the bytes that a part (one rank's share) sends; `None` where it has messages with several ranks.
fn sent_bytes(part: &CollectivePart) -> Option<u64> {
    let peer = part.messages.first()?.peer;
    (part.messages.iter()).try_fold(0u64, |sum, message| {
        let bytes = message.bytes.filter(|_| message.peer == peer)?;
        sum.checked_add(if message.sends { bytes } else { 0 })
    })
}

/// Returns the time of a collective by the rule above; `None` where it is not known.
pub(super) fn time_ns(one: &Matched, clocks: &Clocks) -> Option<i64> {
    let (last, arrived) = one.parts.iter().max_by_key(|(_, p)| p.interval.start_ns)?;
    let (ending, ended) = one.parts.iter().max_by_key(|(_, p)| p.interval.end_ns)?;
    let ns = (ended.interval.end_ns).saturating_sub(arrived.interval.start_ns);
    let certain = |error: i64| ns > 0 && error as f64 <= ns as f64 * BANDWIDTH_ERROR_SHARE;
    let compared = one
        .parts
        .iter()
        .all(|(at, _)| clocks.device_error_ns(*at, *last).is_some());
    if compared && clocks.device_error_ns(*last, *ending).is_some_and(certain) {
        return Some(ns);
    }
    // The kernel of a rank that both sends and receives does not end before the other rank has come.
    let exchanges = |part: &CollectivePart| {
        let sends = |sends: bool| part.messages.iter().any(|message| message.sends == sends);
        sends(true) && sends(false)
    };
    if facts(one.kind)?.may_end_early && !one.parts.iter().all(|(_, part)| exchanges(part)) {
        return None;
    }
    let shortest = one
        .parts
        .iter()
        .map(|(_, p)| p.interval.length_ns())
        .min()?;
    (shortest > 0).then_some(shortest)
}
