//! Semaphores, binary and timeline.

use crate::handles::Handles;
use ash::vk;
use ash::vk::Handle;
use gapscope_spool::event::SemaphoreValue;
use gapscope_spool::ids;

#[derive(Clone, Copy)]
pub struct Semaphore {
    pub id: ids::Semaphore,
    pub timeline: bool,
}

/// The semaphores of a device.
#[derive(Default)]
pub struct Semaphores(Handles<Semaphore>);

impl Semaphores {
    pub fn add(&self, handle: vk::Semaphore, semaphore: Semaphore) {
        self.0.insert(handle.as_raw(), semaphore);
    }

    pub fn remove(&self, handle: vk::Semaphore) {
        self.0.remove(handle.as_raw());
    }

    /// A semaphore with a value that a call gives for it.
    pub fn with_value(&self, handle: vk::Semaphore, value: u64) -> Option<SemaphoreValue> {
        let known = self.0.get(handle.as_raw())?;
        Some(SemaphoreValue {
            semaphore: known.id,
            // Programs may give a value for a binary semaphore, which means nothing.
            value: if known.timeline { value } else { 0 },
        })
    }
}
