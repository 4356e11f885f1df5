//! The capture functions of MLX's `metal`; [`crate::capture`] re-exports them.

use crate::capture::{Captured, NotCaptured, manual, start_capture_on};
use std::path::Path;

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
    start_capture_on(&manual::default_device()?, path)
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
    manual::stop()
}
