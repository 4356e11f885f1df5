//! Imports one file into a trace: reads its events, assembles the rows, describes what is not an event, and writes
//! all.

use super::collect::Collector;
use super::document::Document;
use super::source::Source;
use crate::{Error, NewTrace, Options, Output};
use gapscope_trace::manifest::Rank;
use std::path::Path;

/// The part of a file that becomes a trace.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Part<'a> {
    /// The size of the files that were read before, and of all files.
    pub(super) bytes: (u64, u64),
    /// What is added to all times; where it is `None` the file decides.
    pub(super) shift_ns: Option<i64>,
    /// The rank of the trace, where the file does not say it.
    pub(super) rank: Option<Rank>,
    /// The beginning of the names of the processes whose events are taken; empty where all are.
    pub(super) prefix: &'a [u8],
}

impl Part<'_> {
    /// Returns all of a file.
    pub(super) fn whole(bytes: (u64, u64)) -> Part<'static> {
        Part {
            bytes,
            ..Part::default()
        }
    }
}

/// Imports a file, or a part of it, into a trace.
pub(super) fn import(
    path: &Path,
    new: NewTrace,
    part: Part<'_>,
    options: &Options,
    output: &mut Output,
) -> Result<(), Error> {
    let source = Source::open(path)?;
    let mut collector = Collector::new(output, new, part);
    let summary = Document::new(source).read(&mut collector)?;
    if let Some(found) = summary.foreign {
        return Err(Error::foreign(path, "Chrome's JSON", found));
    }
    if summary.events == 0 {
        return Err(Error::nothing(format!(
            "{} holds no events",
            path.display()
        )));
    }
    collector.metadata.rank = part.rank.or(collector.metadata.rank);
    let reasons = collector.assemble();
    let file = path.file_name().unwrap_or_default().to_string_lossy();
    collector.describe(&summary, &file, options);
    let Collector { profile, new, .. } = collector;
    profile.write(reasons, options, new, output)
}
