//! Tests on a terminal that the progress of a recording never mixes with what the recorded program prints.

use crate::{Workplace, assert_contains, text};
use std::process::Command;

/// A program that draws a progress of its own on stderr for a second, as many do.
const PROGRAM: &str =
    "sh -c 'for i in 1 2 3 4 5 6; do printf \"\\rstep $i\" >&2; sleep 0.2; done; echo'";

/// Returns what a terminal gets while it runs `gapscope` with these arguments and redirections.
fn on_terminal(workplace: &Workplace, arguments: &str) -> String {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/cli/on_terminal.py");
    let line = format!("{} {arguments}", env!("CARGO_BIN_EXE_gapscope"));
    let output = Command::new("python3")
        .args([script, &line])
        .current_dir(&workplace.folder)
        .env("GAPSCOPE_HOOKS_DIR", workplace.path("hooks"))
        .env("XDG_STATE_HOME", workplace.path("state"))
        .env("TERM", "xterm")
        .output()
        .unwrap();
    assert_eq!(text(&output.stderr), "");
    text(&output.stdout)
}

/// The line of a recording that has lasted for less than 10 s.
const LINE: &str = "gapscope  0:0";

#[test]
fn a_program_on_the_terminal_has_it_for_itself() {
    let workplace = Workplace::new();
    for redirections in ["", ">out", "2>err"] {
        let got = on_terminal(&workplace, &format!("record {PROGRAM} {redirections}"));
        assert!(!got.contains(LINE), "{redirections}: {got:?}");
        let steps = "\rstep 1\rstep 2\rstep 3\rstep 4\rstep 5\rstep 6";
        if redirections != "2>err" {
            assert_contains(&got, steps);
        }
    }
}

#[test]
fn progress_is_drawn_beside_a_program_that_writes_elsewhere() {
    let workplace = Workplace::new();
    let got = on_terminal(&workplace, &format!("record {PROGRAM} >out 2>err"));
    assert_contains(&got, LINE);
    assert!(
        got.ends_with("\r\u{1b}[K"),
        "the line is gone at the end: {got:?}"
    );
    let err = std::fs::read_to_string(workplace.path("err")).unwrap();
    assert_contains(&err, "\rstep 6");
    assert_contains(&err, "gapscope: the program used no Vulkan");
    assert!(!err.contains(LINE), "{err:?}");
}

#[test]
fn progress_is_turned_off_by_options() {
    let workplace = Workplace::new();
    for option in ["--no-progress", "--quiet"] {
        let got = on_terminal(&workplace, &format!("record {option} {PROGRAM} >out 2>err"));
        assert_eq!(got, "", "{option}");
    }
}
