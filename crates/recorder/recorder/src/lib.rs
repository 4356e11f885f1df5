//! Records a program: launches it with the hooks (gapscope's libraries inside the program), drains their spool (the
//! files that they write events into) into a trace (a folder of tables) and finishes the trace. Also completes a
//! trace whose session, the process that records, was killed.
//!
//! [`Recording::start`] returns a [`Session`]. [`Session::progress`] can be shown until [`Session::wait`] returns how
//! the recording ended. [`recover()`] completes the trace of a killed session. Nothing in this crate prints.
#![deny(unsafe_code)]
#![warn(missing_docs)]

pub mod assembler;
pub mod clock;
mod code;
mod conditions;
pub mod counters;
mod drain;
mod error;
mod inherited_settings;
mod keeper;
mod label_injection;
mod launch;
mod launch_with_layer;
pub mod machine;
#[cfg(test)]
mod made_up;
mod memory_limit;
mod nested_recordings;
mod outcome;
mod procfs;
mod progress;
mod recover;
mod session;
mod signals;
#[cfg(test)]
mod test_tools;
mod unhooked_processes;
mod vulkan_drivers;
mod vulkan_loader;
mod windows;

pub use assembler::Assembler;
pub use error::Error;
pub use gapscope_trace::Names;
pub use label_injection::LabelInjection;
pub use launch::{Recording, Start};
pub use launch_with_layer::LaunchWithLayer;
pub use outcome::{Outcome, Recorded};
pub use progress::Progress;
pub use recover::{Recovered, recover};
pub use session::{Session, UNUSED_OPTION};
pub use signals::{is_ignored, survive_file_size_limit};
pub use vulkan_loader::LAYER_NAME;
pub use windows::WrittenWindow;
