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
    /// No importer knows such files.
    #[error("gapscope does not know what made {}; it imports {reads}", path.display())]
    Unrecognised {
        /// The file or folder.
        path: PathBuf,
        /// What the importers read.
        reads: String,
    },
    /// A folder holds none of the tool's files.
    #[error("{} holds no {wanted}", path.display())]
    NoFiles {
        /// The folder.
        path: PathBuf,
        /// Which files, and how to get them.
        wanted: &'static str,
    },
    /// It is the tool's, in a form that only the tool itself can read.
    #[error("{} is {form}", path.display())]
    ToolOnly {
        /// The file or folder.
        path: PathBuf,
        /// Which form, and what to do.
        form: &'static str,
    },
    /// A file is not what the importer reads.
    #[error("{} is not {wanted}: {found}", path.display())]
    Foreign {
        /// The file.
        path: PathBuf,
        /// What the importer reads.
        wanted: &'static str,
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
    /// There is no GPU work in the files.
    #[error("{reason}")]
    NothingRecorded {
        /// Why: a sentence.
        reason: String,
    },
    /// The trace cannot be written.
    #[error(transparent)]
    Trace(#[from] gapscope_trace::Error),
}
