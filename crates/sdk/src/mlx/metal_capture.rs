//! `MetalCapture` of `mlx_native::metal_capture`, made of gapscope's [`Capture`].

use crate::capture::{Capture, CaptureDevice, Captured, NotCaptured, reset_once};
use crate::text::shown_path;
use std::io::Write;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Mutex, PoisonError};

/// [`Capture`] with the signatures of mlx-native's `MetalCapture`. As there, a line on standard error says when the
/// capture starts and stops, and why there is none: each reason once, and nothing where no capture was asked for.
/// [`Self::outcome`] and [`last_outcome`](crate::capture::last_outcome) return the same as values.
///
/// ```
/// use gapscope_sdk::capture::CaptureDevice;
/// use gapscope_sdk::mlx::metal_capture::MetalCapture;
///
/// fn forward_pass(device: &impl CaptureDevice) {
///     let mut capture = MetalCapture::from_env(device);
///     if let Some(ref mut capture) = capture {
///         capture.begin(); // before the command buffers of the pass are made
///     }
///     // … encode, submit and wait …
///     if let Some(ref mut capture) = capture {
///         capture.end();
///     }
/// }
/// ```
#[derive(Debug)]
pub struct MetalCapture {
    capture: Capture,
    /// How the capture ended, or why it did not start; `None` before.
    outcome: Option<Result<Captured, NotCaptured>>,
}

impl MetalCapture {
    /// Prepares the capture that the environment asks for: `GAPSCOPE_CAPTURE` or `MLX_METAL_CAPTURE` holds its path.
    /// A process makes one; unlike in mlx-native, a failed one does not count.
    ///
    /// ```
    /// # use gapscope_sdk::{capture::CaptureDevice, mlx::metal_capture::MetalCapture};
    /// # fn example(device: &impl CaptureDevice) {
    /// let capture = MetalCapture::from_env(device);
    /// # }
    /// ```
    pub fn from_env(device: &(impl CaptureDevice + ?Sized)) -> Option<MetalCapture> {
        match Capture::from_env(device) {
            Ok(capture) => Some(MetalCapture {
                capture,
                outcome: None,
            }),
            Err(why) => {
                say_once(&why);
                None
            }
        }
    }

    /// Starts the capture as [`Capture::begin`] does; [`Self::from_env`] does not start it.
    ///
    /// ```
    /// # fn example(mut capture: gapscope_sdk::mlx::metal_capture::MetalCapture) {
    /// capture.begin();
    /// # }
    /// ```
    pub fn begin(&mut self) {
        if self.capture.is_running() {
            return;
        }
        match self.capture.begin() {
            Ok(()) => say(&format!("starting capture to {}", self.path())),
            Err(why) => {
                say_once(&why);
                self.outcome = Some(Err(why));
            }
        }
    }

    /// Ends the capture as [`Capture::end`] does, and as dropping it does.
    ///
    /// ```
    /// # fn example(mut capture: gapscope_sdk::mlx::metal_capture::MetalCapture) {
    /// capture.end();
    /// # }
    /// ```
    pub fn end(&mut self) {
        let was_running = self.capture.is_running();
        match self.capture.end() {
            // Without `begin` there is nothing to end, and the outcome of `begin` stays.
            Err(NotCaptured::NotBegun) => return,
            outcome => self.outcome = Some(outcome),
        }
        match &self.outcome {
            Some(Ok(captured)) if was_running => {
                let path = captured.path().map(shown_path);
                say(&format!("stopped (trace at {})", path.unwrap_or_default()));
            }
            Some(Err(why)) => say_once(why),
            _ => {}
        }
    }

    /// Returns the path for messages.
    fn path(&self) -> String {
        let path = self.capture.destination().path();
        path.map(shown_path).unwrap_or_default()
    }

    /// Returns the outcome of the capture: `None` before it has ended.
    ///
    /// ```
    /// # fn example(capture: &gapscope_sdk::mlx::metal_capture::MetalCapture) {
    /// if let Some(Err(why)) = capture.outcome() {
    ///     eprintln!("not captured: {why}");
    /// }
    /// # }
    /// ```
    pub fn outcome(&self) -> Option<&Result<Captured, NotCaptured>> {
        self.outcome.as_ref()
    }
}

impl Drop for MetalCapture {
    /// Ends an open window as [`Self::end`] does.
    fn drop(&mut self) {
        if self.capture.is_running() {
            // A second panic while unwinding would abort the program.
            let _ = catch_unwind(AssertUnwindSafe(|| self.end()));
        }
    }
}

/// The most reasons that are said.
const MAX_REASONS: usize = 64;

/// The reasons that were said.
static REASONS: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// Says on standard error why there is no capture, unless nothing else was to be expected or it was said before.
fn say_once(why: &NotCaptured) {
    if why.is_expected() {
        return;
    }
    let sentence = why.to_string();
    let mut reasons = REASONS.lock().unwrap_or_else(PoisonError::into_inner);
    if reasons.len() < MAX_REASONS && !reasons.contains(&sentence) {
        say(&format!("no capture: {sentence}"));
        reasons.push(sentence);
    }
}

/// Writes a line to standard error. A program without one is not disturbed.
fn say(sentence: &str) {
    let _ = writeln!(std::io::stderr(), "[gapscope] MetalCapture: {sentence}");
}

/// Allows the process to make its one capture again, for tests, as in mlx-native.
#[doc(hidden)]
pub fn reset_capture_consumed_for_test() {
    reset_once();
}
