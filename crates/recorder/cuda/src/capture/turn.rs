//! Lets one thread at a time hand work to the GPU while a window is open, so that memory does not change while it is
//! copied.

use std::sync::{Condvar, Mutex, PoisonError};
use std::thread::ThreadId;
use std::time::Duration;

/// The right to hand work to the GPU, from the start of a call to its end.
#[derive(Debug)]
pub struct Turn {
    holder: Mutex<Option<Holder>>,
    changed: Condvar,
}

#[derive(Debug)]
struct Holder {
    thread: ThreadId,
    /// The calls of the thread that have begun and not ended, one inside of the other.
    calls: u32,
}

impl Turn {
    pub const fn new() -> Turn {
        Turn {
            holder: Mutex::new(None),
            changed: Condvar::new(),
        }
    }

    /// Takes the turn for a call of this thread; returns false if another thread has not given it back in the time.
    pub fn take(&self, within: Duration) -> bool {
        let thread = std::thread::current().id();
        let others = |holder: &mut Option<Holder>| {
            holder
                .as_ref()
                .is_some_and(|holder| holder.thread != thread)
        };
        let locked = self.holder.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = self.changed.wait_timeout_while(locked, within, others);
        let (mut holder, _) = waited.unwrap_or_else(PoisonError::into_inner);
        match &mut *holder {
            Some(holder) if holder.thread == thread => holder.calls += 1,
            Some(_) => return false,
            none => *none = Some(Holder { thread, calls: 1 }),
        }
        true
    }

    /// Returns whether no thread has the turn.
    pub fn is_free(&self) -> bool {
        (self.holder.lock().unwrap_or_else(PoisonError::into_inner)).is_none()
    }

    /// Ends a call of this thread; nothing happens where it has not taken the turn.
    pub fn give_back(&self) {
        let mut holder = self.holder.lock().unwrap_or_else(PoisonError::into_inner);
        let thread = std::thread::current().id();
        if let Some(held) = holder.as_mut().filter(|held| held.thread == thread) {
            held.calls -= 1;
            if held.calls == 0 {
                *holder = None;
                drop(holder);
                self.changed.notify_all();
            }
        }
    }
}
