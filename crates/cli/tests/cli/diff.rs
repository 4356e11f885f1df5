//! Tests `gapscope diff` on traces: its figures, its gates and its exit status.

use crate::{TRACE, Workplace, assert_contains, assert_status, text, words};
use serde_json::Value;

/// Returns the trace with the kernel `sin` taking three times as long.
fn slower() -> String {
    TRACE.replace("duration_ns=20us groups", "duration_ns=60us groups")
}

fn json(workplace: &Workplace, arguments: &[&str]) -> Value {
    let output = workplace.run(&[&["diff", "--json"], arguments].concat());
    assert!(output.status.code() < Some(2), "{}", text(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

fn change<'a>(diff: &'a Value, name: &str) -> &'a Value {
    let mut changes = diff["changes"].as_array().unwrap().iter();
    changes.find(|change| change["name"] == name).unwrap()
}

#[test]
fn a_trace_is_no_different_from_itself() {
    let workplace = Workplace::new();
    workplace.trace("a.gapscope");
    workplace.trace("b.gapscope");
    let diff = json(&workplace, &["a.gapscope", "b.gapscope"]);
    assert_eq!(diff["verdict"], "no-difference");
    assert_eq!(diff["equal_work"]["equal"], true);
    assert_eq!(diff["unlike"], Value::Array(Vec::new()));
    for change in diff["changes"].as_array().unwrap() {
        assert_eq!(change["significant"], false, "{change}");
        if change["before"].as_f64() > Some(0.0) {
            assert_eq!(change["ratio"], 1.0, "{change}");
        }
    }
}

#[test]
fn commands_that_differ_are_told_without_the_folders_of_programs() {
    let workplace = Workplace::new();
    for (name, command) in [
        ("old.gapscope", "[\"/before/fusion\",\"--n\",\"10\"]"),
        ("new.gapscope", "[\"/after/fusion\",\"--n\",\"10\"]"),
        ("larger.gapscope", "[\"/after/fusion\",\"--n\",\"20\"]"),
    ] {
        workplace.trace(name);
        let file = workplace.path(&format!("{name}/trace.json"));
        let manifest = std::fs::read_to_string(&file).unwrap();
        let mut manifest: Value = serde_json::from_str(&manifest).unwrap();
        manifest["command"] = serde_json::from_str(command).unwrap();
        std::fs::write(file, manifest.to_string()).unwrap();
    }
    let unlike = |after| json(&workplace, &["old.gapscope", after])["unlike"].clone();
    assert_eq!(unlike("new.gapscope"), Value::Array(Vec::new()));
    assert_eq!(
        unlike("larger.gapscope")[0],
        "The commands differ: `fusion --n 10` before, `fusion --n 20` after."
    );
}

#[test]
fn the_figures_are_those_of_the_traces() {
    let workplace = Workplace::new();
    workplace.trace("a.gapscope");
    workplace.trace_of("b.gapscope", &slower());
    let diff = json(&workplace, &["a.gapscope", "b.gapscope"]);
    let sin = change(&diff, "sin");
    assert_eq!(
        sin["counts"],
        serde_json::json!([sin["counts"][0], sin["counts"][0]])
    );
    let before = sin["counts"][0].as_f64().unwrap() * 20_000.0;
    assert_eq!(sin["before_ns"], before);
    assert_eq!(sin["after_ns"], 3.0 * before);
    assert_eq!(sin["ratio"], 3.0);
    assert_eq!(change(&diff, "memory_peak")["before"], 104_857_600.0);
    assert!(change(&diff, "memory_peak")["before_ns"].is_null());
    assert_eq!(diff["method"]["samples"], "one-run");
    assert!(
        diff["method"]["sentence"]
            .as_str()
            .unwrap()
            .contains("assumed")
    );
}

#[test]
fn gates_decide_on_the_exit_status_in_all_formats() {
    let workplace = Workplace::new();
    workplace.trace("a.gapscope");
    workplace.trace_of(
        "b.gapscope",
        &TRACE.replace("bytes=1048576", "bytes=4194304"),
    );
    let broken = [
        "--gate",
        "transfer_bytes > 1MiB",
        "--gate",
        "dispatches > 0",
    ];
    for format in [&[][..], &["--json"], &["--markdown"], &["--junit"]] {
        let traces = ["a.gapscope", "b.gapscope"];
        let output = workplace.run(&[&["diff"], format, &broken, &traces].concat());
        assert_status(&output, 1);
        assert!(
            text(&output.stdout).contains("transfer_bytes"),
            "{format:?}"
        );
        let held = workplace.run(
            &[
                &["diff", "--gate", "transfer_bytes > 3MiB"],
                format,
                &traces,
            ]
            .concat(),
        );
        assert_status(&held, 0);
    }
    let junit = workplace.run(
        &[
            &["diff", "--junit"],
            &broken[..],
            &["a.gapscope", "b.gapscope"],
        ]
        .concat(),
    );
    let xml = text(&junit.stdout);
    assert_contains(&xml, "tests=\"2\" failures=\"1\" errors=\"0\"");
    assert_contains(&xml, "<testcase name=\"transfer_bytes &gt; 1MiB\"");
}

#[test]
fn an_unknown_figure_fails_by_name() {
    let workplace = Workplace::new();
    workplace.trace("a.gapscope");
    let gate = [
        "diff",
        "--gate",
        "kernel(\"softmax\") > 3%",
        "a.gapscope",
        "a.gapscope",
    ];
    let output = workplace.run(&gate);
    assert_status(&output, 1);
    assert_contains(text(&output.stdout), "no kernel is called `softmax`");
    let allowed = workplace.run(&[&gate[..], &["--allow-unknown"]].concat());
    assert_status(&allowed, 0);
}

#[test]
fn gates_are_counted_by_what_became_of_them() {
    let workplace = Workplace::new();
    workplace.trace("a.gapscope");
    workplace.trace_of("b.gapscope", &slower());
    let gates = [
        "diff",
        "--gate",
        "dispatches > 0",
        "--gate",
        "gpu_time > 1%",
        "--gate",
        "kernel(\"softmax\") > 3%",
        "a.gapscope",
        "b.gapscope",
    ];
    let output = workplace.run(&gates);
    assert_status(&output, 1);
    // Lines are broken at the width of the terminal.
    let page = text(&output.stdout)
        .split_whitespace()
        .collect::<Vec<_>>()
        .join(" ");
    assert_contains(&page, "1 of 3 held, 1 not judged, 1 unknown");
    assert_contains(
        page,
        "Not judged: these runs could show only changes above ",
    );
    let xml = workplace.run(&[&gates[..], &["--junit"]].concat());
    assert_contains(text(&xml.stdout), "tests=\"3\" failures=\"0\" errors=\"2\"");
    assert_contains(text(&xml.stdout), "type=\"undecided\"");
}

#[test]
fn what_is_unlike_is_said_first() {
    let workplace = Workplace::new();
    workplace.trace("a.gapscope");
    let other = TRACE.replace("name=\"Example GPU\"", "name=\"Other GPU\"");
    workplace.trace_of(
        "b.gapscope",
        &format!("{other}\nloss what=dispatches count=7 reason=\"the spool was full\""),
    );
    let output = workplace.run(&["diff", "--width", "200", "a.gapscope", "b.gapscope"]);
    let page = text(&output.stdout);
    let gpus = page.find("The GPUs differ: Example GPU before, Other GPU after.");
    let table = page.find("before  ");
    assert!(gpus.is_some() && gpus < table, "{page}");
    assert_contains(&page, "Lost: 7 dispatches: the spool was full");
}

#[test]
fn a_folder_of_traces_is_several_runs() {
    let workplace = Workplace::new();
    for side in ["a", "b"] {
        std::fs::create_dir(workplace.path(side)).unwrap();
        for run in 1..=3 {
            workplace.trace(&format!("{side}/{run}.gapscope"));
        }
    }
    let diff = json(&workplace, &["a", "b"]);
    assert_eq!(diff["before"]["runs"].as_array().unwrap().len(), 3);
    assert_eq!(diff["method"]["samples"], "runs");
    let same = json(
        &workplace,
        &words("--before a/1.gapscope a/2.gapscope --after b/1.gapscope"),
    );
    assert_eq!(same["before"]["runs"].as_array().unwrap().len(), 2);
}

#[test]
fn wrong_use_is_one_sentence() {
    let workplace = Workplace::new();
    workplace.trace("a.gapscope");
    std::fs::create_dir(workplace.path("empty")).unwrap();
    for (arguments, status, says) in [
        (&["a.gapscope"][..], 2, "BEFORE"),
        (&["a.gapscope", "missing"], 1, "missing"),
        (&["a.gapscope", "empty"], 1, "empty"),
        (
            &["--gate", "gpu_time", "a.gapscope", "a.gapscope"],
            2,
            "column 9",
        ),
        (
            &["--gate", "speed > 3%", "a.gapscope", "a.gapscope"],
            2,
            "is none of wall_time",
        ),
        (&["--before", "a.gapscope"], 2, "--after"),
        (&["--runs", "3", "--", "true"], 2, "two commands"),
        (
            &["--json", "--junit", "a.gapscope", "a.gapscope"],
            2,
            "cannot be used with",
        ),
    ] {
        let output = workplace.run(&[&["diff"], arguments].concat());
        assert_eq!(
            output.status.code(),
            Some(status),
            "{arguments:?}: {}",
            text(&output.stderr)
        );
        assert!(
            text(&output.stderr).contains(says),
            "{arguments:?}: {}",
            text(&output.stderr)
        );
    }
}

#[test]
fn runs_of_a_command_that_fails_end_with_its_status() {
    let workplace = Workplace::new();
    let output = workplace.run(&["diff", "--runs", "2", "--", "false", "--", "true"]);
    assert_status(&output, 1);
    assert_contains(
        text(&output.stderr),
        "false ended with exit status: 1 while warming up",
    );
    let output = workplace.run(&["diff", "--runs", "2", "--", "no-such-program", "--", "true"]);
    assert_status(&output, 127);
    let unwarmed = words("diff --runs 2 --warm-up 0 -o kept -- true -- true");
    let output = workplace.run(&unwarmed);
    assert_ne!(output.status.code(), Some(0));
    assert_contains(text(&output.stderr), "run 1, before");
}
