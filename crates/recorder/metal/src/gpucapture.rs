//! `gpucapture`: captures a window of a running process's GPU work as a GPU trace document. macOS has it since 27.
//!
//! The process must have been launched with `MTL_CAPTURE_ENABLED=1`.

use crate::Error;
use crate::interrupt::Interrupts;
use crate::tool::last_words;
use std::ffi::OsString;
use std::fs::File;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Overrides which gpucapture is run: the path of a program.
const VARIABLE: &str = "GAPSCOPE_GPUCAPTURE";

/// Apple's `gpucapture`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GpuCapture {
    program: PathBuf,
}

/// Where a window begins and ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Boundary {
    /// A boundary that `gpucapture boundaries` lists.
    Id(String),
    /// The capture scope or layer with this label.
    Label(String),
}

/// How long a window is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Length {
    /// So many boundaries.
    Count(u32),
    /// Until the process exits.
    UntilExit,
}

/// What to capture.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GpuWindow {
    /// The process.
    pub pid: u32,
    /// Whose boundaries count; the default of the system otherwise.
    pub boundary: Option<Boundary>,
    /// How long.
    pub length: Length,
    /// Where to, `NAME.gputrace`, which must not exist.
    pub output: PathBuf,
}

impl GpuCapture {
    /// The system's gpucapture.
    ///
    /// # Errors
    /// This system has none.
    pub fn find() -> Result<GpuCapture, Error> {
        let program = match std::env::var_os(VARIABLE).filter(|path| !path.is_empty()) {
            Some(path) => PathBuf::from(path),
            None => PathBuf::from("/usr/bin/gpucapture"),
        };
        GpuCapture::at(program)
    }

    /// The gpucapture at a path.
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

    /// The processes that can be captured, as gpucapture lists them.
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

    /// Captures a window and waits until it is written; gives its size in bytes. A signal ends the window early.
    ///
    /// # Errors
    /// The path cannot be used, gpucapture fails, or it wrote nothing.
    pub fn capture(&self, window: &GpuWindow) -> Result<u64, Error> {
        check_path(&window.output)?;
        let interrupts = Interrupts::take().map_err(Error::io(&self.program))?;
        let log = tempfile::NamedTempFile::new().map_err(Error::io(&std::env::temp_dir()))?;
        let writer = File::create(log.path()).map_err(Error::io(log.path()))?;
        let errors = writer.try_clone().map_err(Error::io(log.path()))?;
        let mut child = Command::new(&self.program)
            .args(arguments(window))
            .stdin(Stdio::null())
            .stdout(writer)
            .stderr(errors)
            .process_group(0)
            .spawn()
            .map_err(Error::io(&self.program))?;
        let (status, _) = interrupts.wait(&mut child, &self.program)?;
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

fn arguments(window: &GpuWindow) -> Vec<OsString> {
    let mut arguments: Vec<OsString> = vec![
        "start".into(),
        "--pid".into(),
        window.pid.to_string().into(),
    ];
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

/// Bytes of a file, or of all files in a folder.
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
