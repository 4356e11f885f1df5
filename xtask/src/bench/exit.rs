//! Measures the time from the end of a program to its finished report, and the memory that the recorder takes.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::time::Instant;

use anyhow::{Context, Result, bail};

use super::peak::Peak;
use super::runs::{Driver, Variant, built, command, planted_program, scratch, trace};
use super::samples::Samples;

/// The number of dispatches in a command buffer.
const DISPATCHES: u64 = 1000;

/// Returns the table of three sizes of recordings; at most 5 repetitions, and 3 of the largest.
pub fn measure(repetitions: u32) -> Result<String> {
    let mut table = String::from(
        "| dispatches | program's end to finished report, s | of that the report, s | peak memory of the session, MiB | \
         of the report, MiB | of the program, MiB | of the program without the layer, MiB |\n|---|---|---|---|---|---|---|\n",
    );
    for dispatches in [100_000, 1_000_000, 10_000_000_u64] {
        let mut samples: [Samples; 6] = Default::default();
        let repetitions = if dispatches > 1_000_000 {
            repetitions.min(3)
        } else {
            repetitions.min(5)
        };
        for _ in 0..repetitions {
            for (samples, value) in samples.iter_mut().zip(row(dispatches)?) {
                samples.push(value);
            }
        }
        let cells: Vec<String> = samples
            .iter()
            .zip([2, 2, 0, 0, 0, 0])
            .map(|(samples, decimals)| samples.shown(decimals))
            .collect();
        table += &format!("| {dispatches} | {} |\n", cells.join(" | "));
    }
    Ok(table)
}

fn program(dispatches: u64) -> Result<Vec<String>> {
    planted_program(&format!(
        "steady --n {DISPATCHES} --iterations {} --groups 1 --spin 0",
        dispatches / DISPATCHES
    ))
}

/// Records the program once, and returns the times and the greatest memory for a row of the table.
fn row(dispatches: u64) -> Result<[f64; 6]> {
    trace()?;
    let mut command = command(
        Variant::Recorded("dispatch"),
        Driver::Null,
        &program(dispatches)?,
    )?;
    let mut session = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .context("gapscope does not start")?;
    let session_peak = Peak::watch(session.id());
    let program_peak = Peak::watch_child(session.id());
    // The program prints its last line just before it ends.
    let stdout = session.stdout.take().context("no standard output")?;
    let mut line = String::new();
    BufReader::new(stdout).read_line(&mut line)?;
    let end = Instant::now();
    let status = session.wait()?;
    let finish_seconds = end.elapsed().as_secs_f64();
    if !status.success() {
        bail!("the recording of {dispatches} dispatches ended with {status}");
    }
    let start = Instant::now();
    let report = Command::new(built("gapscope")?)
        .arg("report")
        .arg(scratch()?.join("t.gapscope"))
        .stdout(Stdio::null())
        .spawn()
        .context("gapscope does not start")?;
    let report_mib = peak_mib(report, &format!("the report on {dispatches} dispatches"))?;
    let report_seconds = start.elapsed().as_secs_f64();
    Ok([
        finish_seconds + report_seconds,
        report_seconds,
        session_peak.mib()?,
        report_mib,
        program_peak.mib()?,
        alone_mib(dispatches)?,
    ])
}

/// Returns the greatest memory of the program without the layer, in MiB.
fn alone_mib(dispatches: u64) -> Result<f64> {
    let mut command = command(Variant::Alone, Driver::Null, &program(dispatches)?)?;
    let process = command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .spawn()
        .context("planted does not start")?;
    peak_mib(process, "planted")
}

/// Returns the greatest memory of a process in MiB once it has ended. Its failure is an error that names `what`.
fn peak_mib(mut process: Child, what: &str) -> Result<f64> {
    let peak = Peak::watch(process.id());
    let status = process.wait()?;
    if !status.success() {
        bail!("{what} ended with {status}");
    }
    peak.mib()
}
