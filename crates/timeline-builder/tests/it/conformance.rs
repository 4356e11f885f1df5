//! Short scripts of events with the rows that are right, through every way into the builder: as they come while a program runs, in other
//! orders, and all at once, as an importer has them.

use crate::script::Script;

/// Checks the rows of one script, as far as `shown` shows them. With `any_order`, its events come in other orders, too.
fn check(
    script: &Script,
    expected: &str,
    (any_order, imported): (bool, bool),
    shown: impl Fn(&str) -> Option<String>,
) {
    let lines = |lines: Vec<String>| -> Vec<String> {
        let mut lines: Vec<_> = lines.iter().filter_map(|line| shown(line)).collect();
        lines.sort_unstable();
        lines
    };
    let mut expected: Vec<&str> = expected.lines().map(str::trim).collect();
    expected.retain(|line| !line.is_empty());
    expected.sort_unstable();
    let check = |order: &[usize], name: &str| {
        assert_eq!(lines(script.live(order)), expected, "{name}");
    };
    let count = script.events.len();
    check(&Vec::from_iter(0..count), "as it comes");
    if any_order {
        // The same orders in every run: reversed, rotated, and in steps that are prime to most lengths.
        check(&Vec::from_iter((0..count).rev()), "reversed");
        let mut steps = [7, 5, 3].into_iter();
        let step = steps.find(|step| !count.is_multiple_of(*step)).unwrap_or(1);
        for start in 1..count {
            for step in [1, step] {
                let order: Vec<_> = (0..count).map(|at| (start + at * step) % count).collect();
                check(&order, &format!("from event {start} in steps of {step}"));
            }
        }
    }
    if imported {
        assert_eq!(lines(script.imported()), expected, "all at once");
    }
}

/// Checks which submissions wait for which; each is named by the start of its call.
fn check_waits(script: &str, expected: &str, any_order: bool) {
    let is_wait = |line: &str| line.contains("waits for");
    let shown = |line: &str| is_wait(line).then(|| line.replace("cudaLaunchKernel@", ""));
    check(
        &Script::parse(script),
        expected,
        (any_order, any_order),
        shown,
    );
}

/// Checks those rows of a script that `shown` shows.
pub fn check_calls(
    script: &str,
    expected: &str,
    any_order: bool,
    shown: impl Fn(&str) -> Option<String>,
) {
    check(&Script::parse(script), expected, (any_order, true), shown);
}

/// The events may come in any order, and an import gives the same rows.
const EVERYWHERE: (bool, bool) = (true, true);
/// The order in which the events come matters while a program runs; an import gives the same rows.
const IN_ORDER: (bool, bool) = (false, true);
/// Only a recording has this.
const LIVE_ONLY: (bool, bool) = (false, false);

macro_rules! case {
    ($name:ident, $ways:ident, $script:literal, $expected:literal) => {
        #[test]
        fn $name() {
            let shown = |line: &str| Some(line.to_owned());
            check(&Script::parse($script), $expected, $ways, shown);
        }
    };
}

case!(
    a_kernel_belongs_to_the_call_with_its_correlation,
    EVERYWHERE,
    "run q7 c1
     run q7 c3",
    "submission cudaLaunchKernel@10 of kernel to q7
     submission cudaLaunchKernel@30 of kernel to q7
     kernel 100010..100015 on q7 #0 by cudaLaunchKernel@10
     kernel 100030..100035 on q7 #0 by cudaLaunchKernel@30"
);

case!(
    work_without_a_call_is_written_and_counted,
    EVERYWHERE,
    "kernel q7 c1 50..60
     kernel q7 c- 70..80",
    "kernel 50..60 on q7 #0 by nothing
     kernel 70..80 on q7 #0 by nothing
     lost 2 host calls of GPU work"
);

case!(
    bodies_of_conditional_nodes_belong_to_the_launch_of_their_graph_before_them,
    EVERYWHERE,
    "call t1 c1 cudaGraphLaunch 10..20
     kernel q7 c1 30..40 graph6
     kernel q17 c- 50..60 graph6
     kernel q17 c- 70..80 graph6
     call t1 c2 cudaGraphLaunch 25..28
     kernel q7 c2 90..95 graph6
     copy q18 c- 100..110 device-to-host graph6",
    "submission cudaGraphLaunch@10 of graph to q7 with 1 graph
     submission cudaGraphLaunch@25 of graph to q7 with 1 graph
     kernel 30..40 on q7 #0 by graph of cudaGraphLaunch@10
     kernel 50..60 on q7 #1 by graph of cudaGraphLaunch@10
     kernel 70..80 on q7 #2 by graph of cudaGraphLaunch@10
     kernel 90..95 on q7 #0 by graph of cudaGraphLaunch@25
     device-to-host 100..110 on q7 #1 by graph of cudaGraphLaunch@25
     graph of cudaGraphLaunch@10 30..80 on q7: 3 kernels, 0 transfers
     graph of cudaGraphLaunch@25 90..110 on q7: 1 kernels, 1 transfers"
);

#[test]
fn bodies_come_after_many_launches_of_their_graph() {
    let mut script = String::new();
    let mut expected = String::new();
    for n in 1..=100 {
        let (call, root, body) = (n * 100, n * 100 + 10, n * 100 + 20);
        script += &format!(
            "call t1 c{n} cudaGraphLaunch {call}..{}\nkernel q7 c{n} {root}..{} graph6\n",
            call + 1,
            root + 5
        );
        let of_launch = format!("by graph of cudaGraphLaunch@{call}");
        expected += &format!(
            "kernel {root}..{} on q7 #0 {of_launch}\nkernel {body}..{} on q7 #1 {of_launch}\n",
            root + 5,
            body + 5
        );
    }
    for n in 1..=100 {
        let body = n * 100 + 20;
        script += &format!("kernel q17 c- {body}..{} graph6\n", body + 5);
    }
    let is_kernel = |line: &str| line.starts_with("kernel").then(|| line.to_owned());
    check(&Script::parse(&script), &expected, IN_ORDER, is_kernel);
}

case!(
    bodies_of_a_graph_that_is_a_loop_alone_belong_to_the_call_before_them,
    EVERYWHERE,
    "call t1 c1 cudaGraphLaunch 10..20 graph6
     queue c1 q7
     kernel q17 c- 50..60 graph6
     kernel q17 c- 70..80 graph6
     call t1 c2 cudaStreamSynchronize 21..82
     call t1 c3 cudaGraphLaunch 84..88 graph6
     queue c3 q7
     call t1 c4 cudaGraphLaunch 89..90 graph8
     queue c4 q9
     kernel q17 c- 90..95 graph6
     kernel q18 c- 91..96 graph8",
    "submission cudaGraphLaunch@10 of graph to q7 with 1 graph
     submission cudaGraphLaunch@84 of graph to q7 with 1 graph
     submission cudaGraphLaunch@89 of graph to q9 with 1 graph
     kernel 50..60 on q7 #0 by graph of cudaGraphLaunch@10
     kernel 70..80 on q7 #1 by graph of cudaGraphLaunch@10
     kernel 90..95 on q7 #0 by graph of cudaGraphLaunch@84
     kernel 91..96 on q9 #0 by graph of cudaGraphLaunch@89
     graph of cudaGraphLaunch@10 50..80 on q7: 2 kernels, 0 transfers
     graph of cudaGraphLaunch@84 90..95 on q7: 1 kernels, 0 transfers
     graph of cudaGraphLaunch@89 91..96 on q9: 1 kernels, 0 transfers
     wait-queue-idle cudaStreamSynchronize 21..82"
);

case!(
    launches_that_are_called_ahead_begin_after_the_work_before_them_on_their_queue,
    IN_ORDER,
    "call t1 c1 cudaGraphLaunch 10..11 graph6
     queue c1 q7
     call t1 c2 cudaLaunchKernel 12..13
     call t1 c3 cudaGraphLaunch 14..15 graph6
     queue c3 q7
     call t1 c4 cudaLaunchKernel 16..17
     kernel q17 c- 50..60 graph6
     kernel q17 c- 70..80 graph6
     kernel q7 c2 81..89
     kernel q17 c- 90..95 graph6
     kernel q9 c4 20..99",
    "submission cudaGraphLaunch@10 of graph to q7 with 1 graph
     submission cudaLaunchKernel@12 of kernel to q7
     submission cudaGraphLaunch@14 of graph to q7 with 1 graph
     submission cudaLaunchKernel@16 of kernel to q9
     kernel 50..60 on q7 #0 by graph of cudaGraphLaunch@10
     kernel 70..80 on q7 #1 by graph of cudaGraphLaunch@10
     kernel 81..89 on q7 #0 by cudaLaunchKernel@12
     kernel 90..95 on q7 #0 by graph of cudaGraphLaunch@14
     kernel 20..99 on q9 #0 by cudaLaunchKernel@16
     graph of cudaGraphLaunch@10 50..80 on q7: 2 kernels, 0 transfers
     graph of cudaGraphLaunch@14 90..95 on q7: 1 kernels, 0 transfers"
);

case!(
    a_body_waits_for_the_launch_of_its_graph_and_of_no_other,
    EVERYWHERE,
    "call t1 c1 cudaGraphLaunch 10..20
     kernel q17 c- 50..60 graph6
     kernel q7 c1 30..40 graph6
     call t1 c2 cudaGraphLaunch 22..24
     kernel q7 c2 35..38 graph8
     kernel q17 c- 20..25 graph6
     kernel q19 c- 50..60 graph9",
    "submission cudaGraphLaunch@10 of graph to q7 with 1 graph
     submission cudaGraphLaunch@22 of graph to q7 with 1 graph
     kernel 30..40 on q7 #0 by graph of cudaGraphLaunch@10
     kernel 50..60 on q7 #1 by graph of cudaGraphLaunch@10
     kernel 35..38 on q7 #0 by graph of cudaGraphLaunch@22
     graph of cudaGraphLaunch@10 30..60 on q7: 2 kernels, 0 transfers
     graph of cudaGraphLaunch@22 35..38 on q7: 1 kernels, 0 transfers
     kernel 20..25 on q17 #0 by nothing
     kernel 50..60 on q19 #0 by nothing
     lost 2 host calls of GPU work"
);

case!(
    two_processes_have_the_same_correlations,
    EVERYWHERE,
    "call t1 c1 cudaLaunchKernel 10..20
     kernel q7 c1 50..60
     process 2
     call t1 c1 cuLaunchKernel 11..21
     kernel q8 c1 51..61",
    "submission cudaLaunchKernel@10 of kernel to q7
     submission process 2 cuLaunchKernel@11 of kernel to q8
     kernel 50..60 on q7 #0 by cudaLaunchKernel@10
     kernel 51..61 on q8 #0 by process 2 cuLaunchKernel@11"
);

case!(
    work_belongs_to_the_nearest_call_before_it_where_a_correlation_is_used_again,
    IN_ORDER,
    "call t1 c1 cudaLaunchKernel 10..20
     kernel q7 c1 30..40
     call t1 c1 cudaMemcpyAsync 50..60
     copy q7 c1 70..80 host-to-device",
    "submission cudaLaunchKernel@10 of kernel to q7
     submission cudaMemcpyAsync@50 of transfer to q7
     kernel 30..40 on q7 #0 by cudaLaunchKernel@10
     host-to-device 70..80 on q7 #0 by cudaMemcpyAsync@50"
);

case!(
    of_a_call_inside_another_with_its_correlation_the_outer_one_is_the_programs,
    IN_ORDER,
    "call t1 c1 cudaLaunchKernel 10..20
     call t1 c1 cuLaunchKernel 12..18
     kernel q7 c1 30..40",
    "submission cudaLaunchKernel@10 of kernel to q7
     kernel 30..40 on q7 #0 by cudaLaunchKernel@10
     launch cuLaunchKernel 12..18"
);

case!(
    a_batch_of_copies_is_one_submission,
    IN_ORDER,
    "call t1 c1 cudaMemcpyAsync 10..20
     copy q7 c1 30..40 host-to-device
     copy q7 c1 40..50 host-to-device",
    "submission cudaMemcpyAsync@10 of transfer to q7
     host-to-device 30..40 on q7 #0 by cudaMemcpyAsync@10
     host-to-device 40..50 on q7 #1 by cudaMemcpyAsync@10"
);

case!(
    the_nodes_of_a_graph_are_in_one_command_buffer_whether_or_not_they_say_so,
    IN_ORDER,
    "call t1 c1 cudaGraphLaunch 10..20
     kernel q7 c1 30..40
     copy q8 c1 35..50 host-to-device graph
     kernel q7 c1 60..70",
    "submission cudaGraphLaunch@10 of graph to q7 with 1 graph
     graph of cudaGraphLaunch@10 30..70 on q7: 2 kernels, 1 transfers
     kernel 30..40 on q7 #0 by graph of cudaGraphLaunch@10
     host-to-device 35..50 on q8 #1 by graph of cudaGraphLaunch@10
     kernel 60..70 on q7 #2 by graph of cudaGraphLaunch@10"
);

case!(
    the_nodes_of_child_graphs_are_those_of_the_launch,
    IN_ORDER,
    "call t1 c1 cudaGraphLaunch 10..20
     call t1 c2 cudaGraphLaunch 22..25
     kernel q7 c1 30..40 graph
     kernel q7 c2 40..50 graph
     kernel q7 c1 50..60 graph",
    "submission cudaGraphLaunch@10 of graph to q7 with 1 graph
     submission cudaGraphLaunch@22 of graph to q7 with 1 graph
     graph of cudaGraphLaunch@10 30..60 on q7: 2 kernels, 0 transfers
     graph of cudaGraphLaunch@22 40..50 on q7: 1 kernels, 0 transfers
     kernel 30..40 on q7 #0 by graph of cudaGraphLaunch@10
     kernel 40..50 on q7 #0 by graph of cudaGraphLaunch@22
     kernel 50..60 on q7 #1 by graph of cudaGraphLaunch@10"
);

case!(
    a_graph_may_be_timed_as_a_whole,
    EVERYWHERE,
    "call t1 c1 cudaGraphLaunch 10..20
     graph q7 c1 30..70",
    "submission cudaGraphLaunch@10 of graph to q7 with 1 graph
     graph of cudaGraphLaunch@10 30..70 on q7: 0 kernels, 0 transfers
     whole 30..70 on q7 #0 by graph of cudaGraphLaunch@10"
);

case!(
    a_graph_without_its_call_is_one_command_buffer,
    EVERYWHERE,
    "kernel q7 c1 30..40 graph
     kernel q7 c1 30..40 graph",
    "graph of nothing 30..40 on q7: 2 kernels, 0 transfers
     kernel 30..40 on q7 #0 by graph of nothing
     kernel 30..40 on q7 #1 by graph of nothing
     lost 2 host calls of GPU work"
);

case!(
    work_without_times_is_a_loss_and_not_0,
    EVERYWHERE,
    "call t1 c1 cudaLaunchKernel 10..20
     kernel q7 c1 ?",
    "submission cudaLaunchKernel@10 of kernel to q7
     kernel ? on q7 #0 by cudaLaunchKernel@10
     lost 1 dispatch times"
);

case!(
    a_copy_that_waits_is_a_call_and_a_submission,
    EVERYWHERE,
    "call t1 c1 cudaMemcpy 10..50
     copy q7 c1 20..45 device-to-host pageable",
    "submission cudaMemcpy@10 of transfer to q7
     device-to-host 20..45 on q7 #0 by cudaMemcpy@10
     copy-and-wait cudaMemcpy 10..50 for q7 until cudaMemcpy@10"
);

case!(
    a_copy_from_memory_that_is_staged_is_not_known_to_be_awaited,
    EVERYWHERE,
    "call t1 c1 cudaMemcpy 10..50
     copy q7 c1 20..45 host-to-device pageable",
    "submission cudaMemcpy@10 of transfer to q7
     host-to-device 20..45 on q7 #0 by cudaMemcpy@10
     copy-and-wait cudaMemcpy 10..50 for q7"
);

case!(
    a_wait_of_the_host_names_its_queue,
    EVERYWHERE,
    "call t1 c1 cudaStreamSynchronize 10..50
     queue c1 q7
     call t1 c2 cudaDeviceSynchronize 60..70",
    "wait-queue-idle cudaStreamSynchronize 10..50 for q7
     wait-device-idle cudaDeviceSynchronize 60..70"
);

case!(
    what_leaves_no_record_of_the_device_is_a_submission_where_its_queue_is_known,
    EVERYWHERE,
    "call t1 c1 cuLaunchHostFunc 10..20
     queue c1 q7
     call t1 c2 cuLaunchHostFunc 30..40",
    "submission cuLaunchHostFunc@10 of host-function to q7
     other-call cuLaunchHostFunc 30..40"
);

case!(
    a_call_that_launches_nothing_is_a_host_call,
    EVERYWHERE,
    "call t1 c1 cudaMalloc 10..20
     call t1 c- cudaFree 30..40 =2",
    "allocate-memory cudaMalloc 10..20
     free-memory cudaFree 30..40 =2"
);

case!(
    polls_that_follow_each_other_closely_are_one_row_and_one_that_finds_its_work_done_is_another,
    IN_ORDER,
    "call t1 c- cudaEventQuery 10..20 =600
     call t1 c- cudaEventQuery 30..40 =600
     call t1 c- cudaEventQuery 50..60 =600
     call t1 c- cudaEventQuery 70..80",
    "poll-event cudaEventQuery 10..60 x3 in 30 =600
     poll-event cudaEventQuery 70..80"
);

case!(
    polls_end_where_their_thread_does_something_else_or_pauses,
    IN_ORDER,
    "call t1 c- cudaEventQuery 10..20 =600
     call t2 c- cudaMalloc 21..22
     call t1 c- cudaEventQuery 30..40 =600
     call t1 c- cudaMalloc 41..42
     call t1 c- cudaEventQuery 50..60 =600
     call t1 c- cudaEventQuery 200000..200010 =600
     call t1 c- cudaStreamQuery 200020..200030 =600",
    "poll-event cudaEventQuery 10..40 x2 in 20 =600
     allocate-memory cudaMalloc 21..22
     allocate-memory cudaMalloc 41..42
     poll-event cudaEventQuery 50..60 =600
     poll-event cudaEventQuery 200000..200010 =600
     poll-event cudaStreamQuery 200020..200030 =600"
);

#[test]
fn streams_wait_for_events() {
    let cases = [
        (
            "only what was submitted before the event is waited for, by the first work behind the wait",
            "run q7 c1
             run q7 c3
             record q7 c4 e5
             run q8 c5
             run q7 c6
             wait q8 c7 e5
             run q8 c8
             run q8 c9",
            "80 waits for 30",
        ),
        (
            "a stream without work of its own is gone through",
            "run q7 c1
             record q7 c2 e5
             wait q8 c3 e5
             record q8 c4 e6
             wait q9 c5 e6
             run q9 c6",
            "60 waits for 10",
        ),
        (
            "a stream without work behind its wait is gone through, and what is put on it later is not",
            "run q1 c10
             record q1 c11 e5
             run q2 c12
             wait q2 c13 e5
             record q2 c14 e6
             run q4 c15
             record q4 c16 e7
             wait q2 c17 e7
             wait q3 c18 e6
             run q3 c19",
            "190 waits for 100
             190 waits for 120",
        ),
        (
            "work of the same stream is before it anyway",
            "run q7 c1
             record q7 c2 e5
             wait q7 c3 e5
             run q7 c4",
            "",
        ),
        (
            "so is work of the same stream through another one",
            "run q1 c10
             record q1 c11 e5
             wait q2 c12 e5
             record q2 c13 e6
             wait q1 c14 e6
             run q1 c15",
            "",
        ),
        (
            "where an event is recorded again, the record before the wait counts",
            "run q7 c1
             record q7 c2 e5
             wait q8 c3 e5
             run q8 c4
             run q7 c5
             record q7 c6 e5
             wait q8 c7 e5
             run q8 c8",
            "40 waits for 10
             80 waits for 50",
        ),
        (
            "the latest record is the one with the greatest correlation, whichever comes last",
            "wait q2 c25 e5
             run q1 c5
             run q1 c15
             record q1 c20 e5
             run q2 c26",
            "260 waits for 150",
        ),
        (
            "an event of which nothing is known is unknown, also beside one of the same stream",
            "run q2 c1
             record q2 c2 e6
             wait q2 c3 e5
             wait q2 c4 e6
             run q2 c5",
            "50 waits for unknown",
        ),
    ];
    for (name, script, expected) in cases {
        println!("{name}");
        check_waits(script, expected, true);
    }
}

#[test]
fn chains_of_waits_that_are_long_or_do_not_end_are_survived() {
    let mut script = "run q1 c1\nrecord q1 c2 e1\nwait q2 c3 e1\n".to_owned();
    for turn in 1..500 {
        let at = 10 * turn;
        script += &format!("record q2 c{at} e2\nwait q3 c{} e2\n", at + 1);
        script += &format!("record q3 c{} e3\nwait q2 c{} e3\n", at + 2, at + 3);
    }
    script += "record q2 c9000 e4\nwait q4 c9001 e4\nwait q4 c9002 e4\nrun q4 c9003";
    check_waits(&script, "90030 waits for 10", false);
    let mut script = String::new();
    for queue in 1..60 {
        let at = 10 * queue;
        script += &format!("wait q{queue} c{at} e{queue}\n");
        script += &format!("record q{queue} c{} e{}\n", at + 1, queue + 1);
    }
    script += "run q59 c1000";
    check_waits(&script, "10000 waits for unknown", false);
}

case!(
    work_has_the_innermost_label_of_the_thread_that_launched_it,
    EVERYWHERE,
    "label t1 0..100 step
     label t1 20..60 forward
     label t2 0..100 other
     run q7 c1
     run q7 c3",
    "submission cudaLaunchKernel@10 of kernel to q7
     submission cudaLaunchKernel@30 of kernel to q7
     kernel 100010..100015 on q7 #0 by cudaLaunchKernel@10 [step]
     kernel 100030..100035 on q7 #0 by cudaLaunchKernel@30 [step/forward]
     label 0..100 [step]
     label 20..60 [step/forward]
     label 0..100 [other]"
);

case!(
    labels_may_cross,
    EVERYWHERE,
    "label t1 0..50 a
     label t1 20..80 b
     run q7 c3
     run q7 c6",
    "submission cudaLaunchKernel@30 of kernel to q7
     submission cudaLaunchKernel@60 of kernel to q7
     kernel 100030..100035 on q7 #0 by cudaLaunchKernel@30 [a/b]
     kernel 100060..100065 on q7 #0 by cudaLaunchKernel@60 [a/b]
     label 0..50 [a]
     label 20..80 [a/b]"
);

case!(
    labels_nest_in_those_of_their_own_domain,
    EVERYWHERE,
    "label t1 0..100 step
     label t1 10..90 allreduce in NCCL
     label t1 20..80 inner
     run q7 c3",
    "submission cudaLaunchKernel@30 of kernel to q7
     kernel 100030..100035 on q7 #0 by cudaLaunchKernel@30 [step/inner]
     label 0..100 [step]
     label 10..90 [allreduce]
     label 20..80 [step/inner]"
);

case!(
    modules_and_operators_nest_around_and_inside_the_programs_labels_which_may_never_end,
    LIVE_ONLY,
    "label t1 0.. step
     label t1 10..90 layer in modules
     label t1 20..80 mine
     label t1 30..70 aten::mm in operators
     run q7 c4",
    "submission cudaLaunchKernel@40 of kernel to q7
     kernel 100040..100045 on q7 #0 by cudaLaunchKernel@40 [step/layer/mine/aten::mm]
     label 0.. [step]
     label 10..90 [step/layer]
     label 20..80 [step/layer/mine]
     label 30..70 [step/layer/mine/aten::mm]"
);

case!(
    of_a_profiled_launch_the_first_record_counts,
    LIVE_ONLY,
    "profiled c1
     call t1 c1 cudaLaunchKernel 10..90
     kernel q7 c1 ?
     kernel q7 c1 ?",
    "submission cudaLaunchKernel@10 of kernel to q7
     kernel ? on q7 #0 by cudaLaunchKernel@10
     lost 1 dispatch times"
);

case!(
    launches_of_which_nothing_came_are_lost_and_those_into_a_graph_are_not,
    IN_ORDER,
    "sudden
     call t1 c1 cudaStreamBeginCapture 10..11
     call t1 c2 cudaLaunchKernel 12..13
     call t1 c3 cudaStreamEndCapture 14..15
     call t1 c4 cudaLaunchKernel 16..17
     call t1 c5 cudaLaunchKernel 18..19 =2
     call t1 c6 cudaMemcpyAsync 20..21
     call t1 c7 cudaLaunchKernel 30..31
     kernel q7 c7 40..50
     call t1 c8 cudaMemcpyAsync 60..61
     call t1 c9 cudaGraphLaunch 62..63",
    "submission cudaLaunchKernel@30 of kernel to q7
     kernel 40..50 on q7 #0 by cudaLaunchKernel@30
     build-graph cudaStreamBeginCapture 10..11
     build-graph cudaStreamEndCapture 14..15
     launch cudaLaunchKernel 12..13
     launch cudaLaunchKernel 16..17
     launch cudaLaunchKernel 18..19 =2
     launch cudaMemcpyAsync 20..21
     launch cudaMemcpyAsync 60..61
     launch cudaGraphLaunch 62..63
     lost 1 dispatches
     lost 1 transfers
     lost 1 command buffers"
);

case!(
    transfers_of_a_function_that_never_leaves_rows_are_not_lost,
    IN_ORDER,
    "sudden
     call t1 c1 cudaMemsetAsync 10..11
     call t1 c2 cudaMemsetAsync 12..13
     call t1 c3 cudaMemsetAsync 14..15
     call t1 c4 cudaLaunchKernel 30..31
     kernel q7 c4 40..50
     call t1 c5 cudaMemsetAsync 60..61
     call t1 c6 cudaMemcpyAsync 62..63",
    "submission cudaLaunchKernel@30 of kernel to q7
     kernel 40..50 on q7 #0 by cudaLaunchKernel@30
     launch cudaMemsetAsync 10..11
     launch cudaMemsetAsync 12..13
     launch cudaMemsetAsync 14..15
     launch cudaMemsetAsync 60..61
     launch cudaMemcpyAsync 62..63
     lost 1 transfers"
);

case!(
    overheads_are_calls_that_nobody_made,
    EVERYWHERE,
    "overhead t1 10..20 COMMAND_BUFFER_FULL
     overhead t1 30..40 FUNCTION_LOADING
     overhead t- 50..60 BUFFER_FLUSH",
    "queue-full driver queue full 10..20
     load-module lazy function loading 30..40
     recording CUPTI 50..60"
);
