//! The error type of imports.

use std::io;
use std::path::{Path, PathBuf};

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
    /// The ranks that the user names do not fit the files.
    #[error("{reason}")]
    Ranks {
        /// The reason as a sentence.
        reason: String,
    },
    /// Files of two profilers are not of one run, or cannot be shown to be.
    #[error("{reason}")]
    NotJoined {
        /// The reason as a sentence.
        reason: String,
    },
    /// The trace cannot be written.
    #[error(transparent)]
    Trace(#[from] gapscope_trace::Error),
}

impl Error {
    /// Returns a function that makes the error that a file or folder cannot be read.
    pub(crate) fn read(path: &Path) -> impl Fn(io::Error) -> Error + Copy + '_ {
        |source| Error::Read {
            path: path.to_owned(),
            source,
        }
    }

    /// Returns the error that a file does not have the format of the importer.
    pub(crate) fn foreign(path: &Path, wanted: &'static str, found: impl Into<String>) -> Error {
        Error::Foreign {
            path: path.to_owned(),
            wanted,
            // A quotation of the file is one line.
            found: found.into().replace(char::is_control, " "),
        }
    }

    /// Returns the error that there is no GPU work in the files, for a reason that is a sentence.
    pub(crate) fn nothing(reason: impl Into<String>) -> Error {
        Error::NothingRecorded {
            reason: reason.into(),
        }
    }
}

/// Returns the only file of an importer that reads one at a time, or an error for several. `kind` is the kind of
/// file, such as `trace of Perfetto`.
pub(crate) fn only_file<'a>(inputs: &'a [PathBuf], kind: &str) -> Result<&'a Path, Error> {
    match inputs {
        [path] => Ok(path),
        _ => Err(Error::nothing(format!(
            "each {kind} is imported by itself: give one file"
        ))),
    }
}
