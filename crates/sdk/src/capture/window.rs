//! A window of captured work: [`Capture`] checks, waits, starts, waits again, stops and checks what was written.

use super::environment::Units;
use super::once::{self, Once, OpenWindow};
use super::{Backend, CaptureDevice, Captured, Destination, NotCaptured, environment};
use crate::kernel_profile::host_now_ns;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, PoisonError};

/// A window of captured work, from [`Capture::begin`] to [`Capture::end`].
///
/// The program asks for it once for each unit of work (a step, a token, a frame); by default the first unit of the
/// process is captured and every later one gets [`NotCaptured::Spent`].
///
/// ```
/// use gapscope_sdk::{Capture, capture::CaptureDevice};
///
/// fn forward_pass(device: &impl CaptureDevice) {
///     // `Err` says why nothing is captured; programs usually do not care.
///     let mut capture = Capture::from_env(device).ok();
///     if let Some(capture) = &mut capture {
///         let _ = capture.begin(); // before the command buffers of the window are made
///     }
///     // … encode and submit …
///     if let Some(capture) = &mut capture {
///         match capture.end() {
///             Ok(captured) => eprintln!("captured {:?}", captured.path()),
///             Err(why) => eprintln!("not captured: {why}"),
///         }
///     }
/// }
/// ```
pub struct Capture {
    backend: Arc<dyn Backend>,
    destination: Destination,
    /// Whether the capture is one that the process makes only once.
    one_shot: bool,
    /// The guard that lets one capture run at a time.
    once: &'static Once,
    /// The number of units of work that the capture takes, of which this is the first.
    units: u64,
    state: State,
}

/// How far a capture is.
enum State {
    Ready,
    Running(OpenWindow),
    Ended(Result<Captured, NotCaptured>),
}

/// The outcome of the last capture that ended.
static LAST: Mutex<Option<Result<Captured, NotCaptured>>> = Mutex::new(None);

/// Notes a capture that did not start, unless that is as expected.
fn note_outcome(why: &NotCaptured) {
    if !why.is_expected() {
        set_last(Err(why.clone()));
    }
}

fn set_last(outcome: Result<Captured, NotCaptured>) {
    *LAST.lock().unwrap_or_else(PoisonError::into_inner) = Some(outcome);
}

/// Returns the outcome of the last capture of this process that ended or could not start, also if it ended because its
/// [`Capture`] was dropped. Without one, and while none is asked for, it is `None`.
///
/// ```
/// assert_eq!(gapscope_sdk::capture::last_outcome(), None);
/// ```
pub fn last_outcome() -> Option<Result<Captured, NotCaptured>> {
    LAST.lock().unwrap_or_else(PoisonError::into_inner).clone()
}

impl Capture {
    /// Prepares the capture that the environment asks for: `GAPSCOPE_CAPTURE` or `MLX_METAL_CAPTURE` holds its path.
    /// Nothing starts before [`Self::begin`]. A process makes one such capture, and only a successful one counts.
    ///
    /// Each call is a unit of work: `GAPSCOPE_CAPTURE_SKIP` lets units pass first, and `GAPSCOPE_CAPTURE_TAKE` asks for
    /// several in one capture; [`Self::end`] of those before the last returns [`NotCaptured::Continues`].
    ///
    /// # Errors
    /// The environment asks for no capture, it was made already, the path cannot be used, or the device cannot
    /// capture.
    ///
    /// ```
    /// use gapscope_sdk::{Capture, NotCaptured, capture::CaptureDevice};
    ///
    /// fn forward_pass(device: &impl CaptureDevice) -> Result<(), NotCaptured> {
    ///     let mut capture = Capture::from_env(device)?;
    ///     capture.begin()?;
    ///     // … encode and submit …
    ///     capture.end().map(drop)
    /// }
    /// ```
    pub fn from_env(device: &(impl CaptureDevice + ?Sized)) -> Result<Capture, NotCaptured> {
        let asked = environment::requested().and_then(|to| Ok((to, environment::units()?)));
        let once = &once::PROCESS;
        let prepared =
            asked.and_then(|(to, units)| Capture::for_unit(device.backend(), to, &units, once));
        prepared.inspect_err(note_outcome)
    }

    /// Prepares a capture to `destination`, independently of the environment and as often as the program wants.
    ///
    /// # Errors
    /// As [`Self::from_env`].
    ///
    /// ```
    /// # use gapscope_sdk::{Capture, NotCaptured, capture::{CaptureDevice, Destination}};
    /// # fn example(device: &impl CaptureDevice) -> Result<(), NotCaptured> {
    /// let mut capture = Capture::to(device, Destination::from_path("step 3.gapscope"))?;
    /// capture.begin()?;
    /// // … encode and submit …
    /// println!("{:?}", capture.end()?.path());
    /// # Ok(()) }
    /// ```
    pub fn to(
        device: &(impl CaptureDevice + ?Sized),
        destination: Destination,
    ) -> Result<Capture, NotCaptured> {
        let prepared = Capture::prepare(device.backend(), destination, false, &once::PROCESS);
        prepared.inspect_err(note_outcome)
    }

    /// Counts a unit of work, and prepares the one-shot capture if the unit is to be captured.
    pub(super) fn for_unit(
        backend: Arc<dyn Backend>,
        destination: Destination,
        units: &Units,
        once: &'static Once,
    ) -> Result<Capture, NotCaptured> {
        once.count_unit(units)?;
        let mut capture = Capture::prepare(backend, destination, true, once)?;
        capture.units = units.take;
        Ok(capture)
    }

    /// Checks that a capture could start now, and makes it.
    pub(super) fn prepare(
        backend: Arc<dyn Backend>,
        destination: Destination,
        one_shot: bool,
        once: &'static Once,
    ) -> Result<Capture, NotCaptured> {
        once.check(one_shot)?;
        if !(one_shot && once.goes_on()) {
            backend.ready(&destination)?;
            destination.check(&*backend)?;
        }
        Ok(Capture {
            backend,
            destination,
            one_shot,
            once,
            units: 1,
            state: State::Ready,
        })
    }

    /// Begins the window: waits for earlier work and starts the capture. While the window is open, this does nothing,
    /// so that nested units of work may each call it. Call it before the first command buffer of the window is
    /// created, because Metal captures no other.
    ///
    /// # Errors
    /// The reason why the capture did not start. It may be tried again.
    ///
    /// ```
    /// # fn example(mut capture: gapscope_sdk::Capture) -> Result<(), gapscope_sdk::NotCaptured> {
    /// capture.begin()?;
    /// capture.begin()?; // does nothing
    /// # Ok(()) }
    /// ```
    pub fn begin(&mut self) -> Result<(), NotCaptured> {
        match self.state {
            State::Running(_) => return Ok(()),
            State::Ended(_) => return Err(NotCaptured::Ended),
            State::Ready => {}
        }
        if self.one_shot
            && let Some(kept) = self.once.take_kept()
        {
            self.state = State::Running(kept);
            return Ok(());
        }
        let opened = self.open().inspect_err(note_outcome)?;
        self.state = State::Running(opened);
        Ok(())
    }

    /// Opens the window.
    fn open(&self) -> Result<OpenWindow, NotCaptured> {
        let turn = self.once.take(self.one_shot)?;
        // The destination may have changed since the capture was prepared.
        let destination = self.destination.check(&*self.backend)?;
        self.backend.ready(&destination)?;
        let since_ns = host_now_ns();
        self.backend.synchronise()?;
        let running = self.backend.start(&destination)?;
        self.backend.waited_since(since_ns);
        Ok(OpenWindow {
            running,
            destination,
            turn,
            units_left: self.units,
        })
    }

    /// Returns true between [`Self::begin`] and [`Self::end`].
    ///
    /// ```
    /// # fn example(capture: &gapscope_sdk::Capture) {
    /// assert!(!capture.is_running(), "it has not started");
    /// # }
    /// ```
    pub fn is_running(&self) -> bool {
        matches!(self.state, State::Running(_))
    }

    /// Returns the destination.
    ///
    /// ```
    /// # fn example(capture: &gapscope_sdk::Capture) {
    /// println!("to {:?}", capture.destination().path());
    /// # }
    /// ```
    pub fn destination(&self) -> &Destination {
        &self.destination
    }

    /// Ends the window: waits for its work, stops the capture, waits until it is written and checks it. Further calls
    /// return the same outcome.
    ///
    /// # Errors
    /// [`NotCaptured::NotBegun`], [`NotCaptured::Continues`] before the last of several units, or the reason why the
    /// capture cannot be relied on. It is stopped in any other case.
    ///
    /// ```
    /// # fn example(mut capture: gapscope_sdk::Capture) -> Result<(), gapscope_sdk::NotCaptured> {
    /// let captured = capture.end()?;
    /// println!("{:?} bytes", captured.bytes);
    /// # Ok(()) }
    /// ```
    pub fn end(&mut self) -> Result<Captured, NotCaptured> {
        if let State::Ended(outcome) = &self.state {
            return outcome.clone();
        }
        let State::Running(mut window) = std::mem::replace(&mut self.state, State::Ready) else {
            return Err(NotCaptured::NotBegun);
        };
        window.units_left = window.units_left.saturating_sub(1);
        if window.units_left > 0 {
            let units_left = window.units_left;
            self.once.keep(window);
            let outcome = Err(NotCaptured::Continues { units_left });
            self.state = State::Ended(outcome.clone());
            return outcome;
        }
        let OpenWindow {
            mut running,
            destination,
            turn,
            ..
        } = window;
        let since_ns = host_now_ns();
        let waited = self.backend.synchronise();
        // Nothing is recorded any more after the stop, if only windows are.
        self.backend.waited_since(since_ns);
        let since_ns = host_now_ns();
        // The capture is stopped even if waiting failed.
        let stopped = running.stop();
        let outcome = waited
            .and(stopped)
            .and_then(|()| running.finished())
            .and_then(|()| destination.written())
            .map(|bytes| Captured::new(destination, bytes));
        self.backend.waited_since(since_ns);
        if outcome.is_ok() {
            turn.succeeded();
        }
        set_last(outcome.clone());
        self.state = State::Ended(outcome.clone());
        outcome
    }
}

impl Drop for Capture {
    /// Ends an open window, also while a panic unwinds; [`last_outcome`] has the outcome.
    fn drop(&mut self) {
        if self.is_running() {
            // A second panic while unwinding would abort the program.
            let _ = catch_unwind(AssertUnwindSafe(|| self.end()));
        }
    }
}

impl std::fmt::Debug for Capture {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let state = match &self.state {
            State::Ready => "ready",
            State::Running(_) => "running",
            State::Ended(Ok(_)) => "captured",
            State::Ended(Err(_)) => "failed",
        };
        f.debug_struct("Capture")
            .field("backend", &self.backend.name())
            .field("destination", &self.destination)
            .field("state", &state)
            .finish()
    }
}
