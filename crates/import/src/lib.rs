//! Imports the files of other profilers as traces.
//!
//! [`import`] recognises by their content which tool made the files, and writes a trace of them. The table
//! [`IMPORTERS`] has an [`Importer`] for each tool; [`xctrace`] reads the exports that Apple's `xctrace export`
//! writes of a Metal System Trace. Files of Nsight Systems and of PyTorch's profiler together are joined as files of one
//! run. A file that is torn, damaged or of another version is imported as far as it can be
//! read: the losses and notes of the trace say what is missing.
#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod counted;
pub mod counters_csv;
mod details;
mod doubtful_times;
pub mod drawn;
mod error;
mod folder;
mod functions;
pub mod ggml;
mod gpu_rows;
mod hints;
mod importer;
mod inventory;
mod joined;
pub mod kineto;
mod line_prefix;
pub mod memory_snapshot;
mod nested;
pub mod nsys;
mod offset;
mod options;
mod output;
pub mod perfetto;
mod profile;
mod protobuf;
mod ranks;
mod rocm;
pub mod rocpd;
pub mod rocprofv3;
pub mod rpd;
mod since_1970;
mod sqlite;
mod stray_devices;
mod transfers;
mod unpacked;
pub mod xctrace;
pub mod xplane;

pub use error::Error;
pub use gpu_rows::GpuRows;
pub use importer::Importer;
pub use options::Options;
pub use output::{Imported, NewTrace, Output, Progress};

use std::path::{Path, PathBuf};

/// The note on files that are read without the trace behind the drawing.
const DRAWING_ALONE: &str = "The file is a drawing of gapscope without the trace behind it: work without times, losses and the accuracy of the trace's clocks are not in it.";

/// The first bytes of a file that gzip made.
pub(crate) const GZIP: [u8; 2] = [0x1f, 0x8b];

/// All importers, in the order in which they are asked whether they recognise the files.
pub const IMPORTERS: &[Importer] = &[
    xctrace::IMPORTER,
    drawn::IMPORTER,
    kineto::IMPORTER,
    nsys::IMPORTER,
    perfetto::IMPORTER,
    rocpd::IMPORTER,
    rpd::IMPORTER,
    rocprofv3::IMPORTER,
    xplane::IMPORTER,
    counters_csv::IMPORTER,
    ggml::IMPORTER,
    memory_snapshot::IMPORTER,
];

/// Imports files with the first importer that recognises one of them, and writes the trace `output`, which must not
/// exist. `progress` is called while files are read.
///
/// # Errors
/// No importer recognises an input, or the importer fails; see [`Importer::import`].
pub fn import(
    inputs: &[PathBuf],
    output: &Path,
    options: &Options,
    progress: Progress,
) -> Result<Imported, Error> {
    inputs.iter().try_for_each(|path| is_file_or_folder(path))?;
    let left_out = folder::left_out(inputs);
    let options = &Options {
        notes: [&*options.notes, &*left_out].concat(),
        ..options.clone()
    };
    let imported = import_files(inputs, output, options, progress)?;
    Ok(Imported {
        left_out,
        ..imported
    })
}

/// Refuses what is neither a file nor a folder: a pipe may never end, and none can be read twice.
fn is_file_or_folder(path: &Path) -> Result<(), Error> {
    // Whoever opens the file says why that fails.
    let Ok(metadata) = std::fs::metadata(path) else {
        return Ok(());
    };
    if metadata.is_file() || metadata.is_dir() {
        return Ok(());
    }
    let source = std::io::Error::other(
        "it is neither a file nor a folder, such as a pipe: write what it holds to a file first",
    );
    Err(Error::read(path)(source))
}

fn import_files(
    inputs: &[PathBuf],
    output: &Path,
    options: &Options,
    progress: Progress,
) -> Result<Imported, Error> {
    if let Some(mixed) = joined::Mixed::list(inputs, options)? {
        return mixed.import(output, options, progress);
    }
    if let Some(importer) = importer_of(inputs) {
        return match of_another(importer, inputs) {
            Some(error) => Err(error),
            None => importer.import(inputs, output, options, progress),
        };
    }
    if let [folder] = inputs
        && folder.is_dir()
        && let Some(nested) = nested::Nested::find(folder)
    {
        let options = Options {
            notes: [&*options.notes, &*nested.notes].concat(),
            ..options.clone()
        };
        return import_files(&nested.files, output, &options, progress);
    }
    let unpacked = unpacked::unpack(inputs)?;
    let inner = unpacked.as_ref().map(|unpacked| &*unpacked.inputs);
    let options = &unpacked::with_unread_ends(options, unpacked.as_ref());
    match inner.and_then(|inner| Some((importer_of(inner)?, inner))) {
        Some((importer, inner)) => importer.import(inner, output, options, progress),
        None => Err(inner
            .and_then(|inner| hint(inner, inputs))
            .unwrap_or_else(|| unrecognised(inputs))),
    }
}

/// Returns the first importer that recognises one of the inputs.
fn importer_of(inputs: &[PathBuf]) -> Option<&'static Importer> {
    IMPORTERS.iter().find(|importer| {
        let mut inputs = inputs.iter();
        inputs.any(|input| (importer.recognises)(input))
    })
}

/// Returns the error that one of the inputs has the format of another importer, and not of the one that reads them.
fn of_another(importer: &Importer, inputs: &[PathBuf]) -> Option<Error> {
    if inputs.len() < 2 {
        return None;
    }
    let (own, others): (Vec<&PathBuf>, Vec<&PathBuf>) = inputs
        .iter()
        .partition(|input| (importer.recognises)(input));
    let (path, other) = others.into_iter().find_map(|input| {
        let other = importer_of(std::slice::from_ref(input))?;
        Some((input, other))
    })?;
    Some(Error::nothing(format!(
        "the files are of different formats, which gapscope does not join: {} is of {}, and {} of {}; import each by itself",
        own.first()?.display(),
        importer.name,
        path.display(),
        other.name,
    )))
}

/// Returns the error that one of the inputs is known and not imported, which says what to do with it. `named` are
/// the inputs as the user knows them.
fn hint(inputs: &[PathBuf], named: &[PathBuf]) -> Option<Error> {
    let mut inputs = inputs.iter().zip(named);
    inputs.find_map(|(input, named)| {
        Some(Error::ToolOnly {
            path: named.clone(),
            form: hints::hint(input)?,
        })
    })
}

/// Returns why no importer takes the inputs: one of them cannot be read, or their format is unknown.
fn unrecognised(inputs: &[PathBuf]) -> Error {
    for path in inputs {
        let readable = match path.is_dir() {
            true => std::fs::read_dir(path).map(drop),
            false => std::fs::File::open(path).map(drop),
        };
        if let Err(source) = readable {
            let path = path.clone();
            return Error::Read { path, source };
        }
    }
    if let Some(error) = hint(inputs, inputs) {
        return error;
    }
    let left_out = folder::left_out(inputs);
    if !left_out.is_empty() {
        return Error::nothing(format!("Nothing can be imported. {}", left_out.join(" ")));
    }
    let reads: Vec<&str> = IMPORTERS.iter().map(|importer| importer.reads).collect();
    Error::Unrecognised {
        path: inputs.first().cloned().unwrap_or_default(),
        reads: reads.join(", "),
    }
}
