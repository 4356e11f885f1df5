//! Keeps the semaphores of a device: binary ones, and timeline semaphores, whose state is a growing number.

use crate::handles::Handles;
use ash::vk;
use ash::vk::Handle;
use gapscope_spool::event::SemaphoreValue;
use gapscope_spool::ids;

/// A live semaphore.
#[derive(Clone, Copy)]
pub struct Semaphore {
    pub id: ids::Semaphore,
    pub timeline: bool,
    /// The greatest value that a submission gives the semaphore.
    pub last_value: u64,
}

/// The semaphores of a device.
#[derive(Default)]
pub struct Semaphores(Handles<Semaphore>);

impl Semaphores {
    pub fn add(&self, handle: vk::Semaphore, semaphore: Semaphore) {
        self.0.insert(handle.as_raw(), semaphore);
    }

    pub fn remove(&self, handle: vk::Semaphore) -> Option<Semaphore> {
        self.0.remove(handle.as_raw())
    }

    /// Notes the value that a submission gives a timeline semaphore.
    pub fn will_reach(&self, handle: vk::Semaphore, value: u64) {
        self.0.with(handle.as_raw(), |semaphore| {
            semaphore.last_value = semaphore.last_value.max(value);
        });
    }

    /// Returns whether all that was submitted has signalled a semaphore that now has this value.
    pub fn is_done(&self, handle: vk::Semaphore, value: u64) -> bool {
        let known = self.0.get(handle.as_raw());
        known.is_none_or(|semaphore| value >= semaphore.last_value)
    }

    /// Returns the id of a semaphore with a value that a call gives for it; `None` for an unknown semaphore.
    pub fn with_value(&self, handle: vk::Semaphore, value: u64) -> Option<SemaphoreValue> {
        let known = self.0.get(handle.as_raw())?;
        Some(SemaphoreValue {
            semaphore: known.id,
            // A program may give a value for a binary semaphore, which means nothing.
            value: if known.timeline { value } else { 0 },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_counter_is_done_when_it_has_reached_the_last_value_submitted() {
        let semaphores = Semaphores::default();
        let handle = vk::Semaphore::from_raw(7);
        semaphores.add(
            handle,
            Semaphore {
                id: ids::Semaphore(1),
                timeline: true,
                last_value: 0,
            },
        );
        assert!(semaphores.is_done(handle, 0), "nothing was submitted");
        semaphores.will_reach(handle, 5);
        semaphores.will_reach(handle, 4);
        assert!(!semaphores.is_done(handle, 4) && semaphores.is_done(handle, 5));
        assert!(
            semaphores.is_done(vk::Semaphore::from_raw(8), 0),
            "not known"
        );
    }
}
