//! Writes a trace from its text form (see `gapscope_trace::text`), for tests in other languages: `cargo run -p
//! gapscope-trace --example from_text -- TRACE.txt OUT.gapscope`.
#![forbid(unsafe_code)]

use gapscope_trace::{Trace, TraceWriter};
use std::error::Error;
use std::path::Path;
use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [text, out] = arguments.as_slice() else {
        eprintln!("usage: from_text TRACE.txt OUT.gapscope");
        return ExitCode::from(2);
    };
    match write(text, Path::new(out)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{text}: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Reads the text form from the file `text` and writes the trace to the new folder `out`.
fn write(text: &str, out: &Path) -> Result<(), Box<dyn Error>> {
    let trace = Trace::from_text(&std::fs::read_to_string(text)?)?;
    let mut writer = TraceWriter::create(out)?;
    *writer.tables_mut() = trace.tables;
    writer.finish(&trace.manifest)?;
    Ok(())
}
