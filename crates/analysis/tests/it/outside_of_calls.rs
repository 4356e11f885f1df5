//! What a thread does outside of calls: it runs, sleeps, or builds code that it then loads. Each with a program in which it is so and
//! one in which it looks alike and is not.

use crate::program::{Program, assert_says};
use crate::true_causes::{advice, cuda, us_of};
use gapscope_analysis::Findings;
use gapscope_analysis::gaps::Cause::*;

/// A program whose thread 7 launches a kernel each 10 ms, and is sampled each 2 ms as `sample` says of each time. `rows` are
/// further rows.
pub fn sampled(sample: impl Fn(i64) -> String, rows: &str) -> Findings {
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

pub fn sample(at: i64, more: &str) -> String {
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
        ("state=blocked", "something that the trace does not name"),
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
pub fn decoder(pause: impl Fn(i64) -> i64, loads: impl Fn(i64) -> bool, rows: &str) -> Findings {
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
        "new code is built and loaded 100 times, at sdpa_attention.py:158, with 50.0 ms before each load",
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
    // A library that loads its code when it is first used does so after any time, here 4 s of starting a profiler.
    let pause = |token| match token {
        1 => 4_000_000,
        2..=5 => 20_000,
        _ => 50,
    };
    let findings = decoder(pause, |token| token < 6, "");
    assert_eq!(us_of(&findings, HostCompile), 100 + 4 * 20_100);
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

/// Samples of thread 7 before each load of [`decoder`] with pauses of 50 ms: one each 5 ms, whose columns `sample_at` gives by the
/// time since the pause began, and one in the load with the columns `in_load`.
fn samples_before_loads(sample_at: impl Fn(i64) -> String, in_load: &str) -> String {
    let mut rows = String::from(
        "frame id=1 kind=python function=main file=/home/a/serve.py line=10
         frame id=2 kind=python function=load_batch file=/home/a/data.py line=33
         frame id=3 kind=python function=attend file=/home/a/model.py line=70
         frame id=4 kind=python function=compile file=/opt/venv/lib/python3.12/site-packages/triton/compiler/compiler.py line=300
         frame id=5 kind=python function=arrange file=/home/a/plan.py line=5
         frame id=6 kind=native function=nvrtcCompileProgram library=/usr/local/cuda/lib64/libnvrtc.so.12
         stack id=1 frame=1\nstack id=2 parent=1 frame=2\nstack id=3 parent=1 frame=3
         stack id=4 parent=3 frame=4\nstack id=5 parent=1 frame=5\nstack id=6 parent=5 frame=6\n",
    );
    for token in 0..100 {
        let start = token * 50_605;
        for since in (2_000..50_000).step_by(5_000) {
            rows += &format!("{}\n", sample(start + since, &sample_at(since)));
        }
        if !in_load.is_empty() {
            rows += &format!("{}\n", sample(start + 50_050, in_load));
        }
    }
    rows
}

#[test]
fn code_is_built_before_a_load_only_where_samples_do_not_show_something_else() {
    let late = |sample_at: &dyn Fn(i64) -> String, in_load: &str| {
        let rows = samples_before_loads(sample_at, in_load);
        let findings = decoder(|_| 50_000, |_| true, &rows);
        us_of(&findings, HostLate) / 99
    };
    let always = |columns: &'static str| move |_| columns.to_owned();
    for (columns, in_load, is_built) in [
        // A compiler runs, or its child process does.
        ("state=running stack=4", "", true),
        ("state=blocked stack=4 system_call=wait4", "", true),
        ("state=running stack=6", "", true),
        // In the function that loads the code.
        ("state=running stack=3", "state=running stack=3", true),
        // The names do not say, and where the load is made is not known.
        ("state=running stack=5", "", true),
        ("state=running", "", true),
        // It reads data, waits, or is in another function than the load.
        ("state=running stack=2", "", false),
        ("state=running stack=2", "state=running stack=3", false),
        ("state=blocked stack=5 system_call=recvmsg", "", false),
        ("state=blocked stack=3 system_call=futex", "", false),
        ("state=running stack=5", "state=running stack=3", false),
        ("state=running stack=5", "state=running stack=1", false),
    ] {
        let us = late(&always(columns), in_load);
        let case = format!("{columns} / {in_load}: {us} us late");
        assert_eq!(us < 1_000, is_built, "{case}");
        assert_eq!(us > 49_000, !is_built, "{case}");
    }
    // The batch is read for 20 ms, and then the code is built.
    let mixed = |since: i64| match since < 20_000 {
        true => "state=running stack=2".to_owned(),
        false => "state=running stack=4".to_owned(),
    };
    assert!((15_000..21_000).contains(&late(&mixed, "")));
    // The load stands apart, and what the thread did instead is said.
    let rows = samples_before_loads(always("state=running stack=2"), "");
    let findings = decoder(|_| 50_000, |_| true, &rows);
    assert_eq!(us_of(&findings, HostCompile), 99 * 100);
    assert_says(
        advice(&findings, HostLate),
        "the launching thread ran its own code",
    );
    assert!(!advice(&findings, HostCompile).contains("built"));
}

#[test]
fn code_is_built_before_a_load_only_where_ranges_do_not_show_something_else() {
    for (text, around_load, is_built) in [
        ("triton/compiler/compiler.py(300): compile", "", true),
        ("step", "", true),
        ("torch/utils/data/dataloader.py(708): __next__", "", false),
        ("load_batch", "", false),
        ("threading.py(355): wait", "", false),
        ("arrange", "forward", false),
    ] {
        let mut rows = format!("label id=1 text=\"{text}\"\nlabel id=2 text=\"{around_load}\"\n");
        for token in 0..100 {
            let start = token * 50_605;
            let mut range = |label: i64, from: i64, to: i64| {
                rows += &format!(
                    "marker process=1 thread=7 scope=thread label={label} start_ns={}us duration_ns={}us\n",
                    start + from,
                    to - from
                );
            };
            range(1, 10, 49_900);
            if !around_load.is_empty() {
                range(2, 49_950, 50_500);
            }
        }
        let findings = decoder(|_| 50_000, |_| true, &rows);
        let us = us_of(&findings, HostLate) / 99;
        assert_eq!(us < 1_000, is_built, "{text}: {us} us late");
        assert_eq!(us > 49_000, !is_built, "{text}: {us} us late");
    }
}

/// Ranges of Python's functions of thread `thread` while each token is built: the program's own and the compiler's inside of it.
fn python_ranges(thread: u32) -> String {
    let mut rows = String::from(
        "label id=1 text=\"/opt/venv/lib/python3.12/site-packages/torch/nn/modules/module.py(1501): _call_impl\"
         label id=2 text=\"integrations/sdpa_attention.py(158): sdpa_attention_forward\"
         label id=3 text=\"triton/compiler/compiler.py(300): compile\"\n",
    );
    for token in 0..100 {
        let t = 100 + token * 51_000;
        for (label, from, to) in [(1, 0, 50_000), (2, 10, 49_000), (3, 20, 48_000)] {
            rows += &format!(
                "marker process=1 thread={thread} scope=thread label={label} domain=python start_ns={}us duration_ns={}us\n",
                t + from,
                to - from
            );
        }
    }
    rows
}

#[test]
fn ranges_say_where_code_is_built_and_without_them_no_line_is_told() {
    let pause = |token: i64| if token == 0 { 50_000 } else { 50_395 };
    let findings = decoder(pause, |_| true, &python_ranges(7));
    assert_says(
        advice(&findings, HostCompile),
        "new code is built and loaded 100 times, at sdpa_attention.py:158, with 50.4 ms before each load",
    );
    let findings = decoder(pause, |_| true, "");
    assert_says(
        advice(&findings, HostCompile),
        "new code is built and loaded 100 times, with 50.4 ms before each load",
    );
    // Ranges of another thread say nothing of this one.
    let findings = decoder(pause, |_| true, &python_ranges(9));
    assert_says(advice(&findings, HostCompile), "100 times, with 50.4 ms");
}

#[test]
fn every_function_that_loads_code_is_one_and_those_that_unload_it_are_none() {
    let loads = |call: &str, function: &str| {
        let mut p = cuda();
        for turn in 0..50 {
            let t = turn * 30_000;
            p.line(&format!(
                "host_call process=1 thread=7 call={call} function={function} start_ns={}us duration_ns=300us",
                t + 20_000
            ));
            p.launch(1, [t + 20_400, t + 20_405], t + 20_410, 100);
        }
        p.findings()
    };
    for (call, function) in [
        ("load-module", "cuModuleLoadData"),
        ("load-module", "cuLibraryLoadData"),
        ("load-module", "hipModuleLoad"),
        ("other-call", "cuLibraryLoadData"),
        ("create-pipelines", "vkCreateComputePipelines"),
        ("create-pipelines", "newComputePipelineState"),
    ] {
        let findings = loads(call, function);
        assert_says(advice(&findings, HostCompile), "built and loaded 50 times");
        assert!(us_of(&findings, HostLate) < 49 * 200, "{function}");
    }
    for function in ["cuModuleUnload", "cuLibraryUnload", "cuLibraryGetKernel"] {
        let findings = loads("load-module", function);
        assert_eq!(us_of(&findings, HostCompile), 49 * 300, "{function}");
    }
}

/// A program whose thread 8 builds code for 50 ms and loads it, 100 times; thread 7 launches `after` us later.
fn builds_on_another_thread(after: i64) -> Findings {
    let mut p = cuda();
    for turn in 0..100 {
        let t = turn * 60_000;
        p.call_on(8, "load-module", [t + 50_000, t + 50_100]);
        let launch = t + 50_100 + after;
        p.launch(1, [launch, launch + 5], launch + 8, 1_000);
    }
    p.findings()
}

#[test]
fn code_that_another_thread_builds_is_waited_for_where_the_launch_comes_at_once() {
    let findings = builds_on_another_thread(50);
    assert_says(advice(&findings, HostCompile), "built and loaded 100 times");
    assert!(
        us_of(&findings, HostLate) <= 99 * 100,
        "{:?}",
        findings.gaps
    );
    // Who goes on 5 ms later did something else.
    let findings = builds_on_another_thread(5_000);
    assert_eq!(us_of(&findings, HostCompile), 99 * 100);
}

#[test]
fn other_threads_are_named_by_their_ranges_and_calls_while_the_submitting_one_is_late() {
    let at_work = |rows: &str| {
        let mut p = cuda();
        p.line("thread process=1 thread=8 name=loader");
        p.line("label id=1 text=\"decode_jpeg\"\nlabel id=2 text=\"threading.py(355): wait\"");
        for turn in 0..20 {
            let t = turn * 10_000;
            p.launch(1, [t, t + 5], t + 8, 1_992);
            p.call("other-call", [t + 2_001, t + 2_002]);
            for row in rows.lines() {
                p.line(&format!("{row} start_ns={}us duration_ns=4ms", t + 4_000));
            }
        }
        p.findings().idle_time.threads_at_work.clone()
    };
    for (rows, mostly_in) in [
        (
            "marker process=1 thread=8 scope=thread label=1",
            "decode_jpeg",
        ),
        (
            "host_call process=1 thread=8 call=other-call function=cuCtxSetLimit",
            "cuCtxSetLimit",
        ),
    ] {
        let threads = at_work(rows);
        assert_eq!(threads.len(), 1, "{rows}");
        assert_eq!(threads[0].thread_name.as_deref(), Some("loader"));
        assert_eq!(threads[0].mostly_in, mostly_in);
        // An estimate of 4 ms of each gap.
        let ms = threads[0].total_ns / 1_000_000;
        assert!((19 * 3..=19 * 5).contains(&ms), "{ms}");
    }
    // A thread that waits, the late thread's own range, another process's.
    for rows in [
        "marker process=1 thread=8 scope=thread label=2",
        "host_call process=1 thread=8 call=wait-queue-idle",
        "marker process=1 thread=7 scope=thread label=1",
        "marker process=2 thread=8 scope=thread label=1",
        "",
    ] {
        assert_eq!(at_work(rows), [], "{rows}");
    }
}

#[test]
fn a_thread_that_asked_for_a_backward_pass_waits_for_it() {
    // Thread 7 runs the pieces of the backward pass; thread 8 asked for it, and does nothing else.
    let at_work = |busy: bool| {
        let mut p = cuda();
        p.line("thread process=1 thread=8 name=python");
        p.line(
            "label id=1 text=\"## backward ##\"
             label id=2 text=\"autograd::engine::evaluate_function: AddmmBackward0\"
             label id=3 text=\"aten::copy_\"",
        );
        for turn in 0..20 {
            let t = turn * 10_000;
            p.launch(1, [t, t + 5], t + 8, 1_992);
            p.call("other-call", [t + 2_001, t + 2_002]);
            let range = |thread, label, start: i64, length: i64| {
                format!(
                    "marker process=1 thread={thread} scope=thread label={label} start_ns={start}us duration_ns={length}us"
                )
            };
            p.line(&range(8, 1, t + 1_000, 8_990));
            p.line(&range(7, 2, t + 2_010, 7_900));
            if busy {
                p.line(&range(8, 3, t + 3_000, 6_000));
            }
        }
        p.findings().idle_time.threads_at_work.clone()
    };
    assert_eq!(at_work(false), []);
    // It has begun something else since.
    let threads = at_work(true);
    assert_eq!(threads.len(), 1);
    assert_eq!(threads[0].mostly_in, "aten::copy_");
}

#[test]
fn a_thread_that_waits_by_its_range_is_not_told_to_launch_ahead() {
    let advised = |range: &str| {
        let mut p = cuda();
        p.line(&format!("label id=1 text=\"{range}\""));
        for turn in 0..20 {
            let t = turn * 10_000;
            p.launch(1, [t, t + 5], t + 8, 1_992);
            p.line(&format!(
                "marker process=1 thread=7 scope=thread label=1 start_ns={}us duration_ns=7900us",
                t + 2_050
            ));
        }
        advice(&p.findings(), HostLate).to_owned()
    };
    for (range, waited_for, to_do) in [
        (
            "epoll_wait",
            "its event loop idle",
            "send more work to the thread at once",
        ),
        ("select", "events on files or sockets", "ask earlier"),
        (
            "<built-in method poll of select.poll object at 0x7f3e>",
            "events on files or sockets",
            "ask earlier",
        ),
        ("recvmsg", "a socket", "ask earlier"),
        ("pthread_cond_wait", "another thread", "let it run ahead"),
    ] {
        let told = advised(range);
        assert_says(&told, waited_for);
        assert_says(&told, to_do);
        assert!(!told.contains("launch ahead"), "{told}");
    }
    assert_says(&advised("tokenize"), "launch ahead");
}

#[test]
fn samples_of_unknown_state_are_waits_by_the_name_of_their_function() {
    let rows = "frame id=9 kind=native function=__epoll_wait library=/usr/lib/libc.so.6
                frame id=8 kind=native function=tokenize library=/home/a/libtok.so
                stack id=9 parent=1 frame=9\nstack id=8 parent=1 frame=8";
    let waits = sampled(|at| sample(at, "stack=9"), rows);
    assert_says(advice(&waits, HostLate), "its event loop idle");
    let runs = sampled(|at| sample(at, "stack=8"), rows);
    assert_says(advice(&runs, HostLate), "ran its own code");
}
