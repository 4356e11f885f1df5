//! Captures that the program starts and stops itself, at most one at a time.

use super::{Capture, CaptureDevice, Captured, Destination, NotCaptured};
use std::path::Path;
use std::sync::{Mutex, PoisonError};

/// The capture that runs.
static CURRENT: Mutex<Option<Capture>> = Mutex::new(None);

/// Starts a capture of the GPU work of this process, as MLX's `metal.start_capture` does. With `""` as path, Metal
/// captures to Xcode; elsewhere the window is marked in the running recording.
///
/// On Linux it captures whatever the hooks in this process see, on Apple's systems the default device.
/// [`start_capture_on`] takes a device, and also waits for what the program has submitted to it before.
///
/// A capture that the program does not stop ends with it: on Linux it is written then; Metal's document is lost.
///
/// # Errors
/// The reason why it did not start.
///
/// ```
/// use gapscope_sdk::capture::{start_capture, stop_capture};
///
/// if let Err(why) = start_capture("step.gapscope") {
///     eprintln!("{why}"); // not under `gapscope record`
/// }
/// // … work …
/// let _ = stop_capture();
/// ```
pub fn start_capture(path: impl AsRef<Path>) -> Result<(), NotCaptured> {
    start_capture_on(&default_device()?, path)
}

/// Starts a capture of one device as [`start_capture`] does.
///
/// # Errors
/// The reason why it did not start.
///
/// ```
/// use gapscope_sdk::capture::{CaptureDevice, NotCaptured, start_capture_on, stop_capture};
///
/// fn ten_steps(device: &impl CaptureDevice) -> Result<(), NotCaptured> {
///     start_capture_on(device, "steps.gapscope")?;
///     for _ in 0..10 { /* encode and submit */ }
///     stop_capture().map(drop)
/// }
/// ```
pub fn start_capture_on(
    device: &(impl CaptureDevice + ?Sized),
    path: impl AsRef<Path>,
) -> Result<(), NotCaptured> {
    let mut current = CURRENT.lock().unwrap_or_else(PoisonError::into_inner);
    if current.is_some() {
        return Err(NotCaptured::AlreadyCapturing);
    }
    let mut capture = Capture::to(device, Destination::from_path(path))?;
    capture.begin()?;
    *current = Some(capture);
    Ok(())
}

/// Stops the capture that [`start_capture`] started, from any thread, and waits until it is written.
///
/// # Errors
/// [`NotCaptured::NotBegun`], or why the capture cannot be relied on.
///
/// ```
/// use gapscope_sdk::capture::{NotCaptured, stop_capture};
///
/// assert_eq!(stop_capture(), Err(NotCaptured::NotBegun));
/// ```
pub fn stop_capture() -> Result<Captured, NotCaptured> {
    let capture = CURRENT
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .take();
    capture.ok_or(NotCaptured::NotBegun)?.end()
}

// The device that `start_capture` captures, by system: all that the hooks see, the default device, or none.
#[cfg(target_os = "linux")]
fn default_device() -> Result<super::Hooked, NotCaptured> {
    Ok(super::Hooked::any())
}

#[cfg(target_vendor = "apple")]
fn default_device() -> Result<impl CaptureDevice, NotCaptured> {
    let capture = super::metal::default_capture().ok_or(NotCaptured::Unsupported {
        backend: "Metal",
        reason: "the system has no default device".to_owned(),
    })?;
    Ok(capture.device())
}

#[cfg(not(any(target_os = "linux", target_vendor = "apple")))]
fn default_device() -> Result<std::sync::Arc<dyn super::Backend>, NotCaptured> {
    Err(NotCaptured::Unsupported {
        backend: "gapscope",
        reason: "no device is known here: give one to start_capture_on".to_owned(),
    })
}
