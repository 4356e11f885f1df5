//! Tests the comparison of the same work done in two ways: `fusion` runs a chain of operations eagerly and
//! compiled, and gives each evaluation (one run of the chain) a label.

use crate::driver::Lavapipe;
use crate::product::{built, source};
use crate::recording::{Program, assert_contains, report};
use gapscope_trace::manifest::{Manifest, MeasuredPeaks};
use gapscope_trace::measured::{MeasuredDevice, Store};
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::Path;

const EVALUATIONS: u64 = 40;

fn figure<'a>(comparison: &'a Value, what: &str) -> &'a Value {
    let ratios = comparison["ratios"].as_array().expect("figures");
    let mut found = ratios.iter().filter(|ratio| ratio["what"] == what);
    found.next().unwrap_or_else(|| panic!("no {what}"))
}

#[test]
fn eager_against_compiled() {
    let iterations = EVALUATIONS.to_string();
    let fusion = built("fusion").to_string_lossy().into_owned();
    let command = [&fusion, "--n", "200000", "--iterations", &iterations];
    let recording = Program::new(command, &Lavapipe).recorded();
    let report = report(&recording.path(), &["--compare-labels", "eager,compiled"]);
    let comparison = &report["equal_work"];
    assert_eq!(comparison["per_evaluation"], true);
    assert_eq!(comparison["basis"], "labels");
    for (side, dispatches) in [("before", 4), ("after", 1)] {
        let work = &comparison[side];
        assert_eq!(work["evaluations"], EVALUATIONS, "{work:#}");
        assert_eq!(work["dispatch_count"], dispatches * EVALUATIONS);
        // At most the first evaluation is warm-up, because the program evaluates both ways before it counts.
        let counted = work["counted_evaluations"].as_u64().unwrap();
        assert!(counted + 1 >= EVALUATIONS, "{work:#}");
        assert_eq!(work["submission_count"], EVALUATIONS);
    }
    let dispatches = figure(comparison, "dispatches");
    assert_eq!(
        (&dispatches["before"], &dispatches["after"]),
        (&4.0.into(), &1.0.into())
    );
    // Four kernels read and write four times the bytes of one kernel.
    assert_eq!(figure(comparison, "bytes bound")["ratio"], 4.0);
    for what in ["GPU busy ns", "wall ns", "start to start ns"] {
        let times = figure(comparison, what);
        let [low, ratio, high] = ["low", "ratio", "high"].map(|key| times[key].as_f64().unwrap());
        assert!(low <= ratio && ratio <= high, "{times:#}");
        assert_eq!(
            times["within_noise"],
            low <= 1.0 && 1.0 <= high,
            "{times:#}"
        );
        let count = times["before_spread"]["count"].as_u64().unwrap();
        assert!(count + 2 >= EVALUATIONS, "{times:#}");
    }
    // On a busy machine, the host's part in the time of a software GPU may hide the difference.
    let busy = figure(comparison, "GPU busy ns");
    assert!(busy["low"].as_f64() > Some(1.0), "{busy:#}");
    let sentences = comparison["sentences"].to_string();
    assert_contains(&sentences, "times as much GPU time as compiled");
}

/// The measured peaks of the software GPU, as `gapscope bench device` keeps them: far more than any processor reaches, so that a share is
/// told whatever caches serve.
fn keep_peaks(home: &Path, manifest: &Manifest) {
    let device = &manifest.devices[0];
    let limits = MeasuredPeaks {
        driver: device.driver.clone(),
        copy_bytes_per_s: Some(1 << 50),
        read_bytes_per_s: Some(1 << 50),
        write_bytes_per_s: Some(1 << 50),
        ..MeasuredPeaks::default()
    };
    let measured = MeasuredDevice {
        name: device.name.clone(),
        uuid: device.uuid.clone(),
        api: device.api,
        limits,
        ..MeasuredDevice::default()
    };
    let store = Store::new(&home.join("gapscope/devices"));
    store.save(&measured).expect("it is kept");
}

#[test]
fn kernels_have_the_bytes_that_they_must_move_at_least() {
    const VALUES: u64 = 300_000;
    let home = tempfile::tempdir().unwrap();
    let fusion = built("fusion").to_string_lossy().into_owned();
    let values = VALUES.to_string();
    let command = [
        &fusion,
        "--n",
        &values,
        "--iterations",
        "3",
        "--warm-up",
        "1",
    ];
    let recorded = || {
        Program::new(command, &Lavapipe)
            .variable("XDG_DATA_HOME", home.path())
            .recorded()
    };
    let kernels = |report: &Value| report["kernels"].as_array().expect("kernels").clone();
    let first = recorded();
    let unmeasured = kernels(&report(&first.path(), &[]));
    keep_peaks(home.path(), &first.trace().manifest);
    let measured = kernels(&report(&recorded().path(), &[]));
    for kernel in unmeasured.iter().chain(&measured) {
        // Eager or compiled, each dispatch reads every value and writes every value, of four bytes.
        let dispatches = kernel["count"].as_u64().unwrap();
        assert_eq!(
            kernel["bytes_at_least"],
            8 * VALUES * dispatches,
            "{kernel:#}"
        );
        assert_eq!(kernel["bytes_evidence"], "code", "{kernel:#}");
        let seconds = kernel["busy_ns"].as_f64().unwrap() / 1e9;
        let rate = kernel["bytes_per_s"].as_f64().unwrap();
        assert!(
            (rate * seconds / (8 * VALUES * dispatches) as f64 - 1.0).abs() < 0.01,
            "{kernel:#}"
        );
    }
    let names: BTreeSet<&str> = measured
        .iter()
        .filter_map(|kernel| kernel["name"].as_str())
        .collect();
    let expected = ["cos", "exp", "fused_sin_cos_exp_log", "log", "sin"];
    assert!(names.into_iter().eq(expected));
    for kernel in &unmeasured {
        assert_eq!(kernel["share_of_peak"], Value::Null);
        assert_eq!(kernel["share_of_peak_unknown_because"], "not-measured");
    }
    for kernel in &measured {
        let share = kernel["share_of_peak"].as_f64().unwrap();
        let rate = kernel["bytes_per_s"].as_f64().unwrap();
        assert!(
            (share * (1_u64 << 50) as f64 / rate - 1.0).abs() < 0.01,
            "{kernel:#}"
        );
    }
}

/// Returns the first commands of the page on comparing equal work.
fn commands_of_the_page() -> String {
    let page =
        std::fs::read_to_string(source("../../docs/compare-labels.md")).expect("the page is there");
    let (_, block) = page.split_once("```sh\n").expect("commands");
    let (commands, _) = block.split_once("```").expect("their end");
    commands.to_owned()
}

#[test]
fn the_experiment_of_the_docs_answers_its_questions() {
    let folder = tempfile::tempdir().unwrap();
    let programs = built("fusion").parent().unwrap().to_owned();
    let path = std::env::var_os("PATH").unwrap_or_default();
    let paths = std::iter::once(programs).chain(std::env::split_paths(&path));
    let script = format!(
        "cd '{}'\n{}",
        folder.path().display(),
        commands_of_the_page()
    );
    let run = Program::new(["sh", "-ec", &script], &Lavapipe)
        .variable("PATH", std::env::join_paths(paths).unwrap())
        .run()
        .ok();
    // The report, which recording prints, says whether the GPU or the host is the limit.
    let has_verdict = ["-BOUND ", "MIXED "].iter().any(|v| run.stderr.contains(v));
    assert!(has_verdict, "{}", run.stderr);
    for said in ["Timeline ", "Accuracy: ", "More: gapscope report --full"] {
        assert!(run.stderr.contains(said), "no {said:?} in {}", run.stderr);
    }
    // The comparison shows whether kernels are fused, whether less is submitted, and the cost.
    let cells = |row: &str| -> Vec<&str> {
        let line = run.stdout.lines().find(|line| line.trim().starts_with(row));
        let line = line.unwrap_or_else(|| panic!("no {row} in {}", run.stdout));
        line.split("  ")
            .map(str::trim)
            .filter(|cell| !cell.is_empty())
            .collect()
    };
    assert_eq!(
        cells("dispatches"),
        ["dispatches", "4", "1", "0.25 × as many"]
    );
    assert_eq!(cells("submissions")[..3], ["submissions", "1", "1"]);
    assert_eq!(
        cells("bytes bound"),
        ["bytes bound", "3.05 MiB", "781 KiB", "0.25 × as much"]
    );
    for row in ["command buffers", "GPU busy", "start to start", "verdict"] {
        assert!(!cells(row).contains(&"unknown"), "{:?}", cells(row));
    }
}
