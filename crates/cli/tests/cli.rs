//! Tests the command as its users meet it: what it prints, where, and how it ends.

#[path = "cli/baseline.rs"]
mod baseline;
#[cfg(target_os = "linux")]
#[path = "cli/capture.rs"]
mod capture;
#[path = "cli/completions.rs"]
mod completions;
#[path = "cli/deps.rs"]
mod deps;
#[path = "cli/diff.rs"]
mod diff;
#[path = "cli/errors.rs"]
mod errors;
#[cfg(target_os = "linux")]
#[path = "cli/exit.rs"]
mod exit;
#[path = "cli/export.rs"]
mod export;
#[path = "cli/help.rs"]
mod help;
#[cfg(target_os = "linux")]
#[path = "cli/hostile.rs"]
mod hostile;
#[path = "cli/import.rs"]
mod import;
#[path = "cli/junit.rs"]
mod junit;
#[path = "cli/query.rs"]
mod query;
#[path = "cli/ranks.rs"]
mod ranks;
#[path = "cli/record.rs"]
mod record;
#[path = "cli/report.rs"]
mod report;
#[path = "cli/schema.rs"]
mod schema;
#[cfg(target_os = "linux")]
#[path = "cli/terminal.rs"]
mod terminal;
#[path = "cli/view.rs"]
mod view;
#[path = "cli/what_if.rs"]
mod what_if;

use gapscope_trace::{Trace, TraceWriter};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

const TRACE: &str = include_str!("../../report/tests/traces/host_bound.txt");

/// A folder for one test, with a file in place of the layer, because the programs of these tests use no Vulkan.
struct Workplace {
    folder: tempfile::TempDir,
}

impl Workplace {
    fn new() -> Workplace {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("hooks")).unwrap();
        std::fs::write(folder.path().join("hooks/libgapscope_vulkan.so"), "").unwrap();
        Workplace { folder }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_gapscope"));
        command
            .args(arguments)
            .current_dir(&self.folder)
            .env("GAPSCOPE_HOOKS_DIR", self.path("hooks"))
            .env("XDG_STATE_HOME", self.path("state"))
            .env_remove("COLUMNS")
            .env_remove("RUST_BACKTRACE");
        command
    }

    fn run(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().unwrap()
    }

    /// Writes the trace NAME.
    fn trace(&self, name: &str) {
        self.trace_of(name, TRACE);
    }

    fn trace_of(&self, name: &str, text: &str) {
        let trace = Trace::from_text(text).unwrap();
        let mut writer = TraceWriter::create(&self.path(name)).unwrap();
        *writer.tables_mut() = trace.tables;
        writer.finish(&trace.manifest).unwrap();
    }

    fn edit(&self, file: &str, from: &str, to: &str) {
        let text = std::fs::read_to_string(self.path(file)).unwrap();
        assert!(text.contains(from), "{file} lacks {from}");
        std::fs::write(self.path(file), text.replace(from, to)).unwrap();
    }
}

/// Returns the arguments of a command line. No argument has a space in it.
fn words(line: &str) -> Vec<&str> {
    line.split(' ').collect()
}

/// Checks the exit status of a command.
#[track_caller]
fn assert_status(output: &Output, status: i32) {
    assert_eq!(output.status.code(), Some(status), "{output:?}");
}

/// Checks that a text contains `part`.
#[track_caller]
fn assert_contains(text: impl AsRef<str>, part: &str) {
    let text = text.as_ref();
    assert!(text.contains(part), "{part:?} is not in: {text}");
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

fn exists(path: &Path) -> bool {
    path.symlink_metadata().is_ok()
}
