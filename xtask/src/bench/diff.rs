//! Measures how often `gapscope diff` is right, in a simulation and on the software GPU, and how long it takes.

use std::fmt::Write as _;
use std::fs;
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context, Result};
use serde::Deserialize;

use super::runs::fresh;
use super::samples::Samples;
use crate::{command, target};

/// The number of simulated comparisons of each kind.
const TRIALS: &str = "1000";
/// The number of comparisons on the software GPU for each repetition that was asked for.
const REAL_TRIALS: u32 = 2;
/// The number of dispatches in each of the two traces of the speed.
const DISPATCHES: &str = "1e7";

/// The simulation's figures for one setting.
#[derive(Deserialize)]
struct Setting {
    setting: String,
    /// Whether the two sides of each comparison differ by a change.
    planted: bool,
    trials: u64,
    /// The numbers of comparisons that told of a change where there is none, that found the planted one, that told of
    /// another beside it, and whose interval holds the true change.
    alarms: u64,
    found: u64,
    false_beside: u64,
    intervals_that_hold: u64,
    tested: u64,
}

/// The members that are read of a comparison's JSON.
#[derive(Deserialize)]
struct Comparison {
    changes: Vec<Change>,
}

/// A figure that changed in a comparison, as its JSON has it.
#[derive(Deserialize)]
struct Change {
    name: String,
    kind: String,
    significant: bool,
    ratio: Option<f64>,
    low: Option<f64>,
    high: Option<f64>,
    typical: Option<Box<Change>>,
}

impl Change {
    /// Returns whether the comparison calls this figure's change significant, or that of a typical dispatch.
    fn is_told(&self) -> bool {
        self.significant || (self.typical.as_ref()).is_some_and(|typical| typical.significant)
    }
}

pub fn measure(repetitions: u32) -> Result<String> {
    let simulated = simulated()?;
    let real = real(repetitions)?;
    let speed = speed(repetitions)?;
    Ok(format!("{simulated}\n{real}\n{speed}"))
}

fn simulated() -> Result<String> {
    let mut example = command::cargo_line(&format!(
        "run --release --package=gapscope-comparison --example=diff_truth -- {TRIALS}"
    ));
    let text = command::output(&mut example)?;
    let settings: Vec<Setting> =
        serde_json::from_str(text.trim()).context("the simulation did not write JSON")?;
    let mut table = String::from(
        "Simulated programs (`crates/trace/src/synthetic/repeated.rs`):\n\n\
         | setting | comparisons | tested in each | told of a change that is not there | found the one that is | intervals that hold the truth |\n\
         |---|---|---|---|---|---|\n",
    );
    for one in settings {
        let share = |count: u64| format!("{:.1} %", count as f64 * 100.0 / one.trials as f64);
        let (wrong, found) = match one.planted {
            true => (one.false_beside, share(one.found)),
            false => (one.alarms, "—".to_owned()),
        };
        writeln!(
            table,
            "| {} | {} | {} | {} | {found} | {} |",
            one.setting,
            one.trials,
            one.tested,
            share(wrong),
            share(one.intervals_that_hold)
        )?;
    }
    Ok(table)
}

/// Compares `fusion` with itself, and with a run of a fifth more values, five runs for each side in turns.
fn real(repetitions: u32) -> Result<String> {
    let fusion = target("release/fusion").display().to_string();
    let trials = repetitions * REAL_TRIALS;
    let (mut alarms, mut found) = (0, 0);
    let (mut reach, mut ratio) = (Samples::default(), Samples::default());
    for _ in 0..trials {
        for (values, planted) in [("100000", false), ("120000", true)] {
            let mut diff = Command::new(target("release/gapscope"));
            diff.args(["diff", "--json", "--runs", "5"]);
            for values in ["100000", values] {
                diff.args(["--", &fusion, "--adapter", "llvmpipe"]);
                diff.args(["--iterations", "100", "--n", values]);
            }
            let told: Comparison = serde_json::from_str(&command::output(&mut diff)?)?;
            let gpu = told.changes.iter().find(|change| change.name == "gpu_time");
            let gpu = gpu.context("there is no GPU time")?;
            if planted {
                let kernels = || told.changes.iter().filter(|change| change.kind == "kernel");
                found += u32::from(kernels().any(Change::is_told) || gpu.significant);
                gpu.ratio.into_iter().for_each(|value| ratio.push(value));
            } else {
                alarms += u32::from(told.changes.iter().any(Change::is_told));
                if let (Some(low), Some(high)) = (gpu.low, gpu.high) {
                    reach.push((high / low).sqrt().mul_add(100.0, -100.0));
                }
            }
        }
    }
    Ok(format!(
        "Recorded: `fusion` on lavapipe, five runs a side in turns, {trials} comparisons each. Against itself: {alarms} told of a change; the \
         interval of the GPU time reached ± {} %. With a fifth more values: found in {found}, GPU time {} times as long.\n",
        reach.shown(1),
        ratio.shown(2)
    ))
}

/// Measures the time and memory of a comparison of two large traces.
fn speed(repetitions: u32) -> Result<String> {
    command::run(&mut command::cargo_line(
        "build --release --package=gapscope-trace --example=synthetic",
    ))?;
    let traces = [fresh("1.gapscope")?, fresh("2.gapscope")?];
    for (seed, path) in ["1", "2"].iter().zip(&traces) {
        let mut synthetic = Command::new(target("release/examples/synthetic"));
        command::run(
            synthetic
                .args(["--dispatches", DISPATCHES, "--seed", seed])
                .arg(path),
        )?;
    }
    let (mut took, mut peak) = (Samples::default(), Samples::default());
    for _ in 0..repetitions {
        let mut diff = Command::new("/usr/bin/time");
        diff.args(["-f", "%M"])
            .arg(target("release/gapscope"))
            .arg("diff");
        diff.args(&traces)
            .stdout(Stdio::null())
            .stderr(Stdio::piped());
        let start = Instant::now();
        let output = diff.output().context("/usr/bin/time cannot be run")?;
        took.push(start.elapsed().as_secs_f64());
        let said = String::from_utf8_lossy(&output.stderr);
        let kilobytes = said
            .lines()
            .last()
            .and_then(|line| line.trim().parse::<f64>().ok());
        kilobytes
            .into_iter()
            .for_each(|kilobytes| peak.push(kilobytes / 1e3));
    }
    traces.iter().try_for_each(fs::remove_dir_all)?;
    Ok(format!(
        "Two traces of 10^7 dispatches: {} s, {} MB of memory.\n",
        took.shown(2),
        peak.shown(0)
    ))
}
