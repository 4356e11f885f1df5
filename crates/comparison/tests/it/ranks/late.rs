//! Which ranks are called late: beyond chance, beyond the clocks' error, and never for their place in a pipeline.

use super::{ALL_REDUCE, Rank, SEND_RECV, US, WORLD, assert_says, compare};
use gapscope_trace::Trace;

/// Lateness in microseconds, by the number of the collective and the rank.
type Late<'a> = &'a dyn Fn(i64, u32) -> i64;

/// Ranks that compute for 1000 us and then reduce, each later by what the function says.
fn data_parallel(ranks: u32, steps: i64, late: Late) -> Vec<Trace> {
    let times = |number: u32| {
        (0..steps).map(move |step| {
            let at = 2_000 * step + 1_000;
            (at + late(step, number), at + 900)
        })
    };
    let trace = |number: u32| {
        let times: Vec<_> = times(number).collect();
        let rank = Rank::new(number).init(WORLD, ranks, number);
        rank.all_reduce(WORLD, &times).trace()
    };
    (0..ranks).map(trace).collect()
}

/// Noise of at most 100 us, the same in each run.
fn noise(step: i64, rank: u32) -> i64 {
    let mixed = (step * 64 + i64::from(rank) + 1).wrapping_mul(6_364_136_223_846_793_005);
    (mixed >> 33).rem_euclid(100)
}

#[test]
fn a_rank_is_late_beyond_chance_only() {
    type Case = (&'static str, u32, i64, fn(i64, u32) -> i64, Option<u32>);
    let cases: [Case; 8] = [
        ("equal ranks with noise", 4, 200, noise, None),
        ("two equal ranks", 2, 200, noise, None),
        ("64 equal ranks", 64, 40, noise, None),
        (
            "a late rank",
            4,
            40,
            |step, rank| noise(step, rank) + if rank == 2 { 150 } else { 0 },
            Some(2),
        ),
        (
            "one of 64",
            64,
            20,
            |step, rank| noise(step, rank) + if rank == 37 { 200 } else { 0 },
            Some(37),
        ),
        (
            "three collectives are too few",
            4,
            3,
            |_, rank| if rank == 2 { 150 } else { 0 },
            None,
        ),
        (
            "late within the clocks' error",
            4,
            100,
            |_, rank| if rank == 2 { 2 } else { 0 },
            None,
        ),
        (
            "a part of the time",
            4,
            100,
            |step, rank| {
                let slow = rank == 1 && (40..60).contains(&step);
                noise(step, rank) + if slow { 600 } else { 0 }
            },
            Some(1),
        ),
    ];
    for (name, ranks, steps, late, expected) in cases {
        let found = compare(&data_parallel(ranks, steps, &late));
        let straggler = found.straggler.as_ref().map(|straggler| straggler.rank);
        assert_eq!(straggler, expected, "{name}");
        if let Some(straggler) = &found.straggler {
            assert!(straggler.chance <= 0.01, "{name}");
            let is_part = straggler.why.stretch.is_some();
            assert_eq!(is_part, name == "a part of the time", "{name}");
        }
    }
}

#[test]
fn a_stretch_of_lateness_has_its_times() {
    let late = |step: i64, rank: u32| match rank == 1 && (40..60).contains(&step) {
        true => 600,
        false => 0,
    };
    let found = compare(&data_parallel(4, 100, &late));
    let straggler = found.straggler.as_ref().unwrap();
    let stretch = straggler.why.stretch.unwrap();
    assert!(stretch.start_ns >= 70_000 * US && stretch.end_ns <= 130_000 * US);
    assert_eq!(straggler.cost_ns, 20 * 600 * US);
    assert_says(&found, "most of it from");
}

#[test]
fn a_rank_of_one_group_is_told_from_the_other_group() {
    // Two tensor-parallel groups of four; rank 5 is late in its own.
    let trace = |number: u32| {
        let group = u64::from(number / 4);
        let times: Vec<_> = (0..40)
            .map(|step| {
                let late = noise(step, number) + if number == 5 { 200 } else { 0 };
                (2_000 * step + 1_000 + late, 2_000 * step + 1_900)
            })
            .collect();
        Rank::new(number)
            .init(100 + group, 4, number % 4)
            .all_reduce(100 + group, &times)
            .trace()
    };
    let found = compare(&(0..8).map(trace).collect::<Vec<_>>());
    assert_eq!(found.straggler.unwrap().rank, 5);
}

/// Stages that each compute micro-batches and pass them on; the next stage posts its receives early. `slow` computes for half as
/// long again.
fn pipeline(stages: u32, slow: Option<u32>, reduces: bool) -> Vec<Trace> {
    let mut ranks: Vec<Rank> = (0..stages)
        .map(|number| Rank::new(number).init(WORLD, stages, number))
        .collect();
    let usual = 1_000;
    let pace = if slow.is_some() { 1_500 } else { usual };
    let mut begin = 1_000;
    for _ in 0..10 {
        for number in 0..stages {
            let rank = &mut ranks[number as usize];
            let computes = if slow == Some(number) { pace } else { usual };
            let mut free = begin;
            for batch in 0..8 {
                // The stage before has this batch ready then.
                let start = begin + (i64::from(number) + batch) * (pace + 100);
                if number > 0 {
                    rank.messages(&[("ncclRecv", number - 1)], [free + 30, start]);
                }
                rank.kernel("forward", start - 5, [start + 1, start + computes]);
                free = start + computes + 1;
                if number + 1 < stages {
                    rank.messages(&[("ncclSend", number + 1)], [free, start + pace + 60]);
                    free = start + pace + 61;
                }
            }
            if reduces {
                // The last stage is last by the order of the work.
                let end = begin + (i64::from(stages) + 8) * (pace + 100) + 200;
                let payload = format!("NCCL communicator ID={WORLD}, Message size [bytes]=64");
                rank.range("ncclAllReduce", &payload, [free + 1, free + 3]);
                rank.kernel(ALL_REDUCE, free + 2, [free + 10, end]);
            }
        }
        begin += (i64::from(stages) + 8) * (pace + 100) + 500;
    }
    ranks.iter().map(Rank::trace).collect()
}

#[test]
fn a_healthy_pipeline_has_no_late_rank() {
    for reduces in [false, true] {
        let found = compare(&pipeline(4, None, reduces));
        assert_eq!(found.straggler, None, "{reduces}");
        assert_eq!(found.outliers, [], "{reduces}");
        let pipeline = &found.pipelines[0];
        assert_eq!(pipeline.ranks, [0, 1, 2, 3]);
        assert_eq!(pipeline.slowest, None);
        assert_says(&found, "Ranks 0 to 3 are stages of a pipeline");
    }
    let found = compare(&pipeline(4, Some(2), false));
    assert_eq!(found.straggler, None);
    assert_eq!(found.pipelines[0].slowest, Some(2));
    assert_says(&found, "Rank 2 computes for 50.0 % longer than the next");
}

#[test]
fn few_messages_make_no_pipeline() {
    // One message at the start, and a rank that is late at each of the collectives that follow.
    let trace = |number: u32| {
        let mut rank = Rank::new(number).init(WORLD, 2, number);
        let (call, peer) = if number == 0 {
            ("ncclSend", 1)
        } else {
            ("ncclRecv", 0)
        };
        rank.messages(&[(call, peer)], [100, 200]);
        rank.messages(&[(call, peer)], [300, 400]);
        let late = 100 * i64::from(number);
        let times: Vec<_> = (1..20)
            .map(|n| (1_000 * n + late, 1_000 * n + 500))
            .collect();
        rank.all_reduce(WORLD, &times).trace()
    };
    let found = compare(&[trace(0), trace(1)]);
    assert_eq!(found.pipelines, []);
    assert_eq!(found.straggler.unwrap().rank, 1);
}

#[test]
fn an_exchange_between_neighbours_is_no_pipeline() {
    // A ring: each sends to the next and receives from the one before, in one kernel. Rank 2 comes late.
    let trace = |number: u32| {
        let mut rank = Rank::new(number).init(WORLD, 4, number);
        for step in 1..30 {
            let (next, before) = ((number + 1) % 4, (number + 3) % 4);
            let start = 1_000 * step + noise(step, number) + if number == 2 { 200 } else { 0 };
            let messages = [("ncclSend", next), ("ncclRecv", before)];
            rank.messages(&messages, [start, 1_000 * step + 600]);
        }
        rank.trace()
    };
    let found = compare(&(0..4).map(trace).collect::<Vec<_>>());
    assert_eq!(
        found.collectives[0].kind,
        SEND_RECV.trim_start_matches("ncclDevKernel_")
    );
    assert_eq!(found.pipelines, []);
    assert_eq!(found.straggler.unwrap().rank, 2);
}

#[test]
fn a_recording_that_began_late_does_not_shift_the_match() {
    let late = |step: i64, rank: u32| noise(step, rank);
    let mut traces = data_parallel(4, 40, &late);
    let times: Vec<_> = (3..40)
        .map(|step| (2_000 * step + 1_000 + noise(step, 2), 2_000 * step + 1_900))
        .collect();
    traces[2] = Rank::new(2)
        .init(WORLD, 4, 2)
        .all_reduce(WORLD, &times)
        .trace();
    let found = compare(&traces);
    let kind = &found.collectives[0];
    assert_eq!((kind.matched_count, kind.unpaired_count), (37, 9));
    assert_eq!(kind.contradictory_count, Some(0));
    assert!(kind.skew.max_ns < Some(100 * US));
    assert_eq!(found.straggler, None);
    assert_says(&found, "9 of 157 AllReduce have no counterpart");
}

#[test]
fn collectives_with_numbers_are_matched_by_them() {
    // Rank 1 lacks the first two, and no times compare. Its third is the first one's third.
    let numbered = |number: u32, first: i64| {
        let mut rank = Rank::new(number).init(WORLD, 2, number);
        for sequence in first..10 {
            let start = 1_000 * sequence + 1_000 + 40 * i64::from(number);
            let payload = format!(
                "NCCL communicator ID={WORLD}, Message size [bytes]=64, Collective name=allreduce, Seq={sequence}"
            );
            rank.range("ncclAllReduce", &payload, [start - 10, start - 5]);
            rank.kernel(ALL_REDUCE, start - 8, [start, 1_000 * sequence + 1_500]);
        }
        let mut trace = rank.trace();
        trace.manifest.devices[0].clock.error_ns = None;
        trace
    };
    let found = compare(&[numbered(0, 0), numbered(1, 2)]);
    let kind = &found.collectives[0];
    assert_eq!((kind.matched_count, kind.unpaired_count), (8, 2));
    assert!(!kind.by_order_alone);
    let calls = &found.collective_calls[0];
    assert_eq!(calls.skew.max_ns, Some(40 * US));
}
