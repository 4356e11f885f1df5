use crate::{Workplace, text};
use std::process::Stdio;

fn stdout(workplace: &Workplace, arguments: &[&str]) -> String {
    let output = workplace.run(arguments);
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert_eq!(text(&output.stderr), "");
    text(&output.stdout)
}

#[test]
fn a_pipe_gets_eighty_columns_without_colour() {
    let workplace = Workplace::new();
    workplace.trace("run.gapscope");
    let page = stdout(&workplace, &["report", "run.gapscope"]);
    assert!(page.contains("HOST-BOUND"), "{page}");
    assert!(!page.contains('\x1b'));
    assert!(
        page.lines().all(|line| line.chars().count() <= 80),
        "{page}"
    );
}

#[test]
fn a_reader_that_has_had_enough_is_no_failure() {
    let workplace = Workplace::new();
    workplace.trace("run.gapscope");
    for format in ["--json", "--markdown"] {
        let mut child = workplace
            .command(&["report", format, "run.gapscope"])
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        drop(child.stdout.take());
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(0));
        assert_eq!(text(&output.stderr), "");
    }
}

#[test]
fn json_is_one_document_whatever_the_options() {
    let workplace = Workplace::new();
    workplace.trace("run.gapscope");
    for options in [
        &["--all"][..],
        &["--top", "1"],
        &["--label", "step"],
        &["--compare-labels", "step,attention | heads"],
    ] {
        let arguments = [&["report", "--json"], options, &["run.gapscope"]].concat();
        let json: serde_json::Value =
            serde_json::from_str(&stdout(&workplace, &arguments)).unwrap();
        assert_eq!(json["trace"], "run.gapscope");
        assert_eq!(json["kernels"].as_array().unwrap().len(), 2, "{options:?}");
    }
}

#[test]
fn a_label_leaves_the_rest_out() {
    let workplace = Workplace::new();
    workplace.trace("run.gapscope");
    let page = stdout(
        &workplace,
        &["report", "--label", "attention", "run.gapscope"],
    );
    assert!(page.contains("4 dispatches of 1 kernel"), "{page}");
    assert!(
        page.contains("under labels that contain \"attention\""),
        "{page}"
    );
}

#[test]
fn the_comparison_of_two_labels() {
    let workplace = Workplace::new();
    workplace.trace("run.gapscope");
    let page = stdout(
        &workplace,
        &[
            "report",
            "--compare-labels",
            "step,attention | heads",
            "run.gapscope",
        ],
    );
    insta::assert_snapshot!(page);
}

#[test]
fn info_counts_rows() {
    let workplace = Workplace::new();
    workplace.trace("run.gapscope");
    let page = stdout(&workplace, &["info", "run.gapscope"]);
    let row = page
        .lines()
        .find(|line| line.trim_start().starts_with("dispatches"));
    assert!(
        row.is_some_and(|row| row.split_whitespace().nth(1) == Some("8")),
        "{page}"
    );
}

#[test]
fn recovering_a_complete_trace_changes_nothing() {
    let workplace = Workplace::new();
    workplace.trace("run.gapscope");
    let page = stdout(&workplace, &["recover", "run.gapscope"]);
    assert_eq!(
        page,
        "run.gapscope is complete already; nothing was changed.\n"
    );
}
