//! Tests causes of idle time: a program keeps the GPU waiting on purpose, and the report names the cause with its
//! share of time.

use serde_json::Value;

use crate::driver::Fake;
use crate::recording::{Program, Recording, planted};

/// Returns the idle time of a cause in nanoseconds.
fn idle(report: &Value, cause: &str) -> i64 {
    let gaps = report["gaps"].as_array().expect("a list");
    let of_cause = gaps.iter().filter(|gap| gap["cause"] == cause);
    of_cause
        .map(|gap| gap["total_ns"].as_i64().expect("known"))
        .sum()
}

fn idle_total(report: &Value) -> i64 {
    let gaps = report["gaps"].as_array().expect("a list");
    gaps.iter()
        .map(|gap| gap["total_ns"].as_i64().expect("known"))
        .sum()
}

/// Returns the idle time that was planted on the host, without the part of an iteration outside the analysed
/// window.
fn planted_idle_ns(recording: &Recording) -> i64 {
    recording.truth().sum("host_idle_ns") as i64
}

/// Checks that the idle time with a cause, in nanoseconds, is about that which was planted.
fn assert_about(named: i64, planted: i64, report: &Value) {
    let is_about = named >= planted * 8 / 10 && named <= planted * 13 / 10;
    assert!(is_about, "{named} of {planted}: {}", report["gaps"]);
}

fn assert_share(report: &Value, cause: &str, least: f64) {
    let share = idle(report, cause) as f64 / idle_total(report) as f64;
    assert!(
        share >= least,
        "{cause} is {share:.2} of the idle time: {}",
        report["gaps"]
    );
}

#[test]
fn a_sleep_after_a_wait_is_named_with_its_length() {
    let recording = planted("host-sleep --sleep-us 20000 --iterations 20 --n 5").recorded();
    let report = recording.report();
    let planted = planted_idle_ns(&recording);
    let named = idle(&report, "after-host-wait") + idle(&report, "host-late");
    // One sleep of twenty may fall before the first work or into the warm-up.
    assert_about(named, planted, &report);
    assert!(
        ["sync-bound", "host-bound"].contains(&report["verdict"].as_str().expect("text")),
        "{report}"
    );
}

#[test]
fn a_sleep_between_polls_is_the_host_being_late() {
    let recording = planted("host-sleep-async --sleep-us 20000 --iterations 20 --n 5").recorded();
    let report = recording.report();
    let planted = planted_idle_ns(&recording);
    let named = idle(&report, "host-late") + idle(&report, "after-host-wait");
    assert_about(named, planted, &report);
}

#[test]
fn a_wait_after_each_dispatch_is_a_serialisation_point() {
    let recording = planted("fence-each --iterations 200 --groups 1 --spin 10").recorded();
    let report = recording.report();
    let gaps = &report["idle_time"];
    assert!(
        gaps["serialised_count"].as_u64().expect("known") >= 150,
        "{gaps}"
    );
}

#[test]
fn a_compilation_in_the_loop_is_named() {
    let recording = planted("pipelines-in-loop --iterations 20").recorded();
    let report = recording.report();
    assert!(idle(&report, "host-compile") > 0, "{}", report["gaps"]);
}

#[test]
fn queues_that_wait_for_each_other_in_turn_are_named() {
    let fake = Fake::new(&[("DISPATCH_NS", "200000")]);
    let recording = Program::planted("ping-pong --iterations 20 --n 5", &fake).recorded();
    let report = recording.report();
    let queues = report["idle_time"]["queues"].as_array().expect("a list");
    assert_eq!(queues.len(), 2, "{queues:?}");
    for queue in queues {
        let causes = queue["causes"].as_array().expect("a list");
        let other = causes
            .iter()
            .find(|cause| cause["cause"] == "other-queue")
            .unwrap_or_else(|| panic!("{queue}"));
        let share =
            other["total_ns"].as_f64().expect("known") / queue["total_ns"].as_f64().expect("known");
        assert!(
            share > 0.7,
            "a queue waits for the other one for {share:.2} of its idle time: {queue}"
        );
    }
}

#[test]
fn large_copies_between_dispatches_bound_the_program() {
    let recording =
        planted("transfer-stall --bytes 67108864 --n 4 --iterations 4 --spin 1").recorded();
    let report = recording.report();
    assert_eq!(report["verdict"], "transfer-bound", "{report}");
}

#[test]
fn steady_work_is_bound_by_the_device() {
    let fake = Fake::new(&[("DISPATCH_NS", "1000000")]);
    let recording = Program::planted("steady --n 50 --iterations 4", &fake).recorded();
    let report = recording.report();
    assert_eq!(report["verdict"], "device-bound", "{report}");
    assert_share(&report, "after-host-wait", 0.0);
}

/// The duration of a long dispatch in the trace is that which the host measured.
#[test]
fn a_long_dispatch_takes_as_long_as_the_host_saw() {
    let recording = planted("spin --spin 3000000 --groups 4").recorded();
    let trace = recording.trace();
    let durations = trace.tables.dispatches.duration_ns.iter().flatten();
    let longest = durations.max().expect("a dispatch");
    let truth = recording.truth();
    let seen = truth.get("submit_to_fence_ns").as_i64();
    let seen = seen.expect("the host's view");
    let said = format!("{longest} ns on the GPU and {seen} ns as the host saw it");
    assert!(longest <= seen && longest >= seen * 9 / 10, "{said}");
}
