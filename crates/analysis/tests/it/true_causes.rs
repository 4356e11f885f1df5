//! The cause is what the trace shows, and advice is given only where it can help: each with a program in which it is so and one
//! in which it looks alike and is not.

use crate::program::{Program, assert_says, causes};
use gapscope_analysis::Findings;
use gapscope_analysis::conditions::ConditionKind;
use gapscope_analysis::gaps::Cause::{self, *};

/// A CUDA program with one device.
pub fn cuda() -> Program {
    Program::from_text(
        "manifest sampling_mode=dispatch start_ns=0 end_ns=10s
         process id=1 pid=10 hook=cuda executable=/usr/bin/app
         device id=1 process=1 api=cuda name=GPU uuid=aa clock.error_ns=0
         queue id=1 device=1
         kernel id=1 process=1 name=work
         kernel id=2 process=1 name=other",
    )
}

pub fn us_of(findings: &Findings, cause: Cause) -> i64 {
    let totals = causes(&findings.gaps).into_iter();
    totals
        .filter(|(of, _)| *of == cause)
        .map(|(_, us)| us)
        .sum()
}

pub fn advice(findings: &Findings, cause: Cause) -> &str {
    findings.advice_on(cause).unwrap_or_default()
}

/// A program that launches a kernel of 100 us each `period` us, 8 us before it starts, and makes a call of a function
/// meanwhile, from `from` to `to` us after the launch.
pub fn calls_meanwhile(call: &str, function: &str, period: i64, [from, to]: [i64; 2]) -> Findings {
    let mut p = cuda();
    for turn in 0..50 {
        let t = turn * period;
        p.launch(1, [t, t + 5], t + 8, 100);
        p.line(&format!(
            "host_call process=1 thread=7 call={call} function={function} start_ns={}us duration_ns={}us",
            t + from,
            to - from
        ));
    }
    p.findings()
}

#[test]
fn a_call_that_returns_as_the_work_ends_waited_for_it() {
    for (call, function) in [
        ("free-memory", "cudaFree"),
        ("free-memory", "hipFree"),
        ("allocate-memory", "cudaMalloc"),
        ("load-module", "cuModuleUnload"),
        ("load-module", "cuLibraryUnload"),
        ("other-call", "cuStreamDestroy"),
    ] {
        // The kernel ends at 108 us, the call at 113 us, and the next launch comes after 87 us in no call.
        let findings = calls_meanwhile(call, function, 200, [10, 113]);
        assert_eq!(us_of(&findings, AfterHostWait), 49 * 92, "{function}");
        assert_eq!(us_of(&findings, HostLate), 0, "{function}");
        assert_eq!(findings.idle_time.serialised_count, 49, "{function}");
        let told = format!("{function} waits for the GPU: ");
        assert_says(advice(&findings, AfterHostWait), &told);
    }
}

#[test]
fn a_call_that_only_overlaps_the_end_of_the_work_is_a_call() {
    // It goes on for 300 us after the work.
    let findings = calls_meanwhile("allocate-memory", "cudaMalloc", 1_000, [10, 408]);
    assert_eq!(us_of(&findings, AfterHostWait), 0);
    assert_eq!(us_of(&findings, HostAllocate), 49 * 300);
    let findings = calls_meanwhile("load-module", "cuModuleLoadData", 1_000, [10, 408]);
    assert_eq!(us_of(&findings, AfterHostWait), 0);
    assert_eq!(us_of(&findings, HostCompile), 49 * 300);
    // It begins after the work.
    let findings = calls_meanwhile("allocate-memory", "cudaMalloc", 1_000, [110, 160]);
    assert_eq!(us_of(&findings, AfterHostWait), 0);
    assert_eq!(us_of(&findings, HostAllocate), 49 * 50);
    // It is short, and answered by the driver at once.
    let findings = calls_meanwhile("free-memory", "cudaFree", 200, [104, 109]);
    assert_eq!(us_of(&findings, AfterHostWait), 0);
    assert_eq!(us_of(&findings, HostLate), 49 * 91);
}

#[test]
fn a_function_that_takes_as_long_on_an_idle_device_did_not_wait() {
    let mut p = cuda();
    for turn in 0..50 {
        let t = turn * 1_000;
        p.launch(1, [t, t + 5], t + 8, 100);
        // Once as the kernel ends, and once while nothing runs: 60 us both times.
        for start in [t + 55, t + 500] {
            p.call("free-memory", [start, start + 60]);
        }
    }
    let findings = p.findings();
    assert_eq!(us_of(&findings, AfterHostWait), 0);
    assert_eq!(us_of(&findings, HostAllocate), 49 * (7 + 60));
}

/// A Vulkan program that takes an image each `period(turn)` us, works for 3 ms and shows the image.
fn shows_images(period: impl Fn(i64) -> i64) -> Findings {
    let mut p = Program::new();
    let mut t = 0;
    for turn in 0..60 {
        let next = t + period(turn);
        p.dispatch(1, [t + 300, t + 350], t + 360, 3_000);
        for (call, function, start, end) in [
            ("present", "vkQueuePresentKHR", t + 360, t + 400),
            (
                "acquire-image",
                "vkAcquireNextImageKHR",
                t + 410,
                next + 200,
            ),
        ] {
            p.line(&format!(
                "host_call process=1 thread=7 call={call} function={function} start_ns={start}us duration_ns={}us",
                end - start
            ));
        }
        t = next;
    }
    p.findings()
}

#[test]
fn the_rhythm_of_a_display_is_a_cause_about_which_nothing_helps() {
    for period in [16_667, 8_333, 6_944] {
        let findings = shows_images(|_| period);
        assert_eq!(findings.gaps[0].cause, Display, "{period}");
        assert_eq!(us_of(&findings, HostCall), 0);
        assert_eq!(findings.advice_on(Display), None);
        assert!(findings.advice.iter().all(|advice| advice.cause != Display));
        assert_says(
            &findings.verdict_evidence.sentence,
            "waited for the display",
        );
    }
    // Without a rhythm nothing is said of a display's, and nothing to do either.
    let findings = shows_images(|turn| 9_000 + turn * turn % 17 * 2_000);
    assert_eq!(us_of(&findings, Display), 0);
    assert_eq!(
        advice(&findings, HostCall),
        "the host was mostly in vkAcquireNextImageKHR, which waits for the display or the compositor"
    );
}

#[test]
fn an_image_that_comes_as_the_work_ends_was_waited_for_with_the_work() {
    let mut p = Program::new();
    for turn in 0..60 {
        let t = turn * 16_667;
        p.dispatch(1, [t, t + 50], t + 60, 16_000);
        p.call("acquire-image", [t + 100, t + 16_080]);
    }
    let findings = p.findings();
    assert_eq!(us_of(&findings, Display), 0);
    assert_eq!(us_of(&findings, AfterHostWait), 59 * 20);
}

/// Two processes that use one GPU: the second begins `start` us after the first.
fn two_processes(start: i64, first_call: &str) -> Findings {
    let mut p = Program::from_text(
        "manifest sampling_mode=dispatch
         process id=1 pid=10 hook=cuda\nprocess id=2 pid=11 hook=cuda
         device id=1 process=1 api=cuda name=GPU uuid=aa clock.error_ns=0
         device id=2 process=2 api=cuda name=GPU uuid=aa clock.error_ns=0
         queue id=1 device=1\nqueue id=2 device=2\nkernel id=1 process=1 name=work",
    );
    p.launch(1, [0, 5], 10, 1_000);
    p.line(first_call);
    for turn in 0..2 {
        let t = start + turn * 2_000;
        p.line(&format!(
            "submission id={0} process=2 queue=2 thread=9 start_ns={t}us duration_ns=5us kind=kernel
             dispatch submission={0} queue=2 kernel=1 start_ns={1}us duration_ns=1000us",
            50 + turn,
            t + 10
        ));
    }
    p.findings()
}

#[test]
fn the_time_before_a_process_began_is_no_threads_lateness() {
    let findings = two_processes(9_000, "");
    assert_eq!(us_of(&findings, ProcessStart), 9_000 - 1_010);
    // The gap between its own launches.
    assert_eq!(us_of(&findings, HostLate), 990);
    // From its first call on it is late.
    let call = "host_call process=2 thread=9 call=other-call start_ns=3000us duration_ns=1us";
    let findings = two_processes(9_000, call);
    assert_eq!(us_of(&findings, ProcessStart), 3_000 - 1_010);
    assert_eq!(us_of(&findings, HostLate), 5_999 + 990);
}

/// A program that copies `bytes` to the device in calls of 900 us, from such memory, and computes.
pub fn copies(memory: &str, bytes: u64) -> Findings {
    let mut p = cuda();
    for turn in 0..100 {
        let t = turn * 1_010;
        let id = p.mark(1, "transfer", [t, t + 903]);
        p.line(&format!(
            "transfer submission={id} queue=1 kind=host-to-device bytes={bytes} host_memory={memory} start_ns={}us duration_ns=100us",
            t + 800
        ));
        p.launch(1, [t + 904, t + 909], t + 910, 90);
    }
    p.findings()
}

#[test]
fn pageable_memory_is_told_to_be_pinned_and_pinned_memory_is_not() {
    let findings = copies("pageable", 4 << 20);
    assert_says(
        advice(&findings, SubmitCall),
        "pin the memory (cudaHostAlloc)",
    );
    let first = &findings.advice[0];
    assert_eq!(first.cause, SubmitCall);
    assert_eq!(first.text, advice(&findings, SubmitCall));
    for (memory, bytes) in [("pinned", 4 << 20), ("pageable", 4)] {
        let findings = copies(memory, bytes);
        let told = advice(&findings, SubmitCall);
        assert!(!told.contains("pin the memory"), "{memory}: {told}");
        assert!(!told.contains("graph"), "{memory}: {told}");
    }
}

#[test]
fn blocking_copies_from_pageable_memory_are_waits_that_pinning_ends() {
    let reads = |memory: &str| {
        let mut p = cuda();
        for turn in 0..100 {
            let t = turn * 2_000;
            p.launch(1, [t, t + 5], t + 10, 300);
            p.line(&format!(
                "submission id={0} process=1 queue=1 thread=7 start_ns={1}us duration_ns=1500us kind=transfer function=cudaMemcpy
                 host_call process=1 thread=7 call=copy-and-wait function=cudaMemcpy start_ns={1}us duration_ns=1500us
                 transfer submission={0} queue=1 kind=device-to-host bytes=4000000 host_memory={memory} start_ns={2}us duration_ns=200us",
                1_000 + turn,
                t + 6,
                t + 312
            ));
        }
        p.findings()
    };
    let findings = reads("pageable");
    assert_eq!(findings.gaps[0].cause, AfterHostWait);
    assert_says(advice(&findings, AfterHostWait), "pin the memory");
    assert!(!advice(&reads("pinned"), AfterHostWait).contains("pin the memory"));
}

/// A program that launches kernels, each in a call of 5 us but those that `slow` names.
pub fn launches(count: i64, slow: &[i64], kernel: impl Fn(i64) -> u32) -> Findings {
    let mut p = cuda();
    let mut t = 0;
    for turn in 0..count {
        let call = if slow.contains(&turn) { 1_500_000 } else { 5 };
        let id = p.mark(1, "kernel", [t, t + call]);
        p.line(&format!(
            "dispatch submission={id} queue=1 kernel={} start_ns={}us duration_ns=20us",
            kernel(turn),
            t + call + 1
        ));
        t += call + 30;
    }
    p.findings()
}

#[test]
fn one_slow_call_has_a_reason_of_its_own() {
    let findings = launches(100, &[50], |_| 1);
    assert_eq!(
        advice(&findings, SubmitCall),
        "one call took 1.50 s of this time (1.50 s for work), where the usual call takes 5.00 µs: what held the call up is not in the trace, \
         such as memory that the driver had to allocate, or a lock"
    );
    let findings = launches(100, &[50], |turn| 1 + u32::from(turn >= 50));
    assert_says(advice(&findings, SubmitCall), "1.50 s for other");
    assert_says(
        advice(&findings, SubmitCall),
        "the call was the first of this kernel",
    );
    let findings = launches(100, &[50, 60, 70], |_| 1);
    assert_says(
        advice(&findings, SubmitCall),
        "3 calls took 4.50 s of this time",
    );
}

#[test]
fn a_graph_is_advised_where_there_are_many_short_kernels_and_nowhere_else() {
    let many = |count: i64, kernel: i64| {
        let mut p = cuda();
        for turn in 0..count {
            let t = turn * (kernel + 11);
            p.launch(1, [t, t + 10], t + 11, kernel);
        }
        p.findings()
    };
    let findings = many(100, 20);
    assert_eq!(
        advice(&findings, SubmitCall),
        "put many small launches into a graph, or fuse kernels"
    );
    for (count, kernel) in [(10, 20), (100, 900)] {
        let findings = many(count, kernel);
        let told = advice(&findings, SubmitCall);
        assert_eq!(told, "launch the next before the last work has ended");
        for advice in findings.advice.iter() {
            assert!(!advice.text.contains("graph"), "{}", advice.text);
        }
    }
}

#[test]
fn a_late_host_that_pauses_for_long_is_not_told_to_make_graphs() {
    let pauses = |pause: i64| {
        let mut p = cuda();
        for turn in 0..100 {
            let t = turn * (pause + 30);
            p.launch(1, [t, t + 5], t + 8, 20);
        }
        p.findings()
    };
    assert_says(
        advice(&pauses(100), HostLate),
        "put many launches into a graph",
    );
    assert!(!advice(&pauses(5_000), HostLate).contains("graph"));
}

/// A program whose launches take `call(turn)` us, each of the kernel `kernel(turn)`; another thread makes the call `meanwhile` for
/// nearly as long.
pub fn slow_launches(
    call: impl Fn(i64) -> i64,
    kernel: impl Fn(i64) -> i64,
    meanwhile: Option<&str>,
) -> Findings {
    let mut p = cuda();
    for id in 3..410 {
        p.line(&format!("kernel id={id} process=1 name=new"));
    }
    let mut t = 0;
    for turn in 0..400 {
        let length = call(turn);
        let id = p.mark(1, "kernel", [t, t + length]);
        p.line(&format!(
            "dispatch submission={id} queue=1 kernel={} start_ns={}us duration_ns=900us",
            kernel(turn),
            t + length + 5
        ));
        if let Some(other) = meanwhile {
            let (start, ns) = (t + 2, length - 4);
            p.line(&format!(
                "host_call process=1 thread=8 {other} start_ns={start}us duration_ns={ns}us"
            ));
        }
        t += length + 910;
    }
    p.findings()
}

#[test]
fn launches_that_take_long_are_told_as_such_however_many_they_are() {
    let every_fourth = |turn: i64| if turn % 4 == 0 { 6_000 } else { 5 };
    let same = |_: i64| 1;
    let told = |findings: &Findings| advice(findings, SubmitCall).to_owned();
    let findings = slow_launches(every_fourth, same, None);
    assert_says(
        &told(&findings),
        "99 calls took 594 ms of this time (the longest 6.00 ms for work), where the usual call takes 5.00 µs: what held the calls up is not in the trace",
    );
    for length in [300, 8_000] {
        let findings = slow_launches(|_| length, same, None);
        assert_says(
            &told(&findings),
            "where a launch takes some µs: what held the calls up",
        );
        let graphs = findings
            .advice
            .iter()
            .filter(|advice| advice.text.contains("graph"));
        assert_eq!(graphs.count(), 0, "{length}");
    }
    // The trace shows why: each launches new code, or another thread is in a call of the driver.
    let findings = slow_launches(|_| 8_000, |turn| 3 + turn, None);
    assert_says(
        &told(&findings),
        "most were the first of their kernel, for which the driver loads code",
    );
    let findings = slow_launches(
        |_| 8_000,
        same,
        Some("call=allocate-memory function=cudaMalloc"),
    );
    assert_says(
        &told(&findings),
        "most waited while another thread was in cudaMalloc",
    );
    let waits = Some("call=wait-queue-idle function=cudaStreamSynchronize");
    let findings = slow_launches(|_| 8_000, same, waits);
    assert_says(
        &told(&findings),
        "what held the calls up is not in the trace",
    );
    // Launches of usual length.
    let findings = slow_launches(|_| 100, same, None);
    assert_eq!(
        told(&findings),
        "put many small launches into a graph, or fuse kernels"
    );
}

/// A program that launches 20 kernels of 50 us ahead, copies `bytes` to the host in a call of `length` us, and goes on `pause` us
/// after it.
pub fn reads_back(memory: &str, bytes: u64, length: i64, pause: i64) -> Findings {
    let mut p = cuda();
    let mut t = 0;
    for _ in 0..100 {
        for kernel in 0..20 {
            p.launch(
                1,
                [t + kernel * 5, t + kernel * 5 + 4],
                t + 8 + kernel * 50,
                49,
            );
        }
        let id = p.mark(1, "transfer", [t + 110, t + 110 + length]);
        p.line(&format!(
            "transfer submission={id} queue=1 kind=device-to-host bytes={bytes} host_memory={memory} start_ns={}us duration_ns=2us",
            t + 1_010
        ));
        p.call("other-call", [t + 111 + length, t + 112 + length]);
        t += 110 + length + pause;
    }
    p.findings()
}

#[test]
fn small_results_that_are_read_back_are_waits_and_told_to_be_read_less_often() {
    for (length, pause) in [(925, 100), (1_100, 100), (925, 1_000)] {
        let findings = reads_back("pageable", 4, length, pause);
        let idle_after_read = length - 902 + if pause < 200 { pause } else { 0 };
        assert!(
            us_of(&findings, AfterHostWait) >= 99 * idle_after_read - 200,
            "{length}"
        );
        // The copy starts 3 us after the kernels, and each launch takes 4 us.
        assert!(us_of(&findings, SubmitCall) <= 100 * 7, "{length}");
        assert_says(
            advice(&findings, AfterHostWait),
            "most of this time passes in waits for small results to be read back: read results back less often",
        );
    }
    let findings = reads_back("pageable", 4 << 20, 1_100, 100);
    assert_says(advice(&findings, AfterHostWait), "pin the memory");
    // A call that returns before its copy is none that waits.
    let findings = reads_back("pinned", 4, 5, 2_000);
    assert_eq!(us_of(&findings, AfterHostWait), 0);
    for advice in findings.advice.iter() {
        assert!(!advice.text.contains("read back"), "{}", advice.text);
    }
}

#[test]
fn launches_that_return_with_their_kernel_wait_for_it() {
    let blocking = |before: i64, kernel: i64, after: i64| {
        let mut p = cuda();
        for turn in 0..50 {
            let t = turn * (before + kernel + after + 60);
            p.launch(1, [t, t + before + kernel + after], t + before, kernel);
            p.call(
                "other-call",
                [
                    t + before + kernel + after + 1,
                    t + before + kernel + after + 2,
                ],
            );
        }
        p.findings()
    };
    let findings = blocking(8, 900, 10);
    assert_eq!(us_of(&findings, SubmitCall), 49 * 8);
    assert_eq!(us_of(&findings, AfterHostWait), 49 * (10 + 60 - 1));
    assert_says(advice(&findings, AfterHostWait), "CUDA_LAUNCH_BLOCKING");
    // A call in which something else takes long, and a kernel that ends within a usual call.
    for (before, kernel, after) in [(2_000, 900, 10), (3, 4, 5), (8, 900, 600)] {
        let findings = blocking(before, kernel, after);
        assert_eq!(
            us_of(&findings, AfterHostWait),
            0,
            "{before} {kernel} {after}"
        );
    }
}

#[test]
fn graphs_of_one_kernel_are_not_told_to_be_graphs() {
    let mut p = cuda();
    for turn in 0..100 {
        let t = turn * 1_000;
        p.graph(1, [t, t + 500], &[[t + 510, 50]], "");
        p.launch(1, [t + 600, t + 605], t + 606, 20);
    }
    let findings = p.findings();
    assert_eq!(
        advice(&findings, SubmitCall),
        "most of this time passes in launches of graphs, of 1.0 kernels each: a graph helps only with more kernels in it"
    );
}

/// A program whose host is late while a counter of pressure has such a value, in percent.
pub fn under_pressure(counter: &str, percent: u32) -> Findings {
    let mut p = cuda();
    for turn in 0..1_000 {
        let t = turn * 1_000;
        p.launch(1, [t + 700, t + 705], t + 706, 290);
    }
    p.line("host_call process=1 thread=7 call=other-call start_ns=1us duration_ns=1us");
    p.line(&format!(
        "counter id=1 name=\"{counter}\" unit=percent source=test
         counter_value counter=1 start_ns=0 value={percent}"
    ));
    p.findings()
}

#[test]
fn pressure_on_processors_is_told_beside_a_late_host() {
    for counter in [
        "machine stalled on cpu (some)",
        "cgroup stalled on cpu (some)",
    ] {
        let findings = under_pressure(counter, 95);
        assert_says(
            advice(&findings, HostLate),
            "a task waited for a processor for 95.0 % of the time",
        );
        assert_eq!(findings.conditions[0].kind, ConditionKind::ProcessorStall);
        assert_says(
            &findings.conditions[0].sentence,
            "waited for a processor for",
        );
        let findings = under_pressure(counter, 20);
        assert!(!advice(&findings, HostLate).contains("processor"));
        assert!(findings.conditions.is_empty());
    }
    let findings = under_pressure("machine stalled on io (some)", 80);
    assert_says(advice(&findings, HostLate), "waited for a disk for 80.0 %");
    let findings = under_pressure("machine stalled on memory (some)", 0);
    assert!(findings.conditions.is_empty());
}

#[test]
fn calls_that_load_code_are_the_cause_whatever_comes_before() {
    let mut p = cuda();
    for turn in 0..100 {
        let t = turn * 10_000 + if turn > 50 { 500_000 } else { 0 };
        if turn == 50 {
            p.call("load-module", [t, t + 500_000]);
        }
        let t = t + if turn == 50 { 500_000 } else { 0 };
        p.launch(1, [t, t + 5], t + 10, 9_900);
    }
    let findings = p.findings();
    assert_eq!(us_of(&findings, HostCompile), 500_000);
    assert_eq!(findings.gaps[0].cause, HostCompile);
}

#[test]
fn advice_on_calls_fits_the_function() {
    let meanwhile = |call: &str, function: &str| calls_meanwhile(call, function, 1_000, [110, 700]);
    for (call, function, cause, told) in [
        (
            "allocate-memory",
            "cudaMalloc",
            HostAllocate,
            "memory pool (cudaMallocAsync)",
        ),
        (
            "allocate-memory",
            "cudaHostAlloc",
            HostAllocate,
            "the host was mostly in cudaHostAlloc: allocate that memory once",
        ),
        (
            "load-module",
            "cuModuleLoadData",
            HostCompile,
            "load modules and instantiate graphs before the loop",
        ),
        (
            "build-graph",
            "cudaGraphInstantiate",
            HostCompile,
            "build graphs before the loop",
        ),
        (
            "other-call",
            "cuCtxSetLimit",
            HostCall,
            "the host was mostly in cuCtxSetLimit: call it before the loop",
        ),
    ] {
        assert_says(advice(&meanwhile(call, function), cause), told);
    }
}

#[test]
fn copies_to_pinned_memory_are_advised_where_there_are_copies_to_the_host() {
    let waits = |copies: bool| {
        let mut p = cuda();
        for turn in 0..50 {
            let t = turn * 1_000;
            let id = p.launch(1, [t, t + 5], t + 8, 100);
            if copies {
                p.line(&format!(
                    "transfer submission={id} queue=1 kind=device-to-host bytes=4 host_memory=pinned start_ns={}us duration_ns=2us",
                    t + 109
                ));
            }
            p.call("wait-device-idle", [t + 10, t + 900]);
        }
        p.findings()
    };
    assert_says(advice(&waits(true), AfterHostWait), "pinned memory");
    assert_eq!(
        advice(&waits(false), AfterHostWait),
        "the wait serialises host and GPU: synchronise less often"
    );
}
