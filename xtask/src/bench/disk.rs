//! Measures the size of a trace in bytes for each dispatch.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};
use serde_json::Value;

use super::runs::{Driver, Variant, built, client, command, number, planted, scratch};
use crate::command::output;

/// Returns the table. The programs run on lavapipe, Mesa's software GPU, because its times are real and do not
/// compress as well as those of the null driver, which does nothing.
pub fn measure(_repetitions: u32) -> Result<String> {
    let mut table = String::from(
        "| work | dispatches | `dispatches`, B each | `bindings`, B each | whole trace, B each |\n|---|---|---|---|---|\n",
    );
    let mut row = |name: &str, dispatches: f64| -> Result<()> {
        let trace = scratch()?.join("t.gapscope");
        let each = |bytes: u64| format!("{:.2}", bytes as f64 / dispatches);
        table += &format!(
            "| {name} | {dispatches} | {} | {} | {} |\n",
            each(table_bytes(&trace, "dispatches")?),
            each(table_bytes(&trace, "bindings")?),
            each(table_bytes(&trace, "")?),
        );
        Ok(())
    };
    let works = [
        (
            "one kernel, one buffer",
            "steady --n 1000 --iterations 100 --groups 1 --spin 0",
        ),
        (
            "descriptor sets updated between recordings",
            "updated-sets --n 100 --iterations 1000 --groups 1 --spin 0",
        ),
        (
            "dynamic offsets",
            "dynamic-offsets --n 1000 --iterations 100 --groups 1 --spin 0",
        ),
        (
            "submissions of one dispatch",
            "fence-each --iterations 20000 --groups 1 --spin 0",
        ),
    ];
    for (name, arguments) in works {
        let line = planted(Variant::Recorded("dispatch"), Driver::Lavapipe, arguments)?;
        row(name, number(&line, "dispatches")?)?;
    }
    // The real program has many kernels, other buffers for each dispatch, and four dispatches in a command buffer.
    if let Some(program) = client("llama", "256")? {
        let recorded = Variant::Recorded("dispatch");
        output(&mut command(recorded, Driver::Lavapipe, &program)?)?;
        let trace = scratch()?.join("t.gapscope");
        let mut gapscope = Command::new(built("gapscope")?);
        let report = output(gapscope.args(["report", "--json"]).arg(&trace))?;
        let report: Value = serde_json::from_str(&report).context("cannot read the report")?;
        row("llama.cpp, 256 tokens", number(&report, "dispatch_count")?)?;
    }
    Ok(table)
}

/// Returns the size of the files of a table, `NAME.parquet` or its parts; of the whole trace if the name is empty.
fn table_bytes(trace: &Path, table: &str) -> Result<u64> {
    let mut bytes = 0;
    for entry in trace
        .read_dir()
        .with_context(|| format!("cannot list {}", trace.display()))?
    {
        let entry = entry?;
        let name = entry.file_name();
        let facts = entry.metadata()?;
        if facts.is_dir() && (table.is_empty() || name == *table) {
            bytes += table_bytes(&entry.path(), "")?;
        } else if facts.is_file() && name.to_string_lossy().starts_with(table) {
            bytes += facts.len();
        }
    }
    Ok(bytes)
}
