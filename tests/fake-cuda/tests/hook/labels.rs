//! NVTX.

use crate::stub::Stub;
use gapscope_spool::event::{LabelEdge, LabelScope, ObjectKind, Payload};

#[test]
fn every_kind_of_nvtx_call_becomes_a_label_or_a_name() {
    let outcome = Stub::new().run("nvtx sync");
    let process = outcome.whole();
    let seen: Vec<_> = process
        .labels
        .iter()
        .map(|l| (l.scope, l.edge, l.text.as_str()))
        .collect();
    let library = LabelScope::Domain(1);
    let range = LabelScope::Range {
        domain: 0,
        range: 1,
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
        (ObjectKind::Thread, process.pid, "worker"),
        (ObjectKind::LabelCategory, with_payload.category, "loading"),
        (ObjectKind::LabelDomain, 1, "library"),
        (ObjectKind::Queue, queue, "copies"),
    ] {
        assert!(
            process.names.contains(&(name.0, name.1, name.2.to_owned())),
            "{name:?} in {:?}",
            process.names
        );
    }
}

#[test]
fn labels_and_calls_share_a_clock_and_a_thread() {
    let outcome = Stub::new().run("labels:50 sync");
    let process = outcome.whole();
    let launches = process.calls_of("cuLaunchKernel");
    assert_eq!((launches.len(), process.labels.len()), (50, 100));
    for (pair, launch) in process.labels.chunks(2).zip(launches) {
        let span = launch.span.expect("known times");
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
