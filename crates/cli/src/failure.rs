//! How a command fails: one sentence and an exit status.

pub use gapscope_command::without_number;
use std::fmt;

/// gapscope itself could not do it, as `timeout`, `env` and containers answer.
pub const CANNOT_RECORD: u8 = 125;

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
            status: 1,
        }
    }

    /// The same with another status.
    pub fn status(self, status: u8) -> Failure {
        Failure { status, ..self }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&gapscope_command::one_line(&self.sentence))
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
            Error::NoSuchCommand { .. } => 127,
            Error::NotExecutable { .. } => 126,
            _ => 1,
        };
        Failure::new(without_number(&error.to_string())).status(status)
    }
}
