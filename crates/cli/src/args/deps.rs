//! The arguments of `gapscope deps`, which clap reads. Doc comments here are the texts of `--help`.

use super::Width;
use clap::{Args, ValueHint};
use std::path::PathBuf;

/// Say what depends on what in a capture or a trace
///
/// Of a capture: which bytes each dispatch reads and writes, by evaluating its kernel's address arithmetic; which command must
/// come after which; dependencies that no barrier covers, barriers that nothing needs, and the longest chain. Of a trace only the
/// ranges that are bound are known, and no barriers.
#[derive(Debug, Args)]
#[command(after_help = "\
Exit status:
  3  some of it cannot be read: what it says is of the rest

Examples:
  gapscope deps run.gapcapture
  gapscope deps --json run.gapcapture | jq '.hazards[]'
  gapscope deps --measure run.gapcapture       times, against the device's bandwidth
  gapscope deps --dot run.gapcapture | dot -Tsvg > run.svg
  gapscope deps run.gapscope")]
pub struct Deps {
    /// Print JSON; its keys are stable
    #[arg(long, conflicts_with = "dot")]
    pub json: bool,

    /// Print a graph for graphviz
    #[arg(long)]
    pub dot: bool,

    /// Run the window of a capture on a device, one command after the other, and say how near each comes to the device's
    /// bandwidth, which is measured too
    #[arg(long, conflicts_with = "dot")]
    pub measure: bool,

    /// With --measure: the device, by its number, from 0, or a part of its name [default: the one with the captured
    /// device's name, else the first]
    #[arg(long, value_name = "N|NAME", requires = "measure")]
    pub device: Option<String>,

    /// With --measure: timed runs, after one that is not; the median of each command counts [default: 5]
    #[arg(long, value_name = "N", requires = "measure", value_parser = clap::value_parser!(u32).range(1..))]
    pub repeat: Option<u32>,

    #[command(flatten)]
    pub width: Width,

    /// Rows in each table; 0 for all of them (JSON always has all)
    #[arg(long, value_name = "N", default_value_t = 10)]
    pub top: usize,

    /// The capture or trace
    #[arg(value_name = "CAPTURE|TRACE", value_hint = ValueHint::DirPath)]
    pub path: PathBuf,
}
