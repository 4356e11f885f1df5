use super::*;
use gapscope_trace::Trace;
use gapscope_trace::ids::ThreadId;

/// Two dispatches of 1 ms, the second submitted 30 ms after the first ended; the thread's samples come every 2 ms.
fn trace(samples: &str) -> Trace {
    let text = format!(
        "manifest sampling_mode=dispatch start_ns=0 end_ns=100ms stack_rate_hz=500
        process id=1 pid=7 hook=cuda
        process id=2 pid=8 hook=sampled
        process id=3 pid=9 hook=sampled
        thread process=1 thread=7 name=main
        thread process=1 thread=70 name=loader
        device id=1 process=1
        queue id=1 device=1
        submission id=1 process=1 queue=1 thread=7 start_ns=9ms duration_ns=100us
        submission id=2 process=1 queue=1 thread=7 start_ns=41ms duration_ns=1ms
        command_buffer id=1 process=1 queue=1 submission=1 dispatches=1
        command_buffer id=2 process=1 queue=1 submission=2 dispatches=1
        dispatch command_buffer=1 queue=1 kernel=1 start_ns=10ms duration_ns=1ms
        dispatch command_buffer=2 queue=1 kernel=1 start_ns=43ms duration_ns=1ms
        host_call process=1 thread=7 call=wait-queue-idle start_ns=10ms duration_ns=2ms
        frame id=0 kind=python function=main file=/home/a/train.py line=60
        frame id=1 kind=python function=load_batch file=/home/a/train.py line=41
        frame id=2 kind=python function=resize file=/v/lib/python3.12/site-packages/PIL/Image.py line=9
        frame id=3 kind=native function=ImagingResample library=/v/lib/python3.12/site-packages/PIL/_imaging.so
        frame id=4 kind=python function=crop file=/home/a/train.py line=50
        frame id=5 kind=python function=Queue.get file=/usr/lib/python3.12/multiprocessing/queues.py line=103
        stack id=0 frame=0
        stack id=1 parent=0 frame=1
        stack id=2 parent=1 frame=2
        stack id=3 parent=2 frame=3
        stack id=4 parent=0 frame=4
        stack id=5 parent=0 frame=5
        {samples}"
    );
    Trace::from_text(&text).unwrap()
}

fn sample(at_us: i64, stack: &str, more: &str) -> String {
    format!(
        "sample time_ns={at_us}us process=1 thread=7 {stack} state=running source=sampled period_ns=2ms {more}\n"
    )
}

fn code_of(trace: &Trace) -> Code {
    let timeline = Timeline::new(trace);
    let window = timeline.work_window().unwrap();
    let idle = crate::gaps::idle_time(&timeline, window, 0, 10);
    let samples = CodeSamples::new(&timeline).unwrap();
    let code = samples.code(&SummedGaps {
        finder: &GapFinder::new(&timeline),
        window,
        threshold_ns: 0,
        longest: &idle.longest,
    });
    for cause in &code.causes {
        let of_code: i64 = cause.code.iter().map(|time| time.total_ns).sum();
        assert_eq!(of_code + cause.without_samples_ns, cause.total_ns);
        let mut totals = idle.causes.iter();
        let total = totals.find(|total| total.cause == cause.cause).unwrap();
        assert!(cause.total_ns <= total.total_ns, "{cause:?}");
    }
    code
}

/// Samples at 1 ms, 3 ms and so on of the time in which the host is late, 12 ms to 41 ms.
fn late(of: impl Fn(i64) -> String) -> String {
    (0..14).map(|n| of(13_000 + 2_000 * n)).collect()
}

#[test]
fn the_time_of_a_cause_is_split_by_the_samples_in_it() {
    let samples = late(|at| sample(at, if at < 33_000 { "stack=3" } else { "stack=4" }, ""));
    let code = code_of(&trace(&samples));
    assert_eq!(code.samples, 14);
    let late = &code.causes[0];
    assert_eq!((late.cause, late.total_ns), (Cause::HostLate, 29_000_000));
    assert_eq!((late.samples, late.without_samples_ns), (14, 0));
    let told = late.code.iter().map(|c| (text(&c.frames), c.samples));
    let told: Vec<_> = told.collect();
    let resize = "train.py:41 load_batch > resize > ImagingResample".to_owned();
    assert_eq!(told, [(resize, 10), ("train.py:50 crop".to_owned(), 4)]);
    assert_eq!(late.code[0].total_ns, 29_000_000 * 10 / 14 + 1);
    // The longest gap has the same code.
    assert_eq!(code.longest[0][0].frames, late.code[0].frames);
}

#[test]
fn what_samples_do_not_cover_is_not_spread_over_others() {
    // The sampler was late: five samples of 2 ms in 29 ms.
    let few = (0..5).map(|n| sample(13_000 + 2_000 * n, "stack=4", ""));
    let few: String = few.collect();
    let code = code_of(&trace(&few));
    let cause = &code.causes[0];
    assert_eq!((cause.samples, cause.code[0].total_ns), (5, 10_000_000));
    assert_eq!(cause.without_samples_ns, 19_000_000);
    // Samples whose stack could not be read have a row without frames.
    let unread = late(|at| sample(at, if at < 17_000 { "" } else { "stack=4" }, ""));
    let late = &code_of(&trace(&unread)).causes[0];
    let last = late.code.last().unwrap();
    assert_eq!((last.frames.len(), last.samples), (0, 2));
}

#[test]
fn samples_outside_of_gaps_and_of_other_threads_count_for_nothing() {
    let mut samples = sample(10_500, "stack=4", "") + &sample(43_500, "stack=4", "");
    samples += "sample time_ns=20ms process=1 thread=70 stack=4 state=running source=sampled period_ns=2ms\n";
    assert_eq!(code_of(&trace(&samples)).samples, 0);
}

#[test]
fn exact_lines_stand_without_time() {
    let exact = "sample time_ns=12ms process=1 thread=7 stack=4 state=running source=after-wait
        sample time_ns=41ms process=1 thread=7 stack=1 state=running source=at-submission";
    let code = code_of(&trace(exact));
    assert_eq!(code.samples, 0);
    let of = |cause| code.causes.iter().find(|of| of.cause == cause).unwrap();
    let wait = of(Cause::AfterHostWait);
    assert_eq!(wait.without_samples_ns, wait.total_ns);
    assert_eq!(wait.exact[0].source, SampleSource::AfterWait);
    assert_eq!(text(&wait.exact[0].frames), "train.py:50 crop");
    let mut late = of(Cause::HostLate).exact.iter();
    let submitted = late.find(|exact| exact.source == SampleSource::AtSubmission);
    assert_eq!(text(&submitted.unwrap().frames), "train.py:41 load_batch");
}

#[test]
fn workers_count_while_the_thread_waits_for_them() {
    let waiting = late(|at| sample(at, "stack=5", "system_call=poll"));
    let worker = |process: u32, stack: u32, at: i64| {
        format!(
            "sample time_ns={at}us process={process} thread={process} stack={stack} state=running source=sampled period_ns=20ms\n"
        )
    };
    let workers = [
        worker(2, 3, 15_000),
        worker(3, 3, 25_000),
        worker(3, 4, 35_000),
    ]
    .concat();
    let found = code_of(&trace(&(waiting + &workers))).workers.unwrap();
    assert_eq!((found.processes, found.samples), (2, 3));
    let first = &found.code[0];
    assert_eq!(first.samples, 2);
    assert_eq!(
        text(&first.frames),
        "train.py:41 load_batch > resize > ImagingResample"
    );
    // A thread that computes waits for no worker.
    let computing = late(|at| sample(at, "stack=4", ""));
    assert_eq!(code_of(&trace(&(computing + &workers))).workers, None);
}

#[test]
fn the_holder_of_the_interpreters_lock_is_named_with_its_line() {
    let holder = |at| if at < 20_000 { "gil_holder=70" } else { "" };
    let mut samples = late(|at| sample(at, "stack=1", holder(at)));
    samples += "sample time_ns=15500us process=1 thread=70 stack=4 state=running source=sampled period_ns=2ms\n";
    let code = code_of(&trace(&samples));
    let holder = &code.gil[0];
    assert_eq!((holder.thread, holder.samples), (ThreadId(70), 4));
    assert_eq!(holder.thread_name.as_deref(), Some("loader"));
    assert_eq!(text(&holder.frames), "train.py:50 crop");
}

#[test]
fn stacks_are_told_by_the_programs_own_code() {
    let python = |file: &str, line, function: &str| CodeFrame {
        function: Some(function.into()),
        file: Some(file.into()),
        line: Some(line),
        library: None,
        source: None,
        kind: gapscope_trace::tables::FrameKind::Python,
    };
    let native = |library: &str, function: Option<&str>| CodeFrame {
        function: function.map(Into::into),
        file: None,
        line: None,
        library: Some(library.into()),
        source: None,
        kind: gapscope_trace::tables::FrameKind::Native,
    };
    let torch = "/v/lib/python3.12/site-packages/torch/nn/modules/module.py";
    let deep = [
        native(
            "/v/lib/python3.12/site-packages/torch/lib/libtorch_cpu.so",
            Some("at::_ops::item"),
        ),
        python(torch, 7, "Module.__call__"),
        python(torch, 9, "Module._call_impl"),
        python("/home/a/train.py", 55, "main.<locals>.step"),
        python("/home/a/train.py", 80, "main"),
    ];
    assert_eq!(
        text(&deep),
        "train.py:55 step > Module._call_impl > … > at::_ops::item"
    );
    let library = [python(torch, 7, "Module.__call__")];
    assert_eq!(text(&library), "module.py:7 Module.__call__");
    let program = [
        native("/usr/lib/libc.so.6", Some("memcpy")),
        native("/home/a/app", Some("run")),
    ];
    assert_eq!(text(&program), "app run > memcpy");
    assert_eq!(text(&[native("/usr/lib/libx.so", None)]), "libx.so");
    let hook = native("/opt/gapscope/libgapscope_vulkan.so", None);
    let app = || native("/home/a/app", Some("run"));
    let driver = native("/usr/lib/libvulkan_lvp.so", None);
    assert_eq!(text(&[driver, hook, app()]), "app run > libvulkan_lvp.so");
    let asyncio = [
        python(
            "/usr/lib/python3.12/selectors.py",
            468,
            "EpollSelector.select",
        ),
        python(
            "/usr/lib/python3.12/asyncio/base_events.py",
            1898,
            "BaseEventLoop._run_once",
        ),
        python("/home/a/serve.py", 3, "main"),
    ];
    assert_eq!(text(&asyncio), "serve.py:3 main (event loop idle)");
    let libc = |function| native("/usr/lib/libc.so.6", Some(function));
    let poll = native("/home/a/deno", Some("uv__io_poll"));
    for wait in ["epoll_wait", "epoll_pwait2", "__epoll_wait_nocancel"] {
        let stack = [libc(wait), poll.clone()];
        assert_eq!(text(&stack), "deno uv__io_poll (event loop idle)", "{wait}");
    }
    let reads = [libc("recvmsg"), poll.clone()];
    assert_eq!(text(&reads), "deno uv__io_poll > recvmsg");
    // Python's own selectors may wait for workers, whose code is told beside the line.
    let selects = [
        libc("epoll_wait"),
        python("/usr/lib/python3.12/selectors.py", 415, "select"),
        python("/home/a/train.py", 55, "step"),
    ];
    assert!(waits_for_others(&selects));
    assert_eq!(text(&selects), "train.py:55 step > select > epoll_wait");
    let made = [
        python("<string>", 3, "compiled_match"),
        python("/home/a/train.py", 55, "step"),
    ];
    assert_eq!(text(&made), "train.py:55 step > compiled_match");
    let given = [
        python(torch, 7, "Module.__call__"),
        python("<string>", 1, "<module>"),
    ];
    assert_eq!(text(&given), "<string>:1 <module> > Module.__call__");
    assert_eq!(text(&[]), "unknown code");
}

#[test]
fn samples_one_by_one_sum_to_what_the_causes_have() {
    let samples = late(|at| sample(at, if at < 33_000 { "stack=3" } else { "stack=4" }, ""))
        + "sample time_ns=12ms process=1 thread=7 stack=1 state=running source=after-wait
        sample time_ns=20ms process=2 thread=8 stack=5 state=running source=sampled period_ns=2ms
        sample time_ns=60ms process=1 thread=7 stack=1 state=running source=sampled period_ns=2ms";
    let trace = trace(&samples);
    let code = code_of(&trace);
    let timeline = Timeline::new(&trace);
    let samples = CodeSamples::new(&timeline).unwrap();
    let (idle, causes) = samples.idle(&GapFinder::new(&timeline));
    for cause in &code.causes {
        let of_cause = causes.iter().find(|one| one.cause == cause.cause).unwrap();
        assert_eq!(of_cause.total_ns, cause.total_ns);
        assert_eq!(of_cause.without_samples_ns, cause.without_samples_ns);
        assert_eq!(of_cause.samples, cause.samples);
        let weights: f64 = (idle.iter().filter(|one| one.cause == cause.cause))
            .map(|one| one.weight_ns)
            .sum();
        let covered_ns = (cause.total_ns - cause.without_samples_ns) as f64;
        assert!((weights - covered_ns).abs() < 1.0, "{weights} {covered_ns}");
    }
    let count = |role| idle.iter().filter(|one| one.role == role).count();
    // Nothing waits for the worker.
    assert_eq!(count(SampleRole::Sampled), 14);
    assert_eq!(count(SampleRole::Exact), 2);
    assert_eq!(count(SampleRole::Worker), 0);
    let (lines, of_stack) = samples.lines();
    let line = |stack: usize| of_stack[stack].map(|line| lines[line as usize].text.as_str());
    let resize = "train.py:41 load_batch > resize > ImagingResample";
    assert_eq!(line(3), Some(resize));
    assert_eq!(line(4), Some("train.py:50 crop"));
    assert_eq!(line(2), None, "no sample has it");
}

/// A program without Python whose function `run` of one executable calls others, one of them through a hook.
fn native_program(stacks: &[u32]) -> Trace {
    let samples = (0..).zip(stacks).map(|(n, stack)| {
        let at = 13_000 + 2_000 * n;
        sample(at, &format!("stack={stack}"), "")
    });
    let rows = "frame id=10 kind=native function=run library=/home/a/app
        frame id=11 kind=native function=memcpy library=/usr/lib/libc.so.6
        frame id=12 kind=native function=malloc library=/usr/lib/libc.so.6
        frame id=13 kind=native function=vkQueueSubmit library=/opt/gapscope/libgapscope_vulkan.so
        frame id=14 kind=native function=clock_gettime library=/opt/gapscope/libgapscope_vulkan.so
        frame id=15 kind=native function=deflate library=/usr/lib/libz.so.1
        frame id=16 kind=native function=free library=/usr/lib/libc.so.6
        stack id=10 frame=10
        stack id=11 parent=10 frame=11
        stack id=12 parent=10 frame=12
        stack id=13 parent=10 frame=13
        stack id=14 parent=13 frame=14
        stack id=15 parent=10 frame=15
        stack id=16 parent=15 frame=11
        stack id=17 parent=15 frame=16
        stack id=18 parent=10 frame=16\n";
    trace(&(rows.to_owned() + &samples.collect::<String>()))
}

fn lines_of(stacks: &[u32]) -> Vec<(String, u64)> {
    let code = code_of(&native_program(stacks));
    let lines = CodeLine::from_times(&code.causes[0].code);
    (lines.into_iter())
        .map(|line| (line.text, line.samples))
        .collect()
}

#[test]
fn a_line_of_code_is_one_row_with_its_innermost_functions() {
    let one = |text: &str, samples| vec![(text.to_owned(), samples)];
    assert_eq!(lines_of(&[11; 14]), one("app run > memcpy", 14));
    let several = [11, 11, 11, 12, 12, 15, 18, 10];
    assert_eq!(
        lines_of(&several),
        one("app run > memcpy, malloc and 2 more", 8)
    );
    // Of stacks that call the same function, the most frequent one stands for all.
    let below_one = [16, 16, 17, 15];
    assert_eq!(lines_of(&below_one), one("app run > deflate > memcpy", 4));
}

#[test]
fn the_frame_that_called_the_api_is_innermost_and_no_hook() {
    let trace = native_program(&[14, 14, 13, 10]);
    let code = code_of(&trace);
    let times = &code.causes[0].code;
    assert_eq!((times.len(), times[0].samples), (1, 4));
    let functions = times[0]
        .frames
        .iter()
        .map(|frame| frame.function.as_deref());
    assert_eq!(functions.collect::<Vec<_>>(), [Some("run")]);
    let timeline = Timeline::new(&trace);
    let samples = CodeSamples::new(&timeline).unwrap();
    let (lines, of_stack) = samples.lines();
    let texts: Vec<&str> = lines.iter().map(|line| &*line.text).collect();
    assert_eq!(texts, ["app run"]);
    let row = |stack| (trace.tables.stacks.id.iter()).position(|id| id.0 == stack);
    let lines = [10, 13, 14].map(|stack| of_stack[row(stack).unwrap()]);
    assert_eq!(lines, [Some(0); 3]);
    assert_eq!(samples.program(StackId(14)), Some(StackId(10)));
}
