//! `cargo xtask demo`: installs what is missing, builds gapscope, records a program and prints the report.

use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

use crate::{command, progress, target, vulkan};

/// Runs the tour. Other systems than Linux get an error that says what works there.
pub fn run() -> Result<()> {
    if cfg!(target_os = "macos") {
        bail!(
            "the tour records through Vulkan on Linux. On macOS gapscope records through Instruments, which nobody has tried yet \
             (docs/metal.md): `cargo build --release --package gapscope --package fusion`, then \
             `target/release/gapscope record -o fusion.gapscope -- target/release/fusion` and \
             `target/release/gapscope report --compare-labels eager,compiled fusion.gapscope`"
        );
    }
    if !cfg!(target_os = "linux") {
        bail!(
            "recording works on Linux; here the workload itself runs: `cargo run --release --package fusion`, and so does \
             everything that reads a trace: `cargo run --release -- report TRACE`"
        );
    }
    vulkan::ensure_any_driver()?;
    eprintln!(
        "building the command (gapscope), the Vulkan layer (gapscope-vulkan) and the workload (fusion), quickly rather than \
         for speed: the first time this takes some minutes"
    );
    progress::build(&mut command::cargo_line(
        "build --profile=demo --package=gapscope --package=gapscope-vulkan --package=fusion",
    ))?;
    let programs = target("demo");
    let trace = target("demo/fusion.gapscope");
    if trace.exists() {
        std::fs::remove_dir_all(&trace)
            .with_context(|| format!("cannot remove {}", trace.display()))?;
    }

    // A driver compiles kernels at their first run and caches them. Without this unrecorded run, the recording
    // would show the compilation.
    let fusion = programs.join("fusion");
    let mut once = Command::new(&fusion);
    command::run(once.args(["--iterations", "1"]).stdout(Stdio::null()))?;

    let gapscope = programs.join("gapscope");
    let mut record = Command::new(&gapscope);
    record.args(["record", "--no-report", "-o"]).arg(&trace);
    command::run(record.arg("--").arg(&fusion))?;
    command::run(Command::new(&gapscope).arg("report").arg(&trace))?;
    command::run(
        Command::new(&gapscope)
            .arg("report")
            .args(["--compare-labels", "eager,compiled"])
            .arg(&trace),
    )
}
