//! What other threads of the process do while the submitting thread is outside of calls.

use crate::program::{Program, US, assert_says, causes, findings};
use crate::true_causes::{advice, cuda};
use gapscope_analysis::Findings;
use gapscope_analysis::gaps::Cause::{self, *};
use gapscope_timeline::thresholds::ROUND_TRIP_NS;

/// Work from 0 to 100 us; what `plant` says; the next work is submitted from 150 to 160 us and starts at 200 us.
fn gap(plant: impl FnOnce(&mut Program)) -> Findings {
    gap_until(150, plant)
}

fn gap_until(submit: i64, plant: impl FnOnce(&mut Program)) -> Findings {
    let mut program = Program::new();
    program.line("thread process=1 thread=8 name=autograd");
    program.dispatch(1, [-20, -10], 0, 100);
    plant(&mut program);
    program.dispatch(1, [submit, submit + 10], submit + 50, 10);
    program.findings()
}

fn ns_of(findings: &Findings, cause: Cause) -> i64 {
    let total = findings.gaps.iter().find(|total| total.cause == cause);
    total.map_or(0, |total| total.total_ns / US)
}

#[test]
fn the_wait_of_another_thread_that_returns_before_the_submission_explains_it() {
    // As main in cudaStreamSynchronize while autograd's thread launches.
    let findings = gap(|p| p.call_on(8, "wait-queue-idle", [0, 130]));
    assert_eq!(
        causes(&findings.gaps),
        [(AfterHostWait, 50), (LaunchLatency, 40), (SubmitCall, 10)]
    );
    assert_eq!(findings.idle_time.serialised_count, 1);
    let gap = &findings.idle_time.longest[0];
    assert_eq!(gap.other_threads[0].call, "wait-queue-idle");
    assert_eq!(gap.other_threads[0].total_ns, 30 * US);
}

#[test]
fn the_same_wait_of_the_submitting_thread_explains_as_much() {
    let findings = gap(|p| p.call("wait-queue-idle", [0, 130]));
    assert_eq!(ns_of(&findings, AfterHostWait), 50);
}

#[test]
fn a_thread_that_waits_all_the_time_holds_nobody_up() {
    for end in [151, 1_000] {
        let findings = gap(|p| p.call_on(8, "wait-fences", [0, end]));
        assert_eq!(ns_of(&findings, HostLate), 50, "until {end} us");
        assert_eq!(ns_of(&findings, AfterHostWait), 0);
        assert_eq!(findings.idle_time.serialised_count, 0);
    }
}

#[test]
fn a_wait_that_began_after_the_gap_did_or_returned_before_it_holds_nobody_up() {
    for span in [[101, 130], [0, 100]] {
        let findings = gap(|p| p.call_on(8, "wait-queue-idle", span));
        assert_eq!(ns_of(&findings, HostLate), 50, "{span:?}");
    }
}

#[test]
fn a_wait_that_gave_up_holds_nobody_up() {
    let findings = gap(|p| {
        p.line(
            "host_call process=1 thread=8 call=wait-fences start_ns=0us duration_ns=130us result=2",
        );
    });
    assert_eq!(ns_of(&findings, HostLate), 50);
}

#[test]
fn after_the_wait_of_another_thread_a_round_trip_is_part_of_it_and_more_is_not() {
    let limit = ROUND_TRIP_NS / US;
    for (outside, late) in [(limit, 0), (limit + 1, limit + 1)] {
        let findings = gap_until(130 + outside, |p| p.call_on(8, "wait-queue-idle", [0, 130]));
        assert_eq!(ns_of(&findings, HostLate), late);
        assert_eq!(ns_of(&findings, AfterHostWait), 30 + outside - late);
    }
}

#[test]
fn who_makes_calls_is_not_held_up_by_another_threads_wait() {
    let findings = gap(|p| {
        p.call("allocate-memory", [105, 110]);
        p.call_on(8, "wait-queue-idle", [0, 130]);
    });
    assert_eq!(ns_of(&findings, HostLate), 5);
    assert_eq!(ns_of(&findings, HostAllocate), 5);
    assert_eq!(ns_of(&findings, AfterHostWait), 40);
    // It was in a call of its own when the wait returned.
    let findings = gap(|p| {
        p.call("allocate-memory", [125, 135]);
        p.call_on(8, "wait-queue-idle", [0, 130]);
    });
    assert_eq!(ns_of(&findings, AfterHostWait), 0);
}

#[test]
fn what_another_thread_compiles_or_allocates_until_the_submission_is_the_cause() {
    for (call, cause) in [
        ("create-pipelines", HostCompile),
        ("load-module", HostCompile),
        ("build-graph", HostCompile),
        ("allocate-memory", HostAllocate),
        ("free-memory", HostAllocate),
    ] {
        let findings = gap(|p| p.call_on(8, call, [90, 140]));
        assert_eq!(
            causes(&findings.gaps),
            [
                (cause, 40),
                (LaunchLatency, 40),
                (HostLate, 10),
                (SubmitCall, 10)
            ],
            "{call}"
        );
        let findings = gap(|p| p.call_on(8, call, [90, 151]));
        assert_eq!(ns_of(&findings, HostLate), 50, "{call} that returns later");
    }
    let findings = gap(|p| p.call_on(8, "present", [90, 140]));
    assert_eq!(ns_of(&findings, HostLate), 50, "any other call");
}

#[test]
fn a_late_host_beside_many_threads_that_compile_is_told_to_compile_before() {
    let advice = |findings: &Findings| {
        let late = findings.gaps.iter().find(|gap| gap.cause == HostLate);
        late.map(|gap| gap.advice.clone()).unwrap_or_default()
    };
    // As Dawn does: each pipeline on a thread of its own, one after the other.
    let findings = gap_until(400, |p| {
        for thread in 0..20 {
            let start = 100 + 10 * i64::from(thread);
            p.call_on(100 + thread, "create-pipelines", [start, start + 10]);
        }
    });
    assert_eq!(ns_of(&findings, HostCompile), 200);
    assert_eq!(ns_of(&findings, HostLate), 100);
    assert!(
        !advice(&findings).contains("compiled"),
        "that time has its cause"
    );
    // Some go on behind the submission.
    let findings = gap_until(150, |p| {
        for thread in 0..20 {
            p.call_on(100 + thread, "create-pipelines", [120, 400]);
        }
    });
    assert_eq!(ns_of(&findings, HostLate), 50);
    assert_eq!(
        findings.idle_time.late_while_compiling_ns,
        30 * US,
        "each moment counts once"
    );
    let advised = advice(&findings);
    assert!(
        advised.starts_with("in 60.0 % of this time other threads compiled"),
        "{advised}"
    );
    let few = gap_until(150, |p| p.call_on(8, "create-pipelines", [146, 400]));
    assert!(!advice(&few).contains("compiled"), "{}", advice(&few));
}

#[test]
fn several_threads_at_once_count_once_and_compiling_comes_first() {
    let findings = gap(|p| {
        p.call_on(8, "create-pipelines", [110, 130]);
        p.call_on(9, "create-pipelines", [105, 120]);
        p.call_on(10, "allocate-memory", [100, 140]);
    });
    assert_eq!(ns_of(&findings, HostCompile), 25);
    assert_eq!(ns_of(&findings, HostAllocate), 15);
    assert_eq!(ns_of(&findings, HostLate), 10);
}

#[test]
fn threads_of_another_process_explain_nothing() {
    let findings = gap(|p| {
        p.line("process id=2 pid=11");
        p.line(
            "host_call process=2 thread=8 call=create-pipelines start_ns=100us duration_ns=30us",
        );
    });
    assert_eq!(ns_of(&findings, HostLate), 50);
}

#[test]
fn where_the_submitting_thread_is_not_known_nothing_is_explained() {
    let mut program = Program::new();
    program.dispatch(1, [-20, -10], 0, 100);
    program.call_on(8, "create-pipelines", [110, 140]);
    program.dispatch(1, [150, 170], 200, 10);
    let mut trace = program.trace();
    trace.tables.submissions.thread.set(1, None);
    assert_eq!(ns_of(&findings(&trace), HostLate), 50);
}

#[test]
fn one_hundred_short_threads_compile() {
    // As Dawn does: each pipeline on a thread of its own.
    let mut p = Program::new();
    for turn in 0..100 {
        let t = turn * 2_000;
        p.dispatch(1, [t, t + 10], t + 20, 480);
        p.call_on(100 + turn as u32, "create-pipelines", [t + 600, t + 1_900]);
    }
    let findings = p.findings();
    assert_eq!(findings.gaps[0].cause, HostCompile);
    assert_eq!(findings.gaps[0].total_ns, 99 * 1_300 * US);
}

/// A program that launches a kernel of 1 ms each 1.5 ms, in a call at `launch` us of each period, while thread 8 is in a call of
/// `function` from `from` to `to`. The kernel runs from 10 to 1,010 us of each period.
fn frees_on_another_thread(function: &str, [from, to]: [i64; 2], launch: [i64; 2]) -> Findings {
    let mut p = cuda();
    for turn in 0..50 {
        let t = turn * 1_500;
        p.launch(1, [t + launch[0], t + launch[1]], t + 10, 1_000);
        let call = if function.contains("lloc") {
            "allocate-memory"
        } else {
            "free-memory"
        };
        p.line(&format!(
            "host_call process=1 thread=8 call={call} function={function} start_ns={}us duration_ns={}us",
            t + from,
            to - from
        ));
        p.call("other-call", [t + 1_400, t + 1_401]);
    }
    p.findings()
}

#[test]
fn a_free_of_another_thread_that_returns_as_the_work_ends_waited_for_it() {
    for function in [
        "cudaFree",
        "cudaFreeHost",
        "cudaMalloc",
        "hipFree",
        "cuMemFree_v2",
    ] {
        let mut p = cuda();
        for turn in 0..50 {
            let t = turn * 1_100;
            p.launch(1, [t, t + 5], t + 10, 1_000);
            let call = if function.contains("lloc") {
                "allocate-memory"
            } else {
                "free-memory"
            };
            p.line(&format!(
                "host_call process=1 thread=8 call={call} function={function} start_ns={}us duration_ns=993us",
                t + 30
            ));
        }
        let findings = p.findings();
        // 90 us from the end of the kernel to the launch, of which the free takes 13.
        assert_eq!(ns_of(&findings, AfterHostWait), 49 * 90, "{function}");
        assert_eq!(ns_of(&findings, HostAllocate), 0, "{function}");
        let told = format!(
            "{function} of another thread waits for the GPU, and the launching thread went on only after that call: "
        );
        assert_says(advice(&findings, AfterHostWait), &told);
        assert_eq!(findings.idle_time.serialised_count, 49);
    }
}

#[test]
fn frees_that_do_not_wait_or_hold_nobody_up_are_no_waits() {
    // It takes as long as on an idle device; it goes on for longer than its wait could; it begins after the work.
    for (function, span) in [
        ("cudaFreeAsync", [30, 1_023]),
        ("cudaMallocAsync", [30, 1_023]),
        ("cudaFree", [900, 1_390]),
        ("cudaFree", [1_020, 1_300]),
    ] {
        let findings = frees_on_another_thread(function, span, [0, 5]);
        assert_eq!(ns_of(&findings, AfterHostWait), 0, "{function} {span:?}");
        assert!(ns_of(&findings, HostAllocate) > 0, "{function} {span:?}");
    }
    // The submitting thread makes calls of its own long after, and is late by itself.
    let findings = frees_on_another_thread("cudaFree", [30, 1_023], [0, 5]);
    assert_eq!(ns_of(&findings, AfterHostWait), 49 * 13);
    assert_eq!(ns_of(&findings, HostAllocate), 0);
}

#[test]
fn a_launch_that_is_blocked_behind_the_free_of_another_thread_waits_with_it() {
    let blocked = |function: &str, launched: [i64; 2]| {
        let mut p = cuda();
        for turn in 0..50 {
            let t = turn * 1_045;
            p.launch(
                1,
                [t + launched[0] - 1_045, t + launched[1] - 1_045],
                t + 10,
                1_000,
            );
            p.line(&format!(
                "host_call process=1 thread=8 call=free-memory function={function} start_ns={}us duration_ns=990us",
                t + 40
            ));
        }
        p.findings()
    };
    // The free returns 20 us after the kernel's end, and the launch 5 us later.
    let findings = blocked("cudaFree", [100, 1_035]);
    assert_eq!(
        causes(&findings.gaps),
        [
            (AfterHostWait, 49 * 20),
            (LaunchLatency, 49 * 20),
            (SubmitCall, 49 * 5)
        ]
    );
    assert_says(
        advice(&findings, AfterHostWait),
        "cudaFree of another thread waits for the GPU, and the launching thread is blocked behind its lock: ",
    );
    // The launch goes on for longer than behind a lock, or had begun before the free.
    for (function, launched) in [("cudaFreeAsync", [100, 1_035]), ("cudaFree", [30, 1_035])] {
        let findings = blocked(function, launched);
        assert_eq!(
            ns_of(&findings, AfterHostWait),
            0,
            "{function} {launched:?}"
        );
        assert_eq!(
            ns_of(&findings, SubmitCall),
            49 * 25,
            "{function} {launched:?}"
        );
    }
}
