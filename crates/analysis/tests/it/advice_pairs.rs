//! For each cause that has advice, a program in which following it helps, and one in which it cannot: there the advice is not
//! given, or another one is.

use crate::program::Program;
use gapscope_analysis::Findings;
use gapscope_analysis::gaps::Cause;
use gapscope_trace::manifest::Api;

/// A CUDA program with the streams 1 and 2, another GPU with the stream 3, and a kernel of 100 us that starts at 0.
pub fn cuda(plant: impl FnOnce(&mut Program)) -> Findings {
    let mut p = Program::from_text(
        "manifest sampling_mode=dispatch start_ns=0 end_ns=10s
         process id=1 pid=10 hook=cuda executable=/usr/bin/app
         process id=2 pid=11 hook=cuda
         device id=1 process=1 api=cuda name=GPU uuid=aa clock.error_ns=0
         device id=2 process=1 api=cuda name=GPU uuid=bb clock.error_ns=0
         device id=3 process=2 api=cuda name=GPU uuid=aa clock.error_ns=0
         queue id=1 device=1\nqueue id=2 device=1\nqueue id=3 device=2\nqueue id=4 device=3
         kernel id=1 process=1 name=work",
    );
    p.launch(1, [-20, -10], 0, 100);
    p.call("other-call", [-9, -8]);
    plant(&mut p);
    p.findings()
}

/// A call of a function from 110 to 390 us, and a launch after it.
pub fn calls(call: &str, function: &str) -> Findings {
    cuda(|p| {
        p.line(&format!(
            "host_call process=1 thread=7 call={call} function={function} start_ns=110us duration_ns=280us"
        ));
        p.launch(1, [391, 395], 398, 100);
    })
}

/// Many short launches, of which each call takes `call` us and comes `pause` us after the last kernel.
pub fn short_launches(call: i64, pause: i64) -> Findings {
    cuda(|p| {
        let mut t = 100;
        for _ in 0..50 {
            p.launch(1, [t + pause, t + pause + call], t + pause + call + 10, 20);
            t += pause + call + 30;
        }
    })
}

/// Graphs of `kernels` kernels that start 20 us after their call, in a program that launches nothing else.
pub fn graphs(kernels: i64) -> Findings {
    cuda(|p| {
        for turn in 0..5 {
            let t = 200 + turn * 1_000;
            let kernels: Vec<[i64; 2]> = (0..kernels).map(|n| [t + 35 + n * 22, 20]).collect();
            p.graph(1, [t, t + 15], &kernels, "");
        }
    })
}

/// Work on the queue `after` that waits for the kernel on stream 1, or for work of a kind on stream 2, and starts 5 us after it.
pub fn hands_over(before: &str, after: u32) -> Findings {
    cuda(|p| {
        p.launch(3, [-20, -10], 0, 10);
        for turn in 0..5 {
            let t = 100 + turn * 200;
            let first = match before {
                "kernel" => p.launch(2, [t - 90, t - 88], t, 100),
                _ => {
                    let id = p.mark(2, "transfer", [t - 90, t - 88]);
                    p.line(&format!(
                        "transfer submission={id} queue=2 kind=host-to-device bytes=4000000 start_ns={t}us duration_ns=100us"
                    ));
                    id
                }
            };
            let second = p.launch(after, [t - 80, t - 78], t + 106, 90);
            p.depends(second, first);
        }
    })
}

/// A program whose second process begins at 500 us, or `first_call` us by a call.
fn second_process(first_call: Option<i64>) -> Findings {
    cuda(|p| {
        if let Some(at) = first_call {
            p.line(&format!(
                "host_call process=2 thread=9 call=other-call start_ns={at}us duration_ns=1us"
            ));
        }
        p.line(
            "submission id=90 process=2 queue=4 thread=9 start_ns=500us duration_ns=5us kind=kernel
             dispatch submission=90 queue=4 kernel=1 start_ns=510us duration_ns=100us",
        );
    })
}

/// Work that waits for a mark of a kind, or for what `rows` say, until 600 us.
pub fn waits(kind: &str, rows: &str) -> Findings {
    cuda(|p| {
        if !kind.is_empty() {
            p.mark(1, kind, [10, 15]);
        }
        let id = p.launch(1, [20, 25], 600, 100);
        p.line(&rows.replace("ID", &id.to_string()));
    })
}

/// The texts that the advice on a cause has in a program where it helps, and must not have in one where it cannot.
pub struct Pair {
    pub helps: (Findings, &'static str),
    pub cannot: (Findings, &'static str),
}

/// Returns the pair of a cause; `None` where nothing is advised. A new cause needs one.
pub fn pair(cause: Cause) -> Option<Pair> {
    let pair = |helps, cannot| Some(Pair { helps, cannot });
    match cause {
        Cause::HostLate => pair(
            (short_launches(5, 50), "put many launches into a graph"),
            (short_launches(5, 2_000), "graph"),
        ),
        Cause::HostCompile => pair(
            (
                calls("load-module", "cuModuleLoadData"),
                "load modules and instantiate graphs before the loop",
            ),
            (calls("build-graph", "cudaGraphInstantiate"), "load modules"),
        ),
        Cause::HostAllocate => pair(
            (
                calls("allocate-memory", "cudaMalloc"),
                "from a memory pool (cudaMallocAsync)",
            ),
            (
                calls("allocate-memory", "cudaMallocAsync"),
                "(cudaMallocAsync)",
            ),
        ),
        Cause::SubmitCall => pair(
            (
                short_launches(20, 0),
                "put many small launches into a graph",
            ),
            (short_launches(5_000, 0), "graph"),
        ),
        Cause::HostCall => pair(
            (
                calls("other-call", "cuCtxSetLimit"),
                "call it before the loop",
            ),
            (
                calls("acquire-image", "vkAcquireNextImageKHR"),
                "before the loop",
            ),
        ),
        Cause::ProcessStart => pair(
            (second_process(None), "start that process earlier"),
            (second_process(Some(-50)), "start that process"),
        ),
        Cause::HostFunction => pair(
            (
                waits(
                    "host-function",
                    "host_call process=1 call=host-function queue=1 start_ns=120us duration_ns=470us",
                ),
                "shorten the function",
            ),
            // The launch comes before the function.
            (
                waits(
                    "",
                    "host_call process=1 call=host-function queue=2 start_ns=120us duration_ns=470us",
                ),
                "shorten",
            ),
        ),
        Cause::AfterHostWait => pair(
            (
                calls_that_wait("wait-queue-idle", "cudaStreamSynchronize"),
                "synchronise less often",
            ),
            (
                calls_that_wait("free-memory", "cudaFree"),
                "synchronise less often",
            ),
        ),
        Cause::OtherQueue => pair(
            (waits_for_other(300), "shorten that stream's work"),
            (waits_for_other(100), "shorten that stream's work"),
        ),
        Cause::QueueHandover => pair(
            (
                hands_over("kernel", 1),
                "keep work that depends on each other on one stream",
            ),
            (hands_over("copy", 1), "on one stream"),
        ),
        Cause::HostSignal => pair(
            (
                waits("", "dependency submission=ID host_signal_ns=590us"),
                "signal earlier",
            ),
            (
                waits("", "dependency submission=ID host_signal_ns=30us"),
                "signal earlier",
            ),
        ),
        Cause::ExternalWait => pair(
            (waits("wait-external", ""), "the value or signal came late"),
            (waits("", ""), "what writes the value"),
        ),
        Cause::PageMove => pair(
            (waits("prefetch", ""), "prefetch the memory earlier"),
            (waits("", ""), "prefetch"),
        ),
        Cause::LaunchLatency => pair(
            (short_launches(5, 0), "or a graph"),
            (calls("other-call", "cuCtxSetLimit"), "graph"),
        ),
        Cause::GraphLaunch => pair(
            (graphs(1), "put more work into each graph"),
            (graphs(5), "put more work into each graph"),
        ),
        Cause::WithinCommandBuffer => pair(
            (graphs(5), "fewer dependencies, or fused kernels"),
            (graphs(1), "fewer dependencies"),
        ),
        Cause::Recording => pair(
            (calls("recording", "profiling"), "the recording's own time"),
            (
                calls("other-call", "cuCtxSetLimit"),
                "the recording's own time",
            ),
        ),
        Cause::ContextSwitch => pair(
            (other_context(4), "share the device by MPS"),
            (other_context(1), "MPS"),
        ),
        Cause::Display | Cause::Unknown => None,
    }
}

/// Work on a queue of this process, or on queue 4 of another one, that was submitted before the kernel began.
pub fn other_context(queue: u32) -> Findings {
    cuda(|p| {
        let process = if queue == 4 { 2 } else { 1 };
        p.line(&format!(
            "submission id=90 process={process} queue={queue} thread=9 start_ns=-9us duration_ns=5us kind=kernel
             dispatch submission=90 queue={queue} kernel=1 start_ns=140us duration_ns=100us"
        ));
    })
}

/// A kernel for which a call waits from 10 to 115 us, and a launch soon after it.
pub fn calls_that_wait(call: &str, function: &str) -> Findings {
    cuda(|p| {
        p.line(&format!(
            "host_call process=1 thread=7 call={call} function={function} start_ns=10us duration_ns=105us"
        ));
        p.launch(1, [160, 165], 168, 100);
    })
}

/// Work that waits for a kernel of the other GPU's stream, which runs until `until` us.
pub fn waits_for_other(until: i64) -> Findings {
    cuda(|p| {
        let other = p.launch(3, [-20, -10], 0, until);
        let id = p.launch(1, [10, 15], until.max(100) + 5, 100);
        p.depends(id, other);
    })
}

#[test]
fn each_advice_is_given_where_it_helps_and_not_where_it_cannot() {
    for cause in Cause::ALL {
        let advised =
            |findings: &Findings| findings.advice_on(cause).unwrap_or_default().to_owned();
        let Some(Pair { helps, cannot }) = pair(cause) else {
            assert_eq!(cause.facts(Api::Unknown).advice, "", "{cause} needs a pair");
            continue;
        };
        let told = advised(&helps.0);
        assert!(
            told.contains(helps.1),
            "{cause} is not told \"{}\": {told}",
            helps.1
        );
        let told = advised(&cannot.0);
        assert!(
            !told.contains(cannot.1),
            "{cause} is told \"{}\": {told}",
            cannot.1
        );
    }
}

#[test]
fn work_of_another_device_is_not_told_to_be_on_the_same_stream() {
    let findings = hands_over("kernel", 3);
    let told = findings.advice_on(Cause::QueueHandover).unwrap_or_default();
    assert!(told.starts_with("most is between devices"), "{told}");
}
