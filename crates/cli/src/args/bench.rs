//! The arguments of `gapscope bench`, which clap reads. Doc comments here are the texts of `--help`.

use super::Width;
use clap::{Args, Subcommand};

/// Measure what this machine can do at best
#[derive(Debug, Args)]
pub struct Bench {
    #[command(subcommand)]
    pub task: BenchTask,
}

#[derive(Debug, Subcommand)]
pub enum BenchTask {
    Device(BenchDevice),
}

/// Measure what each device can do at best, and keep it
///
/// Measures bandwidth of the memory (copy, read, write), the rate of multiply-adds and of matrix units, and the interval of
/// launches, through CUDA and through Vulkan, at most 15 s each. Nothing else should use the device meanwhile. What was
/// measured is kept for this device and version of its driver, and `gapscope record` puts it into the trace.
#[derive(Debug, Args)]
#[command(after_help = "\
What is kept is in $XDG_DATA_HOME/gapscope/devices, else in ~/.local/share/gapscope/devices, as JSON.

Exit status:
  1  no device was measured, or one of them could not be, as stderr says

Examples:
  gapscope bench device
  gapscope bench device --device H200
  gapscope bench device --json | jq '.devices[].copy_bytes_per_s'
  gapscope bench device --list")]
pub struct BenchDevice {
    /// Only this device: by its number, from 0, CUDA's first, or by a part of its name
    #[arg(long, value_name = "N|NAME")]
    pub device: Option<String>,

    /// Measure less often, in about a second, and keep nothing
    #[arg(long, conflicts_with = "list")]
    pub quick: bool,

    /// List what is kept, and measure nothing
    #[arg(long, conflicts_with = "device")]
    pub list: bool,

    /// Print JSON; its keys are stable
    #[arg(long)]
    pub json: bool,

    #[command(flatten)]
    pub width: Width,
}
