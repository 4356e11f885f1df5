//! `MetalCapture` of `mlx_native::metal_capture`, made of gapscope's [`Capture`].

use crate::capture::{Capture, CaptureDevice, Captured, NotCaptured, reset_once};

/// [`Capture`] with the signatures of mlx-native's `MetalCapture`. Nothing is printed: [`Capture::from_env`] returns
/// why there is no capture, and [`Self::outcome`] how a capture ended.
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
        let capture = Capture::from_env(device).ok()?;
        Some(MetalCapture {
            capture,
            outcome: None,
        })
    }

    /// Starts the capture as [`Capture::begin`] does; [`Self::from_env`] does not start it.
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

    /// Ends the capture as [`Capture::end`] does, and as dropping it does.
    ///
    /// ```
    /// # fn example(mut capture: gapscope_sdk::mlx::metal_capture::MetalCapture) {
    /// capture.end();
    /// # }
    /// ```
    pub fn end(&mut self) {
        match self.capture.end() {
            // Without `begin` there is nothing to end, and the outcome of `begin` stays.
            Err(NotCaptured::NotBegun) => {}
            outcome => self.outcome = Some(outcome),
        }
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

/// Allows the process to make its one capture again, for tests, as in mlx-native.
#[doc(hidden)]
pub fn reset_capture_consumed_for_test() {
    reset_once();
}
