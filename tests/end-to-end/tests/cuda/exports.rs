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

    /// Builds the program in C++, without a CUDA toolkit, and runs it.
    fn run_cpp(&self) -> Run {
        let program = self.path.join("run");
        let mut compiler = Command::new("g++");
        compiler.args(["-Wall", "-Werror", "-x", "c++", "-o"]);
        compiler
            .arg(&program)
            .arg(self.path.join("run.cu"))
            .arg("-ldl");
        Run::from_command(&mut compiler).ok();
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

macro_rules! the_same {
    ($($name:ident: $options:expr, $steps:literal, $launches:literal;)+) => {$(
        #[test]
        fn $name() {
            let export = exported(&captured(&[], &$options, $steps));
            assert_eq!(export.answer["exported"]["launches"], $launches);
            export.assert_both(0, "computed the same as when they were captured, bit for bit");
        }
    )+};
}

the_same! {
    packed_parameters: ["--kernel", "saxpy"], "compute:saxpy:1:packed", 1;
    a_cooperative_launch: ["--kernel", "attributes"], "compute:attributes:1:cooperative", 1;
    a_launch_in_clusters: ["--kernel", "attributes"], "compute:attributes:1:cluster", 1;
    a_launch_with_much_shared_memory: ["--kernel", "attributes"], "compute:attributes:1:shared", 1;
    a_linked_list: ["--launches", "0..2"], "compute:walk_list:2", 2;
    a_counter_in_a_global: ["--launches", "1..3"], "compute:count:3", 2;
    a_pointer_in_a_global: ["--launches", "0..2"], "compute:through_global:2", 2;
    a_parameter_that_points_into_a_global: ["--kernel", "scale"], "global-address", 1;
    page_locked_memory: ["--kernel", "saxpy"], "host-memory", 1;
    kernels_of_one_name: ["--launches", "0..4"], "same-names:2", 4;
    copies_and_fills_between_launches: ["--launches", "0..6"], "pipeline:3", 6;
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
