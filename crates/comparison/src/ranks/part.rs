//! The part of one rank in a collective: a kernel on its device or a call on its host. Its start is the rank's
//! arrival; the time from the first to the last arrival is the collective's skew.

use gapscope_analysis::gaps::Cause;
use gapscope_timeline::intervals::Interval;
use gapscope_trace::ids::QueueId;
use serde::{Serialize, Serializer};

/// A communicator: a group of ranks that take part in collectives together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Communicator {
    /// The only communicator of each process, which has no number: NCCL before 2.25 does not give it.
    Only,
    /// The communicator with this number of NCCL's.
    Number(u64),
}

impl std::fmt::Display for Communicator {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Communicator::Only => f.pad("only"),
            Communicator::Number(number) => write!(f, "{number:#x}"),
        }
    }
}

/// Writes a communicator to JSON as text, since JSON's numbers are not exact enough.
impl Serialize for Communicator {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// The part of one rank in a collective.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct CollectivePart {
    /// The time of the kernel or call.
    pub(super) interval: Interval,
    pub(super) kind: &'static str,
    /// The communicator; `None` where it is not known.
    pub(super) communicator: Option<Communicator>,
    /// The size of the message in bytes, as NCCL counts it; `None` where it is not known.
    pub(super) bytes: Option<u64>,
    /// The messages that the part sends and receives; empty where it is any other collective, or they are not known.
    pub(super) messages: Box<[Message]>,
    /// The activity of the device before the part; `None` where it is not known.
    pub(super) before: Option<Before>,
    /// The id of the queue that ran the kernel; `None` for a call.
    pub(super) queue: Option<QueueId>,
    /// The number that all ranks give this operation on the communicator; `None` where the trace has none.
    pub(super) operation: Option<u64>,
}

impl CollectivePart {
    /// Returns true for a kernel or call that only sends messages, or only receives them. Such a part says nothing about
    /// the lateness of a rank: who receives waits for what another rank has yet to compute.
    pub(super) fn goes_one_way(&self) -> bool {
        let mut messages = self.messages.iter().map(|message| message.sends);
        let first = messages.next();
        first.is_some() && messages.all(|sends| Some(sends) == first)
    }

    /// Returns a message of a part that only sends to one rank, or only receives from one.
    pub(super) fn only_peer(&self) -> Option<Message> {
        let first = *self.messages.first()?;
        let same = |message: &Message| (message.peer, message.sends) == (first.peer, first.sends);
        self.messages.iter().all(same).then_some(first)
    }
}

/// A message between two ranks, as one of them sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Message {
    /// The number of the other rank in the communicator.
    pub(super) peer: u32,
    pub(super) sends: bool,
    pub(super) bytes: Option<u64>,
}

/// The activities of a device since the end of the communicator's collective before.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Before {
    /// The end of the collective before.
    pub(super) since_ns: i64,
    /// The work that is no collective.
    pub(super) work: WorkTotals,
    /// The time in which the device ran only collectives: of other communicators, or of this one on another stream.
    pub(super) communication_ns: i64,
    /// The causes for which the device ran nothing, each with its nanoseconds.
    pub(super) idle: Box<[(Cause, i64)]>,
    /// The time in which the device ran nothing while a label of the host said that it loaded data.
    pub(super) loading_ns: i64,
}

/// Totals of the work of a device that is no collective.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct WorkTotals {
    /// The time in which the device ran some of it.
    pub(super) busy_ns: i64,
    /// The time in which the device copied.
    pub(super) copying_ns: i64,
    /// The bytes of the copies whose size is known.
    pub(super) copied_bytes: u64,
    /// The number of kernels that started.
    pub(super) launches: u64,
    /// Their workgroups, as far as they are known.
    pub(super) workgroups: u64,
    /// The number of kernels whose workgroups are not known.
    pub(super) unsized_launches: u64,
}

impl WorkTotals {
    /// Returns the totals between two moments, from those up to each.
    pub(super) fn between(earlier: WorkTotals, later: WorkTotals) -> WorkTotals {
        WorkTotals {
            busy_ns: later.busy_ns - earlier.busy_ns,
            copying_ns: later.copying_ns - earlier.copying_ns,
            copied_bytes: later.copied_bytes.saturating_sub(earlier.copied_bytes),
            launches: later.launches - earlier.launches,
            workgroups: later.workgroups.saturating_sub(earlier.workgroups),
            unsized_launches: later.unsized_launches - earlier.unsized_launches,
        }
    }
}
