//! Runs programs for the other tests, with and without the recorder, and gives access to their output, trace and
//! report.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};

use gapscope_trace::{LossKind, Selection, Trace};
use serde_json::Value;
use tempfile::TempDir;

use crate::driver::{Driver, Lavapipe};
use crate::product;
use crate::truth::Truth;

/// A program with its arguments, driver and options of gapscope.
pub struct Program {
    command: Vec<OsString>,
    variables: Vec<(String, String)>,
    options: Vec<String>,
}

/// The output and exit status of a finished run.
#[derive(Debug)]
pub struct Run {
    pub status: ExitStatus,
    pub stdout: String,
    pub stderr: String,
}

/// A recorded run with its trace.
pub struct Recording {
    pub run: Run,
    folder: TempDir,
}

/// Returns the program `planted` with the words of `arguments`, on the software GPU.
pub fn planted(arguments: &str) -> Program {
    Program::planted(arguments, &Lavapipe)
}

/// Returns the arguments of a command line. No argument has a space in it.
pub fn words(line: &str) -> Vec<&str> {
    line.split(' ').collect()
}

/// Checks that a text contains `part`.
#[track_caller]
pub fn assert_contains(text: impl AsRef<str>, part: &str) {
    let text = text.as_ref();
    assert!(text.contains(part), "{part:?} is not in: {text}");
}

impl Program {
    pub fn new<S: AsRef<OsStr>>(
        command: impl IntoIterator<Item = S>,
        driver: &dyn Driver,
    ) -> Program {
        Program {
            command: command
                .into_iter()
                .map(|word| word.as_ref().to_owned())
                .collect(),
            variables: driver.variables(),
            options: Vec::new(),
        }
    }

    /// Returns the program `planted` with the words of `arguments`.
    pub fn planted(arguments: &str, driver: &dyn Driver) -> Program {
        let program = product::built("planted").into_os_string();
        Program::new(
            [program]
                .into_iter()
                .chain(arguments.split(' ').map(OsString::from)),
            driver,
        )
    }

    pub fn variable(mut self, name: &str, value: impl AsRef<OsStr>) -> Program {
        self.variables.push((
            name.to_owned(),
            value.as_ref().to_string_lossy().into_owned(),
        ));
        self
    }

    /// Adds options of `gapscope record`.
    pub fn options(mut self, options: &[&str]) -> Program {
        self.options
            .extend(options.iter().map(|&option| option.to_owned()));
        self
    }

    fn command(&self, program: &OsStr) -> Command {
        let mut command = Command::new(program);
        command.stdin(Stdio::null());
        // Variables of the developer's own environment would change the test.
        for variable in [
            "VK_DRIVER_FILES",
            "VK_ICD_FILENAMES",
            "VK_INSTANCE_LAYERS",
            "VK_ADD_LAYER_PATH",
            "VK_LAYER_PATH",
            "CUDA_INJECTION64_PATH",
            "NVTX_INJECTION64_PATH",
            "RANK",
            "WORLD_SIZE",
        ] {
            command.env_remove(variable);
        }
        command.envs(self.variables.iter().map(|(name, value)| (name, value)));
        command
    }

    /// Runs the program without gapscope.
    pub fn run(&self) -> Run {
        Run::from_command(self.command(&self.command[0]).args(&self.command[1..]))
    }

    /// Runs the program by gapscope with a command's words, such as those of `gapscope capture`.
    pub fn run_by(&self, words: &[&str]) -> Run {
        let mut command = self.command(product::built("gapscope").as_os_str());
        Run::from_command(command.args(words).arg("--").args(&self.command))
    }

    /// Records the program into a new temporary folder.
    pub fn record(&self) -> Recording {
        self.record_in(tempfile::tempdir().expect("a temporary folder"))
    }

    /// Records the program into a new temporary folder. The program must succeed.
    pub fn recorded(&self) -> Recording {
        self.record().ok()
    }

    /// Runs the program with `gapscope capture`, whose output is `capture`.
    pub fn capture(&self, capture: &Path) -> Run {
        Run::from_command(&mut self.capture_command(capture))
    }

    /// Returns the command that [`Program::capture`] runs.
    pub fn capture_command(&self, capture: &Path) -> Command {
        let mut command = self.command(product::built("gapscope").as_os_str());
        command.args(["capture", "-o"]).arg(capture);
        command.args(&self.options).arg("--").args(&self.command);
        command
    }

    /// Returns the command with which [`Program::record_in`] records the program.
    pub fn record_command(&self, folder: &Path) -> Command {
        let mut command = self.command(product::built("gapscope").as_os_str());
        command
            .args(["record", "--no-report", "-o"])
            .arg(folder.join("t.gapscope"));
        command.args(&self.options).arg("--").args(&self.command);
        command
    }

    /// Records the program into `folder`, as the trace `t.gapscope`.
    pub fn record_in(&self, folder: TempDir) -> Recording {
        Recording {
            run: Run::from_command(&mut self.record_command(folder.path())),
            folder,
        }
    }
}

impl Run {
    pub fn from_command(command: &mut Command) -> Run {
        let output = command.output().expect("the program starts");
        Run {
            status: output.status,
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }

    /// Runs a command while `folder` is a disk of its own with `kib` KiB, and then the lines of a shell, to which `$0` is
    /// that folder. The status is that of the command. `None` where this process may not make such a disk.
    pub fn on_small_disk(
        command: &Command,
        folder: &Path,
        kib: u32,
        afterwards: &str,
    ) -> Option<Run> {
        let mut unshared = Command::new("unshare");
        unshared.args(["--mount", "--map-root-user", "sh", "-c"]);
        unshared
            .arg(format!(
                "mount -t tmpfs -o size={kib}k none \"$0\" || exit 1\n\"$@\"\nstatus=$?\n{afterwards}\nexit $status"
            ))
            .arg(folder);
        unshared.arg(command.get_program()).args(command.get_args());
        for (name, value) in command.get_envs() {
            match value {
                Some(value) => unshared.env(name, value),
                None => unshared.env_remove(name),
            };
        }
        let run = Run::from_command(&mut unshared);
        let refused = run.stderr.contains("unshare:") || run.stderr.contains("mount:");
        if refused {
            eprintln!("skipped: {}", run.stderr);
        }
        (!refused).then_some(run)
    }

    /// Checks the exit status.
    #[track_caller]
    pub fn assert_status(&self, status: i32) {
        assert_eq!(self.status.code(), Some(status), "{}", self.stderr);
    }

    /// Returns the run, which must have succeeded.
    pub fn ok(self) -> Run {
        assert!(
            self.status.success(),
            "{}\n{}\n{}",
            self.status,
            self.stdout,
            self.stderr
        );
        self
    }

    pub fn truth(&self) -> Truth {
        Truth::parse(&self.stdout)
    }
}

impl Recording {
    /// Returns the recording, whose program must have succeeded.
    pub fn ok(self) -> Recording {
        Recording {
            run: self.run.ok(),
            folder: self.folder,
        }
    }

    pub fn path(&self) -> PathBuf {
        self.folder.path().join("t.gapscope")
    }

    pub fn truth(&self) -> Truth {
        self.run.truth()
    }

    /// Returns the trace, which must open without a diagnostic. Its ledger may count stacks that changed while they
    /// were read, which happens now and then and is no loss of GPU work; this count is removed.
    pub fn trace(&self) -> Trace {
        assert!(self.path().exists(), "{}", self.run.stderr);
        open(&self.path())
    }

    /// Returns the output of `gapscope report --full` as one line.
    pub fn text(&self) -> String {
        let mut command = Command::new(product::built("gapscope"));
        let report = Run::from_command(command.args(["report", "--full"]).arg(self.path()))
            .ok()
            .stdout;
        report.split_whitespace().collect::<Vec<_>>().join(" ")
    }

    /// Returns the output of `gapscope report --json`.
    pub fn report(&self) -> Value {
        report(&self.path(), &[])
    }
}

/// Opens a trace as [`open_with_lost_samples`] does, without the count of samples that were not taken: a busy machine, or a library
/// whose symbols are being read, costs some now and then, and they are no loss of GPU work.
pub fn open(path: &Path) -> Trace {
    let mut trace = open_with_lost_samples(path);
    let losses = &mut trace.manifest.losses;
    losses.retain(|loss| loss.kind != LossKind::StackSamples);
    trace
}

/// Opens a trace, which must be complete and have no diagnostic.
pub fn open_with_lost_samples(path: &Path) -> Trace {
    let read = gapscope_trace::read(path, &Selection::all());
    let (trace, diagnostics) = read.unwrap_or_else(|error| panic!("{error}"));
    assert!(diagnostics.is_empty(), "{diagnostics:?}");
    assert!(trace.manifest.complete, "the trace is complete");
    trace
}

/// Returns the output of `gapscope report --json` for a trace.
pub fn report(trace: &Path, options: &[&str]) -> Value {
    let mut command = Command::new(product::built("gapscope"));
    let run = Run::from_command(command.args(["report", "--json"]).args(options).arg(trace)).ok();
    serde_json::from_str(&run.stdout).expect("the report is JSON")
}
