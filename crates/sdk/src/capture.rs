//! Captures a window of GPU work: the work between a start and a stop is written to a file, or goes to a tool that
//! watches.
//!
//! The kind of a capture depends on the device's [`Backend`]: on Metal a GPU trace document by Apple's capture
//! manager; on Vulkan and CUDA a gapscope trace of the window, recorded by the hook that `gapscope record` puts into
//! the process. The rules are the same everywhere:
//!
//! - A capture is started before the work of the window is encoded, and the device is waited for before the start and
//!   before the stop, so that the window holds its work: all of it and nothing else.
//! - The path is checked before ([`NotCaptured`] says what is wrong) and the written file after. Nothing is overwritten.
//! - A started capture is stopped, at the latest when the [`Capture`] is dropped.
//! - Nothing panics and nothing is printed. Every refusal is a value that says why, and what to do.
//!
//! [`Capture`] is one window; [`Trigger`] chooses which units of work (steps, tokens, frames) make it;
//! [`start_capture`] and [`stop_capture`] are for windows that no scope encloses.

mod backend;
mod destination;
mod environment;
#[cfg(target_os = "linux")]
mod hooked;
mod manual;
pub(crate) mod metal;
mod once;
mod outcome;
mod path_check;
mod trigger;
mod window;

pub use backend::{Backend, CaptureDevice, Running};
pub use destination::Destination;
pub use environment::{CAPTURE_VARIABLES, SKIP_VARIABLE, TAKE_VARIABLE, requested};
#[cfg(target_os = "linux")]
pub use hooked::Hooked;
pub use manual::{start_capture, start_capture_on, stop_capture};
pub(crate) use once::reset as reset_once;
pub use outcome::{Captured, NotCaptured, WaitError};
pub use trigger::{Arm, Trigger, Unit};
pub use window::{Capture, last_outcome};

#[cfg(test)]
mod tests;
