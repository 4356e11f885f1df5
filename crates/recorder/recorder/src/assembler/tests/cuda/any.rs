//! Tests that any activities, in any order, cause no panic, have one row each, and give the same rows when a
//! session resumes.

use super::*;

fn activity() -> impl Strategy<Value = Activity> {
    let id = || 0..5u32;
    let time = || {
        let known = (
            prop_oneof![9 => 1..5_000i64, 1 => any::<i64>()],
            prop_oneof![9 => 0..500i64, 1 => 0..i64::MAX],
        );
        proptest::option::weighted(
            0.9,
            known.prop_map(|(start_ns, duration_ns)| Span {
                start_ns,
                duration_ns,
            }),
        )
    };
    prop_oneof![
        (id(), time(), id(), 0..3u32).prop_map(|(launch, span, correlation, graph)| {
            Activity::Kernel {
                launch: hook::Launch(launch),
                span,
                correlation: hook::Correlation(correlation),
                node: hook::GraphNode::new(hook::Graph(graph), 3),
            }
        }),
        (id(), any::<u64>(), time(), id(), 0..3u32).prop_map(
            |(route, bytes, span, correlation, graph)| {
                Activity::Transfer {
                    route: hook::Route(route),
                    bytes,
                    span,
                    correlation: hook::Correlation(correlation),
                    node: hook::GraphNode::new(hook::Graph(graph), 3),
                }
            }
        ),
        (id(), time(), id()).prop_map(|(queue, span, correlation)| {
            Activity::GraphRun {
                queue: hook::Queue(queue),
                span,
                correlation: hook::Correlation(correlation),
            }
        }),
        (0..4usize, id(), id(), 0..3u64, time(), id()).prop_map(
            |(kind, queue, event, occurrence, span, correlation)| {
                Activity::Wait {
                    kind: WaitKind::ALL[kind],
                    queue: hook::Queue(queue),
                    event: hook::CudaEvent(event),
                    occurrence,
                    span,
                    correlation: hook::Correlation(correlation),
                }
            }
        ),
        (id(), 0..3u64, id(), id()).prop_map(|(event, occurrence, queue, correlation)| {
            Activity::EventRecord {
                event: hook::CudaEvent(event),
                occurrence,
                queue: hook::Queue(queue),
                correlation: hook::Correlation(correlation),
            }
        }),
        (id(), id()).prop_map(|(queue, correlation)| Activity::Submission {
            queue: hook::Queue(queue),
            correlation: hook::Correlation(correlation),
        }),
        (id(), id(), time(), id()).prop_map(|(queue, thread, span, correlation)| {
            Activity::HostFunction {
                queue: hook::Queue(queue),
                thread: hook::Thread(thread),
                span,
                correlation: hook::Correlation(correlation),
            }
        }),
        (0..9usize, id(), time()).prop_map(|(kind, thread, span)| {
            Activity::Overhead {
                kind: OverheadKind::ALL[kind],
                thread: hook::Thread(thread),
                span,
            }
        }),
    ]
}

fn told() -> impl Strategy<Value = Recorded> {
    let id = || 0..5u32;
    let time = || prop_oneof![9 => 1..5_000i64, 1 => any::<i64>()];
    let span = || {
        (time(), time()).prop_map(|(start_ns, duration_ns)| Span {
            start_ns,
            duration_ns,
        })
    };
    prop_oneof![
        6 => activity().prop_map(Recorded::Activity),
        2 => (0..13u32, span(), id(), 0..2u32).prop_map(
            |(function, span, correlation, result)| {
                let (function, correlation) = (hook::Function(function), hook::Correlation(correlation));
                Recorded::Event(CudaEvent::Called { function, span, correlation, result }.into())
            }
        ),
        1 => (0..10u32, id(), span(), id(), time()).prop_map(
            |(function, thread, span, count, busy_ns)| {
                let (function, thread) = (hook::Function(function), hook::Thread(thread));
                Recorded::Event(CudaEvent::Polled { function, thread, span, count, busy_ns, result: 600 }.into())
            }
        ),
    ]
}

/// Returns a batch of four kernels of one launch.
fn kernels() -> Packer {
    let mut packer = Packer::new(1 << 12);
    for launch in 0..4 {
        packer.push(&Activity::Kernel {
            launch: hook::Launch(launch),
            span: span(100, 200),
            correlation: hook::Correlation(7),
            node: hook::GraphNode::NONE,
        });
    }
    packer
}

proptest! {
    /// Tests that in any order of events nothing panics, each piece of work has one row, and a session that resumes
    /// from a checkpoint makes the same rows.
    #[test]
    fn any_activities_are_survived_and_resumed(
        batches in proptest::collection::vec(proptest::collection::vec(told(), 0..12), 0..12),
        torn in 0..40usize,
        at in 0..12usize,
    ) {
        let works = |told: &Recorded| matches!(told, Recorded::Activity(Activity::Kernel { .. }));
        let expected = batches.iter().flatten().filter(|told| works(told)).count();
        let (mut whole, mut resumed) = (Cuda::new(), Cuda::new());
        for (index, batch) in batches.iter().enumerate() {
            if index == at {
                let state = postcard::to_stdvec(&resumed.assembler).unwrap();
                resumed.assembler = postcard::from_bytes(&state).unwrap();
            }
            whole.batch(batch);
            resumed.batch(batch);
        }
        for cuda in [&mut whole, &mut resumed] {
            // The end of the batch is torn off.
            let packer = kernels();
            let bytes = &packer.bytes()[..packer.bytes().len().min(torn)];
            cuda.event(CudaEvent::Activities(ActivityBatch { first: cuda.written, count: 4, bytes ,}));
        }
        let packer = kernels();
        let bytes = &packer.bytes()[..packer.bytes().len().min(torn)];
        let whole_ones = unpack(bytes).take(4).filter(Result::is_ok).count();
        let (_, tables) = whole.finish();
        let (_, again) = resumed.finish();
        prop_assert_eq!(&tables, &again);
        prop_assert_eq!(tables.dispatches.len(), expected + whole_ones);
        crate::assembler::tests::hostile::check(&tables);
    }
}
