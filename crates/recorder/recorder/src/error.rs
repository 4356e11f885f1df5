//! Defines the errors of recording a program and of recovering a trace.

use std::path::{Path, PathBuf};

/// The reason why a program cannot be recorded, or a trace cannot be recovered.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The command line is empty.
    #[error("there is no command to record: write it behind `--`")]
    NoCommand,
    /// The command does not exist.
    #[error("cannot run {}: {reason}", command.display())]
    NoSuchCommand {
        /// The command.
        command: PathBuf,
        /// The places in which the command was looked for, or what the user can do.
        reason: String,
    },
    /// The command exists and cannot be run.
    #[error("cannot run {}: {source}", command.display())]
    NotExecutable {
        /// The command.
        command: PathBuf,
        /// The system's error.
        source: std::io::Error,
    },
    /// The trace cannot be written or read.
    #[error(transparent)]
    Trace(#[from] gapscope_trace::Error),
    /// The spool (the log that gapscope's libraries write in the program) cannot be read.
    #[error(transparent)]
    Spool(#[from] gapscope_spool::Error),
    /// A file or folder of the recording could not be used.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// The system's error.
        source: std::io::Error,
    },
    /// The folder lacks what is needed to complete the trace.
    #[error("{} cannot be recovered: {reason}", path.display())]
    NotRecoverable {
        /// The trace.
        path: PathBuf,
        /// The part that is missing or damaged.
        reason: String,
    },
    /// The recording has not ended.
    #[error(
        "{} is still being written: {what} (process {pid}) runs; wait until it has ended, or stop it",
        path.display()
    )]
    StillRunning {
        /// The trace.
        path: PathBuf,
        /// The process that still runs: `the recorded program` or `its gapscope record`.
        what: &'static str,
        /// The id of that process.
        pid: u32,
    },
    /// The thread that writes the trace panicked, which is a bug of gapscope.
    #[error(
        "the recording broke off by an error in gapscope; `gapscope recover` completes the trace"
    )]
    Broken,
}

impl Error {
    /// Returns a function that turns the system's error about `path` into [`Error::Io`], for `map_err`.
    pub(crate) fn io(path: &Path) -> impl FnOnce(std::io::Error) -> Error {
        |source| Error::Io {
            path: path.to_owned(),
            source,
        }
    }
}
