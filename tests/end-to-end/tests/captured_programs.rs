//! Tests that unmodified programs of others do the same while they are captured, and that their captures replay bit
//! for bit.

use std::fs;

use serde_json::Value;

use crate::captures::{self, Captured};
use crate::client;
use crate::driver::Lavapipe;
use crate::product;
use crate::real_programs::last_line;
use crate::recording::Program;

/// Captures a window of a program and checks that the program did the same as without it, that the replay is equal
/// bit for bit, and that the window has no hazards. Returns the capture and the replay's answer.
fn check(program: &Program, window: &[&str], told: impl Fn(&str) -> Value) -> (Captured, Value) {
    let alone = program.run().ok();
    let captured = Captured::new(program, window);
    assert!(captured.run.status.success(), "{}", captured.run.stderr);
    assert_eq!(told(&captured.run.stdout), told(&alone.stdout));
    assert_eq!(
        captured.end()["reason"],
        "complete",
        "{}",
        captured.run.stderr
    );
    let replayed = captures::replay_equal(&captured.path());
    let found = captures::dependencies(&captured.path());
    assert_eq!(found["hazards"], Value::Array(Vec::new()), "of {window:?}");
    (captured, replayed)
}

/// Checks a capture of all of a client's work and one of a window, and returns the answers of their replays in this
/// order; `None` if the client is not installed.
fn check_client(name: &str, window: &[&str]) -> Option<[Value; 2]> {
    let program = client::program(name)?;
    let (whole, all) = check(&program, &[], last_line);
    let (part, some) = check(&program, window, last_line);
    let counts = [&all, &some].map(|replayed| replayed["dispatch_count"].as_u64());
    assert!(counts[1] > Some(0) && counts[1] < counts[0], "{counts:?}");
    assert!(part.records().len() < whole.records().len());
    if let Some(dispatches) = last_line(&whole.run.stdout)["dispatches"].as_u64() {
        assert_eq!(counts[0], Some(dispatches), "dispatches of {name}");
    }
    Some([all, some])
}

#[test]
fn wgpu_py() {
    let Some([_, window]) = check_client("wgpu", &["--submissions", "2..4"]) else {
        return;
    };
    assert_eq!(window["dispatch_count"], 8);
    assert_eq!(window["submission_count"], 2);
}

#[test]
fn dawn() {
    let Some([_, window]) = check_client("dawn", &["--label", "step 3"]) else {
        return;
    };
    assert_eq!(window["dispatch_count"], 4);
}

#[test]
fn taichi() {
    // The number of Taichi's submissions depends on time, but its dispatches are those of its script.
    check_client("taichi", &["--dispatches", "3..4"]);
}

#[test]
fn ncnn() {
    check_client("ncnn", &["--dispatches", "30..31"]);
}

#[test]
fn llama_cpp() {
    let Some([_, window]) = check_client("llama", &["--dispatches", "300..310"]) else {
        return;
    };
    // A window consists of whole submissions, of a few dispatches each.
    let count = window["dispatch_count"].as_u64();
    assert!((Some(10)..Some(30)).contains(&count), "{window}");
}

#[test]
fn onnx_runtime_on_webgpu() {
    check_client("onnxruntime", &["--dispatches", "8..10"]);
}

#[test]
fn tinygrad_on_webgpu() {
    check_client("tinygrad", &["--dispatches", "8..10"]);
}

#[test]
fn fusion() {
    let program = || {
        let program = product::built("fusion").into_os_string();
        Program::new([program, "--iterations".into(), "2".into()], &Lavapipe)
    };
    let told = |stdout: &str| {
        let check = stdout.lines().find(|line| line.starts_with("Check: "));
        Value::from(check.expect("it checks its results"))
    };
    let (_, all) = check(&program(), &[], told);
    let (_, some) = check(&program(), &["--submissions", "5..7"], told);
    assert!(some["dispatch_count"].as_u64() < all["dispatch_count"].as_u64());
    assert_eq!(some["submission_count"], 2);
}

/// The comparison of outputs finds that a dispatch is missing.
#[test]
fn a_replay_without_one_of_its_dispatches_differs() {
    let Some(program) = client::program("wgpu") else {
        return;
    };
    let captured = Captured::new(&program, &["--submissions", "2..4"]);
    let records = captured.records();
    let groups = r#""groups":{"direct":[1024,1,1]}"#;
    assert!(records.contains(groups), "{records}");
    let fewer = records.replacen(groups, r#""groups":{"direct":[1023,1,1]}"#, 1);
    let lines = fewer
        .lines()
        .filter(|line| !line.starts_with(r#"{"check""#));
    let lines: String = lines.flat_map(|line| [line, "\n"]).collect();
    fs::write(captured.path().join("capture.jsonl"), lines).expect("it can be written");
    let (status, found) = captures::replay(&captured.path());
    assert_ne!(status, Some(0), "{found}");
    let [equal, compared] = ["outputs_equal", "outputs_compared"].map(|of| found[of].as_u64());
    assert!(equal < compared, "{found}");
}

#[test]
fn the_kept_capture_runs() {
    let kept = product::source("../../fixtures/v1.gapcapture");
    let replayed = captures::replay_equal(&kept);
    assert_eq!(replayed["dispatch_count"], 2);
    assert_eq!(replayed["outputs_compared"], 2);
    let found = captures::dependencies(&kept);
    assert_eq!(found["hazards"], Value::Array(Vec::new()));
}
