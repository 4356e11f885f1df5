//! Tests profiles of single kernels: chosen launches are profiled, and nothing else is. The part `profile-kernel`
//! of `tests/cuda-programs` tests real GPUs.

use super::{Stub, assert_report_has};
use crate::recording::Recording;
use gapscope_trace::tables::{HostCallKind, MetricUnit, Table};
use serde_json::Value;

const METRICS: &str = "sm__throughput.avg.pct_of_peak_sustained_elapsed=20,\
    gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed=91,\
    gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed=91,\
    dram__bytes_read.sum=1048576,dram__bytes_write.sum=524288,\
    smsp__average_warps_issue_stalled_long_scoreboard_per_issue_active.ratio=700";

fn profiled(recording: &Recording) -> Vec<Value> {
    let report = recording.report();
    let profiled = report["profiled_kernels"].as_array();
    profiled.cloned().unwrap_or_default()
}

fn notes(recording: &Recording) -> Vec<String> {
    recording.trace().manifest.notes
}

#[test]
fn chosen_launches_are_measured_and_the_others_run_once() {
    let stub = Stub::new(&[("METRICS", METRICS), ("PROFILER_MS", "150")]);
    let recording = stub
        .program("reload launch:3 runtime:2 sleep:20 launch:1 sync")
        .options(&["--profile-kernel", "add:4"])
        .recorded();
    let trace = recording.trace();
    let t = &trace.tables;
    assert_eq!(t.dispatches.len(), 8, "a row for each launch");
    let ran = stub.did().iter().filter(|d| d.kind == "kernel").count();
    assert_eq!(ran, 4 * 3 + 4, "three passes of the chosen ones");
    let losses: Vec<_> = trace
        .manifest
        .losses
        .iter()
        .map(|l| (l.kind.as_str(), l.count))
        .collect();
    assert_eq!(losses, [("dispatch times", 4)], "CUPTI gives none");

    let m = &t.kernel_metrics;
    assert_eq!(m.profile.iter().max(), Some(&4));
    let of_first: Vec<usize> = (0..m.len()).filter(|row| m.profile[*row] == 1).collect();
    assert!(of_first.len() > 40, "{}", of_first.len());
    assert!(
        !m.metric.iter().any(|name| name.contains("fp8")),
        "the chip lacks it"
    );
    let read = of_first
        .iter()
        .find(|row| &*m.metric[**row] == "dram__bytes_read.sum");
    let read = *read.expect("the metric");
    assert_eq!(
        (m.value[read], m.unit[read], m.passes[read]),
        (1_048_576.0, MetricUnit::Bytes, 3)
    );
    assert!(
        t.dispatches
            .submission
            .to_vec()
            .contains(&m.submission.at(read))
    );
    let add = t.kernels.name.iter().position(|name| &**name == "add");
    assert_eq!(m.kernel[read], t.kernels.id[add.expect("the kernel")]);

    // The time of profiling is a host call with a name, and no part of the verdict.
    let calls =
        (0..t.host_calls.len()).filter(|row| t.host_calls.call[*row] == HostCallKind::Recording);
    let held_ns: Vec<i64> = calls.map(|row| t.host_calls.duration_ns[row]).collect();
    assert_eq!(held_ns.len(), 4);
    assert!(held_ns.iter().all(|ns| *ns >= 150_000_000), "{held_ns:?}");
    let shown = recording.report();
    let of = |cause: &str| {
        let gaps = shown["gaps"].as_array().into_iter().flatten();
        let gap = gaps.into_iter().find(|gap| gap["cause"] == cause);
        gap.map_or(0, |gap| gap["total_ns"].as_i64().unwrap_or(0))
    };
    assert!(of("recording") >= 400_000_000, "{:#}", shown["gaps"]);
    let window = &shown["analysed_window"];
    let at = |end: &str| window[end].as_i64().expect("a time");
    let judged_ns = at("end_ns") - at("start_ns") - of("recording");
    assert_eq!(shown["verdict_window_ns"].as_i64(), Some(judged_ns));

    let profiles = profiled(&recording);
    assert_eq!(profiles.len(), 4);
    assert_eq!(profiles[0]["kernel"], "add");
    assert_eq!(profiles[0]["bound"], "memory");
    assert_eq!(profiles[0]["dram_read_bytes"], 1_048_576);
    assert_eq!(profiles[0]["occupancy_limited_by"], "threads");
    assert_eq!(profiles[0]["stalls"][0]["reason"], "long_scoreboard");
    let parts = [
        "add in depth ─",
        "the last of 4 profiled, 22.0 ns, 3 passes",
        "Memory bounds it: it reached 91.0 %",
        "1.00 MiB read, 512 KiB written",
        "long scoreboard 36.7 %: ",
        "Profiling kernels held the program up for",
    ];
    assert_report_has(&recording, &parts);
}

#[test]
fn a_name_matches_as_in_the_code_and_as_reports_show_it() {
    for name in ["_Z3add", "add(float*", "add"] {
        let stub = Stub::new(&[]);
        let program = stub.program("launch:2 sync");
        let recording = program.options(&["--profile-kernel", name]).recorded();
        assert_eq!(profiled(&recording).len(), 1, "{name}");
    }
}

#[test]
fn what_cannot_be_profiled_is_said_and_the_program_goes_on() {
    for (settings, steps, name, said) in [
        (
            &[("PROFILER", "busy")][..],
            "launch:3 sync",
            "add",
            "another profiler has the GPU's counters",
        ),
        (
            &[("PROFILER", "privileges")],
            "launch:3 sync",
            "add",
            "NVreg_RestrictProfilingToAdminUsers=0",
        ),
        (
            &[],
            "launch:3 sync",
            "gone",
            "no kernel whose name contains \"gone\"",
        ),
        (
            &[],
            "captured-waits sync",
            "add:90",
            "captured into a graph were not profiled",
        ),
        (
            &[],
            "launch:3 sync",
            "add:9",
            "of 9 launches of kernels whose name contains \"add\" there were 3",
        ),
    ] {
        let stub = Stub::new(settings);
        let program = stub.program(steps).options(&["--profile-kernel", name]);
        let recording = program.recorded();
        let notes = notes(&recording);
        let count = notes.iter().filter(|note| note.contains(said)).count();
        assert_eq!(count, 1, "{said} in {notes:?}");
        let launched = recording.trace().tables.dispatches.len();
        assert!(launched >= 2, "{launched}");
    }
}

#[test]
fn without_the_option_there_is_no_profiler_and_no_table() {
    let stub = Stub::new(&[]);
    let recording = stub.program("launch:3 sync").recorded();
    assert!(!recording.path().join("kernel_metrics.parquet").exists());
    assert_eq!(recording.report().get("profiled_kernels"), None);
}
