//! The verdict at its limits.

use crate::program::{Program, US};
use gapscope_analysis::verdict::Bound;

/// 100 pieces of work, each followed by host code that makes the device wait.
fn program(busy: i64, late: i64) -> gapscope_analysis::Findings {
    let mut p = Program::new();
    let period = busy + late;
    for turn in 0..100 {
        let t = turn * period;
        p.dispatch(1, [t, t], t, busy);
    }
    // Ends the window with the last gap.
    p.dispatch(1, [100 * period, 100 * period], 100 * period, 0);
    p.findings()
}

#[test]
fn host_and_device_bound_begin_at_their_shares() {
    assert_eq!(program(50, 50).verdict, Bound::HostBound);
    assert_eq!(program(51, 49).verdict, Bound::Mixed);
    assert_eq!(program(74, 26).verdict, Bound::Mixed);
    assert_eq!(program(75, 25).verdict, Bound::DeviceBound);
}

#[test]
fn the_parts_sum_to_the_window() {
    let evidence = program(30, 70).verdict_evidence;
    assert_eq!(evidence.window_ns, Some(10_000 * US));
    let sum: i64 = evidence.parts.iter().map(|part| part.total_ns).sum();
    assert_eq!(sum, 10_000 * US);
    assert_eq!(evidence.parts[0].what, "host");
    assert!(
        evidence.sentence.contains("70.0 %"),
        "{}",
        evidence.sentence
    );
}

#[test]
fn nothing_timed_is_unknown_and_says_so() {
    let mut p = Program::new();
    p.line("submission id=1 queue=1 start_ns=0 duration_ns=1000 command_buffers=1");
    p.line("command_buffer id=1 queue=1 submission=1 dispatches=1 timing=no-timestamps");
    p.line("dispatch command_buffer=1 queue=1 kernel=1");
    let findings = p.findings();
    assert_eq!(findings.verdict, Bound::Unknown);
    assert!(findings.verdict_evidence.sentence.contains("known times"));
    assert_eq!(findings.gpu_busy_ns, None);
    assert_eq!(findings.dispatch_count, 1);
    assert_eq!(findings.kernels[0].durations.total_ns, None);
    let json = serde_json::to_value(&findings).unwrap();
    assert_eq!(json["kernels"][0]["total_ns"], serde_json::Value::Null);
    assert_eq!(json["gpu_busy_ns"], serde_json::Value::Null);
    assert_eq!(json["verdict"], "unknown");
}

#[test]
fn an_empty_trace_has_findings() {
    let findings = Program::of("").findings();
    assert_eq!(findings.verdict, Bound::Unknown);
    assert_eq!(findings.wall_ns, None);
    assert_eq!(findings.devices.len(), 0);
}

#[test]
fn half_unexplained_is_no_verdict() {
    let mut p = Program::new();
    p.dispatch(1, [0, 0], 0, 40);
    p.line("dispatch command_buffer=99 queue=1 kernel=1 start_ns=90us duration_ns=10us");
    assert_eq!(p.findings().verdict, Bound::Unknown);
}
