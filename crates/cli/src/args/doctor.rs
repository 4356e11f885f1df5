//! The arguments of `gapscope doctor`, which clap reads. Doc comments here are the texts of `--help`.

use super::Width;
use clap::{Args, ValueEnum};
use std::path::PathBuf;

/// Say what can be recorded on this machine, and what is missing for the rest
///
/// Looks for drivers, hooks and permissions as a recording would, and has the Vulkan loader and the CUDA driver load the hooks in
/// programs of its own that open no device. For what is missing or limited it says what follows and what to do.
#[derive(Debug, Args)]
#[command(after_help = "\
Exit status:
  0  programs of Vulkan, CUDA or Metal can be recorded
  1  none can

Examples:
  gapscope doctor
  gapscope doctor --json | jq '.checks[] | select(.state != \"ok\")'")]
pub struct Doctor {
    /// Print JSON: every check with its state, what was found, what follows, and what to do; its keys are stable
    #[arg(long)]
    pub json: bool,

    #[command(flatten)]
    pub width: Width,

    /// The part of a program of its own, whose answer goes to a file.
    #[arg(long, hide = true, requires = "answer")]
    pub probe: Option<Probe>,

    #[arg(long, hide = true, requires = "probe")]
    pub answer: Option<PathBuf>,
}

/// What a program of `gapscope doctor` does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Probe {
    /// Lists Vulkan's devices.
    Vulkan,
    /// Initialises CUDA.
    Cuda,
    /// Asks CUPTI for hardware counters.
    Counters,
    /// Waits until its stdin ends.
    Wait,
}
