//! Programs with a planted cause: the findings name it with its share of the time.

use crate::program::{Program, US, assert_says, causes};
use gapscope_analysis::gaps::Cause::*;
use gapscope_analysis::verdict::Bound;
use gapscope_trace::tables::TransferKind;

#[test]
fn a_host_that_sleeps_between_evaluations() {
    let mut p = Program::new();
    for turn in 0..20 {
        let t = turn * 6_000;
        p.dispatch(1, [t, t + 10], t + 20, 900);
        p.call("wait-fences", [t + 12, t + 950]);
        // Sleeps for 5 ms, then records.
    }
    let findings = p.findings();
    // 19 gaps of 5100 us: 30 until the wait returns, 5050 asleep and recording, 10 submitting, 10 launching.
    assert_eq!(
        causes(&findings.gaps),
        [
            (HostLate, 19 * 5050),
            (AfterHostWait, 19 * 30),
            (SubmitCall, 19 * 10),
            (LaunchLatency, 19 * 10)
        ]
    );
    assert_eq!(findings.verdict, Bound::HostBound);
    let call = findings.idle_time.host_calls[0].call;
    assert_eq!(call, "outside of GPU calls");
}

#[test]
fn a_fence_after_each_dispatch() {
    let mut p = Program::new();
    for turn in 0..100 {
        let t = turn * 200;
        p.dispatch(1, [t, t + 10], t + 20, 50);
        p.call("wait-fences", [t + 12, t + 110]);
    }
    let findings = p.findings();
    // 99 gaps of 150 us: 40 until the wait returns and 90 to the next submission are the round trip.
    assert_eq!(
        causes(&findings.gaps),
        [
            (AfterHostWait, 99 * 130),
            (SubmitCall, 99 * 10),
            (LaunchLatency, 99 * 10)
        ]
    );
    assert_eq!(findings.gaps[0].main_ns, 99 * 150 * US);
    assert_eq!(findings.verdict, Bound::SyncBound);
}

#[test]
fn a_fence_that_is_polled_is_a_wait_too() {
    let mut p = Program::new();
    for turn in 0..100 {
        let t = turn * 200;
        p.dispatch(1, [t, t + 10], t + 20, 50);
        p.line(&format!(
            "host_call process=1 thread=7 call=poll-fence start_ns={}us duration_ns=96us count=399 busy_ns=60us result=1
             host_call process=1 thread=7 call=poll-fence start_ns={}us duration_ns=2us",
            t + 12,
            t + 108
        ));
    }
    assert_eq!(p.gaps()[0], (AfterHostWait, 99 * 130));
}

#[test]
fn pipelines_compiled_in_the_loop() {
    let mut p = Program::new();
    for turn in 0..20 {
        let t = turn * 3_000;
        p.dispatch(1, [t, t + 10], t + 20, 480);
        p.call("create-shader-module", [t + 300, t + 600]);
        p.call("create-pipelines", [t + 600, t + 2_900]);
    }
    let findings = gapscope_analysis::Findings::new(&p.trace(), &Default::default());
    let warm_up = &findings.warm_up;
    assert_eq!(warm_up.excluded, None, "{}", warm_up.reason);
    assert_eq!(findings.gaps[0].cause, HostCompile);
    assert_eq!(findings.gaps[0].total_ns, 19 * 2_400 * US);
    assert_eq!(findings.verdict, Bound::HostBound);
    let sentence = &findings.verdict_evidence.parts[0].sentence;
    assert_says(sentence, "compiling or loading code");
}

#[test]
fn a_stall_on_transfers() {
    let mut p = Program::new();
    for turn in 0..20 {
        let t = turn * 1_000;
        let id = p.dispatch(1, [t - 3_000, t - 2_990], t, 200);
        p.line(&format!(
            "transfer command_buffer={id} queue=1 position=1 kind=copy bytes=1000000 start_ns={}us duration_ns=790us",
            t + 205
        ));
    }
    let findings = p.findings();
    assert_eq!(findings.verdict, Bound::TransferBound);
    assert_eq!(findings.devices[0].transfer_only_ns, Some(20 * 790 * US));
    assert_eq!(findings.transfer_bytes, 20_000_000);
    let row = &findings.transfers[0];
    assert_eq!(row.kind, TransferKind::Copy);
    let rate = 1_000_000.0 / 790e-6;
    assert!((row.bytes_per_second.unwrap() / rate - 1.0).abs() < 1e-9);
}

#[test]
fn queues_that_play_ping_pong_through_the_host() {
    let mut p = Program::new();
    for turn in 0..40 {
        let t = turn * 200;
        p.dispatch(1 + turn as u32 % 2, [t, t + 5], t + 10, 100);
        p.call("wait-semaphores", [t + 6, t + 130]);
    }
    let findings = p.findings();
    assert_eq!(causes(&findings.gaps)[0], (AfterHostWait, 39 * 90));
    for queue in &findings.idle_time.queues {
        assert_eq!(queue.causes[0].cause, AfterHostWait);
    }
}

#[test]
fn a_device_that_is_always_fed_is_device_bound() {
    let mut p = Program::new();
    for turn in 0..50 {
        p.dispatch(1, [turn * 10, turn * 10 + 5], 20 + turn * 100, 95);
    }
    let findings = p.findings();
    assert_eq!(findings.verdict, Bound::DeviceBound);
    let latency = &findings.latency[0];
    assert_eq!(latency.submit_to_start_idle.timed_count, 1);
    assert_eq!(latency.submit_to_start_idle.max_ns, Some(20 * US));
    assert_eq!(latency.max_depth, Some(46));
    assert_eq!(latency.started_before_submission_count, Some(0));
}
