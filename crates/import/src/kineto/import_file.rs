//! Imports one file into a trace: reads its events, assembles the rows, describes what is not an event, and writes
//! all.

use super::collect::Collector;
use super::document::Document;
use super::facts::{DocumentChoice, Names, TracePart};
use super::source::Source;
use crate::{Error, NewTrace, Options, Output};
use std::collections::BTreeSet;
use std::path::Path;

/// The outcome of reading a file.
pub(super) enum Attempt {
    /// The trace is written.
    Whole,
    /// Nothing is written, as a second document begins, which may be of another process.
    SeveralDocuments,
    /// Nothing is written, as events of devices came before the names that show what they are.
    LateNames(Names),
    /// Nothing is written, as most times are of another clock than the first one. The number is what is added to times.
    OtherClock(i64),
}

/// A file of a process that recorded in several windows.
#[derive(Debug, Clone, Copy)]
pub(super) struct Window<'a> {
    pub(super) path: &'a Path,
    /// The size of the files that are read before.
    pub(super) bytes_before: u64,
    /// What is added to the times of the file; where it is `None` the file decides.
    pub(super) shift_ns: Option<i64>,
}

/// Imports a file, or a part of it, into a trace.
pub(super) fn import(
    path: &Path,
    new: NewTrace,
    part: TracePart<'_>,
    options: &Options,
    output: &mut Output,
) -> Result<Attempt, Error> {
    let window = Window {
        path,
        bytes_before: part.bytes.0,
        shift_ns: part.shift_ns,
    };
    import_windows(&[window], new, part, options, output)
}

/// Imports the files of a process into one trace. `part` says what is taken of each.
pub(super) fn import_windows(
    windows: &[Window],
    new: NewTrace,
    part: TracePart<'_>,
    options: &Options,
    output: &mut Output,
) -> Result<Attempt, Error> {
    let mut collector = Collector::new(output, new, part, &options.gpu_rows);
    let mut summaries = Vec::new();
    for window in windows {
        let source = Source::open(window.path)?;
        collector.bytes.0 = window.bytes_before;
        collector.shift_ns = window.shift_ns;
        let summary = Document::new(source).read(&mut collector)?;
        if let Some(found) = summary.foreign {
            return Err(Error::foreign(window.path, "Chrome's JSON", found));
        }
        if collector.is_stopped {
            return Ok(Attempt::SeveralDocuments);
        }
        if summary.events == 0 {
            return Err(Error::nothing(format!(
                "{} holds no events",
                window.path.display()
            )));
        }
        let file = window.path.file_name().unwrap_or_default();
        summaries.push((file.to_string_lossy(), summary));
    }
    let is_first_attempt = matches!(part.documents, DocumentChoice::Only) && part.names.is_none();
    if is_first_attempt && collector.lanes.has_late_names() {
        return Ok(Attempt::LateNames(collector.lanes.into_names()));
    }
    let shift_ns = collector.times.shift_ns();
    let is_guessed = matches!(part.documents, DocumentChoice::Only) && part.shift_ns.is_none();
    if is_guessed && shift_ns != collector.shift_ns.unwrap_or(0) {
        return Ok(Attempt::OtherClock(shift_ns));
    }
    collector.metadata.rank = part.rank.or(collector.metadata.rank);
    collector.pair_ranges_by_time()?;
    collector.lose_device_annotations();
    let reasons = collector.assemble();
    if let Some(pid) = options.pid {
        only_process(&collector, pid, windows[0].path)?;
    }
    collector.write_scopes()?;
    collector.add_not_recorded(part.not_recorded);
    for (_, summary) in &summaries {
        collector.add_holes(summary);
    }
    collector.describe(&summaries, options);
    let Collector { profile, new, .. } = collector;
    profile.write(reasons, options, new, output)?;
    Ok(Attempt::Whole)
}

/// Checks that all calls and work are of the process that the user names.
///
/// # Errors
/// There are none of it, or those of other processes, too.
fn only_process(collector: &Collector, pid: u32, path: &Path) -> Result<(), Error> {
    let recorded = &collector.profile.recorded;
    let calls = recorded.calls.iter().map(|(process, _)| *process);
    let work = recorded.work.iter().map(|(process, _, _)| *process);
    let processes = &collector.lanes.processes;
    let pids: BTreeSet<u32> = calls
        .chain(work)
        .filter_map(|process| processes.get(process.0 as usize))
        .map(|process| process.pid)
        .collect();
    let path = path.display();
    let listed: Vec<String> = pids.iter().map(u32::to_string).collect();
    let listed = listed.join(", ");
    match (pids.contains(&pid), pids.len()) {
        (true, 1) => Ok(()),
        (true, _) => Err(Error::nothing(format!(
            "{path} has work or calls of several processes ({listed}), and gapscope cannot import one of them from Chrome's JSON: leave --pid out"
        ))),
        (false, 0) => Err(Error::nothing(format!(
            "{path} has no work or calls of process {pid}"
        ))),
        (false, _) => Err(Error::nothing(format!(
            "{path} has no work or calls of process {pid}: it has those of {listed}"
        ))),
    }
}
