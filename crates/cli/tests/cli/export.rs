//! Tests `gapscope export`: where its files go, what is never overwritten, and what failures leave.

use crate::{Workplace, assert_contains, assert_status, exists, text};

fn export(workplace: &Workplace, format: &str, output: &str) -> std::process::Output {
    workplace.run(&["export", "--format", format, "-o", output, "t.gapscope"])
}

#[test]
fn every_format_is_written_and_never_over_another_file() {
    let workplace = Workplace::new();
    workplace.trace("t.gapscope");
    for format in FORMATS {
        let output = export(&workplace, format, format);
        assert_status(&output, 0);
        assert!(output.stdout.is_empty());
        assert!(exists(&workplace.path(format)));
        let again = export(&workplace, format, format);
        assert_status(&again, 1);
        assert_eq!(
            text(&again.stderr),
            format!(
                "gapscope: {format} is there already, and nothing is overwritten: choose another name after -o, or \
                 remove it\n"
            )
        );
    }
}

const FORMATS: [&str; 5] = ["perfetto", "chrome", "firefox", "speedscope", "csv"];

#[test]
fn stdout_gets_what_a_file_gets() {
    let workplace = Workplace::new();
    workplace.trace("t.gapscope");
    for format in FORMATS.iter().filter(|format| **format != "csv") {
        let piped = export(&workplace, format, "-");
        assert_status(&piped, 0);
        export(&workplace, format, format);
        let file = std::fs::read(workplace.path(format)).unwrap();
        assert!(!file.is_empty() && file == piped.stdout, "{format}");
    }
    let csv = export(&workplace, "csv", "-");
    assert_status(&csv, 1);
    assert_contains(text(&csv.stderr), "give a folder after -o");
}

#[test]
fn rows_without_times_are_counted_on_stderr() {
    let workplace = Workplace::new();
    workplace.trace_of("t.gapscope", include_str!("../../../../fixtures/v1.txt"));
    let output = export(&workplace, "chrome", "out.json");
    assert!(output.status.success());
    assert_eq!(
        text(&output.stderr),
        "gapscope: 1 of 3 rows of dispatches have no times and are not drawn\n\
         gapscope: 1 of 2 rows of command_buffers have no times and are not drawn\n\
         gapscope: 1 of 2 rows of submissions have no times and are not drawn\n"
    );
}

#[test]
fn a_trace_that_cannot_be_read_leaves_no_output() {
    let workplace = Workplace::new();
    let output = export(&workplace, "chrome", "out.json");
    assert_status(&output, 1);
    assert_eq!(text(&output.stderr).lines().count(), 1);
    assert!(!exists(&workplace.path("out.json")));
}

#[test]
fn a_place_that_cannot_be_written_is_one_sentence() {
    let workplace = Workplace::new();
    workplace.trace("t.gapscope");
    for format in FORMATS {
        let output = export(&workplace, format, "nowhere/out");
        assert_status(&output, 1);
        assert_eq!(
            text(&output.stderr),
            "gapscope: nowhere/out cannot be written: No such file or directory\n"
        );
    }
}

/// A limit on the size of files stands for a full disk.
#[test]
fn an_export_that_fails_half_way_leaves_nothing() {
    let workplace = Workplace::new();
    workplace.trace("t.gapscope");
    for format in ["csv", "chrome"] {
        let shell = format!(
            "ulimit -f 1; exec '{}' export --format {format} -o out t.gapscope",
            env!("CARGO_BIN_EXE_gapscope")
        );
        let output = std::process::Command::new("sh")
            .args(["-c", &shell])
            .current_dir(workplace.path("."))
            .output()
            .unwrap();
        assert_status(&output, 1);
        assert_eq!(text(&output.stderr).lines().count(), 1);
        assert!(!exists(&workplace.path("out")), "{format}");
    }
}
