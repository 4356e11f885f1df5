//! Tests `gapscope diff`, which records two commands in turns: its figures are compared with those of the report.

use crate::driver::Lavapipe;
use crate::product::built;
use crate::recording::{Program, report};
use serde_json::Value;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

/// Returns `fusion` twice with `--` between them, the second time with the operations `chain`.
fn twice(chain: &str) -> Program {
    let fusion = built("fusion").to_string_lossy().into_owned();
    let side = |chain: &str| {
        let words = [
            &fusion,
            "--n",
            "50000",
            "--iterations",
            "20",
            "--mode",
            "eager",
            "--chain",
            chain,
        ];
        words.map(str::to_owned).to_vec()
    };
    let before = side("sin,cos,exp,log");
    Program::new(
        [before, vec!["--".to_owned()], side(chain)].concat(),
        &Lavapipe,
    )
}

fn compared(program: &Program, out: &Path) -> Value {
    let out = out.to_str().expect("UTF-8");
    let run = program.run_by(&["diff", "--json", "--runs", "2", "-o", out]);
    assert!(run.status.success(), "{}", run.stderr);
    // The programs' own output is not on standard output.
    serde_json::from_str(&run.stdout).expect("JSON and nothing else")
}

fn figure<'a>(diff: &'a Value, what: &str) -> &'a Value {
    let figures = diff["equal_work"]["figures"].as_array().expect("figures");
    let mut found = figures.iter().filter(|figure| figure["what"] == what);
    found.next().unwrap_or_else(|| panic!("no {what}"))
}

#[test]
fn runs_are_recorded_in_turns_and_their_figures_are_those_of_the_report() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let out = folder.path().join("runs");
    let diff = compared(&twice("sin,cos,exp,log"), &out);
    assert_eq!(
        diff["equal_work"]["equal"], true,
        "{:#}",
        diff["equal_work"]
    );
    assert_eq!(diff["method"]["samples"], "runs");
    let traces = ["before-1", "after-1", "before-2", "after-2"]
        .map(|name| out.join(format!("{name}.gapscope")));
    let started = traces.each_ref().map(|trace| {
        let manifest = std::fs::read_to_string(trace.join("trace.json")).expect("a manifest");
        let manifest: Value = serde_json::from_str(&manifest).expect("JSON");
        manifest["start_unix_ns"].as_i64().expect("when it started")
    });
    assert!(started.is_sorted(), "{started:?}");

    let [before, after, ..] = traces
        .each_ref()
        .map(|trace| trace.to_str().expect("UTF-8"));
    let gapscope = built("gapscope").to_string_lossy().into_owned();
    let diff = Program::new([&gapscope, "diff", "--json", before, after], &Lavapipe).run();
    let diff: Value = serde_json::from_str(&diff.stdout).expect("JSON");
    for (side, trace) in [("before", &traces[0]), ("after", &traces[1])] {
        let report = report(trace, &[]);
        for kernel in report["kernels"].as_array().expect("kernels") {
            let own =
                |change: &&Value| change["kind"] == "kernel" && change["name"] == kernel["name"];
            let changes = diff["changes"].as_array().expect("changes").iter();
            let sum: f64 = changes
                .filter(own)
                .filter_map(|change| change[side].as_f64())
                .sum();
            let total = kernel["total_ns"].as_f64().expect("a total");
            assert!(
                (sum - total).abs() < 0.5,
                "{side} {}: {sum} and {total}",
                kernel["name"]
            );
        }
        for (what, key) in [
            ("dispatches", "dispatch_count"),
            ("command buffers", "command_buffer_count"),
        ] {
            assert_eq!(
                figure(&diff, what)[side].as_f64(),
                report[key].as_f64(),
                "{what}"
            );
        }
        let named = |name: &str| {
            let changes = diff["changes"].as_array().expect("changes");
            changes
                .iter()
                .find(|change| change["name"] == name)
                .expect("a figure")[side]
                .as_f64()
        };
        assert_eq!(named("gpu_time"), report["gpu_busy_ns"].as_f64());
    }
}

#[test]
fn another_kernel_is_certain_and_the_work_is_not_equal() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let runs = folder.path().join("runs");
    let diff = compared(&twice("sin,cos,exp,tanh"), &runs);
    let changes = diff["changes"].as_array().expect("changes");
    for (name, matched) in [("log", "only-before"), ("tanh", "only-after")] {
        let change = changes
            .iter()
            .find(|change| change["name"] == name)
            .expect("a kernel");
        assert_eq!(change["matched"], matched);
        assert_eq!(
            (&change["significant"], change["p_noise"].as_f64()),
            (&true.into(), Some(0.0))
        );
    }
    let shown = seen(&runs);
    let kernel = shown.strip_prefix("#p=compare&a=0%3Aall&z=1%3Aall&q=");
    assert!([Some("log"), Some("tanh")].contains(&kernel), "{shown}");
}

/// Returns the part of an address that selects what is shown, where `diff` shows the first runs.
fn seen(runs: &Path) -> String {
    let mut viewer = Command::new(built("gapscope"))
        .args(["diff", "--view"])
        .args(["before-1", "after-1"].map(|name| runs.join(format!("{name}.gapscope"))))
        .env_remove("DISPLAY")
        .env_remove("WAYLAND_DISPLAY")
        .stdout(Stdio::piped())
        .spawn()
        .expect("gapscope runs");
    let said = BufReader::new(viewer.stdout.take().expect("stdout"));
    let mut lines = said.lines().map(|line| line.expect("text"));
    let line = lines.find(|line| line.ends_with(" until Ctrl-C"));
    viewer.kill().expect("it still runs");
    viewer.wait().expect("it ends");
    let line = line.expect("the address");
    let address = line.split(' ').find(|word| word.contains('#'));
    let state = address.and_then(|of| of.split_once('#')).expect("a state");
    format!("#{}", state.1)
}
