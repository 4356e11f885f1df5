//! Allows one capture at a time, and one of those that the environment asks for (one-shot captures) for each process.

use super::NotCaptured;
use std::sync::{Mutex, PoisonError};

/// The state of a process's captures.
#[derive(Debug, Default)]
struct State {
    /// Whether a capture is running.
    running: bool,
    /// Whether a one-shot capture has succeeded.
    spent: bool,
}

impl State {
    /// Returns why a capture may not start now.
    fn check(&self, one_shot: bool) -> Result<(), NotCaptured> {
        if one_shot && self.spent {
            Err(NotCaptured::Spent)
        } else if self.running {
            Err(NotCaptured::AlreadyCapturing)
        } else {
            Ok(())
        }
    }
}

/// The guard that lets a process's captures start one at a time.
#[derive(Debug, Default)]
pub(super) struct Once(Mutex<State>);

/// The right to capture, which is given back when it is dropped.
#[derive(Debug)]
pub(super) struct Turn {
    once: &'static Once,
    one_shot: bool,
}

/// The guard of this process.
pub(super) static PROCESS: Once = Once::new();

/// Allows the process to make its one-shot capture again.
pub(crate) fn reset() {
    PROCESS.state().spent = false;
}

impl Once {
    pub const fn new() -> Once {
        Once(Mutex::new(State {
            running: false,
            spent: false,
        }))
    }

    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the error that [`Self::take`] would return now.
    pub fn check(&self, one_shot: bool) -> Result<(), NotCaptured> {
        self.state().check(one_shot)
    }

    /// Takes the right to capture; an error says why it cannot be had now.
    pub fn take(&'static self, one_shot: bool) -> Result<Turn, NotCaptured> {
        let mut state = self.state();
        state.check(one_shot)?;
        state.running = true;
        Ok(Turn {
            once: self,
            one_shot,
        })
    }
}

impl Turn {
    /// Records that the capture has succeeded; only then is a one-shot spent.
    pub fn succeeded(self) {
        if self.one_shot {
            self.once.state().spent = true;
        }
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        self.once.state().running = false;
    }
}
