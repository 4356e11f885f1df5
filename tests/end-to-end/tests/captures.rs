//! Runs programs under `gapscope capture` for the other tests, and replays and analyses their captures.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;
use tempfile::TempDir;

use crate::driver::{Driver, Lavapipe};
use crate::product;
use crate::recording::{Program, Run};

/// A program that ran, and the capture of a window of its work.
pub struct Captured {
    pub run: Run,
    folder: TempDir,
}

impl Captured {
    /// Runs a program under `gapscope capture` with the options `window`.
    pub fn new(program: &Program, window: &[&str]) -> Captured {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("t.gapcapture");
        let path = path.to_str().expect("a folder with a plain name");
        let words = [&["capture", "-o", path], window].concat();
        Captured {
            run: program.run_by(&words),
            folder,
        }
    }

    pub fn path(&self) -> PathBuf {
        self.folder.path().join("t.gapcapture")
    }

    /// Returns the capture's record of how the window ended, which is the last but one.
    pub fn end(&self) -> Value {
        let records = self.records();
        let end = records.lines().rev().find(|line| line.contains("\"end\""));
        serde_json::from_str::<Value>(end.expect("it has an end")).expect("it is JSON")["end"]
            .take()
    }

    pub fn records(&self) -> String {
        fs::read_to_string(self.path().join("capture.jsonl")).expect("the records can be read")
    }
}

/// Runs `gapscope replay --json` on the software GPU, and returns its exit status and answer.
pub fn replay(capture: &Path) -> (Option<i32>, Value) {
    let run = gapscope(&["replay", "--json"], capture);
    let found = serde_json::from_str(&run.stdout);
    let found = found.unwrap_or_else(|error| panic!("{error}\n{}\n{}", run.stdout, run.stderr));
    (run.status.code(), found)
}

/// Replays a capture, all of whose compared outputs must be equal, and returns the answer.
pub fn replay_equal(capture: &Path) -> Value {
    let (status, found) = replay(capture);
    assert_eq!(status, Some(0), "{found}");
    assert_eq!(found["outputs_equal"], found["outputs_compared"], "{found}");
    assert!(found["outputs_compared"].as_u64() > Some(0), "{found}");
    found
}

/// Returns the answer of `gapscope deps --json`.
pub fn dependencies(capture: &Path) -> Value {
    let run = gapscope(&["deps", "--json"], capture).ok();
    serde_json::from_str(&run.stdout).expect("it is JSON")
}

fn gapscope(words: &[&str], capture: &Path) -> Run {
    let mut command = Command::new(product::built("gapscope"));
    command.envs(Lavapipe.variables());
    Run::from_command(command.args(words).arg(capture))
}
