//! Time that was not measured is unknown: work without times, work that is timed as a whole, starts that take longer than
//! devices need, and times that contradict each other.

use crate::program::{US, assert_says, causes, findings_of};
use gapscope_analysis::Findings;
use gapscope_analysis::gaps::Cause::{self, *};
use gapscope_analysis::gaps::UnknownReason;
use gapscope_analysis::verdict::Bound;
use gapscope_timeline::thresholds::{FIRST_START_NS, START_UP_CUDA_NS, START_UP_NS};

const HEAD: &str = "process id=1 pid=10 hook=API start_ns=0
     thread process=1 thread=7 name=main
     device id=1 process=1 api=API name=GPU uuid=aa clock.error_ns=1us
     queue id=1 device=1\nqueue id=2 device=1
     kernel id=1 process=1 name=work\n";

fn trace(api: &str, mode: &str, rows: &str) -> Findings {
    let head = HEAD.replace("API", api);
    findings_of(&format!("manifest sampling_mode={mode}\n{head}{rows}"))
}

/// Rows of a submission from `call` on, of 5 us.
fn submission(id: u64, queue: u32, kind: &str, call: i64, command_buffers: usize) -> String {
    format!(
        "submission id={id} process=1 queue={queue} thread=7 start_ns={call}us duration_ns=5us command_buffers={command_buffers} kind={kind}\n"
    )
}

/// Rows of a kernel that is launched by itself.
fn launch(id: u64, queue: u32, call: i64, [start, length]: [i64; 2]) -> String {
    submission(id, queue, "kernel", call, 0)
        + &format!(
            "dispatch submission={id} queue={queue} kernel=1 start_ns={start}us duration_ns={length}us\n"
        )
}

/// Rows of a submission of command buffers with one dispatch each, of which some have no times.
fn batch(id: u64, queue: u32, call: i64, times: &[Option<[i64; 2]>]) -> String {
    let mut rows = submission(id, queue, "command-buffers", call, times.len());
    for (at, time) in times.iter().enumerate() {
        let command_buffer = id * 100 + at as u64;
        let (timing, time) = match time {
            Some([start, length]) => (
                "measured",
                format!("start_ns={start}us duration_ns={length}us"),
            ),
            None => ("not-seen", String::new()),
        };
        rows += &format!(
            "command_buffer id={command_buffer} process=1 queue={queue} submission={id} dispatches=1 timing={timing} {time}
             dispatch command_buffer={command_buffer} queue={queue} kernel=1 {time}\n"
        );
    }
    rows
}

fn wait(call: &str, from: i64, to: i64) -> String {
    format!(
        "host_call process=1 thread=7 call={call} start_ns={from}us duration_ns={}us count=1 result=0\n",
        to - from
    )
}

fn reasons(findings: &Findings) -> Vec<(UnknownReason, i64)> {
    let reasons = findings.idle_time.unknown_reasons.iter();
    reasons
        .map(|total| (total.reason, total.total_ns / US))
        .collect()
}

fn unknown(findings: &Findings) -> i64 {
    let parts = findings.verdict_evidence.parts.iter();
    parts
        .filter(|part| part.what == "unknown")
        .map(|part| part.total_ns / US)
        .sum()
}

fn gaps(findings: &Findings) -> Vec<(Cause, i64)> {
    causes(&findings.gaps)
}

#[test]
fn a_command_buffer_that_is_timed_as_a_whole_is_not_computing() {
    let row = |turn: i64, dispatches: u32, columns: &str| {
        let (id, call, start) = (turn + 1, turn * 10_000, turn * 10_000 + 30);
        submission(id as u64, 1, "command-buffers", call, 1)
            + &format!(
                "command_buffer id={id} process=1 queue=1 submission={id} dispatches={dispatches} start_ns={start}us duration_ns=9900us timing=measured {columns}\n"
            )
    };
    for (api, kind, dispatches, columns, verdict) in [
        ("vulkan", "command buffers", 2, "", Bound::Unknown),
        (
            "vulkan",
            "command buffers",
            0,
            "transfers=3",
            Bound::Unknown,
        ),
        ("cuda", "graphs", 1, "host_functions=1", Bound::Unknown),
        // One command from the start to the end.
        ("vulkan", "command buffers", 1, "", Bound::DeviceBound),
        (
            "vulkan",
            "command buffers",
            0,
            "transfers=1",
            Bound::TransferBound,
        ),
    ] {
        let rows: String = (0..10).map(|turn| row(turn, dispatches, columns)).collect();
        let findings = trace(api, "command-buffer", &rows);
        assert_eq!(findings.verdict, verdict, "{dispatches} {columns}");
        let device = &findings.devices[0];
        assert_eq!(device.command_buffers_counted_whole, 10);
        assert_eq!(device.busy_ns, Some(99_000 * US));
        let whole_ns = if verdict == Bound::Unknown { 99_000 } else { 0 } * US;
        assert_eq!(device.counted_whole_ns, Some(whole_ns));
        if verdict == Bound::Unknown {
            let sentence = &findings.verdict_evidence.sentence;
            assert_says(sentence, "busy for at most 99.1 % of the time");
            assert_says(sentence, &format!("{kind} are timed as a whole"));
            assert_eq!(unknown(&findings), 99_000);
        }
    }
}

#[test]
fn idle_time_outside_of_what_is_timed_as_a_whole_still_tells_the_verdict() {
    let mut rows = String::new();
    for turn in 0..10 {
        rows += &submission(turn + 1, 1, "command-buffers", turn as i64 * 1_000, 1);
        rows += &format!(
            "command_buffer id={} process=1 queue=1 submission={} dispatches=9 start_ns={}us duration_ns=300us timing=measured\n",
            turn + 1,
            turn + 1,
            turn * 1_000 + 10
        );
    }
    let findings = trace("vulkan", "command-buffer", &rows);
    assert_eq!(findings.verdict, Bound::HostBound);
    assert_eq!(unknown(&findings), 3_000);
}

#[test]
fn beside_work_with_times_a_graph_that_is_timed_as_a_whole_changes_nothing() {
    let graph = "command_buffer id=9 process=1 queue=2 submission=2 start_ns=10us duration_ns=1000us timing=measured
         opaque_work command_buffer=9 queue=2 kind=graph start_ns=10us duration_ns=1000us\n";
    let rows = launch(1, 1, 0, [10, 900]) + &submission(2, 2, "graph", 5, 1) + graph;
    let findings = trace("cuda", "dispatch", &rows);
    assert_eq!(findings.verdict, Bound::DeviceBound);
    assert_eq!(unknown(&findings), 100);
    assert_eq!(findings.devices[0].command_buffers_counted_whole, 1);
    assert_says(
        &findings.verdict_evidence.sentence,
        "busy at least for 90.0 %",
    );
}

#[test]
fn a_start_that_takes_longer_than_devices_need_is_unknown() {
    // Launches by themselves, and command buffers of one submission.
    let launched = |wait: i64| launch(1, 1, -20, [0, 20]) + &launch(2, 1, 5, [20 + wait, 20]);
    let batched = |wait: i64| batch(1, 1, -20, &[Some([0, 20]), Some([20 + wait, 20])]);
    let graph = |wait: i64| {
        let second = 20 + wait;
        submission(1, 1, "graph", -20, 1)
            + &format!(
                "command_buffer id=1 process=1 queue=1 submission=1 dispatches=2 host_functions=0 timing=measured
                 dispatch command_buffer=1 queue=1 kernel=1 start_ns=0us duration_ns=20us
                 dispatch command_buffer=1 position=1 queue=1 kernel=1 start_ns={second}us duration_ns=20us\n"
            )
    };
    let handed_over = |wait: i64| {
        launch(1, 1, -20, [0, 20])
            + &launch(2, 2, 5, [20 + wait, 20])
            + "dependency submission=2 waits_for=1\n"
    };
    type Rows<'a> = &'a dyn Fn(i64) -> String;
    let cases: [(&str, Rows, Cause, Bound); 7] = [
        ("cuda", &launched, LaunchLatency, Bound::LatencyBound),
        ("hip", &launched, LaunchLatency, Bound::LatencyBound),
        ("vulkan", &batched, LaunchLatency, Bound::LatencyBound),
        ("metal", &batched, LaunchLatency, Bound::LatencyBound),
        ("unknown", &launched, LaunchLatency, Bound::LatencyBound),
        ("cuda", &graph, WithinCommandBuffer, Bound::LatencyBound),
        ("cuda", &handed_over, QueueHandover, Bound::SyncBound),
    ];
    for (api, rows, cause, verdict) in cases {
        let bound = match api {
            "cuda" | "hip" => START_UP_CUDA_NS / US,
            _ => START_UP_NS / US,
        };
        let below = trace(api, "dispatch", &rows(bound - 1));
        assert_eq!(gaps(&below), [(cause, bound - 1)]);
        assert_eq!(below.verdict, verdict, "{cause}");
        let above = trace(api, "dispatch", &rows(bound));
        assert_eq!(gaps(&above), [(Unknown, bound)], "{cause}");
        assert_eq!(reasons(&above), [(UnknownReason::LongStart, bound)]);
        assert_eq!(above.verdict, Bound::Unknown);
        let queues = &above.idle_time.queues;
        assert!(
            queues
                .iter()
                .flat_map(|queue| &queue.causes)
                .all(|total| total.cause != cause)
        );
        let advice = above.unknown_because().unwrap();
        assert_says(advice, &format!("within {bound} µs"));
        assert_eq!(advice.contains("software GPU"), api == "vulkan");
        for possible in [
            "not recorded",
            "another process",
            "event from outside",
            "power state",
        ] {
            assert_says(advice, possible);
        }
    }
}

#[test]
fn the_start_of_a_large_graph_may_take_longer() {
    let rows = |nodes: i64| {
        launch(1, 1, -20, [0, 100])
            + &submission(2, 1, "graph", 5, 1)
            + &format!(
                "command_buffer id=1 process=1 queue=1 submission=2 dispatches={nodes} timing=measured
                 dispatch command_buffer=1 queue=1 kernel=1 start_ns=3000us duration_ns=100us\n"
            )
    };
    assert_eq!(
        gaps(&trace("cuda", "dispatch", &rows(5_000))),
        [(GraphLaunch, 2_900)]
    );
    assert_eq!(
        gaps(&trace("cuda", "dispatch", &rows(100))),
        [(Unknown, 2_900)]
    );
}

#[test]
fn a_command_buffer_without_times_may_have_run_wherever_it_stands() {
    let work = |start: i64| Some([start, 100]);
    for (name, rows, expected) in [
        (
            "in the middle",
            batch(1, 1, -20, &[work(0), None, work(300)]),
            200,
        ),
        (
            "at the end",
            batch(1, 1, -20, &[work(0), None]) + &batch(2, 1, -10, &[work(300)]),
            200,
        ),
        (
            "at the start",
            batch(1, 1, -20, &[work(0)]) + &batch(2, 1, -10, &[None, work(300)]),
            200,
        ),
        (
            "in a submission of its own",
            batch(1, 1, -20, &[work(0)])
                + &batch(2, 1, -10, &[None])
                + &batch(3, 1, -5, &[work(300)]),
            200,
        ),
        (
            "on another queue",
            batch(1, 1, -20, &[work(0)])
                + &batch(2, 2, -10, &[None])
                + &batch(3, 1, 250, &[work(300)]),
            200,
        ),
    ] {
        let findings = trace("vulkan", "dispatch", &rows);
        assert_eq!(gaps(&findings), [(Unknown, expected)], "{name}");
        assert_eq!(
            reasons(&findings),
            [(UnknownReason::UntimedWork, expected)],
            "{name}"
        );
    }
}

#[test]
fn untimed_work_has_ended_where_the_trace_shows_so() {
    let work = |start: i64| Some([start, 100]);
    let first = || batch(1, 1, -20, &[work(0)]);
    let untimed = |queue| batch(2, queue, -10, &[None]);
    for (name, rows, expected) in [
        (
            "its thread has waited",
            first() + &untimed(1) + &wait("wait-fences", 0, 150) + &batch(3, 1, 450, &[work(460)]),
            [(HostLate, 300), (Unknown, 55), (SubmitCall, 5)],
        ),
        (
            "the hook saw it",
            first()
                + &untimed(2).replace("timing=not-seen", "timing=no-queries seen_ns=150us")
                + &batch(3, 1, 450, &[work(460)]),
            [(HostLate, 300), (Unknown, 50), (SubmitCall, 5)],
        ),
    ] {
        let findings = trace("vulkan", "dispatch", &rows);
        let found: Vec<_> = gaps(&findings).into_iter().take(3).collect();
        assert_eq!(found, expected, "{name}");
    }
    // What another queue waited for had ended when that started.
    let rows = first()
        + &untimed(2)
        + &batch(3, 1, -5, &[work(150)])
        + "dependency submission=3 waits_for=2\n"
        + &batch(4, 1, 550, &[work(560)]);
    let findings = trace("vulkan", "dispatch", &rows);
    assert_eq!(gaps(&findings)[..2], [(HostLate, 300), (Unknown, 50)]);
}

#[test]
fn the_gaps_of_a_queue_are_not_those_of_untimed_work_on_another() {
    let rows = batch(1, 1, -20, &[Some([0, 100])])
        + &batch(2, 2, -10, &[None])
        + &batch(3, 1, 250, &[Some([300, 100])]);
    let findings = trace("vulkan", "dispatch", &rows);
    let queue = causes(&findings.idle_time.queues[0].causes);
    assert_eq!(
        queue,
        [(HostLate, 150), (LaunchLatency, 45), (SubmitCall, 5)]
    );
}

#[test]
fn the_first_work_of_a_queue_in_a_recording_that_began_later_may_have_waited_for_earlier_work() {
    let after_call = FIRST_START_NS / US;
    // From the end of the call, at 10 us, on.
    let gaps = |head: &str, waited: i64| {
        let rows = launch(1, 1, -20, [0, 10]) + &launch(2, 2, 5, [10 + waited, 100]);
        let findings = findings_of(&format!("manifest sampling_mode=dispatch {head}{rows}"));
        (gaps(&findings), reasons(&findings))
    };
    let head = HEAD.replace("API", "cuda");
    let from_the_start = format!("start_ns=-100us\n{head}");
    let window = format!(
        "start_ns=-50us\n{}",
        head.replace("start_ns=0", "start_ns=-100us")
    );
    let imported = format!(
        "start_ns=-50us\n{}",
        head.replace("hook=cuda", "hook=kineto")
    );
    let short = after_call - 1;
    for head in [&from_the_start, &window, &imported] {
        assert_eq!(gaps(head, short).0, [(LaunchLatency, short)]);
    }
    let (whole, _) = gaps(&from_the_start, after_call);
    assert_eq!(whole, [(LaunchLatency, after_call)]);
    for head in [&window, &imported] {
        let (causes, reasons) = gaps(head, after_call);
        assert_eq!(causes, [(Unknown, after_call)]);
        assert_eq!(reasons, [(UnknownReason::BeforeRecording, after_call)]);
    }
    // The second work of a queue has a predecessor.
    let rows = launch(1, 1, -20, [0, 10]) + &launch(2, 1, 5, [10 + after_call, 100]);
    let findings = findings_of(&format!("manifest sampling_mode=dispatch {imported}{rows}"));
    assert_eq!(causes(&findings.gaps), [(LaunchLatency, after_call)]);
}

/// A kernel of 20 us, a prefetch of managed memory on stream 2 and a kernel that starts 300 us after its call.
fn beside_a_prefetch(rest: &str) -> Findings {
    let rows = launch(1, 1, -20, [0, 20])
        + &submission(2, 2, "prefetch", -10, 0)
        + rest
        + &launch(9, 1, 5, [320, 20]);
    trace("cuda", "dispatch", &rows)
}

#[test]
fn a_late_start_beside_a_move_of_managed_memory_on_another_stream_may_have_waited_for_the_move() {
    let findings = beside_a_prefetch("");
    assert_eq!(gaps(&findings), [(Unknown, 300)]);
    assert_eq!(reasons(&findings), [(UnknownReason::PageMove, 300)]);
    let advice = findings.unknown_because().unwrap();
    assert_says(advice, "a move of managed memory on another stream");
    // The move had ended.
    for rest in [wait("wait-device-idle", 0, 10), launch(3, 2, 0, [10, 5])] {
        let findings = beside_a_prefetch(&rest);
        assert_eq!(reasons(&findings), [(UnknownReason::LongStart, 300)]);
    }
    // A move beside kernels that delays none is no reason for anything.
    let rows = launch(1, 1, -20, [0, 20])
        + &submission(2, 2, "prefetch", -10, 0)
        + &launch(3, 1, 300, [310, 20]);
    let findings = trace("cuda", "dispatch", &rows);
    assert_eq!(
        gaps(&findings),
        [(HostLate, 280), (SubmitCall, 5), (LaunchLatency, 5)]
    );
}

#[test]
fn a_wait_for_an_event_does_not_tell_that_work_without_times_has_ended() {
    // The event may have been recorded before the work without times was submitted; a wait for the queue was not.
    let program = |call: &str| {
        let rows: String = (0..20)
            .map(|turn| {
                let t = turn * 1_000;
                let id = 2 * turn as u64 + 1;
                launch(id, 1, t, [t + 10, 100])
                    + &batch(id + 1, 1, t + 20, &[None])
                    + &wait(call, t + 130, t + 140)
            })
            .collect();
        unknown(&trace("cuda", "dispatch", &rows))
    };
    let (after_event, after_queue) = (program("wait-event"), program("wait-queue-idle queue=1"));
    assert!(after_event > 16_000, "{after_event}");
    assert!(after_queue < 2_000, "{after_queue}");
}

#[test]
fn late_starts_leave_the_verdict_open_only_as_far_as_the_device_may_be_the_cause() {
    // The host has 38 %, and work that was free to run started 210 us late: that was not the host, whatever it was.
    let rows: String = (0..20)
        .map(|turn| {
            let t = turn * 1_000;
            let id = turn as u64 + 1;
            format!(
                "submission id={id} process=1 queue=1 thread=7 start_ns={t}us duration_ns=380us kind=graph command_buffers=1
                 command_buffer id={id} process=1 queue=1 submission={id} dispatches=1 host_functions=0 timing=measured
                 dispatch command_buffer={id} queue=1 kernel=1 start_ns={}us duration_ns=410us\n",
                t + 590
            )
        })
        .collect();
    let findings = trace("cuda", "dispatch", &rows);
    assert_eq!(reasons(&findings), [(UnknownReason::LongStart, 19 * 210)]);
    assert_eq!(findings.verdict, Bound::Mixed);
    let sentence = &findings.verdict_evidence.sentence;
    assert!(!sentence.contains("possible"), "{sentence}");
    // The device's own starts have 35 %, and starts that are not believed 22 %.
    let mut id = 0;
    let mut rows = String::new();
    for turn in 0..20 {
        let mut end = turn * 920;
        for kernel in 0..5 {
            let start = end + if kernel == 0 { 200 } else { 80 };
            id += 1;
            rows += &launch(id, 1, end - 50, [start, 80]);
            end = start + 80;
        }
    }
    let findings = trace("cuda", "dispatch", &rows);
    assert_eq!(findings.verdict, Bound::Mixed);
    assert_says(
        &findings.verdict_evidence.sentence,
        "does not say why the device idled for 2",
    );
    assert_says(
        &findings.verdict_evidence.sentence,
        "latency-bound is possible.",
    );
}

#[test]
fn the_sentence_on_what_is_not_known_has_the_shares_of_its_parts() {
    // Small kernels, beside which work without times may have run, and time in which only such work may have run.
    let mut rows = submission(1, 2, "kernel", -10, 0) + "dispatch submission=1 queue=2 kernel=1\n";
    for turn in 0..100u64 {
        let t = turn as i64 * 1_000;
        rows += &launch(turn + 2, 1, t - 20, [t, 700]);
    }
    let findings = trace("cuda", "dispatch", &rows);
    let evidence = &findings.verdict_evidence;
    assert_eq!(findings.verdict, Bound::Unknown, "{evidence:?}");
    let unknown = evidence.parts.iter().find(|part| part.what == "unknown");
    let share = format!("for {:.1} % of the time", unknown.unwrap().share * 100.0);
    assert_says(&evidence.sentence, &share);
    let compute = evidence.parts.iter().find(|part| part.what == "compute");
    let compute = &compute.unwrap().sentence;
    let beside = compute.split("; of this, for ").nth(1).unwrap();
    let beside = beside.split(['(', ')']).nth(1).unwrap();
    let beside = beside.strip_suffix(" of the time").unwrap();
    assert_says(
        &evidence.sentence,
        &format!("and for another {beside} work without known times may have run beside kernels"),
    );
}
