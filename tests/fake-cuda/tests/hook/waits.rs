//! Waits, compared with what the stub's streams and events really did.

use crate::recorded::{Recorded, Wait};
use crate::stub::{Outcome, Stub, Truth};
use gapscope_spool::event::WaitKind;
use std::collections::HashMap;

/// Runs the program and checks that the recorded waits and events are those that happened.
fn run(with: &[(&str, &str)], steps: &str) -> Outcome {
    let stub = Stub::new();
    let stub = with.iter().fold(stub, |stub, (n, v)| stub.with(n, v));
    let outcome = stub.run(steps);
    assert_eq!(recorded(outcome.only()), happened(&outcome));
    host_waits_last_until_what_they_wait_for(&outcome);
    outcome
}

/// Returns context and stream of a queue, without its device.
fn place(process: &Recorded, queue: u32) -> String {
    match process.queues.get(&queue) {
        Some((_, context, stream)) => format!("{context}.{stream}"),
        None => "no queue".to_owned(),
    }
}

/// Returns the call of a correlation. One entry stands for many polls.
fn call(process: &Recorded, correlation: u32) -> String {
    let call = process.calls.iter().find(|c| c.correlation == correlation);
    call.map_or("a poll".to_owned(), |c| c.name.clone())
}

/// Returns the call that made the record of the event for which a wait is.
fn awaited(process: &Recorded, wait: &Wait) -> Option<u32> {
    let of = process.event_records.iter().filter(|r| {
        wait.occurrence != 0 && (r.event, r.occurrence) == (wait.event, wait.occurrence)
    });
    let found: Vec<u32> = of.map(|r| r.correlation).collect();
    assert!(found.len() <= 1, "an occurrence is one: {found:?}");
    found.first().copied()
}

fn record_fact(correlation: u32, call: &str, place: &str) -> String {
    format!("{correlation:6} {call} records an event on {place}")
}

/// Words a wait; `of` is the call that recorded the event.
fn wait_fact(correlation: u32, call: &str, kind: WaitKind, place: &str, of: Option<u32>) -> String {
    let place = match kind {
        WaitKind::QueueForEvent | WaitKind::HostForQueue => place,
        // An event is on no queue when the host waits for it, and any queue stands for its context.
        _ => "",
    };
    format!("{correlation:6} {call} {kind:?} {place} for {of:?}")
}

/// Words the recorded facts, in the order of calls.
fn recorded(process: &Recorded) -> Vec<String> {
    let records = process.event_records.iter().map(|record| {
        let call = call(process, record.correlation);
        record_fact(record.correlation, &call, &place(process, record.queue))
    });
    let waits = process.waits.iter().map(|wait| {
        let call = call(process, wait.correlation);
        let (place, of) = (place(process, wait.queue), awaited(process, wait));
        wait_fact(wait.correlation, &call, wait.kind, &place, of)
    });
    let mut facts: Vec<String> = records.chain(waits).collect();
    facts.sort();
    facts
}

/// Words what happened, in the order of calls.
fn happened(outcome: &Outcome) -> Vec<String> {
    let calls = outcome.truth_of("call").into_iter();
    let calls: HashMap<u32, &Truth> = calls.map(|t| (t.correlation, t)).collect();
    let call = |truth: &Truth| {
        let call = calls[&truth.correlation];
        if call.asks() {
            "a poll"
        } else {
            call.recorded_name()
        }
    };
    let place = |t: &Truth| format!("{}.{}", t.number("context"), t.number("stream"));
    let event = |t: &Truth| (t.number("event"), t.number("occurrence"));
    let records = outcome.truth_of("event");
    let of: HashMap<(u32, u32), u32> = records.iter().map(|t| (event(t), t.correlation)).collect();
    let records = records
        .iter()
        .map(|t| record_fact(t.correlation, call(t), &place(t)));
    let waits = outcome.truth_of("wait").into_iter().map(|t| {
        let of = of.get(&event(t)).copied();
        wait_fact(t.correlation, call(t), kind(t), &place(t), of)
    });
    let mut facts: Vec<String> = records.chain(waits).collect();
    facts.sort();
    facts
}

fn kind(wait: &Truth) -> WaitKind {
    match wait.more["what"].as_str() {
        Some("host-for-event") => WaitKind::HostForEvent,
        Some("host-for-stream") => WaitKind::HostForQueue,
        Some("host-for-context") => WaitKind::HostForContext,
        Some("stream-for-event") => WaitKind::QueueForEvent,
        other => panic!("{other:?}"),
    }
}

/// Checks that each wait of the host lies in its call and ends when the awaited thing has happened, for a context when this one is idle.
fn host_waits_last_until_what_they_wait_for(outcome: &Outcome) {
    let of = |kind| {
        let lines = outcome.truth_of(kind).into_iter();
        lines
            .map(|t| (t.correlation, t))
            .collect::<HashMap<u32, _>>()
    };
    let (calls, truth) = (of("call"), of("wait"));
    let process = outcome.only();
    for wait in &process.waits {
        let (call, truth) = (calls[&wait.correlation], truth[&wait.correlation]);
        if wait.kind == WaitKind::QueueForEvent {
            assert_eq!(wait.span, None);
            continue;
        }
        let span = wait.span.expect("known times");
        assert!(call.start_ns <= span.start_ns && span.end_ns() <= call.end_ns);
        assert!(span.start_ns <= truth.start_ns && truth.end_ns <= span.end_ns());
        if let (WaitKind::HostForContext, Some((_, context, _))) =
            (wait.kind, process.queues.get(&wait.queue))
        {
            assert_eq!(*context, truth.number("context"));
        }
    }
}

/// Returns the kinds of waits by the functions that waited, in the order of the calls.
fn kinds(process: &Recorded) -> Vec<(String, WaitKind)> {
    let mut waits: Vec<&Wait> = process.waits.iter().collect();
    waits.sort_by_key(|wait| wait.correlation);
    let kind = |wait: &&Wait| (call(process, wait.correlation), wait.kind);
    waits.iter().map(kind).collect()
}

fn expect(process: &Recorded, expected: &[(&str, WaitKind)]) {
    let expected: Vec<_> = expected
        .iter()
        .map(|(n, k)| ((*n).to_owned(), *k))
        .collect();
    assert_eq!(kinds(process), expected);
}

#[test]
fn waits_name_the_event_and_the_queue_that_it_was_recorded_on() {
    let outcome = run(&[], "waits");
    let process = outcome.whole();
    let [record] = &process.event_records[..] else {
        panic!("one event")
    };
    expect(
        process,
        &[
            ("cuStreamWaitEvent", WaitKind::QueueForEvent),
            ("cuEventSynchronize", WaitKind::HostForEvent),
            ("cuStreamSynchronize", WaitKind::HostForQueue),
            ("cuCtxSynchronize", WaitKind::HostForContext),
        ],
    );
    let of = |kind| process.waits.iter().find(|w| w.kind == kind).expect("one");
    let waiting = of(WaitKind::QueueForEvent);
    assert_eq!(awaited(process, waiting), Some(record.correlation));
    assert_eq!(
        awaited(process, of(WaitKind::HostForEvent)),
        Some(record.correlation)
    );
    assert!(waiting.queue != 0 && record.queue != 0 && waiting.queue != record.queue);
    assert_eq!(of(WaitKind::HostForQueue).queue, waiting.queue);
    assert_eq!(of(WaitKind::HostForContext).event, 0, "no event");
}

#[test]
fn a_call_of_the_runtime_is_recorded_once_though_the_driver_is_called_inside() {
    let outcome = run(&[], "runtime-waits");
    let process = outcome.whole();
    assert_eq!(process.event_records.len(), 2);
    expect(
        process,
        &[
            ("cudaStreamWaitEvent", WaitKind::QueueForEvent),
            ("cudaStreamWaitEvent", WaitKind::QueueForEvent),
            ("cudaEventSynchronize", WaitKind::HostForEvent),
            ("cudaStreamSynchronize", WaitKind::HostForQueue),
            ("cudaDeviceSynchronize", WaitKind::HostForContext),
        ],
    );
}

#[test]
fn default_streams_are_found_by_all_their_handles() {
    let outcome = run(&[], "own-stream sync");
    let process = outcome.whole();
    let launched: Vec<u32> = process.kernels.iter().map(|k| k.shape.queue.0).collect();
    let recorded: Vec<u32> = process.event_records.iter().map(|r| r.queue).collect();
    assert_eq!(recorded, launched[..2], "its own one, then that of all");
    let waited = |kind| {
        let of = process.waits.iter().filter(move |w| w.kind == kind);
        of.map(|w| w.queue).collect::<Vec<_>>()
    };
    assert_eq!(waited(WaitKind::QueueForEvent), launched[1..2]);
    let [own, all] = recorded[..] else {
        panic!("two")
    };
    assert_eq!(waited(WaitKind::HostForQueue), [own, own, all]);
}

#[test]
fn what_goes_into_a_graph_is_on_no_queue() {
    let outcome = run(&[], "captured-waits sync");
    let process = outcome.whole();
    assert_eq!(process.event_records.len(), 2, "before and after");
    assert_eq!(process.waits.len(), 2, "after the capture, and the last");
    let last = process.event_records.iter().map(|r| r.correlation).max();
    let of_streams = |w: &&Wait| w.kind == WaitKind::QueueForEvent;
    let waiting = process.waits.iter().find(of_streams).expect("one");
    assert_eq!(awaited(process, waiting), last);
}

#[test]
fn an_event_with_the_handle_of_a_destroyed_one_is_another() {
    let outcome = run(&[], "reused-event sync");
    let process = outcome.whole();
    assert_eq!((process.event_records.len(), process.waits.len()), (1, 3));
    assert!(process.waits.iter().all(|w| awaited(process, w).is_none()));
}

#[test]
fn of_events_that_graphs_record_too_no_record_is_the_last() {
    let outcome = Stub::new().run("graph-events sync");
    let process = outcome.whole();
    assert_eq!(process.event_records.len(), 2);
    let of_streams = |w: &&Wait| w.kind == WaitKind::QueueForEvent;
    let waits: Vec<_> = process.waits.iter().filter(of_streams).collect();
    assert_eq!(waits.len(), 2);
    assert!(waits.iter().all(|wait| awaited(process, wait).is_none()));
}

#[test]
fn calls_that_fail_are_not_waits() {
    let outcome = run(&[], "refused-waits");
    let process = outcome.whole();
    assert_eq!((process.event_records.len(), process.waits.len()), (1, 0));
    let failed = process.calls.iter().filter(|c| c.result != 0).count();
    assert_eq!(failed, 9, "and two polls");
    assert_eq!(process.polls.iter().filter(|p| p.result != 0).count(), 2);
}

#[test]
fn a_stream_of_a_context_that_is_not_current_is_found() {
    let outcome = run(&[], "other-context");
    let process = outcome.whole();
    let [record] = &process.event_records[..] else {
        panic!("one event")
    };
    let (_, context, _) = process.queues[&record.queue];
    assert_eq!(context, 1, "the first one");
}

#[test]
fn only_queries_that_find_work_done_are_waits() {
    let outcome = run(&[("FAKE_CUDA_KERNEL_NS", "3000000")], "polls:5");
    assert_eq!(outcome.whole().waits.len(), 6, "one for each kernel");
    let outcome = run(&[], "runtime-polls:5");
    assert_eq!(outcome.whole().waits.len(), 6, "one for each kernel");
}

#[test]
fn each_wait_of_many_threads_is_for_the_event_of_its_own() {
    let outcome = run(&[], "launch:1 wait-threads:4:300 sync");
    let process = outcome.whole();
    assert_eq!(process.event_records.len(), 4 * 300);
    assert_eq!(process.waits.len(), 4 * 301 + 1);
}

#[test]
fn outside_the_window_nothing_waits() {
    let outcome = Stub::new()
        .with("GAPSCOPE_RECORDING", "0")
        .run("waits capture:runtime-waits waits capture:waits sync");
    let process = outcome.only();
    process.assert_undamaged();
    assert_eq!(process.event_records.len(), 3);
    assert_eq!(process.waits.len(), 5 + 4);
    host_waits_last_until_what_they_wait_for(&outcome);
    let happened = happened(&outcome);
    for fact in recorded(process) {
        assert!(happened.contains(&fact), "{fact}");
    }
}

#[test]
fn a_forked_child_that_asks_records_nothing() {
    let outcome = run(&[], "waits fork:waits fork-exit:waits sync");
    assert_eq!(outcome.whole().waits.len(), 5);
}

#[test]
fn waits_survive_a_sudden_end_when_they_are_older_than_a_flush() {
    let outcome = run(&[], "waits flushes:2 kill");
    let process = outcome.only();
    assert_eq!((process.event_records.len(), process.waits.len()), (1, 4));
}

#[test]
fn waits_and_events_of_contexts_that_are_not_known_yet_wait_for_them() {
    let outcome = run(
        &[("FAKE_CUDA_CONTEXT_RECORD", "late")],
        "many-events:5 sync flushes:2 waits sync",
    );
    let process = outcome.whole();
    assert_eq!((process.event_records.len(), process.waits.len()), (6, 6));
    // The last flush is the latest time.
    let outcome = run(
        &[("FAKE_CUDA_CONTEXT_RECORD", "late")],
        "many-events:5 sync flushes:2",
    );
    assert_eq!(outcome.whole().event_records.len(), 5);
}

#[test]
fn of_more_events_than_are_told_apart_each_is_recorded_or_counted() {
    const EVENTS: u64 = 70_000;
    let stub = Stub::new().without("FAKE_CUDA_TRUTH");
    let outcome = stub.run(&format!("launch:1 many-events:{EVENTS} sync"));
    let process = outcome.only();
    let too_many = process.lost("events on queues", "there are too many events");
    let at_once = process.lost("waits and events on queues", "too many at once");
    assert!(too_many > 0, "there are places for fewer");
    assert_eq!(
        process.event_records.len() as u64 + too_many + at_once,
        EVENTS
    );
    assert_eq!(process.calls_of("cuEventRecord").len() as u64, EVENTS);
}

#[test]
fn what_cannot_be_recorded_is_counted() {
    let outcome = Stub::new()
        .with("FAKE_CUDA_STREAM_IDS", "refuse")
        .run("waits");
    let process = outcome.only();
    let reason = "their stream is not known";
    assert_eq!(process.lost("events on queues", reason), 1);
    assert_eq!(process.lost("waits", reason), 2);
    // These are the host's waits for the event, which is not known, and for the context.
    assert_eq!(process.waits.len(), 2);
    assert!(process.waits.iter().all(|wait| wait.event == 0));

    for (without, records, waits) in [("events", 0, 4), ("waits", 1, 0), ("events,waits", 0, 0)] {
        let outcome = Stub::new()
            .with("GAPSCOPE_CUDA_WITHOUT", without)
            .run("waits");
        let process = outcome.only();
        let counts = (process.event_records.len(), process.waits.len());
        assert_eq!(counts, (records, waits), "{without}");
        assert_eq!(process.losses.len(), without.split(',').count());
        assert_eq!(process.calls_of("cuEventRecord").len(), 1, "{without}");
    }
}
