//! Launch latency is of work that waited for nothing else.

use crate::program::{Program, US};
use gapscope_analysis::gaps::Cause::{self, *};
use gapscope_analysis::latency::QueueLatency;
use gapscope_trace::ids::QueueId;

/// A CUDA program: stream 1 is the default one, 2 is blocking, 3 and 4 are not.
fn cuda() -> Program {
    Program::from_text(
        "manifest sampling_mode=dispatch
         process id=1 pid=10 hook=cuda
         device id=1 process=1 api=cuda name=GPU uuid=aa clock.error_ns=0
         queue id=1 device=1 kind=default
         queue id=2 device=1 kind=blocking
         queue id=3 device=1 kind=non-blocking
         queue id=4 device=1 kind=non-blocking
         label id=1 text=step
         kernel id=1 process=1 name=work",
    )
}

fn latency_of(p: &Program, queue: u32) -> QueueLatency {
    let latency = p.findings().latency;
    let mut queues = latency.into_value().into_iter();
    queues
        .find(|latency_of| latency_of.queue_id == QueueId(queue))
        .expect("the queue ran something")
}

fn waited(latency: &QueueLatency) -> Vec<(Cause, u64)> {
    let rows: Vec<_> = (latency.waited.iter())
        .map(|waited| (waited.cause, waited.count))
        .collect();
    let sum: u64 = rows.iter().map(|(_, count)| count).sum();
    assert_eq!(sum, latency.waited_count);
    assert_eq!(
        latency.submit_to_start.timed_count + sum,
        latency.submission_count
    );
    rows
}

#[test]
fn work_behind_another_streams_event_is_left_out() {
    let mut p = cuda();
    let other = p.launch(3, [-20, -10], 0, 15_000);
    let id = p.launch(4, [0, 5], 15_010, 100);
    p.depends(id, other);
    // Behind it, on its own stream: that waited as long.
    p.launch(4, [10, 15], 15_120, 100);
    // And one that finds the stream idle.
    p.launch(4, [20_000, 20_005], 20_008, 100);
    let latency = latency_of(&p, 4);
    assert_eq!(latency.submission_count, 3);
    assert_eq!(latency.submit_to_start_idle.timed_count, 1);
    assert_eq!(latency.submit_to_start_idle.max_ns, Some(8 * US));
    assert_eq!(latency.submit_to_start.max_ns, Some(8 * US));
    assert_eq!(waited(&latency), [(OtherQueue, 2)]);
}

#[test]
fn work_whose_event_had_come_before_its_launch_did_not_wait() {
    let mut p = cuda();
    let other = p.launch(3, [-20, -10], 0, 100);
    let id = p.launch(4, [100, 105], 108, 100);
    p.depends(id, other);
    let latency = latency_of(&p, 4);
    assert_eq!(latency.submit_to_start_idle.max_ns, Some(8 * US));
    assert_eq!(waited(&latency), []);
    // A microsecond earlier it did.
    let mut p = cuda();
    let other = p.launch(3, [-20, -10], 0, 100);
    let id = p.launch(4, [99, 105], 108, 100);
    p.depends(id, other);
    let latency = latency_of(&p, 4);
    assert_eq!(latency.submit_to_start_idle.timed_count, 0);
    assert_eq!(waited(&latency), [(OtherQueue, 1)]);
}

#[test]
fn work_behind_its_own_streams_work_is_in_the_figure_of_all() {
    let mut p = cuda();
    p.launch(4, [0, 5], 10, 100);
    p.launch(4, [6, 11], 111, 100);
    let latency = latency_of(&p, 4);
    assert_eq!(latency.submit_to_start_idle.timed_count, 1);
    assert_eq!(latency.submit_to_start.timed_count, 2);
    assert_eq!(latency.submit_to_start.max_ns, Some(105 * US));
    assert_eq!(waited(&latency), []);
}

#[test]
fn work_that_the_default_stream_holds_is_left_out() {
    let mut p = cuda();
    p.launch(1, [0, 5], 10, 10_000);
    p.launch(2, [6, 11], 10_020, 100);
    p.launch(3, [12, 17], 20, 100);
    assert_eq!(waited(&latency_of(&p, 2)), [(OtherQueue, 1)]);
    let independent = latency_of(&p, 3);
    assert_eq!(waited(&independent), []);
    assert_eq!(independent.submit_to_start_idle.max_ns, Some(8 * US));
    // And the other way round.
    p.launch(1, [18, 20], 10_130, 100);
    let latency = latency_of(&p, 1);
    assert_eq!(waited(&latency), [(OtherQueue, 1)]);
    assert_eq!(latency.submit_to_start.max_ns, Some(10 * US));
}

#[test]
fn what_is_put_before_the_work_on_its_stream_holds_it() {
    for (kind, cause) in [
        ("host-function", HostFunction),
        ("wait-value", ExternalWait),
        ("wait-external", ExternalWait),
        ("prefetch", PageMove),
        ("kernel", Unknown),
    ] {
        let mut p = cuda();
        p.mark(4, kind, [0, 5]);
        p.launch(4, [6, 10], 500, 100);
        // What is launched after it has started has nothing to do with that.
        p.launch(4, [700, 705], 710, 100);
        let latency = latency_of(&p, 4);
        assert_eq!(waited(&latency), [(cause, 1)], "{kind}");
        assert_eq!(latency.submit_to_start_idle.max_ns, Some(10 * US));
    }
}

#[test]
fn a_timed_host_function_holds_until_it_ends() {
    for (call, held) in [(390, true), (400, false)] {
        let mut p = cuda();
        p.mark(4, "host-function", [0, 5]);
        p.line("host_call process=1 call=host-function queue=4 start_ns=100us duration_ns=300us");
        p.launch(4, [call, call + 1], 410, 100);
        let expected: &[_] = if held { &[(HostFunction, 1)] } else { &[] };
        assert_eq!(waited(&latency_of(&p, 4)), expected, "{call}");
    }
}

#[test]
fn a_host_node_that_is_not_timed_leaves_the_graph_and_what_follows_out() {
    let mut p = cuda();
    p.graph(4, [0, 5], &[[10, 100]], "host_functions=1");
    p.launch(4, [6, 11], 500, 100);
    p.graph(3, [0, 5], &[[10, 100]], "host_functions=0");
    assert_eq!(waited(&latency_of(&p, 4)), [(Unknown, 2)]);
    assert_eq!(waited(&latency_of(&p, 3)), []);
}

#[test]
fn signals_of_the_host_and_of_unknown_source_leave_work_out() {
    let mut p = Program::new();
    let id = p.dispatch(1, [0, 10], 100, 10);
    p.line(&format!("dependency submission={id} host_signal_ns=90us"));
    let id = p.dispatch(2, [0, 10], 100, 10);
    p.line(&format!("dependency submission={id}"));
    // Given before the submission.
    let id = p.dispatch(1, [200, 210], 220, 10);
    p.line(&format!("dependency submission={id} host_signal_ns=200us"));
    assert_eq!(waited(&latency_of(&p, 1)), [(HostSignal, 1)]);
    assert_eq!(latency_of(&p, 1).submit_to_start_idle.max_ns, Some(20 * US));
    assert_eq!(waited(&latency_of(&p, 2)), [(Unknown, 1)]);
}

#[test]
fn early_starts_are_counted_among_what_waited_too() {
    let mut p = cuda();
    p.mark(4, "wait-value", [0, 5]);
    p.launch(4, [60, 70], 50, 100);
    assert_eq!(latency_of(&p, 4).started_before_submission_count, Some(1));
}

#[test]
fn under_a_label_work_is_left_out_for_what_waits_of_other_work() {
    let mut p = cuda();
    let other = p.launch(3, [-20, -10], 0, 15_000);
    let id = p.mark(4, "kernel", [0, 5]);
    p.line(&format!(
        "dispatch submission={id} queue=4 kernel=1 label=1 start_ns=15010us duration_ns=100us"
    ));
    p.depends(id, other);
    let trace = p.trace();
    let findings = crate::program::findings_under(&trace, "step");
    assert_eq!(findings.latency.len(), 1);
    assert_eq!(findings.latency[0].submission_count, 1);
    assert_eq!(waited(&findings.latency[0]), [(OtherQueue, 1)]);
}
