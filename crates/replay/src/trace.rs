//! A replay as a trace, like any recording.

mod manifest;
mod rows;

use std::path::Path;

use gapscope_trace::TraceWriter;

use crate::error::Error;
use crate::session::{Observed, Session};

pub use manifest::Told;

/// Begins a trace, before anything runs: a folder that exists is said at once.
pub fn begin(folder: &Path) -> Result<TraceWriter, Error> {
    Ok(TraceWriter::create(folder)?)
}

/// Writes what was observed.
pub fn write(
    mut writer: TraceWriter,
    session: &mut Session<'_>,
    observed: &[Observed],
    told: &Told,
) -> Result<(), Error> {
    let mut rows = rows::Rows::of(session, told.runs);
    for of in observed {
        rows.observed(session, of);
        std::mem::swap(writer.tables_mut(), &mut rows.tables);
        writer.flush_full()?;
        std::mem::swap(writer.tables_mut(), &mut rows.tables);
    }
    rows.finish(session);
    *writer.tables_mut() = std::mem::take(&mut rows.tables);
    for shader in session.shaders.values() {
        let code: Vec<u8> = shader
            .words
            .iter()
            .flat_map(|word| word.to_le_bytes())
            .collect();
        let hash = gapscope_capture::Hash::of(&code).to_string();
        writer.add_source(&hash, "spv", &code)?;
    }
    let manifest = manifest::of(session, observed, told);
    Ok(writer.finish(&manifest)?)
}
