//! Records runs of two commands in turns, as the traces of the two sides of a comparison.

use super::inputs::Inputs;
use crate::args::Diff as Arguments;
use crate::failure::Failure;
use crate::record::system_root;
use crate::{exit, hook_libraries, page};
use gapscope_recorder::{LabelInjection, Names, Recording, Start};
use gapscope_timeline::quantity;
use gapscope_trace::manifest::Exit;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// The recorded runs of both sides. If they are not kept, they are removed when this value is dropped.
pub struct RecordedRuns {
    /// The folder with the traces.
    folder: PathBuf,
    /// The traces of each side, before and after.
    traces: [Vec<PathBuf>; 2],
    /// The folder of the runs; `None` if the runs are kept in a folder of the user's.
    temporary: Option<tempfile::TempDir>,
}

/// The names of the sides in messages and file names.
const SIDES: [&str; 2] = ["before", "after"];

/// Records both commands `count` times, in turns: before, after, before, … Ctrl-C ends it early.
pub fn record(arguments: &Arguments, count: u32) -> Result<RecordedRuns, Failure> {
    let commands = commands(&arguments.commands)?;
    let (folder, temporary) = folder(arguments)?;
    let interrupted = Arc::new(AtomicBool::new(false));
    let caught = signal_hook::flag::register(signal_hook::consts::SIGINT, Arc::clone(&interrupted));
    caught.map_err(|error| failure!("Ctrl-C cannot be caught: {error}"))?;
    let mut runs = RecordedRuns {
        folder,
        traces: [Vec::new(), Vec::new()],
        temporary,
    };
    for _ in 0..arguments.warm_up {
        for (side, command) in commands.iter().enumerate() {
            page::note(format!("warming up {}", SIDES[side]));
            warm_up(command, &interrupted)?;
        }
    }
    'runs: for run in 1..=count {
        for (side, command) in commands.iter().enumerate() {
            page::note(format!("run {run} of {count}, {}", SIDES[side]));
            let path = runs.folder.join(format!("{}-{run}.gapscope", SIDES[side]));
            let recorded = record_one(arguments, command, &path);
            if interrupted.load(Ordering::Relaxed) {
                // The trace of an interrupted program covers less work than the others.
                let _ = std::fs::remove_dir_all(&path);
                break 'runs;
            }
            match recorded {
                Ok(()) => runs.traces[side].push(path),
                Err(failure) => {
                    return Err(
                        runs.with_kept_runs(&format!("run {run}, {}", SIDES[side]), failure)
                    );
                }
            }
        }
    }
    runs.even_out(interrupted.load(Ordering::Relaxed), count)?;
    Ok(runs)
}

impl RecordedRuns {
    /// Reads the figures of the runs.
    pub fn inputs(&self) -> Result<Inputs, Failure> {
        let inputs = Inputs::read(&self.traces[0], &self.traces[1])?;
        if self.temporary.is_none() {
            let folder = self.folder.display();
            page::note(format!("the traces are in {folder}"));
        }
        Ok(inputs)
    }

    /// Leaves both sides with the same number of runs after Ctrl-C; an error if that is none.
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
            .status(exit::INTERRUPTED));
        }
        for traces in &mut self.traces {
            traces.truncate(pairs);
        }
        page::note(format!(
            "interrupted: {} of {count} are compared",
            quantity::count_of(pairs as u64, "pair of runs", "pairs of runs")
        ));
        Ok(())
    }

    /// Adds to a failure the run that failed, and the folder of the runs before it if they are kept.
    fn with_kept_runs(&self, run: &str, failure: Failure) -> Failure {
        let kept = match (
            &self.temporary,
            self.traces.iter().map(Vec::len).sum::<usize>(),
        ) {
            (None, 1..) => format!("; the runs before it are in {}", self.folder.display()),
            _ => String::new(),
        };
        failure!("{run}: {}{kept}", failure.sentence).status(failure.status)
    }
}

/// Splits the arguments into two commands at `--`.
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
        .status(exit::USAGE)),
    }
}

/// Makes the folder of the runs: the one that the user names, else a temporary one, which is returned as well.
fn folder(arguments: &Arguments) -> Result<(PathBuf, Option<tempfile::TempDir>), Failure> {
    let cannot = |path: &Path, error: &std::io::Error| {
        failure!("{} cannot be made: {error}", path.display())
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

/// Runs a command without recording it, so that caches are warm for both sides.
fn warm_up(command: &[OsString], interrupted: &AtomicBool) -> Result<(), Failure> {
    let name = command[0].to_string_lossy();
    let status = Command::new(&command[0])
        .args(&command[1..])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .status();
    if interrupted.load(Ordering::Relaxed) {
        return Err(
            Failure::new("interrupted while warming up: there is nothing to compare")
                .status(exit::INTERRUPTED),
        );
    }
    let failed = |status: ExitStatus| failure!("{name} ended with {status} while warming up");
    match status {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(failed(status)),
        Err(error) => Err(
            failure!("{name} cannot be run: {error}").status(match error.kind() {
                std::io::ErrorKind::NotFound => exit::NOT_FOUND,
                _ => exit::NOT_EXECUTABLE,
            }),
        ),
    }
}

/// Records one run. The command prints to stderr, because stdout is for the comparison.
fn record_one(arguments: &Arguments, command: &[OsString], path: &Path) -> Result<(), Failure> {
    let recording = Recording {
        command: command.to_vec(),
        output: path.to_owned(),
        keep_arguments: true,
        mode: arguments.mode.into(),
        names: Names::default(),
        start: Start::AtOnce,
        time_limit: arguments.time_limit,
        layer: hook_libraries::find_layer()?,
        cuda: hook_libraries::find_cuda()?,
        labels: LabelInjection::default(),
        profile: Vec::new(),
        instructions: None,
        stdout_to_stderr: true,
        spool_limit_bytes: None,
        // Runs are compared by their times, so that recordings which cost time are off.
        stack_rate_hz: None,
        counters: None,
        system_root: system_root(),
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
        return Err(
            failure!("the command ended with {how}{limit}").status(exit::status(recorded.exit))
        );
    }
    match recorded.outcome.without_work() {
        Some((reason, _)) => Err(Failure::new(reason)),
        None => Ok(()),
    }
}
