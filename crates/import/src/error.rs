//! Why files cannot be imported.

use std::io;
use std::path::PathBuf;

/// Why files cannot be imported at all. What is only damaged becomes losses and notes of the trace.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A file or folder cannot be read.
    #[error("{} cannot be read: {source}", path.display())]
    Read {
        /// The file or folder.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A folder holds no exports.
    #[error("{} holds no .xml files: give the folder of what `xctrace export --output` wrote", path.display())]
    NoFiles {
        /// The folder.
        path: PathBuf,
    },
    /// A recording of Instruments itself, which only Apple's tools can read.
    #[error(
        "{} is a recording of Instruments, which only xctrace on a Mac can read: import it there, or export its tables with `xctrace export` first",
        path.display()
    )]
    Bundle {
        /// The recording.
        path: PathBuf,
    },
    /// A file is something else than an export of xctrace.
    #[error("{} is no export of xctrace: {found}", path.display())]
    Foreign {
        /// The file.
        path: PathBuf,
        /// What it looks like.
        found: String,
    },
    /// Nothing says which process is meant.
    #[error(
        "the exports have Metal work of {count} processes and do not say which one was recorded: choose with --pid, one of {processes}"
    )]
    ManyProcesses {
        /// How many.
        count: usize,
        /// `NAME (PID)`, joined by commas, those with most rows first.
        processes: String,
    },
    /// There is no Metal work in the exports.
    #[error("{reason}")]
    NothingRecorded {
        /// Why: a sentence.
        reason: String,
    },
    /// The trace cannot be written.
    #[error(transparent)]
    Trace(#[from] gapscope_trace::Error),
}
