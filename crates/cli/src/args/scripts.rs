//! The arguments of commands for agents and scripts, `gapscope explain` and `gapscope schema`, which clap reads. Doc
//! comments here are the texts of `--help`.

use super::Width;
use clap::{Args, ValueHint};
use std::path::PathBuf;

/// Say in plain English what a trace shows, and on which rows each claim rests
///
/// The text says what the program did, what bounds it, what takes the most time and where, what to do, and what is not known: all
/// that the full report finds, one claim a sentence. Rows such as `[gap 17]` are looked up with the queries at its end.
#[derive(Debug, Args)]
#[command(after_help = "\
Exit status:
  3  some of the trace cannot be read: the text says which table, and what rests on it is not told

Examples:
  gapscope explain run.gapscope
  gapscope explain --json run.gapscope | jq '.claims[] | .text, .query'")]
pub struct Explain {
    /// Print JSON: claims with their figures, rows and queries; its keys are stable
    #[arg(long)]
    pub json: bool,

    #[command(flatten)]
    pub width: Width,

    /// The trace
    #[arg(value_name = "TRACE", value_hint = ValueHint::DirPath)]
    pub trace: PathBuf,
}

/// Print the JSON schema of what a command prints with --json
///
/// Keys are stable: they may be added to, never renamed or taken away, and their units and meanings do not change.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  gapscope schema                      which there are
  gapscope schema report > report.schema.json")]
pub struct Schema {
    /// The schema; without it, all names are listed
    pub name: Option<String>,
}
