//! Recording runs of two commands in turns.

use super::inputs::Inputs;
use crate::args::Diff as Arguments;
use crate::failure::Failure;
use crate::{exit, layer, page};
use gapscope_recorder::{Layers, Names, Outcome, Recording, Start};
use gapscope_timeline::quantity;
use gapscope_trace::manifest::Exit;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Runs on disk; those that are not kept go with it.
pub struct Runs {
    folder: PathBuf,
    traces: [Vec<PathBuf>; 2],
    /// Absent where they are kept.
    temporary: Option<tempfile::TempDir>,
}

/// What a side is called.
const SIDES: [&str; 2] = ["before", "after"];

/// Records both commands `count` times, in turns: before, after, before, …
pub fn record(arguments: &Arguments, count: u32) -> Result<Runs, Failure> {
    let commands = commands(&arguments.commands)?;
    let (folder, temporary) = folder(arguments)?;
    let interrupted = Arc::new(AtomicBool::new(false));
    let caught = signal_hook::flag::register(signal_hook::consts::SIGINT, Arc::clone(&interrupted));
    caught.map_err(|error| Failure::new(format!("Ctrl-C cannot be caught: {error}")))?;
    let mut runs = Runs {
        folder,
        traces: [Vec::new(), Vec::new()],
        temporary,
    };
    for _ in 0..arguments.warm_up {
        for (side, command) in commands.iter().enumerate() {
            page::say(&format!("gapscope: warming up {}\n", SIDES[side]));
            warm_up(command, &interrupted)?;
        }
    }
    'runs: for run in 1..=count {
        for (side, command) in commands.iter().enumerate() {
            page::say(&format!(
                "gapscope: run {run} of {count}, {}\n",
                SIDES[side]
            ));
            let path = runs.folder.join(format!("{}-{run}.gapscope", SIDES[side]));
            let recorded = one(arguments, command, &path);
            if interrupted.load(Ordering::Relaxed) {
                // The trace of a program that was interrupted is of another length.
                let _ = std::fs::remove_dir_all(&path);
                break 'runs;
            }
            match recorded {
                Ok(()) => runs.traces[side].push(path),
                Err(failure) => {
                    return Err(runs.ended(&format!("run {run}, {}", SIDES[side]), failure));
                }
            }
        }
    }
    runs.even_out(interrupted.load(Ordering::Relaxed), count)?;
    Ok(runs)
}

impl Runs {
    /// Reads them.
    pub fn inputs(&self) -> Result<Inputs, Failure> {
        let inputs = Inputs::read(&self.traces[0], &self.traces[1])?;
        if self.temporary.is_none() {
            let folder = self.folder.display();
            page::say(&format!("gapscope: the traces are in {folder}\n"));
        }
        Ok(inputs)
    }

    /// After Ctrl-C both sides keep equally many.
    fn even_out(&mut self, interrupted: bool, count: u32) -> Result<(), Failure> {
        let [before, after] = [0, 1].map(|side| self.traces[side].len());
        let pairs = before.min(after);
        if !interrupted {
            return Ok(());
        }
        if pairs == 0 {
            return Err(Failure::new(
                "interrupted before both commands had run: there is nothing to compare",
            )
            .status(130));
        }
        for traces in &mut self.traces {
            traces.truncate(pairs);
        }
        page::say(&format!(
            "gapscope: interrupted: {} of {count} are compared\n",
            quantity::count_of(pairs as u64, "pair of runs", "pairs of runs")
        ));
        Ok(())
    }

    fn ended(&self, run: &str, failure: Failure) -> Failure {
        let kept = match (
            &self.temporary,
            self.traces.iter().map(Vec::len).sum::<usize>(),
        ) {
            (None, 1..) => format!("; the runs before it are in {}", self.folder.display()),
            _ => String::new(),
        };
        Failure::new(format!("{run}: {}{kept}", failure.sentence)).status(failure.status)
    }
}

/// Two commands with `--` between them.
fn commands(all: &[OsString]) -> Result<[Vec<OsString>; 2], Failure> {
    let sides: Vec<Vec<OsString>> = all
        .split(|word| word == "--")
        .map(<[OsString]>::to_vec)
        .collect();
    match <[Vec<OsString>; 2]>::try_from(sides) {
        Ok(sides) if sides.iter().all(|side| !side.is_empty()) => Ok(sides),
        _ => Err(Failure::new(
            "--runs takes two commands, each behind `--`: gapscope diff --runs 5 -- ./old --steps 10 -- ./new --steps 10",
        )
        .status(2)),
    }
}

fn folder(arguments: &Arguments) -> Result<(PathBuf, Option<tempfile::TempDir>), Failure> {
    let cannot = |path: &Path, error: &std::io::Error| {
        Failure::new(format!("{} cannot be made: {error}", path.display()))
    };
    match &arguments.output {
        Some(folder) => {
            std::fs::create_dir(folder).map_err(|error| cannot(folder, &error))?;
            Ok((folder.clone(), None))
        }
        None => {
            let temporary = tempfile::Builder::new().prefix("gapscope-diff-").tempdir();
            let temporary = temporary.map_err(|error| cannot(&std::env::temp_dir(), &error))?;
            Ok((temporary.path().to_owned(), Some(temporary)))
        }
    }
}

/// Runs a command without recording it: what it caches is there for both sides.
fn warm_up(command: &[OsString], interrupted: &AtomicBool) -> Result<(), Failure> {
    let name = command[0].to_string_lossy();
    let status = Command::new(&command[0])
        .args(&command[1..])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .status();
    if interrupted.load(Ordering::Relaxed) {
        return Err(
            Failure::new("interrupted while warming up: there is nothing to compare").status(130),
        );
    }
    let failed =
        |status: ExitStatus| Failure::new(format!("{name} ended with {status} while warming up"));
    match status {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(failed(status)),
        Err(error) => Err(
            Failure::new(format!("{name} cannot be run: {error}")).status(match error.kind() {
                std::io::ErrorKind::NotFound => 127,
                _ => 126,
            }),
        ),
    }
}

/// Records one run. What it prints goes to stderr: stdout is for the comparison.
fn one(arguments: &Arguments, command: &[OsString], path: &Path) -> Result<(), Failure> {
    let recording = Recording {
        command: command.to_vec(),
        output: path.to_owned(),
        mode: arguments.mode.into(),
        names: Names::default(),
        start: Start::AtOnce,
        time_limit: arguments.time_limit,
        layer: layer::find()?,
        cuda: layer::find_cuda()?,
        layers: Layers::default(),
        profile: Vec::new(),
        instructions: None,
        stdout_to_stderr: true,
        spool_limit_bytes: None,
        // Runs are compared by their times, in the way of which is nothing then.
        stack_rate_hz: None,
        counters: None,
        system_root: std::env::var_os("GAPSCOPE_SYSTEM_ROOT")
            .map_or_else(|| "/".into(), Into::into),
    };
    let recorded = recording.start()?.wait()?;
    if recorded.exit != Exit::Code(0) {
        let how = match recorded.exit {
            Exit::Code(code) => format!("exit status {code}"),
            Exit::Signal(signal) => format!("signal {signal}"),
        };
        let limit = if recorded.timed_out {
            ": the time limit ended it"
        } else {
            ""
        };
        return Err(Failure::new(format!("the command ended with {how}{limit}"))
            .status(exit::status(recorded.exit)));
    }
    match recorded.outcome {
        Outcome::NothingRecorded { reason, .. } => Err(Failure::new(reason)),
        _ => Ok(()),
    }
}
