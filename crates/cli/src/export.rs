//! `gapscope export`.

use crate::args::{Export, Format};
use crate::failure::{Failure, without_number};
use crate::ranks::choose;
use crate::trace::InPieces;
use crate::{exit, page, progress, trace};
use gapscope_analysis::quantity as number;
use gapscope_analysis::unread::{CAUSES, unknown_because};
use gapscope_export::{Exported, Labels, Scene, chrome, csv, firefox, perfetto, speedscope};
use gapscope_trace::tables::{Dispatches, Markers};
use gapscope_trace::{Diagnostic, Selection, rank_folders, read_manifest};
use std::fs::File;
use std::io::{self, BufWriter, ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Writes a trace in another format; of ranks one file each.
pub fn run(arguments: &Export) -> Result<ExitCode, Failure> {
    let output = &arguments.output;
    let stdout = output.as_os_str() == "-";
    if stdout && arguments.format == Format::Csv {
        return Err(Failure::new(
            "csv is a folder with a file for each table, which stdout cannot take: give a folder after -o",
        ));
    }
    let of_ranks = rank_folders(&arguments.trace);
    if !of_ranks.is_empty() {
        return ranks(arguments, &of_ranks);
    }
    let whole = one(&arguments.trace, output, arguments.format)?;
    Ok(exit::of_reading(whole))
}

/// Writes the trace of each rank to a file of its own, and that of what has no rank where it used a GPU, and says which.
fn ranks(arguments: &Export, ranks: &[(u32, PathBuf)]) -> Result<ExitCode, Failure> {
    let output = &arguments.output;
    if output.as_os_str() == "-" {
        return Err(choose(&arguments.trace, ranks, "stdout"));
    }
    let all = ranks
        .iter()
        .map(|(rank, path)| (path, of_rank(output, *rank)));
    let without_rank = uses_gpu(&arguments.trace).then(|| (&arguments.trace, output.clone()));
    let all: Vec<(&PathBuf, PathBuf)> = without_rank.into_iter().chain(all).collect();
    if let Some((_, file)) = all.iter().find(|(_, file)| file.symlink_metadata().is_ok()) {
        return Err(exists(file));
    }
    let mut all_whole = true;
    for (path, file) in &all {
        all_whole &= one(path, file, arguments.format)?;
        page::say(&format!(
            "gapscope: {} is written to {}\n",
            path.display(),
            file.display()
        ));
    }
    Ok(exit::of_reading(all_whole))
}

/// Whether a recording has a trace of processes without a rank that used a GPU.
fn uses_gpu(recording: &Path) -> bool {
    read_manifest(recording).is_ok_and(|manifest| !manifest.queues.is_empty())
}

/// `out.rank=3.json` of `out.json`.
fn of_rank(output: &Path, rank: u32) -> PathBuf {
    let mut name = output.file_stem().unwrap_or_default().to_owned();
    name.push(format!(".rank={rank}"));
    if let Some(extension) = output.extension() {
        name.push(".");
        name.push(extension);
    }
    output.with_file_name(name)
}

/// Writes one trace. True: all of it could be read.
fn one(path: &Path, output: &Path, format: Format) -> Result<bool, Failure> {
    let stdout = output.as_os_str() == "-";
    if !stdout && output.symlink_metadata().is_ok() {
        return Err(exists(output));
    }
    let (exported, whole) = progress::while_working(|bytes| {
        let selection = match format {
            Format::Csv => Selection::all(),
            _ => Scene::selection(),
        };
        trace::in_pieces(path, &selection, |opened| {
            let markers = match format {
                Format::Csv => Markers::default(),
                _ => std::mem::take(&mut opened.trace.tables.markers),
            };
            let trace = &opened.trace;
            let each = |take: &mut (dyn FnMut(&Dispatches) + Send)| opened.each(take);
            let exported = match format {
                Format::Csv => match csv::write_pieces(trace, each, output) {
                    Ok(written) => {
                        let (exported, unknown) = written?;
                        say_remarks(opened, &unknown);
                        Ok(exported)
                    }
                    Err(error) => Err(Failure::new(without_number(&error.to_string()))),
                },
                format => {
                    let labels = Labels::of(&markers);
                    drop(markers);
                    let (scene, unknown) = Scene::of_pieces(trace, labels, opened.rows(), each)?;
                    say_remarks(opened, &unknown);
                    if unknown_because(trace, CAUSES).is_some() {
                        page::say("gapscope: gaps rest on that and are not drawn\n");
                    }
                    match stdout {
                        true => to_stdout(&scene, format, bytes),
                        false => to_file(&scene, format, output, bytes),
                    }
                }
            };
            Some(exported.map(|exported| (exported, trace.is_whole())))
        })
    })??;
    for sentence in sentences(&exported) {
        page::say(&format!("gapscope: {sentence}\n"));
    }
    Ok(whole)
}

fn say_remarks(opened: &InPieces, unknown: &[Diagnostic]) {
    for remark in &opened.remarks {
        page::say(&format!("gapscope: {remark}\n"));
    }
    for diagnostic in unknown {
        page::say(&format!("gapscope: {diagnostic}\n"));
    }
}

fn to_stdout(scene: &Scene, format: Format, bytes: &progress::Bytes) -> Result<Exported, Failure> {
    match write(scene, format, bytes.count(io::stdout())) {
        // A reader that has had enough (`| head`) is not a failure.
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(Exported::default()),
        result => result.map_err(|error| unwritten("stdout", &error)),
    }
}

/// Writes a file that must not exist. What could not be completed is removed.
fn to_file(
    scene: &Scene,
    format: Format,
    path: &Path,
    bytes: &progress::Bytes,
) -> Result<Exported, Failure> {
    let name = path.display().to_string();
    let mut file = File::create_new(path).map_err(|error| match error.kind() {
        ErrorKind::AlreadyExists => exists(path),
        _ => unwritten(&name, &error),
    })?;
    write(scene, format, bytes.count(&mut file)).map_err(|error| {
        let _ = std::fs::remove_file(path);
        unwritten(&name, &error)
    })
}

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

/// What is not in the export.
fn sentences(exported: &Exported) -> Vec<String> {
    let missing = exported.rows.iter().filter(|rows| rows.without_times > 0);
    missing
        .map(|rows| {
            let all = rows.drawn.saturating_add(rows.without_times);
            format!(
                "{} of {} rows of {} have no times and are not drawn",
                number::count(rows.without_times),
                number::count(all),
                rows.table
            )
        })
        .collect()
}

fn exists(path: &Path) -> Failure {
    let path = path.display();
    Failure::new(format!(
        "{path} is there already, and nothing is overwritten: choose another name after -o, or remove it"
    ))
}

fn unwritten(name: &str, error: &io::Error) -> Failure {
    Failure::new(without_number(&format!(
        "{name} cannot be written: {error}"
    )))
}
