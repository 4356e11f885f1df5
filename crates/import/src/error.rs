//! The error type of imports.

use std::io;
use std::path::PathBuf;

/// A failure of a whole import. Damage to parts of a file becomes losses and notes of the trace instead.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A file or folder cannot be read.
    #[error("{} cannot be read: {source}", path.display())]
    Read {
        /// The file or folder.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// No importer recognises the files.
    #[error("gapscope does not know what made {}; it imports {reads}", path.display())]
    Unrecognised {
        /// The file or folder.
        path: PathBuf,
        /// The files that the importers read.
        reads: String,
    },
    /// A folder holds none of the tool's files.
    #[error("{} holds no {wanted}", path.display())]
    NoFiles {
        /// The folder.
        path: PathBuf,
        /// A description of the missing files and of how to get them.
        wanted: &'static str,
    },
    /// The file is in a form that only the tool itself can read.
    #[error("{} is {form}", path.display())]
    ToolOnly {
        /// The file or folder.
        path: PathBuf,
        /// The form, and what the user can do.
        form: &'static str,
    },
    /// A file does not have the format of the importer.
    #[error("{} is not {wanted}: {found}", path.display())]
    Foreign {
        /// The file.
        path: PathBuf,
        /// The format of the importer.
        wanted: &'static str,
        /// A description of the content.
        found: String,
    },
    /// The files hold several processes and do not say which of them was recorded.
    #[error(
        "the exports have Metal work of {count} processes and do not say which one was recorded: choose with --pid, one of {processes}"
    )]
    ManyProcesses {
        /// The number of processes.
        count: usize,
        /// Processes as `NAME (PID)`, joined by commas; the process with most rows is first.
        processes: String,
    },
    /// There is no GPU work in the files.
    #[error("{reason}")]
    NothingRecorded {
        /// The reason as a sentence.
        reason: String,
    },
    /// The trace cannot be written.
    #[error(transparent)]
    Trace(#[from] gapscope_trace::Error),
}
