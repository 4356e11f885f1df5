//! Tests that unmodified programs of others do the same while they are recorded, and that the trace has as many
//! dispatches as an independent witness counts.

use gapscope_trace::tables::Table;
use serde_json::Value;

use crate::client;
use crate::gfxreconstruct;
use crate::losses;
use crate::recording::Recording;

fn check(name: &str) -> Option<Recording> {
    // This run also fills the driver's shader cache, so that recorded runs do not show compilation.
    let alone = client::program(name)?.run().ok();
    let recording = client::program(name)?.recorded();
    let told = last_line(&recording.run.stdout);
    assert_eq!(told, last_line(&alone.stdout), "{name} computes the same");

    let folder = tempfile::tempdir().expect("a temporary folder");
    let capture = folder.path().join("capture.gfxr");
    let witnessed = gfxreconstruct::captured(client::program(name)?, &capture).recorded();
    let counts = gfxreconstruct::counts(&capture);
    assert!(counts.dispatches > 0, "{name} used the GPU");
    let tables = witnessed.trace().tables;
    assert_eq!(
        tables.dispatches.len() as u64,
        counts.dispatches,
        "dispatches of {name}"
    );
    // The witness sits below the recorder, so it also sees the two command buffers around each that may run twice at
    // once: around none, or, of Taichi, around all.
    let submitted = tables.command_buffers.len() as u64;
    let around = if name == "taichi" { 2 * submitted } else { 0 };
    assert_eq!(
        submitted + around,
        counts.command_buffers,
        "command buffers of {name}"
    );
    if let Some(dispatches) = told["dispatches"].as_u64() {
        assert_eq!(
            counts.dispatches, dispatches,
            "{name} runs what its script says"
        );
    }

    // How often Taichi submits depends on time, but not how many dispatches a program runs.
    assert_eq!(recording.report()["dispatch_count"], counts.dispatches);
    losses::assert_exact(&recording.trace());
    Some(recording)
}

fn assert_each_dispatch_is_timed(recording: &Recording) {
    let trace = recording.trace();
    assert_eq!(trace.manifest.losses, []);
}

/// Returns the line of JSON with which a client's script ends: its facts and its result, without its duration.
pub fn last_line(stdout: &str) -> Value {
    let line = stdout
        .lines()
        .rev()
        .find(|line| line.starts_with('{'))
        .expect("a line of JSON");
    let mut told: Value = serde_json::from_str(line).expect("a line of JSON");
    told.as_object_mut().expect("an object").remove("seconds");
    told
}

#[test]
fn wgpu_py() {
    let Some(recording) = check("wgpu") else {
        return;
    };
    assert_each_dispatch_is_timed(&recording);
    let report = recording.report();
    let kernels = report["kernels"].as_array().expect("a list");
    let count = |name: &str| {
        kernels
            .iter()
            .find(|kernel| kernel["name"] == name)
            .map(|kernel| kernel["count"].clone())
    };
    assert_eq!(count("square_main"), Some(24.into()), "{kernels:?}");
    assert_eq!(count("halve_main"), Some(2.into()), "{kernels:?}");
}

#[test]
fn dawn() {
    let Some(recording) = check("dawn") else {
        return;
    };
    assert_each_dispatch_is_timed(&recording);
    let report = recording.report();
    let labels = report["labels"].as_array().expect("a list");
    assert!(
        labels
            .iter()
            .any(|label| label.to_string().contains("step 3")),
        "{labels:?}"
    );
}

/// Taichi permits each of its command buffers to run twice at the same time, but runs each alone.
#[test]
fn taichi() {
    let Some(recording) = check("taichi") else {
        return;
    };
    assert_each_dispatch_is_timed(&recording);
}

#[test]
fn ncnn() {
    let Some(recording) = check("ncnn") else {
        return;
    };
    assert_each_dispatch_is_timed(&recording);
}

#[test]
fn llama_cpp() {
    let Some(recording) = check("llama") else {
        return;
    };
    assert_each_dispatch_is_timed(&recording);
}
