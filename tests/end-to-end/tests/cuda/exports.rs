//! Tests `gapscope replay --export`: both programs of the folder run on the stub, compute what the captured program computed,
//! and say so where they do not.

use super::Stub;
use super::captures::{Captured, captured};
use crate::product;
use crate::recording::{Run, assert_contains};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use tempfile::TempDir;

/// A folder that was exported.
struct Export {
    path: PathBuf,
    answer: Value,
    stub: Stub,
    _folder: TempDir,
}

/// Exports a capture, without trust in it.
fn export(capture: &Path, to: &Path) -> Run {
    let mut command = Command::new(product::built("gapscope"));
    command.args(["replay", "--json", "--export"]).arg(to);
    // A capture of nobody: this user's list of own captures is an empty one.
    command.env("XDG_STATE_HOME", capture.with_file_name("none"));
    Run::from_command(command.arg(capture))
}

fn exported(captured: &Captured) -> Export {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("reproducer");
    let run = export(&captured.path, &path).ok();
    Export {
        path,
        answer: serde_json::from_str(&run.stdout).expect("it is JSON"),
        stub: Stub::new(&[]),
        _folder: folder,
    }
}

/// Builds the program in C++ once, without a CUDA toolkit, as it is the same for all captures.
fn program_in_cpp(source: &Path) -> PathBuf {
    static BUILT: OnceLock<TempDir> = OnceLock::new();
    let folder = BUILT.get_or_init(|| {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let mut compiler = Command::new("g++");
        compiler.args(["-Wall", "-Werror", "-x", "c++", "-o"]);
        compiler
            .arg(folder.path().join("run"))
            .arg(source)
            .arg("-ldl");
        Run::from_command(&mut compiler).ok();
        folder
    });
    folder.path().join("run")
}

impl Export {
    /// Runs a program on the stub, in another folder.
    fn run(&self, mut command: Command) -> Run {
        command.env("LD_LIBRARY_PATH", self.stub.path(""));
        Run::from_command(command.current_dir("/"))
    }

    fn run_python(&self) -> Run {
        let mut command = Command::new("python3");
        command.arg(self.path.join("run.py"));
        self.run(command)
    }

    /// Runs the program in C++.
    fn run_cpp(&self) -> Run {
        let program = self.path.join("run");
        fs::copy(program_in_cpp(&self.path.join("run.cu")), &program).expect("a copy");
        self.run(Command::new(program))
    }

    /// Checks what both programs say.
    fn assert_both(&self, status: i32, text: &str) {
        for run in [self.run_python(), self.run_cpp()] {
            let all = format!("{}{}", run.stdout, run.stderr);
            assert_eq!(run.status.code(), Some(status), "{all}");
            assert_contains(all, text);
        }
    }

    /// Changes a file of the folder.
    fn change(&self, name: &str, change: impl FnOnce(&mut Vec<u8>)) {
        let path = self.path.join(name);
        let mut bytes = fs::read(&path).expect("a file");
        change(&mut bytes);
        fs::write(&path, bytes).expect("it is writable");
    }
}

/// Options of captures, the steps of their programs, and the number of launches in them.
const THE_SAME: [(&[&str], &str, u64); 11] = [
    (&["--kernel", "saxpy"], "compute:saxpy:1:packed", 1),
    (
        &["--kernel", "attributes"],
        "compute:attributes:1:cooperative",
        1,
    ),
    (
        &["--kernel", "attributes"],
        "compute:attributes:1:cluster",
        1,
    ),
    (
        &["--kernel", "attributes"],
        "compute:attributes:1:shared",
        1,
    ),
    (&["--launches", "0..2"], "compute:walk_list:2", 2),
    (&["--launches", "1..3"], "compute:count:3", 2),
    (&["--launches", "0..2"], "compute:through_global:2", 2),
    (&["--kernel", "scale"], "global-address", 1),
    (&["--kernel", "saxpy"], "host-memory", 1),
    (&["--launches", "0..4"], "same-names:2", 4),
    (&["--launches", "0..6"], "pipeline:3", 6),
];

#[test]
fn both_programs_compute_the_same() {
    for (options, steps, launches) in THE_SAME {
        let export = exported(&captured(&[], options, steps));
        assert_eq!(export.answer["exported"]["launches"], launches, "{steps}");
        export.assert_both(
            0,
            "computed the same as when they were captured, bit for bit",
        );
    }
}

#[test]
fn memory_that_is_freed_and_allocated_anew_has_its_bytes_in_turn() {
    let settings = [("ALLOCATIONS", "reuse")];
    let export = exported(&captured(&settings, &["--launches", "0..5"], "reallocate"));
    export.assert_both(0, "All 5 launches computed the same");
}

#[test]
fn bytes_that_are_kept_are_compared_as_bytes() {
    let options = ["--kernel", "saxpy", "--keep-outputs"];
    let export = exported(&captured(&[], &options, "compute:saxpy:1"));
    let counts = &export.answer["exported"];
    assert!(counts["outputs"].as_u64() > Some(0), "{counts}");
    assert_eq!(counts["outputs"], counts["outputs_kept"]);
    export.assert_both(0, "All 1 launches computed the same");
}

#[test]
fn other_inputs_give_other_outputs() {
    for options in [
        &["--kernel", "saxpy"][..],
        &["--kernel", "saxpy", "--keep-outputs"],
    ] {
        let export = exported(&captured(&[], options, "compute:saxpy:1"));
        // The inputs are first in the data.
        export.change("data.bin", |data| data[..64].fill(0x41));
        export.assert_both(1, "Launch 0 (saxpy) differs: ");
    }
}

#[test]
fn a_launch_that_reaches_no_changed_memory_is_compared_with_the_memory_before() {
    let export = exported(&captured(&[], &["--kernel", "saxpy"], "compute:saxpy:1"));
    // Without the expected hashes, all memory must be as it was.
    export.change("index.txt", |index| {
        let lines = String::from_utf8_lossy(index).into_owned();
        let others = lines.lines().filter(|line| !line.starts_with("expect"));
        *index = others
            .flat_map(|line| [line.as_bytes(), b"\n"].concat())
            .collect();
    });
    export.assert_both(1, "Launch 0 (saxpy) differs: ");
}

#[test]
fn an_index_or_data_that_is_cut_off_is_named() {
    let export = exported(&captured(&[], &["--kernel", "saxpy"], "compute:saxpy:1"));
    export.change("data.bin", |data| data.truncate(data.len() - 1));
    export.assert_both(2, "data.bin is cut off");
    export.change("index.txt", |index| index.truncate(index.len() - 6));
    export.assert_both(2, "index.txt is cut off");
    export.change("index.txt", |index| index.extend(b"\nmemory x\n"));
    export.assert_both(2, "of index.txt cannot be read");
}

#[test]
fn nothing_is_overwritten() {
    let captured = captured(&[], &["--kernel", "saxpy"], "compute:saxpy:1");
    let folder = tempfile::tempdir().expect("a temporary folder");
    let run = export(&captured.path, folder.path());
    run.assert_status(1);
    assert_contains(&run.stderr, "exists, and nothing is overwritten");
    assert_eq!(fs::read_dir(folder.path()).expect("a folder").count(), 0);
}
