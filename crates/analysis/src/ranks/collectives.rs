//! Kinds of collectives, recognised by the names of kernels and labels.

/// A kind of collectives.
#[derive(Debug, Clone, Copy)]
pub(super) struct KindFacts {
    /// Its name.
    pub(super) kind: &'static str,
    /// A kernel of it can end before all ranks have arrived.
    pub(super) may_end_early: bool,
    /// How much of the data has to leave a rank; `None`: it has no bandwidth.
    pub(super) traffic: Option<Traffic>,
}

/// What nccl-tests (`doc/PERFORMANCE.md` and the `GetBw` of each test there) count as the size of a collective of `n` ranks, of
/// what NCCL calls the size of a message, and by what the algorithm bandwidth is multiplied to give that of the bus.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Traffic {
    /// The size is the message; `2 (n - 1) / n`.
    Twice,
    /// The message is one rank's part, the size `n` of them; `(n - 1) / n`.
    OfEach,
    /// The size is the message; 1.
    Once,
}

impl Traffic {
    /// Bytes for the algorithm bandwidth.
    pub(super) fn bytes(self, message: u64, ranks: u32) -> u64 {
        match self {
            Traffic::OfEach => message.saturating_mul(ranks.into()),
            Traffic::Twice | Traffic::Once => message,
        }
    }

    /// Bandwidth of the bus, of that of the algorithm.
    pub(super) fn factor(self, ranks: u32) -> f64 {
        let others = f64::from(ranks.saturating_sub(1)) / f64::from(ranks.max(1));
        match self {
            Traffic::Twice => 2.0 * others,
            Traffic::OfEach => others,
            Traffic::Once => 1.0,
        }
    }
}

/// Messages from one rank to another.
pub(super) const SEND_RECV: &str = "SendRecv";
pub(super) const ALL_TO_ALL: &str = "AllToAll";

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
    // What was sent may lie in a buffer until the receiver comes.
    kind(SEND_RECV, true, Some(Traffic::Once)),
];

const fn kind(kind: &'static str, may_end_early: bool, traffic: Option<Traffic>) -> KindFacts {
    KindFacts {
        kind,
        may_end_early,
        traffic,
    }
}

/// What is known of a kind.
pub(super) fn facts(kind: &str) -> Option<&'static KindFacts> {
    KINDS.iter().find(|facts| facts.kind == kind)
}

/// The kind in the name of a kernel or of a label: `ncclDevKernel_AllReduce_Sum_f32_RING_LL`, `ncclAllReduce`,
/// `nccl:all_reduce`, `ncclSend`.
pub(super) fn kind_of(name: &str) -> Option<&'static str> {
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
            assert_eq!(
                (traffic.bytes(1000, 4), traffic.factor(4)),
                (bytes, factor),
                "{kind}"
            );
        }
        assert_eq!(facts("Barrier").unwrap().traffic, None);
    }
}
