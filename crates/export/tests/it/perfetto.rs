//! Tests Perfetto's protobuf, decoded by the classes of the Python package `perfetto`.
//!
//! `GAPSCOPE_PERFETTO_PYTHON` names a Python that has the package. Without it, a virtual environment is made once beside
//! the build. Where neither exists the tests are skipped; with `GAPSCOPE_REQUIRE_CLIENTS=1` they fail.

use super::traces::{
    self, CROSSING, LAUNCHES, MEASURED, SAMPLED, counts, list, text, timed_rows, written,
};
use gapscope_export::perfetto;
use gapscope_trace::Trace;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::LazyLock;

const VERSION: &str = "perfetto==0.59.1";

static PYTHON: LazyLock<Option<PathBuf>> = LazyLock::new(|| {
    if let Some(python) = std::env::var_os("GAPSCOPE_PERFETTO_PYTHON") {
        return Some(python.into());
    }
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("perfetto-python");
    let python = folder.join("bin/python");
    let has = |python: &Path| runs(Command::new(python).args(["-c", "import perfetto.protos"]));
    if has(&python) {
        return Some(python);
    }
    runs(Command::new("python3").args(["-m", "venv"]).arg(&folder));
    runs(Command::new(&python).args(["-m", "pip", "install", "--quiet", VERSION]));
    has(&python).then_some(python)
});

fn runs(command: &mut Command) -> bool {
    command.output().is_ok_and(|output| output.status.success())
}

/// Returns what Perfetto's classes read from a trace; `None` without them.
fn decoded(trace: &Trace) -> Option<Value> {
    decoded_bytes(&written(trace, perfetto::write))
}

/// Returns what Perfetto's classes read from a file; `None` without them.
pub fn decoded_bytes(out: &[u8]) -> Option<Value> {
    let Some(python) = PYTHON.as_deref() else {
        let why = format!("no Python has the package {VERSION}, and it could not be installed");
        let required = std::env::var_os("GAPSCOPE_REQUIRE_CLIENTS").is_some_and(|of| of == "1");
        assert!(!required, "{why}");
        eprintln!("skipped: {why}");
        return None;
    };
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("trace.pftrace");
    std::fs::write(&path, out).unwrap();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/count_perfetto.py");
    let output = Command::new(python).arg(script).arg(path).output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    let file: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(file["problems"], json!([]));
    Some(file)
}

#[test]
fn perfetto_reads_every_row_with_times_once() {
    for (name, trace) in traces::all() {
        let Some(file) = decoded(&trace) else { return };
        let mut counts = counts(&file["slices"], |slice| Some(text(&slice["category"])));
        counts.remove("gap");
        assert_eq!(counts, timed_rows(&trace), "{name}");
    }
}

#[test]
fn perfetto_reads_times_details_arrows_and_counters() {
    let trace = Trace::from_text(CROSSING).unwrap();
    let Some(file) = decoded(&trace) else { return };
    let slices = list(&file["slices"]);
    let of = |category: &str, position: u64| {
        let mut found = slices.iter();
        found.find(|s| s["category"] == category && s["args"]["position"] == position)
    };
    let dispatch = of("dispatch", 1).unwrap();
    assert_eq!(dispatch["name"], "matmul");
    assert_eq!(dispatch["track"], "compute");
    assert_eq!(dispatch["start_ns"], 1_110_000);
    assert_eq!(dispatch["duration_ns"], 40_123);
    assert_eq!(dispatch["args"]["label"], "step / attention");
    // Unknown values are left out.
    assert!(dispatch["args"].get("groups_x").is_none());
    assert_eq!(of("dispatch", 0).unwrap()["args"]["groups_x"], 16);
    let poll = slices.iter().find(|s| s["name"] == "poll-fence").unwrap();
    assert_eq!(poll["args"]["result"], 1);
    let submit = json!(["host call", 1_010_000]);
    let arrows = json!([
        [["command buffer", 1_100_000], submit],
        [["command buffer", 1_150_000], submit],
    ]);
    let mut flows: Vec<Vec<Value>> = serde_json::from_value(file["flows"].clone()).unwrap();
    for flow in &mut flows {
        flow.sort_by_key(|end| end[0].to_string());
    }
    flows.sort_by_key(|flow| flow[0][1].as_u64());
    assert_eq!(json!(flows), arrows);
    let dispatches = json!([["dispatch", 1_100_000], ["dispatch", 1_180_000]]);
    assert_eq!(file["correlations"], json!([[1_010_000, dispatches]]));
    let args = &dispatch["args"];
    for (key, value) in [("submission", 1), ("local_x", 64), ("pid", 100), ("gpu", 0)] {
        assert_eq!(args[key], value, "{key}");
    }
    assert_eq!(file["gpus"], json!(["Some GPU"]));
    let memory = json!([[1_001_000, 65_536], [1_900_000, 0]]);
    assert_eq!(file["counters"]["device memory allocated"], memory);
    let clocks = json!([[3, 1_000_000], [1, 1_790_000_000_000_000_000u64]]);
    assert_eq!(file["clocks"], clocks);
    assert!(list(&file["threads"]).contains(&json!([100, 101])));
}

#[test]
fn work_without_a_command_buffer_is_correlated_with_its_call() {
    let trace = Trace::from_text(LAUNCHES).unwrap();
    let Some(file) = decoded(&trace) else { return };
    let correlations = json!([
        [100_000, [["dispatch", 120_000]]],
        [115_000, [["transfer", 126_000]]],
        [130_000, [["transfer", 140_000]]],
    ]);
    assert_eq!(file["correlations"], correlations);
    assert_eq!(file["flows"], json!([]));
    let depth = &file["counters"]["stream 0 · submissions outstanding"];
    let depths = json!([
        [100_000, 1],
        [115_000, 2],
        [125_000, 1],
        [127_000, 0],
        [130_000, 1],
        [141_000, 0]
    ]);
    assert_eq!(*depth, depths);
}

#[test]
fn perfetto_reads_the_counters_of_the_trace() {
    let trace = Trace::from_text(MEASURED).unwrap();
    let Some(file) = decoded(&trace) else { return };
    let counters = &file["counters"];
    let clock = json!([[100_000, 1_500_000_000.0], [300_000, 900_000_000.5]]);
    assert_eq!(counters["memory clock"], clock);
    let occupancy = json!([[20_000, 12.5], [50_000, 50.0]]);
    assert_eq!(counters["queue 0.0 · occupancy"], occupancy);
    assert_eq!(counters["load"], json!([[0, 75.0], [500_000, 25.0]]));
}

#[test]
fn perfetto_reads_samples_with_their_stacks() {
    let trace = Trace::from_text(SAMPLED).unwrap();
    let Some(file) = decoded(&trace) else { return };
    let read = json!([
        ["/app/train.py", "train.py:42 main", 42],
        ["/usr/lib/libc.so.6", "libc.so.6 read", 0]
    ]);
    let main = json!([["/app/train.py", "train.py:41 main", 41]]);
    let example = json!([
        ["/app/train.py", "train.py:42 main", 42],
        ["/usr/lib/libc.so.6", "libc.so.6 read", 0],
        ["/usr/lib/libexample.so", "libexample.so", 0]
    ]);
    let samples = json!([
        [200_000, 100, 101, read],
        [300_000, 100, 101, read],
        [400_000, 100, 101, null],
        [600_000, 100, 101, main],
        [400_000, 100, 102, example],
        [500_000, 200, 200, main],
    ]);
    assert_eq!(file["samples"], samples);
    for thread in [json!([100, 101]), json!([100, 102]), json!([200, 200])] {
        assert!(list(&file["threads"]).contains(&thread));
    }
}
