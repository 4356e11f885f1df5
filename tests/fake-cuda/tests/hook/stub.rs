//! Runs the test program on the stub, recorded.

use crate::recorded::{self, Recorded};
use gapscope_spool::event::Span;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};

/// A folder with the stub under the names of the real libraries, and with the spool.
pub struct Stub {
    folder: tempfile::TempDir,
    variables: Vec<(String, Option<String>)>,
}

/// The result of a run.
pub struct Outcome {
    pub status: ExitStatus,
    pub output: String,
    /// The stub's truth log.
    pub truth: Vec<Truth>,
    /// The recorded processes, the first one first.
    pub processes: Vec<Recorded>,
}

/// A line of the stub's truth log.
#[derive(Debug, Clone)]
pub struct Truth {
    pub kind: String,
    pub correlation: u32,
    pub start_ns: i64,
    pub end_ns: i64,
    pub name: String,
    pub more: serde_json::Value,
}

fn library(name: &str) -> PathBuf {
    let program = std::env::current_exe().expect("this program");
    let found = program
        .ancestors()
        .skip(1)
        .map(|folder| folder.join(name))
        .find(|path| path.exists());
    found.unwrap_or_else(|| panic!("{name} is not built"))
}

/// Returns the library under test.
pub fn hook() -> PathBuf {
    library("libgapscope_cuda.so")
}

impl Stub {
    pub fn new() -> Stub {
        let folder = tempfile::tempdir().expect("a folder");
        let stub = library("libfake_cuda.so");
        for name in ["libcuda.so.1", "libcupti.so.13"] {
            std::os::unix::fs::symlink(&stub, folder.path().join(name)).expect("a link");
        }
        std::fs::create_dir(folder.path().join("spool")).expect("a folder");
        let path = |name: &str| folder.path().join(name).display().to_string();
        let hook = hook().display().to_string();
        let variables = [
            ("LD_LIBRARY_PATH", path("")),
            ("GAPSCOPE_SPOOL", path("spool")),
            ("FAKE_CUDA_TRUTH", path("truth")),
            ("CUDA_INJECTION64_PATH", hook.clone()),
            ("NVTX_INJECTION64_PATH", hook),
        ];
        Stub {
            variables: variables
                .map(|(name, value)| (name.to_owned(), Some(value)))
                .into(),
            folder,
        }
    }

    /// Sets a variable in the program's environment.
    pub fn with(mut self, name: &str, value: &str) -> Stub {
        self.variables
            .push((name.to_owned(), Some(value.to_owned())));
        self
    }

    /// Removes a variable.
    pub fn without(mut self, name: &str) -> Stub {
        self.variables.push((name.to_owned(), None));
        self
    }

    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Runs the program to its end.
    pub fn run(&self, steps: &str) -> Outcome {
        let mut command = Command::new(env!("CARGO_BIN_EXE_fake-cuda-program"));
        command.args(steps.split(' '));
        for variable in [
            "CUDA_HOME",
            "CUDA_PATH",
            "VIRTUAL_ENV",
            "CONDA_PREFIX",
            "PYTHONPATH",
        ] {
            command.env_remove(variable);
        }
        for (name, value) in &self.variables {
            match value {
                Some(value) => command.env(name, value),
                None => command.env_remove(name),
            };
        }
        let output = command.output().expect("the program runs");
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(
            errors, "",
            "the library prints nothing and the program does not complain"
        );
        Outcome {
            status: output.status,
            output: String::from_utf8_lossy(&output.stdout).into_owned(),
            truth: self.truth(),
            processes: recorded::all(&self.folder.path().join("spool")),
        }
    }

    fn truth(&self) -> Vec<Truth> {
        let text = std::fs::read_to_string(self.folder.path().join("truth")).unwrap_or_default();
        let lines = text.lines().map(|line| {
            let more: serde_json::Value = serde_json::from_str(line).expect("a whole line");
            let number = |name: &str| more[name].as_i64().expect("a number");
            Truth {
                kind: more["kind"].as_str().expect("a text").to_owned(),
                correlation: number("correlation") as u32,
                start_ns: number("start_ns"),
                end_ns: number("end_ns"),
                name: more["name"].as_str().unwrap_or_default().to_owned(),
                more,
            }
        });
        lines.collect()
    }
}

/// Returns a call's name without the parts that tell its versions apart.
fn plain(name: &str) -> &str {
    let name = match name.rsplit_once("_v") {
        Some((plain, version)) if version.bytes().all(|b| b.is_ascii_digit()) => plain,
        _ => name,
    };
    name.trim_end_matches("_ptsz")
}

impl Truth {
    pub fn span(&self) -> Span {
        Span::between(self.start_ns, self.end_ns)
    }

    pub fn number(&self, name: &str) -> u32 {
        let number = self.more[name].as_u64().expect("a number");
        u32::try_from(number).expect("a small number")
    }

    /// Returns the name of a call as it is recorded: launches of the runtime by the driver's call inside.
    pub fn recorded_name(&self) -> &str {
        let launches = ["cudaLaunchKernel", "cudaGraphLaunch"];
        let inside = launches.iter().any(|name| self.name.starts_with(name));
        plain(match inside {
            true => self.more["inside"].as_str().expect("a name"),
            false => &self.name,
        })
    }

    pub fn asks(&self) -> bool {
        plain(&self.name).ends_with("Query")
    }
}

impl Outcome {
    /// Returns the only recorded process, which ended well and of which nothing is missing.
    pub fn whole(&self) -> &Recorded {
        assert!(self.status.success(), "{}: {}", self.status, self.output);
        let process = self.only();
        assert_eq!(process.losses, [], "nothing is lost");
        process.assert_undamaged();
        assert!(process.ended, "its end is recorded");
        process
    }

    /// Returns the only recorded process.
    pub fn only(&self) -> &Recorded {
        assert_eq!(self.processes.len(), 1, "recorded processes");
        &self.processes[0]
    }

    pub fn truth_of(&self, kind: &str) -> Vec<&Truth> {
        self.truth.iter().filter(|t| t.kind == kind).collect()
    }
}
