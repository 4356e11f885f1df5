//! A window of captured work: [`Capture`] checks, waits, starts, waits again, stops and checks what was written.

use super::once::{self, Once, Turn};
use super::{Backend, CaptureDevice, Captured, Destination, NotCaptured, Running, environment};
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
    state: State,
}

/// How far a capture is.
enum State {
    Ready,
    Running {
        running: Box<dyn Running>,
        /// The absolute path.
        destination: Destination,
        /// The right to capture, held until the end.
        turn: Turn,
    },
    Ended(Result<Captured, NotCaptured>),
}

/// The outcome of the last capture that ended.
static LAST: Mutex<Option<Result<Captured, NotCaptured>>> = Mutex::new(None);

/// Returns the outcome of the last capture of this process, also if it ended because its [`Capture`] was dropped.
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
        let destination = environment::requested()?;
        Capture::prepare(device.backend(), destination, true, &once::PROCESS)
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
        Capture::prepare(device.backend(), destination, false, &once::PROCESS)
    }

    /// Checks that a capture could start now, and makes it.
    pub(super) fn prepare(
        backend: Arc<dyn Backend>,
        destination: Destination,
        one_shot: bool,
        once: &'static Once,
    ) -> Result<Capture, NotCaptured> {
        once.check(one_shot)?;
        destination.check(&*backend)?;
        backend.ready(&destination)?;
        Ok(Capture {
            backend,
            destination,
            one_shot,
            once,
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
            State::Running { .. } => return Ok(()),
            State::Ended(_) => return Err(NotCaptured::Ended),
            State::Ready => {}
        }
        let turn = self.once.take(self.one_shot)?;
        // The destination may have changed since the capture was prepared.
        let destination = self.destination.check(&*self.backend)?;
        self.backend.ready(&destination)?;
        self.backend.synchronise()?;
        let running = self.backend.start(&destination)?;
        self.state = State::Running {
            running,
            destination,
            turn,
        };
        Ok(())
    }

    /// Returns true between [`Self::begin`] and [`Self::end`].
    ///
    /// ```
    /// # fn example(capture: &gapscope_sdk::Capture) {
    /// assert!(!capture.is_running(), "it has not started");
    /// # }
    /// ```
    pub fn is_running(&self) -> bool {
        matches!(self.state, State::Running { .. })
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
    /// [`NotCaptured::NotBegun`], or the reason why the capture cannot be relied on. It is stopped in any case.
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
        let State::Running {
            mut running,
            destination,
            turn,
        } = std::mem::replace(&mut self.state, State::Ready)
        else {
            return Err(NotCaptured::NotBegun);
        };
        let waited = self.backend.synchronise();
        // The capture is stopped even if waiting failed.
        let stopped = running.stop();
        let outcome = waited
            .and(stopped)
            .and_then(|()| running.finished())
            .and_then(|()| destination.written())
            .map(|bytes| Captured::new(destination, bytes));
        if outcome.is_ok() {
            turn.succeeded();
        }
        *LAST.lock().unwrap_or_else(PoisonError::into_inner) = Some(outcome.clone());
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
            State::Running { .. } => "running",
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
