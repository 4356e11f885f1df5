//! Tests `gapscope capture` without a GPU: what it refuses before the program starts, and what it reports of a
//! program without Vulkan.

use crate::{Workplace, assert_contains, text};

fn workplace() -> Workplace {
    let workplace = Workplace::new();
    let layer = workplace.path("hooks/libgapscope_vulkan_capture.so");
    std::fs::write(layer, "").unwrap();
    workplace
}

#[track_caller]
fn check(workplace: &Workplace, arguments: &[&str], status: i32, sentence: &str) {
    let output = workplace.run(&[&["capture"], arguments].concat());
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(status), "{said}");
    assert_contains(&said, sentence);
    assert!(output.stdout.is_empty(), "the program did not run");
}

#[test]
fn what_cannot_be_written_is_refused_before_the_program_starts() {
    let workplace = workplace();
    std::fs::create_dir(workplace.path("there.gapcapture")).unwrap();
    let program = ["--", "echo", "ran"];
    let with = |output| [&["-o", output], &program[..]].concat();
    check(
        &workplace,
        &with("there.gapcapture"),
        125,
        "exists; nothing is overwritten",
    );
    check(
        &workplace,
        &with("no/such.gapcapture"),
        125,
        "there is no folder no",
    );
    check(
        &workplace,
        &["--", "no-such-program"],
        127,
        "no such command",
    );
}

#[test]
fn a_window_that_is_none_is_a_wrong_option() {
    let workplace = workplace();
    for window in ["5..5", "7..3", "1-2", "a..b", "3"] {
        let arguments = ["--dispatches", window, "--", "true"];
        check(&workplace, &arguments, 2, "write a range such as 3..5");
    }
    let both = ["--dispatches", "1..2", "--label", "x", "--", "true"];
    check(&workplace, &both, 2, "cannot be used with");
}

#[test]
fn a_program_without_vulkan_has_nothing_to_capture() {
    let workplace = workplace();
    check(
        &workplace,
        &["--", "true"],
        125,
        "nothing was captured: the command made no Vulkan device",
    );
    check(
        &workplace,
        &["--", "sh", "-c", "exit 7"],
        7,
        "nothing was captured",
    );
    let left: Vec<_> = std::fs::read_dir(workplace.path(".")).unwrap().collect();
    assert_eq!(left.len(), 1, "only the hooks: {left:?}");
}
