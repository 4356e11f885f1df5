//! Tests `gapscope replay --shrink` on the stub: the new capture has the pages that launches need and no others, and its launches run
//! again bit for bit.

use super::Stub;
use super::captures::{assert_replays, captured};
use crate::product;
use crate::recording::{Run, assert_contains};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Shrinks a capture to `small.gapcapture` beside it.
fn shrink(capture: &Path, options: &[&str]) -> Run {
    let stub = Stub::new(&[]);
    let mut command = Command::new(product::built("gapscope"));
    command.env("LD_LIBRARY_PATH", stub.path(""));
    command
        .args(["replay", "--trust", "--shrink"])
        .arg(capture.with_file_name("small.gapcapture"))
        .args(options)
        .arg(capture);
    Run::from_command(&mut command)
}

/// Shrinks a capture, and returns the answer and the new capture.
fn shrunk(capture: &Path) -> (Value, PathBuf) {
    let run = shrink(capture, &["--json"]).ok();
    let answer: Value = serde_json::from_str(&run.stdout).expect("it is JSON");
    (
        answer["shrunk"].clone(),
        capture.with_file_name("small.gapcapture"),
    )
}

#[test]
fn exactly_the_pages_that_are_read_are_kept() {
    let captured = captured(&[], &["--launches", "0..2"], "sparse");
    let (answer, small) = shrunk(&captured.path);
    // Numbers on two pages, and four nodes of a list; what is only written is not needed. Two globals have a page each.
    assert_eq!(answer["pages"], 3 * 64 + 2, "{answer}");
    assert_eq!(answer["pages_kept"], 6, "{answer}");
    assert_eq!(answer["bytes_kept"], 6 * 4096, "{answer}");
    // Without the pages that have the addresses of nodes a launch fails.
    assert!(answer["failed_runs"].as_u64() > Some(0), "{answer}");
    let bytes = |capture: &Path| {
        let content = capture.join("content.bin");
        fs::metadata(content).expect("it is there").len()
    };
    assert!(
        bytes(&small) < bytes(&captured.path) / 5,
        "{}",
        bytes(&small)
    );
    assert_replays(&small, &[]);
    assert_replays(&small, &["--repeat", "3", "--tight"]);
    // A capture that is small stays as it is.
    let first = small.with_file_name("first.gapcapture");
    fs::rename(&small, &first).expect("renamed");
    let (again, _) = shrunk(&first);
    assert_eq!(again["pages_kept"], 6, "{again}");
}

#[test]
fn shrunk_captures_run_again_bit_for_bit() {
    let all: [(&[_], &[_], _); 6] = [
        (&[], &["--launches", "0..2"], "compute:walk_list:2"),
        (&[], &["--kernel", "table"], "compute:table:1"),
        (&[], &["--launches", "0..2"], "compute:through_global:2"),
        (&[], &["--launches", "1..3"], "compute:count:3"),
        (&[], &["--launches", "0..6", "--keep-outputs"], "pipeline:3"),
        (
            &[("ALLOCATIONS", "reuse")],
            &["--launches", "0..5"],
            "reallocate",
        ),
    ];
    for (settings, options, steps) in all {
        let captured = captured(settings, options, steps);
        let (answer, small) = shrunk(&captured.path);
        assert!(
            answer["pages_kept"].as_u64() <= answer["pages"].as_u64(),
            "{steps}: {answer}"
        );
        assert_replays(&small, &[]);
    }
}

#[test]
fn nothing_is_written_where_it_cannot_be_told_or_something_is_there() {
    let stub = Stub::new(&[]);
    let folder = tempfile::tempdir().expect("a temporary folder");
    let unsteady = folder.path().join("unsteady.gapcapture");
    let program = stub.program("compute:noise:1");
    let program = program.options(&["--kernel", "noise"]);
    program.capture(&unsteady).assert_status(0);
    let run = shrink(&unsteady, &[]);
    run.assert_status(1);
    assert_contains(&run.stderr, "it cannot be told which pages it needs");
    assert!(!unsteady.with_file_name("small.gapcapture").exists());
    let captured = captured(&[], &["--kernel", "scale"], "compute:scale:1");
    fs::create_dir(captured.path.with_file_name("small.gapcapture")).expect("a folder");
    let run = shrink(&captured.path, &[]);
    run.assert_status(1);
    assert_contains(&run.stderr, "exists: give another name to --shrink");
}
