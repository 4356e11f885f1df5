//! The options of `gapscope mcp`.

use clap::{Args, ValueHint};
use std::path::PathBuf;

/// The default of `--longest`: the longest recording that a client may ask for, in seconds.
pub const DEFAULT_LONGEST_S: u32 = 120;

/// Serve gapscope's tasks to an agent, by the Model Context Protocol
///
/// A client such as an editor or an assistant starts this and speaks to it over stdin and stdout. It offers the tools report,
/// explain, query, diff, import and record; each runs gapscope and answers with what it prints, cut to a size that fits.
/// Files outside of the roots are refused.
#[derive(Debug, Clone, Args)]
#[command(after_help = "\
Examples:
  gapscope mcp --root ~/runs                      all tools, on traces below ~/runs
  gapscope mcp --root ~/runs --read-only          nothing is run, nothing is written
  claude mcp add gapscope -- gapscope mcp --root ~/runs")]
pub struct Mcp {
    /// Folder that traces must be in and are written to; several are possible [default: the roots that the client names, else the
    /// current folder]
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub root: Vec<PathBuf>,

    /// Leave out the tools that run commands or write files: record and import
    #[arg(long)]
    pub read_only: bool,

    /// The longest recording that a client may ask for, in seconds
    #[arg(long, value_name = "S", default_value_t = DEFAULT_LONGEST_S, value_parser = clap::value_parser!(u32).range(1..=86_400))]
    pub longest: u32,

    /// The most characters of an answer
    #[arg(long, value_name = "N", default_value_t = 40_000, value_parser = clap::value_parser!(u32).range(1_000..=10_000_000))]
    pub most: u32,
}
