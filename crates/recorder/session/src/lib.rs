//! Records a program: launches it with the hooks, drains their spool into a trace, finishes the trace; and recovers
//! a trace whose session was killed.
//!
//! [`Recording::start`] gives a [`Session`], whose [`Session::progress`] may be shown until [`Session::wait`] says how
//! it ended. [`recover`] completes what a killed session left. Nothing here prints.
#![deny(unsafe_code)]
#![warn(missing_docs)]

pub mod assembler;
mod bypass;
mod captures;
pub mod clock;
mod code;
mod conditions;
pub mod counters;
mod drain;
mod error;
mod host;
mod inherited;
mod launch;
mod layered;
mod layers;
pub mod machine;
mod nested;
mod procfs;
mod progress;
mod recover;
mod session;
mod signals;
mod vulkan_drivers;

pub use assembler::Assembler;
pub use captures::WrittenCapture;
pub use error::Error;
pub use gapscope_trace::Names;
pub use launch::{LAYER_NAME, Recording, Start};
pub use layered::Layered;
pub use layers::Layers;
pub use progress::Progress;
pub use recover::{Recovered, recover};
pub use session::{Outcome, Recorded, Session};
pub use signals::survive_file_size_limit;
