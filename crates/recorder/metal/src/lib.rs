//! Records Metal programs on macOS: a command or a process goes in, a gapscope trace comes out.
//!
//! [`Recording::run`] has Apple's `xctrace` record a Metal System Trace, exports its tables and imports them: no sudo, no Instruments
//! window, and nothing left behind but the trace. [`GpuCapture`] drives `gpucapture`, which captures a window of a process's GPU work
//! on systems that have it.
//!
//! The crate only runs Apple's programs and reads their files, so that it compiles on every Unix. It is tested on Linux with stand-ins
//! for those programs, and has not run with Apple's own there.
#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod error;
mod export;
mod gpucapture;
mod interrupt;
mod program;
mod recording;
mod stage;
mod target_output;
mod tool;

pub use error::Error;
pub use gpucapture::{Boundary, GPUCAPTURE_VARIABLE, GpuCapture, GpuWindow, LaunchOutcome, Length};
pub use recording::{Outcome, Recorded, Recording, Target, import_bundle};
pub use stage::Stage;
pub use tool::{XCTRACE_VARIABLE, Xctrace};
