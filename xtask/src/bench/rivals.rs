//! Measures how long gapscope and other tools take to answer the same questions about traces of other profilers.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context, Result, bail};
use serde_json::Value;

use super::peak::Peak;
use super::runs::{built, fresh};
use super::samples::Samples;
use crate::{command, target, venv};

/// The folder of the scripts that ask the other tools.
const SCRIPTS: &str = "tests/rivals";
/// The variable that names a folder with real traces of strangers: `kineto/*.json.gz` and `nsys/*.sqlite`. They are
/// too large for the repository.
pub(super) const TRACES: &str = "GAPSCOPE_TRACES";
/// How often PyTorch's trace is repeated, and whether the other tool reads the result: a hundred repetitions would
/// take it some 26 GB.
const SIZES: [(u32, bool); 3] = [(1, true), (10, true), (100, false)];
/// The number of repetitions with which the export of Nsight Systems has 2.5 million rows.
const NSYS_TIMES: u32 = 90;

/// The duration of one command or of several in turn, and the greatest memory of one of them.
#[derive(Default)]
pub(super) struct Cost {
    seconds: Samples,
    mib: Samples,
}

impl Cost {
    pub(super) fn push(&mut self, (seconds, mib): (f64, f64)) {
        self.seconds.push(seconds);
        self.mib.push(mib);
    }

    /// Returns the row of the table for an input.
    pub(super) fn row(&self, input: &str, what: &str) -> String {
        let (seconds, mib) = (self.seconds.shown(2), self.mib.shown(0));
        format!("| {input} | {what} | {seconds} | {mib} |\n")
    }
}

/// Returns the table; at most 5 repetitions.
pub fn measure(repetitions: u32) -> Result<String> {
    let repetitions = repetitions.min(5);
    let python = python()?;
    let traces = PathBuf::from(std::env::var_os(TRACES).with_context(|| {
        format!("{TRACES} does not name a folder with real traces: see tests/rivals/README.md")
    })?);
    let mut table = String::from("| input | | wall, s | peak memory, MiB |\n|---|---|---|---|\n");
    let kineto = traces.join("kineto/h100_owlv2.json.gz");
    for (times, rival) in SIZES {
        let json = replicated(&python, times, &kineto, "json")?;
        let name = format!("PyTorch, {}", size(&json)?);
        table += &rows(&name, &json, repetitions, || {
            rival
                .then(|| asked(&python, &["with_hta.py"], &[&json]))
                .transpose()
        })?;
    }
    let nsys = replicated(
        &python,
        NSYS_TIMES,
        &traces.join("nsys/h100_2gpu_1s.sqlite"),
        "sqlite",
    )?;
    let program = python.with_file_name("nsys-ai");
    table += &rows(
        &format!("Nsight Systems, {}", size(&nsys)?),
        &nsys,
        repetitions,
        || {
            asked(
                &python,
                &["with_nsys_ai.py", &program.to_string_lossy()],
                &[&nsys],
            )
            .map(Some)
        },
    )?;
    let pair = ["diff_control_a100", "diff_test_v100"]
        .map(|name| traces.join(format!("kineto/{name}.json.gz")));
    table += &comparison(&python, &pair, repetitions)?;
    Ok(table)
}

/// Returns rows of the table: gapscope and another tool take turns on one input.
fn rows(
    name: &str,
    input: &Path,
    repetitions: u32,
    rival: impl Fn() -> Result<Option<(f64, f64)>>,
) -> Result<String> {
    let [mut imported, mut reported, mut both, mut other] =
        [const { None }; 4].map(|_: Option<()>| Cost::default());
    let mut has_rival = true;
    for _ in 0..repetitions {
        let trace = fresh("rivals.gapscope")?;
        let import = run(gapscope()?.arg("import").arg("-o").arg(&trace).arg(input))?;
        let report = run(gapscope()?.args(["report", "--json"]).arg(&trace))?;
        imported.push(import);
        reported.push(report);
        both.push((import.0 + report.0, import.1.max(report.1)));
        match rival()? {
            Some(cost) => other.push(cost),
            None => has_rival = false,
        }
    }
    let row = |what: &str, cost: &Cost| cost.row(name, what);
    let mut text = row("`gapscope import` and `report`", &both);
    text += &row("of that the import", &imported);
    text += &row("of that the report, as on any trace", &reported);
    if has_rival {
        let other_name = match input.extension().is_some_and(|of| of == "sqlite") {
            true => "nsys-ai: cache and eight skills",
            false => "HTA: five analyses, without its start",
        };
        text += &row(other_name, &other);
    }
    Ok(text)
}

/// Returns the rows of the comparison of two traces.
fn comparison(python: &Path, pair: &[PathBuf; 2], repetitions: u32) -> Result<String> {
    let [mut ours, mut theirs] = [(); 2].map(|()| Cost::default());
    for _ in 0..repetitions {
        let mut sum = (0.0, 0.0_f64);
        let mut traces = Vec::new();
        for (number, input) in pair.iter().enumerate() {
            let trace = fresh(&format!("rivals-{number}.gapscope"))?;
            let (seconds, mib) = run(gapscope()?.arg("import").arg("-o").arg(&trace).arg(input))?;
            sum = (sum.0 + seconds, sum.1.max(mib));
            traces.push(trace);
        }
        let (seconds, mib) = run(gapscope()?.args(["diff", "--json"]).args(&traces))?;
        ours.push((sum.0 + seconds, sum.1.max(mib)));
        theirs.push(asked(python, &["with_hta.py"], &[&pair[0], &pair[1]])?);
    }
    let row = |what: &str, cost: &Cost| cost.row("PyTorch, two traces", what);
    Ok(row("`gapscope import` of both and `diff`", &ours)
        + &row(
            "HTA: five analyses of the first and `compare_traces`",
            &theirs,
        ))
}

pub(super) fn gapscope() -> Result<Command> {
    Ok(Command::new(built("gapscope")?))
}

/// Runs a command and returns its duration in seconds and its greatest memory in MiB.
pub(super) fn run(command: &mut Command) -> Result<(f64, f64)> {
    let start = Instant::now();
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .spawn()
        .with_context(|| format!("{command:?} does not start"))?;
    let peak = Peak::watch(child.id());
    let status = child.wait()?;
    let seconds = start.elapsed().as_secs_f64();
    if !status.success() {
        bail!("{command:?} ended with {status}");
    }
    Ok((seconds, peak.mib().unwrap_or(f64::NAN)))
}

/// Asks another tool through a script, and returns the duration and memory that the script tells.
pub(super) fn asked(python: &Path, script: &[&str], inputs: &[&Path]) -> Result<(f64, f64)> {
    let mut asking = Command::new(python);
    asking.arg(Path::new(SCRIPTS).join(script[0]));
    asking.args(&script[1..]);
    for input in inputs {
        // HTA resolves relative paths against a folder of its own.
        asking.arg(std::path::absolute(input)?);
    }
    let stdout = command::output(&mut asking)?;
    let said: Value = serde_json::from_str(stdout.lines().last().unwrap_or_default())
        .context("the script printed no JSON")?;
    let number = |name: &str| said[name].as_f64().with_context(|| format!("no {name}"));
    Ok((number("seconds")?, number("peak_mb")?))
}

/// Returns a Python in which the other tools are installed.
pub(super) fn python() -> Result<PathBuf> {
    let python = venv::ensure(&target("rivals"))?;
    eprintln!("installing the other tools");
    let mut pip = venv::pip(&python, "install");
    pip.arg("--requirement");
    command::output(pip.arg(Path::new(SCRIPTS).join("requirements.txt")))?;
    Ok(python)
}

/// Returns a trace that is repeated `times` times; the file is made once and kept.
pub(super) fn replicated(
    python: &Path,
    times: u32,
    source: &Path,
    extension: &str,
) -> Result<PathBuf> {
    let out = target("rivals").join(format!("{times}.{extension}"));
    if !out.exists() {
        eprintln!("writing {} {times} times over", source.display());
        let mut writing = Command::new(python);
        writing
            .arg(Path::new(SCRIPTS).join("replicate.py"))
            .arg(times.to_string());
        command::run(writing.arg(source).arg(&out))?;
    }
    Ok(out)
}

fn size(path: &Path) -> Result<String> {
    let bytes = fs::metadata(path)
        .with_context(|| format!("no {}", path.display()))?
        .len();
    Ok(format!("{:.0} MB", bytes as f64 / 1e6))
}
