//! Work that is lost or has no times weighs in the verdict wherever it may have run: beside transfers, communication and small kernels,
//! before the first work and after the last, and on other devices. Damaged rows are losses and no devices.

use crate::program::{US, findings_of};
use gapscope_analysis::Findings;
use gapscope_analysis::headline::HeadlineKind;
use gapscope_analysis::verdict::Bound;

const HEAD: &str = "manifest sampling_mode=dispatch start_ns=0 end_ns=100ms
    process id=1 pid=10 start_ns=0
    thread process=1 thread=7 name=main
    device id=1 process=1 api=cuda name=GPU uuid=aa clock.error_ns=1us
    queue id=1 device=1
    queue id=2 device=1
    kernel id=1 process=1 name=work
    kernel id=2 process=1 name=ncclDevKernel_AllReduce_Sum_f32_RING_LL\n";

/// The times of a piece of work in microseconds; `None` where they are not known.
type Times = Option<[i64; 2]>;

/// The rows that each step of a program launches: their table, their other columns, and their times after the start of the step.
type Step<'s> = &'s [(&'s str, &'s str, Times)];

/// A program of 100 steps of 1 ms each. `lacks` says in which steps the last piece of work has no times.
fn program(step: Step, lacks: impl Fn(i64) -> bool) -> String {
    let mut rows = HEAD.to_owned();
    for turn in 0..100 {
        for (at, (table, columns, times)) in step.iter().enumerate() {
            let (call, id) = (1000 * turn + 5 * at as i64, 10 * turn + at as i64 + 1);
            let kind = if *table == "transfer" {
                "transfer"
            } else {
                "kernel"
            };
            rows += &format!(
                "submission id={id} process=1 queue=1 thread=7 start_ns={call}us duration_ns=3us kind={kind}\n"
            );
            let last = at + 1 == step.len() && lacks(turn);
            let times = times
                .filter(|_| !last)
                .map_or(String::new(), |[start, length]| {
                    format!("start_ns={}us duration_ns={length}us", 1000 * turn + start)
                });
            rows += &format!("{table} submission={id} queue=1 {columns} {times}\n");
        }
    }
    rows
}

fn sentence(findings: &Findings, kind: HeadlineKind) -> &str {
    let mut notes = findings.headline.iter();
    notes
        .find(|note| note.kind == kind)
        .map_or("", |note| note.sentence.as_str())
}

const COPY: (&str, &str, Times) = (
    "transfer",
    "kind=host-to-device bytes=1000000",
    Some([20, 800]),
);
const ALL_REDUCE: (&str, &str, Times) = ("dispatch", "kernel=2", Some([20, 800]));
const KERNEL: (&str, &str, Times) = ("dispatch", "kernel=1", Some([822, 100]));

#[test]
fn what_ran_beside_work_without_times_is_unknown() {
    let (all, none, one) = (|_| true, |_| false, |turn| turn == 50);
    type Case<'c> = (&'c str, Step<'c>, fn(i64) -> bool, Bound, Option<i64>);
    let cases: [Case; 6] = [
        (
            "copies and kernels",
            &[COPY, KERNEL],
            none,
            Bound::TransferBound,
            Some(80_000),
        ),
        (
            "kernels are lost",
            &[COPY, KERNEL],
            all,
            Bound::Unknown,
            None,
        ),
        (
            "one kernel is lost",
            &[COPY, KERNEL],
            one,
            Bound::TransferBound,
            Some(79_000),
        ),
        (
            "all-reduces and kernels",
            &[ALL_REDUCE, KERNEL],
            none,
            Bound::CommunicationBound,
            Some(0),
        ),
        (
            "kernels beside all-reduces are lost",
            &[ALL_REDUCE, KERNEL],
            all,
            Bound::Unknown,
            Some(0),
        ),
        (
            "copies are lost",
            &[KERNEL, COPY],
            all,
            Bound::Unknown,
            Some(0),
        ),
    ];
    for (name, step, lacks, verdict, transfers_us) in cases {
        let findings = findings_of(&program(step, lacks));
        assert_eq!(
            findings.verdict, verdict,
            "{name}: {}",
            findings.verdict_evidence.sentence
        );
        let share = findings.devices[0].analysed.unwrap();
        let only_us = share.transfer_only_ns.map(|ns| ns / US);
        assert!(
            only_us == transfers_us
                || only_us
                    .zip(transfers_us)
                    .is_some_and(|(a, b)| (a - b).abs() <= 1000),
            "{name}: {only_us:?}"
        );
        let parts = &share.parts;
        assert_eq!(parts.busy_ns(), share.busy_ns, "{name}");
        let sum: i64 = findings
            .verdict_evidence
            .parts
            .iter()
            .map(|part| part.total_ns)
            .sum();
        assert_eq!(Some(sum), findings.verdict_evidence.window_ns, "{name}");
        // Sentences say that other work may have run beside kernels; the short evidence says what ran.
        let parts = &findings.verdict_evidence.parts;
        let computed = parts.iter().find(|part| part.what == "compute");
        assert!(
            computed.is_none_or(|part| part.clause == "it computed"),
            "{name}: {computed:?}"
        );
        if name == "copies are lost" {
            let sentence = &computed.unwrap().sentence;
            assert!(
                sentence.contains("may have run beside the kernels"),
                "{sentence}"
            );
        }
        if name.contains("beside all-reduces") {
            assert_eq!(share.communication_only_ns, None);
            assert_eq!(share.communication_overlapped_ns, None);
        }
    }
}

#[test]
fn idle_time_in_which_work_may_have_run_is_told_apart() {
    let findings = findings_of(&program(&[KERNEL, ("dispatch", "kernel=1", None)], |_| {
        true
    }));
    let device = &findings.idle_time.devices[0];
    assert!(device.untimed_work_ns > device.total_ns / 2, "{device:?}");
    let whole = findings_of(&program(&[KERNEL], |_| false));
    assert_eq!(whole.idle_time.devices[0].untimed_work_ns, 0);
}

#[test]
fn the_head_says_whether_the_gpu_had_work_before_and_after() {
    let none = program(&[KERNEL], |_| false);
    let scope = |text: &str| sentence(&findings_of(text), HeadlineKind::Scope).to_owned();
    assert!(!scope(&none).contains("may have run"));
    for (from, to, said) in [
        (0, 30, "before, work without"),
        (70, 100, "after that, work without"),
    ] {
        let text = program(&[KERNEL], |turn| (from..to).contains(&turn));
        assert!(scope(&text).contains(said), "{}", scope(&text));
        assert!(!scope(&text).contains("had no work"), "{}", scope(&text));
    }
    // The time that was not measured is longer than the time that was.
    let findings = findings_of(&program(&[KERNEL], |turn| turn < 60));
    assert_eq!(findings.verdict, Bound::Unknown);
}

#[test]
fn rows_that_name_an_undefined_queue_are_losses_and_no_device() {
    let text = program(&[KERNEL], |_| false);
    let damaged = text.replacen(
        "dispatch submission=51 queue=1",
        "dispatch submission=51 queue=999",
        1,
    );
    let (whole, damaged) = (findings_of(&text), findings_of(&damaged));
    assert_eq!(damaged.verdict, whole.verdict);
    assert_eq!(damaged.devices.len(), 1);
    assert_eq!(
        damaged.devices[0].queues.len(),
        whole.devices[0].queues.len()
    );
    let lost = damaged
        .losses
        .iter()
        .map(|loss| (loss.kind.as_str(), loss.count));
    assert_eq!(lost.collect::<Vec<_>>(), [("dispatch times", 1)]);
    assert!(whole.losses.is_empty());
    assert!(sentence(&damaged, HeadlineKind::UntimedWork).contains("does not define the queue"));
}

#[test]
fn nothing_is_known_of_the_idle_time_where_no_work_has_times() {
    let findings = findings_of(&program(&[("dispatch", "kernel=1", None)], |_| true));
    assert_eq!(findings.verdict, Bound::Unknown);
    assert!(findings.idle_time.known().is_none());
}

#[test]
fn a_gap_that_is_most_of_the_time_is_told_with_the_verdict_on_the_rest() {
    let steady = program(&[("dispatch", "kernel=1", Some([20, 970]))], |_| false);
    let gap = |text: &str| sentence(&findings_of(text), HeadlineKind::LongGap).to_owned();
    assert_eq!(gap(&steady), "");
    let first = "submission id=9999 process=1 queue=1 thread=7 start_ns=-900000us duration_ns=3us kind=kernel
        dispatch submission=9999 queue=1 kernel=1 start_ns=-899990us duration_ns=10us\n";
    let told = gap(&(steady + first));
    assert!(
        told.starts_with("One gap of 900 ms, between work and work, is 90.0 % of the judged time"),
        "{told}"
    );
    assert!(told.ends_with("the rest is device-bound."), "{told}");
}
