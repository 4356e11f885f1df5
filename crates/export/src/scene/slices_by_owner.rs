//! Collects a scene's slices (drawn intervals) by the queue or thread of each, until `groups` makes tracks of them.

use super::work_lanes::PieceStarts;
use crate::packed::Lane;
use crate::slice::Slice;
use gapscope_trace::Trace;
use gapscope_trace::ids::{ProcessId, QueueId, ThreadId};
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;

/// The slices of one queue.
#[derive(Debug)]
pub(super) struct QueueSlices {
    pub id: QueueId,
    /// The earliest starts of the queue's dispatches, by piece (the rows that are read at a time).
    pub starts: PieceStarts,
    /// The transfers and the opaque work (GPU work that is timed as a whole) of the queue.
    pub others: Vec<Slice>,
    /// The lanes of all work of the queue, once they are made.
    pub work: Vec<Lane>,
    pub command_buffers: Vec<Slice>,
    /// Labels in command buffers, by the device's time.
    pub labels: Vec<Lane>,
    /// Labels on the queue, by the host's time.
    pub host_labels: Vec<Lane>,
}

impl QueueSlices {
    fn new(id: QueueId) -> QueueSlices {
        QueueSlices {
            id,
            starts: PieceStarts::default(),
            others: Vec::new(),
            work: Vec::new(),
            command_buffers: Vec::new(),
            labels: Vec::new(),
            host_labels: Vec::new(),
        }
    }
}

/// The slices of one thread.
#[derive(Debug, Default)]
pub(super) struct ThreadSlices {
    pub calls: Vec<Slice>,
    pub labels: Vec<Lane>,
}

/// A thread of a recorded process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct ThreadKey {
    pub process: ProcessId,
    /// Absent where the thread is not known.
    pub thread: Option<ThreadId>,
}

/// All slices except for gaps.
#[derive(Debug, Default)]
pub(super) struct SlicesByOwner {
    /// The index of each queue in [`Self::queues`].
    queue_places: FxHashMap<QueueId, usize>,
    /// The last queue that was found and its index, because neighbours mostly share one.
    last_queue: Option<(QueueId, usize)>,
    /// The queues in the order in which they were first named, those of the manifest first.
    pub queues: Vec<QueueSlices>,
    pub threads: BTreeMap<ThreadKey, ThreadSlices>,
}

impl SlicesByOwner {
    /// Creates an entry for each queue of the manifest.
    pub fn new(trace: &Trace) -> SlicesByOwner {
        let mut by_owner = SlicesByOwner::default();
        for queue in &trace.manifest.queues {
            by_owner.queue(queue.id);
        }
        by_owner
    }

    /// Returns the index of a queue in [`Self::queues`]; a queue that is not there yet is added.
    pub fn queue(&mut self, id: QueueId) -> usize {
        if let Some((last, place)) = self.last_queue
            && last == id
        {
            return place;
        }
        let queues = &mut self.queues;
        let place = *self.queue_places.entry(id).or_insert_with(|| {
            queues.push(QueueSlices::new(id));
            queues.len() - 1
        });
        self.last_queue = Some((id, place));
        place
    }
}
