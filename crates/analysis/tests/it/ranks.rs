//! Ranks of a distributed program: collectives matched by communicator, who arrives last and why, how fast they are.

use crate::program::{US, findings};
use gapscope_analysis::Timeline;
use gapscope_analysis::gaps::Cause;
use gapscope_analysis::ranks::{Doing, RankDigest, RankFindings, ranks};
use gapscope_analysis::verdict::Bound;
use gapscope_trace::Trace;
use gapscope_trace::manifest;
use std::fmt::Write;

const ALL_REDUCE: &str = "ncclDevKernel_AllReduce_Sum_f32_RING_LL";
const SEND_RECV: &str = "ncclDevKernel_SendRecv";
/// The communicator of all ranks.
const WORLD: u64 = 77;

/// The trace of a rank being written; times are in microseconds. Thread 7 calls NCCL.
struct Rank {
    text: String,
    kernels: Vec<String>,
    labels: Vec<String>,
    submissions: u64,
    communicators: i64,
}

impl Rank {
    fn new(rank: u32) -> Rank {
        Rank::with(&format!(
            "manifest sampling_mode=dispatch start_ns=0 end_ns=100ms start_unix_ns=1700000000000000000 host.system=one
             process id=1 pid={rank} hook=cuda
             device id=1 process=1 api=cuda name=GPU uuid=a{rank} clock.error_ns=1us
             queue id=1 device=1
             dispatch queue=1 kernel=1 start_ns=1us duration_ns=5us\n"
        ))
    }

    fn with(text: &str) -> Rank {
        Rank {
            text: text.to_owned(),
            kernels: vec!["gemm".to_owned()],
            labels: Vec::new(),
            submissions: 0,
            communicators: 0,
        }
    }

    fn number(list: &mut Vec<String>, text: &str) -> usize {
        let at = list.iter().position(|known| known == text);
        at.unwrap_or_else(|| {
            list.push(text.to_owned());
            list.len() - 1
        }) + 1
    }

    /// A range of NCCL's on process 1, thread 7.
    fn range(&mut self, name: &str, payload: &str, [start, end]: [i64; 2]) {
        self.range_of(1, name, payload, [start, end]);
    }

    fn range_of(&mut self, process: u32, name: &str, payload: &str, [start, end]: [i64; 2]) {
        let label = Rank::number(&mut self.labels, name);
        let payload = match payload {
            "" => String::new(),
            text => format!("payload=\"{text}\""),
        };
        writeln!(
            self.text,
            "marker process={process} scope=thread thread=7 label={label} domain=NCCL {payload} start_ns={start}us duration_ns={}us",
            end - start
        )
        .unwrap();
    }

    /// It becomes a member of a communicator.
    fn init(mut self, communicator: u64, size: u32, member: u32) -> Rank {
        let payload = format!(
            "NCCL communicator ID={communicator}, No. of ranks={size}, Rank={member}, CUDA device=0"
        );
        self.made("ncclCommInitRankConfig", &payload);
        self
    }

    /// A communicator is made; one after the other.
    fn made(&mut self, name: &str, payload: &str) {
        let at = 2 * self.communicators;
        self.communicators += 1;
        self.range(name, payload, [at, at + 1]);
    }

    /// A kernel that thread 7 launches at a time.
    fn kernel(&mut self, name: &str, launched: i64, [start, end]: [i64; 2]) {
        self.kernel_of(1, 1, name, launched, [start, end]);
    }

    fn kernel_of(
        &mut self,
        process: u32,
        queue: u32,
        name: &str,
        launched: i64,
        [start, end]: [i64; 2],
    ) {
        let kernel = Rank::number(&mut self.kernels, name);
        self.submissions += 1;
        let id = self.submissions;
        writeln!(
            self.text,
            "submission id={id} process={process} queue={queue} kind=kernel thread=7 start_ns={launched}us duration_ns=1us\n\
             dispatch queue={queue} kernel={kernel} submission={id} start_ns={start}us duration_ns={}us",
            end - start
        )
        .unwrap();
    }

    /// An all-reduce of 4096 bytes whose kernel runs then; its call is 10 us before.
    fn all_reduce(mut self, communicator: u64, times: &[(i64, i64)]) -> Rank {
        for (start, end) in times {
            self.collective(
                "ncclAllReduce",
                ALL_REDUCE,
                communicator,
                4096,
                [*start, *end],
            );
        }
        self
    }

    fn collective(
        &mut self,
        call: &str,
        kernel: &str,
        communicator: u64,
        bytes: u64,
        [start, end]: [i64; 2],
    ) {
        let payload = match communicator {
            0 => format!("Message size [bytes]={bytes}"),
            id => format!("NCCL communicator ID={id}, Message size [bytes]={bytes}"),
        };
        self.range(call, &payload, [start - 10, start - 5]);
        self.kernel(kernel, start - 8, [start, end]);
    }

    /// A group of messages in one kernel: what is sent and received, and the other rank.
    fn messages(&mut self, messages: &[(&str, u32)], [start, end]: [i64; 2]) {
        self.range("ncclGroupStart", "", [start - 20, start - 19]);
        for (at, (name, peer)) in messages.iter().enumerate() {
            let payload = format!(
                "NCCL communicator ID={WORLD}, Message size [bytes]=1000, Peer rank={peer}"
            );
            let call = start - 18 + at as i64;
            self.range(name, &payload, [call, call + 1]);
        }
        self.range("ncclGroupEnd", "", [start - 10, start - 5]);
        self.kernel(SEND_RECV, start - 8, [start, end]);
    }

    fn trace(&self) -> Trace {
        let mut text = self.text.clone();
        for (at, name) in self.kernels.iter().enumerate() {
            writeln!(text, "kernel id={} process=1 name={name}", at + 1).unwrap();
        }
        for (at, name) in self.labels.iter().enumerate() {
            writeln!(text, "label id={} text={name}", at + 1).unwrap();
        }
        Trace::from_text(&text).unwrap_or_else(|error| panic!("{error}\n{text}"))
    }
}

/// A rank of two or more with all-reduces at these microseconds, start and end.
fn rank(rank: u32, of: u32, all_reduces: &[(i64, i64)]) -> Trace {
    Rank::new(rank)
        .init(WORLD, of, rank)
        .all_reduce(WORLD, all_reduces)
        .trace()
}

fn compare(traces: &[Trace]) -> RankFindings {
    let digests: Vec<RankDigest> = (traces.iter().enumerate())
        .flat_map(|(rank, trace)| {
            RankDigest::of(&Timeline::of(trace), &findings(trace), rank as u32)
        })
        .collect();
    ranks(&digests, 10)
}

fn says(found: &RankFindings, text: &str) -> bool {
    found
        .sentences
        .iter()
        .any(|sentence| sentence.contains(text))
}

fn waited_us(found: &RankFindings) -> Vec<Option<i64>> {
    found
        .ranks
        .iter()
        .map(|r| r.waited_ns.map(|ns| ns / US))
        .collect()
}

#[test]
fn the_last_to_arrive_is_found_and_what_the_others_wait() {
    let found = compare(&[
        rank(0, 3, &[(100, 200), (300, 500), (700, 800)]),
        rank(1, 3, &[(110, 200), (450, 500), (690, 800)]),
        rank(2, 3, &[(150, 200), (310, 500), (695, 800)]),
    ]);
    let kind = &found.collectives[0];
    assert_eq!(
        (kind.kind, kind.matched_count, kind.contradictory_count),
        ("AllReduce", 3, Some(0))
    );
    assert_eq!(kind.skew.total_ns, Some((50 + 150 + 10) * US));
    assert_eq!(
        waited_us(&found),
        [Some(50 + 150), Some(40 + 10), Some(140 + 5)]
    );
    let last: Vec<_> = (found.ranks.iter())
        .map(|r| (r.last_count.unwrap(), r.last_skew_ns.unwrap() / US))
        .collect();
    assert_eq!(last, [(1, 10), (1, 150), (1, 50)]);
    let worst = found.straggler.as_ref().unwrap();
    assert_eq!((worst.rank, worst.last_count, worst.of_count), (1, 1, 3));
    let longest = &found.longest[0];
    assert_eq!(
        (longest.last_rank, longest.number, longest.skew_ns),
        (1, 1, 150 * US)
    );
    assert_eq!(found.ranks[0].collective_ns, Some(400 * US));
    assert_eq!(found.clock_error_ns, Some(2 * US));
    let communicator = &found.communicators[0];
    assert_eq!(
        (
            communicator.communicator.to_string(),
            communicator.size,
            communicator.complete
        ),
        ("0x4d".to_owned(), Some(3), true)
    );
    assert!(
        says(&found, "Rank 1 arrived last at 1 of 3 collectives"),
        "{:?}",
        found.sentences
    );
}

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
    assert_eq!(
        (kind.matched_count, kind.counts.as_slice()),
        (40, &[20; 4][..])
    );
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
    assert_eq!(
        (found.straggler.as_ref(), waited_us(&found)),
        (None, vec![None; 2])
    );
    assert!(
        says(&found, "no NVTX payloads of NCCL"),
        "{:?}",
        found.sentences
    );
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
    assert_eq!(found.straggler.as_ref().unwrap().rank, 1);
    assert_eq!(found.communicators[0].communicator.to_string(), "only");
    // Of two communicators it is not known whose a kernel is.
    let found = compare(&[old(0, &[2, 2], 100), old(1, &[2, 2], 140)]);
    assert_eq!(
        (
            found.straggler.as_ref(),
            found.collectives[0].unassigned_count
        ),
        (None, 2)
    );
    assert!(says(&found, "only since 2.25"), "{:?}", found.sentences);
    // Four ranks with one of two each are of two groups, and which is not known.
    let four: Vec<Trace> = (0..4)
        .map(|n| old(n, &[2], 100 + 40 * i64::from(n)))
        .collect();
    let found = compare(&four);
    assert_eq!(
        (
            found.straggler.as_ref(),
            found.collectives[0].unassigned_count
        ),
        (None, 4)
    );
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
    assert!(
        says(&found, "of 2 of 4 it is not known, because graphs ran them"),
        "{:?}",
        found.sentences
    );
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
    assert_eq!(
        (
            found.collectives[0].matched_count,
            found.collectives[0].unassigned_count
        ),
        (0, 2)
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
    assert_eq!(
        (
            found.straggler.as_ref(),
            found.bandwidth[0].time.timed_count
        ),
        (None, 1)
    );
    // A broadcast's sender need not wait for those who receive.
    let broadcast = |number: u32, times: [i64; 2]| {
        let mut rank = Rank::new(number).init(WORLD, 2, number);
        rank.collective(
            "ncclBroadcast",
            "ncclDevKernel_Broadcast_RING_LL",
            WORLD,
            64,
            times,
        );
        rank.trace()
    };
    let found = compare(&[broadcast(0, [300, 400]), broadcast(1, [900, 950])]);
    assert_eq!(found.collectives[0].contradictory_count, Some(0));
    assert_eq!(found.straggler.unwrap().rank, 1);
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
    assert!(says(
        &found,
        "The skew of 1 of 2 matched AllReduce is within the clocks' error"
    ));
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
    assert_eq!(
        (kind.uncertain_count, kind.last_unknown_count),
        (Some(0), Some(1))
    );
    assert_eq!(found.ranks[1].last_count, Some(1));
    assert_eq!(waited_us(&found), [Some(200), Some(0), Some(150)]);
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
    assert_eq!(found.straggler.unwrap().rank, 1);
    // Where the other rank is not known, they are counted.
    let mut bare = Rank::new(0);
    bare.kernel(SEND_RECV, 92, [100, 200]);
    let found = compare(&[bare.trace(), bare.trace()]);
    let kind = &found.collectives[0];
    assert_eq!(
        (
            kind.matched_count,
            kind.unassigned_count,
            kind.skew.timed_count
        ),
        (0, 2, 0)
    );
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
    assert_eq!(
        (bandwidth.bytes, bandwidth.time.p50_ns),
        (3000, Some(150 * US))
    );
}

#[test]
fn bandwidth_is_of_the_time_after_the_last_arrival() {
    let make = |number: u32, start: i64| {
        let mut rank = Rank::new(number).init(WORLD, 2, number);
        rank.collective("ncclAllReduce", ALL_REDUCE, WORLD, 1_000_000, [start, 500]);
        let gather = "ncclDevKernel_AllGather_RING_LL";
        rank.collective(
            "ncclAllGather",
            gather,
            WORLD,
            1_000_000,
            [start + 600, 1100],
        );
        rank.trace()
    };
    let found = compare(&[make(0, 100), make(1, 400)]);
    // 1 MB in 100 us; on two ranks the bus carries once as much.
    let of = |kind| found.bandwidth.iter().find(|b| b.kind == kind).unwrap();
    let reduce = of("AllReduce");
    assert_eq!(
        (reduce.bytes, reduce.ranks, reduce.time.p50_ns),
        (1_000_000, 2, Some(100 * US))
    );
    assert_eq!(reduce.algorithm_bytes_per_s, 1e10);
    assert_eq!(reduce.bus_bytes_per_s, 1e10);
    // A gather's message is one rank's part.
    let gather = of("AllGather");
    assert_eq!(
        (
            gather.bytes,
            gather.algorithm_bytes_per_s,
            gather.bus_bytes_per_s
        ),
        (2_000_000, 2e10, 1e10)
    );
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
fn ranks_of_different_machines_are_matched_and_not_compared() {
    let mut other = rank(1, 2, &[(100, 200)]);
    let unix_ns = other.manifest.start_unix_ns.as_mut().unwrap();
    *unix_ns += 3_600_000_000_000;
    let found = compare(&[rank(0, 2, &[(100, 200)]), other]);
    let reason = found.not_comparable_because.unwrap();
    assert!(reason.contains("different machines"), "{reason}");
    assert_eq!(found.collectives[0].matched_count, 1);
    assert_eq!(found.collectives[0].skew.timed_count, 0);
    assert_eq!(found.ranks[0].waited_ns, None);
    // The shortest kernel gives a bandwidth without any clock.
    assert_eq!(found.bandwidth[0].time.p50_ns, Some(100 * US));
}

#[test]
fn one_boot_is_one_clock_whatever_the_wall_clock_says() {
    let booted = |number: u32, start: i64, boot: &str, namespace: u64| {
        let mut trace = rank(number, 2, &[(start, 200)]);
        trace.manifest.host.boot_id = Some(boot.to_owned());
        trace.manifest.host.time_namespace = Some(namespace);
        *trace.manifest.start_unix_ns.as_mut().unwrap() += 5_000_000_000 * i64::from(number);
        trace
    };
    let found = compare(&[booted(0, 100, "a", 1), booted(1, 150, "a", 1)]);
    assert_eq!(found.straggler.unwrap().rank, 1);
    for (boot, namespace) in [("b", 1), ("a", 2)] {
        let found = compare(&[booted(0, 100, "a", 1), booted(1, 150, boot, namespace)]);
        assert!(found.not_comparable_because.is_some(), "{boot} {namespace}");
        assert_eq!(found.straggler, None);
    }
    // Without boots, wall clocks a second apart are of two machines, nearer ones of one.
    for (apart_ns, one) in [(999_999_999, true), (1_000_000_000, false)] {
        let mut other = rank(1, 2, &[(150, 200)]);
        *other.manifest.start_unix_ns.as_mut().unwrap() += apart_ns;
        let found = compare(&[rank(0, 2, &[(100, 200)]), other]);
        assert_eq!(found.straggler.is_some(), one, "{apart_ns}");
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
    let calls = &found.collective_calls[0];
    assert_eq!(
        (calls.kind, calls.skew.total_ns),
        ("AllReduce", Some((50 + 600) * US))
    );
}

#[test]
fn missing_ranks_and_unequal_numbers_are_said() {
    let of_three = |number: u32, times: &[(i64, i64)]| {
        let mut trace = rank(number, 3, times);
        trace.manifest.rank = Some(manifest::Rank {
            rank: number,
            local_rank: Some(number),
            world_size: 3,
        });
        trace
    };
    let all = [(100, 200), (300, 400)];
    let found = compare(&[of_three(0, &all), of_three(1, &[(140, 200)])]);
    assert_eq!(found.missing_ranks, [2]);
    assert_eq!(found.collectives[0].counts, [2, 1]);
    assert!(says(&found, "no trace here: 2"));
    // The missing one may have been later.
    assert_eq!(
        (
            found.collectives[0].matched_count,
            found.collectives[0].incomplete_count
        ),
        (0, 3)
    );
    assert_eq!(found.straggler, None);
    assert!(
        says(
            &found,
            "3 AllReduce are of communicators that have ranks without a trace here"
        ),
        "{:?}",
        found.sentences
    );
    let found = compare(&[
        of_three(0, &all),
        of_three(1, &[(140, 200)]),
        of_three(2, &all),
    ]);
    assert_eq!(found.missing_ranks, [0; 0]);
    assert!(
        says(&found, "differ in their numbers of AllReduce"),
        "{:?}",
        found.sentences
    );
}

#[test]
fn what_the_straggler_did_longer_is_the_cause() {
    // The others compute 100 us between collectives. Rank 1 computes 60 us more, or launches 60 us later.
    let busy = |number: u32, compute: i64, late: i64| {
        let mut rank = Rank::new(number).init(WORLD, 3, number);
        for step in 0..5 {
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
    assert_eq!((straggler.rank, straggler.last_count), (1, 5));
    let cause = straggler.cause.unwrap();
    // Of the first collective there is none before.
    assert_eq!((cause.what, cause.longer_ns), (Doing::Compute, 4 * 60 * US));
    assert!((cause.share - 1.0).abs() < 1e-9);
    assert!(
        says(&found, "it computed 240 µs longer than the others"),
        "{:?}",
        found.sentences
    );
    let found = compare(&[busy(0, 100, 0), busy(1, 100, 60), busy(2, 100, 0)]);
    let cause = found.straggler.as_ref().unwrap().cause.unwrap();
    assert_eq!(
        (cause.what, cause.longer_ns),
        (Doing::Idle(Cause::HostLate), 4 * 58 * US)
    );
    assert!(
        says(&found, "host late (host-late)"),
        "{:?}",
        found.sentences
    );
    // Half of one and half of the other: from half on it is the cause.
    let found = compare(&[busy(0, 100, 0), busy(1, 130, 32), busy(2, 100, 0)]);
    let straggler = found.straggler.as_ref().unwrap();
    assert_eq!(straggler.cause, None, "{:?}", straggler.longer);
    let found = compare(&[busy(0, 100, 0), busy(1, 130, 30), busy(2, 100, 0)]);
    assert_eq!(found.straggler.unwrap().cause.unwrap().what, Doing::Compute);
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
    assert!(
        found.sentences[0].starts_with("Both ranks are host-bound: their GPUs idle for"),
        "{:?}",
        found.sentences
    );
    assert!(found.sentences[1].starts_with("Rank 1 arrived last"));
    // Where they wait for each other for longer, that is first.
    let waiting = |number: u32, late: i64| rank(number, 2, &[(20, 500), (520 + late, 1000)]);
    let found = compare(&[waiting(0, 0), waiting(1, 400)]);
    assert!(
        found.sentences[0].starts_with("Rank 1 arrived last"),
        "{:?}",
        found.sentences
    );
}

#[test]
fn several_processes_or_devices_in_one_trace_are_ranks() {
    let mut both = Rank::with(
        "manifest sampling_mode=dispatch start_ns=0 end_ns=100ms
         process id=1 pid=10 hook=cuda
         process id=2 pid=11 hook=cuda
         device id=1 process=1 api=cuda name=GPU uuid=a clock.error_ns=1us
         device id=2 process=2 api=cuda name=GPU uuid=b clock.error_ns=1us
         queue id=1 device=1
         queue id=2 device=2\n",
    );
    for process in [1, 2] {
        let init = format!(
            "NCCL communicator ID={WORLD}, No. of ranks=2, Rank={}, CUDA device=0",
            2 - process
        );
        both.range_of(process, "ncclCommInitRank", &init, [0, 1]);
        let call = format!("NCCL communicator ID={WORLD}, Message size [bytes]=64");
        both.range_of(process, "ncclAllReduce", &call, [80, 90]);
        let start = 100 + 40 * i64::from(process);
        both.kernel_of(process, process, ALL_REDUCE, 85, [start, 200]);
    }
    let trace = both.trace();
    let found = compare(std::slice::from_ref(&trace));
    // The second process is rank 0: NCCL says so.
    assert_eq!(
        found.ranks.iter().map(|r| r.rank).collect::<Vec<_>>(),
        [0, 1]
    );
    assert_eq!(found.straggler.as_ref().unwrap().rank, 0);
    assert_eq!(found.world_size, Some(2));
    let notes = findings(&trace).notes;
    assert!(
        notes[0].starts_with("2 processes ran collectives"),
        "{notes:?}"
    );
}

#[test]
fn devices_of_one_process_are_ranks_without_numbers() {
    let mut both = Rank::with(
        "manifest sampling_mode=dispatch start_ns=0 end_ns=100ms
         process id=1 pid=10 hook=cuda
         device id=1 process=1 api=cuda name=GPU uuid=a clock.error_ns=1us
         device id=2 process=1 api=cuda name=GPU uuid=b clock.error_ns=1us
         queue id=1 device=1
         queue id=2 device=2\n",
    );
    both.range(
        "ncclCommInitAll",
        &format!("NCCL communicator ID={WORLD}, No. of devices=2"),
        [0, 1],
    );
    both.range("ncclGroupStart", "", [70, 71]);
    for call in [72, 74] {
        let payload = format!("NCCL communicator ID={WORLD}, Message size [bytes]=64");
        both.range("ncclAllReduce", &payload, [call, call + 1]);
    }
    both.range("ncclGroupEnd", "", [80, 90]);
    both.kernel_of(1, 1, ALL_REDUCE, 82, [100, 200]);
    both.kernel_of(1, 2, ALL_REDUCE, 85, [140, 200]);
    let trace = both.trace();
    let found = compare(std::slice::from_ref(&trace));
    let kind = &found.collectives[0];
    assert_eq!((kind.matched_count, kind.skew.total_ns), (1, Some(40 * US)));
    assert_eq!(found.bandwidth[0].bytes, 64);
    assert!(
        says(&found, "The numbers of the ranks are not known"),
        "{:?}",
        found.sentences
    );
    let notes = findings(&trace).notes;
    assert!(
        notes[0].starts_with("2 devices of one process ran collectives"),
        "{notes:?}"
    );
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
    assert_eq!(
        (calls.kind, calls.matched_count, calls.unassigned_count),
        ("AllReduce", 0, 2)
    );
}

#[test]
fn no_traces_and_one_are_survived() {
    assert_eq!(ranks(&[], 10).ranks, []);
    let found = compare(&[rank(0, 2, &[(100, 200)])]);
    assert!(found.not_comparable_because.is_some());
}
