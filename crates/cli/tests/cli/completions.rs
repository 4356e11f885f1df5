//! Tests the completions of shells: every command and option is among them.

use crate::{Workplace, text};

#[test]
fn every_shell_completes_every_command() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let output = Workplace::new().run(&["completions", shell]);
        assert!(output.status.success(), "{shell}");
        let script = text(&output.stdout);
        for word in [
            "record",
            "report",
            "query",
            "info",
            "recover",
            "completions",
            "start-label",
            "compare-labels",
            "saved",
        ] {
            assert!(script.contains(word), "{shell} lacks {word}");
        }
    }
}

#[test]
fn bash_accepts_its_script() {
    let workplace = Workplace::new();
    let script = workplace.run(&["completions", "bash"]).stdout;
    std::fs::write(workplace.path("script"), script).unwrap();
    let check = std::process::Command::new("bash")
        .arg("-n")
        .arg(workplace.path("script"))
        .status();
    let required = std::env::var_os("GAPSCOPE_REQUIRE_CLIENTS").is_some_and(|value| value == "1");
    match check {
        Ok(status) => assert!(status.success()),
        Err(error) => assert!(!required, "no bash: {error}"),
    }
}
