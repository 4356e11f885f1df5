//! The cause is what the trace shows, and advice is given only where it can help: each with a program in which it is so and one
//! in which it looks alike and is not.

use crate::program::{Program, assert_says, causes};
use gapscope_analysis::Findings;
use gapscope_analysis::conditions::ConditionKind;
use gapscope_analysis::gaps::Cause::{self, *};

/// A CUDA program with one device.
fn cuda() -> Program {
    Program::from_text(
        "manifest sampling_mode=dispatch start_ns=0 end_ns=10s
         process id=1 pid=10 hook=cuda executable=/usr/bin/app
         device id=1 process=1 api=cuda name=GPU uuid=aa clock.error_ns=0
         queue id=1 device=1
         kernel id=1 process=1 name=work
         kernel id=2 process=1 name=other",
    )
}

fn us_of(findings: &Findings, cause: Cause) -> i64 {
    let totals = causes(&findings.gaps).into_iter();
    totals
        .filter(|(of, _)| *of == cause)
        .map(|(_, us)| us)
        .sum()
}

fn advice(findings: &Findings, cause: Cause) -> &str {
    findings.advice_on(cause).unwrap_or_default()
}

/// A program that launches a kernel of 100 us each `period` us, 8 us before it starts, and makes a call of a function
/// meanwhile, from `from` to `to` us after the launch.
fn calls_meanwhile(call: &str, function: &str, period: i64, [from, to]: [i64; 2]) -> Findings {
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
        "it was mostly in vkAcquireNextImageKHR, which waits for the display or the compositor"
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
fn copies(memory: &str, bytes: u64) -> Findings {
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
fn launches(count: i64, slow: &[i64], kernel: impl Fn(i64) -> u32) -> Findings {
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
        "one call took 1.50 s of it (1.50 s for work), where the median call takes 5.00 µs: what held it up is not in the trace, \
         such as memory that the driver had to allocate, or a lock"
    );
    let findings = launches(100, &[50], |turn| 1 + u32::from(turn >= 50));
    assert_says(advice(&findings, SubmitCall), "1.50 s for other");
    assert_says(
        advice(&findings, SubmitCall),
        "it was the first of this kernel",
    );
    let findings = launches(100, &[50, 60, 70], |_| 1);
    assert_says(advice(&findings, SubmitCall), "3 calls took 4.50 s of it");
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
        "most of it launches graphs, of 1.0 kernels each: a graph helps only with more kernels in it"
    );
}

/// A program whose host is late while a counter of pressure has such a value, in percent.
fn under_pressure(counter: &str, percent: u32) -> Findings {
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

/// A program whose thread 7 launches a kernel each 10 ms, and is sampled each 2 ms as `sample` says of each time. `rows` are
/// further rows.
fn sampled(sample: impl Fn(i64) -> String, rows: &str) -> Findings {
    let mut p = cuda();
    p.line(
        "thread process=1 thread=8 name=compiler
         frame id=0 kind=python function=main file=/home/a/train.py line=60
         frame id=1 kind=python function=step file=/home/a/train.py line=41
         frame id=2 kind=python function=Condition.wait file=/usr/lib/python3.12/threading.py line=355
         frame id=3 kind=python function=Connection.poll file=/usr/lib/python3.12/multiprocessing/connection.py line=257
         frame id=4 kind=native function=__libc_recvmsg library=/usr/lib/libc.so.6
         frame id=5 kind=native function=build library=/home/a/libbuild.so
         stack id=0 frame=0\nstack id=1 parent=0 frame=1\nstack id=2 parent=1 frame=2
         stack id=3 parent=1 frame=3\nstack id=4 parent=1 frame=4\nstack id=5 frame=5",
    );
    for turn in 0..20 {
        let t = turn * 10_000;
        p.launch(1, [t, t + 5], t + 8, 992);
        // So that the calls of the thread are known.
        p.call("other-call", [t + 1_001, t + 1_002]);
        for at in (t + 1_500..t + 10_000).step_by(2_000) {
            p.line(&sample(at));
        }
    }
    p.line(rows);
    p.findings()
}

fn sample(at: i64, more: &str) -> String {
    format!("sample time_ns={at}us process=1 thread=7 source=sampled period_ns=2ms {more}")
}

#[test]
fn a_thread_that_sleeps_is_not_in_code_of_the_program() {
    for (more, waited_for) in [
        (
            "state=blocked stack=1 system_call=recvmsg",
            "a socket (the network or another process), in recvmsg",
        ),
        (
            "state=blocked stack=4",
            "a socket (the network or another process)",
        ),
        (
            "state=blocked stack=1 system_call=futex",
            "another thread, in futex",
        ),
        (
            "state=blocked stack=2 system_call=futex",
            "another thread, in futex",
        ),
        (
            "state=blocked stack=3 system_call=poll",
            "another process, in poll",
        ),
        (
            "state=blocked stack=1 system_call=wait4",
            "another process, in wait4",
        ),
        (
            "state=blocked stack=1 system_call=clock_nanosleep",
            "a sleep of its own to end, in clock_nanosleep",
        ),
        (
            "state=blocked stack=1 system_call=epoll_wait",
            "events on files or sockets, as an event loop does, in epoll_wait",
        ),
        (
            "state=blocked stack=1 system_call=pread64",
            "a disk, in pread64",
        ),
        (
            "state=blocked stack=1 system_call=futex gil_holder=8",
            "the interpreter's lock (GIL), in futex",
        ),
        ("state=blocked", "something that the samples do not name"),
    ] {
        let findings = sampled(|at| sample(at, more), "");
        let host = &findings.verdict_evidence.parts[0].sentence;
        assert_says(host, &format!("it was asleep, waiting for {waited_for}."));
        let told = format!("the launching thread slept, waiting for {waited_for}: ");
        assert_says(advice(&findings, HostLate), &told);
    }
}

#[test]
fn a_thread_that_runs_is_in_code_of_the_program_and_without_samples_nothing_is_said() {
    let findings = sampled(|at| sample(at, "state=running stack=1"), "");
    let host = &findings.verdict_evidence.parts[0].sentence;
    assert_says(host, "it was in code of the program.");
    assert_says(
        advice(&findings, HostLate),
        "the launching thread ran its own code",
    );
    let findings = sampled(|_| String::new(), "");
    let host = &findings.verdict_evidence.parts[0].sentence;
    assert_says(host, "it was outside of GPU calls.");
    // It sleeps in one of five samples.
    let mixed = |at: i64| match at % 10_000 {
        1_500 => sample(at, "state=blocked stack=1 system_call=futex"),
        _ => sample(at, "state=running stack=1"),
    };
    let findings = sampled(mixed, "");
    let host = &findings.verdict_evidence.parts[0].sentence;
    assert_says(host, "it was in code of the program.");
}

#[test]
fn the_threads_that_ran_while_the_submitting_one_slept_are_named_with_their_code() {
    let others: String = (0..20)
        .map(|turn| {
            let t = turn * 10_000;
            // One sample while thread 7 is blocked, one while it launches, and one in which thread 8 sleeps, too.
            format!(
                "sample time_ns={}us process=1 thread=8 source=sampled period_ns=2ms state=running stack=5
                 sample time_ns={}us process=1 thread=8 source=sampled period_ns=2ms state=running stack=5
                 sample time_ns={}us process=1 thread=8 source=sampled period_ns=2ms state=blocked stack=5 system_call=futex\n",
                t + 3_600,
                t + 100,
                t + 5_600
            )
        })
        .collect();
    let asleep = |at| sample(at, "state=blocked stack=2 system_call=futex");
    let findings = sampled(asleep, &others);
    let code = findings.code.as_ref().unwrap();
    let ran = &code.ran_meanwhile;
    assert_eq!(ran.len(), 1);
    assert_eq!(ran[0].thread_name.as_deref(), Some("compiler"));
    assert_eq!(ran[0].samples, 19);
    assert_eq!(ran[0].frames[0].function.as_deref(), Some("build"));
    // Beside a thread that runs, the others are no reason.
    let awake = |at| sample(at, "state=running stack=1");
    let findings = sampled(awake, &others);
    assert_eq!(findings.code.unwrap().ran_meanwhile, []);
}

/// A decoder of 100 tokens, of 20 launches each; `pause(token)` is the time in us that the thread is outside of calls before each
/// token, and `loads(token)` whether it then loads code.
fn decoder(pause: impl Fn(i64) -> i64, loads: impl Fn(i64) -> bool, rows: &str) -> Findings {
    let mut p = cuda();
    let mut t = 0;
    for token in 0..100 {
        t += pause(token);
        if loads(token) {
            p.call("load-module", [t, t + 100]);
            t += 200;
        }
        for _ in 0..20 {
            p.launch(1, [t, t + 5], t + 8, 10);
            t += 20;
        }
        p.call("wait-queue-idle", [t, t + 5]);
        t += 5;
    }
    p.line(rows);
    p.findings()
}

#[test]
fn the_time_that_leads_to_loading_new_code_again_and_again_builds_it() {
    let samples: String = (0..100)
        .map(|n| format!("{}\n", sample(300 + n * 51_000, "state=running stack=1")))
        .collect();
    let rows = format!(
        "frame id=1 kind=python function=forward file=/home/a/sdpa_attention.py line=158\nstack id=1 frame=1\n{samples}"
    );
    let findings = decoder(|_| 50_000, |_| true, &rows);
    // 99 gaps of 50 ms in no call and 100 us in the load; the time behind the load is late.
    assert_eq!(us_of(&findings, HostCompile), 99 * 50_100);
    assert_says(
        advice(&findings, HostCompile),
        "new code is built and loaded 99 times, at sdpa_attention.py:158, with 50.0 ms before each load",
    );
    // The same on Vulkan, whose pipelines are compiled in the call and translated before it.
    let mut p = Program::new();
    for turn in 0..20 {
        let t = turn * 10_000;
        p.dispatch(1, [t, t + 5], t + 10, 100);
        p.call("create-shader-module", [t + 4_000, t + 4_100]);
        p.call("create-pipelines", [t + 6_000, t + 9_900]);
    }
    assert_eq!(us_of(&p.findings(), HostCompile), 19 * (9_900 - 110));
}

#[test]
fn time_before_loads_that_comes_without_loads_too_is_late() {
    // Each token waits as long, and every fifth loads code.
    let findings = decoder(|_| 50_000, |token| token % 5 == 0, "");
    assert_eq!(us_of(&findings, HostCompile), 19 * 100);
    // Twice is how programs start.
    let findings = decoder(
        |token| if token < 3 { 50_000 } else { 50 },
        |token| token < 3,
        "",
    );
    assert!(us_of(&findings, HostCompile) < 1_000);
    // A short time before each load is none in which code is built.
    let findings = decoder(|_| 500, |_| true, "");
    assert_eq!(us_of(&findings, HostCompile), 99 * 100);
    // Code that is loaded at its first use, inside of the launch, is not built.
    let mut p = cuda();
    for turn in 0..50 {
        let t = turn * 60_000;
        p.launch(1, [t, t + 1_000], t + 1_010, 100);
        p.call("load-module", [t + 10, t + 900]);
    }
    let findings = p.findings();
    assert_eq!(us_of(&findings, HostCompile), 49 * 890);
}
