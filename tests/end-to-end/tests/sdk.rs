//! Tests programs that use the SDK: their captures, and the times that they measure against the layer's times of
//! the same run.

use std::collections::HashMap;
use std::fs;

use gapscope_trace::Trace;
use gapscope_trace::ids::{LabelId, SubmissionId};
use gapscope_trace::tables::Table;
use serde_json::Value;

use crate::driver::Lavapipe;
use crate::losses;
use crate::product;
use crate::recording::{Program, Run, assert_contains, open, report};

fn example(name: &str, arguments: &[&str]) -> Program {
    let program = product::built(&format!("examples/{name}")).into_os_string();
    let arguments = arguments.iter().map(Into::into);
    Program::new([program].into_iter().chain(arguments), &Lavapipe)
}

/// Returns the distinct labels of command buffers in their order.
fn labels(trace: &Trace) -> Vec<String> {
    let labels = &trace.tables.labels;
    let text = |id: LabelId| {
        let row = labels
            .id
            .iter()
            .position(|known| *known == id)
            .expect("the label is there");
        labels.text[row].to_string()
    };
    let of_buffers = trace.tables.command_buffers.label.iter().flatten();
    let mut texts: Vec<String> = of_buffers.map(text).collect();
    // wgpu submits command buffers of its own with each of the program's.
    texts.dedup();
    texts
}

fn steps() -> Vec<String> {
    (0..10).map(|step| format!("step {step}")).collect()
}

#[test]
fn a_capture_holds_its_window_and_nothing_else() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ten steps.gapscope");
    let recording = example("start_stop_capture", &[path.to_str().unwrap()])
        .options(&["--capture-only"])
        .recorded();
    assert_contains(&recording.run.stdout, "captured \"");
    let trace = open(&path);
    assert_eq!(labels(&trace), steps());
    assert_eq!(trace.tables.dispatches.len(), 20, "two kernels a step");
    assert!(losses::all_known(&trace.tables.dispatches.duration_ns));
    assert_eq!(trace.manifest.losses, []);
    let (start, end) = (trace.manifest.start_ns, trace.manifest.end_ns);
    for begin in &trace.tables.submissions.start_ns {
        assert!((start..=end).contains(begin));
    }
    assert!(
        !recording.path().exists(),
        "what was recorded is in the capture"
    );
    let of_a_step = report(&path, &["--label", "step 3"]);
    assert_eq!(of_a_step["dispatch_count"], 2, "{of_a_step}");
    let left: Vec<_> = fs::read_dir(folder.path()).unwrap().collect();
    assert_eq!(left.len(), 1, "nothing else is left: {left:?}");
}

#[test]
fn a_capture_of_a_program_that_is_recorded_throughout_is_a_part_of_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("part.gapscope");
    let recording = example("start_stop_capture", &[path.to_str().unwrap()]).recorded();
    assert_eq!(labels(&open(&path)), steps());
    let whole = recording.trace();
    assert_eq!(whole.tables.dispatches.len(), 6 + 20 + 2);
    let marker = whole
        .tables
        .labels
        .text
        .iter()
        .any(|text| &**text == "capture 1");
    assert!(marker, "{:?}", whole.tables.labels.text);
}

#[test]
fn a_capture_without_a_path_is_the_recording() {
    let recording = example("start_stop_capture", &[""])
        .options(&["--capture-only"])
        .recorded();
    assert_eq!(labels(&recording.trace()), steps());
}

#[test]
fn a_path_that_is_taken_is_refused_and_kept() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("taken.gapscope");
    fs::write(&path, "precious").unwrap();
    let recording = example("start_stop_capture", &[path.to_str().unwrap()]).recorded();
    assert_contains(&recording.run.stdout, "not overwritten");
    assert_eq!(fs::read_to_string(&path).unwrap(), "precious");
}

#[test]
fn the_environment_asks_for_one_forward_pass() {
    let folder = tempfile::tempdir().unwrap();
    for variable in ["GAPSCOPE_CAPTURE", "MLX_METAL_CAPTURE"] {
        let path = folder.path().join(format!("{variable}.gapscope"));
        let recording = example("capture_forward_pass", &[])
            .variable(variable, &path)
            .options(&["--capture-only"])
            .recorded();
        let said: Vec<_> = recording.run.stdout.lines().collect();
        assert!(said[0].starts_with("pass 1: captured"), "{said:?}");
        assert!(
            said[1..].iter().all(|line| line.contains("has been made")),
            "{said:?}"
        );
        let trace = open(&path);
        assert_eq!(trace.tables.submissions.len(), 1);
        assert_eq!(trace.tables.dispatches.len(), 8);
    }
}

#[test]
fn without_the_recorder_the_reason_is_said_and_the_program_runs() {
    let run = example("capture_forward_pass", &[])
        .variable("GAPSCOPE_CAPTURE", "nowhere.gapscope")
        .run()
        .ok();
    let said = |run: &Run, part: &str| run.stdout.matches(part).count();
    assert_eq!(said(&run, "gapscope record --capture-only"), 4, "{run:?}");
    let run = example("capture_forward_pass", &[]).run().ok();
    assert_eq!(said(&run, "no capture was asked for"), 4, "{run:?}");
}

#[test]
fn a_trigger_skips_and_takes_units() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("tokens.gapscope");
    let recording = example("capture_trigger", &["20"])
        .variable("GAPSCOPE_CAPTURE", &path)
        .variable("GAPSCOPE_CAPTURE_SKIP", "10")
        .variable("GAPSCOPE_CAPTURE_TAKE", "3")
        .options(&["--capture-only"])
        .recorded();
    let said = &recording.run.stdout;
    for token in 1..=20 {
        let captured = said.contains(&format!("token {token} is captured\n"));
        assert_eq!(captured, (11..=13).contains(&token), "{said}");
    }
    let trace = open(&path);
    assert_eq!(trace.tables.submissions.len(), 3);
    assert_eq!(trace.tables.dispatches.len(), 6);
}

/// Compares the times that the program measured through wgpu with the layer's times of the same run: they come from
/// two sets of timestamps and two conversions to the host's clock.
#[test]
fn the_profile_agrees_with_the_layer() {
    let recording = example("kernel_profile", &["--all", "--json", "--dispatches"]).recorded();
    let trace = recording.trace();
    let (json, dispatches) = recording
        .run
        .stdout
        .rsplit_once("\n[")
        .expect("two outputs");
    let snapshot: Value = serde_json::from_str(json).expect("the snapshot is JSON");
    let groups: Value = serde_json::from_str(&format!("[{dispatches}")).expect("so are dispatches");
    assert_eq!(snapshot["sampling"], "dispatch");
    assert_eq!(snapshot["losses"], serde_json::json!([]), "{snapshot}");
    let own: Vec<&Value> = groups
        .as_array()
        .unwrap()
        .iter()
        .flat_map(|group| group[1].as_array().unwrap())
        .collect();
    let rows = &trace.tables.dispatches;
    // There is one layer of warm-up and five times eight layers of two kernels each.
    assert_eq!(own.len(), 2 + 5 * 16);
    assert_eq!(rows.len(), own.len());
    let error = |ns: Option<i64>| ns.expect("the error is known");
    let error_ns = snapshot["clock_error_ns"]
        .as_i64()
        .expect("the error is known")
        + error(trace.manifest.devices[0].clock.error_ns);
    // The layer numbers kernels, and both see the dispatches in the order of their times.
    let mut layer: Vec<usize> = (0..rows.len()).collect();
    layer.sort_by_key(|row| rows.start_ns.at(*row));
    for (own, row) in own.iter().zip(layer) {
        let kernel = trace
            .tables
            .kernels
            .id
            .iter()
            .position(|id| *id == rows.kernel[row])
            .unwrap();
        assert_eq!(own["kernel"], *trace.tables.kernels.name[kernel]);
        assert_eq!(own["groups"][0], rows.groups_x.at(row).unwrap());
        let (start, duration) = (
            rows.start_ns.at(row).unwrap(),
            rows.duration_ns.at(row).unwrap(),
        );
        let own_duration = own["gpu_ns"].as_i64().unwrap();
        // The SDK's timestamps stand outside of the layer's.
        assert!(
            own_duration + 1 >= duration,
            "{own_duration} ns around {duration} ns"
        );
        let own_start = own["start_gpu_ns"].as_i64().unwrap();
        let apart = own_start - start;
        assert!(
            apart <= error_ns && -apart <= error_ns + own_duration - duration,
            "{apart} ns apart; both clocks together allow {error_ns} ns"
        );
    }
    // wgpu makes several command buffers of one, and the SDK times them as a whole.
    let mut hulls: HashMap<SubmissionId, (i64, i64)> = HashMap::new();
    let buffers = &trace.tables.command_buffers;
    for row in 0..buffers.len() {
        let start = buffers.start_ns.at(row).expect("it is timed");
        let end = start + buffers.duration_ns.at(row).expect("it is timed");
        let hull = hulls.entry(buffers.submission[row]).or_insert((start, end));
        *hull = (hull.0.min(start), hull.1.max(end));
    }
    let whole: i64 = hulls.values().map(|(start, end)| end - start).sum();
    let labels = snapshot["labels"].as_array().unwrap();
    let own_whole: i64 = labels
        .iter()
        .map(|l| l[1]["total_ns"].as_i64().unwrap())
        .sum();
    let of_dispatches: i64 = rows.duration_ns.iter().flatten().sum();
    assert!(
        (of_dispatches..=whole).contains(&own_whole),
        "{own_whole} ns, between {of_dispatches} and {whole} ns"
    );
    for drift in snapshot["drift"].as_array().unwrap() {
        // A software GPU spends much of a small command buffer between its dispatches.
        let verdict = drift["verdict"].as_str().expect("a verdict");
        assert!(["consistent", "uncovered"].contains(&verdict), "{drift}");
    }
}

#[test]
fn a_profile_is_a_trace_that_report_opens() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("profile.gapscope");
    example("kernel_profile", &["--trace", path.to_str().unwrap()])
        .run()
        .ok();
    let trace = open(&path);
    assert_eq!(trace.tables.command_buffers.len(), 5);
    assert_eq!(trace.tables.dispatches.len(), 80);
    let report = report(&path, &[]);
    let text = report.to_string();
    assert_contains(&text, "add");
    assert_contains(&text, "sine");
    assert_eq!(crate::view::rows_of_work(&path), 80, "the page shows them");
}

#[test]
fn passes_that_are_timed_as_a_whole_are_no_dispatches_in_a_report() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("profile.gapscope");
    example(
        "kernel_profile",
        &["--passes", "--trace", path.to_str().unwrap()],
    )
    .run()
    .ok();
    let trace = open(&path);
    // There are five times eight layers, each a pass of two kernels.
    assert_eq!(trace.tables.opaque_work.len(), 40);
    assert!(losses::all_known(&trace.tables.opaque_work.duration_ns));
    assert_eq!(trace.tables.dispatches.len(), 80);
    assert!(
        trace
            .tables
            .dispatches
            .duration_ns
            .iter()
            .all(|value| value.is_none())
    );
    let report = report(&path, &["--all"]);
    assert_eq!(report["sampling_mode"], "pass");
    assert_eq!(report["dispatch_count"], 80);
    let busy: i64 = trace.tables.opaque_work.duration_ns.iter().flatten().sum();
    assert_eq!(report["gpu_busy_ns"], busy, "passes do not overlap here");
    for kernel in report["kernels"].as_array().expect("a list") {
        assert_eq!(kernel["count"], 40, "{kernel}");
        assert_eq!(
            kernel["times_unknown_because"],
            "passes were timed as a whole"
        );
    }
}

#[test]
fn the_example_that_compares_eager_and_compiled_counts_both() {
    let run = example("eager_or_compiled", &[]).run().ok();
    let of = |name: &str| {
        let line = run
            .stdout
            .lines()
            .find(|line| line.trim_start().starts_with(name));
        let words: Vec<&str> = line.expect("a line for each").split_whitespace().collect();
        words[1].parse::<u32>().expect("dispatches")
    };
    assert_eq!(
        (of("eager:"), of("compiled:")),
        (320, 160),
        "{}",
        run.stdout
    );
    assert_contains(&run.stdout, "times as fast");
}

/// Runs an example under `gapscope capture`, in a folder of its own; returns its run and the folder.
fn captured(example: Program) -> (Run, tempfile::TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let run = example.capture(&folder.path().join("rest.gapcapture"));
    (run.ok(), folder)
}

#[test]
fn under_capture_a_window_of_the_sdk_is_a_capture_whose_path_it_knows() {
    let folder = tempfile::tempdir().unwrap();
    for (asked, written) in [
        ("steps.gapscope", "steps.gapcapture"),
        ("named.gapcapture", "named.gapcapture"),
    ] {
        let asked = folder.path().join(asked);
        let written = folder.path().join(written);
        let (run, _folder) = captured(example("start_stop_capture", &[asked.to_str().unwrap()]));
        assert_contains(&run.stdout, &format!("captured {written:?}"));
        let replayed = crate::captures::replay_equal(&written);
        assert_eq!(replayed["dispatch_count"], 20, "{replayed}");
    }
}

#[test]
fn under_capture_the_environment_asks_for_one_forward_pass() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("pass.gapscope");
    let program = example("capture_forward_pass", &[])
        .variable("GAPSCOPE_CAPTURE", &path)
        .variable("GAPSCOPE_CAPTURE_SKIP", "1");
    let (run, _folder) = captured(program);
    let said: Vec<_> = run.stdout.lines().collect();
    assert_contains(said[0], "unit 2 is");
    assert_contains(said[1], "pass 2: captured");
    assert!(
        said[2..].iter().all(|line| line.contains("has been made")),
        "{said:?}"
    );
    assert!(folder.path().join("pass.gapcapture").is_dir());
}

#[test]
fn under_capture_a_label_of_the_sdk_chooses_the_window() {
    let program = example("start_stop_capture", &["refused.gapscope"]);
    let (run, folder) = captured(program.options(&["--label", "step 3"]));
    assert_contains(&run.stdout, "it was told which window to capture");
    let capture = folder.path().join("rest.gapcapture");
    assert_eq!(crate::captures::replay_equal(&capture)["dispatch_count"], 2);
}

#[test]
fn the_wait_of_a_capture_is_the_recordings_own() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("part.gapscope");
    let recording = example("start_stop_capture", &[path.to_str().unwrap()]).recorded();
    let report = recording.report();
    let gaps = report["gaps"].as_array();
    let recording_ns = gaps
        .into_iter()
        .flatten()
        .find(|gap| gap["cause"] == "recording")
        .map(|gap| gap["total_ns"].as_i64().unwrap());
    let calls = &recording.trace().tables.host_calls;
    let waited_ns: i64 = (0..calls.len())
        .filter(|row| calls.function[*row].as_deref() == Some("begin or end of a capture"))
        .map(|row| calls.duration_ns[row])
        .sum();
    assert!(waited_ns > 0);
    assert!(recording_ns.is_some(), "{}", report["gaps"]);
    let code = report["code"].to_string();
    assert!(!code.contains("stop_capture"), "{code}");
}

#[test]
fn a_capture_does_not_change_the_verdict() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("part.gapscope");
    let report = |path: &str| {
        let recording = example("start_stop_capture", &[path, "200"]).recorded();
        recording.report()
    };
    // A name that is refused makes no capture.
    let alone = report("none");
    let captured = report(path.to_str().unwrap());
    assert!(path.is_dir());
    let verdict = |report: &Value| report["verdict"].as_str().unwrap().to_owned();
    assert_eq!(verdict(&alone), "device-bound", "{alone}");
    assert_eq!(verdict(&captured), verdict(&alone), "{captured}");
    assert_eq!(
        verdict(&crate::recording::report(&path, &[])),
        verdict(&alone)
    );
}

#[test]
fn labels_are_those_that_are_open_in_whatever_order_they_end() {
    let trace = example("labels", &[]).recorded().trace();
    let labels = &trace.tables.labels;
    let path = |label: Option<LabelId>| {
        let mut path = Vec::new();
        let mut next = label;
        while let Some(id) = next {
            let row = labels.id.iter().position(|known| *known == id).unwrap();
            path.insert(0, labels.text[row].to_string());
            next = labels.parent.at(row);
        }
        // wgpu labels the pass.
        path.retain(|text| text != "layer 0");
        path.join(" > ")
    };
    let rows = &trace.tables.dispatches;
    let mut order: Vec<usize> = (0..rows.len()).collect();
    order.sort_by_key(|row| rows.start_ns.at(*row));
    let paths: Vec<String> = order.iter().map(|row| path(rows.label.at(*row))).collect();
    assert_eq!(
        paths,
        [
            "labels::of_a_function",
            "step 0",
            "step 1",
            "outer > inner",
            "inner",
            "",
            "span",
            "second",
        ]
    );
    assert_eq!(trace.manifest.losses, []);
}
