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
    /// The value with which a timeline semaphore started; `None` for a binary semaphore.
    pub initial_value: Option<u64>,
    /// The greatest value that a submission gives the semaphore; before the first, the one with which it started, 0
    /// for a binary semaphore.
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

    /// Returns whether all that was submitted has signalled a semaphore that now has this value; true for an unknown
    /// semaphore.
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
            value: known.initial_value.map_or(0, |_| value),
        })
    }

    /// Returns the id of a semaphore with the value that a submission waits for; `None` for an unknown semaphore, and
    /// for a value that a timeline semaphore had from its start, which no signal brings.
    pub fn waited(&self, handle: vk::Semaphore, value: u64) -> Option<SemaphoreValue> {
        let semaphore = self.0.get(handle.as_raw())?;
        match semaphore.initial_value {
            Some(initial) if value <= initial => None,
            _ => self.with_value(handle, value),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn timeline(initial_value: u64) -> Semaphore {
        Semaphore {
            id: ids::Semaphore(1),
            initial_value: Some(initial_value),
            last_value: initial_value,
        }
    }

    #[test]
    fn a_value_that_a_counter_starts_with_is_not_waited_for() {
        let semaphores = Semaphores::default();
        let [counter, binary] = [7, 8].map(vk::Semaphore::from_raw);
        semaphores.add(counter, timeline(5));
        semaphores.add(
            binary,
            Semaphore {
                initial_value: None,
                ..timeline(0)
            },
        );
        assert!(semaphores.waited(counter, 0).is_none() && semaphores.waited(counter, 5).is_none());
        assert_eq!(
            semaphores.waited(counter, 6).map(|wait| wait.value),
            Some(6)
        );
        assert_eq!(semaphores.waited(binary, 6).map(|wait| wait.value), Some(0));
        assert!(semaphores.is_done(counter, 5), "nothing was submitted");
    }

    #[test]
    fn a_counter_is_done_when_it_has_reached_the_last_value_submitted() {
        let semaphores = Semaphores::default();
        let handle = vk::Semaphore::from_raw(7);
        semaphores.add(handle, timeline(0));
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
