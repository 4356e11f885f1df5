//! Keeps the id and the family of each queue that the program has asked for.

use crate::handles::HandleMap;
use ash::vk;
use ash::vk::Handle;
use gapscope_spool::ids;
use std::sync::{PoisonError, RwLock};

/// A queue that the program has asked for; `family` is the index of its queue family.
#[derive(Clone, Copy)]
pub struct Queue {
    pub id: ids::Queue,
    pub family: u32,
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
