//! Keeps the semaphores of a device: binary ones, and timeline semaphores, whose state is a growing number.

use super::awaited::Awaited;
use crate::handles::Handles;
use crate::submitted::Submitted;
use ash::vk;
use ash::vk::Handle;
use gapscope_spool::event::SemaphoreValue;
use gapscope_spool::ids;
use std::collections::VecDeque;

/// The number of signals that are kept for each timeline semaphore. A wait for an older signal was met long ago.
const MAX_SIGNALS: usize = 256;

/// A live semaphore.
pub struct Semaphore {
    id: ids::Semaphore,
    /// The value with which a timeline semaphore started; `None` for a binary semaphore.
    initial_value: Option<u64>,
    /// The greatest value that a submission gives the semaphore; before the first, the one with which it started, 0
    /// for a binary semaphore.
    last_value: u64,
    /// The last signals of a timeline semaphore: values, and the submissions that set them; `None` for the host.
    signals: VecDeque<(u64, Option<Submitted>)>,
    /// The greatest value whose signal is not kept any more.
    forgotten_value: u64,
}

impl Semaphore {
    pub fn new(id: ids::Semaphore, initial_value: Option<u64>) -> Semaphore {
        let initial = initial_value.unwrap_or(0);
        Semaphore {
            id,
            initial_value,
            last_value: initial,
            signals: VecDeque::new(),
            forgotten_value: initial,
        }
    }

    /// Keeps a signal of a timeline semaphore.
    fn add_signal(&mut self, value: u64, by: Option<Submitted>) {
        if self.initial_value.is_none() {
            return;
        }
        if self.signals.len() == MAX_SIGNALS
            && let Some((oldest, _)) = self.signals.pop_front()
        {
            self.forgotten_value = self.forgotten_value.max(oldest);
        }
        self.signals.push_back((value, by));
    }

    /// Returns what a wait for a value is for.
    fn awaited(&self, value: u64) -> Awaited {
        if self.initial_value.is_some_and(|initial| value <= initial) {
            return Awaited::Nothing;
        }
        let reaching = self.signals.iter().filter(|(signal, _)| *signal >= value);
        let first = reaching.min_by_key(|(signal, _)| *signal);
        match first.and_then(|(_, by)| *by) {
            Some(submitted) if value > self.forgotten_value => Awaited::Submission(submitted),
            _ => Awaited::Unknown,
        }
    }
}

/// The semaphores of a device.
#[derive(Default)]
pub struct Semaphores(Handles<Semaphore>);

impl Semaphores {
    pub fn add(&self, handle: vk::Semaphore, semaphore: Semaphore) {
        self.0.insert(handle.as_raw(), semaphore);
    }

    /// Forgets a semaphore, and returns its id.
    pub fn remove(&self, handle: vk::Semaphore) -> Option<ids::Semaphore> {
        Some(self.0.remove(handle.as_raw())?.id)
    }

    /// Notes the value that a submission gives a timeline semaphore.
    pub fn will_reach(&self, handle: vk::Semaphore, value: u64, by: Submitted) {
        self.0.with(handle.as_raw(), |semaphore| {
            semaphore.last_value = semaphore.last_value.max(value);
            semaphore.add_signal(value, Some(by));
        });
    }

    /// Notes the value that the host, or a submission that is not recorded, gives a timeline semaphore.
    pub fn will_reach_otherwise(&self, handle: vk::Semaphore, value: u64) {
        self.0.with(handle.as_raw(), |semaphore| {
            semaphore.add_signal(value, None)
        });
    }

    /// Returns whether all that was submitted has signalled a semaphore that now has this value; true for an unknown
    /// semaphore.
    pub fn is_done(&self, handle: vk::Semaphore, value: u64) -> bool {
        let is_done = (self.0).with(handle.as_raw(), |known| value >= known.last_value);
        is_done.unwrap_or(true)
    }

    /// Returns what a wait for a value is for.
    pub fn awaited(&self, handle: vk::Semaphore, value: u64) -> Awaited {
        let awaited = self.0.with(handle.as_raw(), |known| known.awaited(value));
        awaited.unwrap_or(Awaited::Unknown)
    }

    /// Returns the id of a semaphore with a value that a call gives for it; `None` for an unknown semaphore.
    pub fn with_value(&self, handle: vk::Semaphore, value: u64) -> Option<SemaphoreValue> {
        self.0.with(handle.as_raw(), |known| SemaphoreValue {
            semaphore: known.id,
            // A program may give a value for a binary semaphore, which means nothing.
            value: known.initial_value.map_or(0, |_| value),
        })
    }

    /// Returns the id of a semaphore with the value that a submission waits for; `None` for an unknown semaphore, and
    /// for a value that a timeline semaphore had from its start, which no signal brings.
    pub fn waited(&self, handle: vk::Semaphore, value: u64) -> Option<SemaphoreValue> {
        let initial = (self.0).with(handle.as_raw(), |known| known.initial_value)?;
        match initial {
            Some(initial) if value <= initial => None,
            _ => self.with_value(handle, value),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn timeline(initial_value: u64) -> Semaphore {
        Semaphore::new(ids::Semaphore(1), Some(initial_value))
    }

    fn submitted(submission: u64) -> Submitted {
        Submitted {
            submission: ids::Submission(submission),
            queue: ids::Queue(1),
        }
    }

    #[test]
    fn a_value_that_a_counter_starts_with_is_not_waited_for() {
        let semaphores = Semaphores::default();
        let [counter, binary] = [7, 8].map(vk::Semaphore::from_raw);
        semaphores.add(counter, timeline(5));
        semaphores.add(binary, Semaphore::new(ids::Semaphore(2), None));
        assert!(semaphores.waited(counter, 0).is_none() && semaphores.waited(counter, 5).is_none());
        assert_eq!(
            semaphores.waited(counter, 6).map(|wait| wait.value),
            Some(6)
        );
        assert_eq!(semaphores.waited(binary, 6).map(|wait| wait.value), Some(0));
        assert!(semaphores.is_done(counter, 5), "nothing was submitted");
        assert_eq!(semaphores.awaited(counter, 5), Awaited::Nothing);
        assert_eq!(semaphores.awaited(counter, 6), Awaited::Unknown);
    }

    #[test]
    fn a_counter_is_done_when_it_has_reached_the_last_value_submitted() {
        let semaphores = Semaphores::default();
        let handle = vk::Semaphore::from_raw(7);
        semaphores.add(handle, timeline(0));
        assert!(semaphores.is_done(handle, 0), "nothing was submitted");
        semaphores.will_reach(handle, 5, submitted(1));
        semaphores.will_reach(handle, 4, submitted(2));
        assert!(!semaphores.is_done(handle, 4) && semaphores.is_done(handle, 5));
        assert!(
            semaphores.is_done(vk::Semaphore::from_raw(8), 0),
            "not known"
        );
    }

    #[test]
    fn a_wait_for_a_value_is_for_the_signal_that_reaches_it_first() {
        let semaphores = Semaphores::default();
        let handle = vk::Semaphore::from_raw(7);
        semaphores.add(handle, timeline(0));
        // Another queue may be given the greater value first.
        for value in [10, 4, 20] {
            semaphores.will_reach(handle, value, submitted(value));
        }
        semaphores.will_reach_otherwise(handle, 30);
        for (value, by) in [(1, 4), (4, 4), (5, 10), (10, 10), (11, 20)] {
            let awaited = Awaited::Submission(submitted(by));
            assert_eq!(semaphores.awaited(handle, value), awaited, "{value}");
        }
        assert_eq!(semaphores.awaited(handle, 21), Awaited::Unknown, "the host");
        assert_eq!(semaphores.awaited(handle, 31), Awaited::Unknown, "nobody");
        for value in 100..100 + MAX_SIGNALS as u64 {
            semaphores.will_reach(handle, value, submitted(value));
        }
        assert_eq!(semaphores.awaited(handle, 4), Awaited::Unknown, "forgotten");
        let first = Awaited::Submission(submitted(100));
        assert_eq!(semaphores.awaited(handle, 40), first);
    }
}
