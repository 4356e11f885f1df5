//! A rank's part in a collective.

use gapscope_analysis::gaps::Cause;
use gapscope_timeline::intervals::Interval;
use gapscope_trace::ids::QueueId;
use serde::{Serialize, Serializer};

/// Ranks that take part in collectives together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Communicator {
    /// The only one of each process. NCCL before 2.25 does not give its number.
    Only,
    /// A communicator with a number of NCCL's.
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

/// Communicators are text in JSON, whose numbers are not that exact.
impl Serialize for Communicator {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// The part of one rank in a collective.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct CollectivePart {
    pub(super) interval: Interval,
    pub(super) kind: &'static str,
    /// The communicator. Absent where it is not known.
    pub(super) communicator: Option<Communicator>,
    /// The size of the message as NCCL counts it.
    pub(super) bytes: Option<u64>,
    /// Messages that the part sends and receives, where it does nothing else.
    pub(super) messages: Box<[Message]>,
    /// What the device did before.
    pub(super) before: Option<Before>,
    /// The queue that ran the kernel. A call has none.
    pub(super) queue: Option<QueueId>,
}

/// A message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Message {
    /// The number of the other rank in the communicator.
    pub(super) peer: u32,
    pub(super) sends: bool,
    pub(super) bytes: Option<u64>,
}

/// A stretch of a device's time.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Before {
    /// Time in which the device ran something that is no collective.
    pub(super) compute_ns: i64,
    /// Time in which the device ran collectives alone: of other communicators, or of this one on another stream.
    pub(super) communication_ns: i64,
    /// Time in which the device ran nothing, by cause.
    pub(super) idle: Box<[(Cause, i64)]>,
}
