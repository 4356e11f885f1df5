//! Records probes: programs of gapscope's own that open a driver. They show what a driver answers and whether its
//! hook (the library that records inside a program) is loaded; a driver that crashes takes only the probe with it.

use crate::args::Probe;
use crate::failure::Failure;
use clap::ValueEnum;
use gapscope_recorder::{LabelInjection, Names, Recorded, Recording, Start};
use gapscope_trace::LossKind;
use gapscope_trace::manifest::{Exit, SamplingMode};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The time after which a driver that has not answered counts as hanging. Machines with many GPUs take seconds.
const DRIVER_TIMEOUT: Duration = Duration::from_secs(30);

/// A sentence that says why something is not known or does not work.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Reason(pub String);

impl Reason {
    pub fn new(error: impl ToString) -> Reason {
        Reason(error.to_string())
    }
}

impl From<&str> for Reason {
    fn from(text: &str) -> Reason {
        Reason(text.to_owned())
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The result of recording a probe that opens one driver.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trial<A> {
    /// The probe's answer, or a sentence about its end without an answer.
    pub answer: Result<A, Reason>,
    /// An empty value if the hook was loaded and could write, or the reason why not.
    pub hook: Result<(), Reason>,
}

/// The libraries of the hooks that are tried.
#[derive(Debug, Clone)]
pub struct Hooks {
    pub layer: PathBuf,
    pub cuda: Option<PathBuf>,
}

impl Hooks {
    /// Records a probe into a temporary folder in `place`, and returns its answer and the state of the hook.
    pub fn attempt<A: DeserializeOwned>(&self, place: &Path, probe: Probe) -> Trial<A> {
        match self.recorded(place, probe) {
            Ok((recorded, answer)) => Trial {
                answer: answered(&recorded, answer.as_deref()),
                hook: hooked(&recorded),
            },
            Err(failure) => Trial {
                answer: Err(Reason(failure.sentence.clone())),
                hook: Err(Reason(failure.sentence)),
            },
        }
    }

    /// Records a probe, and returns the recording and the text that the probe wrote; `None` if it wrote none.
    fn recorded(&self, place: &Path, probe: Probe) -> Result<(Recorded, Option<String>), Failure> {
        let cannot = |what: &str, error: std::io::Error| failure!("{what}: {error}");
        let folder = tempfile::Builder::new()
            .prefix(".gapscope-doctor-")
            .tempdir_in(place)
            .map_err(|error| cannot("no folder could be made", error))?;
        let program = std::env::current_exe().map_err(|error| cannot("gapscope itself", error))?;
        let answer = folder.path().join("answer.json");
        let value = probe.to_possible_value();
        let name = value.as_ref().map_or("", |value| value.get_name());
        let recording = Recording {
            command: vec![
                program.into(),
                "doctor".into(),
                "--probe".into(),
                name.into(),
                "--answer".into(),
                answer.clone().into(),
            ],
            output: folder.path().join("trial.gapscope"),
            keep_arguments: true,
            mode: SamplingMode::Dispatch,
            names: Names::default(),
            start: Start::AtOnce,
            time_limit: Some(DRIVER_TIMEOUT),
            layer: self.layer.clone(),
            cuda: self.cuda.clone(),
            labels: LabelInjection::default(),
            profile: Vec::new(),
            instructions: None,
            // The output of drivers is no part of the answer.
            stdout_to_stderr: true,
            spool_limit_bytes: None,
            stack_rate_hz: None,
            counters: None,
            system_root: "/".into(),
        };
        let recorded = recording.start()?.wait()?;
        Ok((recorded, std::fs::read_to_string(answer).ok()))
    }
}

/// Reads the answer; without one, the reason is how the probe ended.
fn answered<A: DeserializeOwned>(recorded: &Recorded, answer: Option<&str>) -> Result<A, Reason> {
    if let Some(answer) = answer {
        return serde_json::from_str(answer)
            .map_err(|error| Reason(format!("its answer cannot be read: {error}")));
    }
    Err(Reason(match recorded.exit {
        _ if recorded.timed_out => {
            format!(
                "the driver did not answer within {} s",
                DRIVER_TIMEOUT.as_secs()
            )
        }
        Exit::Signal(signal) => format!("the driver ended the program by signal {signal}"),
        Exit::Code(code) => format!("the driver ended the program with status {code}"),
    }))
}

/// Returns whether the hook was loaded and could write, although a probe does no work that could be recorded.
fn hooked(recorded: &Recorded) -> Result<(), Reason> {
    match recorded.outcome.without_work() {
        None => Ok(()),
        Some((reason, true)) => {
            match recorded.losses.iter().any(|l| l.kind == LossKind::CudaWork) {
                true => Err(Reason::new(reason)),
                // The probe did no GPU work, as intended.
                false => Ok(()),
            }
        }
        Some((reason, false)) => Err(Reason::new(reason)),
    }
}

/// Writes the answer of a probe, whole or not at all.
pub fn write_answer(answer: &impl Serialize, file: &Path) -> Result<(), Failure> {
    let text = serde_json::to_string(answer)?;
    let partial = file.with_extension("partial");
    let written = std::fs::write(&partial, text).and_then(|()| std::fs::rename(&partial, file));
    written.map_err(|error| failure!("{}: {error}", file.display()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use gapscope_recorder::Outcome;

    fn recorded(exit: Exit, timed_out: bool) -> Recorded {
        Recorded {
            output: PathBuf::new(),
            exit,
            timed_out,
            outcome: Outcome::Recorded,
            dispatches: 0,
            losses: Vec::new(),
            notes: Vec::new(),
            windows: Vec::new(),
        }
    }

    #[test]
    fn a_driver_that_fails_is_said_to() {
        let how = |exit, timed_out| answered::<u32>(&recorded(exit, timed_out), None).unwrap_err();
        assert!(how(Exit::Signal(11), false).0.contains("signal 11"));
        assert!(how(Exit::Signal(15), true).0.contains("within 30 s"));
        assert!(how(Exit::Code(1), false).0.contains("status 1"));
        assert_eq!(answered(&recorded(Exit::Code(0), false), Some("7")), Ok(7));
        assert!(answered::<u32>(&recorded(Exit::Code(0), false), Some("{")).is_err());
    }
}
