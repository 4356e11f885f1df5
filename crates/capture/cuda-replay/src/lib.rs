//! Runs a capture of CUDA (a window of a program's launches, with what they need to run again) on a GPU, and compares the
//! memory that each launch leaves with the memory that it left in the program.
//!
//! A process that replays calls [`process::with_fixed_addresses`] first, and then [`replay`], [`dump()`] or [`find_odd_value`].
//!
//! # Internals
//! Memory has its recorded addresses, as pointers lie anywhere in it: `memory` reserves and maps them, after `spans` has
//! rounded them. `plan` orders the steps of the capture, `session` runs launches (`launch`) and compares the memory that
//! each reaches, piece by piece (`cells`): a piece has the hash that the capture gives, or is as it was before. Copies and
//! hashes go through `transfer`. `stash` keeps on the GPU what launches change, so that repeated runs begin alike. `export`
//! writes what two small programs without gapscope need to do the same. [`shrink`] leaves out the pages that launches do not need.
#![warn(missing_docs)]

mod bench;
mod cells;
mod clock;
mod driver;
mod dump;
mod error;
mod export;
mod known;
mod launch;
mod memory;
mod modules;
mod odd_values;
mod options;
mod other_code;
mod parameters;
mod plan;
pub mod process;
mod replay;
mod session;
pub mod shrink;
mod spans;
mod stash;
mod statistics;
mod transfer;
mod unsteady;

pub use bench::{Bench, Benched, Comparison, Other, OutputComparison, bench};
pub use dump::dump;
pub use error::Error;
pub use export::{Exported, export};
pub use odd_values::find_odd_value;
pub use options::Options;
pub use replay::{Replayed, replay};
pub use unsteady::Unsteady;
