//! The arguments of `gapscope baseline`, which clap reads. Doc comments here are the texts of `--help`.

use super::{Comparing, Width};
use clap::{Args, Subcommand, ValueHint};
use std::path::PathBuf;

/// Keep what runs took under a name, and compare later runs with it
///
/// A baseline holds the figures of one or several runs and what they ran on, a few kB for each run, and no traces: it can
/// be committed to a repository. It is a file NAME.json in a folder.
#[derive(Debug, Args)]
#[command(after_help = "\
Exit status:
  1  a gate is broken, unknown or not judged; or it could not be done, as stderr says
  2  wrong option
  3  some of a trace or of the folder cannot be read, and no gate is broken

Examples:
  gapscope baseline save main runs/*.gapscope
  gapscope baseline compare main --gate 'gpu_time > 3%' new/*.gapscope
  gapscope baseline compare main --markdown new/*.gapscope >> \"$GITHUB_STEP_SUMMARY\"
  gapscope baseline list
  gapscope baseline remove main")]
pub struct Baseline {
    /// Folder of the baselines, unless `.gapscope/baselines`
    #[arg(long, value_name = "DIR", global = true, value_hint = ValueHint::DirPath)]
    pub baselines: Option<PathBuf>,

    #[command(subcommand)]
    pub task: Task,
}

#[derive(Debug, Subcommand)]
pub enum Task {
    Save(Save),
    /// List the baselines, and what they were recorded on
    List {
        /// Print JSON; its keys are stable
        #[arg(long)]
        json: bool,
    },
    Compare(Compare),
    /// Remove a baseline
    Remove {
        /// Its name
        name: String,
    },
}

/// Keep the figures of runs
#[derive(Debug, Args)]
pub struct Save {
    /// Replace a baseline of this name
    #[arg(long)]
    pub replace: bool,

    /// What it is called: letters, digits, `-`, `_` and `.`
    pub name: String,

    /// Traces of runs, or folders with several
    #[arg(value_name = "TRACE", required = true, value_hint = ValueHint::DirPath)]
    pub traces: Vec<PathBuf>,
}

/// Compare runs with a baseline, as `gapscope diff` does
///
/// The baseline is the side before. Where it was recorded on other GPUs, drivers or another machine, or sampled in another
/// way, that is said first, and gates are not judged: they fail.
#[derive(Debug, Args)]
pub struct Compare {
    #[command(flatten)]
    pub comparing: Comparing,

    /// Judge gates though the baseline was recorded on an unlike machine
    #[arg(long)]
    pub allow_unlike: bool,

    #[command(flatten)]
    pub width: Width,

    /// Rows in each table; 0 for all of them (JSON always has all)
    #[arg(long, value_name = "N", default_value_t = 10)]
    pub top: usize,

    /// The name of the baseline
    pub name: String,

    /// Traces of runs, or folders with several
    #[arg(value_name = "TRACE", required = true, value_hint = ValueHint::DirPath)]
    pub traces: Vec<PathBuf>,
}
