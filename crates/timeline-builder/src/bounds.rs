//! How much a builder, which joins calls with their work, remembers: bounded while a program runs, unbounded where
//! all is at hand. A bound is the greatest number of items; beyond it the oldest is given up.

use serde::{Deserialize, Serialize};

/// How much a builder remembers for what has not come yet.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct Bounds {
    /// Calls and pieces of work that wait for their other half.
    pub waiting: usize,
    /// Launches whose work has come, for more of it, such as the other parts of a batch of copies.
    pub launched: usize,
    /// Launches of graphs whose work has come, for more of it.
    pub graphs: usize,
    /// Pieces of work of one correlation (number of a call and its work) whose call has not come.
    pub pieces: usize,
    /// Waits of streams whose rows may still change.
    pub open_waits: usize,
    /// Submissions that a queue remembers for waits. Calls may come seconds before the waits and events between them, which another
    /// log has, and a thread launches up to 100,000 times a second.
    pub submissions: usize,
    /// Occurrences of events.
    pub occurrences: usize,
    /// Waits of a queue that no submission has followed.
    pub unfollowed_waits: usize,
    /// Waits of a queue, for those of other queues.
    pub placed_waits: usize,
    /// Waits of the host for a queue whose rows may still change.
    pub host_waits: usize,
}

impl Bounds {
    /// The bounds while a program runs, however long that is.
    pub const LIVE: Bounds = Bounds {
        waiting: 1 << 18,
        launched: 1 << 12,
        graphs: 1 << 14,
        pieces: 1 << 16,
        open_waits: 1 << 14,
        submissions: 1 << 18,
        occurrences: 1 << 16,
        unfollowed_waits: 1 << 10,
        placed_waits: 1 << 12,
        host_waits: 1 << 14,
    };

    /// No bounds, for what is all at hand. Only `launched` and `host_waits` have one: work comes in order of time there, so that the
    /// pieces of a launch are close to each other, unless a graph was launched, and what a call waits for comes soon.
    pub const NONE: Bounds = Bounds {
        waiting: usize::MAX,
        launched: 1 << 16,
        graphs: usize::MAX,
        pieces: usize::MAX,
        open_waits: usize::MAX,
        submissions: usize::MAX,
        occurrences: usize::MAX,
        unfollowed_waits: usize::MAX,
        placed_waits: usize::MAX,
        host_waits: 1 << 10,
    };
}

impl Default for Bounds {
    fn default() -> Bounds {
        Bounds::LIVE
    }
}
