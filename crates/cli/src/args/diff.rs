//! The arguments of `gapscope diff`, which clap reads. Doc comments here are the texts of `--help`.

use super::{Mode, Width, time};
use anyhow::{Result, bail};
use clap::{Args, ValueHint};
use gapscope_comparison::diff::Gate;
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

/// Compare runs: what changed, by how much, and whether it is more than noise
///
/// BEFORE and AFTER are traces, recordings of several ranks, or folders with several traces, which are several runs of the
/// same. Whether both sides did equal work is said first. With several runs a side a run is a sample; with one, differences
/// from run to run are not measured but assumed, and the report says so. A gate that is broken, or that these runs cannot judge,
/// makes the exit status 1.
#[derive(Debug, Args)]
#[command(after_help = "\
Gates:
  METRIC > LIMIT, where LIMIT is a share (3%) or a difference (5ms, 1MiB, 10), and METRIC one of
  gpu_time, wall_time, idle_time, idle_time(CAUSE), transfer_time, kernel(\"NAME\"), dispatches,
  workgroups, threads, submissions (or launches), command_buffers, transfers, transfer_bytes,
  bound_bytes, memory_peak.
  A gate is broken when the figure grew by more than the limit, and noise alone makes so great a
  difference in at most 1 % of comparisons. It is not judged, and fails, where these runs could not
  show a change beyond the limit.

Exit status:
  1  a gate is broken, not judged, or its figure is unknown; or the traces cannot be compared, as stderr says
  2  wrong option
  3  some of a trace cannot be read, and no gate is broken

Examples:
  gapscope diff before.gapscope after.gapscope
  gapscope diff --gate 'gpu_time > 3%' --gate 'kernel(\"softmax\") > 5%' before.gapscope after.gapscope
  gapscope diff --before a-*.gapscope --after b-*.gapscope
  gapscope diff --runs 5 -- ./old --steps 10 -- ./new --steps 10
  gapscope diff --view before.gapscope after.gapscope
  gapscope diff --markdown main.gapscope branch.gapscope > comment.md
  gapscope diff --json before.gapscope after.gapscope | jq '.changes[] | select(.significant)'")]
pub struct Diff {
    #[command(flatten)]
    pub comparing: Comparing,

    /// Traces of several runs before
    #[arg(long, value_name = "TRACE", num_args = 1.., requires = "after_traces", conflicts_with = "traces",
          value_hint = ValueHint::DirPath)]
    pub before: Vec<PathBuf>,

    /// Traces of several runs after
    #[arg(long = "after", id = "after_traces", value_name = "TRACE", num_args = 1.., requires = "before",
          value_hint = ValueHint::DirPath)]
    pub after: Vec<PathBuf>,

    /// Record this many runs of each of two commands, in turns, and compare them
    #[arg(long, value_name = "N", requires = "commands", conflicts_with_all = ["traces", "before"],
          value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub runs: Option<u32>,

    /// With --runs: first run each command this often without recording it
    #[arg(long, value_name = "N", default_value_t = 1, requires = "runs")]
    pub warm_up: u32,

    /// With --runs: keep the traces in this folder, which must not exist [default: they are not kept]
    #[arg(short, long, value_name = "FOLDER", requires = "runs", value_hint = ValueHint::DirPath)]
    pub output: Option<PathBuf>,

    /// With --runs: how the GPU is sampled
    #[arg(long, value_enum, default_value_t = Mode::Dispatch, hide_possible_values = true, requires = "runs",
          value_name = "command-buffer|dispatch|dispatch-serialised")]
    pub mode: Mode,

    /// With --runs: end a run that takes longer
    #[arg(long, value_name = "TIME", value_parser = time, requires = "runs")]
    pub time_limit: Option<Duration>,

    #[command(flatten)]
    pub width: Width,

    /// Rows in each table; 0 for all of them (JSON always has all)
    #[arg(long, value_name = "N", default_value_t = 10)]
    pub top: usize,

    /// Then show the first run of each side in the browser, compared, with the kernel that changed most found
    #[arg(long, conflicts_with_all = ["format", "runs"])]
    pub view: bool,

    /// BEFORE and AFTER: traces, or folders with several
    #[arg(value_names = ["BEFORE", "AFTER"], num_args = 2, required_unless_present_any = ["before", "runs"],
          value_hint = ValueHint::DirPath)]
    pub traces: Vec<PathBuf>,

    /// With --runs: both commands with their arguments, and `--` between them
    #[arg(last = true, value_name = "CMD", value_hint = ValueHint::CommandWithArguments, requires = "runs")]
    pub commands: Vec<OsString>,
}

/// How runs are compared, and how that is shown.
#[derive(Debug, Args)]
pub struct Comparing {
    /// Print JSON; its keys are stable
    #[arg(long, group = "format")]
    pub json: bool,

    /// Print Markdown, for a pull request
    #[arg(long, group = "format")]
    pub markdown: bool,

    /// Print JUnit's XML with a test case for each gate
    #[arg(long, group = "format")]
    pub junit: bool,

    /// Fail when a figure grew by more than this: `gpu_time > 3%`
    #[arg(long = "gate", value_name = "EXPR", value_parser = Gate::parse)]
    pub gates: Vec<Gate>,

    /// Pass gates whose figures are not known
    #[arg(long)]
    pub allow_unknown: bool,

    /// How often noise alone may make a diff report a difference
    #[arg(long, value_name = "SHARE", default_value = "1%", value_parser = share)]
    pub level: f64,

    /// How much times of one run are taken to vary from run to run, where each side has but one [default: 1%; 5% on a
    /// software device]
    #[arg(long, value_name = "SHARE", value_parser = share)]
    pub assume_spread: Option<f64>,
}

/// Reads a share such as `1%` or `0.01`, above 0 and below 1.
fn share(text: &str) -> Result<f64> {
    let (number, factor) = match text.trim().strip_suffix('%') {
        Some(percent) => (percent.trim_end(), 0.01),
        None => (text.trim(), 1.0),
    };
    match number.parse::<f64>() {
        Ok(number) if number > 0.0 && number * factor < 1.0 => Ok(number * factor),
        _ => bail!("write a share above 0 and below 1, such as 1% or 0.01"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_is_read_in_both_ways() {
        assert_eq!(share("1%").unwrap(), 0.01);
        assert_eq!(share("0.05").unwrap(), 0.05);
        for wrong in ["0", "100%", "-1%", "x", "nan"] {
            assert!(share(wrong).is_err(), "{wrong}");
        }
    }
}
