//! Which collectives of the ranks are one.

use super::{ALL_REDUCE, Rank, SEND_RECV, US, WORLD, assert_says, compare, rank, waited_us};
use gapscope_trace::Trace;
use gapscope_trace::manifest;

#[test]
fn groups_without_skew_inside_have_none_though_they_are_apart() {
    // Two groups of two ranks, 40 us apart.
    let own = |number: u32| {
        let group = u64::from(number / 2);
        let late = 40 * group as i64;
        let times: Vec<(i64, i64)> = (1..21)
            .map(|n| (1000 * n + late, 1000 * n + late + 100))
            .collect();
        Rank::new(number)
            .init(WORLD, 4, number)
            .init(100 + group, 2, number % 2)
            .all_reduce(100 + group, &times)
            .trace()
    };
    let found = compare(&[own(0), own(1), own(2), own(3)]);
    let kind = &found.collectives[0];
    assert_eq!(kind.matched_count, 40);
    assert_eq!(kind.counts.as_slice(), &[20; 4][..]);
    assert_eq!((kind.skew.timed_count, kind.uncertain_count), (0, Some(40)));
    assert_eq!(found.straggler, None);
    assert_eq!(waited_us(&found), [Some(0); 4]);
    let groups: Vec<_> = found
        .communicators
        .iter()
        .map(|c| c.ranks.as_slice())
        .collect();
    assert_eq!(groups, [[0, 1], [2, 3]]);
}

#[test]
fn without_communicators_nobody_is_last() {
    let without = |number: u32, start: i64| {
        let mut rank = Rank::new(number);
        rank.kernel(ALL_REDUCE, start - 8, [start, 500]);
        rank.trace()
    };
    let found = compare(&[without(0, 100), without(1, 140)]);
    let kind = &found.collectives[0];
    assert_eq!((kind.matched_count, kind.unassigned_count), (0, 2));
    assert_eq!(kind.skew.timed_count, 0);
    assert_eq!(found.straggler.as_ref(), None);
    assert_eq!(waited_us(&found), vec![None; 2]);
    assert_says(&found, "no NVTX payloads of NCCL");
}

#[test]
fn one_unnamed_communicator_of_all_ranks_is_the_one_of_all_collectives() {
    // NCCL before 2.25.
    let old = |number: u32, sizes: &[u32], start: i64| {
        let mut rank = Rank::new(number);
        for size in sizes {
            rank.made(
                "ncclCommInitRank",
                &format!("Rank={}, No. of ranks={size}, CUDA device=0", number % size),
            );
        }
        rank.all_reduce(0, &[(start, 500)]).trace()
    };
    let found = compare(&[old(0, &[2], 100), old(1, &[2], 140)]);
    assert_eq!(found.ranks[1].last_count, Some(1));
    assert_eq!(found.communicators[0].communicator.to_string(), "only");
    // Of two communicators it is not known whose a kernel is.
    let found = compare(&[old(0, &[2, 2], 100), old(1, &[2, 2], 140)]);
    assert_eq!(found.straggler.as_ref(), None);
    assert_eq!(found.collectives[0].unassigned_count, 2);
    assert_says(&found, "only since 2.25");
    // Four ranks with one of two each are of two groups, and which is not known.
    let four: Vec<Trace> = (0..4)
        .map(|n| old(n, &[2], 100 + 40 * i64::from(n)))
        .collect();
    let found = compare(&four);
    assert_eq!(found.straggler.as_ref(), None);
    assert_eq!(found.collectives[0].unassigned_count, 4);
}

#[test]
fn kernels_of_graphs_are_of_the_only_communicator_and_otherwise_of_none() {
    let graph = |number: u32, start: i64, several: bool| {
        let mut rank = Rank::new(number).init(WORLD, 2, number);
        if several {
            rank = rank.init(WORLD + 1, 2, number);
        }
        let mut rank = rank.all_reduce(WORLD, &[(100, 200)]);
        rank.kernel(ALL_REDUCE, start - 50, [start, 500]);
        rank.trace()
    };
    let found = compare(&[graph(0, 300, false), graph(1, 350, false)]);
    assert_eq!(found.collectives[0].matched_count, 2);
    assert_eq!(found.collectives[0].skew.total_ns, Some(50 * US));
    let found = compare(&[graph(0, 300, true), graph(1, 350, true)]);
    let kind = &found.collectives[0];
    assert_eq!((kind.matched_count, kind.unassigned_count), (1, 2));
    assert_eq!(kind.skew.timed_count, 0);
    assert_says(&found, "of 2 of 4 it is not known, because graphs ran them");
}

#[test]
fn a_group_of_calls_gives_its_kernels_the_communicator_that_all_name() {
    let grouped = |number: u32, communicators: [u64; 2], start: i64| {
        let mut rank = Rank::new(number)
            .init(WORLD, 2, number)
            .init(WORLD + 1, 2, number);
        rank.range("ncclGroupStart", "", [start - 30, start - 29]);
        for (at, communicator) in (1..).zip(communicators) {
            rank.range(
                "ncclAllReduce",
                &format!("NCCL communicator ID={communicator}, Message size [bytes]=500"),
                [start - 29 + at, start - 28 + at],
            );
        }
        rank.range("ncclGroupEnd", "", [start - 20, start - 5]);
        rank.kernel(ALL_REDUCE, start - 10, [start, 500]);
        rank.trace()
    };
    let found = compare(&[grouped(0, [WORLD; 2], 100), grouped(1, [WORLD; 2], 130)]);
    assert_eq!(found.collectives[0].skew.total_ns, Some(30 * US));
    // Two calls in one kernel.
    assert_eq!(found.bandwidth[0].bytes, 1000);
    let found = compare(&[
        grouped(0, [WORLD, WORLD + 1], 100),
        grouped(1, [WORLD, WORLD + 1], 130),
    ]);
    assert_eq!(found.collectives[0].matched_count, 0);
    assert_eq!(found.collectives[0].unassigned_count, 2);
}

#[test]
fn messages_are_matched_by_communicator_and_peer() {
    let make = |number: u32| Rank::new(number).init(WORLD, 3, number);
    let (mut zero, mut one, mut two) = (make(0), make(1), make(2));
    // 0 sends to 1, and later 2 to 1; between, 0 and 1 exchange.
    zero.messages(&[("ncclSend", 1)], [100, 200]);
    one.messages(&[("ncclRecv", 0)], [150, 200]);
    zero.messages(&[("ncclSend", 1), ("ncclRecv", 1)], [300, 400]);
    one.messages(&[("ncclRecv", 0), ("ncclSend", 0)], [320, 400]);
    two.messages(&[("ncclSend", 1)], [500, 700]);
    one.messages(&[("ncclRecv", 2)], [630, 700]);
    let found = compare(&[zero.trace(), one.trace(), two.trace()]);
    let kind = &found.collectives[0];
    assert_eq!((kind.kind, kind.matched_count), ("SendRecv", 3));
    assert_eq!(kind.counts, [2, 3, 1]);
    assert_eq!(kind.skew.total_ns, Some((50 + 20 + 130) * US));
    assert_eq!(waited_us(&found), [Some(70), Some(0), Some(130)]);
    // Who receives early waits for what others compute: only of the exchange there is a last.
    let last: Vec<_> = found.ranks.iter().map(|rank| rank.last_count).collect();
    assert_eq!(last, [Some(0), Some(1), Some(0)]);
    // Where the other rank is not known, they are counted.
    let mut bare = Rank::new(0);
    bare.kernel(SEND_RECV, 92, [100, 200]);
    let found = compare(&[bare.trace(), bare.trace()]);
    let kind = &found.collectives[0];
    assert_eq!(kind.matched_count, 0);
    assert_eq!(kind.unassigned_count, 2);
    assert_eq!(kind.skew.timed_count, 0);
}

#[test]
fn messages_to_and_from_every_rank_are_all_to_all() {
    let all = |number: u32, start: i64| {
        let mut rank = Rank::new(number).init(WORLD, 3, number);
        let peers: Vec<_> = (0..3)
            .flat_map(|peer| [("ncclSend", peer), ("ncclRecv", peer)])
            .collect();
        rank.messages(&peers, [start, 300]);
        rank.trace()
    };
    let found = compare(&[all(0, 100), all(1, 150), all(2, 110)]);
    let kind = &found.collectives[0];
    assert_eq!((kind.kind, kind.matched_count), ("AllToAll", 1));
    assert_eq!(kind.skew.total_ns, Some(50 * US));
    let bandwidth = &found.bandwidth[0];
    assert_eq!(bandwidth.bytes, 3000);
    assert_eq!(bandwidth.time.p50_ns, Some(150 * US));
}

#[test]
fn of_thousands_of_missing_ranks_some_are_named_and_of_billions_none_is_believed() {
    let of = |world_size: u32| {
        let mut trace = rank(0, 2, &[(100, 200)]);
        trace.manifest.rank = Some(manifest::Rank {
            rank: 0,
            local_rank: None,
            world_size,
        });
        compare(&[trace])
    };
    let found = of(5_000);
    assert_eq!(found.missing_ranks.len(), 4_999);
    assert_says(&found, "4999 have no trace here: 1, 2, 3, 4, 5, 6, 7, 8, …");
    let found = of(u32::MAX);
    assert_eq!((found.world_size, found.missing_ranks.len()), (None, 0));
}

/// Returns the trace of one of three ranks, with collectives at `times`.
fn of_three(number: u32, times: &[(i64, i64)]) -> Trace {
    let mut trace = rank(number, 3, times);
    trace.manifest.rank = Some(manifest::Rank {
        rank: number,
        local_rank: Some(number),
        world_size: 3,
    });
    trace
}

#[test]
fn missing_ranks_and_unequal_numbers_are_said() {
    let all = [(100, 200), (300, 400)];
    let found = compare(&[of_three(0, &all), of_three(1, &[(140, 200)])]);
    assert_eq!(found.missing_ranks, [2]);
    assert_eq!(found.collectives[0].counts, [2, 1]);
    assert_says(&found, "no trace here: 2");
    // The missing one may have been later.
    assert_eq!(found.collectives[0].matched_count, 0);
    assert_eq!(found.collectives[0].incomplete_count, 3);
    assert_eq!(found.straggler, None);
    assert_says(
        &found,
        "3 AllReduce are of communicators whose ranks are not all known to have a trace here",
    );
    let found = compare(&[
        of_three(0, &all),
        of_three(1, &[(140, 200)]),
        of_three(2, &all),
    ]);
    assert_eq!(found.missing_ranks, [0; 0]);
    assert_says(&found, "differ in their numbers of AllReduce");
}

#[test]
fn a_rank_whose_work_is_lost_is_left_out_by_name() {
    let all = [(100, 200), (300, 400)];
    let mut lost = of_three(2, &all);
    lost.tables.dispatches = Default::default();
    let found = compare(&[of_three(0, &all), of_three(1, &all), lost]);
    let sentence = &found.verdict_sentence;
    assert!(
        sentence.ends_with(
            "These shares leave out rank 2, whose trace has no GPU work with known times."
        ),
        "{sentence}"
    );
    assert_eq!(
        found.ranks[2].collective_ns, None,
        "its collectives are lost"
    );
    assert!(found.ranks[0].collective_ns.is_some());
    let said = found.sentences.join(" ");
    assert!(!said.contains("ranks without a trace"), "{said}");
    // With all ranks nothing is left out.
    let found = compare(&[of_three(0, &all), of_three(1, &all), of_three(2, &all)]);
    assert!(!found.verdict_sentence.contains("leave out"));
}

#[test]
fn calls_of_collectives_are_matched_by_their_labels() {
    let found = compare(&[rank(0, 2, &[(500, 600)]), rank(1, 2, &[(550, 600)])]);
    assert_eq!(found.collective_calls[0].kind, "AllReduce");
    assert_eq!(found.collective_calls[0].skew.total_ns, Some(50 * US));
    // Labels of a framework name no communicator.
    let labelled = || {
        let mut rank = Rank::new(0);
        let label = Rank::number(&mut rank.labels, "nccl:all_reduce");
        rank.text += &format!(
            "marker process=1 scope=thread thread=7 label={label} start_ns=5us duration_ns=3us\n"
        );
        rank.trace()
    };
    let found = compare(&[labelled(), labelled()]);
    let calls = &found.collective_calls[0];
    assert_eq!(calls.kind, "AllReduce");
    assert_eq!(calls.matched_count, 0);
    assert_eq!(calls.unassigned_count, 2);
}
