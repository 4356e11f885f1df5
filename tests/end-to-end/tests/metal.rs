//! Tests recording as on macOS, with stand-ins for Apple's tools. The stand-in for xctrace records nothing and
//! exports planted command buffers: five of 200 us each, a millisecond apart, labelled `step N`. The stand-in for
//! gpucapture writes its arguments as its capture.

use crate::product::built;
use crate::recording::{assert_contains, words};
use serde_json::Value;
use std::path::Path;
use std::process::{Command, Output};

fn gapscope(folder: &Path, quirks: &str, arguments: &[&str]) -> Output {
    let mut command = Command::new(built("gapscope"));
    command.args(arguments).current_dir(folder);
    command.env("GAPSCOPE_XCTRACE", built("stand-in-xctrace"));
    command.env("STAND_IN_XCTRACE", quirks);
    command.output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn a_metal_program_is_recorded_reported_and_ends_as_it_did() {
    let folder = tempfile::tempdir().unwrap();
    let output = gapscope(
        folder.path(),
        "",
        &[
            "record",
            "-o",
            "run.gapscope",
            "--",
            "sh",
            "-c",
            "echo hello; exit 3",
        ],
    );
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(3), "{said}");
    assert_eq!(
        text(&output.stdout),
        "hello\n",
        "its output is its own, without xctrace's words"
    );
    assert_contains(&said, "M3 Ultra");
    // The report names the first of the labels during which the host was late.
    assert_contains(&said, "step 1");
    assert_contains(&said, "each encoder timed");
    let report = gapscope(
        folder.path(),
        "",
        &words("report --json --all run.gapscope"),
    );
    let report: Value = serde_json::from_slice(&report.stdout).unwrap();
    assert_eq!(report["sampling_mode"], "pass");
    // The sum of 5 x 200 us and 0 + 1 + 2 + 3 + 4 ns.
    assert_eq!(report["gpu_busy_ns"], 1_000_010, "{report:#}");
    let left: Vec<_> = std::fs::read_dir(folder.path()).unwrap().collect();
    assert_eq!(left.len(), 1, "{left:?}");
}

#[test]
fn labels_of_a_metal_program_are_compared_without_its_dispatches() {
    let folder = tempfile::tempdir().unwrap();
    let arguments = ["record", "--no-report", "-o", "run.gapscope", "--", "true"];
    let output = gapscope(folder.path(), "", &arguments);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let compare = ["report", "--compare-labels", "step 1,step 3"];
    let json = gapscope(
        folder.path(),
        "",
        &[&compare[..], &["--json", "run.gapscope"]].concat(),
    );
    let json: Value = serde_json::from_slice(&json.stdout).unwrap();
    let before = &json["equal_work"]["before"];
    assert_eq!(before["dispatch_count"], Value::Null);
    assert_eq!(
        before["dispatches_unknown_because"],
        "Instruments records encoders, not dispatches"
    );
    assert_eq!(before["command_buffer_count"], 1);
    assert_eq!(before["evaluations"], 1, "one command buffer");
    let page = gapscope(
        folder.path(),
        "",
        &[&compare[..], &["run.gapscope"]].concat(),
    );
    let page = text(&page.stdout);
    assert_contains(&page, "200 µs");
    assert!(
        !page.contains("0 dispatches") && !page.contains("could reach"),
        "{page}"
    );
}

#[test]
fn labels_of_the_sdk_are_compared() {
    let folder = tempfile::tempdir().unwrap();
    let run = |arguments: &[&str]| {
        let mut command = Command::new(built("gapscope"));
        command.args(arguments).current_dir(folder.path());
        command.env("GAPSCOPE_XCTRACE", built("stand-in-xctrace"));
        let output = command.env("STAND_IN_SIGNPOSTS", "1").output().unwrap();
        assert!(output.status.success(), "{}", text(&output.stderr));
        text(&output.stdout)
    };
    run(&["record", "--no-report", "-o", "run.gapscope", "--", "true"]);
    let compare = ["--compare-labels", "eager,compiled", "run.gapscope"];
    let json = run(&[&["report", "--json", "--all"], &compare[..]].concat());
    let json: Value = serde_json::from_str(&json).unwrap();
    for side in ["before", "after"] {
        let work = &json["equal_work"][side];
        assert_eq!(work["evaluations"], 10, "{work:#}");
        assert_eq!(work["command_buffer_count"], 10, "{work:#}");
        assert_eq!(work["dispatch_count"], Value::Null);
    }
    // Each command buffer takes 200 us and differs from the others by nanoseconds only.
    let page = run(&[&["report", "--all"], &compare[..]].concat());
    assert_contains(&page, "GPU busy");
    assert_contains(&page, "200 µs");
}

#[test]
fn no_times_at_all_are_no_report_of_an_idle_gpu() {
    let folder = tempfile::tempdir().unwrap();
    let arguments = ["record", "-o", "run.gapscope", "--", "true"];
    let output = gapscope(folder.path(), "no-gpu-rows,no-points", &arguments);
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(125), "{said}");
    assert!(
        said.contains("no time of any") && !said.contains("idle"),
        "{said}"
    );
}

#[test]
fn what_does_not_apply_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let output = gapscope(folder.path(), "", &words("record --delay 1s -- true"));
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("--delay is not possible here"));
}

#[test]
fn exports_are_imported() {
    let folder = tempfile::tempdir().unwrap();
    let record = words("record --no-report -o a.gapscope --attach 4711 --time-limit 10ms");
    assert_eq!(gapscope(folder.path(), "", &record).status.code(), Some(0));
    // A recording by Instruments, which is the stand-in's here.
    let bundle = folder.path().join("run.trace");
    std::fs::create_dir(&bundle).unwrap();
    std::fs::write(bundle.join("facts"), "4711\n0\n").unwrap();
    let output = gapscope(folder.path(), "", &words("import -o b.gapscope run.trace"));
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    assert!(text(&output.stderr).contains("5 command buffers in b.gapscope"));
    let again = gapscope(folder.path(), "", &words("import -o b.gapscope run.trace"));
    assert_eq!(again.status.code(), Some(1));
    assert!(text(&again.stderr).contains("exists already"));
    // Without an xctrace, only exports can be read.
    let mut elsewhere = Command::new(built("gapscope"));
    elsewhere
        .args(["import", "-o", "c.gapscope", "run.trace"])
        .current_dir(folder.path());
    let output = elsewhere.env_remove("GAPSCOPE_XCTRACE").output().unwrap();
    assert!(text(&output.stderr).contains("only xctrace on a Mac can read"));
}

#[test]
fn a_command_is_captured_where_there_is_a_gpucapture() {
    let folder = tempfile::tempdir().unwrap();
    let gputrace = |with: Option<&str>, arguments: &[&str]| {
        let mut command = Command::new(built("gapscope"));
        command.env_remove("GAPSCOPE_GPUCAPTURE");
        if let Some(tool) = with {
            command.env("GAPSCOPE_GPUCAPTURE", built(tool));
        }
        let words = ["record", "--gputrace", "a b.gputrace"];
        command.args(words).args(arguments);
        command.current_dir(folder.path()).output().unwrap()
    };
    let tool = Some("stand-in-gpucapture");
    let waits = "while [ ! -e 'a b.gputrace/capture' ]; do sleep 0.01; done; echo out; exit 3";
    let options = ["--gputrace-label", "step 3", "--gputrace-count", "all"];
    let output = gputrace(tool, &[&options[..], &["--", "sh", "-c", waits]].concat());
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(3), "{said}");
    assert_eq!(text(&output.stdout), "out\n", "its output is its own");
    assert_contains(&said, "the capture is in a b.gputrace");
    let capture = folder.path().join("a b.gputrace/capture");
    let asked = std::fs::read_to_string(&capture).unwrap();
    assert_contains(&asked, "--label step 3 --until-exit --output a b.gputrace");
    let again = gputrace(tool, &["--attach", "4711"]);
    assert_eq!(again.status.code(), Some(125));
    assert!(text(&again.stderr).contains("not overwritten"));
    assert_eq!(std::fs::read_to_string(&capture).unwrap(), asked);
    std::fs::remove_dir_all(folder.path().join("a b.gputrace")).unwrap();
    let output = gputrace(tool, &["--attach", "4711"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let asked = std::fs::read_to_string(&capture).unwrap();
    assert!(asked.starts_with("start --pid 4711 --count 1 "), "{asked}");
    // This system has no gpucapture of Apple's.
    if !Path::new("/usr/bin/gpucapture").exists() {
        let output = gputrace(None, &["--", "true"]);
        assert_eq!(output.status.code(), Some(125));
        assert!(text(&output.stderr).contains("macOS has it since version 27"));
    }
    let both = gputrace(tool, &["-o", "x.gapscope", "--", "true"]);
    assert_eq!(both.status.code(), Some(2));
}
