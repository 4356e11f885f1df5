//! Parts of a program whose verdicts differ, by label and by change.

use crate::program::findings_of;
use gapscope_analysis::Findings;
use gapscope_analysis::headline::HeadlineKind;
use gapscope_analysis::verdict::Bound;
use std::fmt::Write;

/// Steps of one kernel each, in milliseconds: how long the kernel runs, how often a step comes, and under which label.
struct Steps(u64, i64, i64, &'static str);

/// A program of such steps, one after the other. Calls come right before their work.
fn program(steps: &[Steps]) -> Findings {
    labelled("eval", steps)
}

/// The same program with another text of the third label.
fn labelled(third: &str, steps: &[Steps]) -> Findings {
    let mut text = "manifest start_ns=0 sampling_mode=dispatch
        process id=1 pid=10 hook=cuda
        thread process=1 thread=7 name=main
        device id=1 process=1 api=cuda name=GPU uuid=aa clock.error_ns=1000
        queue id=1 device=1
        label id=1 text=run\nlabel id=2 text=train parent=1\nlabel id=3 text=\"THIRD\" parent=1
        kernel id=1 process=1 name=work\n"
        .replace("THIRD", third);
    let (mut at, mut id) = (0, 0);
    for Steps(count, busy, period, label) in steps {
        for _ in 0..*count {
            id += 1;
            let call = at - 1;
            writeln!(
                text,
                "submission id={id} process=1 queue=1 thread=7 start_ns={call}ms duration_ns=10us kind=kernel
                 dispatch submission={id} queue=1 kernel=1 {label} start_ns={at}ms duration_ns={busy}ms"
            )
            .expect("a text can be written");
            at += period;
        }
    }
    findings_of(&text)
}

fn verdicts(findings: &Findings) -> Vec<(Option<&str>, Bound)> {
    let phases = findings.phases.iter();
    phases
        .map(|phase| (phase.label.as_deref(), phase.verdict))
        .collect()
}

#[test]
fn labels_with_verdicts_of_their_own_are_phases_also_where_they_take_turns() {
    let train = || Steps(50, 99, 100, "label=2");
    let eval = || Steps(50, 10, 100, "label=3");
    for steps in [
        vec![train(), eval()],
        vec![train(), eval(), train(), eval()],
    ] {
        let findings = program(&steps);
        assert_eq!(findings.verdict, Bound::Mixed);
        assert_eq!(
            verdicts(&findings),
            [
                (Some("train"), Bound::DeviceBound),
                (Some("eval"), Bound::HostBound)
            ]
        );
        let notes = findings.headline.iter();
        let notes: Vec<_> = (notes.filter(|note| note.kind == HeadlineKind::Phase))
            .map(|note| note.sentence.as_str())
            .collect();
        assert_eq!(notes.len(), 2);
        assert!(notes[0].starts_with("Under train, "), "{}", notes[0]);
        assert!(notes[1].contains("host-bound (host 8"), "{}", notes[1]);
    }
}

#[test]
fn the_time_until_a_label_begins_is_no_part_of_its_phase() {
    // Between training and evaluation nothing runs for longer than the host lets the GPU wait in all of the evaluation.
    let findings = program(&[
        Steps(49, 99, 100, "label=2"),
        Steps(1, 99, 1_500, "label=2"),
        Steps(50, 40, 100, "label=3"),
    ]);
    let phases = &findings.phases;
    let eval = phases
        .iter()
        .find(|phase| phase.label.as_deref() == Some("eval"));
    let eval = eval.expect("the evaluation is a phase");
    assert!(
        (4_900_000_000..5_000_000_000).contains(&eval.window_ns),
        "{eval:?}"
    );
}

#[test]
fn a_label_of_warm_up_is_no_phase() {
    for (text, is_phase) in [("eval", true), ("warm-up", false), ("Warm up 2", false)] {
        let findings = labelled(
            text,
            &[Steps(50, 99, 100, "label=2"), Steps(50, 10, 100, "label=3")],
        );
        let labels: Vec<_> = findings.phases.iter().map(|phase| &phase.label).collect();
        assert_eq!(
            labels.iter().any(|label| label.is_some()),
            is_phase,
            "{text}: {labels:?}"
        );
    }
}

#[test]
fn a_change_without_labels_splits_the_time() {
    let findings = program(&[Steps(60, 99, 100, ""), Steps(60, 10, 100, "")]);
    assert_eq!(
        verdicts(&findings),
        [(None, Bound::DeviceBound), (None, Bound::HostBound)]
    );
    let change_ms = findings.phases[0].end_ns / 1_000_000;
    assert!((5_700..6_300).contains(&change_ms), "{change_ms}");
    let three = program(&[
        Steps(60, 99, 100, ""),
        Steps(60, 10, 100, ""),
        Steps(60, 99, 100, ""),
    ]);
    assert_eq!(verdicts(&three).len(), 3);
}

#[test]
fn a_program_that_is_alike_throughout_has_no_phases() {
    let alike = [
        // One kind of step.
        vec![Steps(200, 60, 100, "label=2")],
        // Two labels with one verdict.
        vec![Steps(50, 99, 100, "label=2"), Steps(50, 90, 100, "label=3")],
        // Shares on both sides of a threshold that differ by little.
        vec![Steps(60, 48, 100, ""), Steps(60, 53, 100, "")],
        // Steps that take turns for the whole time.
        (0..60)
            .flat_map(|_| [Steps(3, 99, 100, ""), Steps(3, 10, 100, "")])
            .collect(),
        // One long gap, and few steps.
        vec![
            Steps(59, 99, 100, ""),
            Steps(1, 99, 9_000, ""),
            Steps(60, 99, 100, ""),
        ],
        vec![Steps(3, 99, 100, ""), Steps(3, 10, 100, "")],
    ];
    for steps in alike {
        let findings = program(&steps);
        assert_eq!(findings.phases, [], "{:?}", findings.verdict);
    }
}

/// Steps in milliseconds without a label: how many, how long the kernel of each runs, and how often a step comes.
type Unlabelled = (u64, i64, i64);

fn unlabelled(steps: &[Unlabelled]) -> Findings {
    let steps = steps.iter();
    let steps: Vec<Steps> = steps
        .map(|(count, busy, period)| Steps(*count, *busy, *period, ""))
        .collect();
    program(&steps)
}

const HOST: Bound = Bound::HostBound;
const DEVICE: Bound = Bound::DeviceBound;

#[test]
fn phases_are_as_long_as_they_are() {
    type Case = (&'static [Unlabelled], &'static [(Bound, i64)]);
    let cases: &[Case] = &[
        // A slow start of a fifth, of an eighth.
        (
            &[(100, 1, 5), (1_000, 2, 2)],
            &[(HOST, 500), (DEVICE, 2_000)],
        ),
        (&[(50, 1, 5), (875, 2, 2)], &[(HOST, 250), (DEVICE, 1_750)]),
        // Loading, then steady work, then saving.
        (
            &[(60, 1, 5), (700, 2, 2), (60, 1, 5)],
            &[(HOST, 300), (DEVICE, 1_400), (HOST, 300)],
        ),
        // A short slow start, then a change.
        (
            &[(25, 1, 4), (500, 2, 2), (250, 1, 4)],
            &[(DEVICE, 1_000), (HOST, 1_000)],
        ),
        // A short stall does not end a phase.
        (
            &[(250, 2, 2), (1, 2, 40), (250, 2, 2), (200, 1, 5)],
            &[(DEVICE, 1_040), (HOST, 1_000)],
        ),
        // The last eighth is slow.
        (&[(875, 2, 2), (50, 1, 5)], &[(DEVICE, 1_750), (HOST, 250)]),
    ];
    for (steps, expected) in cases {
        let findings = unlabelled(steps);
        let phases = &findings.phases;
        assert_eq!(phases.len(), expected.len(), "{steps:?}: {phases:?}");
        let total_ms: i64 = steps
            .iter()
            .map(|(count, _, period)| *count as i64 * period)
            .sum();
        for (phase, (verdict, length_ms)) in phases.iter().zip(*expected) {
            assert_eq!(phase.verdict, *verdict, "{steps:?}: {phases:?}");
            let off_ms = (phase.end_ns - phase.start_ns) / 1_000_000 - length_ms;
            assert!(off_ms.abs() <= total_ms / 100, "{steps:?}: {phases:?}");
        }
    }
    let start = unlabelled(cases[0].0);
    let sentence = &start.phases[0].sentence;
    assert_eq!(
        sentence,
        "The first 498 ms, 19.9 % of the time: host-bound (host 60.2 %, compute 20.1 %, unknown 19.7 %)."
    );
    let after = &start.phases[1].sentence;
    assert!(after.starts_with("From 498 ms to 2.50 s, 80.1 % of the time: device-bound"));
}

#[test]
fn what_is_short_or_periodic_or_drifts_is_no_phase() {
    let turns = |count: usize, turn: &[Unlabelled]| turn.repeat(count);
    let drift = |from: i64, to: i64| {
        let busy = |step: i64| from + (to - from) * step / 120;
        (0..120)
            .map(|step| (1, busy(step), 100))
            .collect::<Vec<_>>()
    };
    let cases: Vec<Vec<Unlabelled>> = vec![
        // A slow start of 4, of 5 and of 9 % of the time.
        vec![(10, 1, 8), (1_000, 2, 2)],
        vec![(25, 1, 4), (900, 2, 2)],
        vec![(45, 1, 4), (900, 2, 2)],
        // A slow end.
        vec![(900, 2, 2), (25, 1, 4)],
        // Turns of two kinds of work, also where a turn is as long as a phase.
        turns(2, &[(100, 2, 2), (40, 1, 5)]),
        turns(3, &[(100, 2, 2), (40, 1, 5)]),
        turns(5, &[(100, 2, 2), (40, 1, 5)]),
        turns(8, &[(100, 2, 2), (40, 1, 5)]),
        turns(30, &[(100, 2, 2), (40, 1, 5)]),
        turns(4, &[(30, 1, 10), (60, 2, 2)]),
        turns(7, &[(30, 1, 10), (60, 2, 2)]),
        // The program ends as it begins, so that its last turn is a stretch of its own.
        [turns(4, &[(100, 2, 2), (24, 1, 10)]), vec![(100, 2, 2)]].concat(),
        // Training with an evaluation after each epoch.
        turns(6, &[(200, 2, 2), (30, 1, 4)]),
        // Slow drifts.
        drift(99, 1),
        drift(95, 30),
        drift(10, 90),
    ];
    for steps in cases {
        let findings = unlabelled(&steps);
        assert_eq!(findings.phases, [], "{steps:?}");
    }
}

/// A program that first computes only, and then runs copies without a pause, beside kernels that each wait for one.
fn computing_then_copying(labels: [&str; 3]) -> Findings {
    let mut text = "manifest start_ns=0 sampling_mode=dispatch
        process id=1 pid=10 hook=cuda
        thread process=1 thread=7 name=main
        device id=1 process=1 api=cuda name=GPU uuid=aa clock.error_ns=1000
        queue id=1 device=1\nqueue id=2 device=1
        label id=1 text=warm\nlabel id=2 text=load\nlabel id=3 text=step
        kernel id=1 process=1 name=work\n"
        .to_owned();
    let [first, copies, kernels] = labels;
    for turn in 0..60 {
        let (id, at) = (3 * turn + 1, turn * 10);
        let call = turn - 1_000;
        let mut work = |id: i64, queue: i64, rows: &str, start_us: i64, length_us: i64| {
            let kind = if rows.starts_with("dispatch") {
                "kernel"
            } else {
                "transfer"
            };
            writeln!(
                text,
                "submission id={id} process=1 queue={queue} thread=7 start_ns={call}ms duration_ns=10us kind={kind}
                 {rows} submission={id} queue={queue} start_ns={start_us}us duration_ns={length_us}us"
            )
            .expect("a text can be written");
        };
        if turn < 20 {
            work(
                id,
                1,
                &format!("dispatch kernel=1 {first}"),
                at * 1_000,
                9_995,
            );
            continue;
        }
        let copy = format!("transfer kind=host-to-device bytes=1 {copies}");
        work(id, 2, &copy, at * 1_000, 9_990);
        work(
            id + 1,
            1,
            &format!("dispatch kernel=1 {kernels}"),
            at * 1_000 + 9_995,
            8_000,
        );
        writeln!(text, "dependency submission={} waits_for={id}", id + 1)
            .expect("a text can be written");
    }
    findings_of(&text)
}

#[test]
fn a_phase_of_copies_that_kernels_wait_for_is_bound_by_them_as_the_whole_would_be() {
    let findings = computing_then_copying(["", "", ""]);
    let bounds: Vec<Bound> = findings.phases.iter().map(|phase| phase.verdict).collect();
    assert!(
        findings
            .phases
            .iter()
            .all(|phase| phase.verdict != Bound::DeviceBound || phase.start_ns < 100_000_000),
        "{:?}",
        findings.phases
    );
    assert!(
        bounds.is_empty() || bounds.contains(&Bound::TransferBound),
        "{bounds:?}"
    );
}

#[test]
fn labels_whose_work_runs_at_the_same_time_are_no_phases() {
    let findings = computing_then_copying(["label=1", "label=2", "label=3"]);
    let labelled = findings.phases.iter().filter(|phase| phase.label.is_some());
    assert_eq!(labelled.count(), 0, "{:?}", findings.phases);
}
