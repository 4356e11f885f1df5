//! Tests `gapscope report`, `info` and `recover` on one trace: widths, options, damaged files, and what they say.

use crate::{Workplace, assert_contains, assert_status, text, words};
use std::process::Stdio;

fn stdout(workplace: &Workplace, arguments: &[&str]) -> String {
    let output = workplace.run(arguments);
    assert_status(&output, 0);
    assert_eq!(text(&output.stderr), "");
    text(&output.stdout)
}

#[test]
fn a_pipe_gets_eighty_columns_without_colour() {
    let workplace = Workplace::new();
    workplace.trace("run.gapscope");
    let page = stdout(&workplace, &["report", "run.gapscope"]);
    assert_contains(&page, "HOST-BOUND");
    assert!(!page.contains('\x1b'));
    assert!(
        page.lines().all(|line| line.chars().count() <= 80),
        "{page}"
    );
}

#[test]
fn the_first_screen_is_short_and_the_rest_is_asked_for() {
    let workplace = Workplace::new();
    workplace.trace("run.gapscope");
    let page = stdout(&workplace, &["report", "run.gapscope"]);
    assert!(page.lines().count() <= 40, "{page}");
    assert_contains(&page, "Do first: prepare work ahead");
    let full = stdout(&workplace, &["report", "--full", "run.gapscope"]);
    assert_contains(&full, "Launch latency");
    let some = words("report --section memory --section labels run.gapscope");
    let some = stdout(&workplace, &some);
    assert!(some.starts_with("Device memory"), "{some}");
    assert_contains(&some, "\nLabels");
    let markdown = words("report --markdown --section labels run.gapscope");
    assert!(stdout(&workplace, &markdown).starts_with("## Labels"));
    let output = workplace.run(&["report", "--section", "kernel", "run.gapscope"]);
    assert_status(&output, 2);
    for said in ["command-buffers, transfers", "'kernels'"] {
        assert_contains(text(&output.stderr), said);
    }
}

#[test]
fn text_is_as_wide_as_is_asked_for() {
    let workplace = Workplace::new();
    workplace.trace("run.gapscope");
    let widest = |page: &str| page.lines().map(|line| line.chars().count()).max();
    let page = stdout(&workplace, &["report", "--full", "run.gapscope"]);
    let advice = page.lines().find(|line| line.contains("also min, max"));
    let columns = advice.unwrap().trim().rsplit_once(' ').unwrap().1;
    // At that width the table is complete; at one column less it is not.
    let less = (columns.parse::<usize>().unwrap() - 1).to_string();
    let at = |columns: &str| {
        let arguments = ["report", "--full", "--width", columns, "run.gapscope"];
        stdout(&workplace, &arguments)
    };
    assert!(!at(columns).contains("also min, max"), "{}", at(columns));
    assert!(at(&less).contains("also whole names:"), "{}", at(&less));
    assert_eq!(widest(&at("150")), Some(150));
    let output = workplace
        .command(&["report", "run.gapscope"])
        .env("COLUMNS", "100")
        .output()
        .unwrap();
    assert_eq!(widest(&text(&output.stdout)), Some(100));
    let output = workplace.run(&["report", "--width", "12", "run.gapscope"]);
    assert_status(&output, 2);
}

#[test]
fn kernels_can_be_named_after_they_were_recorded() {
    let workplace = Workplace::new();
    workplace.trace("run.gapscope");
    std::fs::write(workplace.path("names.txt"), "48373bb5 = matmul of mine\n").unwrap();
    let names = ["--names", "names.txt", "run.gapscope"];
    let page = stdout(&workplace, &[&["report"][..], &names].concat());
    assert!(
        page.contains("matmul of mine") && !page.contains("matmul_f16"),
        "{page}"
    );
    let json = stdout(&workplace, &[&["report", "--json"][..], &names].concat());
    assert_contains(&json, "\"name_source\": \"names-file\"");
    assert!(!page.contains("names.txt"), "{page}");
    let more = "48373bb5 = matmul of mine\n# none\n00000000 = a\n11111111 = b\n";
    std::fs::write(workplace.path("names.txt"), more).unwrap();
    let page = stdout(&workplace, &[&["report"][..], &names].concat());
    let said = "2 of 3 lines of names.txt name no kernel of this trace.";
    assert_contains(&page, said);
    std::fs::write(workplace.path("names.txt"), "xyz = b\n").unwrap();
    let output = workplace.run(&[&["report"][..], &names].concat());
    assert_status(&output, 1);
    let said = text(&output.stderr);
    assert_contains(&said, "names.txt, line 1");
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
        assert_status(&output, 0);
        assert_eq!(text(&output.stderr), "");
    }
}

/// Cuts the end off a file, as an interrupted copy does.
fn cut(workplace: &Workplace, file: &str) {
    let path = workplace.path(file);
    let bytes = std::fs::read(&path).unwrap();
    std::fs::write(path, &bytes[..bytes.len() / 2]).unwrap();
}

#[test]
fn a_table_that_cannot_be_read_is_said_first_and_by_the_status() {
    let workplace = Workplace::new();
    workplace.trace("run.gapscope");
    cut(&workplace, "run.gapscope/dispatches.parquet");
    let output = workplace.run(&["report", "run.gapscope"]);
    assert_status(&output, 3);
    let page = text(&output.stdout);
    let said = page.find("dispatches.parquet cannot be read (its end is missing)");
    assert!(said < page.find("UNKNOWN"), "{page}");
    assert!(said.is_some() && !page.contains("DEVICE-BOUND"), "{page}");
    let output = workplace.run(&["report", "--json", "run.gapscope"]);
    assert_status(&output, 3);
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(json["verdict"], "unknown");
    assert_eq!(json["unread"][0]["table"], "dispatches");
    assert!(json["dispatch_count"].is_null());
    let compare = words("report --compare-labels step,attention run.gapscope");
    for arguments in [&compare[..], &["report", "--label", "step", "run.gapscope"]] {
        let output = workplace.run(arguments);
        assert_status(&output, 3);
        let said = text(&output.stderr) + &text(&output.stdout);
        assert_contains(&said, "dispatches.parquet cannot be read");
    }
    let output = workplace.run(&["info", "run.gapscope"]);
    assert_status(&output, 3);
    assert_contains(text(&output.stdout), "dispatches");
    let export = ["export", "--format", "chrome", "-o", "-", "run.gapscope"];
    let output = workplace.run(&export);
    assert_status(&output, 3);
    assert_contains(text(&output.stderr), "dispatches.parquet cannot be read");
    assert_contains(
        text(&output.stderr),
        "gaps depend on that and are not drawn",
    );
    assert!(!text(&output.stdout).contains("gaps by cause"));
    let page = ["report", "--html", "page.html", "run.gapscope"];
    let output = workplace.run(&page);
    assert_status(&output, 3);
    assert_contains(text(&output.stderr), "dispatches.parquet cannot be read");
}

#[test]
fn a_manifest_that_was_changed_is_said_by_all_commands_and_by_the_status() {
    let workplace = Workplace::new();
    workplace.trace("run.gapscope");
    let path = workplace.path("run.gapscope/trace.json");
    let manifest = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, manifest.replacen("\n  ", "\n   ", 1)).unwrap();
    for arguments in [
        &["report", "--width", "300", "run.gapscope"][..],
        &["report", "--json", "run.gapscope"],
        &["report", "--html", "page.html", "run.gapscope"],
        &["info", "--width", "300", "run.gapscope"],
        &words("export --format chrome -o run.json run.gapscope"),
    ] {
        let output = workplace.run(arguments);
        let said = text(&output.stderr) + &text(&output.stdout);
        let sentence = "trace.json was changed or damaged after it was written";
        assert!(said.contains(sentence), "{arguments:?}: {said}");
        assert_eq!(output.status.code(), Some(3), "{arguments:?}: {said}");
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
    assert_contains(&page, "4 dispatches of 1 kernel");
    assert_contains(&page, "under labels that contain \"attention\"");
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

/// Returns the words with digits of a page, without the picture of the timeline and punctuation.
fn numbers(page: &str) -> std::collections::BTreeSet<String> {
    let mut numbers = std::collections::BTreeSet::new();
    let mut in_picture = false;
    for line in page.lines() {
        let is_heading = line.contains("──");
        in_picture = line.starts_with("Timeline ") || in_picture && !is_heading;
        if in_picture {
            continue;
        }
        let words = line.split_whitespace();
        let words = words.map(|word| word.trim_matches(|c: char| ".,:;()".contains(c)));
        numbers.extend(
            words
                .filter(|word| word.contains(|c: char| c.is_ascii_digit()))
                .map(str::to_owned),
        );
    }
    numbers
}

#[test]
fn an_explanation_has_each_number_of_the_report() {
    let fixtures = std::path::Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures"));
    for file in [
        "kineto/h100.json",
        "kineto/v100_ns.json",
        "kineto/v100_old.json",
        "imports/nsys-2025.5.2.sqlite",
        "imports/rocpd.db",
        "imports/rocprofv3.json",
        "v1.gapscope",
        "v3.gapscope",
    ] {
        let workplace = Workplace::new();
        let source = fixtures.join(file).to_string_lossy().into_owned();
        let trace = match file.ends_with(".gapscope") {
            true => source,
            false => {
                assert_status(
                    &workplace.run(&["import", "-o", "run.gapscope", &source]),
                    0,
                );
                "run.gapscope".to_owned()
            }
        };
        let page = |command| {
            let output =
                workplace.run(&[&words(command)[..], &["--width", "400", &trace]].concat());
            text(&output.stdout)
        };
        let (report, explanation) = (page("report --full"), page("explain"));
        let mut missing = numbers(&report);
        for number in numbers(&explanation) {
            missing.remove(&number);
        }
        assert!(
            missing.is_empty(),
            "{file}: {missing:?}\n{report}\n{explanation}"
        );
    }
}
