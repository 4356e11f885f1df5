//! Tests windows that a program records through the C interface: work that was recorded on one side of a window's
//! edge and submitted on the other is counted exactly, and unknown parts of it are named.

use gapscope_trace::manifest::Loss;
use gapscope_trace::tables::{Table, Timing};
use gapscope_trace::{LossKind, Trace};
use serde_json::Value;
use tempfile::TempDir;

use crate::driver::{Driver, Fake, Lavapipe};
use crate::losses;
use crate::recording::{Program, Recording, assert_contains, open, planted};

/// Returns the windows that the program states.
fn windows(recording: &Recording) -> Vec<Value> {
    let truth = recording.truth();
    assert_eq!(truth.get("captured"), true, "it found the interface");
    truth.get("windows").as_array().expect("a list").clone()
}

/// Compares the trace of a window with the program's statement. `recorded` is true if recording was also on outside
/// the windows.
fn check(trace: &Trace, window: &Value, recorded: bool) {
    let count = |name: &str| window[name].as_u64().expect("a count");
    let (unknown, dispatches) = match recorded {
        true => (0, count("executed_dispatches")),
        false => (count("unknown_command_buffers"), count("dispatches")),
    };
    let buffers = &trace.tables.command_buffers;
    assert_eq!(buffers.len() as u64, count("command_buffers"));
    let not_instrumented = |timing: &&Timing| **timing == Timing::NotInstrumented;
    let found = buffers.timing.iter().filter(not_instrumented).count() as u64;
    assert_eq!(found, unknown, "{:?}", buffers.timing);
    let rows = &trace.tables.dispatches;
    assert_eq!(rows.len() as u64, dispatches);
    assert!(losses::all_known(&rows.duration_ns));
    losses::assert_exact(trace);
    let losses = &trace.manifest.losses;
    let named = |loss: &&Loss| {
        loss.kind == LossKind::CommandBufferTimes
            && loss.reason == "recorded while recording was off"
    };
    let named: u64 = losses.iter().filter(named).map(|loss| loss.count).sum();
    assert_eq!(named, unknown, "{losses:?}");
}

fn captures_are_exact(
    driver: &dyn Driver,
    options: &[&str],
    recorded: bool,
) -> (Recording, TempDir) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let arguments = format!("windows --captures {}", folder.path().display());
    let program = Program::planted(&arguments, driver);
    let alone = program.run().ok();
    let recording = program.options(options).recorded();
    assert_eq!(alone.truth().results(), recording.truth().results());
    for (window, number) in windows(&recording).iter().zip(1..) {
        check(
            &open(&folder.path().join(format!("{number}.gapscope"))),
            window,
            recorded,
        );
    }
    (recording, folder)
}

#[test]
fn what_crosses_the_edge_of_a_window_is_counted_and_named() {
    let (recording, _) = captures_are_exact(&Lavapipe, &["--capture-only"], false);
    assert!(
        !recording.path().exists(),
        "each capture is a trace of its own"
    );
}

#[test]
fn in_a_recording_that_is_on_throughout_nothing_is_unknown() {
    let (recording, _) = captures_are_exact(&Lavapipe, &[], true);
    let trace = recording.trace();
    crate::counts::compare(&trace.tables, &recording.truth());
    losses::assert_exact(&trace);
}

/// The driver's own log is compared with the windows.
#[test]
fn the_fake_driver_ran_in_each_window_what_the_capture_says() {
    let fake = Fake::new(&[("DISPATCH_NS", "50000")]);
    let (recording, captures) = captures_are_exact(&fake, &["--capture-only"], false);
    assert_eq!(fake.misuse(), "", "Vulkan was misused");
    let executed = fake.truth();
    for (window, number) in windows(&recording).iter().zip(1..) {
        let trace = open(&captures.path().join(format!("{number}.gapscope")));
        let inside = trace.manifest.start_ns..=trace.manifest.end_ns;
        let ran = executed.iter().filter(|line| {
            line["kind"] == "dispatch"
                && inside.contains(&line["start_ns"].as_i64().expect("known"))
        });
        assert_eq!(
            ran.count() as u64,
            window["executed_dispatches"].as_u64().unwrap()
        );
    }
}

#[test]
fn captures_without_a_path_take_free_names_and_overwrite_nothing() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let taken = folder.path().join("t-2.gapscope");
    std::fs::write(&taken, "precious").unwrap();
    let recording = planted("windows")
        .options(&["--capture-only"])
        .record_in(folder)
        .ok();
    assert_eq!(std::fs::read_to_string(&taken).unwrap(), "precious");
    let folder = recording.path().parent().unwrap().to_owned();
    for (window, name) in windows(&recording).iter().zip(["t", "t-3", "t-4"]) {
        check(
            &open(&folder.join(format!("{name}.gapscope"))),
            window,
            false,
        );
    }
    let mut names: Vec<_> = std::fs::read_dir(&folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    let expected = ["t-2.gapscope", "t-3.gapscope", "t-4.gapscope", "t.gapscope"];
    assert_eq!(names, expected, "nothing else is left");
    for name in ["t.gapscope", "t-3.gapscope", "t-4.gapscope"] {
        assert_contains(&recording.run.stderr, name);
    }
}
