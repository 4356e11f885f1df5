//! Runs each mode on any GPU, which on a machine without one is lavapipe, and checks its counts.

use std::process::Command;

use serde_json::Value;

const N: u64 = 3;
const ITERATIONS: u64 = 4;

/// Runs a mode and returns its truth; `None` if there is no Vulkan or the device lacks a feature that the mode needs.
fn run(mode: &str) -> Option<Value> {
    let output = Command::new(env!("CARGO_BIN_EXE_planted"))
        .args([
            mode,
            "--n",
            &N.to_string(),
            "--iterations",
            &ITERATIONS.to_string(),
            "--spin",
            "10",
        ])
        .output()
        .expect("planted starts");
    let errors = String::from_utf8_lossy(&output.stderr);
    let required = std::env::var_os("GAPSCOPE_REQUIRE_GPU").is_some_and(|value| value == "1");
    let no_gpu =
        errors.contains("no Vulkan driver") || errors.contains("loader could not be loaded");
    if output.status.code() == Some(3) || (no_gpu && !required) {
        eprintln!("{mode} skipped: {errors}");
        return None;
    }
    assert!(
        output.status.success() || mode == "killed",
        "{mode}: {errors}"
    );
    let lines = String::from_utf8_lossy(&output.stdout);
    Some(serde_json::from_str(lines.lines().last()?).expect("the last line is JSON"))
}

#[track_caller]
fn check(mode: &str, submits: u64, command_buffers: u64, dispatches: u64) -> Option<Value> {
    let truth = run(mode)?;
    let counted = ["submits", "command_buffers", "dispatches"].map(|name| truth[name].as_u64());
    assert_eq!(
        counted,
        [submits, command_buffers, dispatches].map(Some),
        "{mode}"
    );
    Some(truth)
}

#[test]
fn modes_count_what_they_submit() {
    let (n, i) = (N, ITERATIONS);
    for mode in [
        "steady",
        "host-sleep",
        "host-sleep-async",
        "polling",
        "bench",
        "pipelines-in-loop",
        "resubmit",
    ] {
        check(mode, i, i, i * n);
    }
    for mode in [
        "indirect",
        "base",
        "push-descriptors",
        "updated-sets",
        "dynamic-offsets",
        "partly-written",
        "submit2",
        "children",
    ] {
        check(mode, i, i, i * n);
    }
    for mode in ["abandon", "killed", "in-flight"] {
        check(mode, i, i, i * n);
    }
    check("spin", 1, 1, 1);
    check("fence-each", i * n, i * n, i * n);
    check("simultaneous", i + 3, 2 * i + 3, (2 * i + 3) * n);
    check("secondary", i, 2 * i, 3 * i * n);
    check("host-pool-reset", 4 * i, 4 * i, 4 * i * n);
    check("specialise", i, i, 2 * i * n);
    check("ping-pong", 2 * i, 2 * i, 2 * i * n);
    check("threads", 2 * i, 2 * i, 2 * i * n);
    check("devices", 3 * i, 3 * i, 3 * i * n);
    check("transfer-stall", i, i, i * n);
    check("render-pass", i, i, 2 * i * n);
    check("suspended", i + 1, i + 2, 2 * i);
    check("resolve", i + 1, i + 1, 0);
    check("shader-objects", i, i, 2 * i * n);
    check("sparse", 2 * i, i, i * n);
    check("labels", i, 2 * i, 2 * i * n);
    check("memory", 2 * i, 2 * i, 2 * i * n);
    check("fork", 2 * i, 2 * i, 2 * i * n);
    check("churn", 2 * i, 2 * i, 2 * i * n);
    check("windows", 10, 10, 10 * n + 7);
    check("host-writes", i, i, i * n);
    check("wait-first", i + 1, i + 1, (i + 1) * n);
    check("queries", i, i, i * n);
}

#[test]
fn transfers_are_counted_in_bytes() {
    let Some(truth) = check("transfers", ITERATIONS, ITERATIONS, 0) else {
        return;
    };
    assert_eq!(truth["transfers"].as_u64(), Some(3 * N * ITERATIONS));
    assert_eq!(
        truth["transfer_bytes"].as_u64(),
        Some(((2 << 20) + 65536) * N * ITERATIONS)
    );
}

#[test]
fn the_same_work_has_the_same_result_however_it_is_submitted() {
    let Some(steady) = run("steady") else { return };
    assert!(steady["result_hash"].is_string());
    for mode in [
        "host-sleep",
        "fence-each",
        "polling",
        "resubmit",
        "indirect",
        "submit2",
        "abandon",
    ] {
        if let Some(truth) = run(mode) {
            assert_eq!(truth["result_hash"], steady["result_hash"], "{mode}");
        }
    }
}

#[test]
fn sleeping_is_counted_as_idle() {
    let Some(truth) = run("host-sleep") else {
        return;
    };
    let idle = truth["host_idle_ns"].as_u64().expect("a number");
    assert!(idle >= 2_000_000 * (ITERATIONS - 1), "{idle}");
}
