//! Who arrives last and why, what the others wait, how fast collectives are.

use super::{ALL_REDUCE, Rank, US, WORLD, assert_begins, assert_says, compare, rank, waited_us};
use gapscope_analysis::gaps::Cause;
use gapscope_analysis::verdict::Bound;
use gapscope_comparison::ranks::Doing;

#[test]
fn the_last_to_arrive_is_found_and_what_the_others_wait() {
    let found = compare(&[
        rank(0, 3, &[(100, 200), (300, 500), (700, 800)]),
        rank(1, 3, &[(110, 200), (450, 500), (690, 800)]),
        rank(2, 3, &[(150, 200), (310, 500), (695, 800)]),
    ]);
    let kind = &found.collectives[0];
    assert_eq!(kind.kind, "AllReduce");
    assert_eq!(kind.matched_count, 3);
    assert_eq!(kind.contradictory_count, Some(0));
    assert_eq!(kind.skew.total_ns, Some((50 + 150 + 10) * US));
    assert_eq!(
        waited_us(&found),
        [Some(50 + 150), Some(40 + 10), Some(140 + 5)]
    );
    let last: Vec<_> = (found.ranks.iter())
        .map(|r| (r.last_count.unwrap(), r.last_skew_ns.unwrap() / US))
        .collect();
    assert_eq!(last, [(1, 10), (1, 150), (1, 50)]);
    // Of three collectives each rank is the last of one: chance.
    assert_eq!(found.straggler, None);
    let longest = &found.longest[0];
    assert_eq!(longest.last_rank, 1);
    assert_eq!(longest.number, 1);
    assert_eq!(longest.skew_ns, 150 * US);
    let arrivals: Vec<_> = (longest.arrivals.iter())
        .map(|a| (a.rank, a.start_ns / US, a.waited_ns.map(|ns| ns / US)))
        .collect();
    assert_eq!(
        arrivals,
        [(0, 300, Some(150)), (2, 310, Some(140)), (1, 450, None)]
    );
    assert!(longest.arrivals.iter().all(|a| a.queue.is_some()));
    // The parts of all ranks together are the sums of theirs.
    let sum = |what: &str| {
        let parts = found.ranks.iter().flat_map(|r| &r.verdict_evidence);
        parts
            .filter(|p| p.what == what)
            .map(|p| p.total_ns)
            .sum::<i64>()
    };
    for part in &found.verdict_evidence {
        assert_eq!(part.total_ns, sum(part.what), "{}", part.what);
    }
    assert_eq!(found.verdict, Bound::HostBound);
    assert_begins(
        &found.verdict_sentence,
        "The critical path through all ranks waits for the host for 7",
    );
    assert_eq!(found.ranks[0].collective_ns, Some(400 * US));
    assert_eq!(found.clock_error_ns, Some(2 * US));
    let communicator = &found.communicators[0];
    assert_eq!(communicator.communicator.to_string(), "0x4d");
    assert_eq!(communicator.size, Some(3));
    assert!(communicator.complete);
    assert_says(
        &found,
        "No rank is late by more than chance: rank 1 was last most often, at 1 of 3 collectives",
    );
}

#[test]
fn kernels_that_do_not_overlap_are_no_one_collective() {
    let found = compare(&[
        rank(0, 2, &[(100, 200), (300, 400)]),
        rank(1, 2, &[(100, 200), (900, 950)]),
    ]);
    assert_eq!(found.collectives[0].contradictory_count, Some(1));
    assert_eq!(found.collectives[0].skew.timed_count, 0);
    assert_eq!(found.straggler.as_ref(), None);
    assert_eq!(found.bandwidth[0].time.timed_count, 1);
    // A broadcast's sender need not wait for those who receive.
    let broadcast = |number: u32, times: [i64; 2]| {
        let mut rank = Rank::new(number).init(WORLD, 2, number);
        let kernel = "ncclDevKernel_Broadcast_RING_LL";
        rank.collective("ncclBroadcast", kernel, WORLD, 64, times);
        rank.trace()
    };
    let found = compare(&[broadcast(0, [300, 400]), broadcast(1, [900, 950])]);
    assert_eq!(found.collectives[0].contradictory_count, Some(0));
    assert_eq!(found.ranks[1].last_count, Some(1));
    // Of different sizes they are not one either.
    let sized = |number: u32, bytes: u64| {
        let mut rank = Rank::new(number).init(WORLD, 2, number);
        rank.collective("ncclAllReduce", ALL_REDUCE, WORLD, bytes, [100, 200]);
        rank.trace()
    };
    let found = compare(&[sized(0, 64), sized(1, 65)]);
    assert_eq!(found.collectives[0].contradictory_count, Some(1));
}

#[test]
fn skew_below_the_clocks_error_counts_for_nothing() {
    // Each clock is known within 1 us: of the 2 us of the first pair nothing is certain, of the 3 us of the second all.
    let found = compare(&[
        rank(0, 2, &[(100, 200), (300, 400)]),
        rank(1, 2, &[(102, 200), (303, 400)]),
    ]);
    let kind = &found.collectives[0];
    assert_eq!((kind.uncertain_count, kind.skew.timed_count), (Some(1), 1));
    assert_eq!(kind.skew.total_ns, Some(3 * US));
    assert_eq!(waited_us(&found), [Some(3), Some(0)]);
    assert_eq!(found.ranks[1].last_count, Some(1));
    assert_says(
        &found,
        "The skew of 1 of 2 matched AllReduce is within the clocks' error",
    );
}

#[test]
fn the_error_is_that_of_the_two_ranks_and_a_tie_has_no_last() {
    // Rank 2's clock is bad; 0 and 1 compare within 2 us even so.
    let mut bad = rank(2, 3, &[(100, 200), (300, 500)]);
    bad.manifest.devices[0].clock.error_ns = Some(60 * US);
    let found = compare(&[
        rank(0, 3, &[(100, 200), (300, 500)]),
        rank(1, 3, &[(150, 200), (450, 500)]),
        bad,
    ]);
    let kind = &found.collectives[0];
    // At the first one rank 2 may have been the last; at the second it was not.
    assert_eq!(kind.skew.total_ns, Some((50 + 150) * US));
    assert_eq!(kind.uncertain_count, Some(0));
    assert_eq!(kind.last_unknown_count, Some(1));
    assert_eq!(found.ranks[1].last_count, Some(1));
    assert_eq!(waited_us(&found), [Some(200), Some(0), Some(150)]);
}

#[test]
fn bandwidth_is_of_the_time_after_the_last_arrival() {
    let make = |number: u32, start: i64| {
        let mut rank = Rank::new(number).init(WORLD, 2, number);
        let bytes = 1_000_000;
        rank.collective("ncclAllReduce", ALL_REDUCE, WORLD, bytes, [start, 500]);
        let (gather, times) = ("ncclDevKernel_AllGather_RING_LL", [start + 600, 1100]);
        rank.collective("ncclAllGather", gather, WORLD, bytes, times);
        rank.trace()
    };
    let found = compare(&[make(0, 100), make(1, 400)]);
    // 1 MB in 100 us; on two ranks the bus carries once as much.
    let of = |kind| found.bandwidth.iter().find(|b| b.kind == kind).unwrap();
    let reduce = of("AllReduce");
    assert_eq!(reduce.bytes, 1_000_000);
    assert_eq!(reduce.ranks, 2);
    assert_eq!(reduce.time.p50_ns, Some(100 * US));
    assert_eq!(reduce.algorithm_bytes_per_s, 1e10);
    assert_eq!(reduce.bus_bytes_per_s, 1e10);
    // A gather's message is one rank's part.
    let gather = of("AllGather");
    assert_eq!(gather.bytes, 2_000_000);
    assert_eq!(gather.algorithm_bytes_per_s, 2e10);
    assert_eq!(gather.bus_bytes_per_s, 1e10);
}

#[test]
fn a_time_that_the_clocks_do_not_tell_within_a_tenth_is_the_shortest_kernels() {
    // Rank 1 arrives last and rank 0 ends last; their times compare within 2 us.
    for (end, time) in [(520, 20), (519, 15)] {
        let found = compare(&[rank(0, 2, &[(100, end)]), rank(1, 2, &[(500, 515)])]);
        assert_eq!(found.bandwidth[0].time.p50_ns, Some(time * US), "{end}");
    }
}

#[test]
fn without_a_known_error_of_a_clock_nobody_is_last() {
    let mut unknown = rank(1, 2, &[(150, 200), (900, 950)]);
    unknown.manifest.devices[0].clock.error_ns = None;
    let found = compare(&[rank(0, 2, &[(100, 200), (300, 400)]), unknown]);
    let reason = found.not_comparable_because.unwrap();
    assert!(reason.contains("rank 1 is not known"), "{reason}");
    assert_eq!(found.clock_error_ns, None);
    let kind = &found.collectives[0];
    assert_eq!((kind.matched_count, kind.skew.timed_count), (2, 0));
    assert_eq!(kind.contradictory_count, None);
    assert_eq!(kind.uncertain_count, None);
    assert_eq!(found.straggler, None);
    assert!(found.longest.is_empty());
    for rank in &found.ranks {
        assert_eq!(rank.waited_ns, None);
        assert_eq!(rank.last_count, None);
        assert_eq!(rank.last_skew_ns, None);
    }
    // The hosts' calls have no such error.
    let calls = &found.collective_calls[0];
    assert_eq!(calls.kind, "AllReduce");
    assert_eq!(calls.skew.total_ns, Some((50 + 600) * US));
}

#[test]
fn what_the_straggler_did_longer_is_the_cause() {
    // The others compute 100 us between collectives. Rank 1 computes 60 us more, or launches 60 us later.
    let busy = |number: u32, compute: i64, late: i64| {
        let mut rank = Rank::new(number).init(WORLD, 3, number);
        for step in 0..6 {
            let at = 1000 * step + 100;
            rank.kernel("gemm", at - 30, [at, at + compute]);
            let start = at + compute + late;
            let payload = format!("NCCL communicator ID={WORLD}, Message size [bytes]=64");
            // Where the host is late, the call begins when the gap ends.
            let call = if late > 0 { start - 2 } else { at - 20 };
            rank.range("ncclAllReduce", &payload, [call, call + 2]);
            rank.kernel(ALL_REDUCE, call, [start, 1000 * step + 400]);
        }
        rank.trace()
    };
    let found = compare(&[busy(0, 100, 0), busy(1, 160, 0), busy(2, 100, 0)]);
    let straggler = found.straggler.as_ref().unwrap();
    assert_eq!((straggler.rank, straggler.last_count), (1, 6));
    let cause = straggler.why.cause.unwrap();
    // Of the first collective there is none before.
    assert_eq!((cause.what, cause.longer_ns), (Doing::Compute, 5 * 60 * US));
    assert!((cause.share - 1.0).abs() < 1e-9);
    assert_says(&found, "its GPU worked 300 µs longer than the others'");
    let found = compare(&[busy(0, 100, 0), busy(1, 100, 60), busy(2, 100, 0)]);
    let cause = found.straggler.as_ref().unwrap().why.cause.unwrap();
    assert_eq!(cause.what, Doing::Idle(Cause::HostLate));
    assert_eq!(cause.longer_ns, 5 * 58 * US);
    assert_says(&found, "host late, its thread");
    // Half of one and half of the other: from half on it is the cause.
    let found = compare(&[busy(0, 100, 0), busy(1, 130, 32), busy(2, 100, 0)]);
    let straggler = found.straggler.as_ref().unwrap();
    assert_eq!(straggler.why.cause, None, "{:?}", straggler.why.longer);
    let found = compare(&[busy(0, 100, 0), busy(1, 130, 30), busy(2, 100, 0)]);
    assert_eq!(
        found.straggler.unwrap().why.cause.unwrap().what,
        Doing::Compute
    );
}

#[test]
fn what_costs_most_is_said_first() {
    // Ranks that idle for most of the time, and a skew beside that is small.
    let idle = |number: u32, late: i64| {
        let mut rank = Rank::new(number).init(WORLD, 2, number);
        for step in 1..20 {
            let at = 1000 * step + late;
            let payload = format!("NCCL communicator ID={WORLD}, Message size [bytes]=64");
            rank.range("ncclAllReduce", &payload, [at - 8, at - 2]);
            rank.kernel(ALL_REDUCE, at - 5, [at, 1000 * step + 200]);
        }
        rank.trace()
    };
    let found = compare(&[idle(0, 0), idle(1, 20)]);
    assert_eq!(found.ranks[0].verdict, Bound::HostBound);
    assert_begins(
        &found.sentences[0],
        "Both ranks are host-bound: their GPUs idle for",
    );
    assert_begins(&found.sentences[1], "Rank 1 arrived last");
    // Where they wait for each other for longer, that is first.
    let waiting = |number: u32, late: i64| {
        let times: Vec<_> = (0..10)
            .map(|n| (1000 * n + 20 + late, 1000 * n + 980))
            .collect();
        rank(number, 2, &times)
    };
    let found = compare(&[waiting(0, 0), waiting(1, 400)]);
    assert_begins(&found.sentences[0], "Rank 1 arrived last");
}

#[test]
fn an_exchange_that_is_short_beside_the_clocks_error_has_the_time_of_the_last_to_come() {
    let make = |number: u32| Rank::new(number).init(WORLD, 2, number);
    let (mut zero, mut one) = (make(0), make(1));
    // Within the clocks' 2 us it is not known how long both were there, but the second cannot have ended before the first came.
    zero.messages(&[("ncclSend", 1), ("ncclRecv", 1)], [100, 151]);
    one.messages(&[("ncclSend", 0), ("ncclRecv", 0)], [140, 150]);
    // One that only receives may end before the other comes.
    zero.messages(&[("ncclSend", 1)], [300, 351]);
    one.messages(&[("ncclRecv", 0)], [340, 350]);
    let found = compare(&[zero.trace(), one.trace()]);
    assert_eq!(found.bandwidth.len(), 1);
    let time = &found.bandwidth[0].time;
    assert_eq!((time.timed_count, time.p50_ns), (1, Some(10 * US)));
}
