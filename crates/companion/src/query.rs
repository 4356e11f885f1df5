//! The options of `gapscope query`.

use crate::time;
use clap::{Args, ValueEnum, ValueHint};
use std::ffi::{OsStr, OsString};
use std::path::PathBuf;
use std::time::Duration;

/// Ask anything of one trace or many, in SQL
///
/// Each table of the trace format is an SQL table with the rows of all traces. The column `trace` tells them apart, folders
/// called NAME=VALUE on the way to them are columns, and names stand beside ids: `kernel_name`, `label_path`,
/// `queue_name`. Without SQL there is a prompt; where standard input is a pipe, the SQL is read from it.
#[derive(Debug, Args)]
#[command(
    override_usage = "gapscope query [OPTIONS] TRACE… [SQL]",
    after_help = "\
Saved queries:
  kernels          the kernels by the sum of their dispatches' times
  limits           what limits each kernel, and its hardware counters
  labels           the labels by the sum of the times of the dispatches under them
  command-buffers  the slowest command buffers
  transfers        bytes moved, by kind
  host-calls       host calls by the time inside them
  busy             how long each device ran something and nothing
  code             the code that submitting threads ran while a device was idle
  ranks            what each trace and process ran, and how far it is behind
  slow-ranks       the kernels of each trace against their median over all

Exit status:
  3  the answer lacks rows: a trace was skipped or a file cannot be read, as stderr says

Examples:
  gapscope query run.gapscope
  gapscope query --saved kernels run.gapscope
  gapscope query run.gapscope 'select kernel_name, max(duration_ns) from dispatches group by 1'
  gapscope query --format csv -o gaps.csv 'runs/*/rank=*' 'select rank, count(*) from submissions group by rank'
  gapscope query --schema run.gapscope"
)]
pub struct Query {
    /// Format of the answer
    #[arg(
        long,
        value_enum,
        default_value_t = AnswerFormat::Table,
        value_name = "table|csv|json|rows|parquet",
        hide_possible_values = true
    )]
    pub format: AnswerFormat,

    /// File for the answer, `-` for stdout; it must not exist
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub output: Option<PathBuf>,

    /// The most rows of the answer
    #[arg(long, value_name = "N")]
    pub most: Option<u64>,

    /// The longest time of one statement, which ends the command then
    #[arg(long, value_name = "TIME", value_parser = time, default_value = "10m")]
    pub time_limit: Duration,

    /// A saved query instead of SQL
    #[arg(long, value_name = "NAME", conflicts_with = "schema")]
    pub saved: Option<String>,

    /// Show the tables and columns, and what they mean; with `--format json` the saved queries too
    #[arg(long)]
    pub schema: bool,

    /// Traces, or globs in quotes such as 'runs/*/rank=*', and then the SQL
    #[arg(value_name = "TRACE", required = true, value_hint = ValueHint::DirPath)]
    pub traces: Vec<OsString>,
}

/// Returns the arguments such that SQL which begins with a comment (`-- …`) is no option: with a space before it.
pub fn with_sql_apart(arguments: impl Iterator<Item = OsString>) -> impl Iterator<Item = OsString> {
    arguments.map(|argument| match begins_with_comment(&argument) {
        true => [OsStr::new(" "), &argument].into_iter().collect(),
        false => argument,
    })
}

/// Returns true for `--` and a text with a space or line break before any `=`, which no option has in its name.
fn begins_with_comment(argument: &OsStr) -> bool {
    let text = argument.to_string_lossy();
    let comment = text
        .strip_prefix("--")
        .and_then(|text| text.split('=').next());
    comment.is_some_and(|text| text.contains(char::is_whitespace))
}

/// The format of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
#[expect(missing_docs, reason = "it would be printed in completions")]
pub enum AnswerFormat {
    Table,
    Csv,
    Json,
    Rows,
    Parquet,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_are_told_from_options() {
        for sql in [
            "-- the first\nselect 1",
            "--first\nselect 1",
            "---- x\nselect 1 = 1",
        ] {
            assert!(begins_with_comment(OsStr::new(sql)), "{sql}");
        }
        for option in [
            "--",
            "--schema",
            "--output=a file",
            "--saved",
            "-o",
            "select 1 -- x",
        ] {
            assert!(!begins_with_comment(OsStr::new(option)), "{option}");
        }
    }
}
