//! Tests that errors at the command line are reported in one clear sentence.

use std::fs;
use std::process::Command;

use crate::driver::{Driver, Lavapipe};
use crate::product;
use crate::recording::{Program, Run, assert_contains, planted};

fn gapscope(arguments: &[&str]) -> Run {
    let mut command = Command::new(product::built("gapscope"));
    Run::from_command(command.args(arguments).envs(Lavapipe.variables()))
}

/// Checks that standard error has one sentence with these words, and that the exit status is not 0.
fn assert_refused(run: &Run, words: &[&str]) {
    assert!(!run.status.success(), "{}", run.stdout);
    for word in words {
        assert!(run.stderr.contains(word), "no {word:?} in: {}", run.stderr);
    }
    let lines = run
        .stderr
        .lines()
        .filter(|line| !line.trim().is_empty())
        .count();
    assert!(lines <= 2, "one sentence: {}", run.stderr);
}

#[test]
fn a_missing_command_is_named() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let out = folder.path().join("t.gapscope");
    let run = gapscope(&[
        "record",
        "-o",
        out.to_str().expect("UTF-8"),
        "--",
        "no-such-program",
    ]);
    assert_refused(&run, &["no-such-program"]);
    assert_eq!(run.status.code(), Some(127));
    assert!(!out.exists());
}

#[test]
fn an_existing_output_is_not_overwritten() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let out = folder.path().join("t.gapscope");
    fs::create_dir(&out).expect("a folder");
    fs::write(out.join("precious"), "kept").expect("a file");
    let run = gapscope(&["record", "-o", out.to_str().expect("UTF-8"), "--", "true"]);
    assert_refused(&run, &["t.gapscope", "exists"]);
    assert_eq!(
        fs::read_to_string(out.join("precious")).expect("the file"),
        "kept"
    );
}

#[test]
fn a_program_without_vulkan_is_said_to_have_none() {
    let recording = Program::new(["true"], &Lavapipe).record();
    assert_contains(&recording.run.stderr, "Vulkan");
}

#[test]
fn a_folder_that_is_no_trace_is_refused() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().to_str().expect("UTF-8");
    assert_refused(&gapscope(&["report", path]), &[path]);
    assert_refused(&gapscope(&["info", path]), &[path]);
}

#[test]
fn a_newer_trace_is_refused_with_both_versions() {
    let recording = planted("steady").recorded();
    let manifest = recording.path().join("trace.json");
    let mut json: serde_json::Value =
        serde_json::from_str(&fs::read_to_string(&manifest).expect("the manifest")).expect("JSON");
    json["format_version"] = 999.into();
    fs::write(&manifest, json.to_string()).expect("written");
    assert_refused(
        &gapscope(&["report", recording.path().to_str().expect("UTF-8")]),
        &["999"],
    );
}

/// The program's standard output is the same as without the recorder.
#[test]
fn standard_output_is_the_programs_alone() {
    let recording = Program::new(
        ["sh", "-c", "printf 'a\\0b'; printf err >&2; exit 3"],
        &Lavapipe,
    )
    .record();
    assert_eq!(recording.run.stdout, "a\0b");
    assert!(recording.run.stderr.contains("err"));
    assert_eq!(recording.run.status.code(), Some(3));
}

#[test]
fn all_reports_state_mode_and_bound() {
    let recording = planted("steady --n 5 --iterations 20").recorded();
    let path = recording.path();
    let path = path.to_str().expect("UTF-8");
    for arguments in [&["report", path][..], &["report", "--markdown", path]] {
        let text = gapscope(arguments).ok().stdout;
        assert_contains(&text, "dispatch");
        assert!(
            text.contains('±') || text.contains("within"),
            "an error bound: {text}"
        );
    }
    let report = recording.report();
    for key in [
        "wall_ns",
        "gpu_busy_ns",
        "verdict",
        "dispatch_count",
        "command_buffer_count",
        "transfer_bytes",
    ] {
        assert!(!report[key].is_null(), "{key}: {report}");
    }
    for key in ["sampling_mode", "clock_error_ns"] {
        assert!(!report[key].is_null(), "{key}: {report}");
    }
    for key in ["devices", "kernels", "labels", "gaps", "losses"] {
        assert!(report[key].is_array(), "{key}: {report}");
    }
    let kernel = &report["kernels"][0];
    for key in [
        "name", "count", "total_ns", "mean_ns", "p50_ns", "p99_ns", "min_ns", "max_ns",
    ] {
        assert!(!kernel[key].is_null(), "{key}: {kernel}");
    }
}
