//! Runs a capture (a window of a program's GPU work, with what it needs to run again) on a Vulkan device, and
//! compares the memory that it leaves with the memory that the program left.
//!
//! ```no_run
//! use gapscope_capture::Capture;
//! use gapscope_replay::{Options, replay};
//!
//! let (capture, _) = Capture::open("run.gapcapture".as_ref())?;
//! let result = replay(&capture, &Options::default())?;
//! println!("{} of {} outputs are equal", result.outputs_equal, result.outputs_compared);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Internals
//! A capture is checked against the device before anything runs ([`Error::Unfit`] lists all that is missing):
//! `shader` reads what a shader needs, and `registry` says which features and extensions serve that. Of the program's
//! memory only the ranges that the window touches exist, as `regions`, and everything keeps its place in them. Each
//! submission becomes one command buffer of ours (`recording`). It runs after the content that precedes it has been
//! written and before the outcomes that follow it are compared (`session`).
#![warn(missing_docs)]

mod adapter;
mod alone;
mod barriers;
mod bench;
mod check;
mod clock;
mod command_times;
mod comparison;
mod descriptors;
mod devices;
mod dump;
mod error;
mod features;
mod fewer_barriers;
mod gpu;
mod memory;
mod odd_values;
mod options;
mod outputs;
mod pipelines;
mod program;
mod recording;
mod regions;
mod registry;
mod replay;
mod result;
mod session;
mod shader;
mod single_submission;
mod trace;
mod values;

pub use adapter::DeviceChoice;
pub use bench::{Bench, BenchWork, Buffer, Kernel, MatrixType, Timed};
pub use command_times::{CommandTimes, command_times};
pub use comparison::{BufferPart, Difference, Writer};
pub use devices::{Device, devices};
pub use dump::{Dumped, dump};
pub use error::{Error, Unfit};
pub use fewer_barriers::{BarrierRuns, FewerBarriers, replay_without};
pub use odd_values::{OddValue, Search, find_odd_value};
pub use options::{Options, Schedule};
pub use outputs::outputs;
pub use program::Extent;
pub use replay::replay;
pub use result::{Replay, median, spread};
pub use values::{Differing, Element, npy_head};
