//! Tests which code the report names for an idle GPU, on programs that measure with their own clock how long they
//! were in each function.

use std::collections::HashMap;
use std::process::{Child, Command};

use gapscope_trace::LossKind;
use gapscope_trace::ids::StackId;
use gapscope_trace::tables::{SampleSource, Table};
use serde_json::Value;

use crate::client;
use crate::cuda::Stub;
use crate::driver::Lavapipe;
use crate::product;
use crate::real_programs::last_line;
use crate::recording::{Program, Recording, assert_contains, open_with_lost_samples};
use crate::stolen::Stolen;

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
    let stolen = Stolen::since_now();
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
    assert!(
        stolen.is_much(),
        "more than 5 points from the program's own clock: {errors:?}"
    );
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

/// The program filters its system calls after its first step: it ends where it, or a hook in it, opens a file, makes a socket or
/// starts a thread. Python's frames are read from a file.
#[test]
fn a_python_program_that_filters_its_system_calls_lives_and_the_stacks_that_are_not_read_are_told()
{
    let Some(program) = program(&["40", "filter"]) else {
        return;
    };
    let alone = program.run().ok();
    let recording = program.recorded();
    let result = |stdout: &str| last_line(stdout)["result"].clone();
    assert_eq!(result(&recording.run.stdout), result(&alone.stdout));
    let trace = recording.trace();
    assert_eq!(trace.tables.dispatches.len(), 41);
    let losses = &trace.manifest.losses;
    let (stacks, others): (Vec<_>, Vec<_>) = losses
        .iter()
        .filter(|loss| loss.kind != LossKind::StackSamples)
        .partition(|loss| loss.kind == LossKind::PythonStacks);
    assert!(others.is_empty(), "{others:?}");
    let [told] = stacks[..] else {
        panic!("one reason: {losses:?}");
    };
    assert!(
        told.count >= 20,
        "a stack at each submission after 30 ms: {told}"
    );
    assert_contains(&told.reason, "the program filters its system calls");
    // The session reads them from outside at its own rate.
    let sampled = (trace.tables.samples.source.iter())
        .filter(|source| **source == SampleSource::Sampled)
        .count();
    assert!(sampled >= 20, "{sampled} samples");
    let text = recording.text();
    assert_contains(&text, "planted.py");
    assert_contains(
        &text,
        "stacks of Python: the program filters its system calls",
    );
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

/// Processes that keep all processors busy until they are dropped.
struct BusyNeighbours(Vec<Child>);

impl BusyNeighbours {
    fn start() -> BusyNeighbours {
        let processors = std::thread::available_parallelism().map_or(2, usize::from);
        let busy = || {
            let mut shell = Command::new("sh");
            shell.args(["-c", "while :; do :; done"]);
            shell.spawn().expect("a shell")
        };
        BusyNeighbours((0..processors.max(2)).map(|_| busy()).collect())
    }
}

impl Drop for BusyNeighbours {
    fn drop(&mut self) {
        for child in &mut self.0 {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// What the samples of a thread say of the time in which it was in some functions.
#[derive(Debug)]
struct Sampled {
    count: u64,
    /// The seconds in each function, by the times that its samples stand for.
    seconds: HashMap<String, f64>,
    /// The seconds that are said to have no samples, at any time of the recording.
    missing: f64,
}

impl Sampled {
    /// Reads the samples between two times that have one of `functions` in their stacks.
    fn read(recording: &Recording, [from, until]: [i64; 2], functions: &[&str]) -> Sampled {
        let trace = open_with_lost_samples(&recording.path());
        let tables = &trace.tables;
        let in_stack = |stack: StackId| {
            let mut next = Some(stack);
            while let Some(row) =
                next.and_then(|id| tables.stacks.id.iter().position(|at| *at == id))
            {
                let frame = tables
                    .frames
                    .id
                    .iter()
                    .position(|id| *id == tables.stacks.frame[row]);
                let function = frame.and_then(|row| tables.frames.function[row].as_deref());
                if let Some(name) = function.filter(|name| functions.contains(name)) {
                    return Some(name.to_owned());
                }
                next = tables.stacks.parent.at(row);
            }
            None
        };
        let mut by_stack: HashMap<StackId, Option<String>> = HashMap::new();
        let mut sampled = Sampled {
            count: 0,
            seconds: HashMap::new(),
            missing: 0.0,
        };
        let rows = &tables.samples;
        for row in 0..rows.len() {
            let (Some(stack), Some(period_ns)) = (rows.stack.at(row), rows.period_ns.at(row))
            else {
                continue;
            };
            let function = by_stack.entry(stack).or_insert_with(|| in_stack(stack));
            if let (true, Some(function)) = ((from..until).contains(&rows.time_ns[row]), function) {
                sampled.count += 1;
                *sampled.seconds.entry(function.clone()).or_default() += period_ns as f64 * 1e-9;
            }
        }
        let lost = trace
            .manifest
            .losses
            .iter()
            .filter(|loss| loss.kind == LossKind::StackSamples);
        let lost: u64 = lost.map(|loss| loss.count).sum();
        sampled.missing = lost as f64 / f64::from(trace.manifest.stack_rate_hz.expect("a rate"));
        sampled
    }
}

/// Other processes take the processors away from the program and from whoever samples it. The program's own clock stands still meanwhile, so
/// that samples are due for at least the time on it; the time that they stand for is time of waiting, too.
#[test]
fn on_busy_processors_samples_agree_with_the_programs_own_clock_and_missing_ones_are_told() {
    let stub = Stub::new(&[]);
    let script = product::source("programs/burn.py").into_os_string();
    let words = ["python3".into(), script, "40".into(), "30".into()];
    let program = Program::new(words, &stub).variable("PYTHONDONTWRITEBYTECODE", "1");
    if Command::new("python3").arg("--version").output().is_err() {
        return eprintln!("skipped: there is no python3");
    }
    program.run().ok();
    let _neighbours = BusyNeighbours::start();
    let stolen = Stolen::since_now();
    let mut errors = Vec::new();
    // The machine may give the sampling thread no turn for long, now and then.
    for _ in 0..3 {
        let recording = program.recorded();
        let told = last_line(&recording.run.stdout);
        let number = |value: &Value| value.as_f64().expect("a number");
        let span = ["started_ns", "ended_ns"].map(|key| told[key].as_i64().expect("a time"));
        let elapsed = (span[1] - span[0]) as f64 * 1e-9;
        let spent = ["heavy", "light"].map(|function| number(&told["spent"][function]));
        let on_processor: f64 = spent.iter().sum();
        let sampled = Sampled::read(&recording, span, &["heavy", "light"]);
        let rate = f64::from(recording.trace().manifest.stack_rate_hz.expect("a rate"));
        let seconds = |function: &str| sampled.seconds.get(function).copied().unwrap_or(0.0);
        let covered = seconds("heavy") + seconds("light");
        let figures = format!(
            "{on_processor:.2} of {elapsed:.2} s on a processor, samples stand for {covered:.2} s: {sampled:?}"
        );
        eprintln!("{figures}");
        // What no sample stands for is told, up to a tenth, and no time is told twice.
        let all = (covered + sampled.missing) / elapsed;
        assert!((0.7..1.4).contains(&all), "{all}: {figures}");
        let has_half = sampled.count as f64 >= on_processor * rate / 2.0;
        let share = seconds("heavy") / covered;
        let is_right = (share - spent[0] / on_processor).abs() <= 0.08;
        let no_more = covered <= 1.1 * elapsed;
        if has_half && is_right && no_more {
            return;
        }
        errors.push(figures);
    }
    assert!(stolen.is_much(), "{errors:#?}");
}
