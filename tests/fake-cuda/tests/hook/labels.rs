//! NVTX.

use crate::stub::Stub;
use gapscope_spool::event::{LabelEdge, LabelScope, Object, Payload};
use gapscope_spool::ids;

#[test]
fn every_kind_of_nvtx_call_becomes_a_label_or_a_name() {
    let outcome = Stub::new().run("nvtx sync");
    let process = outcome.whole();
    let seen: Vec<_> = process
        .labels
        .iter()
        .map(|l| (l.scope, l.edge, l.text.as_str()))
        .collect();
    let library = LabelScope::Domain(ids::LabelDomain(1));
    let range = LabelScope::Range {
        domain: ids::LabelDomain(0),
        range: ids::LabelRange(1),
    };
    assert_eq!(
        seen,
        [
            (LabelScope::Thread, LabelEdge::Begin, "outer"),
            (LabelScope::Thread, LabelEdge::Instant, "mark"),
            (LabelScope::Thread, LabelEdge::Instant, "breit ✓"),
            (range, LabelEdge::Begin, "range"),
            (LabelScope::Thread, LabelEdge::Begin, "with payload"),
            (LabelScope::Thread, LabelEdge::End, ""),
            (library, LabelEdge::Begin, "registered"),
            (library, LabelEdge::Begin, "registered"),
            (range, LabelEdge::End, ""),
            (LabelScope::Thread, LabelEdge::End, ""),
            (library, LabelEdge::End, ""),
            (library, LabelEdge::End, ""),
        ]
    );
    let with_payload = &process.labels[4];
    assert_eq!(with_payload.payload, Some(Payload::Float(2.5)));
    assert_ne!(with_payload.category, 0);
    assert_ne!(
        process.labels[8].thread, process.pid,
        "the range ends on another thread"
    );
    let queue = process.kernels[0].shape.queue;
    for name in [
        (Object::Thread(ids::Thread(process.pid)), "worker"),
        (
            Object::LabelCategory(ids::LabelCategory(with_payload.category)),
            "loading",
        ),
        (Object::LabelDomain(ids::LabelDomain(1)), "library"),
        (Object::Queue(queue), "copies"),
    ] {
        assert!(
            process.names.contains(&(name.0, name.1.to_owned())),
            "{name:?} in {:?}",
            process.names
        );
    }
}

#[test]
fn a_category_that_has_no_room_is_counted_and_the_label_is_there() {
    let outcome = Stub::new().run("far-category");
    let process = outcome.only();
    let [label, _] = &process.labels[..] else {
        panic!("a start and an end")
    };
    assert_eq!((label.text.as_str(), label.category), ("far", 0));
    let reason = "their number, or that of their domain, is beyond 65535";
    assert_eq!(process.lost("NVTX categories", reason), 1);
}

#[test]
fn labels_and_calls_share_a_clock_and_a_thread() {
    let outcome = Stub::new().run("labels:50 sync");
    let process = outcome.whole();
    let launches = process.calls_of("cuLaunchKernel");
    assert_eq!((launches.len(), process.labels.len()), (50, 100));
    for (pair, launch) in process.labels.chunks(2).zip(launches) {
        let span = launch.span;
        assert!(pair[0].at_ns <= span.start_ns && span.end_ns() <= pair[1].at_ns);
        assert_eq!(pair[0].thread, launch.thread);
    }
}

#[test]
fn a_program_with_labels_and_no_cuda_has_its_labels_recorded() {
    let outcome = Stub::new().run("no-cuda");
    let process = outcome.whole();
    assert_eq!(process.labels.len(), 6);
    assert!(process.kernels.is_empty() && process.notes.is_empty());
}

#[test]
fn values_in_structures_are_read_by_the_layouts_that_the_program_registered() {
    let outcome = Stub::new().run("payloads sync");
    assert!(outcome.status.success(), "{}", outcome.output);
    let process = outcome.only();
    process.assert_undamaged();
    let begun: Vec<_> = process
        .labels
        .iter()
        .filter(|l| l.edge != LabelEdge::End)
        .map(|l| (l.text.as_str(), l.parts.as_str()))
        .collect();
    let share = "share=0.25";
    assert_eq!(
        begun,
        [
            (
                "all-reduce",
                "root=-3, bytes=1099511627776, loss=0.5, op=max, tag=ab, group=world, delta=-7"
            ),
            (
                "again",
                "root=-3, bytes=1099511627776, loss=0.5, op=1, tag=ab, group=world, delta=-7, 77"
            ),
            ("from the payload", share),
            ("from the payload", share),
            ("array", "rank=1, after=5"),
            ("odd", ""),
            ("odd", "root=5"),
        ]
    );
    let category = process.labels.iter().find(|l| l.parts == share);
    assert_eq!(category.expect("a mark").category, 1 << 16 | 6);
    let lost = |what, reason| process.lost(what, reason);
    assert_eq!(lost("NVTX payloads", "payload schema not understood"), 3);
    let unknown = "this version or extension is not known";
    assert_eq!(lost("NVTX extensions of a library", unknown), 1);
    assert_eq!(lost("NVTX payloads of a library", unknown), 1);
    assert_eq!(process.losses.len(), 5, "{:?}", process.losses);
    let at_ends: Vec<_> = process
        .labels
        .iter()
        .filter(|l| l.edge == LabelEdge::End && !l.parts.is_empty())
        .map(|l| (l.scope, l.parts.as_str()))
        .collect();
    let range = LabelScope::Range {
        domain: ids::LabelDomain(1),
        range: ids::LabelRange(1),
    };
    assert_eq!(at_ends, [(range, "1")]);
}

#[test]
fn resources_of_a_domain_name_threads_and_streams() {
    let outcome = Stub::new().run("payloads sync");
    let process = outcome.only();
    let queue = process.kernels[0].shape.queue;
    for (object, name) in [
        (Object::Queue(queue), "copies"),
        (Object::Thread(ids::Thread(process.pid)), "worker"),
    ] {
        let name = (object, name.to_owned());
        assert!(process.names.contains(&name), "{:?}", process.names);
    }
    assert!(process.names.iter().all(|(.., name)| name != "a lock"));
}
