//! Who waited for what, told in two ways: by CUPTI's records, and by its callbacks at the calls that wait.

use crate::recorded::{Recorded, Wait};
use crate::stub::{Outcome, Stub};
use gapscope_spool::event::WaitKind;
use std::collections::HashMap;

const WAYS: [&str; 2] = ["records", "callbacks"];

/// Runs the program in each way.
fn each(with: &[(&str, &str)], steps: &str, check: impl Fn(&str, &Outcome)) -> [Outcome; 2] {
    WAYS.map(|way| {
        let stub = Stub::new().with("GAPSCOPE_CUDA_WAITS", way);
        let stub = with.iter().fold(stub, |stub, (n, v)| stub.with(n, v));
        let outcome = stub.run(steps);
        check(way, &outcome);
        outcome
    })
}

/// As [`each`]; what the program did is the same, and so must be what is told.
fn both(with: &[(&str, &str)], steps: &str, check: impl Fn(&str, &Outcome)) {
    let [records, callbacks] = each(with, steps, check).map(|outcome| facts(outcome.only()));
    assert_eq!(records, callbacks);
}

/// Context and stream of a queue, its device aside.
fn place(process: &Recorded, queue: u32) -> String {
    match process.queues.get(&queue) {
        Some((_, context, stream)) => format!("{context}.{stream}"),
        None => "no queue".to_owned(),
    }
}

/// The call that a fact is of. Of calls that ask, one row stands for many.
fn call(process: &Recorded, correlation: u32) -> String {
    let call = process.calls.iter().find(|c| c.correlation == correlation);
    call.map_or("a poll".to_owned(), |c| c.name.clone())
}

/// Which record of an event a wait is for, by that record's call.
fn awaited(process: &Recorded, wait: &Wait) -> Option<u32> {
    let of = process.event_records.iter().filter(|r| {
        wait.occurrence != 0 && (r.event, r.occurrence) == (wait.event, wait.occurrence)
    });
    let found: Vec<u32> = of.map(|r| r.correlation).collect();
    assert!(found.len() <= 1, "an occurrence is one: {found:?}");
    found.first().copied()
}

/// Records and waits, without the numbers that differ.
fn facts(process: &Recorded) -> Vec<String> {
    // Events by their first record.
    let mut order: Vec<u32> = process
        .event_records
        .iter()
        .map(|r| r.correlation)
        .collect();
    order.sort_unstable();
    let nth = |correlation: u32| order.iter().position(|c| *c == correlation);
    let records = process.event_records.iter().map(|record| {
        let (call, place) = (
            call(process, record.correlation),
            place(process, record.queue),
        );
        format!("{call}: record {:?} on {place}", nth(record.correlation))
    });
    let waits = process.waits.iter().map(|wait| {
        let call = call(process, wait.correlation);
        let of = awaited(process, wait).and_then(nth);
        let place = match wait.kind {
            // Any queue of the context stands for it.
            WaitKind::HostForContext => String::new(),
            _ => place(process, wait.queue),
        };
        format!("{call}: {:?} {place} for record {of:?}", wait.kind)
    });
    let mut facts: Vec<String> = records.chain(waits).collect();
    facts.sort();
    facts
}

/// The kinds of waits by the functions that waited, in the order of the calls.
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
fn waits_name_the_event_and_the_queue_that_it_was_put_on() {
    both(&[], "waits", |way, outcome| {
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
        assert_eq!(awaited(process, waiting), Some(record.correlation), "{way}");
        assert_eq!(
            awaited(process, of(WaitKind::HostForEvent)),
            Some(record.correlation)
        );
        assert!(waiting.queue != 0 && record.queue != 0 && waiting.queue != record.queue);
        assert_eq!(of(WaitKind::HostForQueue).queue, waiting.queue);
        assert_eq!(of(WaitKind::HostForContext).event, 0, "no event");
        // The host waited while its call was going on, and no longer.
        for wait in process
            .waits
            .iter()
            .filter(|w| w.kind != WaitKind::QueueForEvent)
        {
            let call = process
                .calls
                .iter()
                .find(|c| c.correlation == wait.correlation);
            let call = call.and_then(|c| c.span).expect("known times");
            let span = wait.span.expect("known times");
            assert!(call.start_ns <= span.start_ns && span.end_ns() <= call.end_ns());
        }
    });
}

#[test]
fn a_call_of_the_runtime_is_told_once_though_the_driver_is_called_inside() {
    both(&[], "runtime-waits", |_, outcome| {
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
    });
}

#[test]
fn default_streams_are_found_by_all_their_handles() {
    both(&[], "own-stream sync", |_, outcome| {
        let process = outcome.whole();
        let launched: Vec<u32> = process.kernels.iter().map(|k| k.shape.queue).collect();
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
    });
}

#[test]
fn what_goes_into_a_graph_is_put_on_no_queue() {
    both(&[], "captured-waits sync", |way, outcome| {
        let process = outcome.whole();
        assert_eq!(process.event_records.len(), 2, "{way}: before and after");
        let waits: Vec<_> = process.waits.iter().collect();
        assert_eq!(
            waits.len(),
            2,
            "{way}: after the capture, and the last sync"
        );
        let last = process.event_records.iter().map(|r| r.correlation).max();
        let waiting = waits.iter().find(|w| w.kind == WaitKind::QueueForEvent);
        assert_eq!(awaited(process, waiting.expect("one")), last);
    });
}

#[test]
fn an_event_with_the_handle_of_a_destroyed_one_is_another() {
    both(&[], "reused-event sync", |way, outcome| {
        let process = outcome.whole();
        assert_eq!(process.event_records.len(), 1);
        let of_events = |w: &&Wait| w.kind != WaitKind::HostForContext;
        let waits: Vec<_> = process.waits.iter().filter(of_events).collect();
        assert_eq!(waits.len(), 2);
        for wait in waits {
            assert_eq!(awaited(process, wait), None, "{way}");
        }
    });
}

#[test]
fn of_events_that_graphs_put_too_no_record_is_the_last() {
    let stub = Stub::new().with("GAPSCOPE_CUDA_WAITS", "callbacks");
    let outcome = stub.run("graph-events sync");
    let process = outcome.whole();
    assert_eq!(process.event_records.len(), 2);
    let of_streams = |w: &&Wait| w.kind == WaitKind::QueueForEvent;
    let waits: Vec<_> = process.waits.iter().filter(of_streams).collect();
    assert_eq!(waits.len(), 2);
    assert!(waits.iter().all(|wait| awaited(process, wait).is_none()));
}

#[test]
fn calls_that_fail_are_no_waits() {
    both(&[], "refused-waits", |_, outcome| {
        let process = outcome.whole();
        assert_eq!((process.event_records.len(), process.waits.len()), (1, 0));
        let failed = process.calls.iter().filter(|c| c.result != 0).count();
        assert!(failed >= 9, "{failed}");
    });
}

#[test]
fn a_stream_of_a_context_that_is_not_current_is_found() {
    both(&[], "other-context", |_, outcome| {
        let process = outcome.whole();
        let places: Vec<_> = process
            .event_records
            .iter()
            .map(|r| process.queues[&r.queue].1)
            .collect();
        assert_eq!(places, [1], "that of the first context");
        // The second context is awaited, then the first.
        let contexts = process
            .waits
            .iter()
            .filter(|w| w.kind == WaitKind::HostForContext)
            .map(|w| process.queues.get(&w.queue).map(|(_, context, _)| *context));
        assert!(contexts.flatten().all(|context| [1, 2].contains(&context)));
    });
}

#[test]
fn only_queries_that_find_work_done_are_waits() {
    both(
        &[("FAKE_CUDA_KERNEL_NS", "3000000")],
        "polls:5",
        |_, outcome| {
            assert_eq!(outcome.whole().waits.len(), 6, "one for each kernel");
        },
    );
}

#[test]
fn each_wait_of_many_threads_is_for_the_event_of_its_own() {
    each(&[], "launch:1 wait-threads:4:300 sync", |way, outcome| {
        let process = outcome.whole();
        assert_eq!(process.event_records.len(), 4 * 300, "{way}");
        assert_eq!(process.waits.len(), 4 * 301 + 1, "{way}");
        let threads: HashMap<u32, u32> = process
            .calls
            .iter()
            .map(|call| (call.correlation, call.thread))
            .collect();
        for wait in &process.waits {
            if wait.kind == WaitKind::HostForContext {
                continue;
            }
            let own = process
                .event_records
                .iter()
                .filter(|r| threads[&r.correlation] == threads[&wait.correlation])
                .map(|r| r.correlation);
            let last = own.filter(|record| *record < wait.correlation).max();
            assert_eq!(awaited(process, wait), last, "{way}");
        }
    });
}

#[test]
fn outside_the_window_nothing_waits() {
    let steps = "waits capture:runtime-waits waits capture:waits sync";
    both(&[("GAPSCOPE_RECORDING", "0")], steps, |way, outcome| {
        let process = outcome.only();
        process.assert_undamaged();
        assert_eq!(process.event_records.len(), 3, "{way}");
        assert_eq!(process.waits.len(), 5 + 4, "{way}");
    });
}

#[test]
fn a_forked_child_that_asks_tells_nothing() {
    both(
        &[],
        "waits fork:waits fork-exit:waits sync",
        |_, outcome| {
            assert!(outcome.status.success());
            assert_eq!(outcome.processes.len(), 1);
            assert_eq!(outcome.only().waits.len(), 5);
        },
    );
}

#[test]
fn waits_survive_a_sudden_end_when_they_are_older_than_a_flush() {
    both(&[], "waits sleep:350 kill", |_, outcome| {
        let process = outcome.only();
        assert_eq!((process.event_records.len(), process.waits.len()), (1, 4));
    });
}

#[test]
fn fields_that_are_chosen_change_nothing() {
    let chosen = [
        ("FAKE_CUDA_API_VERSION", "130500"),
        ("GAPSCOPE_CUDA_RECORDS", "chosen"),
    ];
    both(&chosen, "waits runtime-waits", |_, outcome| {
        assert_eq!(outcome.whole().waits.len(), 9);
    });
}

#[test]
fn of_more_events_than_are_told_apart_each_is_told_or_counted() {
    const EVENTS: u64 = 70_000;
    let stub = Stub::new().with("GAPSCOPE_CUDA_WAITS", "callbacks");
    let outcome = stub.run(&format!("launch:1 many-events:{EVENTS} sync"));
    let process = outcome.only();
    let too_many = process.lost("events on queues", "there are too many events");
    let at_once = process.lost("waits and events on queues", "too many at once");
    assert!(too_many > 0, "there are places for fewer");
    assert_eq!(
        process.event_records.len() as u64 + too_many + at_once,
        EVENTS
    );
}

#[test]
fn what_callbacks_cannot_tell_is_counted() {
    let by_callbacks = || Stub::new().with("GAPSCOPE_CUDA_WAITS", "callbacks");
    let outcome = by_callbacks()
        .with("FAKE_CUDA_STREAM_IDS", "refuse")
        .run("waits");
    let process = outcome.only();
    let reason = "their stream is not known";
    assert_eq!(process.lost("events on queues", reason), 1);
    assert_eq!(process.lost("waits", reason), 2);
    // That of the host for the event, which is not known, and that for the context.
    assert_eq!(process.waits.len(), 2);
    assert!(process.waits.iter().all(|wait| wait.event == 0));

    let outcome = by_callbacks()
        .with("FAKE_CUDA_CALLBACKS", "refuse")
        .run("waits");
    let process = outcome.only();
    assert!(process.waits.is_empty() && process.event_records.is_empty());
    let reason = "CUPTI refused callbacks of their calls";
    assert!(process.lost("events on queues", reason) > 2);
    assert!(process.lost("waits", reason) > 5);

    for (without, records, waits) in [("events", 0, 4), ("waits", 1, 0), ("events,waits", 0, 0)] {
        let outcome = by_callbacks()
            .with("GAPSCOPE_CUDA_WITHOUT", without)
            .run("waits");
        let process = outcome.only();
        let counts = (process.event_records.len(), process.waits.len());
        assert_eq!(counts, (records, waits), "{without}");
        assert_eq!(process.losses.len(), without.split(',').count());
    }
}
