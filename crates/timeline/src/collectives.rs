//! Recognises collectives (operations of several ranks, such as an all-reduce; a rank is one numbered member of a
//! distributed program) by the names of kernels and labels, and finds the devices whose kernels take part in them.

use crate::timeline::{Timeline, WorkKind};
use gapscope_trace::ids::{DeviceId, ProcessId};
use std::collections::{BTreeMap, BTreeSet};

/// The properties of one kind of collectives.
#[derive(Debug, Clone, Copy)]
pub struct KindFacts {
    /// The name of the kind, such as `AllReduce`.
    pub kind: &'static str,
    /// True where a kernel of the kind can end before all ranks have arrived.
    pub may_end_early: bool,
    /// The rule for how much of the data has to leave a rank; `None` for kinds without a bandwidth.
    pub traffic: Option<Traffic>,
}

/// The size of a collective of `n` ranks in terms of NCCL's message size, and the factor from algorithm bandwidth to bus
/// bandwidth, as nccl-tests define them (`doc/PERFORMANCE.md` and the `GetBw` of each test there).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Traffic {
    /// The size is the message; the factor is `2 (n - 1) / n`.
    Twice,
    /// The message is one rank's part, and the size `n` of them; the factor is `(n - 1) / n`.
    OfEach,
    /// The size is the message; the factor is 1.
    Once,
}

impl Traffic {
    /// Returns the bytes of a collective from which its algorithm bandwidth is computed, from the size of its message
    /// and the number of its ranks.
    pub fn bytes(self, message: u64, ranks: u32) -> u64 {
        match self {
            Traffic::OfEach => message.saturating_mul(ranks.into()),
            Traffic::Twice | Traffic::Once => message,
        }
    }

    /// Returns the factor from algorithm bandwidth to bus bandwidth.
    pub fn factor(self, ranks: u32) -> f64 {
        let others = f64::from(ranks.saturating_sub(1)) / f64::from(ranks.max(1));
        match self {
            Traffic::Twice => 2.0 * others,
            Traffic::OfEach => others,
            Traffic::Once => 1.0,
        }
    }
}

/// The kind of messages from one rank to another.
pub const SEND_RECV: &str = "SendRecv";
/// The kind of exchanges among all ranks.
pub const ALL_TO_ALL: &str = "AllToAll";

/// The kinds that are recognised.
const KINDS: [KindFacts; 10] = [
    kind("AllReduce", false, Some(Traffic::Twice)),
    kind("AllGather", false, Some(Traffic::OfEach)),
    kind("ReduceScatter", false, Some(Traffic::OfEach)),
    kind(ALL_TO_ALL, false, Some(Traffic::OfEach)),
    kind("Broadcast", true, Some(Traffic::Once)),
    kind("Reduce", true, Some(Traffic::Once)),
    kind("Gather", true, Some(Traffic::OfEach)),
    kind("Scatter", true, Some(Traffic::OfEach)),
    kind("Barrier", false, None),
    // The data may lie in a buffer until the receiver comes.
    kind(SEND_RECV, true, Some(Traffic::Once)),
];

/// Makes the properties of a kind.
const fn kind(kind: &'static str, may_end_early: bool, traffic: Option<Traffic>) -> KindFacts {
    KindFacts {
        kind,
        may_end_early,
        traffic,
    }
}

/// Returns the properties of the kind with a name, or `None` for an unknown name.
pub fn facts(kind: &str) -> Option<&'static KindFacts> {
    KINDS.iter().find(|facts| facts.kind == kind)
}

/// Returns the kind that the name of a kernel or label of NCCL contains, such as
/// `ncclDevKernel_AllReduce_Sum_f32_RING_LL`, `ncclAllReduce`, `nccl:all_reduce` or `ncclSend`. Returns `None` for
/// names of other things.
pub fn kind_of(name: &str) -> Option<&'static str> {
    let rest = name.strip_prefix("nccl")?;
    let word: String = match rest.split_once("Kernel_") {
        Some((_, of_kernel)) => {
            let end = of_kernel.find(['_', '(', '<']).unwrap_or(of_kernel.len());
            of_kernel[..end].to_owned()
        }
        None if matches!(rest, "Send" | "Recv") => return Some(SEND_RECV),
        None => rest.chars().filter(|c| c.is_alphanumeric()).collect(),
    };
    let same = |kind: &str| kind.eq_ignore_ascii_case(&word);
    KINDS.iter().map(|facts| facts.kind).find(|kind| same(kind))
}

/// The ids of a process and of a device that it used.
pub type ProcessDevice = (ProcessId, DeviceId);

/// Returns the ids of the process and the device of each of the timeline's queues.
pub fn devices_of_queues(timeline: &Timeline) -> Vec<ProcessDevice> {
    let manifest = &timeline.trace.manifest;
    let processes: BTreeMap<DeviceId, ProcessId> = (manifest.devices.iter())
        .map(|device| (device.id, device.process))
        .collect();
    (timeline.queues.iter())
        .map(|queue| {
            let row = queue.row.and_then(|row| manifest.queues.get(row as usize));
            let device = row.map(|queue| queue.device).unwrap_or_default();
            (processes.get(&device).copied().unwrap_or_default(), device)
        })
        .collect()
}

/// Returns the devices on which kernels of collectives ran.
pub fn devices_with_collectives(timeline: &Timeline) -> BTreeSet<ProcessDevice> {
    let names = &timeline.trace.tables.kernels.name;
    let kinds: Vec<bool> = names.iter().map(|name| kind_of(name).is_some()).collect();
    let mut devices = BTreeSet::new();
    if !kinds.contains(&true) {
        return devices;
    }
    let by_queue = devices_of_queues(timeline);
    timeline.each_work(|work| {
        let is_collective = work.kind() == WorkKind::Dispatch
            && timeline
                .kernel_row(work.row())
                .is_some_and(|row| kinds[row]);
        if is_collective {
            let queue = timeline.queue_of(work) as usize;
            devices.insert(by_queue.get(queue).copied().unwrap_or_default());
        }
    });
    devices
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_are_recognised_by_name() {
        for (name, kind) in [
            ("ncclDevKernel_AllReduce_Sum_f32_RING_LL", Some("AllReduce")),
            (
                "ncclKernel_ReduceScatter_RING_LL_Sum_float",
                Some("ReduceScatter"),
            ),
            (
                "ncclDevKernel_AllGather_RING_LL(ncclDevKernelArgsStorage<4096>)",
                Some("AllGather"),
            ),
            (
                "ncclSymkDevKernel_AllReduce_AGxLL_R_sum_bf16",
                Some("AllReduce"),
            ),
            (
                "ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096>)",
                Some("SendRecv"),
            ),
            ("ncclSend", Some("SendRecv")),
            ("ncclRecv", Some("SendRecv")),
            ("ncclAlltoAll", Some("AllToAll")),
            ("ncclAllReduce", Some("AllReduce")),
            ("nccl:all_reduce", Some("AllReduce")),
            ("ncclGroupEnd", None),
            ("AllReduce", None),
        ] {
            assert_eq!(kind_of(name), kind, "{name}");
        }
    }

    #[test]
    fn bus_bandwidth_is_that_of_nccl_tests() {
        for (kind, bytes, factor) in [
            ("AllReduce", 1000, 1.5),
            ("AllGather", 4000, 0.75),
            ("ReduceScatter", 4000, 0.75),
            ("AllToAll", 4000, 0.75),
            ("Broadcast", 1000, 1.0),
            ("Reduce", 1000, 1.0),
            ("SendRecv", 1000, 1.0),
        ] {
            let traffic = facts(kind).unwrap().traffic.unwrap();
            assert_eq!(traffic.bytes(1000, 4), bytes, "{kind}");
            assert_eq!(traffic.factor(4), factor, "{kind}");
        }
        assert_eq!(facts("Barrier").unwrap().traffic, None);
    }
}
