//! `MetalCapture` of `mlx_native::metal_capture`.

use crate::capture::{Capture, CaptureDevice, Captured, NotCaptured, reset_once};

/// [`Capture`] with the signatures of mlx-native's `MetalCapture`. Nothing is printed: [`Capture::from_env`] says why there is
/// none, and [`Self::outcome`] what came of one.
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
    outcome: Option<Result<Captured, NotCaptured>>,
}

impl MetalCapture {
    /// The capture that the environment asks for: `GAPSCOPE_CAPTURE` or `MLX_METAL_CAPTURE` holds its path. One is made in a
    /// process; unlike mlx-native's, one that failed does not count.
    ///
    /// ```
    /// # use gapscope_sdk::{capture::CaptureDevice, mlx::metal_capture::MetalCapture};
    /// # fn example(device: &impl CaptureDevice) {
    /// let capture = MetalCapture::from_env(device);
    /// # }
    /// ```
    pub fn from_env(device: &(impl CaptureDevice + ?Sized)) -> Option<MetalCapture> {
        let capture = Capture::from_env(device).ok()?;
        Some(MetalCapture {
            capture,
            outcome: None,
        })
    }

    /// As [`Capture::begin`]. Here, not in [`Self::from_env`], the capture starts.
    ///
    /// ```
    /// # fn example(mut capture: gapscope_sdk::mlx::metal_capture::MetalCapture) {
    /// capture.begin();
    /// # }
    /// ```
    pub fn begin(&mut self) {
        if let Err(why) = self.capture.begin() {
            self.outcome = Some(Err(why));
        }
    }

    /// As [`Capture::end`]; dropping it does the same.
    ///
    /// ```
    /// # fn example(mut capture: gapscope_sdk::mlx::metal_capture::MetalCapture) {
    /// capture.end();
    /// # }
    /// ```
    pub fn end(&mut self) {
        match self.capture.end() {
            // Without `begin` there is nothing to end, and what `begin` said stays.
            Err(NotCaptured::NotBegun) => {}
            outcome => self.outcome = Some(outcome),
        }
    }

    /// What came of it: `None` before it has ended.
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

/// The process may make its one capture again: for tests, as in mlx-native.
#[doc(hidden)]
pub fn reset_capture_consumed_for_test() {
    reset_once();
}
