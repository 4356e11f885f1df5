//! The code behind idle time in the findings.

use crate::program::{Program, findings_under};
use gapscope_analysis::code::CodeSource;
use gapscope_analysis::gaps::Cause;

#[test]
fn the_code_behind_the_gaps_of_a_label_stays() {
    let mut p = Program::from_text(
        "manifest sampling_mode=dispatch stack_rate_hz=500
         process id=1 pid=10
         thread process=1 thread=7 name=main
         device id=1 process=1 name=GPU uuid=aa clock.error_ns=0
         queue id=1 device=1
         kernel id=1 process=1 name=work
         label id=1 text=train
         label id=2 text=evaluate
         frame id=1 kind=python function=load file=/home/a/train.py line=41
         frame id=2 kind=python function=score file=/home/a/train.py line=70
         stack id=1 frame=1
         stack id=2 frame=2",
    );
    for step in 0..8 {
        let start = step * 50_000;
        let id = p.mark(1, "kernel", [start - 100, start - 90]);
        let label = 1 + step / 4;
        p.line(&format!(
            "dispatch submission={id} queue=1 kernel=1 label={label} start_ns={start}us duration_ns=10ms"
        ));
        for at in (start + 11_000..start + 49_000).step_by(2000) {
            p.line(&format!(
                "sample time_ns={at}us process=1 thread=7 stack={label} state=running source=sampled period_ns=2ms"
            ));
        }
    }
    let trace = p.trace();
    for (label, line) in [("train", 41), ("evaluate", 70)] {
        let code = findings_under(&trace, label).code.expect(label);
        let first = &code.causes[0].code[0];
        assert_eq!(first.frames[0].line, Some(line), "{label}");
        assert_eq!(first.samples, code.samples, "{label}");
        let covered = code.causes[0].total_ns - code.causes[0].without_samples_ns;
        assert!(covered > 100_000_000, "{label}: {covered}");
    }
}

/// The name of a range with its start and end in microseconds from a step's start.
type RangeOfStep<'a> = (&'a str, i64, i64);

/// The ranges of a step, the code of a late host as texts with tenths of milliseconds, and its time in no range.
type RangeCase<'a> = (&'a [RangeOfStep<'a>], &'a [(&'a str, i64)], i64);

/// A program that launches 8 kernels from thread 7, each 40 ms after the last one ended, with these ranges of the thread
/// in each step.
fn with_ranges(ranges: &[RangeOfStep]) -> Program {
    let mut p = Program::new();
    let mut names: Vec<&str> = ranges.iter().map(|(name, ..)| *name).collect();
    names.sort_unstable();
    names.dedup();
    for (at, name) in names.iter().enumerate() {
        p.line(&format!("label id={} text=\"{name}\"", at + 1));
    }
    for step in 0..8 {
        let start = step * 50_000;
        p.launch(1, [start - 100, start - 90], start, 10_000);
        for (name, from, to) in ranges {
            let label = names.binary_search(name).unwrap() + 1;
            p.line(&format!(
                "marker process=1 scope=thread thread=7 label={label} domain=python start_ns={}us duration_ns={}us",
                start + from,
                to - from
            ));
        }
    }
    p
}

/// The code of a cause as texts with tenths of milliseconds.
fn told(code: &gapscope_analysis::code::CauseCode) -> Vec<(String, i64)> {
    let times = code.code.iter();
    times
        .map(|time| (time.name(), time.total_ns / 100_000))
        .collect()
}

#[test]
fn ranges_tell_the_code_behind_gaps_where_there_are_no_samples() {
    // Each of the 7 gaps has 39.9 ms of a late host, from 10 ms to 49.9 ms of a step.
    let cases: &[RangeCase] = &[
        // The innermost range counts, and code with little time is told under its caller.
        (
            &[
                ("train.py(41): load", 10_000, 49_000),
                ("<built-in function decode>", 12_000, 40_000),
                ("<built-in function len>", 40_000, 40_500),
            ],
            &[
                ("train.py:41 load > decode", 1960),
                ("train.py:41 load", 770),
            ],
            63,
        ),
        // A range that overlaps another one without nesting in it.
        (
            &[("a.py(1): f", 0, 30_000), ("b.py(2): g", 20_000, 49_900)],
            &[("b.py:2 g", 2093), ("a.py:1 f", 700)],
            0,
        ),
        // Ranges outside of gaps tell nothing of them.
        (&[("a.py(1): f", 0, 10_000)], &[], 2793),
        // The same function at many addresses is one.
        (
            &[
                ("<built-in method f of A object at 0x1>", 10_000, 20_000),
                ("<built-in method f of A object at 0x2>", 20_000, 49_900),
            ],
            &[("f of A", 2793)],
            0,
        ),
    ];
    for (ranges, expected, without) in cases {
        let findings = with_ranges(ranges).findings();
        let code = findings.code.expect("ranges");
        let late = code.of_cause(Cause::HostLate).expect("a late host");
        let expected: Vec<(String, i64)> = (expected.iter())
            .map(|(text, tenths)| (text.to_string(), *tenths))
            .collect();
        assert_eq!(told(late), expected, "{ranges:?}");
        assert_eq!(late.without_samples_ns / 100_000, *without, "{ranges:?}");
        assert_eq!(late.source, CodeSource::Ranges);
        let of_longest = code.longest[0].first().map(|time| time.name());
        assert_eq!(of_longest, expected.first().map(|(text, _)| text.clone()));
    }
}
