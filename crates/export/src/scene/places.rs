//! The slices by where they are drawn.

use crate::slice::Slice;
use gapscope_trace::Trace;
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;

/// What is drawn of one queue.
#[derive(Debug, Default)]
pub(super) struct QueueSlices {
    pub work: Vec<Slice>,
    pub command_buffers: Vec<Slice>,
    /// Labels in command buffers, by the device's time.
    pub labels: Vec<Slice>,
    /// Labels on the queue, by the host's time.
    pub host_labels: Vec<Slice>,
}

/// What is drawn of one thread.
#[derive(Debug, Default)]
pub(super) struct ThreadSlices {
    pub calls: Vec<Slice>,
    pub labels: Vec<Slice>,
}

/// All slices but gaps.
#[derive(Debug, Default)]
pub(super) struct Places {
    queue_places: FxHashMap<u32, usize>,
    last_queue: Option<(u32, usize)>,
    /// Each with its id.
    pub queues: Vec<(u32, QueueSlices)>,
    /// By id of the process and the system's id of the thread; `None` for labels whose thread is unknown.
    pub threads: BTreeMap<(u32, Option<u32>), ThreadSlices>,
}

impl Places {
    /// A place for each queue of the manifest.
    pub fn new(trace: &Trace) -> Places {
        let mut places = Places::default();
        for queue in &trace.manifest.queues {
            places.queue(queue.id);
        }
        places
    }

    /// The place of a queue in [`Self::queues`].
    pub fn queue(&mut self, id: u32) -> usize {
        if let Some((last, place)) = self.last_queue
            && last == id
        {
            return place;
        }
        let queues = &mut self.queues;
        let place = *self.queue_places.entry(id).or_insert_with(|| {
            queues.push((id, QueueSlices::default()));
            queues.len() - 1
        });
        self.last_queue = Some((id, place));
        place
    }
}
