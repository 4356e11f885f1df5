//! `gapscope export`: writes a trace, or the traces of ranks (processes of a distributed program), in the format of
//! another tool.

mod one_file;

use crate::args::{Export, Format};
use crate::failure::{Failure, without_os_error_numbers};
use crate::trace::choose_rank;
use crate::trace::{OpenedTrace, PiecewiseTrace};
use crate::{exit, interrupts, page, progress, trace};
use gapscope_analysis::unread::{CAUSES, unknown_because};
use gapscope_export::csv::RankColumn;
use gapscope_export::{Exported, Labels, Scene, chrome, csv, firefox, perfetto, speedscope};
use gapscope_files::{NewFile, NewFolder};
use gapscope_timeline::quantity as number;
use gapscope_trace::tables::Dispatches;
use gapscope_trace::{Diagnostic, embedded, rank_folders, read_manifest};
use std::io::{self, BufWriter, ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Writes a trace in another format. Ranks are written into one file where the format allows that and the ranks share
/// a clock.
pub fn run(arguments: &Export) -> Result<ExitCode, Failure> {
    let output = &arguments.output;
    if output.as_os_str() == "-" && arguments.format == Format::Csv {
        return Err(Failure::new(
            "csv is a folder with a file for each table, which stdout cannot take: give a folder after -o",
        ));
    }
    interrupts::remove_unfinished_first();
    let of_ranks = rank_folders(&arguments.trace);
    let whole = match of_ranks.is_empty() {
        true => export_trace(
            &arguments.trace,
            output,
            arguments.format,
            arguments.drawing_only,
        )?,
        false => export_ranks(arguments, &of_ranks)?,
    };
    Ok(exit::after_reading(whole))
}

/// What a file lacks that has the drawing alone.
const DRAWING_ALONE: &str =
    "the file has what is drawn alone, so that `gapscope import` cannot make the whole trace of it";

/// The trace of one rank, or of the processes without a rank.
struct RankTrace<'a> {
    /// The number of the rank; `None` for the trace of processes without a rank.
    rank: Option<u32>,
    path: &'a Path,
}

impl RankTrace<'_> {
    /// Returns the text at the beginning of the names of the trace's groups.
    fn name(&self) -> String {
        self.rank
            .map_or("no rank".to_owned(), |rank| format!("rank {rank}"))
    }
}

/// Writes the traces of ranks, and the trace of processes without a rank if it used a GPU. Returns true if all of
/// them could be read.
fn export_ranks(arguments: &Export, ranks: &[(u32, PathBuf)]) -> Result<bool, Failure> {
    let without_rank = uses_gpu(&arguments.trace).then_some(RankTrace {
        rank: None,
        path: &arguments.trace,
    });
    let of_ranks = ranks.iter().map(|(rank, path)| RankTrace {
        rank: Some(*rank),
        path,
    });
    let parts: Vec<RankTrace> = without_rank.into_iter().chain(of_ranks).collect();
    let why_not = match arguments.format {
        _ if arguments.each_rank => None,
        _ if !one_file::have_one_clock(&parts)? => {
            Some("the ranks were recorded apart, with different clocks")
        }
        _ => return one_file::run(arguments, &parts),
    };
    if arguments.output.as_os_str() == "-" {
        return Err(choose_rank(&arguments.trace, ranks, "stdout"));
    }
    if let Some(reason) = why_not {
        page::note(format!("{reason}: each has a file of its own"));
    }
    export_each(&parts, &arguments.output, arguments)
}

/// Writes each trace to a file of its own and prints its path.
fn export_each(parts: &[RankTrace], output: &Path, arguments: &Export) -> Result<bool, Failure> {
    let files: Vec<PathBuf> = parts
        .iter()
        .map(|part| match part.rank {
            Some(rank) => rank_file(output, rank),
            None => output.to_owned(),
        })
        .collect();
    if let Some(file) = files.iter().find(|file| file.symlink_metadata().is_ok()) {
        return Err(exists(file));
    }
    let mut all_whole = true;
    for (RankTrace { path, .. }, file) in parts.iter().zip(&files) {
        all_whole &= export_trace(path, file, arguments.format, arguments.drawing_only)?;
        page::note(format!(
            "{} is written to {}",
            path.display(),
            file.display()
        ));
    }
    Ok(all_whole)
}

/// Returns true if processes without a rank used a GPU.
fn uses_gpu(recording: &Path) -> bool {
    read_manifest(recording).is_ok_and(|manifest| !manifest.queues.is_empty())
}

/// Returns the file of a rank: `out.rank=3.json` for `out.json` and rank 3.
fn rank_file(output: &Path, rank: u32) -> PathBuf {
    let mut name = output.file_stem().unwrap_or_default().to_owned();
    name.push(format!(".rank={rank}"));
    if let Some(extension) = output.extension() {
        name.push(".");
        name.push(extension);
    }
    output.with_file_name(name)
}

/// Writes one trace. Returns true if all of it could be read.
fn export_trace(
    path: &Path,
    output: &Path,
    format: Format,
    drawing_only: bool,
) -> Result<bool, Failure> {
    let stdout = output.as_os_str() == "-";
    if !stdout && output.symlink_metadata().is_ok() {
        return Err(exists(output));
    }
    let (exported, whole) = progress::while_working(|bytes| match format {
        Format::Csv => in_new_folder(output, |folder| tables(path, folder, None)),
        format => with_scene(path, &mut |scene| {
            if matches!(format, Format::Perfetto | Format::Chrome) && !drawing_only {
                match embedded::can_embed(path) {
                    true => scene.embed(path),
                    false => page::note(format!(
                        "the trace is not complete, was changed, has a secret in its command line, or links in place of files: {DRAWING_ALONE}"
                    )),
                }
            }
            match stdout {
                true => to_stdout(scene, format, bytes),
                false => to_file(scene, format, output, bytes),
            }
        }),
    })?;
    say_left_out(&exported);
    Ok(whole)
}

/// Makes the scene (the drawn form) of a trace and passes it to `write`. Returns the result of `write`, and true if
/// all of the trace could be read.
fn with_scene(
    path: &Path,
    write: &mut (dyn for<'a> FnMut(&mut Scene<'a>) -> Result<Exported, Failure> + Send),
) -> Result<(Exported, bool), Failure> {
    trace::read_in_pieces(path, &Scene::selection(), |opened| {
        let markers = std::mem::take(&mut opened.trace.tables.markers);
        let trace = &opened.trace;
        let each = |take: &mut (dyn FnMut(&Dispatches) + Send)| opened.each(take);
        let labels = Labels::new(&markers);
        drop(markers);
        let (mut scene, unknown) = Scene::from_pieces(trace, labels, opened.rows(), each)?;
        say_remarks(opened, &unknown);
        if unknown_because(trace, CAUSES).is_some() {
            page::note("gaps depend on that and are not drawn");
        }
        Some(write(&mut scene).map(|exported| (exported, trace.is_whole())))
    })?
}

/// Makes a folder, which must not exist, and has `write` fill it under another name: it appears when it is whole.
fn in_new_folder<R>(
    path: &Path,
    write: impl FnOnce(&Path) -> Result<R, Failure>,
) -> Result<R, Failure> {
    let new = NewFolder::create(path).map_err(|error| refused(path, &error))?;
    let written = write(new.path())?;
    new.place().map_err(|error| refused(path, &error))?;
    Ok(written)
}

/// Writes the tables of a trace as CSV into an existing folder. Tables to which no other table refers are read in
/// turn, so that they are never in memory together.
fn tables(path: &Path, folder: &Path, of: Option<RankColumn>) -> Result<(Exported, bool), Failure> {
    let failed = |error: csv::Error| Failure::new(without_os_error_numbers(&error.to_string()));
    let mut said = Vec::new();
    let written = trace::read_in_pieces(path, &csv::referenced_tables(), |opened| {
        let trace = &opened.trace;
        let each = |take: &mut (dyn FnMut(&Dispatches) + Send)| opened.each(take);
        let (exported, unknown) = match csv::write_pieces(trace, each, folder, of) {
            Ok(written) => written?,
            Err(error) => return Some(Err(failed(error))),
        };
        say_remarks(opened, &unknown);
        said.clone_from(&opened.remarks);
        Some(Ok((exported, trace.is_whole())))
    })?;
    let (mut exported, mut whole) = written?;
    for table in csv::independent_tables() {
        let OpenedTrace { trace, remarks } = trace::open(path, &table.selection)?;
        for remark in remarks {
            if !said.contains(&remark) {
                page::note(&remark);
                said.push(remark);
            }
        }
        let rows = table.write(&trace, folder, of).map_err(failed)?;
        exported.rows.push(rows);
        whole &= trace.is_whole();
    }
    Ok((exported, whole))
}

/// Prints on stderr what could not be read, and what is unknown because of that.
fn say_remarks(opened: &PiecewiseTrace, unknown: &[Diagnostic]) {
    for remark in &opened.remarks {
        page::note(remark);
    }
    for diagnostic in unknown {
        page::note(diagnostic);
    }
}

/// Writes to stdout; a reader that goes away is no error.
fn to_stdout(
    scene: &Scene,
    format: Format,
    bytes: &progress::WrittenBytes,
) -> Result<Exported, Failure> {
    match write(scene, format, bytes.count(io::stdout())) {
        // A reader that closes the pipe early (`| head`) is not a failure.
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(Exported::default()),
        result => result.map_err(|error| unwritten("stdout", &error)),
    }
}

/// Writes a file that must not exist, and that appears when it is whole.
fn to_file(
    scene: &Scene,
    format: Format,
    path: &Path,
    bytes: &progress::WrittenBytes,
) -> Result<Exported, Failure> {
    let failed = |error: io::Error| refused(path, &error);
    let new = NewFile::create(path).map_err(failed)?;
    let exported = write(scene, format, bytes.count(new.file())).map_err(failed)?;
    new.place().map_err(failed)?;
    Ok(exported)
}

/// Writes a scene in a format that is one file.
fn write(scene: &Scene, format: Format, out: impl Write + Send) -> io::Result<Exported> {
    let mut out = BufWriter::with_capacity(1 << 20, out);
    let exported = match format {
        Format::Perfetto => perfetto::write(scene, &mut out),
        Format::Chrome => chrome::write(scene, &mut out),
        Format::Firefox => firefox::write(scene, &mut out),
        Format::Speedscope => speedscope::write(scene, &mut out),
        Format::Csv => Err(io::Error::other("csv is a folder")),
    }?;
    out.flush()?;
    Ok(exported)
}

/// Prints on stderr how many rows were not drawn.
fn say_left_out(exported: &Exported) {
    for sentence in sentences(exported) {
        page::note(&sentence);
    }
}

/// Returns sentences about the rows that the export leaves out.
fn sentences(exported: &Exported) -> Vec<String> {
    let missing = exported.rows.iter().filter(|rows| rows.without_times > 0);
    missing
        .map(|rows| {
            let all = rows.written.saturating_add(rows.without_times);
            format!(
                "{} of {} rows of {} have no times and are not drawn",
                number::count(rows.without_times),
                number::count(all),
                rows.table
            )
        })
        .collect()
}

/// Returns the error that a file or folder exists.
fn exists(path: &Path) -> Failure {
    let path = path.display();
    failure!(
        "{path} is there already, and nothing is overwritten: choose another name after -o, or remove it"
    )
}

/// Returns the error that a file or folder exists, or cannot be written.
fn refused(path: &Path, error: &io::Error) -> Failure {
    match error.kind() {
        ErrorKind::AlreadyExists => exists(path),
        _ => unwritten(&path.display().to_string(), error),
    }
}

/// Returns the error that a file cannot be written.
fn unwritten(name: &str, error: &io::Error) -> Failure {
    Failure::new(without_os_error_numbers(&format!(
        "{name} cannot be written: {error}"
    )))
}
