//! Ranks of a distributed program: who arrives last at collectives.

use crate::program::{US, findings};
use gapscope_analysis::Timeline;
use gapscope_analysis::ranks::{RankDigest, RankFindings, ranks};
use gapscope_trace::Trace;

const ALL_REDUCE: &str = "ncclDevKernel_AllReduce_Sum_f32_RING_LL";

/// The trace of a rank with kernels of NCCL at these microseconds, begin and end.
fn trace(rank: u32, kernel: &str, collectives: &[(i64, i64)]) -> Trace {
    let mut text = format!(
        "manifest sampling_mode=dispatch start_ns=0 end_ns=100ms start_unix_ns=1700000000000000000 host.system=one
         process id=1 pid={rank} hook=cuda
         device id=1 process=1 api=cuda name=GPU uuid=a{rank} clock.error_ns=1us
         queue id=1 device=1
         kernel id=1 process=1 name={kernel}
         kernel id=2 process=1 name=gemm
         dispatch queue=1 kernel=2 start_ns=1us duration_ns=5us\n"
    );
    for (start, end) in collectives {
        text += &format!(
            "dispatch queue=1 kernel=1 start_ns={start}us duration_ns={}us\n",
            end - start
        );
    }
    Trace::from_text(&text).unwrap()
}

fn compare(traces: &[Trace]) -> RankFindings {
    let digests: Vec<RankDigest> = traces
        .iter()
        .enumerate()
        .map(|(rank, trace)| RankDigest::of(&Timeline::of(trace), &findings(trace), rank as u32))
        .collect();
    ranks(&digests, 10)
}

#[test]
fn the_last_to_arrive_is_found_and_what_the_others_wait() {
    let found = compare(&[
        trace(0, ALL_REDUCE, &[(100, 200), (300, 500), (700, 800)]),
        trace(1, ALL_REDUCE, &[(110, 200), (450, 500), (690, 800)]),
        trace(2, ALL_REDUCE, &[(150, 200), (310, 500), (695, 800)]),
    ]);
    let kind = &found.collectives[0];
    assert_eq!(
        (kind.kind, kind.matched_count, kind.contradictory_count),
        ("AllReduce", 3, Some(0))
    );
    assert_eq!(kind.skew.total_ns, Some((50 + 150 + 10) * US));
    let waited: Vec<_> = found
        .ranks
        .iter()
        .map(|r| r.waited_ns.unwrap() / US)
        .collect();
    assert_eq!(waited, [50 + 150, 40 + 10, 140 + 5]);
    let last: Vec<_> = found
        .ranks
        .iter()
        .map(|r| (r.last_count.unwrap(), r.last_skew_ns.unwrap() / US))
        .collect();
    assert_eq!(last, [(1, 10), (1, 150), (1, 50)]);
    let worst = found.straggler.unwrap();
    assert_eq!((worst.rank, worst.last_count, worst.of_count), (1, 1, 3));
    assert_eq!(found.longest[0].last_rank, 1);
    assert_eq!(
        (found.longest[0].number, found.longest[0].skew_ns),
        (1, 150 * US)
    );
    assert_eq!(found.ranks[0].collective_ns, Some(400 * US));
    assert_eq!(found.clock_error_ns, Some(2 * US));
    assert!(
        found.sentences[0].starts_with("Rank 1 arrived last at 1 of 3 collectives"),
        "{:?}",
        found.sentences
    );
}

#[test]
fn kernels_that_do_not_overlap_are_no_one_collective() {
    let found = compare(&[
        trace(0, ALL_REDUCE, &[(100, 200), (300, 400)]),
        trace(1, ALL_REDUCE, &[(100, 200), (900, 950)]),
    ]);
    assert_eq!(found.collectives[0].contradictory_count, Some(1));
    assert_eq!(found.collectives[0].skew.timed_count, 1);
    assert_eq!(found.straggler, None);
    // A broadcast's sender need not wait for those who receive.
    let found = compare(&[
        trace(0, "ncclDevKernel_Broadcast_RING_LL", &[(300, 400)]),
        trace(1, "ncclDevKernel_Broadcast_RING_LL", &[(900, 950)]),
    ]);
    assert_eq!(found.collectives[0].contradictory_count, Some(0));
    assert_eq!(found.straggler.unwrap().rank, 1);
}

#[test]
fn skew_below_the_clocks_error_blames_nobody() {
    let found = compare(&[
        trace(0, ALL_REDUCE, &[(100, 200)]),
        trace(1, ALL_REDUCE, &[(102, 200)]),
    ]);
    assert_eq!(found.collectives[0].uncertain_count, Some(1));
    assert_eq!(found.straggler, None);
}

#[test]
fn ranks_of_different_machines_are_matched_and_not_compared() {
    let mut other = trace(1, ALL_REDUCE, &[(100, 200)]);
    let unix_ns = other.manifest.start_unix_ns.as_mut().unwrap();
    *unix_ns += 3_600_000_000_000;
    let found = compare(&[trace(0, ALL_REDUCE, &[(100, 200)]), other]);
    assert!(
        found
            .not_comparable_because
            .unwrap()
            .contains("different machines")
    );
    assert_eq!(found.collectives[0].matched_count, 1);
    assert_eq!(found.collectives[0].skew.timed_count, 0);
    assert_eq!(found.ranks[0].waited_ns, None);
}

#[test]
fn without_a_known_error_of_a_clock_nobody_is_last() {
    let mut unknown = trace(1, ALL_REDUCE, &[(150, 200), (900, 950)]);
    unknown.manifest.devices[0].clock.error_ns = None;
    let called = Trace::from_text(
        "label id=1 text=ncclAllReduce
         marker process=1 scope=thread thread=7 label=1 start_ns=100us duration_ns=3us",
    )
    .unwrap();
    unknown.tables.labels = called.tables.labels.clone();
    unknown.tables.markers = called.tables.markers.clone();
    let mut known = trace(0, ALL_REDUCE, &[(100, 200), (300, 400)]);
    known.tables.labels = called.tables.labels;
    known.tables.markers = called.tables.markers;
    let found = compare(&[known, unknown]);
    let reason = found.not_comparable_because.unwrap();
    assert!(reason.contains("rank 1 is not known"), "{reason}");
    assert_eq!(found.clock_error_ns, None);
    let kind = &found.collectives[0];
    assert_eq!((kind.matched_count, kind.skew.timed_count), (2, 0));
    assert_eq!(
        (kind.contradictory_count, kind.uncertain_count),
        (None, None)
    );
    assert_eq!(found.straggler, None);
    assert!(found.longest.is_empty());
    for rank in &found.ranks {
        assert_eq!(
            (rank.waited_ns, rank.last_count, rank.last_skew_ns),
            (None, None, None)
        );
    }
    // The hosts' calls have no such error.
    assert_eq!(found.collective_calls[0].skew.timed_count, 1);
}

#[test]
fn missing_ranks_and_unequal_numbers_are_said() {
    let mut first = trace(0, ALL_REDUCE, &[(100, 200), (300, 400)]);
    first.manifest.rank = Some(gapscope_trace::manifest::Rank {
        rank: 0,
        local_rank: Some(0),
        world_size: 3,
    });
    let found = compare(&[first, trace(1, ALL_REDUCE, &[(100, 200)])]);
    assert_eq!(found.missing_ranks, [2]);
    assert_eq!(found.collectives[0].counts, [2, 1]);
    assert!(
        found
            .sentences
            .iter()
            .any(|s| s.contains("no trace here: 2"))
    );
    assert!(
        found
            .sentences
            .iter()
            .any(|s| s.contains("differ in their numbers of AllReduce"))
    );
}

#[test]
fn calls_of_collectives_are_matched_by_their_labels() {
    let called = |rank: u32, at: i64| {
        let mut text = trace(rank, ALL_REDUCE, &[(500, 600)]);
        let labels = Trace::from_text(&format!(
            "label id=1 text=ncclAllReduce\n marker process=1 scope=thread thread=7 label=1 start_ns={at}us duration_ns=3us"
        )).unwrap();
        text.tables.labels = labels.tables.labels;
        text.tables.markers = labels.tables.markers;
        text
    };
    let found = compare(&[called(0, 100), called(1, 450)]);
    assert_eq!(found.collective_calls[0].kind, "AllReduce");
    assert_eq!(found.collective_calls[0].skew.total_ns, Some(350 * US));
}

#[test]
fn no_traces_and_one_are_survived() {
    assert_eq!(ranks(&[], 10).ranks, []);
    let found = compare(&[trace(0, ALL_REDUCE, &[(100, 200)])]);
    assert!(found.not_comparable_because.is_some());
}
