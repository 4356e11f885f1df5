//! Tests on a terminal that the progress of a recording never mixes with what the recorded program prints or asks.

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
        let command = format!("record --progress {PROGRAM} {redirections}");
        let got = on_terminal(&workplace, &command);
        assert!(!got.contains(LINE), "{redirections}: {got:?}");
        let note = "gapscope: no progress is drawn: the command writes to the terminal";
        match redirections {
            "2>err" => {
                let err = std::fs::read_to_string(workplace.path("err")).unwrap();
                assert_contains(&err, note);
            }
            _ => assert_contains(&got, note),
        }
        let steps = "\rstep 1\rstep 2\rstep 3\rstep 4\rstep 5\rstep 6";
        if redirections != "2>err" {
            assert_contains(&got, steps);
        }
    }
}

/// A program that asks for a password on the terminal, with stdout and stderr elsewhere: the prompt comes in two writes, and the
/// program waits long enough for several lines of progress between them.
const ASKING: &str =
    "sh -c 'printf \"Pass\" >/dev/tty; sleep 1; printf \"word: \" >/dev/tty; sleep 1'";

#[test]
fn a_prompt_on_the_terminal_is_never_drawn_over() {
    let workplace = Workplace::new();
    for redirections in [">out 2>err", ">out 2>err </dev/null"] {
        let got = on_terminal(&workplace, &format!("record {ASKING} {redirections}"));
        assert_eq!(got, "Password: ", "{redirections}");
    }
}

#[test]
fn progress_is_drawn_on_request_beside_a_program_that_writes_elsewhere() {
    let workplace = Workplace::new();
    let got = on_terminal(
        &workplace,
        &format!("record --progress {PROGRAM} >out 2>err"),
    );
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
fn without_a_request_no_progress_is_drawn() {
    let workplace = Workplace::new();
    for option in ["", "--no-progress", "--quiet"] {
        let got = on_terminal(&workplace, &format!("record {option} {PROGRAM} >out 2>err"));
        assert_eq!(got, "", "{option}");
    }
}
