//! The part of a rank in a collective, as whoever matches collectives says it.

use gapscope_timeline::intervals::Interval;
use gapscope_trace::ids::QueueId;

/// A kernel of a rank that is its part in a collective.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RankPart {
    /// The queue that ran it.
    pub queue: QueueId,
    /// When it ran.
    pub interval: Interval,
    /// The collective's number, from 0, among those of all ranks.
    pub collective: u32,
    /// When the last rank arrived, by the ranks' clocks.
    pub last_ns: i64,
}
