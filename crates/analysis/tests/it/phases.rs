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
    let mut text = "manifest start_ns=0 sampling_mode=dispatch
        process id=1 pid=10 hook=cuda
        thread process=1 thread=7 name=main
        device id=1 process=1 api=cuda name=GPU uuid=aa clock.error_ns=1000
        queue id=1 device=1
        label id=1 text=run\nlabel id=2 text=train parent=1\nlabel id=3 text=eval parent=1
        kernel id=1 process=1 name=work\n"
        .to_owned();
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
