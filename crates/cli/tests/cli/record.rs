//! Tests `gapscope record` on programs that use no GPU: streams, exit codes and the time limit.

use crate::{Workplace, assert_contains, assert_status, exists, text};

#[test]
fn a_program_without_vulkan_is_said_and_leaves_no_trace() {
    let workplace = Workplace::new();
    let output = workplace.run(&[
        "record",
        "-o",
        "out",
        "--",
        "sh",
        "-c",
        "echo its own words",
    ]);
    assert_status(&output, 125);
    assert_eq!(text(&output.stdout), "its own words\n");
    let said = text(&output.stderr);
    assert!(
        said.starts_with("gapscope: the program used no Vulkan and no CUDA"),
        "{said}"
    );
    assert_eq!(said.lines().count(), 1, "{said}");
    assert!(!exists(&workplace.path("out")));
}

#[test]
fn the_programs_exit_code_is_passed_on() {
    let workplace = Workplace::new();
    for (script, status) in [
        ("exit 3", 3),
        ("kill -KILL $$", 137),
        ("kill -TERM $$", 143),
    ] {
        let output = workplace.run(&["record", "--", "sh", "-c", script]);
        assert_eq!(output.status.code(), Some(status), "{script}");
    }
}

#[test]
fn the_program_keeps_its_stdin() {
    use std::io::Write;
    use std::process::Stdio;
    let workplace = Workplace::new();
    let mut child = workplace
        .command(&["record", "--quiet", "--", "cat"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(b"typed").unwrap();
    assert_eq!(text(&child.wait_with_output().unwrap().stdout), "typed");
}

#[test]
fn a_time_limit_ends_the_command() {
    let output = Workplace::new().run(&["record", "--time-limit", "200ms", "--", "sleep", "100"]);
    assert_status(&output, 143);
    assert_contains(text(&output.stderr), "the time limit ended the command");
}
