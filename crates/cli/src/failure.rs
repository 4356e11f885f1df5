//! The failure of a command: one sentence and an exit status.

use crate::exit;
pub use gapscope_companion::without_os_error_numbers;
use std::fmt;
use std::io::ErrorKind;

/// The failure of a command: the sentence that is printed, and the exit status.
#[derive(Debug)]
pub struct Failure {
    /// One sentence without its full stop.
    pub sentence: String,
    /// One of the statuses of [`exit`].
    pub status: u8,
}

/// Creates a [`Failure`] from a format string and its arguments.
macro_rules! failure {
    ($($argument:tt)*) => {
        $crate::failure::Failure::new(format!($($argument)*))
    };
}

impl Failure {
    /// Replaces the status [`exit::FAILED`] by [`exit::CANNOT_RECORD`], for commands that end as another command does.
    pub fn of_recording(self) -> Failure {
        match self.status {
            exit::FAILED => self.status(exit::CANNOT_RECORD),
            _ => self,
        }
    }

    /// Creates a failure with the status [`exit::FAILED`].
    pub fn new(sentence: impl Into<String>) -> Failure {
        Failure {
            sentence: sentence.into(),
            status: exit::FAILED,
        }
    }

    pub fn status(self, status: u8) -> Failure {
        Failure { status, ..self }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&gapscope_companion::one_line(&self.sentence))
    }
}

impl From<gapscope_companion::WriteError> for Failure {
    fn from(error: gapscope_companion::WriteError) -> Failure {
        Failure::new(error.to_string())
    }
}

impl From<anyhow::Error> for Failure {
    fn from(error: anyhow::Error) -> Failure {
        failure!("{error:#}")
    }
}

impl From<serde_json::Error> for Failure {
    fn from(error: serde_json::Error) -> Failure {
        failure!("cannot write JSON: {error}")
    }
}

impl From<gapscope_trace::Error> for Failure {
    fn from(error: gapscope_trace::Error) -> Failure {
        match error {
            gapscope_trace::Error::Write { path, source }
                if source.kind() == ErrorKind::StorageFull =>
            {
                failure!(
                    "{} cannot be written: no space is left on its disk; free some, or choose another disk",
                    path.display()
                )
            }
            _ => Failure::new(without_os_error_numbers(&error.to_string())),
        }
    }
}

#[cfg(target_os = "linux")]
impl From<gapscope_recorder::Error> for Failure {
    fn from(error: gapscope_recorder::Error) -> Failure {
        use gapscope_recorder::Error;
        let status = match error {
            Error::Trace(error) => return error.into(),
            Error::NoSuchCommand { .. } => exit::NOT_FOUND,
            Error::NotExecutable { .. } => exit::NOT_EXECUTABLE,
            _ => exit::FAILED,
        };
        Failure::new(without_os_error_numbers(&error.to_string())).status(status)
    }
}
