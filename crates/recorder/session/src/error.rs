//! Why a program cannot be recorded, or a trace not recovered.

use std::path::{Path, PathBuf};

/// Why a program cannot be recorded, or a trace not recovered.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// No command was given.
    #[error("there is no command to record: write it behind `--`")]
    NoCommand,
    /// The command is not there.
    #[error("cannot run {}: {reason}", command.display())]
    NoSuchCommand {
        /// The command.
        command: PathBuf,
        /// Where it was looked for, or what to do.
        reason: String,
    },
    /// The command is there and cannot be run.
    #[error("cannot run {}: {source}", command.display())]
    NotExecutable {
        /// The command.
        command: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// The trace cannot be written or read.
    #[error(transparent)]
    Trace(#[from] gapscope_trace::Error),
    /// The spool cannot be read.
    #[error(transparent)]
    Spool(#[from] gapscope_spool::Error),
    /// A file or folder of the recording could not be used.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// There is nothing from which the trace could be completed.
    #[error("{} cannot be recovered: {reason}", path.display())]
    NotRecoverable {
        /// The trace.
        path: PathBuf,
        /// Why.
        reason: String,
    },
    /// The recording goes on.
    #[error(
        "{} is still being written: {what} (process {pid}) runs; wait until it has ended, or stop it",
        path.display()
    )]
    StillRunning {
        /// The trace.
        path: PathBuf,
        /// `the recorded program` or `its gapscope record`.
        what: &'static str,
        /// The process.
        pid: u32,
    },
    /// The thread that writes the trace broke off: a defect of gapscope.
    #[error(
        "the recording broke off by an error in gapscope; `gapscope recover` completes the trace"
    )]
    Broken,
}

impl Error {
    pub(crate) fn io(path: &Path) -> impl FnOnce(std::io::Error) -> Error {
        |source| Error::Io {
            path: path.to_owned(),
            source,
        }
    }
}
