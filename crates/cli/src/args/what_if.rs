//! The arguments of `gapscope what-if`, which clap reads. Doc comments here are the texts of `--help`.

use super::Width;
use clap::builder::NonEmptyStringValueParser;
use clap::{Args, ValueHint};
use gapscope_analysis::what_if::Change;
use std::path::PathBuf;

/// Say what a change would bring, before it is made
///
/// Replays the recorded run with some of its times or waits changed: what waits for what stays as it was. The answer is how long a
/// step would take, as an interval, and what would hold the run then. Where the trace cannot know, the answer is refused by name, with
/// what to record. Without --set it shows the critical path of the run as it was. The ranks of a distributed program are replayed
/// together: each waits at its collectives for the last.
///
/// Kernels that change with the program (fused, or of other shapes) are not foreseen: record such a run, and compare with `diff`.
#[derive(Debug, Args)]
#[command(after_help = "\
WHAT=VALUE:
  kernel:NAME, label:TEXT       kernels, or work in labels; * stands for any text
  transfer, transfer:h2d        transfers; also d2h, d2d, p2p
  device                        all GPU work
  call:FUNCTION                 API calls, such as call:cudaLaunchKernel
  launch, compile               calls that hand over work; calls that compile or load code
  host                          the host's time outside of API calls
  cause:CAUSE                   the host's time behind a cause of idle time, such as cause:host-allocate
  code:FUNCTION, code:FILE:LINE the host's time with this code in its stack (from samples)
each with
  =0  =0.5x  =3us               nothing, a factor, or a time for each
  =+1ms  =-1ms                  longer or shorter (host, cause and code take 0 or a factor)
and
  wait=each10                   wait for the GPU only every tenth time
  transfer=overlap              transfers to the device run beside kernels
  queues=independent            queues do not wait for each other
  rank:N.WHAT=VALUE             any of these for one rank of a folder of ranks, such as rank:3.host=0.5x

Exit status:
  2  the trace cannot know the answer; the reasons are printed

Examples:
  gapscope what-if run.gapscope --set kernel:attention*=0.5x
  gapscope what-if run.gapscope --set host=0.5x --set launch=0.5x
  gapscope what-if run.gapscope --set code:train.py:41=0 --step 'train step'
  gapscope what-if before.gapscope --set transfer=0.5x --against after.gapscope")]
pub struct WhatIf {
    /// What to change; several changes are made together
    #[arg(long = "set", value_name = "WHAT=VALUE", value_parser = change)]
    pub changes: Vec<Change>,

    /// Replay the steps with this label: the part of the run from the first to the last of them
    #[arg(long, value_name = "LABEL", value_parser = NonEmptyStringValueParser::new())]
    pub step: Option<String>,

    /// Compare the prediction with another recording, of the changed program
    #[arg(long, value_name = "TRACE", value_hint = ValueHint::DirPath)]
    pub against: Option<PathBuf>,

    /// Print JSON; its keys are stable
    #[arg(long)]
    pub json: bool,

    #[command(flatten)]
    pub width: Width,

    /// The trace, or the folder that holds the traces of all ranks
    #[arg(value_name = "TRACE", value_hint = ValueHint::DirPath)]
    pub trace: PathBuf,
}

fn change(text: &str) -> Result<Change, String> {
    Change::read(text)
}
