//! Defines the errors of recording and capturing Metal programs.

use std::io;
use std::path::PathBuf;

/// Why a Metal program cannot be recorded.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// No command was given.
    #[error("there is no command to record: write it after `--`")]
    NoCommand,
    /// The command is not there.
    #[error("cannot run {}: {reason}", command.display())]
    NoSuchCommand {
        /// The command.
        command: PathBuf,
        /// The places where it was searched, or what to do.
        reason: String,
    },
    /// The command is there and cannot be run.
    #[error("cannot run {}: {reason}", command.display())]
    NotExecutable {
        /// The command.
        command: PathBuf,
        /// The reason.
        reason: String,
    },
    /// A program of Apple's is missing.
    #[error("{tool} cannot be used: {reason}")]
    NoTool {
        /// `xctrace` or `gpucapture`.
        tool: &'static str,
        /// The problem, and what to do.
        reason: String,
    },
    /// The recording failed.
    #[error("xctrace did not record: {reason}")]
    NotRecorded {
        /// The words of xctrace.
        reason: String,
    },
    /// The recording is there and its tables cannot be exported.
    #[error("xctrace recorded and did not export {what}: {reason}; the recording is kept in {}", kept.display())]
    NotExported {
        /// Which table.
        what: String,
        /// The words of xctrace.
        reason: String,
        /// The recording, which Instruments opens.
        kept: PathBuf,
    },
    /// The recording is there and its tables cannot be imported.
    #[error("{source}; the recording is kept in {}", kept.display())]
    NotImported {
        /// The reason.
        source: gapscope_import::Error,
        /// The recording, which Instruments opens.
        kept: PathBuf,
    },
    /// The user interrupted the export.
    #[error("interrupted; the recording is kept in {}", kept.display())]
    Interrupted {
        /// The recording, which Instruments opens.
        kept: PathBuf,
    },
    /// The output is there, or its folder is not.
    #[error(transparent)]
    Output(#[from] gapscope_trace::Error),
    /// A path of a capture cannot be used.
    #[error("{} cannot be captured to: {reason}", path.display())]
    BadCapturePath {
        /// The path.
        path: PathBuf,
        /// The problem, and what to do.
        reason: String,
    },
    /// `gpucapture` failed.
    #[error("gpucapture did not capture: {reason}")]
    NotCaptured {
        /// The words of gpucapture.
        reason: String,
    },
    /// A file or program of the recording could not be used.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file or program.
        path: PathBuf,
        /// The system's words.
        source: io::Error,
    },
}

impl Error {
    /// Returns a function that makes an error of the system's error at this path, for `map_err`.
    pub(crate) fn io(path: &std::path::Path) -> impl FnOnce(io::Error) -> Error {
        |source| Error::Io {
            path: path.to_owned(),
            source,
        }
    }
}
