//! The crash-safe event log between a recorded program and the recording session: hooks (our libraries inside the
//! program) write events, and the session reads them, also after the program was killed.
//!
//! Each thread of the program appends records to a chunk of shared memory that it alone writes: an event takes no
//! lock, no system call and no allocation. A record counts from the moment when the chunk's committed length is
//! stored (release), so everything written before a SIGKILL can be read afterwards.
//!
//! The memory is a [`pool`] that the session has ready, which nobody can cut and which needs no system call later; the
//! session writes what it collects from there to chunk files, so that nothing is lost when it is killed itself. Where a
//! process finds no pool (in another PID namespace, or when very many start at once), it maps chunk files of its own.
//!
//! ```text
//! SPOOL/pool-<number>, spare-<slot>        links to pools in memory
//! SPOOL/p<pid>-<start ns>/control          one page: next sequence number, drops, the session's switches
//! SPOOL/p<pid>-<start ns>/t<tid>-<n>-<number>.chunk
//!                                          records of one thread in order, from about this number on
//! ```
//!
//! Every record has a sequence number from a counter of the process, taken when its bytes are in place, just before
//! it is committed. The [`reader`] delivers records in that order, which respects "happened before" between threads.
//! The counter lives in the control page, so after the program's death the reader knows exactly how many records were
//! begun and never committed: they are a counted loss.
#![warn(missing_docs)]

mod chunk;
mod clock;
mod control;
pub mod event;
pub mod filters;
pub mod hook;
pub mod ids;
pub mod interface;
mod limits;
mod page;
pub mod pool;
mod rank;
pub mod reader;
pub mod stacks;
pub mod writer;

pub use clock::{HostClock, describe_clock, monotonic_ns, to_session_ns};
pub use control::{Control, pid_namespace};
pub use event::Event;
pub use gapscope_model as model;
pub use limits::exceeds_file_limit;
pub use page::Page;
pub use rank::Rank;
pub use reader::{ProcessSpool, SpoolReader};
pub use writer::Spool;

/// The version of chunk and control files. The spool is transient: a session only reads its own version.
pub const VERSION: u32 = 9;

/// Environment variables by which the session configures the hooks in the recorded program.
pub mod env {
    /// The folder in which each process creates its spool folder. If unset, nothing is recorded.
    pub const SPOOL: &str = "GAPSCOPE_SPOOL";
    /// Set by `gapscope capture` in place of [`SPOOL`]: the layer that captures is in the process. The value is the
    /// `Request` of `gapscope-capture`.
    pub const CAPTURE_REQUEST: &str = "GAPSCOPE_CAPTURE_REQUEST";
    /// `command-buffer`, `dispatch` or `dispatch-serialised`.
    pub const MODE: &str = "GAPSCOPE_MODE";
    /// The most bytes of a process's spool that may wait to be drained; beyond it records are dropped and counted.
    pub const LIMIT: &str = "GAPSCOPE_SPOOL_LIMIT";
    /// The number of filters of system calls (seccomp) that the session has, and its programs therefore too.
    pub const FILTERS: &str = "GAPSCOPE_FILTERS";
    /// The session's time namespace, as the kernel names it, and the offset of the monotonic clock there in nanoseconds.
    pub const CLOCK: &str = "GAPSCOPE_CLOCK";
    /// `0`: recording is off until the session, or a label, starts it.
    pub const RECORDING: &str = "GAPSCOPE_RECORDING";
    /// The way in which timestamps leave the GPU: `ask` the driver, or `copy` them inside the command buffers. By
    /// default the hook chooses by driver.
    pub const RESULTS: &str = "GAPSCOPE_RESULTS";
    /// Recording starts when a debug label that contains this text begins.
    pub const START_LABEL: &str = "GAPSCOPE_START_LABEL";
    /// Whether CUDA graphs are timed by `node` or as a whole `graph` (cheaper, without kernels). The default is by
    /// node, except in mode `command-buffer`.
    pub const CUDA_GRAPHS: &str = "GAPSCOPE_CUDA_GRAPHS";
    /// CUDA records to leave out, separated by commas, to measure the cost of each kind: `kernels`, `copies`,
    /// `peer-copies`, `fills`, `calls`, `waits`, `events`, `overheads`, `memory`, `pools`. Each is counted as a loss.
    pub const CUDA_WITHOUT: &str = "GAPSCOPE_CUDA_WITHOUT";
    /// `0`: no stacks of threads are taken.
    pub const STACKS: &str = "GAPSCOPE_STACKS";
    /// The labels to inject into a program without labels, separated by commas: `modules`, `operators`.
    pub const LABELS: &str = "GAPSCOPE_LABELS";
    /// If set, Vulkan performance queries measure command buffers.
    pub const COUNTERS: &str = "GAPSCOPE_COUNTERS";
    /// Kernels whose launches are profiled, one a line: number of launches, a space, a part of the name
    /// ([`Wanted`](gapscope_model::kernel_profile::Wanted)).
    pub const PROFILE_KERNELS: &str = "GAPSCOPE_PROFILE_KERNELS";
    /// If set, instructions of CUDA kernels whose names contain the value are sampled.
    pub const INSTRUCTIONS: &str = "GAPSCOPE_INSTRUCTIONS";
    /// The libcupti to use instead of the one that the CUDA library would find.
    pub const CUPTI: &str = "GAPSCOPE_CUPTI";
}

/// An error of the reader, or of setting up the writer.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A file or folder of the spool could not be used.
    #[error("{path}: {source}")]
    Io {
        /// The file or folder.
        path: std::path::PathBuf,
        /// The system's error.
        source: std::io::Error,
    },
    /// A file does not match its name.
    #[error("{path} is not a gapscope spool file of version {VERSION}: {reason}")]
    Foreign {
        /// The file.
        path: std::path::PathBuf,
        /// The fault of the file.
        reason: String,
    },
    /// The control page has been cut off, or is not written yet.
    #[error("{path} has been cut")]
    Cut {
        /// The control page.
        path: std::path::PathBuf,
    },
    /// The hook in the program is of another build.
    #[error(
        "the hook in the program is of another build of gapscope: its spool has version {version}, and this build reads version {VERSION}; record \
         with the gapscope to which the hook belongs, or remove the other build's hook"
    )]
    OtherBuild {
        /// The control page of the process.
        path: std::path::PathBuf,
        /// The version of the spool that the hook writes.
        version: u32,
    },
}

impl Error {
    /// Returns the file or folder.
    pub fn path(&self) -> &std::path::Path {
        match self {
            Error::Io { path, .. }
            | Error::Foreign { path, .. }
            | Error::Cut { path }
            | Error::OtherBuild { path, .. } => path,
        }
    }

    /// Creates the error that the system could not use `path`.
    fn io(path: &std::path::Path, source: std::io::Error) -> Error {
        Error::Io {
            path: path.to_owned(),
            source,
        }
    }
}
