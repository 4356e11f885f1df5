//! Each cause of a gap, one at a time.

use crate::program::{Program, US, causes, findings};
use gapscope_analysis::gaps::Cause::*;
use gapscope_analysis::{Findings, Options};
use gapscope_timeline::intervals::Interval;
use gapscope_trace::Trace;
use gapscope_trace::ids::{ProcessId, QueueId, ThreadId};

/// Work from 0 to 100 us, then a gap to 200 us that `plant` explains.
fn gap(plant: impl FnOnce(&mut Program)) -> Findings {
    let mut program = Program::new();
    program.dispatch(1, [-20, -10], 0, 100);
    plant(&mut program);
    program.findings()
}

/// Work that is submitted late by a thread that compiled before, in a trace that `change` changes.
fn late_in(change: impl FnOnce(&mut Trace)) -> Findings {
    let mut program = Program::new();
    program.dispatch(1, [-20, -10], 0, 100);
    program.call("create-pipelines", [110, 140]);
    program.dispatch(1, [150, 170], 200, 10);
    let mut trace = program.trace();
    change(&mut trace);
    findings(&trace)
}

#[test]
fn work_that_is_submitted_late_is_a_late_host_then_the_call_then_the_launch() {
    let findings = gap(|p| {
        p.dispatch(1, [150, 170], 200, 10);
    });
    assert_eq!(
        causes(&findings.gaps),
        [(HostLate, 50), (LaunchLatency, 30), (SubmitCall, 20)]
    );
    let gap = &findings.idle_time.longest[0];
    assert_eq!((gap.start_ns, gap.duration_ns), (100 * US, 100 * US));
    assert_eq!(gap.cause, HostLate);
    assert_eq!(gap.thread, Some(ThreadId(7)));
    assert_eq!(gap.thread_name.as_deref(), Some("main"));
    assert_eq!(gap.before.name, "work");
    assert_eq!(gap.host_calls[0].call, "outside of GPU calls");
    assert_eq!(gap.host_calls[0].total_ns, 50 * US);
}

#[test]
fn without_the_submitting_thread_what_the_host_did_is_not_known() {
    let findings = late_in(|trace| trace.tables.submissions.thread.set(1, None));
    assert_eq!(
        causes(&findings.gaps),
        [(HostLate, 50), (LaunchLatency, 30), (SubmitCall, 20)]
    );
    assert_eq!(findings.idle_time.unknown_host_ns, 50 * US);
    let gap = &findings.idle_time.longest[0];
    assert_eq!((gap.process_id, gap.thread), (Some(ProcessId(1)), None));
    assert_eq!((&gap.thread_name, gap.host_calls.len()), (&None, 0));
    let mut parts = findings.verdict_evidence.parts.iter();
    let host = parts.find(|part| part.what == "host").unwrap();
    assert!(host.sentence.contains("is not in the trace"), "{host:?}");
}

#[test]
fn a_call_of_an_unknown_thread_is_nobodys() {
    let findings = late_in(|trace| trace.tables.host_calls.thread.change(|_| None));
    assert_eq!(findings.gaps[0].cause, HostLate);
    assert_eq!(findings.idle_time.unknown_host_ns, 0);
    let gap = &findings.idle_time.longest[0];
    assert_eq!(gap.host_calls[0].call, "outside of GPU calls");
    assert_eq!(gap.other_threads, []);
}

#[test]
fn without_host_calls_of_the_process_what_its_thread_did_is_not_known() {
    let findings = late_in(|trace| trace.tables.host_calls = Default::default());
    assert_eq!(findings.gaps[0].cause, HostLate);
    let late_ns = findings.gaps[0].total_ns;
    assert_eq!(findings.idle_time.unknown_host_ns, late_ns);
    assert_eq!(findings.idle_time.host_calls, []);
}

#[test]
fn work_that_was_submitted_in_time_is_launched_late() {
    let findings = gap(|p| {
        p.dispatch(1, [10, 20], 200, 10);
    });
    assert_eq!(causes(&findings.gaps), [(LaunchLatency, 100)]);
}

#[test]
fn work_that_starts_inside_the_submission_call_leaves_nothing_for_the_launch() {
    let findings = gap(|p| {
        p.dispatch(1, [150, 500], 200, 10);
    });
    assert_eq!(causes(&findings.gaps), [(HostLate, 50), (SubmitCall, 50)]);
}

#[test]
fn calls_before_the_submission_are_named_to_the_nanosecond() {
    let findings = gap(|p| {
        p.call("create-pipelines", [90, 130]);
        p.call("allocate-memory", [130, 140]);
        p.call("map-memory", [150, 155]);
        p.call("present", [155, 160]);
        p.dispatch(1, [190, 195], 200, 10);
    });
    assert_eq!(
        causes(&findings.gaps),
        [
            (HostLate, 40),
            (HostCompile, 30),
            (HostAllocate, 15),
            (SubmitCall, 5),
            (HostCall, 5),
            (LaunchLatency, 5)
        ]
    );
    let calls = findings.idle_time.host_calls.iter();
    let calls: Vec<_> = calls.map(|c| (c.call, c.count, c.total_ns / US)).collect();
    assert_eq!(
        calls,
        [
            ("outside of GPU calls", 0, 40),
            ("create-pipelines", 1, 30),
            ("allocate-memory", 1, 10),
            ("map-memory", 1, 5),
            ("present", 1, 5)
        ]
    );
}

#[test]
fn a_wait_and_a_quick_submission_after_it_are_one_round_trip() {
    let findings = gap(|p| {
        p.call("wait-fences", [0, 130]);
        p.dispatch(1, [180, 190], 200, 10);
    });
    assert_eq!(
        causes(&findings.gaps),
        [(AfterHostWait, 80), (SubmitCall, 10), (LaunchLatency, 10)]
    );
    assert_eq!(findings.idle_time.serialised_ns, 100 * US);
    assert_eq!(findings.idle_time.serialised_count, 1);
}

#[test]
fn long_program_code_after_a_wait_is_a_late_host() {
    let findings = gap(|p| {
        p.call("wait-fences", [0, 130]);
        p.dispatch(1, [1130, 1140], 1150, 10);
    });
    assert_eq!(
        causes(&findings.gaps),
        [
            (HostLate, 1000),
            (AfterHostWait, 30),
            (SubmitCall, 10),
            (LaunchLatency, 10)
        ]
    );
}

#[test]
fn the_round_trip_ends_at_its_documented_length() {
    let limit = gapscope_timeline::thresholds::ROUND_TRIP_NS / US;
    for (outside, late) in [(limit, false), (limit + 1, true)] {
        let findings = gap(|p| {
            p.call("wait-fences", [0, 130]);
            p.dispatch(1, [130 + outside, 131 + outside], 500, 10);
        });
        let found = findings.gaps.iter().any(|gap| gap.cause == HostLate);
        assert_eq!(found, late, "{outside} us");
    }
}

#[test]
fn a_signal_that_the_host_gives_late_is_its_own_cause() {
    let findings = gap(|p| {
        let id = p.dispatch(1, [10, 20], 200, 10);
        p.line(&format!("dependency submission={id} host_signal_ns=180us"));
    });
    assert_eq!(
        causes(&findings.gaps),
        [(HostSignal, 80), (LaunchLatency, 20)]
    );
}

#[test]
fn a_signal_of_unknown_source_leaves_the_gap_unknown() {
    let findings = gap(|p| {
        let id = p.dispatch(1, [10, 20], 200, 10);
        p.line(&format!("dependency submission={id}"));
    });
    assert_eq!(causes(&findings.gaps), [(Unknown, 100)]);
}

#[test]
fn work_whose_submission_is_not_in_the_trace_leaves_the_gap_unknown() {
    let findings = gap(|p| {
        p.line("dispatch command_buffer=99 queue=1 kernel=1 start_ns=200us duration_ns=1us");
    });
    assert_eq!(causes(&findings.gaps), [(Unknown, 100)]);
}

#[test]
fn gaps_inside_a_command_buffer_are_its_own_whatever_the_host_does() {
    let mut p = Program::new();
    let id = p.dispatch(1, [-20, -10], 0, 100);
    p.line(&format!(
        "dispatch command_buffer={id} queue=1 kernel=1 position=1 start_ns=130us duration_ns=20us"
    ));
    // Another queue's work in between does not change that: only the gap is smaller.
    p.dispatch(2, [-5, -1], 110, 10);
    assert_eq!(p.gaps(), [(LaunchLatency, 10), (WithinCommandBuffer, 10)]);
}

#[test]
fn queues_that_hand_over_idle_for_each_other_and_the_device_hardly() {
    let mut p = Program::new();
    let mut last = None;
    for turn in 0..10 {
        let queue = 1 + turn as u32 % 2;
        // Submitted long before; each turn runs 90 us and the hand-over takes 10.
        let id = p.dispatch(queue, [-1000 + turn * 10, -995 + turn * 10], turn * 100, 90);
        if let Some(last) = last {
            p.depends(id, last);
        }
        last = Some(id);
    }
    let findings = p.findings();
    assert_eq!(causes(&findings.gaps), [(QueueHandover, 90)]);
    let idle = &findings.idle_time;
    assert_eq!(idle.longest[0].waited_for_queue, Some(QueueId(1)));
    for queue in &idle.queues {
        // Between its own turns a queue idles 110 us: 10 of hand-over to the other, 90 of the other's work, 10 back.
        assert_eq!(
            causes(&queue.causes),
            [(OtherQueue, 400), (QueueHandover, 40)]
        );
    }
    assert_eq!(idle.queues.len(), 2);
    let queue = &findings.devices[0].queues[0];
    assert_eq!(queue.analysed.unwrap().idle_ns, 440 * US);
}

#[test]
fn a_semaphore_that_an_empty_submission_passes_on_is_followed() {
    let mut p = Program::new();
    let first = p.dispatch(2, [-20, -10], 0, 100);
    p.line(
        "submission id=50 process=1 queue=1 thread=7 start_ns=0 duration_ns=0 command_buffers=0",
    );
    p.depends(50, first);
    let id = p.dispatch(1, [10, 20], 200, 10);
    p.depends(id, 50);
    assert_eq!(p.gaps(), [(QueueHandover, 100)]);
}

#[test]
fn a_device_waits_for_another_device() {
    let mut p = Program::from_text(
        "manifest sampling_mode=dispatch
         device id=1 name=A uuid=aa
         device id=2 name=B uuid=bb
         queue id=1 device=1
         queue id=2 device=2",
    );
    p.dispatch(1, [-20, -10], 0, 100);
    let far = p.dispatch(2, [0, 5], 20, 150);
    let id = p.dispatch(1, [10, 20], 200, 10);
    p.depends(id, far);
    let findings = p.findings();
    assert_eq!(
        causes(&findings.gaps),
        [(OtherQueue, 70), (QueueHandover, 30)]
    );
    assert_eq!(findings.idle_time.devices.len(), 2);
    assert_eq!(findings.idle_time.devices[1].total_ns, 0);
    assert_eq!(
        findings.idle_time.longest[0].waited_for_queue,
        Some(QueueId(2))
    );
    assert_eq!(findings.gpu_busy_ns, Some(180 * US));
    assert_eq!(findings.clock_error_ns, None);
}

#[test]
fn two_processes_on_one_gpu_fill_each_others_gaps() {
    let mut p = Program::from_text(
        "manifest sampling_mode=dispatch
         device id=1 process=1 name=GPU uuid=aa clock.error_ns=5
         device id=2 process=2 name=GPU uuid=aa clock.error_ns=9
         queue id=1 device=1
         queue id=2 device=2",
    );
    p.dispatch(1, [-20, -10], 0, 100);
    p.dispatch(2, [-20, -10], 90, 70);
    p.dispatch(1, [110, 115], 150, 50);
    let findings = p.findings();
    assert_eq!(*findings.gaps, []);
    assert_eq!(findings.devices.len(), 1);
    assert_eq!(findings.devices[0].busy_ns, Some(200 * US));
    assert_eq!(
        findings.devices[0].process_ids,
        [ProcessId(1), ProcessId(2)]
    );
    assert_eq!(findings.clock_error_ns, Some(9));
    assert_eq!(
        causes(&findings.idle_time.queues[0].causes),
        [(LaunchLatency, 35), (HostLate, 10), (SubmitCall, 5)]
    );
}

#[test]
fn short_gaps_can_be_left_unexplained_but_are_counted() {
    let mut p = Program::new();
    p.dispatch(1, [-20, -10], 0, 100);
    p.dispatch(1, [-20, -10], 103, 97);
    p.dispatch(1, [-20, -10], 210, 10);
    let options = Options {
        gap_threshold_ns: 5 * US,
        ..Options::default()
    };
    let idle = Findings::new(&p.trace(), &options).idle_time;
    assert_eq!((idle.gap_count, idle.total_ns), (1, 10 * US));
    assert_eq!(idle.below_threshold_count, 1);
    assert_eq!(idle.below_threshold_ns, 3 * US);
}

#[test]
fn a_window_cuts_gaps_and_their_causes() {
    let mut p = Program::new();
    p.dispatch(1, [-20, -10], 0, 100);
    p.dispatch(1, [150, 170], 200, 100);
    let options = Options {
        window: Some(Interval::new(120 * US, 250 * US)),
        ..Options::default()
    };
    let findings = Findings::new(&p.trace(), &options);
    assert_eq!(
        causes(&findings.gaps),
        [(HostLate, 30), (LaunchLatency, 30), (SubmitCall, 20)]
    );
    let share = findings.devices[0].analysed.unwrap();
    assert_eq!((share.busy_ns, share.idle_ns), (50 * US, 80 * US));
    assert_eq!(findings.idle_time.longest[0].duration_ns, 80 * US);
    assert_eq!(findings.devices[0].busy_ns, Some(200 * US));
}

#[test]
fn a_command_buffer_timed_as_a_whole_hides_its_gaps_and_says_so() {
    let mut p = Program::new();
    let id = p.dispatch(1, [-20, -10], 0, 100);
    p.line(&format!(
        "dispatch command_buffer={id} queue=1 kernel=1 position=1"
    ));
    p.dispatch(1, [-20, -10], 100, 10);
    p.line(
        "submission id=60 queue=1 thread=7 process=1 start_ns=0 duration_ns=1000 command_buffers=1",
    );
    p.line("command_buffer id=60 queue=1 submission=60 dispatches=3 timing=bracketed start_ns=120us duration_ns=30us");
    p.line("command_buffer id=61 queue=1 submission=60 dispatches=3 timing=no-timestamps");
    let findings = p.findings();
    assert_eq!(findings.devices[0].busy_ns, Some(140 * US));
    assert_eq!(findings.devices[0].command_buffers_counted_whole, 2);
    assert_eq!(findings.devices[0].command_buffers_untimed, 1);
    assert_eq!(findings.gaps[0].total_ns, 10 * US);
    assert_eq!(findings.kernels[0].count, 3);
    assert_eq!(findings.kernels[0].untimed_count, 1);
}

#[test]
fn in_command_buffer_mode_the_command_buffers_are_the_work() {
    let mut p = Program::from_text(
        "manifest sampling_mode=command-buffer\ndevice id=1 uuid=aa\nqueue id=1 device=1",
    );
    for turn in 0..3 {
        let id = p.submit(1, [turn * 100 - 50, turn * 100 - 40]);
        p.line(&format!(
            "command_buffer id={id} queue=1 submission={id} dispatches=4 start_ns={}us duration_ns=60us",
            turn * 100
        ));
        p.line(&format!("dispatch command_buffer={id} queue=1 kernel=1"));
    }
    let findings = p.findings();
    assert_eq!(findings.gpu_busy_ns, Some(180 * US));
    assert_eq!(causes(&findings.gaps), [(LaunchLatency, 80)]);
    assert_eq!(findings.timed_dispatch_count, 0);
    assert_eq!(findings.idle_time.longest[0].before.name, "command buffer");
}
