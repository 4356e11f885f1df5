//! Polls, and calls of no class.

use crate::program::{Program, US, assert_says, causes};
use gapscope_analysis::Findings;
use gapscope_analysis::gaps::Cause::{self, *};
use gapscope_timeline::thresholds::POLLS_APART_NS;

const NOT_READY: i32 = 600;

/// Work from 0 to 100 us, polls `(start, end, count, result)` in us, the next work submitted at `submit`.
fn gap(submit: i64, call: &str, polls: &[(i64, i64, u32, i32)]) -> Findings {
    let mut p = Program::new();
    p.dispatch(1, [-20, -10], 0, 100);
    for (start, end, count, result) in polls {
        let duration = end - start;
        p.line(&format!(
            "host_call process=1 thread=7 call={call} start_ns={start}us duration_ns={duration}us count={count} result={result}"
        ));
    }
    p.dispatch(1, [submit, submit], submit, 10);
    p.findings()
}

fn us_of(findings: &Findings, cause: Cause) -> i64 {
    let total = findings.gaps.iter().find(|total| total.cause == cause);
    total.map_or(0, |total| total.total_ns / US)
}

#[test]
fn polls_that_found_their_work_done_explain_nothing_after_them() {
    let found = gap(300, "poll-event", &[(100, 108, 1, 0), (108, 116, 1, 0)]);
    assert_eq!(causes(&found.gaps), [(HostLate, 184), (HostCall, 16)]);
    assert_eq!(found.idle_time.serialised_count, 0);
}

#[test]
fn polls_some_milliseconds_apart_until_one_that_finds_it_done_are_a_wait() {
    let polls: Vec<(i64, i64, u32, i32)> = (0..5)
        .map(|turn| (turn * 1_000 - 3_000, turn * 1_000 - 2_998, 1, NOT_READY))
        .chain([(2_000, 2_002, 1, 0)])
        .collect();
    let found = gap(2_100, "poll-event", &polls);
    assert_eq!(causes(&found.gaps), [(AfterHostWait, 2_000)]);
    assert_eq!(found.idle_time.serialised_count, 1);
}

#[test]
fn polls_too_far_apart_are_not_one_wait() {
    let limit = POLLS_APART_NS / US;
    for (apart, cause) in [(limit, AfterHostWait), (limit + 1, HostLate)] {
        let end = 90 + apart;
        let found = gap(
            end + 10,
            "poll-fence",
            &[(88, 90, 1, 1), (end, end + 2, 1, 0)],
        );
        assert_eq!(found.gaps[0].cause, cause, "{apart} us apart");
    }
}

#[test]
fn polls_that_never_find_it_done_are_looks_in_passing() {
    let found = gap(3_000, "poll-fence", &[(90, 92, 1, 1), (1_000, 1_002, 1, 1)]);
    assert_eq!(us_of(&found, AfterHostWait), 0);
    assert_eq!(us_of(&found, HostCall), 2);
}

#[test]
fn another_call_between_two_polls_ends_the_wait() {
    let mut p = Program::new();
    p.dispatch(1, [-20, -10], 0, 100);
    p.line("host_call process=1 thread=7 call=poll-fence start_ns=90us duration_ns=2us result=1");
    p.call("allocate-memory", [110, 120]);
    p.line("host_call process=1 thread=7 call=poll-fence start_ns=130us duration_ns=2us result=0");
    p.dispatch(1, [150, 150], 150, 10);
    assert_eq!(
        p.gaps(),
        [(HostLate, 38), (HostAllocate, 10), (HostCall, 2)]
    );
}

#[test]
fn polls_that_a_wait_follows_belong_to_it() {
    let mut p = Program::new();
    p.dispatch(1, [-20, -10], 0, 100);
    p.line("host_call process=1 thread=7 call=poll-fence start_ns=90us duration_ns=2us result=1");
    p.call("wait-fences", [500, 510]);
    p.dispatch(1, [550, 550], 550, 10);
    assert_eq!(p.gaps(), [(AfterHostWait, 450)]);
}

#[test]
fn folded_polls_that_did_not_find_it_done_are_a_wait() {
    let done = gap(200, "poll-fence", &[(20, 148, 49, 1), (148, 150, 1, 0)]);
    assert_eq!(causes(&done.gaps), [(AfterHostWait, 100)]);
    let gave_up = gap(200, "poll-fence", &[(20, 150, 50, 1)]);
    assert_eq!(causes(&gave_up.gaps), [(HostLate, 50), (AfterHostWait, 50)]);
}

#[test]
fn folded_polls_that_found_it_done_end_a_wait_and_are_none() {
    let alone = gap(300, "poll-event", &[(90, 116, 2, 0)]);
    assert_eq!(causes(&alone.gaps), [(HostLate, 184), (HostCall, 16)]);
    assert_eq!(alone.idle_time.serialised_count, 0);
    let after = gap(
        200,
        "poll-event",
        &[(20, 130, 9, NOT_READY), (140, 150, 9, 0)],
    );
    assert_eq!(causes(&after.gaps), [(AfterHostWait, 90), (HostCall, 10)]);
}

#[test]
fn version_1_folded_the_poll_that_found_it_done_too() {
    let mut p = Program::from_text(
        "manifest format_version=1 sampling_mode=dispatch
         device id=1 process=1 uuid=aa clock.error_ns=0
         queue id=1 device=1",
    );
    p.dispatch(1, [-20, -10], 0, 100);
    p.line("host_call process=1 thread=7 call=poll-fence start_ns=20us duration_ns=130us count=50");
    p.dispatch(1, [200, 200], 200, 10);
    assert_eq!(p.gaps(), [(AfterHostWait, 100)]);
}

#[test]
fn who_asks_a_semaphore_again_had_not_found_what_it_looked_for() {
    let once = gap(200, "poll-semaphore", &[(20, 150, 1, 0)]);
    assert_eq!(us_of(&once, AfterHostWait), 0);
    let again = gap(
        4_200,
        "poll-semaphore",
        &[(20, 22, 1, 0), (2_000, 2_002, 1, 0), (4_000, 4_002, 1, 0)],
    );
    assert_eq!(causes(&again.gaps), [(AfterHostWait, 4_100)]);
}

#[test]
fn time_in_a_call_without_a_class_is_in_that_call() {
    for call in [
        "other-call function=cuCtxCreate_v4",
        "present",
        "acquire-image",
    ] {
        let mut p = Program::new();
        p.dispatch(1, [-20, -10], 0, 100);
        p.line(&format!(
            "host_call process=1 thread=7 call={call} start_ns=90us duration_ns=1000us"
        ));
        p.dispatch(1, [1_100, 1_100], 1_100, 10);
        let found = p.findings();
        assert_eq!(causes(&found.gaps), [(HostCall, 990), (HostLate, 10)]);
        let mut parts = found.verdict_evidence.parts.iter();
        let host = parts.find(|part| part.what == "host").unwrap();
        let name = call.rsplit('=').next().unwrap();
        assert_says(&host.sentence, &format!("it was in {name}"));
    }
}

#[test]
fn an_old_recording_of_a_wait_without_a_class_is_known_by_its_function() {
    let mut p = Program::new();
    p.dispatch(1, [-20, -10], 0, 100);
    p.line("host_call process=1 thread=7 call=other-call function=cudaExecutionCtxSynchronize_v13010 start_ns=0us duration_ns=130us");
    p.dispatch(1, [150, 150], 150, 10);
    assert_eq!(p.gaps(), [(AfterHostWait, 50)]);
}

#[test]
fn waits_that_run_into_their_time_limit_are_one_wait_with_the_last() {
    const TIMEOUT: i32 = 2;
    let mut p = Program::new();
    p.dispatch(1, [-20, -10], 0, 1_205);
    for (start, end, result) in [
        (0, 400, TIMEOUT),
        (402, 802, TIMEOUT),
        (804, 1_204, TIMEOUT),
        (1_206, 1_207, 0),
    ] {
        let duration = end - start;
        p.line(&format!(
            "host_call process=1 thread=7 call=wait-fences start_ns={start}us duration_ns={duration}us result={result}"
        ));
    }
    p.dispatch(1, [1_355, 1_355], 1_355, 10);
    assert_eq!(causes(&p.findings().gaps), [(AfterHostWait, 150)]);
}
