//! Tests which threads a prediction takes to wait for each other: traces of an emulated machine, and of two threads that hand over.

use crate::emulated::Act::{Host, WaitQueue};
use crate::emulated::{Machine, SAME, kernel, run};
use crate::what_if::{answer, prologue};
use gapscope_trace::Trace;

/// CUPTI's thread reads buffers while the host computes, which is no reason for either to wait for the other.
#[test]
fn the_recorders_own_thread_holds_nobody() {
    let step = [Host(4_000_000), kernel(0, 300_000), WaitQueue(0)];
    let acts = [prologue(), step.repeat(40)].concat();
    let recorded = Machine {
        recorder_reads_each_ns: 1_500_000,
        ..SAME
    };
    let (trace, end_ns) = run(&acts, recorded);
    let (_, expected_ns) = run(&acts, Machine { host: 0.0, ..SAME });
    let found = answer(&trace, end_ns, &["host=0"]);
    assert_eq!(found.edges.guessed, 0);
    assert_eq!(found.changed_ns.unwrap().mid, expected_ns);
}

/// As autograd does: the main thread prepares a step for 4 ms, hands over to a second thread, which launches, and waits for it. Before and
/// after that wait it runs code of its own.
fn handed_over(is_sampled: bool) -> Trace {
    let mut text = String::from(
        "manifest sampling_mode=dispatch
         process id=1 pid=10
         thread process=1 thread=7 name=main
         thread process=1 thread=8 name=autograd
         device id=1 process=1 name=GPU uuid=aa clock.error_ns=0
         queue id=1 device=1
         kernel id=1 process=1 name=work
         frame id=1 kind=native function=wait
         stack id=1 frame=1\n",
    );
    for step in 0..60 {
        let t = step * 5_000 + 4_000;
        for (number, thread, after) in [(0, 7, 0), (1, 8, 100), (2, 8, 150)] {
            let (id, at) = (step * 3 + number + 1, t + after);
            let start = at + 10;
            text.push_str(&format!(
                "submission id={id} process=1 queue=1 kind=kernel thread={thread} start_ns={at}us duration_ns=5us function=launch\n\
                 dispatch kernel=1 submission={id} queue=1 start_ns={start}us duration_ns=40us\n"
            ));
        }
        let wait = t + 250;
        text.push_str(&format!(
            "host_call process=1 thread=7 call=wait-device-idle start_ns={wait}us duration_ns=3us result=0\n"
        ));
        if is_sampled {
            let blocked = "state=blocked system_call=futex";
            let all = [
                (7, 60, "state=running"),
                (7, 120, blocked),
                (7, 220, "state=running"),
                (8, 600, blocked),
                (8, 2_600, blocked),
            ];
            for (thread, after, state) in all {
                let at = t + after;
                text.push_str(&format!(
                    "sample process=1 thread={thread} time_ns={at}us stack=1 {state} source=sampled\n"
                ));
            }
        }
    }
    Trace::from_text(&text).unwrap()
}

#[test]
fn hand_overs_that_samples_show_are_no_guesses() {
    for (is_sampled, expected) in [(true, true), (false, false)] {
        let found = answer(&handed_over(is_sampled), 304_300_000, &["host=0.5x"]);
        assert_eq!(found.edges.guessed == 0, expected, "{:?}", found.edges);
    }
}
