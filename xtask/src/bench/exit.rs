//! Measures the time from the end of a program to its finished report, and the memory that the recorder takes.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::time::Instant;

use anyhow::{Context, Result, bail};

use super::peak::Peak;
use super::runs::{Driver, Variant, built, command, scratch, trace};
use super::samples::Samples;

/// The number of dispatches in a command buffer.
const DISPATCHES: u64 = 1000;

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
            let recorded = recorded(dispatches)?;
            let values = [
                recorded.finish_seconds + recorded.report_seconds,
                recorded.report_seconds,
                recorded.session_mib,
                recorded.report_mib,
                recorded.program_mib,
                alone_mib(dispatches)?,
            ];
            samples
                .iter_mut()
                .zip(values)
                .for_each(|(samples, value)| samples.push(value));
        }
        let [total, report, session, report_memory, program, alone] = samples;
        table += &format!(
            "| {dispatches} | {} | {} | {} | {} | {} | {} |\n",
            total.shown(2),
            report.shown(2),
            session.shown(0),
            report_memory.shown(0),
            program.shown(0),
            alone.shown(0)
        );
    }
    Ok(table)
}

/// The times and greatest memory of one recording and of its report.
struct Recorded {
    finish_seconds: f64,
    report_seconds: f64,
    session_mib: f64,
    report_mib: f64,
    program_mib: f64,
}

fn program(dispatches: u64) -> Result<Vec<String>> {
    let arguments = format!(
        "steady --n {DISPATCHES} --iterations {} --groups 1 --spin 0",
        dispatches / DISPATCHES
    );
    let mut program = vec![built("planted")?.to_string_lossy().into_owned()];
    program.extend(arguments.split(' ').map(str::to_owned));
    Ok(program)
}

fn recorded(dispatches: u64) -> Result<Recorded> {
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
    Ok(Recorded {
        finish_seconds,
        report_seconds: start.elapsed().as_secs_f64(),
        session_mib: session_peak.mib()?,
        report_mib,
        program_mib: program_peak.mib()?,
    })
}

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
