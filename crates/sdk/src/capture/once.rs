//! Allows one capture at a time, and one of those that the environment asks for (one-shot captures) for each process,
//! of the units of work that the environment chooses.

use super::environment::Units;
use super::{Destination, NotCaptured, Running};
use std::sync::{Mutex, PoisonError};

/// The state of a process's captures.
#[derive(Default)]
struct State {
    /// Whether a capture is running.
    running: bool,
    /// Whether a one-shot capture has succeeded.
    spent: bool,
    /// The number of units of work for which a one-shot capture was asked, so far.
    units: u64,
    /// The one-shot capture that goes on with the next unit.
    kept: Option<OpenWindow>,
}

impl State {
    /// Returns why a capture may not start now. A one-shot capture may go on.
    fn check(&self, one_shot: bool) -> Result<(), NotCaptured> {
        if one_shot && self.spent {
            Err(NotCaptured::Spent)
        } else if self.running && !(one_shot && self.kept.is_some()) {
            Err(NotCaptured::AlreadyCapturing)
        } else {
            Ok(())
        }
    }
}

/// A window that has started and not ended.
pub(super) struct OpenWindow {
    pub running: Box<dyn Running>,
    /// The absolute path.
    pub destination: Destination,
    /// The right to capture, held until the end.
    pub turn: Turn,
    /// The number of units of work until the end, with the present one.
    pub units_left: u64,
}

/// The guard that lets a process's captures start one at a time.
#[derive(Default)]
pub(super) struct Once(Mutex<State>);

impl std::fmt::Debug for Once {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Once").finish_non_exhaustive()
    }
}

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
    let mut state = PROCESS.state();
    (state.spent, state.units) = (false, 0);
}

impl Once {
    pub const fn new() -> Once {
        Once(Mutex::new(State {
            running: false,
            spent: false,
            units: 0,
            kept: None,
        }))
    }

    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the error that [`Self::take`] would return now.
    pub fn check(&self, one_shot: bool) -> Result<(), NotCaptured> {
        self.state().check(one_shot)
    }

    /// Counts a unit of work, and returns an error if it is not to be captured. A unit inside of a captured one does
    /// not count.
    pub fn count_unit(&self, units: &Units) -> Result<(), NotCaptured> {
        let mut state = self.state();
        state.check(true)?;
        state.units = state.units.saturating_add(1);
        if state.units > units.skip || state.kept.is_some() {
            return Ok(());
        }
        Err(NotCaptured::NotThisUnit {
            unit: state.units,
            schedule: format!("unit {} is", units.skip.saturating_add(1)),
        })
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

    /// Keeps a window open for the next unit.
    pub fn keep(&self, window: OpenWindow) {
        self.state().kept = Some(window);
    }

    /// Returns true if a one-shot capture goes on with the next unit.
    pub fn goes_on(&self) -> bool {
        self.state().kept.is_some()
    }

    /// Takes the window that was kept open.
    pub fn take_kept(&self) -> Option<OpenWindow> {
        self.state().kept.take()
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
