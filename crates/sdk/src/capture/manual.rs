//! Captures that the program starts and stops itself.

use super::{Capture, CaptureDevice, Captured, Destination, NotCaptured};
use std::path::Path;
use std::sync::{Mutex, PoisonError};

static CURRENT: Mutex<Option<Capture>> = Mutex::new(None);

/// Starts a capture of one device as [`start_capture`](super::start_capture) does.
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
    let mut capture = Capture::to(device, Destination::of(path))?;
    capture.begin()?;
    *current = Some(capture);
    Ok(())
}

/// Stops the capture and waits until it is written.
pub(crate) fn stop() -> Result<Captured, NotCaptured> {
    let capture = CURRENT
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .take();
    capture.ok_or(NotCaptured::NotBegun)?.end()
}

#[cfg(target_os = "linux")]
pub(crate) fn default_device() -> Result<super::Hooked, NotCaptured> {
    Ok(super::Hooked::any())
}

#[cfg(target_vendor = "apple")]
pub(crate) fn default_device() -> Result<impl CaptureDevice, NotCaptured> {
    let capture = crate::metal::default_capture().ok_or(NotCaptured::Unsupported {
        backend: "Metal",
        reason: "the system has no default device".to_owned(),
    })?;
    Ok(capture.device())
}

#[cfg(not(any(target_os = "linux", target_vendor = "apple")))]
pub(crate) fn default_device() -> Result<std::sync::Arc<dyn super::Backend>, NotCaptured> {
    Err(NotCaptured::Unsupported {
        backend: "gapscope",
        reason: "no device is known here: give one to start_capture_on".to_owned(),
    })
}
