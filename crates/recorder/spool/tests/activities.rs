//! Packs and unpacks activities: round trips, small sizes, and detected damage.

use gapscope_spool::event::{
    Activity, CudaEvent, EventGroup, OverheadKind, Packer, Span, Torn, WaitKind, unpack,
};
use gapscope_spool::ids;
use proptest::prelude::*;

fn span() -> impl Strategy<Value = Option<Span>> {
    let span = (any::<i64>(), 0..=i64::MAX).prop_map(|(start_ns, duration_ns)| Span {
        start_ns,
        duration_ns,
    });
    proptest::option::of(span)
}

fn activity() -> impl Strategy<Value = Activity> {
    // Few values of the keys, so that entries resemble their predecessors.
    let key = || prop_oneof![0..4u32, any::<u32>()];
    let correlation = || prop_oneof![0..50u32, any::<u32>()];
    prop_oneof![
        (key(), span(), correlation(), key()).prop_map(|(launch, span, correlation, graph)| {
            Activity::Kernel {
                launch: ids::Launch(launch),
                span,
                correlation: ids::Correlation(correlation),
                node: ids::GraphNode::new(ids::Graph(graph), 3),
            }
        }),
        (key(), any::<u64>(), span(), correlation(), key()).prop_map(
            |(route, bytes, span, correlation, graph)| {
                Activity::Transfer {
                    route: ids::Route(route),
                    bytes,
                    span,
                    correlation: ids::Correlation(correlation),
                    node: ids::GraphNode::new(ids::Graph(graph), 3),
                }
            }
        ),
        (key(), span(), correlation()).prop_map(|(queue, span, correlation)| {
            Activity::GraphRun {
                queue: ids::Queue(queue),
                span,
                correlation: ids::Correlation(correlation),
            }
        }),
        (
            proptest::sample::select(WaitKind::ALL),
            key(),
            key(),
            any::<u64>(),
            span(),
            correlation()
        )
            .prop_map(|(kind, queue, event, occurrence, span, correlation)| {
                Activity::Wait {
                    kind,
                    queue: ids::Queue(queue),
                    event: ids::CudaEvent(event),
                    occurrence,
                    span,
                    correlation: ids::Correlation(correlation),
                }
            }),
        (key(), any::<u64>(), key(), correlation()).prop_map(
            |(event, occurrence, queue, correlation)| {
                Activity::EventRecord {
                    event: ids::CudaEvent(event),
                    occurrence,
                    queue: ids::Queue(queue),
                    correlation: ids::Correlation(correlation),
                }
            }
        ),
        (key(), correlation()).prop_map(|(queue, correlation)| Activity::Submission {
            queue: ids::Queue(queue),
            correlation: ids::Correlation(correlation),
        }),
        (key(), key(), span(), correlation()).prop_map(|(queue, thread, span, correlation)| {
            Activity::HostFunction {
                queue: ids::Queue(queue),
                thread: ids::Thread(thread),
                span,
                correlation: ids::Correlation(correlation),
            }
        }),
        (proptest::sample::select(OverheadKind::ALL), key(), span()).prop_map(
            |(kind, thread, span)| Activity::Overhead {
                kind,
                thread: ids::Thread(thread),
                span,
            }
        ),
    ]
}

fn packed(activities: &[Activity]) -> Packer {
    let mut packer = Packer::new(1 << 16);
    activities.iter().for_each(|a| packer.push(a));
    packer
}

proptest! {
    #[test]
    fn what_is_packed_is_unpacked(activities in proptest::collection::vec(activity(), 0..200)) {
        let packer = packed(&activities);
        prop_assert_eq!(packer.count() as usize, activities.len());
        let back: Result<Vec<Activity>, Torn> = unpack(packer.bytes()).collect();
        prop_assert_eq!(back.expect("whole"), activities);
    }

    #[test]
    fn a_cut_batch_gives_its_whole_entries_and_at_most_one_error(
        activities in proptest::collection::vec(activity(), 1..50),
        cut in any::<prop::sample::Index>(),
    ) {
        let packer = packed(&activities);
        let bytes = &packer.bytes()[..cut.index(packer.bytes().len())];
        let back: Vec<Result<Activity, Torn>> = unpack(bytes).collect();
        let whole: Vec<Activity> = back.iter().map_while(|a| a.ok()).collect();
        prop_assert_eq!(&whole[..], &activities[..whole.len()]);
        prop_assert!(back.len() - whole.len() <= 1);
        prop_assert!(whole.len() < activities.len());
    }

    #[test]
    fn any_bytes_are_read_to_an_end(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        prop_assert!(unpack(&bytes).count() <= bytes.len());
    }

    #[test]
    fn the_longest_entry_fits_what_a_packer_keeps_free(activity in activity()) {
        let mut packer = Packer::new(1000);
        while !packer.is_full() {
            packer.push(&activity);
        }
        prop_assert!(packer.bytes().len() <= 1000);
    }
}

#[test]
fn a_batch_can_be_read_without_the_one_before() {
    let mut packer = Packer::new(1 << 12);
    let entry = |n: u32| Activity::Kernel {
        launch: ids::Launch(3),
        span: Some(Span {
            start_ns: 1_000_000 + i64::from(n) * 5_000,
            duration_ns: 2_000,
        }),
        correlation: ids::Correlation(100 + n * 5),
        node: ids::GraphNode::NONE,
    };
    (0..10).for_each(|n| packer.push(&entry(n)));
    packer.clear();
    (10..20).for_each(|n| packer.push(&entry(n)));
    let back: Vec<Activity> = unpack(packer.bytes()).map(|a| a.expect("whole")).collect();
    assert_eq!(back, (10..20).map(entry).collect::<Vec<_>>());
}

/// Activities like those of a PyTorch loop: a launch every 5 µs, whose correlation grows by five because four calls
/// in between only ask for state, and a kernel of about 2 µs.
#[test]
fn a_launch_in_a_loop_takes_few_bytes() {
    const LAUNCHES: u32 = 10_000;
    let mut packer = Packer::new(1 << 20);
    let mut called = 0;
    for n in 0..LAUNCHES {
        let jitter = i64::from(n * 7919 % 700);
        let start_ns = 1_000_000_000_000_000 + i64::from(n) * 5_200 + jitter;
        let correlation = 100 + n * 5;
        let call = CudaEvent::Called {
            function: ids::Function(3),
            span: Span {
                start_ns,
                duration_ns: 2_800 + jitter,
            },
            correlation: ids::Correlation(correlation),
            result: 0,
        };
        called += call.encoded_bytes().expect("a size");
        packer.push(&Activity::Kernel {
            launch: ids::Launch(1 + n % 40),
            span: Some(Span {
                start_ns: start_ns + 4_600 - jitter,
                duration_ns: 1_900 + jitter,
            }),
            correlation: ids::Correlation(correlation),
            node: ids::GraphNode::NONE,
        });
    }
    let each = |bytes: usize| bytes as f64 / f64::from(LAUNCHES);
    assert!(each(called) <= 16.0, "{} bytes for a call", each(called));
    let kernels = each(packer.bytes().len());
    assert!(kernels < 7.1, "{kernels} bytes for a kernel");
}
