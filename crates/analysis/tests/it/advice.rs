//! Advice fits what was recorded.

use crate::advice_programs::submissions;
use crate::program::Program;
use gapscope_analysis::Findings;
use gapscope_analysis::gaps::Cause::{self, *};
use gapscope_timeline::thresholds::SEVERAL;

fn advice(findings: &Findings, cause: Cause) -> &str {
    let found = findings.gaps.iter().find(|gap| gap.cause == cause);
    &found.expect("the cause occurs").advice
}

/// A CUDA program whose executable is `executable`.
fn cuda(executable: &str) -> Program {
    Program::from_text(&format!(
        "manifest sampling_mode=dispatch
         process id=1 pid=10 hook=cuda executable={executable}
         device id=1 process=1 api=cuda name=GPU uuid=aa clock.error_ns=0
         queue id=1 device=1
         kernel id=1 process=1 name=work"
    ))
}

#[test]
fn what_has_several_command_buffers_in_a_submission_is_not_told_to_put_several_into_one() {
    let few = submissions(SEVERAL as u64 - 1);
    assert!(advice(&few, SubmitCall).starts_with("put several command buffers"));
    assert!(advice(&few, LaunchLatency).ends_with("fewer and larger submissions"));
    let several = submissions(SEVERAL as u64);
    assert_eq!(
        advice(&several, SubmitCall),
        "2.0 command buffers are in each submission already: submit less often, or from a thread of its own"
    );
    assert!(advice(&several, LaunchLatency).contains("2.0 command buffers are in each submission"));
}

#[test]
fn what_launches_graphs_is_not_told_to_use_them() {
    let mut p = cuda("/usr/bin/app");
    for turn in 0..3 {
        let t = turn * 1_000;
        let kernels = [[t + 650, 50], [t + 710, 50]];
        p.graph(1, [t + 100, t + 600], &kernels, "");
    }
    let findings = p.findings();
    assert_eq!(
        advice(&findings, SubmitCall),
        "most of this time passes in launches of graphs, of 2.0 kernels each: launch the next before the last has ended"
    );
    assert_eq!(
        advice(&findings, GraphLaunch),
        "each graph has 2.0 kernels already: launch the next before the last has ended"
    );
    assert!(advice(&findings, HostLate).ends_with("launch ahead"));
    // With many launches in none, most are in none.
    for turn in 3..30 {
        let t = turn * 1_000;
        p.launch(1, [t + 500, t + 600], t + 650, 100);
    }
    let findings = p.findings();
    assert_eq!(
        advice(&findings, SubmitCall),
        "put the launches that are in no graph into one, or fuse kernels"
    );
    assert!(advice(&findings, LaunchLatency).ends_with("or a graph"));
}

#[test]
fn python_is_named_only_where_it_runs() {
    for (executable, python) in [("/opt/venv/bin/python3.12", true), ("/usr/bin/app", false)] {
        let mut p = cuda(executable);
        p.launch(1, [0, 5], 10, 100);
        p.launch(1, [500, 505], 510, 100);
        // So that what the thread did is known.
        p.call("map-memory", [200, 201]);
        let findings = p.findings();
        assert_eq!(advice(&findings, HostLate).contains("Python"), python);
    }
}

#[test]
fn an_upper_bound_of_host_functions_is_called_one() {
    let with = |calls: &str| {
        let mut p = cuda("/usr/bin/app");
        p.launch(1, [0, 5], 10, 100);
        p.mark(1, "host-function", [6, 7]);
        p.launch(1, [8, 9], 500, 100);
        p.line(calls);
        p.findings()
    };
    let untimed = with("");
    assert!(
        advice(&untimed, HostFunction)
            .ends_with("; at most so long, as it is not recorded when they ran")
    );
    let timed =
        with("host_call process=1 call=host-function queue=1 start_ns=120us duration_ns=300us");
    assert!(!advice(&timed, HostFunction).contains("at most"));
}

#[test]
fn losses_are_named_as_a_reason_only_where_there_are_some() {
    let with = |losses: &str| {
        let mut p = cuda("/usr/bin/app");
        p.launch(1, [0, 5], 10, 100);
        p.mark(1, "decompression", [6, 7]);
        p.launch(1, [8, 9], 500, 100);
        p.line(losses);
        p.findings()
    };
    let because = |findings: &Findings| findings.unknown_because().unwrap().to_owned();
    let without = with("");
    assert!(because(&without).contains("a decompression of memory"));
    let lost = with("loss what=records count=3 reason=\"the disk was full\"");
    assert!(because(&lost).ends_with("; the losses may say why"));
    // A reason is nothing to do.
    for findings in [without, lost] {
        assert_eq!(advice(&findings, Unknown), "");
        assert!(findings.advice.iter().all(|advice| advice.cause != Unknown));
    }
}
