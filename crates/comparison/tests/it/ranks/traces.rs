//! Which traces have ranks, and whose times compare.

use super::{ALL_REDUCE, Rank, US, WORLD, assert_begins, assert_says, compare, findings, rank};
use gapscope_comparison::ranks::ranks;

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
    assert_eq!(found.ranks[1].last_count, Some(1));
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
        assert_eq!(found.ranks[0].waited_ns.is_some(), one, "{apart_ns}");
    }
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
    assert!(found.ranks.iter().map(|rank| rank.rank).eq([0, 1]));
    assert_eq!(found.ranks[0].last_count, Some(1));
    assert_eq!(found.world_size, Some(2));
    let notes = findings(&trace).notes;
    assert_begins(&notes[0], "2 processes ran collectives");
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
    let init = format!("NCCL communicator ID={WORLD}, No. of devices=2");
    both.range("ncclCommInitAll", &init, [0, 1]);
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
    assert_says(&found, "The numbers of the ranks are not known");
    let notes = findings(&trace).notes;
    assert_begins(&notes[0], "2 devices of one process ran collectives");
}

#[test]
fn no_traces_and_one_are_survived() {
    assert_eq!(ranks(&[], 10).ranks, []);
    let found = compare(&[rank(0, 2, &[(100, 200)])]);
    assert!(found.not_comparable_because.is_some());
}

#[test]
fn a_rank_of_which_not_all_could_be_read_is_compared_with_none() {
    let mut cut = rank(1, 2, &[(400, 500)]);
    cut.unread.push(gapscope_trace::UnreadTable {
        table: "dispatches",
        file: "dispatches.parquet".to_owned(),
        column: None,
        reason: "it is cut short".to_owned(),
        rows_read: 1,
        rows_missing: None,
    });
    let found = compare(&[rank(0, 2, &[(100, 500)]), cut]);
    assert_eq!(found.ranks[0].waited_ns, None);
    assert_eq!(found.ranks[1].dispatch_count, None);
    assert_eq!(found.straggler, None);
    assert_eq!(
        found.sentences[0],
        "Rank 1: dispatches.parquet cannot be read (it is cut short)."
    );
    assert_says(&found, "not all of rank 1 could be read");
}
