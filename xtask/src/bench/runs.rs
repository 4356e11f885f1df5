//! Builds and runs the commands of the measured variants: a program without the recorder, and with it in its modes.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::{command, target};

/// The way in which a program is run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Variant {
    Alone,
    Recorded(&'static str),
}

/// The variants of a table: without the layer, and in each mode of recording.
pub const VARIANTS: [Variant; 4] = [
    Variant::Alone,
    Variant::Recorded("command-buffer"),
    Variant::Recorded("dispatch"),
    Variant::Recorded("dispatch-serialised"),
];

impl Variant {
    pub fn name(self) -> &'static str {
        match self {
            Variant::Alone => "no layer",
            Variant::Recorded(mode) => mode,
        }
    }
}

/// The Vulkan driver of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Driver {
    /// Mesa's software GPU.
    Lavapipe,
    /// The fake driver in the mode in which it does nothing, so that only the cost above the driver remains.
    Null,
}

impl Driver {
    pub fn set(self, command: &mut Command) -> Result<()> {
        match self {
            Driver::Lavapipe => {
                command.env("VK_LOADER_DRIVERS_SELECT", "lvp*");
            }
            Driver::Null => {
                command
                    .env("VK_DRIVER_FILES", null_driver()?)
                    .env("FAKE_VK_NULL", "1");
            }
        }
        Ok(())
    }
}

/// Returns the path of a file of the release build.
pub fn built(name: &str) -> Result<PathBuf> {
    target("release")
        .join(name)
        .canonicalize()
        .with_context(|| format!("{name} is not built"))
}

/// Writes the manifest of the fake driver, by which Vulkan's loader finds it, and returns its path.
fn null_driver() -> Result<PathBuf> {
    let manifest = scratch()?.join("null-driver.json");
    let library = built("libfake_vulkan_driver.so")?;
    let text = serde_json::json!({
        "file_format_version": "1.0.0",
        "ICD": { "library_path": library, "api_version": "1.3.280" },
    });
    std::fs::write(&manifest, text.to_string())?;
    Ok(manifest)
}

/// Returns the folder for traces, which are removed after the measurement.
pub fn scratch() -> Result<PathBuf> {
    let folder = target("bench");
    std::fs::create_dir_all(&folder).context("cannot make the folder for traces")?;
    Ok(folder.canonicalize()?)
}

/// Returns the path of the next trace, at which nothing exists.
pub fn trace() -> Result<PathBuf> {
    fresh("t.gapscope")
}

/// Returns a path in the folder for traces, at which nothing exists.
pub fn fresh(name: &str) -> Result<PathBuf> {
    let path = scratch()?.join(name);
    if path.is_dir() {
        std::fs::remove_dir_all(&path)?;
    } else if path.exists() {
        std::fs::remove_file(&path)?;
    }
    Ok(path)
}

/// Returns the command that runs `program` as a variant. A recording is written to [`trace`].
pub fn command(variant: Variant, driver: Driver, program: &[String]) -> Result<Command> {
    let mut command = match variant {
        Variant::Alone => Command::new(&program[0]),
        Variant::Recorded(mode) => {
            let mut command = Command::new(built("gapscope")?);
            command
                .args(["record", "--quiet", "--no-report", "--mode", mode, "-o"])
                .arg(trace()?)
                .arg("--")
                .arg(&program[0]);
            command
        }
    };
    command.args(&program[1..]);
    driver.set(&mut command)?;
    Ok(command)
}

/// Runs `planted`, the workload whose parts are known, and returns the line of JSON that it prints.
pub fn planted(variant: Variant, driver: Driver, arguments: &str) -> Result<Value> {
    let program = planted_program(arguments)?;
    last_line(&command::output(&mut command(variant, driver, &program)?)?)
}

pub fn planted_program(arguments: &str) -> Result<Vec<String>> {
    let mut program = vec![built("planted")?.to_string_lossy().into_owned()];
    program.extend(arguments.split(' ').map(str::to_owned));
    Ok(program)
}

/// Returns the command line of a real program; `None` if it is not installed.
pub fn client(name: &str, amount: &str) -> Result<Option<Vec<String>>> {
    if !target("clients").join(format!("{name}.installed")).exists() {
        eprintln!("{name} is not installed: its rows are missing");
        return Ok(None);
    }
    let clients = target("clients")
        .canonicalize()
        .context("no clients are installed")?;
    let script = PathBuf::from("tests/end-to-end/clients")
        .join(name)
        .join("run.py")
        .canonicalize()?;
    let shown = |path: PathBuf| path.to_string_lossy().into_owned();
    Ok(Some(vec![
        shown(clients.join("python/bin/python")),
        "-B".into(),
        shown(script),
        amount.into(),
    ]))
}

/// Returns the line of JSON with which a program's output ends.
pub fn last_line(stdout: &str) -> Result<Value> {
    let Some(line) = stdout.lines().rev().find(|line| line.starts_with('{')) else {
        bail!("the program printed no line of JSON: {stdout}");
    };
    serde_json::from_str(line).with_context(|| format!("cannot read {line}"))
}

/// Returns a number of the line by its name.
pub fn number(line: &Value, name: &str) -> Result<f64> {
    line[name]
        .as_f64()
        .with_context(|| format!("no number {name} in {line}"))
}
