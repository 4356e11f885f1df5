//! Keeps the id and the family of each queue that the program has asked for.

use crate::handles::HandleMap;
use crate::submitted::Submitted;
use ash::vk;
use ash::vk::Handle;
use gapscope_spool::ids;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{PoisonError, RwLock};

/// A queue that the program has asked for; `family` is the index of its queue family.
#[derive(Clone, Copy)]
pub struct Queue {
    pub id: ids::Queue,
    pub family: u32,
    /// The last submission; 0 before the first, and after one that was not recorded.
    last: &'static AtomicU64,
}

impl Queue {
    pub fn new(id: ids::Queue, family: u32) -> Queue {
        let last = Box::leak(Box::default());
        Queue { id, family, last }
    }

    /// Returns the last submission, where it is known.
    pub fn last(self) -> Option<Submitted> {
        let submission = ids::Submission(self.last.load(Relaxed)).some()?;
        let queue = self.id;
        Some(Submitted { submission, queue })
    }

    /// Notes the last submission; none for one that is not recorded.
    pub fn submitted(self, submission: ids::Submission) {
        self.last.store(submission.0, Relaxed);
    }
}

/// The queues of a device.
#[derive(Default)]
pub struct Queues(RwLock<HandleMap<Queue>>);

impl Queues {
    pub fn get(&self, handle: vk::Queue) -> Option<Queue> {
        let queues = self.0.read().unwrap_or_else(PoisonError::into_inner);
        queues.get(&handle.as_raw()).copied()
    }

    /// Keeps a queue, made by `make`, unless it is known or `make` returns `None`.
    pub fn add(&self, handle: vk::Queue, make: impl FnOnce() -> Option<Queue>) {
        let mut queues = self.0.write().unwrap_or_else(PoisonError::into_inner);
        if !queues.contains_key(&handle.as_raw())
            && let Some(queue) = make()
        {
            queues.insert(handle.as_raw(), queue);
        }
    }
}
