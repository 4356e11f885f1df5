//! Writes the runs of a replay as a gapscope trace (a folder of tables that reports read): session and observations
//! (times of submissions) go in, a trace folder comes out.

mod manifest;
mod rows;

use std::path::Path;

use gapscope_timeline_builder::kernel_accesses;
use gapscope_trace::writer::SOURCES_FOLDER;
use gapscope_trace::{ContainedPath, TraceWriter};

use crate::error::Error;
use crate::session::{Observation, Session};

pub use manifest::RunFacts;

/// Creates the folder of a trace before anything runs, so that an existing folder is reported at once.
pub fn begin(folder: &Path) -> Result<TraceWriter, Error> {
    Ok(TraceWriter::create(folder)?)
}

/// Writes the observed runs into the trace.
pub fn write(
    mut writer: TraceWriter,
    session: &mut Session<'_>,
    observed: &[Observation],
    facts: &RunFacts,
) -> Result<(), Error> {
    let mut rows = rows::Rows::new(session, facts.runs);
    for of in observed {
        rows.observed(session, of);
        std::mem::swap(writer.tables_mut(), &mut rows.tables);
        writer.flush_full()?;
        std::mem::swap(writer.tables_mut(), &mut rows.tables);
    }
    rows.finish();
    *writer.tables_mut() = std::mem::take(&mut rows.tables);
    for id in session.shaders.keys() {
        let module = session.capture.pipelines[id].module;
        let hash = session.capture.modules[&module].code;
        let code = session.capture.chunk(hash).map_err(Error::Content)?;
        writer.add_source(&hash.to_string(), "spv", &code)?;
    }
    let sources = ContainedPath::new(writer.folder(), SOURCES_FOLDER);
    kernel_accesses::fill(&sources, &mut writer.tables_mut().kernels);
    let manifest = manifest::build(session, observed, facts, rows.untimed);
    Ok(writer.finish(&manifest)?)
}
