//! The crash-safe event log between a recorded program and the recording session.
//!
//! Each thread of the program appends records to a chunk file that it alone writes and that is mapped into memory:
//! no lock, no system call and no allocation for an event. A record counts from the moment in which the chunk's
//! committed length is stored (release), so whatever was written before a SIGKILL can be read afterwards.
//!
//! ```text
//! SPOOL/p<pid>-<start ns>/control          one page: next sequence number, drops, the session's switches
//! SPOOL/p<pid>-<start ns>/t<tid>-<n>-<number>.chunk
//!                                          records of one thread in order, from about this number on
//! ```
//!
//! Every record has a sequence number from one counter of the process, taken when its bytes are in place, just before
//! it is committed. The [`reader`] delivers records in that order, which respects "happened before" between threads.
//! The counter lives in the control page, so after the program's death the reader knows exactly how many records were
//! begun and never committed: they are a counted loss.
#![warn(missing_docs)]

mod chunk;
mod clock;
mod control;
pub mod event;
pub mod hook;
pub mod ids;
pub mod interface;
mod rank;
pub mod reader;
pub mod stacks;
pub mod writer;

pub use clock::{HostClock, monotonic_ns};
pub use control::{Control, exceeds_file_limit, pid_namespace};
pub use event::Event;
pub use gapscope_model as model;
pub use rank::Rank;
pub use reader::{ProcessSpool, SpoolReader};
pub use writer::Spool;

/// The version of chunk and control files. The spool is transient: the session reads its own version only.
pub const VERSION: u32 = 5;

/// Environment variables by which the session configures the hooks in the recorded program.
pub mod env {
    /// The folder in which each process makes its own spool folder. Unset: nothing is recorded.
    pub const SPOOL: &str = "GAPSCOPE_SPOOL";
    /// `command-buffer`, `dispatch` or `dispatch-serialised`.
    pub const MODE: &str = "GAPSCOPE_MODE";
    /// The most bytes of spool that may wait to be drained in one process; past it records are dropped and counted.
    pub const LIMIT: &str = "GAPSCOPE_SPOOL_LIMIT";
    /// `0`: recording waits until the session, or a label, starts it.
    pub const RECORDING: &str = "GAPSCOPE_RECORDING";
    /// How timestamps leave the GPU: `ask` the driver, or `copy` them inside the command buffers. By default the hook
    /// chooses by driver.
    pub const RESULTS: &str = "GAPSCOPE_RESULTS";
    /// Recording starts when a debug label that contains this text begins.
    pub const START_LABEL: &str = "GAPSCOPE_START_LABEL";
    /// Of CUDA graphs, time each `node` or the `graph` as a whole (cheaper, without kernels). By default nodes, but in
    /// mode `command-buffer` graphs.
    pub const CUDA_GRAPHS: &str = "GAPSCOPE_CUDA_GRAPHS";
    /// CUDA records to leave out, separated by commas, to measure what each kind costs the program: `kernels`, `copies`,
    /// `peer-copies`, `fills`, `calls`, `waits`, `events`, `overheads`, `memory`, `pools`. Each is a loss.
    pub const CUDA_WITHOUT: &str = "GAPSCOPE_CUDA_WITHOUT";
    /// `0`: no stacks of threads are taken.
    pub const STACKS: &str = "GAPSCOPE_STACKS";
    /// What labels are set in a program that sets none, separated by commas: `modules`, `operators`.
    pub const LABELS: &str = "GAPSCOPE_LABELS";
    /// Set: performance queries of Vulkan count what command buffers do.
    pub const COUNTERS: &str = "GAPSCOPE_COUNTERS";
    /// Kernels whose launches are profiled one by one, a line each: how many launches, a space, a part of the name
    /// ([`Wanted`](gapscope_model::kernel_profile::Wanted)).
    pub const PROFILE_KERNELS: &str = "GAPSCOPE_PROFILE_KERNELS";
    /// Set: instructions of CUDA kernels are sampled, of those whose names contain its value.
    pub const INSTRUCTIONS: &str = "GAPSCOPE_INSTRUCTIONS";
    /// The libcupti to use, where the one that the CUDA library would find is the wrong one.
    pub const CUPTI: &str = "GAPSCOPE_CUPTI";
}

/// An error of the reader or of the writer's set-up.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A file or folder of the spool could not be used.
    #[error("{path}: {source}")]
    Io {
        /// The file or folder.
        path: std::path::PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// A file is not what its name says.
    #[error("{path} is not a gapscope spool file of version {VERSION}: {reason}")]
    Foreign {
        /// The file.
        path: std::path::PathBuf,
        /// What is wrong with it.
        reason: String,
    },
}

impl Error {
    /// The file or folder.
    pub fn path(&self) -> &std::path::Path {
        match self {
            Error::Io { path, .. } | Error::Foreign { path, .. } => path,
        }
    }

    fn io(path: &std::path::Path, source: std::io::Error) -> Error {
        Error::Io {
            path: path.to_owned(),
            source,
        }
    }
}
