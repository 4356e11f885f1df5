//! For each advice on transfers and communication that bound the speed, a program in which it helps, and one in which it cannot.

use crate::program::findings_of;
use gapscope_analysis::Findings;
use gapscope_analysis::verdict::Bound;

/// A program of 100 turns, each of `length` us with `rows`, in which `T` is the turn's begin in us, `+N` a time in it, and `ID` a number of
/// its own.
fn turns(length: i64, rows: &[(&str, i64, i64)]) -> Findings {
    turns_of(1, length, rows)
}

/// The same of so many ranks, each with a GPU of the one process.
fn turns_of(ranks: i64, length: i64, rows: &[(&str, i64, i64)]) -> Findings {
    let mut text = String::from(
        "manifest sampling_mode=dispatch
         process id=1 pid=10 hook=cuda executable=/usr/bin/app
         device id=1 process=1 api=cuda name=GPU uuid=aa clock.error_ns=0
         queue id=1 device=1\nqueue id=2 device=1
         kernel id=1 process=1 name=gemm
         kernel id=2 process=1 name=ncclDevKernel_AllReduce_Sum_f32_RING_LL
         submission id=1 process=1 queue=1 thread=7 start_ns=-20us duration_ns=10us kind=kernel function=cuLaunchKernel\n",
    );
    for rank in 1..ranks {
        let (device, queue) = (rank + 1, 2 * rank);
        text += &format!(
            "device id={device} process=1 api=cuda name=GPU uuid=aa{device} clock.error_ns=0
             queue id={} device={device}\nqueue id={} device={device}
             submission id={device} process=1 queue={} thread={device} start_ns=-20us duration_ns=10us kind=kernel function=cuLaunchKernel\n",
            queue + 1,
            queue + 2,
            queue + 1,
        );
    }
    for (turn, rank) in (0..100).flat_map(|turn| (0..ranks).map(move |rank| (turn, rank))) {
        for (row, start, length_us) in rows {
            let start = turn * length + start;
            let row = match row.contains("queue=1") {
                true => row.replace("queue=1", &format!("queue={}", 2 * rank + 1)),
                false => row.replace("queue=2", &format!("queue={}", 2 * rank + 2)),
            };
            let submission = rank + 1;
            text += &format!(
                "{row} submission={submission} start_ns={start}us duration_ns={length_us}us\n"
            );
        }
    }
    findings_of(&text)
}

const GEMM: &str = "dispatch queue=1 kernel=1 groups_x=200 groups_y=1 groups_z=1";
const ALL_REDUCE: &str = "dispatch queue=2 kernel=2 groups_x=200 groups_y=1 groups_z=1";
const PINNED: &str = "transfer queue=2 kind=host-to-device bytes=9000000 host_memory=pinned";
const PAGEABLE: &str = "transfer queue=2 kind=host-to-device bytes=9000000 host_memory=pageable";
const FILL: &str = "transfer queue=2 kind=fill bytes=9000000";
const COPY: &str = "transfer queue=2 kind=copy bytes=9000000";

/// Returns what is advised on the work of a verdict.
fn advised(findings: &Findings, verdict: Bound, subject: &str) -> String {
    assert_eq!(findings.verdict, verdict, "{:?}", findings.verdict_evidence);
    let advice = findings.advice_on_work().unwrap();
    let json = serde_json::to_value(advice).unwrap();
    assert_eq!(json["cause"], subject);
    assert_eq!(findings.advice.first(), Some(advice), "it is the first");
    advice.text.clone()
}

#[test]
fn transfers_are_told_what_can_help_them() {
    let told =
        |rows: &[(&str, i64, i64)]| advised(&turns(1_000, rows), Bound::TransferBound, "transfer");
    let (pageable, pinned) = ("pin the memory", "copy ahead on a stream of its own");
    // Pageable memory; memory that is pinned already.
    assert!(told(&[(PAGEABLE, 0, 600), (GEMM, 600, 400)]).contains(pageable));
    let ahead = told(&[(PINNED, 0, 600), (GEMM, 600, 400)]);
    assert!(
        !ahead.contains(pageable) && ahead.contains(pinned),
        "{ahead}"
    );
    assert!(ahead.contains("at most 40.0 % of the time"), "{ahead}");
    // There is hardly any computing, so that overlap wins nothing.
    let fewer = told(&[(PINNED, 0, 970), (GEMM, 970, 30)]);
    assert!(
        !fewer.contains(pinned) && fewer.contains("move fewer bytes"),
        "{fewer}"
    );
    // Copies overlap with computing already, which waits for them.
    let paced = told(&[(PINNED, 0, 1_000), (GEMM, 0, 300)]);
    assert!(
        !paced.contains(pinned) && paced.contains("move fewer bytes"),
        "{paced}"
    );
    // Fills, and copies within the device, do not wait for the host's memory.
    assert!(told(&[(FILL, 0, 600), (GEMM, 600, 400)]).contains("fills of memory"));
    assert!(told(&[(COPY, 0, 600), (GEMM, 600, 400)]).contains("within the device"));
    // Many short ones.
    let small: Vec<_> = (0..60).map(|at| (PINNED, at * 10, 10)).collect();
    let small = told(&[&small[..], &[(GEMM, 600, 400)]].concat());
    assert!(small.contains("join small ones"), "{small}");
}

#[test]
fn communication_is_told_what_can_help_it() {
    let told = |rows: &[(&str, i64, i64)]| {
        let findings = turns_of(2, 1_000, rows);
        advised(&findings, Bound::CommunicationBound, "communication")
    };
    let overlap = "beside computing";
    let exposed = told(&[(ALL_REDUCE, 0, 600), (GEMM, 600, 400)]);
    assert!(
        exposed.contains(overlap) && exposed.contains("at most 40.0 %"),
        "{exposed}"
    );
    let alone = told(&[(ALL_REDUCE, 0, 970), (GEMM, 970, 30)]);
    assert!(
        !alone.contains(overlap) && alone.contains("send fewer bytes"),
        "{alone}"
    );
    let small: Vec<_> = (0..60).map(|at| (ALL_REDUCE, at * 10, 10)).collect();
    let small = told(&[&small[..], &[(GEMM, 600, 400)]].concat());
    assert!(small.contains("join small messages"), "{small}");
}

#[test]
fn one_rank_alone_is_told_to_bring_the_others() {
    for rows in [
        [(ALL_REDUCE, 0, 600), (GEMM, 600, 400)],
        [(ALL_REDUCE, 0, 970), (GEMM, 970, 30)],
    ] {
        let findings = turns(1_000, &rows);
        let told = advised(&findings, Bound::CommunicationBound, "communication");
        assert!(told.contains("bring the traces of all ranks"), "{told}");
        assert!(findings.hides_waits_for_ranks);
        assert!(!turns_of(2, 1_000, &rows).hides_waits_for_ranks);
    }
}

#[test]
fn other_verdicts_have_no_advice_on_work() {
    let findings = turns(1_000, &[(GEMM, 0, 900), (PINNED, 900, 100)]);
    assert_eq!(findings.verdict, Bound::DeviceBound);
    assert_eq!(findings.advice_on_work(), None);
}
