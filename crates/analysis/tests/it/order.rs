//! What the next work waits for in its queue and by the order of queues: host functions, waits for values, streams that
//! wait for the default stream.

use crate::program::{Program, US, causes, findings};
use gapscope_analysis::Findings;
use gapscope_analysis::Options;
use gapscope_analysis::gaps::Cause::{self, *};
use gapscope_analysis::gaps::GapFinder;
use gapscope_analysis::verdict::Bound;
use gapscope_timeline::Timeline;
use gapscope_timeline::thresholds::{NODE_ORDER_NS, SUBMISSIONS_FOLLOWED};
use gapscope_trace::ids::QueueId;

/// A CUDA program: stream 1 is the default one, 2 and 3 are blocking, 4 is not.
fn cuda() -> Program {
    Program::from_text(
        "manifest sampling_mode=dispatch
         process id=1 pid=10 hook=cuda
         thread process=1 thread=7 name=main
         device id=1 process=1 api=cuda name=GPU uuid=aa clock.error_ns=0
         queue id=1 device=1 kind=default
         queue id=2 device=1 kind=blocking
         queue id=3 device=1 kind=blocking
         queue id=4 device=1 kind=non-blocking
         kernel id=1 process=1 name=work",
    )
}

/// A program whose stream 4 runs a kernel from 0 to 100 us, then what `plant` says.
fn after_a_kernel(plant: impl FnOnce(&mut Program)) -> Findings {
    let mut program = cuda();
    program.launch(4, [-20, -10], 0, 100);
    plant(&mut program);
    program.findings()
}

fn gaps_after_a_kernel(plant: impl FnOnce(&mut Program)) -> Vec<(Cause, i64)> {
    causes(&after_a_kernel(plant).gaps)
}

#[test]
fn the_call_of_a_graph_launch_is_the_hosts_and_the_start_after_it_the_graphs() {
    let findings = after_a_kernel(|p| {
        p.graph(4, [110, 700], &[[720, 200], [921, 199]], "");
    });
    assert_eq!(
        causes(&findings.gaps),
        [
            (SubmitCall, 590),
            (GraphLaunch, 20),
            (HostLate, 10),
            (WithinCommandBuffer, 1)
        ]
    );
    assert_eq!(findings.verdict, Bound::HostBound);
}

#[test]
fn a_graph_that_starts_inside_its_call_leaves_nothing_for_the_launch() {
    let gaps = gaps_after_a_kernel(|p| {
        p.graph(4, [110, 700], &[[400, 400]], "");
    });
    assert_eq!(gaps, [(SubmitCall, 290), (HostLate, 10)]);
}

#[test]
fn the_time_of_a_host_function_is_its_own() {
    let findings = after_a_kernel(|p| {
        p.mark(4, "host-function", [10, 15]);
        p.line("host_call process=1 call=host-function queue=4 start_ns=110us duration_ns=880us");
        p.launch(4, [20, 25], 1000, 100);
    });
    assert_eq!(
        causes(&findings.gaps),
        [(HostFunction, 880), (LaunchLatency, 20)]
    );
    assert_eq!(findings.verdict, Bound::HostBound);
    assert_eq!(findings.idle_time.untimed_host_function_ns, 0);
}

#[test]
fn the_time_of_a_host_function_is_its_own_before_the_next_launch_too() {
    let gaps = gaps_after_a_kernel(|p| {
        p.mark(4, "host-function", [10, 15]);
        p.line("host_call process=1 call=host-function queue=4 start_ns=110us duration_ns=50us");
        p.launch(4, [150, 170], 200, 100);
    });
    assert_eq!(
        gaps,
        [
            (HostFunction, 50),
            (LaunchLatency, 30),
            (HostLate, 10),
            (SubmitCall, 10)
        ]
    );
}

#[test]
fn without_its_times_a_host_function_may_take_all_of_the_rest() {
    let findings = after_a_kernel(|p| {
        p.mark(4, "host-function", [10, 15]);
        p.launch(4, [120, 130], 1000, 100);
    });
    assert_eq!(
        causes(&findings.gaps),
        [(HostFunction, 870), (HostLate, 20), (SubmitCall, 10)]
    );
    assert_eq!(findings.idle_time.untimed_host_function_ns, 870 * US);
}

#[test]
fn of_two_host_functions_of_which_one_is_timed_the_other_may_take_the_rest() {
    let findings = after_a_kernel(|p| {
        p.mark(4, "host-function", [10, 15]);
        p.mark(4, "host-function", [15, 20]);
        p.line("host_call process=1 call=host-function queue=4 start_ns=110us duration_ns=50us");
        p.launch(4, [20, 25], 1000, 100);
    });
    assert_eq!(causes(&findings.gaps), [(HostFunction, 900)]);
    assert_eq!(findings.idle_time.untimed_host_function_ns, 850 * US);
}

#[test]
fn a_host_function_of_another_stream_or_of_before_holds_nothing() {
    let gaps = gaps_after_a_kernel(|p| {
        p.mark(2, "host-function", [10, 15]);
        // Before the first kernel: that waited for it.
        p.mark(4, "host-function", [-40, -30]);
        p.launch(4, [20, 25], 150, 100);
        // Put there after it.
        p.mark(4, "host-function", [30, 35]);
    });
    assert_eq!(gaps, [(LaunchLatency, 50)]);
}

#[test]
fn waits_for_values_and_external_semaphores_are_external() {
    for kind in ["wait-value", "wait-external"] {
        let findings = after_a_kernel(|p| {
            p.mark(4, kind, [10, 15]);
            p.launch(4, [120, 130], 1000, 100);
        });
        assert_eq!(
            causes(&findings.gaps),
            [(ExternalWait, 870), (HostLate, 20), (SubmitCall, 10)],
            "{kind}"
        );
        assert_eq!(findings.verdict, Bound::SyncBound);
    }
}

#[test]
fn what_a_prefetch_took_is_unknown_and_called_a_page_move() {
    let findings = after_a_kernel(|p| {
        p.mark(4, "prefetch", [10, 15]);
        p.launch(4, [20, 25], 1000, 100);
    });
    assert_eq!(causes(&findings.gaps), [(PageMove, 900)]);
    assert_eq!(findings.verdict, Bound::Unknown);
}

#[test]
fn a_gap_before_a_page_move_is_explained_by_the_next_launch() {
    let findings = after_a_kernel(|p| {
        p.line("transfer queue=4 position=0 kind=device-to-host bytes=4096 start_ns=300us duration_ns=100us host_memory=managed");
        p.launch(4, [700, 710], 780, 100);
    });
    assert_eq!(
        causes(&findings.gaps),
        [(HostLate, 500), (LaunchLatency, 70), (SubmitCall, 10)]
    );
    let moves = findings.transfers[0].page_moves.unwrap();
    assert_eq!((moves.count, moves.bytes), (1, 4096));
    assert_eq!((moves.busy_ns, moves.beside_kernels_ns), (100 * US, 0));
}

#[test]
fn which_of_two_waits_without_times_held_the_work_is_unknown() {
    let gaps = gaps_after_a_kernel(|p| {
        p.mark(4, "wait-value", [10, 15]);
        p.mark(4, "host-function", [15, 20]);
        p.launch(4, [20, 25], 1000, 100);
    });
    assert_eq!(gaps, [(Unknown, 900)]);
}

#[test]
fn a_kernel_whose_times_were_lost_may_have_run_in_the_gap_after_it() {
    let gaps = gaps_after_a_kernel(|p| {
        p.mark(4, "kernel", [10, 15]);
        p.launch(4, [20, 25], 1000, 100);
    });
    assert_eq!(gaps, [(Unknown, 900)]);
}

/// A graph of two kernels with a gap of `gap_ns` between them, and `host_functions` host nodes.
fn graph_with_a_gap(gap_ns: i64, host_functions: &str, more: &str) -> Findings {
    let mut p = cuda();
    p.line(&format!(
        "submission id=90 process=1 queue=4 thread=7 start_ns=-20us duration_ns=10us command_buffers=1 kind=graph
         command_buffer id=90 process=1 queue=4 submission=90 dispatches=2 {host_functions}
         dispatch command_buffer=90 queue=4 kernel=1 start_ns=0 duration_ns=100us
         dispatch command_buffer=90 position=1 queue=4 kernel=1 start_ns={} duration_ns=100us
         {more}",
        100 * US + gap_ns
    ));
    p.findings()
}

#[test]
fn a_long_gap_in_a_graph_with_host_nodes_is_unknown_without_their_times() {
    let cause = |gap_ns, host_functions| {
        let findings = graph_with_a_gap(gap_ns, host_functions, "");
        assert_eq!(findings.gaps.len(), 1);
        findings.gaps[0].cause
    };
    assert_eq!(
        cause(NODE_ORDER_NS, "host_functions=1"),
        WithinCommandBuffer
    );
    assert_eq!(cause(NODE_ORDER_NS + 1, "host_functions=1"), Unknown);
    assert_eq!(
        cause(NODE_ORDER_NS + 1, "host_functions=0"),
        WithinCommandBuffer
    );
    // What is in the graph is not known: the cause says only where the time went.
    assert_eq!(cause(NODE_ORDER_NS + 1, ""), WithinCommandBuffer);
}

#[test]
fn the_time_of_a_host_node_is_its_own() {
    let node = "host_call process=1 call=host-function queue=4 start_ns=110us duration_ns=7900us";
    let findings = graph_with_a_gap(7_930 * US, "host_functions=1", node);
    assert_eq!(
        causes(&findings.gaps),
        [(HostFunction, 7_900), (WithinCommandBuffer, 30)]
    );
    assert_eq!(findings.verdict, Bound::HostBound);
    // Of two nodes one is not timed: it may be in what is left.
    let findings = graph_with_a_gap(7_930 * US, "host_functions=2", node);
    assert_eq!(
        causes(&findings.gaps),
        [(HostFunction, 7_900), (Unknown, 30)]
    );
}

#[test]
fn a_host_node_may_be_the_graphs_first_or_last() {
    let gaps = gaps_after_a_kernel(|p| {
        p.graph(4, [10, 20], &[[180, 100]], "host_functions=1");
        p.launch(4, [30, 40], 780, 100);
    });
    assert_eq!(gaps, [(Unknown, 80 + 500)]);
    let gaps = gaps_after_a_kernel(|p| {
        p.graph(4, [10, 20], &[[180, 100]], "host_functions=1");
        p.line("host_call process=1 call=host-function queue=4 start_ns=290us duration_ns=480us");
        p.launch(4, [30, 40], 780, 100);
    });
    assert_eq!(
        gaps,
        [(HostFunction, 480), (GraphLaunch, 80), (LaunchLatency, 20)]
    );
}

#[test]
fn a_blocking_stream_waits_for_the_default_stream() {
    let mut p = cuda();
    p.launch(2, [-20, -15], 0, 100);
    p.launch(1, [-10, -5], 110, 10_000);
    p.launch(2, [0, 5], 10_120, 100);
    let findings = p.findings();
    assert_eq!(causes(&findings.gaps), [(QueueHandover, 20)]);
    let stream = queue(&findings, 2);
    assert_eq!(stream, [(OtherQueue, 10_010), (QueueHandover, 10)]);
    let last = &findings.idle_time.longest[1];
    assert_eq!(last.waited_for_queue, Some(QueueId(1)));
}

#[test]
fn the_default_stream_waits_for_all_blocking_streams() {
    let mut p = cuda();
    p.launch(1, [-30, -25], -10, 10);
    p.launch(2, [-20, -15], 10, 90);
    p.launch(3, [-10, -5], 10, 990);
    p.launch(1, [0, 5], 1_010, 100);
    let findings = p.findings();
    assert_eq!(
        queue(&findings, 1),
        [(OtherQueue, 1_000), (QueueHandover, 10)]
    );
}

#[test]
fn a_non_blocking_stream_waits_for_neither_nor_they_for_it() {
    let mut p = cuda();
    p.launch(4, [-40, -35], -30, 30);
    p.launch(1, [-30, -25], -20, 1_020);
    p.launch(4, [0, 5], 80, 10_000);
    p.launch(1, [10, 15], 1_090, 100);
    p.launch(2, [20, 25], 1_200, 100);
    let findings = p.findings();
    assert_eq!(queue(&findings, 4), [(LaunchLatency, 75), (SubmitCall, 5)]);
    assert_eq!(queue(&findings, 1), [(LaunchLatency, 90)]);
}

#[test]
fn streams_of_other_devices_are_independent_of_a_default_stream() {
    let mut p = Program::from_text(
        "manifest sampling_mode=dispatch
         process id=1 pid=10 hook=cuda
         device id=1 process=1 api=cuda name=GPU uuid=aa clock.error_ns=0
         device id=2 process=1 api=cuda name=GPU uuid=bb clock.error_ns=0
         queue id=1 device=1 kind=default
         queue id=2 device=2 kind=blocking
         kernel id=1 process=1 name=work",
    );
    p.launch(2, [-30, -25], -20, 20);
    p.launch(1, [-20, -15], -10, 200);
    p.launch(2, [0, 5], 90, 10);
    let findings = p.findings();
    assert_eq!(queue(&findings, 2), [(LaunchLatency, 85), (SubmitCall, 5)]);
}

#[test]
fn work_that_is_launched_after_the_default_stream_has_finished_did_not_wait_for_it() {
    let mut p = cuda();
    p.launch(2, [-40, -35], -30, 10);
    p.launch(1, [-20, -15], 0, 100);
    p.launch(2, [150, 160], 200, 100);
    let gaps = p.gaps();
    assert_eq!(
        gaps,
        [
            (LaunchLatency, 15 + 40),
            (HostLate, 50),
            (SubmitCall, 5 + 10)
        ]
    );
}

#[test]
fn a_host_function_of_the_default_stream_holds_blocking_streams() {
    let mut p = cuda();
    p.launch(2, [-40, -35], 0, 100);
    p.mark(1, "host-function", [-20, -15]);
    p.launch(2, [0, 10], 1_000, 100);
    // The next one needs no more of it.
    p.launch(2, [10, 20], 1_180, 100);
    let findings = p.findings();
    assert_eq!(
        causes(&findings.gaps),
        [(HostFunction, 900), (LaunchLatency, 80)]
    );
    p.line("host_call process=1 call=host-function queue=1 start_ns=120us duration_ns=800us");
    assert_eq!(p.gaps(), [(HostFunction, 800), (LaunchLatency, 80 + 100)]);
}

#[test]
fn an_event_behind_a_host_function_waits_for_what_is_before_that_too() {
    let mut p = cuda();
    p.launch(4, [-60, -55], -50, 50);
    p.launch(2, [-40, -35], 0, 500);
    let function = p.mark(2, "host-function", [-20, -15]);
    p.line("host_call process=1 call=host-function queue=2 start_ns=510us duration_ns=300us");
    let id = p.launch(4, [0, 5], 900, 100);
    p.depends(id, function);
    assert_eq!(
        queue(&p.findings(), 4),
        [(OtherQueue, 500), (HostFunction, 300), (QueueHandover, 100)]
    );
}

#[test]
fn a_wait_of_a_submission_without_work_holds_what_comes_after_it_on_its_queue() {
    let mut p = Program::new();
    p.dispatch(1, [-20, -10], 0, 100);
    p.line(
        "submission id=50 process=1 queue=1 thread=7 start_ns=0 duration_ns=1us command_buffers=0
         dependency submission=50 host_signal_ns=900us",
    );
    p.dispatch(1, [10, 20], 1_000, 10);
    assert_eq!(p.gaps(), [(HostSignal, 800), (LaunchLatency, 100)]);
}

#[test]
fn a_semaphore_behind_other_work_of_its_queue_waits_for_that() {
    let mut p = Program::new();
    p.dispatch(1, [-40, -35], -30, 30);
    p.dispatch(2, [-20, -10], 0, 500);
    p.line("submission id=50 process=1 queue=2 thread=7 start_ns=-5us duration_ns=1us command_buffers=0");
    let id = p.dispatch(1, [10, 20], 600, 10);
    p.depends(id, 50);
    assert_eq!(
        queue(&p.findings(), 1),
        [(OtherQueue, 500), (QueueHandover, 100)]
    );
}

#[test]
fn what_had_finished_before_the_submission_handed_nothing_over() {
    let mut p = Program::new();
    let other = p.dispatch(2, [-20, -10], 0, 100);
    let id = p.dispatch(1, [150, 160], 200, 10);
    p.depends(id, other);
    assert_eq!(
        p.gaps(),
        [(HostLate, 50), (LaunchLatency, 40), (SubmitCall, 10)]
    );
}

#[test]
fn a_chain_of_submissions_without_work_that_is_too_long_is_unknown() {
    let chain = |length: u64| {
        let mut p = cuda();
        p.launch(4, [-20, -10], 0, 100);
        for at in 0..length {
            p.mark(4, "wait-value", [10 + at as i64, 11 + at as i64]);
        }
        let call = 20 + length as i64;
        p.launch(4, [call, call + 1], 5_000, 100);
        p.findings().gaps[0].cause
    };
    // The submission itself is one of them.
    assert_eq!(chain(SUBMISSIONS_FOLLOWED - 1), ExternalWait);
    assert_eq!(chain(SUBMISSIONS_FOLLOWED), Unknown);
}

#[test]
fn what_only_holds_a_queue_up_is_not_counted_as_a_submission() {
    let findings = after_a_kernel(|p| {
        p.mark(4, "host-function", [10, 15]);
        p.mark(4, "wait-value", [15, 16]);
        p.launch(4, [20, 25], 1000, 100);
    });
    assert_eq!(findings.submission_count, 2);
    assert_eq!(findings.command_buffers.submission_count, 2);
}

#[test]
fn dependencies_that_go_round_in_a_circle_end() {
    let mut p = cuda();
    p.launch(4, [-20, -10], 0, 100);
    let first = p.mark(2, "wait-value", [0, 1]);
    let second = p.mark(3, "wait-value", [1, 2]);
    p.depends(first, second);
    p.depends(second, first);
    let id = p.launch(4, [10, 20], 500, 100);
    p.depends(id, first);
    p.depends(id, id);
    assert_eq!(p.gaps(), [(ExternalWait, 400)]);
}

#[test]
fn single_gaps_are_explained_as_their_sums_are() {
    let mut p = cuda();
    p.launch(4, [-20, -10], 0, 100);
    p.mark(4, "wait-value", [10, 15]);
    p.launch(4, [20, 25], 1000, 100);
    let trace = p.trace();
    let timeline = Timeline::new(&trace);
    let mut parts = Vec::new();
    GapFinder::new(&timeline).each(0, |_, of| parts.extend_from_slice(of));
    let gap = GapFinder::new(&timeline).at(0, 100 * US).unwrap();
    assert_eq!(gap.parts, parts);
    assert_eq!(gap.cause, ExternalWait);
}

#[test]
fn calls_of_equal_time_are_in_the_order_of_their_ids() {
    let mut text = String::new();
    for (id, queue, start) in [(3, 1, 200), (2, 2, 100), (1, 2, 0)] {
        text += &format!(
            "submission id={id} process=1 queue={queue} thread=7 start_ns=-10us duration_ns=1us kind=kernel
             dispatch submission={id} queue={queue} kernel=1 start_ns={start}us duration_ns=50us\n"
        );
    }
    text.push_str(
        "submission id=0 process=1 queue=1 thread=7 start_ns=-50us duration_ns=1us kind=kernel
                   dispatch submission=0 queue=1 kernel=1 start_ns=-40us duration_ns=10us",
    );
    let mut p = cuda();
    p.line(&text);
    assert_eq!(
        queue(&p.findings(), 1),
        [(OtherQueue, 160), (QueueHandover, 50), (HostLate, 20)]
    );
}

#[test]
fn a_window_of_the_options_changes_no_order() {
    let mut p = cuda();
    p.launch(4, [-20, -10], 0, 100);
    p.mark(4, "wait-value", [10, 15]);
    p.launch(4, [20, 25], 1000, 100);
    let window = gapscope_timeline::intervals::Interval::new(200 * US, 2_000 * US);
    let options = Options {
        window: Some(window),
        ..Options::default()
    };
    let found = Findings::new(&p.trace(), &options);
    assert_eq!(causes(&found.gaps), [(ExternalWait, 800)]);
    assert_eq!(findings(&p.trace()).gaps[0].total_ns, 900 * US);
}

/// Causes of the idle time of a queue.
fn queue(findings: &Findings, id: u32) -> Vec<(gapscope_analysis::gaps::Cause, i64)> {
    let mut queues = findings.idle_time.queues.iter();
    let queue = queues.find(|queue| queue.queue_id == QueueId(id));
    causes(&queue.expect("the queue ran something").causes)
}
