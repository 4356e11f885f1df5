//! Calls of the host that wait for streams and events: each names the submission that it waited for.

use crate::conformance::check_calls;
use crate::script::Script;
use proptest::prelude::*;
use std::fmt::Write;

/// Checks the waits of a script. Launches are named by the start of their calls.
fn check(script: &str, expected: &str, any_order: bool) {
    check_calls(script, expected, any_order, |line| {
        let line = line
            .strip_prefix("wait-")
            .or_else(|| line.strip_prefix("poll-"))?;
        let (_, line) = line.split_once(' ')?;
        Some(line.replace("cudaLaunchKernel@", ""))
    });
}

#[test]
fn a_wait_for_a_stream_is_for_its_last_submission_before_the_call() {
    check(
        "run q7 c1
         run q7 c2
         run q8 c3
         call t1 c4 cudaStreamSynchronize 40..45
         queue c4 q7
         run q7 c5
         call t1 c6 cudaStreamSynchronize 60..65
         queue c6 q8
         call t1 c7 cudaStreamSynchronize 70..75
         queue c7 q7
         call t1 c8 cudaStreamSynchronize 80..85
         queue c8 q7
         call t1 c9 cudaStreamSynchronize 90..95
         queue c9 q9",
        "cudaStreamSynchronize 40..45 for q7 until 20
         cudaStreamSynchronize 60..65 for q8 until 30
         cudaStreamSynchronize 70..75 for q7 until 50
         cudaStreamSynchronize 80..85 for q7 until 50
         cudaStreamSynchronize 90..95 for q9",
        true,
    );
}

#[test]
fn a_wait_for_an_event_is_for_the_last_submission_before_its_record() {
    check(
        "run q7 c1
         record q7 c2 e5
         run q7 c3
         record q8 c4 e6
         call t1 c5 cudaEventSynchronize 50..55
         event c5 e5
         record q7 c6 e5
         call t1 c7 cudaEventSynchronize 70..75
         event c7 e5
         call t1 c8 cudaEventSynchronize 80..85
         event c8 e6
         call t1 c9 cudaEventSynchronize 90..95
         event c9 e7",
        "cudaEventSynchronize 50..55 for q7 until 10
         cudaEventSynchronize 70..75 for q7 until 30
         cudaEventSynchronize 80..85 for q8
         cudaEventSynchronize 90..95",
        false,
    );
}

#[test]
fn a_wait_for_a_stream_that_waits_for_another_one_is_for_both() {
    check(
        "run q7 c1
         record q7 c2 e5
         run q8 c3
         wait q8 c4 e5
         call t1 c5 cudaStreamSynchronize 50..55
         queue c5 q8
         run q8 c6
         call t1 c7 cudaStreamSynchronize 70..75
         queue c7 q8",
        "cudaStreamSynchronize 50..55 for q8
         cudaStreamSynchronize 70..75 for q8 until 60",
        true,
    );
}

#[test]
fn a_wait_for_a_device_names_nothing() {
    let script = "run q7 c1\n call t1 c2 cudaDeviceSynchronize 20..25";
    check(script, "cudaDeviceSynchronize 20..25", true);
}

#[test]
fn a_file_whose_calls_are_not_in_order_names_queues_alone() {
    let script = "run q7 c1
        run q7 c9
        call t1 c5 cudaStreamSynchronize 50..55
        queue c5 q7";
    let is_wait = |line: &String| line.starts_with("wait-");
    let unordered: Vec<_> = Script::parse(script)
        .unordered()
        .into_iter()
        .filter(is_wait)
        .collect();
    assert_eq!(
        unordered,
        ["wait-queue-idle cudaStreamSynchronize 50..55 for q7"]
    );
}

/// One call of a program.
#[derive(Debug, Clone, Copy)]
enum Call {
    Launch { queue: u64 },
    Record { queue: u64, event: u64 },
    WaitForQueue { queue: u64 },
    WaitForEvent { event: u64 },
}

fn call() -> impl Strategy<Value = Call> {
    let (queue, event) = (0..3u64, 0..3u64);
    prop_oneof![
        3 => queue.clone().prop_map(|queue| Call::Launch { queue }),
        1 => (queue.clone(), event.clone()).prop_map(|(queue, event)| Call::Record { queue, event }),
        1 => queue.prop_map(|queue| Call::WaitForQueue { queue }),
        1 => event.prop_map(|event| Call::WaitForEvent { event }),
    ]
}

/// Returns the script of a program, and the lines of its waits.
fn program(calls: &[Call]) -> (String, String) {
    let (mut script, mut expected) = (String::new(), String::new());
    let (mut last, mut recorded) = ([None; 3], [None; 3]);
    for (number, call) in (1..).zip(calls) {
        let at_ns = 10 * number;
        let until = |launch: Option<i64>| launch.map_or(String::new(), |at| format!(" until {at}"));
        match *call {
            Call::Launch { queue } => {
                last[queue as usize] = Some(at_ns);
                writeln!(script, "run q{queue} c{number}")
            }
            Call::Record { queue, event } => {
                recorded[event as usize] = Some((queue, last[queue as usize]));
                writeln!(script, "record q{queue} c{number} e{event}")
            }
            Call::WaitForQueue { queue } => {
                let wait = format!("cudaStreamSynchronize {at_ns}..{}", at_ns + 5);
                let until = until(last[queue as usize]);
                expected += &format!("{wait} for q{queue}{until}\n");
                writeln!(script, "call t1 c{number} {wait}\nqueue c{number} q{queue}")
            }
            Call::WaitForEvent { event } => {
                let wait = format!("cudaEventSynchronize {at_ns}..{}", at_ns + 5);
                let of = recorded[event as usize].map_or(String::new(), |(queue, launch)| {
                    format!(" for q{queue}{}", until(launch))
                });
                expected += &format!("{wait}{of}\n");
                writeln!(script, "call t1 c{number} {wait}\nevent c{number} e{event}")
            }
        }
        .unwrap();
    }
    (script, expected)
}

proptest! {
    #[test]
    fn every_wait_names_the_last_submission_before_its_place(calls in prop::collection::vec(call(), 1..40)) {
        let (script, expected) = program(&calls);
        check(&script, &expected, false);
    }
}
