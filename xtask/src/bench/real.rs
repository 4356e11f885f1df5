//! Measures the commands on a real trace of PyTorch that is repeated in time, beside one aggregate over the same files by
//! DuckDB, and beside Holistic Trace Analysis on as many repetitions as it takes.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use super::rivals::{Cost, TRACES, asked, gapscope, python, replicated, run};
use super::runs::fresh;
use crate::{command, target};

/// The number of repetitions: 23 million rows of work, calls and ranges.
const TIMES: u32 = 516;
/// The number of repetitions that Holistic Trace Analysis takes in a few gigabytes.
const HTA_TIMES: u32 = 10;
/// The number of dispatches of the made-up trace.
const DISPATCHES: &str = "1e7";
/// The formats that are written as one file.
const FORMATS: [&str; 4] = ["perfetto", "chrome", "firefox", "speedscope"];

/// Returns the table; at most 3 repetitions.
pub fn measure(repetitions: u32) -> Result<String> {
    let repetitions = repetitions.min(3);
    let python = python()?;
    let traces = PathBuf::from(std::env::var_os(TRACES).with_context(|| {
        format!("{TRACES} does not name a folder with real traces: see tests/rivals/README.md")
    })?);
    let source = traces.join("kineto/v100_ns_rank0.json.gz");
    let (real, made_up) = (repeated(&source)?, made_up()?);
    let mut table = String::from("| input | | wall, s | peak memory, MiB |\n|---|---|---|---|\n");
    let input = format!("PyTorch, {TIMES} times");
    let mut row =
        |input: &str, name: &str, measure: &dyn Fn() -> Result<(f64, f64)>| -> Result<()> {
            let mut cost = Cost::default();
            for _ in 0..repetitions {
                cost.push(measure()?);
            }
            table += &cost.row(input, name);
            Ok(())
        };
    row(&input, "`gapscope report`", &|| {
        run(gapscope()?.arg("report").arg(&real))
    })?;
    row("made up, 10^7 dispatches", "`gapscope report`", &|| {
        run(gapscope()?.arg("report").arg(&made_up))
    })?;
    row(&input, "`gapscope diff` with itself", &|| {
        run(gapscope()?.arg("diff").args([&real, &real]))
    })?;
    for format in FORMATS {
        row(
            &input,
            &format!("`gapscope export`, {format}, to `/dev/null`"),
            &|| {
                run(gapscope()?
                    .args(["export", "-o", "-", "--format", format])
                    .arg(&real))
            },
        )?;
    }
    row(&input, "`gapscope export`, csv, to a disk", &|| {
        let out = fresh("real.csv")?;
        let cost = run(gapscope()?
            .args(["export", "--format", "csv", "-o"])
            .arg(&out)
            .arg(&real));
        fs::remove_dir_all(&out)?;
        cost
    })?;
    row(
        &input,
        "DuckDB: kernels and idle time without causes, in memory",
        &|| asked(&python, &["with_duckdb.py"], &[&real]),
    )?;
    let json = replicated(&python, HTA_TIMES, &source, "v100.json")?;
    row(
        &format!("PyTorch, {HTA_TIMES} times"),
        "HTA: five analyses, without its start",
        &|| asked(&python, &["with_hta.py"], &[&json]),
    )?;
    Ok(table)
}

/// Returns the repeated trace, which is made once and kept.
fn repeated(source: &Path) -> Result<PathBuf> {
    let (once, real) = (
        target("rivals").join("v100.gapscope"),
        target("rivals").join(format!("v100-{TIMES}.gapscope")),
    );
    if !real.exists() {
        if !once.exists() {
            run(gapscope()?.arg("import").arg("-o").arg(&once).arg(source))?;
        }
        command::run(&mut command::cargo_line(
            "build --release --package=gapscope-trace --example=repeat",
        ))?;
        let mut repeat = Command::new(target("release/examples/repeat"));
        command::run(repeat.arg(TIMES.to_string()).args([&once, &real]))?;
    }
    Ok(real)
}

/// Returns the made-up trace, which is made once and kept.
fn made_up() -> Result<PathBuf> {
    let out = target("rivals").join("made-up.gapscope");
    if !out.exists() {
        command::run(&mut command::cargo_line(
            "build --release --package=gapscope-trace --example=synthetic",
        ))?;
        let mut synthetic = Command::new(target("release/examples/synthetic"));
        command::run(synthetic.args(["--dispatches", DISPATCHES]).arg(&out))?;
    }
    Ok(out)
}
