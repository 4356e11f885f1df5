//! Drives `gpucapture`, which captures a window of a running process's GPU work as a GPU trace document. macOS has it
//! since 27.
//!
//! The process must have been launched with `MTL_CAPTURE_ENABLED=1`.

use crate::Error;
use crate::interrupt::Interrupts;
use crate::program::resolved;
use crate::tool::last_words;
use gapscope_trace::manifest::Exit;
use std::ffi::OsString;
use std::fs::File;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::time::Duration;

/// The variable with the path of the gpucapture to run instead.
pub const GPUCAPTURE_VARIABLE: &str = "GAPSCOPE_GPUCAPTURE";

/// The variables that let a process be captured: the newer name and the older one.
const GATES: [&str; 2] = ["MTL_CAPTURE_ENABLED", "METAL_CAPTURE_ENABLED"];

/// The time between two questions to gpucapture whether it sees the command.
const PAUSE: Duration = Duration::from_millis(100);

/// Apple's `gpucapture`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GpuCapture {
    program: PathBuf,
}

/// The end of a command, and what was captured of it.
#[derive(Debug)]
pub struct LaunchOutcome {
    /// How the command ended.
    pub exit: Exit,
    /// The size of the capture in bytes, or the reason why there is none.
    pub captured: Result<u64, Error>,
}

/// The boundaries at which a window starts and ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Boundary {
    /// A boundary that `gpucapture boundaries` lists.
    Id(String),
    /// The capture scope or layer with this label.
    Label(String),
}

/// The length of a window.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Length {
    /// A number of boundaries.
    Count(u32),
    /// The rest of the process's life.
    UntilExit,
}

/// The part of a process's work to capture.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GpuWindow {
    /// The boundaries that count; the system's default otherwise.
    pub boundary: Option<Boundary>,
    /// The length.
    pub length: Length,
    /// The output, `NAME.gputrace`, which must not exist.
    pub output: PathBuf,
}

impl GpuCapture {
    /// Finds the system's gpucapture.
    ///
    /// # Errors
    /// This system has none.
    pub fn find() -> Result<GpuCapture, Error> {
        let program = match std::env::var_os(GPUCAPTURE_VARIABLE).filter(|path| !path.is_empty()) {
            Some(path) => PathBuf::from(path),
            None => PathBuf::from("/usr/bin/gpucapture"),
        };
        GpuCapture::at(program)
    }

    /// Takes the gpucapture at a path.
    ///
    /// # Errors
    /// There is none.
    pub fn at(program: impl Into<PathBuf>) -> Result<GpuCapture, Error> {
        let program = program.into();
        if program.is_file() {
            return Ok(GpuCapture { program });
        }
        Err(Error::NoTool {
            tool: "gpucapture",
            reason: format!(
                "there is no {}: macOS has it since version 27; before, capture with Xcode or from inside the program",
                program.display()
            ),
        })
    }

    /// Lists the processes that can be captured, in gpucapture's words.
    ///
    /// # Errors
    /// gpucapture fails.
    pub fn list(&self) -> Result<String, Error> {
        let output = Command::new(&self.program)
            .arg("list")
            .stdin(Stdio::null())
            .output()
            .map_err(Error::io(&self.program))?;
        if !output.status.success() {
            return Err(Error::NotCaptured {
                reason: last_words(&String::from_utf8_lossy(&output.stderr)),
            });
        }
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }

    /// Runs a command so that it can be captured, captures a window of it as soon as gpucapture sees it, and waits
    /// for its end. The command has the standard input and outputs of this process.
    ///
    /// # Errors
    /// The path cannot be used, or the command cannot be run; nothing has run then.
    pub fn launch(&self, command: &[OsString], window: &GpuWindow) -> Result<LaunchOutcome, Error> {
        check_path(&window.output)?;
        let command = resolved(command)?;
        let interrupts = Interrupts::take().map_err(Error::io(&self.program))?;
        let program = Path::new(&command[0]);
        let mut child = Command::new(program)
            .args(&command[1..])
            .envs(GATES.map(|gate| (gate, "1")))
            .spawn()
            .map_err(Error::io(program))?;
        let captured = loop {
            // The kernel keeps the id until the child is waited for.
            if let Some(status) = child.try_wait().map_err(Error::io(program))? {
                let reason = format!(
                    "the command ended ({status}) before gpucapture saw it: it used no GPU, or not for long"
                );
                return Ok(LaunchOutcome {
                    exit: exit_of(status),
                    captured: Err(Error::NotCaptured { reason }),
                });
            }
            if interrupts.came() {
                break Err(Error::NotCaptured {
                    reason: "it was interrupted before gpucapture saw the command".to_owned(),
                });
            }
            match self.list() {
                Ok(list) if lists(&list, child.id()) => {
                    break self.capture_with(child.id(), window, &interrupts);
                }
                Ok(_) => std::thread::sleep(PAUSE),
                Err(error) => break Err(error),
            }
        };
        let ended = interrupts.wait(&mut child, program)?;
        Ok(LaunchOutcome {
            exit: exit_of(ended.status),
            captured,
        })
    }

    /// Captures a window of a process, waits until it is written, and returns its size in bytes. A signal ends the
    /// window early.
    ///
    /// # Errors
    /// The path cannot be used, gpucapture fails, or it wrote nothing.
    pub fn capture(&self, pid: u32, window: &GpuWindow) -> Result<u64, Error> {
        check_path(&window.output)?;
        let interrupts = Interrupts::take().map_err(Error::io(&self.program))?;
        self.capture_with(pid, window, &interrupts)
    }

    /// Runs gpucapture on a process. Its exit status is ignored: a capture with bytes is a success.
    fn capture_with(
        &self,
        pid: u32,
        window: &GpuWindow,
        interrupts: &Interrupts,
    ) -> Result<u64, Error> {
        let log = tempfile::NamedTempFile::new().map_err(Error::io(&std::env::temp_dir()))?;
        let writer = File::create(log.path()).map_err(Error::io(log.path()))?;
        let errors = writer.try_clone().map_err(Error::io(log.path()))?;
        let mut child = Command::new(&self.program)
            .args(arguments(pid, window))
            .stdin(Stdio::null())
            .stdout(writer)
            .stderr(errors)
            .process_group(0)
            .spawn()
            .map_err(Error::io(&self.program))?;
        let status = interrupts.wait(&mut child, &self.program)?.status;
        let bytes = size(&window.output);
        if bytes == 0 {
            let words = last_words(&std::fs::read_to_string(log.path()).unwrap_or_default());
            return Err(Error::NotCaptured {
                reason: format!(
                    "{words} ({status}); the process must have been launched with MTL_CAPTURE_ENABLED=1"
                ),
            });
        }
        Ok(bytes)
    }
}

/// Returns the exit code, or the signal that ended the command.
fn exit_of(status: ExitStatus) -> Exit {
    match (status.code(), status.signal()) {
        (Some(code), _) => Exit::Code(code),
        (None, signal) => Exit::Signal(signal.unwrap_or(0)),
    }
}

/// Returns whether a list of processes contains this one. The place of the id in a line is not documented.
fn lists(list: &str, pid: u32) -> bool {
    list.split(|c: char| !c.is_ascii_alphanumeric())
        .any(|word| word.parse() == Ok(pid))
}

/// Returns the arguments for gpucapture.
fn arguments(pid: u32, window: &GpuWindow) -> Vec<OsString> {
    let mut arguments: Vec<OsString> = vec!["start".into(), "--pid".into(), pid.to_string().into()];
    match &window.boundary {
        Some(Boundary::Id(id)) => arguments.extend(["--boundary".into(), id.into()]),
        Some(Boundary::Label(label)) => arguments.extend(["--label".into(), label.into()]),
        None => {}
    }
    match window.length {
        Length::Count(count) => arguments.extend(["--count".into(), count.to_string().into()]),
        Length::UntilExit => arguments.push("--until-exit".into()),
    }
    arguments.extend(["--output".into(), window.output.clone().into()]);
    arguments
}

/// Refuses a path without `.gputrace`, one that exists, and one whose folder does not.
fn check_path(path: &Path) -> Result<(), Error> {
    let bad = |reason: &str| Error::BadCapturePath {
        path: path.to_owned(),
        reason: reason.to_owned(),
    };
    if path
        .extension()
        .is_none_or(|extension| extension != "gputrace")
    {
        return Err(bad("a GPU trace document is named NAME.gputrace"));
    }
    if path.symlink_metadata().is_ok() {
        return Err(bad(
            "it exists and is not overwritten: remove it, or choose another name",
        ));
    }
    let parent = path
        .parent()
        .filter(|parent| !parent.as_os_str().is_empty());
    if !parent.unwrap_or(Path::new(".")).is_dir() {
        return Err(bad("its folder does not exist"));
    }
    Ok(())
}

/// Returns the size of a file, or of all files in a folder, in bytes; 0 where there is none.
fn size(path: &Path) -> u64 {
    let Ok(found) = path.symlink_metadata() else {
        return 0;
    };
    if !found.is_dir() {
        return found.len();
    }
    let entries = std::fs::read_dir(path).into_iter().flatten().flatten();
    entries.map(|entry| size(&entry.path())).sum()
}
