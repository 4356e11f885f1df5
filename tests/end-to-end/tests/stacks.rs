//! Tests which code the report names for an idle GPU, on programs that measure with their own clock how long they
//! were in each function.

use std::collections::HashMap;

use gapscope_trace::tables::{SampleSource, Table};
use serde_json::Value;

use crate::client;
use crate::driver::Lavapipe;
use crate::product;
use crate::real_programs::last_line;
use crate::recording::{Program, Recording, assert_contains};

/// Returns a Python program of the wgpu client; `None` if the client is not installed.
fn program(arguments: &[&str]) -> Option<Program> {
    let [python, _] = client::script("wgpu")?;
    let script = product::source("clients/wgpu/planted.py");
    let command = [python.into_os_string(), script.into_os_string()];
    let command = command.into_iter().chain(arguments.iter().map(Into::into));
    Some(Program::new(command, &Lavapipe).variable("PYTHONDONTWRITEBYTECODE", "1"))
}

/// Returns the share of the time of a late host under each function, including the functions that it calls.
fn shares(recording: &Recording) -> HashMap<String, f64> {
    let report = recording.report();
    let code = report["code"].as_array().expect("a list of code");
    let late = code.iter().filter(|entry| entry["cause"] == "host-late");
    let mut times: HashMap<String, f64> = HashMap::new();
    let mut all = 0.0;
    for entry in late {
        let ns = entry["total_ns"].as_f64().expect("a time");
        all += ns;
        for frame in entry["frames"].as_array().expect("frames") {
            let function = frame["function"].as_str().unwrap_or_default();
            *times.entry(function.to_owned()).or_default() += ns;
        }
    }
    assert!(all > 0.0, "{report}");
    times.values_mut().for_each(|ns| *ns /= all);
    times
}

#[test]
fn the_code_behind_idle_time_is_what_the_programs_own_clock_says() {
    let Some(program) = program(&["100"]) else {
        return;
    };
    // A busy machine may move time from one function to another, so that the best of a few runs counts.
    let mut errors = Vec::new();
    for _ in 0..4 {
        let recording = program.recorded();
        let told = last_line(&recording.run.stdout);
        let spent = told["spent"].as_object().expect("times");
        let all: f64 = spent.values().filter_map(Value::as_f64).sum();
        let mut found = shares(&recording);
        found.retain(|function, _| spent.contains_key(function));
        let in_them: f64 = found.values().sum();
        found.values_mut().for_each(|share| *share /= in_them);
        let error = spent.iter().map(|(function, seconds)| {
            let planted = seconds.as_f64().expect("seconds") / all;
            (planted - found.get(function).copied().unwrap_or(0.0)).abs()
        });
        let worst = error.fold(0.0, f64::max);
        if worst <= 0.05 {
            return;
        }
        errors.push((worst, spent.clone(), found));
    }
    panic!("more than 5 points from the program's own clock: {errors:?}");
}

#[test]
fn a_report_names_lines_and_hooks_take_exact_stacks() {
    let Some(program) = program(&["40"]) else {
        return;
    };
    let recording = program.recorded();
    let tables = recording.trace().tables;
    let exact = tables
        .samples
        .source
        .iter()
        .filter(|source| **source == SampleSource::AtSubmission);
    assert!(
        exact.count() >= 20,
        "a stack at each submission after 30 ms"
    );
    // The stacks contain the line that submits and the whole path up to the module.
    let frames = &tables.frames;
    let line = |function: &str, line: u32| {
        (0..frames.len()).any(|row| {
            let frame = frames.row(row);
            frame.function.as_deref() == Some(function)
                && frame.line == Some(line)
                && frame
                    .file
                    .as_deref()
                    .is_some_and(|file| file.ends_with("planted.py"))
        })
    };
    let source =
        std::fs::read_to_string(product::source("clients/wgpu/planted.py")).expect("the script");
    let line_of = |text: &str| {
        let at = source.lines().position(|line| line.contains(text));
        at.expect("the line") as u32 + 1
    };
    assert!(line("step", line_of("device.queue.submit")), "{frames:?}");
    assert!(line("<module>", line_of("result = step()")));
    assert!(line("nap", line_of("time.sleep(0.010)")));
    let text = recording.text();
    assert_contains(&text, "Code behind the idle time");
    assert_contains(&text, "planted.py");
}

#[test]
fn without_stacks_nothing_is_read_and_results_are_the_same() {
    let Some(program) = program(&["20"]) else {
        return;
    };
    let alone = program.run().ok();
    let with = program.recorded();
    let without = program.options(&["--no-stacks"]).recorded();
    let result = |stdout: &str| last_line(stdout)["result"].clone();
    assert_eq!(result(&with.run.stdout), result(&alone.stdout));
    assert_eq!(result(&without.run.stdout), result(&alone.stdout));
    let trace = without.trace();
    assert_eq!(trace.tables.samples.len(), 0);
    assert_eq!(trace.manifest.stack_rate_hz, None);
    assert_eq!(with.trace().manifest.stack_rate_hz, Some(500));
    assert!(without.report().get("code").is_none());
}
