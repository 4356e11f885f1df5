//! Records Metal programs on macOS.
//!
//! [`Recording::run`] has Apple's `xctrace` record a Metal System Trace of a command or of a running process, exports
//! its tables and imports them into a gapscope trace: no sudo, no Instruments window, nothing left behind but the
//! trace. [`GpuCapture`] drives `gpucapture`, which captures a window of a process's GPU work on systems that have it.
//!
//! Everything here only runs Apple's programs and reads their files, so it compiles on every Unix, and is tested on
//! Linux with stand-ins for those programs. It has not run with Apple's own there.
#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod error;
mod export;
mod gpucapture;
mod interrupt;
mod program;
mod recording;
mod target_output;
mod tool;

pub use error::Error;
pub use gpucapture::{Boundary, GPUCAPTURE_VARIABLE, GpuCapture, GpuWindow, LaunchOutcome, Length};
pub use recording::{Outcome, Recorded, Recording, Stage, Target, import_bundle};
pub use tool::{XCTRACE_VARIABLE, Xctrace};
