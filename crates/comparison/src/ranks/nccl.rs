//! Reads the communicators, sizes and peers of collectives from NCCL's NVTX ranges (spans of a thread with a name,
//! which a library marks for profilers). They surround its functions in the domain `NCCL` and have a payload, a text
//! of fields: name and payload go in, a [`Range`] comes out.
//!
//! | since | the payload says |
//! |---|---|
//! | 2.18 | sizes of messages and peers; of `ncclCommInitRank` the rank, the number of ranks and the device |
//! | 2.25 | the communicator too: a number that all of its ranks agree on |
//!
//! A communicator that `ncclCommSplit` or its like makes has no number yet when the payload is written: that says 0,
//! and the rank and number of ranks of the parent. `ncclCommDestroy` and `ncclCommAbort` have the right ones.
//!
//! PyTorch's traces have no calls that make communicators. Each of their collectives says the size of its group, and the caller's number in it.

use gapscope_timeline::collectives::{SEND_RECV, kind_of};

/// The NVTX domain of NCCL's ranges.
pub(super) const DOMAIN: &str = "NCCL";

/// A call of NCCL that takes part in a collective, or sends or receives a message.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Call {
    /// The kind of collective, such as `AllReduce`.
    pub(super) kind: &'static str,
    /// NCCL's number of the communicator; `None` where the payload lacks it.
    pub(super) communicator: Option<u64>,
    /// The size of the message in bytes, which for a gather or scatter is the size of one rank's part.
    pub(super) bytes: Option<u64>,
    /// The number of the other rank in the communicator, then true if this rank sends; `None` but for `ncclSend` and
    /// `ncclRecv`.
    pub(super) peer: Option<(u32, bool)>,
    /// A number that all ranks give this call among those of its communicator: PyTorch's `Seq`, or else its
    /// `Comms Id`; `None` where the payload has neither.
    pub(super) operation: Option<u64>,
    /// The caller's place in the group of ranks, as PyTorch says with each call.
    pub(super) member: Option<Member>,
}

/// A process's place in a communicator.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Member {
    pub(super) communicator: Option<u64>,
    /// The number of the process in the communicator; `None` where NCCL does not tell it, as where a process
    /// makes several at once.
    pub(super) rank: Option<u32>,
    /// The number of ranks in the communicator.
    pub(super) size: Option<u32>,
}

/// A range of NCCL, by its meaning for the matching of collectives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Range {
    Call(Call),
    /// The range begins a group: calls until the group's end are launched together.
    GroupStart,
    /// The range ends a group, and launches its calls.
    GroupEnd,
    /// The range makes a communicator.
    Made(Member),
    /// The range ends a communicator.
    Ended(Member),
}

impl Range {
    /// Returns the meaning of a range with a name and a payload, or `None` for ranges without one.
    pub(super) fn from_name(name: &str, payload: &str) -> Option<Range> {
        let number = |field: &str| number(payload, field);
        let small = |field: &str| number(field).and_then(|n| u32::try_from(n).ok());
        let communicator = number("NCCL communicator ID").filter(|id| *id != 0);
        let member = Member {
            communicator,
            rank: small("Rank"),
            size: small("No. of ranks"),
        };
        Some(match name.strip_prefix("nccl")? {
            "GroupStart" => Range::GroupStart,
            "GroupEnd" => Range::GroupEnd,
            "CommInitRank" | "CommInitRankConfig" | "CommInitRankScalable" => Range::Made(member),
            "CommInitAll" => Range::Made(Member {
                size: small("No. of devices"),
                ..member
            }),
            "CommSplit" | "CommShrink" | "CommGrow" => Range::Made(Member::default()),
            "CommDestroy" | "CommAbort" | "CommRevoke" => Range::Ended(member),
            other => {
                let kind = kind_of(name).filter(|_| !other.starts_with(':'))?;
                let sends = other == "Send";
                Range::Call(Call {
                    kind,
                    communicator,
                    bytes: number("Message size [bytes]").or_else(|| number("Bytes")),
                    peer: small("Peer rank")
                        .filter(|_| kind == SEND_RECV)
                        .map(|peer| (peer, sends)),
                    operation: number("Seq").or_else(|| number("Comms Id")),
                    member: small("Group size").and_then(|size| {
                        Some(Member {
                            communicator: Some(communicator?),
                            rank: small("Rank").filter(|rank| *rank < size),
                            size: Some(size),
                        })
                    }),
                })
            }
        })
    }
}

/// Returns the number in a field of a payload, if it has that field.
fn number(payload: &str, field: &str) -> Option<u64> {
    let fields = payload.split(", ").filter_map(|part| part.split_once('='));
    let mut named = fields.filter(|(name, _)| *name == field);
    named.next()?.1.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn payloads_of_old_and_new_versions_are_read() {
        let call = |name, payload| match Range::from_name(name, payload) {
            Some(Range::Call(call)) => call,
            other => panic!("{other:?}"),
        };
        let new = "NCCL communicator ID=12345678901234567890, Message size [bytes]=4096, Reduction operation=Sum";
        let reduce = call("ncclAllReduce", new);
        assert_eq!((reduce.kind, reduce.bytes), ("AllReduce", Some(4096)));
        assert_eq!(reduce.communicator, Some(12_345_678_901_234_567_890));
        assert_eq!(reduce.peer, None);
        let old = call("ncclSend", "Bytes=64, Peer rank=3");
        assert_eq!(old.communicator, None);
        assert_eq!(old.bytes, Some(64));
        assert_eq!(old.peer, Some((3, true)));
        assert_eq!(old.member, None);
        let torch = "NCCL communicator ID=9, Message size [bytes]=64, Group size=2, Rank=1, Process Group Ranks=[4,6], Seq=5";
        let member = Member {
            communicator: Some(9),
            rank: Some(1),
            size: Some(2),
        };
        let reduce = call("ncclAllReduce", torch);
        assert_eq!((reduce.member, reduce.operation), (Some(member), Some(5)));
        let init = "NCCL communicator ID=7, No. of ranks=4, Rank=2, CUDA device=0";
        let member = Member {
            communicator: Some(7),
            rank: Some(2),
            size: Some(4),
        };
        let range = |name| Range::from_name(name, init);
        assert_eq!(range("ncclCommInitRankConfig"), Some(Range::Made(member)));
        assert_eq!(range("ncclCommDestroy"), Some(Range::Ended(member)));
        // The payload of a split is that of its parent.
        let unknown = Member::default();
        assert_eq!(range("ncclCommSplit"), Some(Range::Made(unknown)));
        assert_eq!(range("ncclCommCount"), None);
        assert_eq!(Range::from_name("nccl:all_reduce", ""), None);
    }
}
