//! Tests the help of every command, which a snapshot holds.

use crate::{Workplace, text};

fn help(of: &[&str]) -> String {
    let output = Workplace::new().run(&[&["help"], of].concat());
    assert!(output.status.success());
    text(&output.stdout)
}

#[test]
fn help_texts() {
    let mut pages = help(&[]);
    for command in [
        "record",
        "capture",
        "report",
        "explain",
        "diff",
        "baseline",
        "bench device",
        "export",
        "query",
        "deps",
        "what-if",
        "info",
        "doctor",
        "recover",
        "replay",
        "schema",
        "mcp",
        "completions",
    ] {
        pages.push_str(&format!(
            "\n--- gapscope help {command}\n{}",
            help(&command.split(' ').collect::<Vec<_>>())
        ));
    }
    insta::assert_snapshot!(pages);
}
