//! How a command fails: one sentence and an exit status.

use crate::exit;
pub use gapscope_companion::without_number;
use std::fmt;

/// Why a command ended.
#[derive(Debug)]
pub struct Failure {
    /// What is said.
    pub sentence: String,
    /// The exit status.
    pub status: u8,
}

impl Failure {
    /// A failure with the status of everything but recording.
    pub fn new(sentence: impl Into<String>) -> Failure {
        Failure {
            sentence: sentence.into(),
            status: exit::FAILED,
        }
    }

    /// The same with another status.
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
        Failure::new(format!("{error:#}"))
    }
}

impl From<gapscope_trace::Error> for Failure {
    fn from(error: gapscope_trace::Error) -> Failure {
        let text = error.to_string();
        match error {
            gapscope_trace::Error::Write { path, .. } if text.contains("No space left") => {
                Failure::new(format!(
                    "{} cannot be written: no space is left on its disk; free some, or choose another disk",
                    path.display()
                ))
            }
            _ => Failure::new(without_number(&text)),
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
        Failure::new(without_number(&error.to_string())).status(status)
    }
}
