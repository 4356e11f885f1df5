//! `gapscope import`: makes a trace of another tool's files and prints what was imported and what was lost.

use crate::args::Import;
use crate::failure::{Failure, without_os_error_numbers};
use crate::{interrupts, output_path, page, progress, record_metal};
use gapscope_import::xctrace::is_bundle;
use gapscope_import::{Imported, Options, import};
use gapscope_metal::{Xctrace, import_bundle};
use gapscope_timeline::quantity as number;
use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;

/// The ends of names that say the format of a file.
const ENDS: [&str; 20] = [
    "gz",
    "zst",
    "json",
    "sqlite",
    "db",
    "pftrace",
    "pb",
    "xplane",
    "log",
    "txt",
    "csv",
    "xml",
    "trace",
    "pt",
    "chrome_trace",
    "perfetto-trace",
    "proto",
    "nsys-rep",
    "qdrep",
    "gapscope",
];

/// Makes the trace. A bundle (a recording of Instruments, `NAME.trace`) is exported by Apple's xctrace first, where
/// this system has it.
pub fn run(arguments: &Import) -> Result<ExitCode, Failure> {
    let options = Options {
        pid: arguments.pid,
        ranks: [&*arguments.named_ranks, &*arguments.ranks].concat(),
        gpu_rows: arguments.gpu_rows.clone(),
        ..Options::default()
    };
    let output = match &arguments.output {
        Some(output) => output.clone(),
        None => output_path::for_trace(Path::new(""), &name(&arguments.inputs[0])),
    };
    interrupts::remove_unfinished_first();
    let imported = match arguments.inputs.as_slice() {
        [bundle] if is_bundle(bundle) && options.ranks.is_empty() && record_metal::applies() => {
            let line = record_metal::StatusLine::new(false);
            import_bundle(&Xctrace::find(), bundle, &output, &options, |stage| {
                line.show(stage)
            })?
        }
        _ => progress::while_reading(|read| import(&arguments.inputs, &output, &options, read))?,
    };
    page::say(&text(&imported));
    Ok(ExitCode::SUCCESS)
}

/// Returns the name of the trace of a file: its name without the ends that say its format, such as `.json.gz`.
fn name(input: &Path) -> OsString {
    // The name of `.` or of `a/..` is that of the folder that it leads to.
    let whole = input.canonicalize();
    let whole = whole.as_deref().unwrap_or(input);
    let name = whole.file_name().unwrap_or("trace".as_ref());
    let mut stem = Path::new(name);
    while let (Some(shorter), Some(end)) = (stem.file_stem(), stem.extension())
        && ENDS.iter().any(|known| end.eq_ignore_ascii_case(known))
    {
        stem = Path::new(shorter);
    }
    stem.as_os_str().to_owned()
}

/// Returns a sentence about what was imported, and a line for each loss.
fn text(imported: &Imported) -> String {
    let path = imported.output.display();
    let (command_buffers, work) = (imported.command_buffers, imported.timed_work);
    let found = match (command_buffers, work) {
        (0, 0) => "no GPU work is".to_owned(),
        // Traces of Instruments have command buffers.
        (1.., _) if work <= command_buffers => {
            number::count_of(command_buffers, "command buffer", "command buffers")
        }
        _ => number::count_of(work, "piece of GPU work", "pieces of GPU work"),
    };
    let mut text =
        format!("gapscope: {found} in {path}; `gapscope report {path}` says what they show\n");
    // Where no work is found, the notes say why, and what to do.
    let found_any = (command_buffers, work) != (0, 0);
    if !found_any {
        imported
            .notes
            .iter()
            .for_each(|note| text.push_str(&format!("{note}\n")));
    }
    // Notes without any work are above.
    for left_out in imported.left_out.iter().filter(|_| found_any) {
        text.push_str(&format!("{left_out}\n"));
    }
    for joined in &imported.joined_files {
        text.push_str(&format!("Joined with {joined}\n"));
    }
    for loss in &imported.losses {
        text.push_str(&format!("Lost: {}: {}.\n", number::loss(loss), loss.reason));
    }
    text
}

impl From<gapscope_import::Error> for Failure {
    fn from(error: gapscope_import::Error) -> Failure {
        Failure::new(without_os_error_numbers(&error.to_string()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trace_is_named_after_the_file() {
        for (file, expected) in [
            ("runs/rank0.1752829956.pt.trace.json.gz", "rank0.1752829956"),
            ("/nowhere/run.sqlite", "run"),
            ("host.xplane.pb", "host"),
            ("step.10", "step.10"),
            (".json", ".json"),
        ] {
            assert_eq!(name(Path::new(file)), expected, "{file}");
        }
    }
}
