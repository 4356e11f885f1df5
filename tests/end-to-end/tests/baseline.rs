//! Runs the steps of the workflow in `docs/ci`, which users copy, in a shell and in their order.

use crate::driver::{Driver, Lavapipe};
use crate::product;
use crate::recording::assert_contains;
use std::fs;
use std::path::Path;
use std::process::{Command, Output};

/// A step of the workflow that runs commands.
struct Step {
    name: String,
    script: String,
}

/// Returns the steps with `run: |` and their names. They are separate lines, as [`each_script_is_found`] tests.
fn steps() -> Vec<Step> {
    let path = product::source("../../docs/ci/github-actions.yml");
    let text = fs::read_to_string(path).expect("the workflow is there");
    let mut steps: Vec<Step> = Vec::new();
    let mut lines = text.lines().peekable();
    let mut name = "";
    while let Some(line) = lines.next() {
        if let Some(given) = line.trim_start().strip_prefix("- name: ") {
            name = given;
        }
        if line.trim() != "run: |" {
            continue;
        }
        let deep = " ".repeat(line.len() - line.trim_start().len() + 2);
        let mut script = String::new();
        while let Some(inside) = lines.peek().and_then(|line| line.strip_prefix(&deep)) {
            script.push_str(inside);
            script.push('\n');
            lines.next();
        }
        steps.push(Step {
            name: name.to_owned(),
            script,
        });
    }
    steps
}

/// Runs a step as the CI service does: with `bash -eo pipefail`.
fn run(step: &Step, folder: &Path, iterations: u32) -> Output {
    let gapscope = product::built("gapscope");
    let builds = gapscope.parent().expect("a folder").display().to_string();
    let path = std::env::var("PATH").unwrap_or_default();
    let program = product::built("fusion").display().to_string();
    Command::new("bash")
        .args([
            "--noprofile",
            "--norc",
            "-eo",
            "pipefail",
            "-c",
            &step.script,
        ])
        .current_dir(folder)
        .envs(Lavapipe.variables())
        .env("PATH", format!("{builds}:{path}"))
        .env(
            "PROGRAM",
            format!("{program} --n 50000 --iterations {iterations} --mode eager"),
        )
        .env("RUNS", "2")
        .env("GITHUB_STEP_SUMMARY", folder.join("summary.md"))
        .output()
        .expect("bash starts")
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn each_script_is_found() {
    let names: Vec<String> = steps().into_iter().map(|step| step.name).collect();
    assert_eq!(
        names,
        ["Install gapscope", "Record", "Save a baseline", "Compare"]
    );
}

#[test]
fn the_workflow_keeps_a_baseline_and_fails_what_does_more() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    // The step that installs gapscope is left out, because the build is used.
    let [_, record, save, compare] = <[Step; 4]>::try_from(steps()).ok().expect("four steps");
    for step in [&record, &save] {
        let output = run(step, folder, 20);
        assert!(output.status.success(), "{}: {}", step.name, said(&output));
    }
    assert!(folder.join(".gapscope/baselines/main.json").exists());
    // The same runs do not differ. Two short ones may be too few to judge their times, which is an error and no failure.
    let output = run(&compare, folder, 20);
    let read = |name: &str| fs::read_to_string(folder.join(name)).expect("it was written");
    assert_contains(read("summary.md"), "Gates");
    let xml = read("gapscope.xml");
    assert_contains(&xml, "tests=\"2\" failures=\"0\"");
    let is_judged = xml.contains("errors=\"0\"");
    assert_eq!(output.status.success(), is_judged, "{}", said(&output));
    // Twice the work breaks the gate by its count, whatever the times are.
    fs::remove_dir_all(folder.join("runs")).expect("it can be removed");
    let output = run(&record, folder, 40);
    assert!(output.status.success(), "{}", said(&output));
    let output = run(&compare, folder, 40);
    assert_eq!(output.status.code(), Some(1), "{}", said(&output));
    assert_contains(read("summary.md"), "BROKEN");
    assert_contains(read("gapscope.xml"), "<failure");
}
