//! Tests the recording of conditions of machine and GPUs beside a program: NVML is a stub that follows a script,
//! and stalls are planted in a folder that stands for `/`.

use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use gapscope_trace::Trace;
use gapscope_trace::tables::{Condition, CounterUnit};
use serde_json::Value;

use crate::cuda::Stub;
use crate::recording::assert_contains;

/// Returns the values of a condition's counter, each with its start in seconds from the recording's start.
fn values(trace: &Trace, condition: Condition) -> Vec<(f64, f64)> {
    let t = &trace.tables;
    let Some(row) = t
        .counters
        .name
        .iter()
        .position(|name| **name == *condition.as_str())
    else {
        return Vec::new();
    };
    assert_eq!(t.counters.unit[row], condition.unit());
    let of_it = (0..t.counter_values.counter.len())
        .filter(|value| t.counter_values.counter[*value] == t.counters.id[row]);
    let seconds = |ns: i64| (ns - trace.manifest.start_ns) as f64 / 1e9;
    of_it
        .map(|at| {
            (
                seconds(t.counter_values.start_ns[at]),
                t.counter_values.value[at],
            )
        })
        .collect()
}

fn notes(report: &Value) -> Vec<(String, String)> {
    let notes = report["conditions"].as_array().cloned().unwrap_or_default();
    let text = |note: &Value, key: &str| note[key].as_str().unwrap_or_default().to_owned();
    notes
        .iter()
        .map(|n| (text(n, "kind"), text(n, "sentence")))
        .collect()
}

#[test]
fn heat_of_a_gpu_is_told_with_its_time_and_a_power_cap_is_not_heat() {
    let script = "0 sm=1980 mem=3201 reasons=0 temperature=60 power=300400 memory=1000; \
                  700 sm=990 reasons=0x48 temperature=91; 1700 sm=1800 reasons=0x4 temperature=80";
    let stub = Stub::new(&[("NVML", script)]).with_nvml();
    let recording = stub
        .program("launch:20 sync sleep:2500 launch:20 sync")
        .recorded();
    let trace = recording.trace();

    let clocks = values(&trace, Condition::SmClock);
    let megahertz: Vec<f64> = clocks.iter().map(|(_, hertz)| hertz / 1e6).collect();
    assert_eq!(megahertz, [1980.0, 990.0, 1800.0], "only changes are rows");
    let slowed_s = clocks[2].0 - clocks[1].0;
    assert!((0.6..1.6).contains(&slowed_s), "{clocks:?}");
    assert_eq!(values(&trace, Condition::Power).len(), 1, "whole watts");
    assert_eq!(values(&trace, Condition::Power)[0].1, 300.0);
    let heat: Vec<f64> = values(&trace, Condition::ClockHeatHardware)
        .iter()
        .map(|(_, value)| *value)
        .collect();
    assert_eq!(heat, [0.0, 100.0, 0.0]);
    assert_eq!(
        values(&trace, Condition::ClockSyncBoost),
        [],
        "it never was"
    );
    let device = trace.tables.counters.device.iter().flatten().next();
    assert_eq!(device, Some(trace.manifest.devices[0].id));

    let report = recording.report();
    let notes = notes(&report);
    let kinds: Vec<&str> = notes.iter().map(|(kind, _)| kind.as_str()).collect();
    let of_gpu: Vec<&str> = (kinds.iter().copied())
        .filter(|kind| ["heat", "power-brake", "slowdown", "power-cap"].contains(kind))
        .collect();
    assert_eq!(of_gpu, ["heat", "power-cap"], "{notes:?}");
    assert!(
        notes[0].1.contains("hardware thermal slowdown"),
        "{notes:?}"
    );
    assert!(notes[0].1.contains("91 °C"), "{notes:?}");
    assert_eq!(report["conditions"][0]["is_usual"], false);
    assert_eq!(report["conditions"][1]["is_usual"], true);
    let text = recording.text();
    assert_contains(&text, "hardware thermal slowdown");
    assert!(!text.contains("at its power limit"), "{text}");
}

#[test]
fn what_the_driver_does_not_tell_is_unknown_with_its_reason_and_not_0() {
    let stub = Stub::new(&[("NVML", "0 sm=1980 temperature=none violations=none")]).with_nvml();
    let recording = stub.program("launch:20 sync sleep:300").recorded();
    let trace = recording.trace();
    assert_eq!(values(&trace, Condition::Temperature), []);
    assert_eq!(values(&trace, Condition::SmClock).len(), 1);
    let unmeasured = &trace.manifest.unmeasured;
    let temperature = unmeasured
        .iter()
        .find(|u| u.what.starts_with("temperature of"));
    let reason = &temperature.expect("it is said").reason;
    assert_contains(reason, "Not Supported");
    assert!(
        !recording.text().contains("Not Supported"),
        "it is not noisy"
    );
    let listed = recording.report()["unmeasured"].as_array().map(Vec::len);
    assert_eq!(listed, Some(unmeasured.len()));
}

#[test]
fn without_the_drivers_library_clocks_are_unknown_and_the_program_is_recorded() {
    let stub = Stub::new(&[]);
    let recording = stub.program("launch:20 sync sleep:400").recorded();
    let trace = recording.trace();
    assert_eq!(trace.tables.dispatches.kernel.len(), 20);
    let unmeasured = &trace.manifest.unmeasured;
    let clocks = unmeasured.iter().find(|u| u.what.starts_with("clocks, "));
    let reason = &clocks.expect("it is said").reason;
    assert!(
        reason.contains("libnvidia-ml.so.1") || reason.contains("GPU-0101"),
        "{reason}"
    );

    let stub = Stub::new(&[("NVML", "0 init=9")]).with_nvml();
    let trace = stub.program("launch:20 sync sleep:400").recorded().trace();
    let said = format!("{:?}", trace.manifest.unmeasured);
    assert_contains(&said, "Driver Not Loaded");
}

#[test]
fn a_capture_has_the_values_that_held_when_it_began() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("window.gapscope");
    let stub = Stub::new(&[("NVML", "0 sm=1980 temperature=60")]).with_nvml();
    stub.program("launch:20 sync sleep:400 capture:launch:20 launch:5 sync")
        .variable("GAPSCOPE_CAPTURE", &path)
        .recorded();
    let window = crate::recording::open(&path);
    let clocks = values(&window, Condition::SmClock);
    assert_eq!(clocks, [(0.0, 1.98e9)], "from the window's start");
}

/// Writes a stall file that states `some_us` of lost time.
fn plant(root: &Path, name: &str, some_us: u64) {
    let text = format!(
        "some avg10=0.00 avg60=0.00 avg300=0.00 total={some_us}\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=7\n"
    );
    let new = root.join("new");
    fs::write(&new, text).expect("a file");
    fs::rename(new, root.join("proc/pressure").join(name)).expect("a file");
}

#[test]
fn a_machine_that_stalls_on_memory_is_told_with_its_time() {
    let root = tempfile::tempdir().expect("a temporary folder");
    fs::create_dir_all(root.path().join("proc/pressure")).expect("a folder");
    for name in ["cpu", "memory", "io"] {
        plant(root.path(), name, 1000);
    }
    fs::write(root.path().join("proc/vmstat"), "pswpin 100\npswpout 100\n").expect("a file");
    let stub = Stub::new(&[]);
    let program = stub
        .program("launch:20 sync sleep:1500 launch:20 sync")
        .variable("GAPSCOPE_SYSTEM_ROOT", root.path());
    let over = AtomicBool::new(false);
    let recording = std::thread::scope(|scope| {
        // The file states that half of the time is lost.
        scope.spawn(|| {
            let mut lost_us = 1000;
            while !over.load(Relaxed) {
                std::thread::sleep(Duration::from_millis(10));
                lost_us += 5000;
                plant(root.path(), "memory", lost_us);
            }
        });
        let recording = program.record();
        over.store(true, Relaxed);
        recording
    });
    let recording = recording.ok();
    let trace = recording.trace();
    let stalls = values(&trace, Condition::MemoryStall);
    assert!(stalls.len() > 5, "{stalls:?}");
    assert_eq!(
        values(&trace, Condition::MemoryStallFull),
        [],
        "nothing was lost"
    );
    assert_eq!(values(&trace, Condition::CpuStall), []);
    let stall = trace
        .tables
        .counters
        .name
        .iter()
        .position(|n| n.contains("on memory (some)"));
    assert_eq!(
        trace.tables.counters.unit[stall.expect("a counter")],
        CounterUnit::Percent
    );

    let notes = notes(&recording.report());
    assert_eq!(notes.len(), 1, "{notes:?}");
    assert_eq!(notes[0].0, "memory-stall");
    let held_ns = recording.report()["conditions"][0]["held_ns"]
        .as_i64()
        .unwrap_or(0);
    assert!((300_000_000..1_200_000_000).contains(&held_ns), "{held_ns}");
    assert!(
        recording
            .text()
            .contains("The machine stalled on memory for")
    );
    let said = format!("{:?}", trace.manifest.unmeasured);
    assert!(said.contains("cgroup"), "the folder has no cgroups: {said}");
}
