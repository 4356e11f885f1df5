//! Imports one file into a trace: reads its events, assembles the rows, describes what is not an event, and writes
//! all.

use super::collect::Collector;
use super::document::Document;
use super::facts::{DocumentChoice, Names, TracePart};
use super::source::Source;
use crate::{Error, NewTrace, Options, Output};
use std::path::Path;

/// The outcome of reading a file.
pub(super) enum Attempt {
    /// The trace is written.
    Whole,
    /// Nothing is written, as a second document begins, which may be of another process.
    SeveralDocuments,
    /// Nothing is written, as events of devices came before the names that show what they are.
    LateNames(Names),
}

/// Imports a file, or a part of it, into a trace.
pub(super) fn import(
    path: &Path,
    new: NewTrace,
    part: TracePart<'_>,
    options: &Options,
    output: &mut Output,
) -> Result<Attempt, Error> {
    let source = Source::open(path)?;
    let mut collector = Collector::new(output, new, part, &options.gpu_rows);
    let summary = Document::new(source).read(&mut collector)?;
    if let Some(found) = summary.foreign {
        return Err(Error::foreign(path, "Chrome's JSON", found));
    }
    if collector.is_stopped {
        return Ok(Attempt::SeveralDocuments);
    }
    let is_first_attempt = matches!(part.documents, DocumentChoice::Only) && part.names.is_none();
    if is_first_attempt && collector.lanes.has_late_names() {
        return Ok(Attempt::LateNames(collector.lanes.into_names()));
    }
    if summary.events == 0 {
        return Err(Error::nothing(format!(
            "{} holds no events",
            path.display()
        )));
    }
    collector.metadata.rank = part.rank.or(collector.metadata.rank);
    collector.pair_ranges_by_time()?;
    let reasons = collector.assemble();
    collector.write_scopes()?;
    let file = path.file_name().unwrap_or_default().to_string_lossy();
    collector.describe(&summary, &file, options);
    let Collector { profile, new, .. } = collector;
    profile.write(reasons, options, new, output)?;
    Ok(Attempt::Whole)
}
