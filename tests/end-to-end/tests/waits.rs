//! Tests that calls which wait name the submission that they waited for: on lavapipe and on the stub of CUDA.

use gapscope_trace::Trace;
use gapscope_trace::tables::{HostCall, HostCallKind, Submission, Table};

use crate::cuda::Stub;
use crate::recording::planted;

/// Returns the rows of a table in the order of their starts.
fn in_order<T: Table>(table: &T, start_ns: impl Fn(&T::Row) -> i64) -> Vec<T::Row> {
    let mut rows: Vec<_> = (0..table.len()).map(|row| table.row(row)).collect();
    rows.sort_by_key(start_ns);
    rows
}

fn waits(trace: &Trace, kind: HostCallKind) -> Vec<HostCall> {
    let mut calls = in_order(&trace.tables.host_calls, |call| call.start_ns);
    calls.retain(|call| call.call == kind);
    calls
}

fn submissions(trace: &Trace) -> Vec<Submission> {
    in_order(&trace.tables.submissions, |submission| submission.start_ns)
}

/// Checks that each wait names the submission that was the last when the wait began, as in programs with one queue that wait for all
/// that they have submitted. Returns the number of waits.
fn check_last(trace: &Trace, kind: HostCallKind) -> usize {
    let submissions = submissions(trace);
    let waits = waits(trace, kind);
    for wait in waits.iter().filter(|wait| wait.result == 0) {
        let mut before = submissions.iter().filter(|s| s.start_ns <= wait.start_ns);
        let last = before.next_back().expect("a submission before the wait");
        let named = (wait.waits_for, wait.queue);
        assert_eq!(named, (Some(last.id), Some(last.queue)), "{wait:?}");
    }
    waits.len()
}

#[test]
fn waits_of_vulkan_programs_name_their_submissions() {
    for (arguments, kind, count) in [
        (
            "fence-each --n 5 --iterations 3",
            HostCallKind::WaitFences,
            15,
        ),
        (
            "host-sleep --n 2 --iterations 4",
            HostCallKind::WaitFences,
            4,
        ),
        ("resubmit --n 2 --iterations 5", HostCallKind::WaitFences, 5),
        (
            "host-pool-reset --n 1 --iterations 4",
            HostCallKind::WaitQueueIdle,
            4,
        ),
        (
            "submit2 --n 2 --iterations 4",
            HostCallKind::WaitSemaphores,
            1,
        ),
    ] {
        let trace = planted(arguments).recorded().trace();
        let waits = check_last(&trace, kind);
        assert!(waits >= count, "{arguments}: {waits} waits");
    }
}

#[test]
fn polls_that_find_their_work_done_name_it_and_others_do_not() {
    let trace = planted("polling --n 4 --iterations 5").recorded().trace();
    assert!(check_last(&trace, HostCallKind::PollFence) >= 5);
    let polls = waits(&trace, HostCallKind::PollFence);
    let done = polls.iter().filter(|poll| poll.result == 0);
    assert_eq!(done.filter(|poll| poll.waits_for.is_some()).count(), 5);
    let mut unfinished = polls.iter().filter(|poll| poll.result != 0);
    assert!(unfinished.all(|poll| poll.waits_for.is_none()));
}

#[test]
fn waits_of_cuda_programs_name_the_last_launch_before_them_or_before_their_event() {
    for steps in ["waits", "runtime-waits"] {
        let trace = Stub::new(&[]).program(steps).recorded().trace();
        let launches = submissions(&trace);
        assert_eq!(launches.len(), 5, "{steps}");
        let place = |row: usize| vec![(Some(launches[row].id), Some(launches[row].queue))];
        let named = |kind| -> Vec<_> {
            let waits = waits(&trace, kind).into_iter();
            waits.map(|wait| (wait.waits_for, wait.queue)).collect()
        };
        // Three kernels precede the event on one stream, and two come behind it on the other.
        assert_eq!(named(HostCallKind::WaitEvent), place(2), "{steps}");
        assert_eq!(named(HostCallKind::WaitQueueIdle), place(4), "{steps}");
        let of_device = named(HostCallKind::WaitDeviceIdle);
        assert_eq!(of_device, [(None, None)], "{steps}");
    }
}
