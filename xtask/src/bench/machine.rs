//! Describes the machine and the conditions of a measurement.

use std::fs;
use std::process::Command;

use crate::{command, packages};

/// Returns the paragraph that every table has.
pub fn conditions(repetitions: u32) -> String {
    let processor = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let processor = processor
        .lines()
        .find_map(|line| line.strip_prefix("model name")?.split_once(": "))
        .map(|(_, name)| name);
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    let kernel = output("uname", &["-r"]);
    let load = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let load = load.split(' ').next().unwrap_or("unknown").to_owned();
    let mesa = packages::version("mesa-vulkan-drivers").unwrap_or_else(|| "unknown".into());
    let commit = output("git", &["rev-parse", "--short", "HEAD"]);
    let date = output("date", &["+%F"]);
    format!(
        "{date}, commit {commit}. {} ({cores} cores), Linux {kernel}, Mesa {mesa} (lavapipe). Median (range) of {repetitions} \
         interleaved repetitions; load average of the machine afterwards {load}.",
        processor.unwrap_or("unknown processor"),
    )
}

/// Returns what a program prints; `unknown` where it fails.
fn output(program: &str, arguments: &[&str]) -> String {
    command::output(Command::new(program).args(arguments))
        .map_or_else(|_| "unknown".into(), |text| text.trim().to_owned())
}
