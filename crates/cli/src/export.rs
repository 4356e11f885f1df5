//! `gapscope export`.

use crate::args::{Export, Format};
use crate::failure::{Failure, without_number};
use crate::{exit, page, progress, trace};
use gapscope_analysis::quantity as number;
use gapscope_analysis::unread::{CAUSES, unknown_because};
use gapscope_export::{Exported, chrome, csv, firefox, perfetto, speedscope};
use gapscope_trace::{Selection, Trace};
use std::fs::File;
use std::io::{self, BufWriter, ErrorKind, Write};
use std::path::Path;
use std::process::ExitCode;

/// Writes a trace in another format.
pub fn run(arguments: &Export) -> Result<ExitCode, Failure> {
    let output = &arguments.output;
    let stdout = output.as_os_str() == "-";
    if stdout && arguments.format == Format::Csv {
        return Err(Failure::new(
            "csv is a folder with a file for each table, which stdout cannot take: give a folder after -o",
        ));
    }
    if !stdout && output.symlink_metadata().is_ok() {
        return Err(exists(output));
    }
    let (exported, whole) = progress::while_working(|bytes| {
        let opened = trace::open(&arguments.trace, &Selection::all())?;
        for remark in &opened.remarks {
            page::say(&format!("gapscope: {remark}\n"));
        }
        if unknown_because(&opened.trace, CAUSES).is_some() && arguments.format != Format::Csv {
            page::say("gapscope: gaps rest on that and are not drawn\n");
        }
        let trace = &opened.trace;
        let exported = match arguments.format {
            Format::Csv => csv::write(trace, output)
                .map_err(|error| Failure::new(without_number(&error.to_string()))),
            format if stdout => {
                let mut out = io::stdout().lock();
                match write(trace, format, bytes.count(&mut out)) {
                    // A reader that has had enough (`| head`) is not a failure.
                    Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(Exported::default()),
                    result => result.map_err(|error| unwritten("stdout", &error)),
                }
            }
            format => to_file(trace, format, output, bytes),
        }?;
        Ok::<_, Failure>((exported, trace.unread.is_empty()))
    })?;
    for sentence in sentences(&exported) {
        page::say(&format!("gapscope: {sentence}\n"));
    }
    Ok(exit::of_reading(whole))
}

/// Writes a file that must not exist. What could not be completed is removed.
fn to_file(
    trace: &Trace,
    format: Format,
    path: &Path,
    bytes: &progress::Bytes,
) -> Result<Exported, Failure> {
    let name = path.display().to_string();
    let mut file = File::create_new(path).map_err(|error| match error.kind() {
        ErrorKind::AlreadyExists => exists(path),
        _ => unwritten(&name, &error),
    })?;
    write(trace, format, bytes.count(&mut file)).map_err(|error| {
        let _ = std::fs::remove_file(path);
        unwritten(&name, &error)
    })
}

fn write(trace: &Trace, format: Format, out: impl Write) -> io::Result<Exported> {
    let mut out = BufWriter::with_capacity(1 << 20, out);
    let exported = match format {
        Format::Perfetto => perfetto::write(trace, &mut out),
        Format::Chrome => chrome::write(trace, &mut out),
        Format::Firefox => firefox::write(trace, &mut out),
        Format::Speedscope => speedscope::write(trace, &mut out),
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
