//! Tests that each failure is one sentence on stderr, with nothing on stdout and the documented exit status.

use crate::{Workplace, assert_contains, assert_status, exists, text};
use std::process::Output;

/// Returns the failure's sentence, which is on one line, with nothing on stdout.
fn sentence(workplace: &Workplace, output: &Output) -> String {
    assert!(!output.status.success());
    assert_eq!(text(&output.stdout), "");
    let said = text(&output.stderr);
    assert_eq!(said.lines().count(), 1, "{said}");
    let folder = workplace.folder.path().to_str().unwrap();
    said.trim_end().replace(folder, "WORKPLACE")
}

fn fails(workplace: &Workplace, arguments: &[&str], status: i32) -> String {
    let output = workplace.run(arguments);
    assert_status(&output, status);
    sentence(workplace, &output)
}

#[test]
fn commands_that_cannot_be_run() {
    let workplace = Workplace::new();
    std::fs::write(workplace.path("script.sh"), "true").unwrap();
    let mut said = String::new();
    for (command, status) in [
        ("no-such-command", 127),
        ("./no-such-file", 127),
        ("./script.sh", 126),
        ("./hooks", 126),
    ] {
        let sentence = fails(&workplace, &["record", "--", command], status);
        said.push_str(&format!("{sentence}\n"));
    }
    insta::assert_snapshot!(said);
    let left = std::fs::read_dir(workplace.folder.path()).unwrap().count();
    assert_eq!(left, 2, "nothing but hooks and script.sh is left");
}

#[test]
fn outputs_that_cannot_be_written() {
    let workplace = Workplace::new();
    std::fs::create_dir(workplace.path("there")).unwrap();
    let mut said = String::new();
    for output in [
        "there",
        "no/such/folder",
        "hooks/libgapscope_vulkan.so/x",
        "/proc/x.gapscope",
    ] {
        let sentence = fails(&workplace, &["record", "-o", output, "--", "true"], 125);
        said.push_str(&format!("{sentence}\n"));
    }
    insta::assert_snapshot!(said);
}

#[test]
fn a_read_only_folder_is_named() {
    // Nobody may make a folder there, not even root, who may write into every other read-only folder.
    let said = fails(
        &Workplace::new(),
        &["record", "-o", "/sys/x.gapscope", "--", "true"],
        125,
    );
    assert!(
        said.starts_with("gapscope: /sys/x.gapscope cannot be written: "),
        "{said}"
    );
    assert!(said.ends_with("; name another place with -o"), "{said}");
    let workplace = Workplace::new();
    for command in ["record", "capture"] {
        let mut command = workplace.command(&[command, "true"]);
        let output = command.current_dir("/sys").output().unwrap();
        assert_status(&output, 125);
        let said = sentence(&workplace, &output);
        assert!(said.ends_with("; name another place with -o"), "{said}");
    }
}

#[test]
fn a_missing_layer_is_said_before_the_command_runs() {
    let workplace = Workplace::new();
    let ran = workplace.path("ran");
    let output = workplace
        .command(&["record", "--", "touch", ran.to_str().unwrap()])
        .env("GAPSCOPE_HOOKS_DIR", workplace.path("elsewhere"))
        .output()
        .unwrap();
    assert_status(&output, 125);
    insta::assert_snapshot!(sentence(&workplace, &output));
    assert!(!exists(&ran));
}

#[test]
fn a_names_file_is_checked_before_the_command_runs() {
    let workplace = Workplace::new();
    std::fs::write(
        workplace.path("names"),
        "# names\n48373bb5 = matmul\nxyz = sin\n",
    )
    .unwrap();
    let ran = workplace.path("ran");
    let mut said = String::new();
    for names in ["names", "no-such-file"] {
        let sentence = fails(
            &workplace,
            &[
                "record",
                "--names",
                names,
                "--",
                "touch",
                ran.to_str().unwrap(),
            ],
            125,
        );
        said.push_str(&format!("{sentence}\n"));
    }
    insta::assert_snapshot!(said);
    assert!(!exists(&ran));
}

#[test]
fn traces_that_cannot_be_read() {
    let workplace = Workplace::new();
    std::fs::create_dir(workplace.path("folder")).unwrap();
    std::fs::write(workplace.path("file.json"), "{}").unwrap();
    for (name, from, to) in [
        ("newer", "\"format_version\": 3", "\"format_version\": 99"),
        ("unfinished", "\"complete\": true", "\"complete\": false"),
        ("damaged", "{", ""),
    ] {
        workplace.trace(name);
        workplace.edit(&format!("{name}/trace.json"), from, to);
    }
    let mut said = String::new();
    for trace in [
        "nowhere",
        "folder",
        "file.json",
        "newer",
        "unfinished",
        "damaged",
    ] {
        let sentence = fails(&workplace, &["report", trace], 1);
        said.push_str(&format!("{sentence}\n"));
    }
    said.push_str(&format!("{}\n", fails(&workplace, &["info", "nowhere"], 1)));
    said.push_str(&format!(
        "{}\n",
        fails(&workplace, &["recover", "folder"], 1)
    ));
    insta::assert_snapshot!(said);
}

#[test]
fn a_label_that_is_not_there_names_those_that_are() {
    let workplace = Workplace::new();
    workplace.trace("run.gapscope");
    let mut said = fails(
        &workplace,
        &["report", "--label", "decode", "run.gapscope"],
        1,
    );
    let compare = ["report", "--compare-labels", "step,decode", "run.gapscope"];
    said.push_str(&format!("\n{}\n", fails(&workplace, &compare, 1)));
    insta::assert_snapshot!(said);
}

#[test]
fn a_full_disk_behind_stdout_is_said() {
    let workplace = Workplace::new();
    workplace.trace("run.gapscope");
    let full = std::fs::File::options()
        .write(true)
        .open("/dev/full")
        .unwrap();
    let output = workplace
        .command(&["report", "run.gapscope"])
        .stdout(full)
        .output()
        .unwrap();
    assert_status(&output, 1);
    assert_eq!(
        sentence(&workplace, &output),
        "gapscope: cannot write to stdout: No space left on device"
    );
}

#[test]
fn a_time_without_a_unit_is_refused() {
    let output = Workplace::new().run(&["record", "--delay", "10", "--", "true"]);
    assert_status(&output, 2);
    let said = text(&output.stderr);
    assert_contains(&said, "write a time with its unit");
}

/// An empty argument mostly comes from a shell variable that is not set.
#[test]
fn an_empty_argument_is_said_to_be_empty() {
    let workplace = Workplace::new();
    for (arguments, named) in [
        (&["report", ""][..], "<TRACE>"),
        (&["explain", ""], "<TRACE>"),
        (&["view", "--no-open", ""], "<TRACE|CAPTURE|VIEW>"),
        (&["info", ""], "TRACE"),
        (&["diff", "", ""], "BEFORE"),
        (&["deps", ""], "CAPTURE"),
        (&["what-if", ""], "TRACE"),
        (&["replay", ""], "CAPTURE"),
        (&["recover", ""], "TRACE"),
        (&["import", "-o", "a.gapscope", ""], "PATH"),
        (&["export", "--format", "chrome", "-o", "", "t"], "--output"),
        (&["report", "--html", "", "t"], "--html"),
        (&["report", "--names", "", "t"], "--names"),
    ] {
        let output = workplace.run(arguments);
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {said}");
        assert_eq!(said.lines().count(), 1, "{said}");
        assert!(said.starts_with("gapscope: \"\" is given for "), "{said}");
        assert!(said.contains(named), "{arguments:?}: {said}");
    }
}

#[test]
fn options_behind_the_commands_name_are_its_own() {
    let workplace = Workplace::new();
    for arguments in [
        &["record", "-o", "out", "echo", "-o", "--mode", "--", "x"][..],
        &[
            "record", "-o", "out", "--", "echo", "-o", "--mode", "--", "x",
        ],
    ] {
        let output = workplace.run(arguments);
        assert_status(&output, 125);
        assert_eq!(text(&output.stdout), "-o --mode -- x\n", "{arguments:?}");
    }
    let output = workplace.run(&["capture", "-o", "out.gapcapture", "echo", "-o"]);
    assert_eq!(output.status.code(), Some(125), "{output:?}");
}

#[test]
fn a_program_or_a_trace_in_place_of_a_task_gets_the_line_to_type() {
    let workplace = Workplace::new();
    workplace.trace("run.gapscope");
    let said = fails(&workplace, &["true", "--steps", "a b"], 2);
    assert_contains(&said, "type `gapscope record true --steps 'a b'`");
    let said = fails(&workplace, &["/bin/true"], 2);
    assert_contains(&said, "/bin/true is a program and no task");
    let said = fails(&workplace, &["run.gapscope"], 2);
    assert_contains(&said, "type `gapscope report run.gapscope`");
    let output = workplace.run(&["reprot", "run.gapscope"]);
    assert_status(&output, 2);
    assert_contains(text(&output.stderr), "'report'");
}

#[test]
fn a_wrong_option_gets_a_guess() {
    let workplace = Workplace::new();
    for (arguments, guess) in [
        (&["record", "--limit", "3s", "true"][..], "'--time-limit'"),
        (&["record", "--out", "x", "true"], "'--output'"),
        (&["report", "--jason", "x"], "'--json'"),
        (
            &["bench", "device", "--seconds", "x"],
            "gapscope bench device",
        ),
    ] {
        let output = workplace.run(arguments);
        assert_status(&output, 2);
        let said = text(&output.stderr);
        assert_contains(&said, guess);
        assert!(
            !said.contains("as a value") || guess.contains("bench"),
            "{said}"
        );
    }
}

#[test]
fn a_name_without_its_extension_gets_a_guess() {
    let workplace = Workplace::new();
    workplace.trace("run.gapscope");
    for command in ["report", "info", "explain"] {
        let said = fails(&workplace, &[command, "run"], 1);
        assert_eq!(said, "gapscope: run does not exist: is run.gapscope meant?");
    }
    std::fs::write(workplace.path("run"), "\x7fELF").unwrap();
    let said = fails(&workplace, &["report", "run"], 1);
    assert_contains(&said, "is run.gapscope meant?");
}
