//! Tests `gapscope query`, for whose program a script stands in.

use crate::{assert_contains, assert_status, text};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// Prints what it was started with, and ends with 3.
const STAND_IN: &str = "#!/bin/sh\necho \"$$\"\nprintf '<%s>' \"$@\"\ncat\necho said >&2\nexit 3\n";

/// A folder with `gapscope` and nothing else.
struct Installed {
    folder: tempfile::TempDir,
}

impl Installed {
    fn new() -> Installed {
        // The folder is on the command's disk, so that a link replaces a copy.
        let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        let program = folder.path().join("bin/gapscope");
        std::fs::create_dir(folder.path().join("bin")).unwrap();
        std::fs::hard_link(env!("CARGO_BIN_EXE_gapscope"), program).unwrap();
        Installed { folder }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(self.path("bin/gapscope"));
        command.args(arguments).env("PATH", self.path("path"));
        command
    }

    /// Writes the stand-in into a folder.
    fn add_program(&self, folder: &str) {
        let path = self.path(folder).join("gapscope-query");
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        let path_of_shell = std::env::var("PATH").unwrap_or_default();
        let script = STAND_IN.replacen('\n', &format!("\nPATH='{path_of_shell}'\n"), 1);
        std::fs::write(&path, script).unwrap();
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o755)).unwrap();
    }
}

/// The program takes over the command's process, so that signals and the exit status are its own.
#[test]
fn the_program_takes_over_with_arguments_streams_and_status() {
    for folder in ["bin", "path"] {
        let installed = Installed::new();
        installed.add_program(folder);
        let arguments = ["query", "--format", "csv", "a b", "select 1"];
        std::fs::write(installed.path("stdin"), "typed").unwrap();
        let child = installed
            .command(&arguments)
            .stdin(std::fs::File::open(installed.path("stdin")).unwrap())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let process = child.id();
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(3), "{folder}");
        assert_eq!(
            text(&output.stdout),
            format!("{process}\n<--format><csv><a b><select 1>typed")
        );
        assert_eq!(text(&output.stderr), "said\n");
    }
}

#[test]
fn a_program_beside_the_command_is_preferred_to_one_in_path() {
    let installed = Installed::new();
    installed.add_program("bin");
    let other = installed.path("path/gapscope-query");
    std::fs::create_dir(installed.path("path")).unwrap();
    std::fs::write(&other, "#!/bin/sh\nexit 9\n").unwrap();
    std::fs::set_permissions(&other, PermissionsExt::from_mode(0o755)).unwrap();
    let mut command = installed.command(&["query", "t"]);
    let output = command.stdin(Stdio::null()).output();
    assert_eq!(output.unwrap().status.code(), Some(3));
}

/// `uv tool install` makes such a link to the command.
#[test]
fn a_link_to_the_command_finds_the_program() {
    let installed = Installed::new();
    installed.add_program("bin");
    let link = installed.path("link");
    std::os::unix::fs::symlink(installed.path("bin/gapscope"), &link).unwrap();
    let mut command = Command::new(link);
    let output = command.args(["query", "t"]).stdin(Stdio::null()).output();
    assert_eq!(output.unwrap().status.code(), Some(3));
}

#[test]
fn without_the_program_one_sentence_says_how_to_get_it() {
    let output = Installed::new().command(&["query", "t.gapscope"]).output();
    let output = output.unwrap();
    assert_status(&output, 1);
    assert!(output.stdout.is_empty());
    let said = text(&output.stderr);
    assert_eq!(said.lines().count(), 1, "{said}");
    for part in ["gapscope-query", "cargo build", "wheel"] {
        assert!(said.contains(part), "{part}: {said}");
    }
}

#[test]
fn options_and_help_need_no_program() {
    let installed = Installed::new();
    let wrong = installed
        .command(&["query", "--format", "xml", "t"])
        .output();
    let wrong = wrong.unwrap();
    assert_status(&wrong, 2);
    assert_contains(
        text(&wrong.stderr),
        "[possible values: table, csv, json, rows, parquet]",
    );
    for arguments in [&["query", "--help"][..], &["help", "query"]] {
        let help = installed.command(arguments).output().unwrap();
        assert!(help.status.success());
        assert_contains(text(&help.stdout), "Saved queries:");
    }
}
