//! Why a rank is late: each reason with its evidence, and none where the trace does not show one.

use super::{ALL_REDUCE, Rank, WORLD, assert_says, compare};
use gapscope_comparison::ranks::{LateReason, RankFindings};
use gapscope_trace::Trace;

/// What a rank does in each step, in microseconds.
#[derive(Clone, Copy)]
struct Step {
    kernels: i64,
    each: i64,
    groups: i64,
    /// The time before the first kernel in which the host does something else.
    host: i64,
    /// The time of a copy to the device before the kernels, and its bytes.
    copy: (i64, i64),
    /// By how much its part in the collective ends later than the others'.
    ends_later: i64,
}

const USUAL: Step = Step {
    kernels: 10,
    each: 1_000,
    groups: 64,
    host: 0,
    copy: (500, 1_000_000),
    ends_later: 0,
};

/// Writes a rank of four that does this in each of twelve steps of 30 ms; `more` is added to its trace.
fn rank(number: u32, step: Step, more: &str) -> Trace {
    let mut rank = Rank::new(number).init(WORLD, 4, number);
    // Workgroups are kept of devices whose size is known.
    rank.text = rank
        .text
        .replace("name=GPU", "name=GPU limits.multiprocessors=132")
        .replace("end_ns=100ms", "end_ns=400ms");
    let gemm = Rank::number(&mut rank.kernels, "gemm");
    let mut free = 10_000;
    for at in 0..12 {
        let end = 30_000 * at + 39_000;
        let mut start = free + step.host;
        if step.copy.0 > 0 {
            rank.submissions += 1;
            let id = rank.submissions;
            rank.text += &format!(
                "submission id={id} process=1 queue=1 kind=transfer thread=7 start_ns={}us duration_ns=1us\n\
                 transfer queue=1 kind=host-to-device bytes={} submission={id} start_ns={start}us duration_ns={}us\n",
                start - 1,
                step.copy.1,
                step.copy.0
            );
            start += step.copy.0;
        }
        for _ in 0..step.kernels {
            rank.submissions += 1;
            let id = rank.submissions;
            rank.text += &format!(
                "submission id={id} process=1 queue=1 kind=kernel thread=7 start_ns={}us duration_ns=1us\n\
                 dispatch queue=1 kernel={gemm} submission={id} groups_x={} groups_y=1 groups_z=1 start_ns={start}us duration_ns={}us\n",
                free + step.host - 1,
                step.groups,
                step.each
            );
            start += step.each;
        }
        let payload = format!("NCCL communicator ID={WORLD}, Message size [bytes]=64");
        let called = free + step.host;
        rank.range("ncclAllReduce", &payload, [called, called + 5]);
        let end = end + step.ends_later;
        rank.kernel(ALL_REDUCE, called + 1, [start, end]);
        free = end;
    }
    rank.text += more;
    rank.trace()
}

/// Four ranks, of which rank 2 does something else.
fn with(step: Step, more: [&str; 2]) -> RankFindings {
    let [usual, own] = more;
    let of = |number: u32| match number {
        2 => rank(2, step, own),
        _ => rank(number, USUAL, usual),
    };
    compare(&(0..4).map(of).collect::<Vec<_>>())
}

/// Counters of a GPU: its clock in MHz, and for how much of the time heat or the power limit held it down.
fn counters(mhz: i64, heat: i64, power: i64) -> String {
    let rows = [
        ("SM clock", "hertz", mhz * 1_000_000),
        ("clock limited: hardware thermal slowdown", "percent", heat),
        ("clock limited: power cap", "percent", power),
    ];
    let row = |(at, (name, unit, value)): (usize, &(&str, &str, i64))| {
        let id = at + 1;
        format!(
            "counter id={id} name=\"{name}\" unit={unit} device=1 source=NVML\n\
             counter_value counter={id} start_ns=0 value={value}\n"
        )
    };
    rows.iter().enumerate().map(row).collect()
}

#[test]
fn each_reason_has_evidence_and_without_it_there_is_none() {
    let fast = counters(1_980, 0, 0);
    let slow = counters(1_650, 0, 0);
    let hot = counters(1_650, 100, 0);
    let capped = counters(1_650, 0, 100);
    let all_capped = counters(1_980, 0, 100);
    let longer = Step {
        each: 1_200,
        ..USUAL
    };
    let loads = "label id=90 text=\"enumerate(DataLoader)#__next__\"\n";
    let waits = |label: &str| {
        let mut text = label.to_owned();
        for at in 0..12 {
            let start = if at == 0 { 10_000 } else { 30_000 * at + 9_000 };
            text += &format!(
                "marker process=1 scope=thread thread=7 label=90 start_ns={start}us duration_ns=2000us\n"
            );
        }
        text
    };
    let loading = waits(loads);
    let other = waits("label id=90 text=forward\n");
    type Case<'a> = (&'a str, Step, [&'a str; 2], Option<LateReason>, &'a str);
    let cases: [Case; 13] = [
        (
            "more kernels",
            Step {
                kernels: 12,
                ..USUAL
            },
            ["", ""],
            Some(LateReason::MoreWork),
            "it launched 1.20 times as many kernels",
        ),
        (
            "more and slightly shorter kernels",
            Step {
                kernels: 12,
                each: 990,
                ..USUAL
            },
            [&fast, &fast],
            Some(LateReason::MoreWork),
            "it launched 1.20 times as many kernels",
        ),
        (
            "more workgroups",
            Step {
                groups: 77,
                ..longer
            },
            ["", ""],
            Some(LateReason::MoreWork),
            "its kernels have 1.20 times as many workgroups",
        ),
        (
            "a slower clock",
            longer,
            [&fast, &slow],
            Some(LateReason::SlowerClock),
            "its clock was 1650 MHz, the others' 1980 MHz",
        ),
        (
            "heat",
            longer,
            [&fast, &hot],
            Some(LateReason::Heat),
            "its GPU was slowed down because of heat",
        ),
        (
            "a power limit",
            longer,
            [&fast, &capped],
            Some(LateReason::Power),
            "because of its power limit",
        ),
        (
            "a power limit that all have",
            longer,
            [&all_capped, &capped],
            Some(LateReason::SlowerClock),
            "its clock was 1650 MHz",
        ),
        (
            "no clock is recorded",
            longer,
            ["", ""],
            None,
            "the trace does not show why",
        ),
        (
            "the clock is the others'",
            longer,
            [&fast, &fast],
            None,
            "the trace does not show why",
        ),
        (
            "a loader's label",
            Step {
                host: 2_000,
                ..USUAL
            },
            ["", &loading],
            Some(LateReason::DataLoading),
            "it loaded data, as its label enumerate(DataLoader)#__next__ says",
        ),
        (
            "another label",
            Step {
                host: 2_000,
                ..USUAL
            },
            ["", &other],
            None,
            "the trace does not show why",
        ),
        (
            "slow copies",
            Step {
                copy: (2_500, 1_000_000),
                ..USUAL
            },
            ["", ""],
            Some(LateReason::Network),
            "its copies took 5.00 times as long for 1.00 times the bytes",
        ),
        (
            "a slow link",
            Step {
                ends_later: 3_000,
                ..USUAL
            },
            ["", ""],
            Some(LateReason::Network),
            "its links are slower than the others'",
        ),
    ];
    for (name, step, more, reason, evidence) in cases {
        let found = with(step, more);
        let straggler = found
            .straggler
            .as_ref()
            .unwrap_or_else(|| panic!("{name}: {found:#?}"));
        assert_eq!(straggler.rank, 2, "{name}");
        assert_eq!(straggler.why.reason, reason, "{name}: {straggler:?}");
        assert_says(&found, evidence);
    }
}

#[test]
fn more_bytes_to_copy_are_more_work() {
    let found = with(
        Step {
            copy: (2_500, 5_000_000),
            ..USUAL
        },
        ["", ""],
    );
    let straggler = found.straggler.as_ref().unwrap();
    assert_eq!(straggler.why.reason, Some(LateReason::MoreWork));
    assert_says(&found, "it copied");
}
