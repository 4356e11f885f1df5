//! GPUs that run work of several processes, or of several contexts of one process, in turns.

use crate::program::{assert_says, causes, findings_of};
use gapscope_analysis::Findings;
use gapscope_analysis::gaps::Cause::{self, *};
use gapscope_trace::ids::QueueId;

/// Two processes, each with a device and a queue of its own, on one GPU.
fn two_processes(api: &str) -> String {
    format!(
        "manifest sampling_mode=dispatch
         process id=1 pid=10 executable=/bin/train hook=cuda start_ns=0
         process id=2 pid=20 executable=/bin/serve hook=cuda start_ns=0
         device id=1 process=1 api={api} name=GPU uuid=aa clock.error_ns=0
         device id=2 process=2 api={api} name=GPU uuid=aa clock.error_ns=0
         queue id=1 device=1\nqueue id=2 device=2
         kernel id=1 process=1 name=work\n"
    )
}

/// Kernels, each with its process, its call's start, its start and its length.
fn ran(head: &str, kernels: &[(u32, i64, i64, i64)]) -> Findings {
    let mut text = head.to_owned();
    for (at, (process, call, start, length)) in kernels.iter().enumerate() {
        let id = at + 1;
        text += &format!(
            "submission id={id} process={process} queue={process} thread=7 start_ns={call}us duration_ns=5us kind=kernel
             dispatch submission={id} queue={process} kernel=1 start_ns={start}us duration_ns={length}us\n"
        );
    }
    findings_of(&text)
}

fn gaps(findings: &Findings) -> Vec<(Cause, i64)> {
    causes(&findings.gaps)
}

#[test]
fn the_hand_over_between_processes_is_a_context_switch() {
    for api in ["cuda", "hip", "vulkan"] {
        let head = two_processes(api);
        let findings = ran(&head, &[(1, -20, 0, 1_000), (2, 0, 1_090, 1_000)]);
        assert_eq!(gaps(&findings), [(ContextSwitch, 90)], "{api}");
        let advice = findings.advice_on(ContextSwitch).unwrap();
        assert_says(advice, "train (process 10), serve (process 20)");
        assert_eq!(advice.contains("MPS"), api == "cuda");
        let waited = &findings.latency[1].waited;
        assert_eq!((waited[0].cause, waited[0].count), (ContextSwitch, 1));
    }
}

#[test]
fn what_no_other_context_held_up_is_no_context_switch() {
    let head = two_processes("cuda");
    for (name, kernels, expected) in [
        // What starts as soon as on an idle device.
        (
            "at once",
            vec![(1, -20, 0, 1_000), (2, 990, 1_008, 100)],
            [(LaunchLatency, 8)].as_slice(),
        ),
        (
            "the other had ended before",
            vec![(1, -20, 0, 1_000), (2, 1_010, 1_055, 100)],
            &[(LaunchLatency, 40), (ProcessStart, 10), (SubmitCall, 5)],
        ),
        (
            "its own process was the last",
            vec![(2, -40, -30, 20), (1, -20, 0, 1_000), (1, 0, 1_050, 100)],
            &[(LaunchLatency, 60)],
        ),
        // A device takes less for it than that.
        (
            "long after",
            vec![(1, -20, 0, 1_000), (2, 0, 1_600, 100)],
            &[(Unknown, 600)],
        ),
    ] {
        assert_eq!(gaps(&ran(&head, &kernels)), expected, "{name}");
    }
}

#[test]
fn a_queue_that_waits_for_its_processs_turn_waits_for_a_context() {
    let head = two_processes("cuda");
    let findings = ran(
        &head,
        &[(2, -50, -40, 20), (1, -20, 0, 1_000), (2, -10, 1_090, 100)],
    );
    let mut queues = findings.idle_time.queues.iter();
    let queue = queues.find(|queue| queue.queue_id == QueueId(2)).unwrap();
    assert_eq!(causes(&queue.causes)[0], (ContextSwitch, 1_095));
}

#[test]
fn contexts_of_cuda_in_one_process_take_turns_too_and_families_of_vulkan_do_not() {
    let head = |api: &str| {
        format!(
            "manifest sampling_mode=dispatch
             process id=1 pid=10 executable=/bin/train hook=cuda start_ns=0
             device id=1 process=1 api={api} name=GPU uuid=aa clock.error_ns=0
             queue id=1 device=1 family=1\nqueue id=2 device=1 family=2
             kernel id=1 process=1 name=work\n"
        )
    };
    let kernels = [(1, -20, 0, 1_000), (2, 0, 1_090, 1_000)];
    assert_eq!(gaps(&ran(&head("cuda"), &kernels)), [(ContextSwitch, 90)]);
    assert_eq!(gaps(&ran(&head("vulkan"), &kernels)), [(LaunchLatency, 90)]);
}
