//! Writes the traces of ranks (processes of a distributed program) into one file, one after the other.

use super::{DRAWING_ALONE, RankTrace, refused, say_left_out, tables, unwritten, with_scene};
use crate::args::{Export, Format};
use crate::failure::Failure;
use crate::{page, progress};
use gapscope_export::csv::RankColumn;
use gapscope_export::{Exported, Joined, JoinedFormat};
use gapscope_files::NewFile;
use gapscope_trace::embedded::can_embed_ranks;
use gapscope_trace::tables::*;
use gapscope_trace::{Selection, read, read_manifest};
use std::io::{self, BufWriter, ErrorKind, Write};
use std::path::Path;

/// Returns true if the ranks' times are of one clock: their recordings then begin at the same time.
pub fn have_one_clock(parts: &[RankTrace]) -> Result<bool, Failure> {
    let mut starts = Vec::new();
    for part in parts.iter().filter(|part| part.rank.is_some()) {
        starts.push(read_manifest(part.path)?.start_ns);
    }
    Ok(starts.windows(2).all(|two| two[0] == two[1]))
}

/// Writes the traces to a file, to stdout or, as CSV, to a folder. Returns true if all of them could be read.
pub fn run(arguments: &Export, parts: &[RankTrace]) -> Result<bool, Failure> {
    let output = &arguments.output;
    let format = match arguments.format {
        Format::Perfetto => JoinedFormat::Perfetto,
        Format::Chrome => JoinedFormat::Chrome,
        Format::Speedscope => JoinedFormat::Speedscope,
        Format::Firefox => JoinedFormat::Firefox,
        Format::Csv => return to_folder(output, parts),
    };
    let has_room = matches!(format, JoinedFormat::Perfetto | JoinedFormat::Chrome);
    let embedded = match has_room && !arguments.drawing_only {
        true if can_embed_ranks(&arguments.trace) => Some(&*arguments.trace),
        true => {
            page::note(format!(
                "a trace is not complete, was changed, or has links in place of files: {DRAWING_ALONE}"
            ));
            None
        }
        false => None,
    };
    if output.as_os_str() == "-" {
        return match write_joined(io::stdout(), format, parts, embedded, "stdout") {
            // A reader that has had enough (`| head`) is not a failure.
            Err(JoinError::Write(error, _)) if error.kind() == ErrorKind::BrokenPipe => Ok(true),
            written => Ok(written?),
        };
    }
    let name = output.display().to_string();
    let new = NewFile::create(output).map_err(|error| refused(output, &error))?;
    let whole = write_joined(new.file(), format, parts, embedded, &name)?;
    new.place().map_err(|error| refused(output, &error))?;
    Ok(whole)
}

/// Writes the traces to `out` in turn, and behind them the trace of the folder `embedded`, whose ranks they are. Returns true if all of them could be read.
fn write_joined(
    out: impl Write + Send,
    format: JoinedFormat,
    parts: &[RankTrace],
    embedded: Option<&Path>,
    name: &str,
) -> Result<bool, JoinError> {
    let (from_ns, to_ns) = times(parts)?;
    let failed = |error| JoinError::Write(error, name.to_owned());
    progress::while_working(|bytes| {
        let out = BufWriter::with_capacity(1 << 20, bytes.count(out));
        let mut joined = Joined::begin(format, from_ns, to_ns, out).map_err(failed)?;
        if let Some(folder) = embedded {
            joined.embed(folder).map_err(failed)?;
        }
        let mut all_whole = true;
        let mut all = Exported::default();
        for part in parts {
            let mut refused = None;
            let written = with_scene(part.path, &mut |scene| {
                joined.add(&part.name(), scene).or_else(|error| {
                    refused = Some(error);
                    Ok(Exported::default())
                })
            });
            if let Some(error) = refused {
                return Err(failed(error));
            }
            let (exported, whole) = written?;
            all_whole &= whole;
            add(&mut all, exported);
        }
        joined.end().map_err(failed)?;
        say_left_out(&all);
        Ok(all_whole)
    })
}

/// The reason why a file was not completed.
enum JoinError {
    /// The file with the given name cannot be written.
    Write(io::Error, String),
    /// A trace cannot be read.
    Failed(Failure),
}

impl From<Failure> for JoinError {
    fn from(failure: Failure) -> JoinError {
        JoinError::Failed(failure)
    }
}

impl From<JoinError> for Failure {
    fn from(ended: JoinError) -> Failure {
        match ended {
            JoinError::Write(error, name) => unwritten(&name, &error),
            JoinError::Failed(failure) => failure,
        }
    }
}

/// Adds the numbers of rows in `more` to those in `all`, by table.
fn add(all: &mut Exported, more: Exported) {
    for rows in more.rows {
        match all.rows.iter_mut().find(|known| known.table == rows.table) {
            Some(known) => {
                known.written += rows.written;
                known.without_times += rows.without_times;
            }
            None => all.rows.push(rows),
        }
    }
}

/// Returns the first and the last recorded time of all traces. Formats that count from the first time need it
/// before the first row is written.
fn times(parts: &[RankTrace]) -> Result<(i64, i64), Failure> {
    let mut selection = Selection::manifest().unchecked();
    macro_rules! select {
        ($($table:ty: $column:literal),+) => {$(
            selection = selection.columns::<$table>(&[$column]);
        )+};
    }
    select!(
        Dispatches: "start_ns",
        CommandBuffers: "start_ns",
        Transfers: "start_ns",
        OpaqueWork: "start_ns",
        Submissions: "start_ns",
        HostCalls: "start_ns",
        Markers: "start_ns",
        CounterValues: "start_ns",
        Samples: "time_ns",
        Memory: "at_ns"
    );
    let (mut from_ns, mut to_ns) = (i64::MAX, i64::MIN);
    for part in parts {
        // Unreadable parts are reported when the scene is drawn.
        let (trace, _) = read(part.path, &selection)?;
        let tables = &trace.tables;
        let maybe = [
            &tables.dispatches.start_ns,
            &tables.command_buffers.start_ns,
            &tables.transfers.start_ns,
            &tables.opaque_work.start_ns,
            &tables.markers.start_ns,
        ];
        let known = [
            &tables.submissions.start_ns,
            &tables.host_calls.start_ns,
            &tables.counter_values.start_ns,
            &tables.samples.time_ns,
            &tables.memory.at_ns,
        ];
        let maybe = maybe.into_iter().flatten().flatten();
        let all = maybe.chain(known.into_iter().flatten().copied());
        let first = all.min().unwrap_or(i64::MAX);
        from_ns = from_ns.min(first).min(trace.manifest.start_ns);
        to_ns = to_ns.max(trace.manifest.end_ns);
    }
    Ok((from_ns, to_ns))
}

/// Writes a folder of a file for each table, in which a column has the rank.
fn to_folder(output: &Path, parts: &[RankTrace]) -> Result<bool, Failure> {
    let write = |folder: &Path| {
        let mut all_whole = true;
        for (at, part) in parts.iter().enumerate() {
            let of = RankColumn {
                rank: part.rank,
                first: at == 0,
            };
            let (exported, whole) = tables(part.path, folder, Some(of))?;
            say_left_out(&exported);
            all_whole &= whole;
        }
        Ok(all_whole)
    };
    progress::while_working(|_| super::in_new_folder(output, write))
}
