//! What an importer is.

use crate::{Error, IMPORTERS};
use gapscope_trace::tables::Tables;
use gapscope_trace::{Loss, Trace, TraceWriter};
use std::path::{Path, PathBuf};

/// Makes traces of the files of one tool.
#[derive(Debug, Clone, Copy)]
pub struct Importer {
    /// The tool's name.
    pub name: &'static str,
    /// What it reads, for people: `exports of xctrace (…)`.
    pub reads: &'static str,
    /// Whether a file or folder looks like one of the tool's, by its content where it can be read.
    pub recognises: fn(&Path) -> bool,
    /// Makes one trace of files and folders.
    pub read: fn(&[PathBuf], &Options) -> Result<Trace, Error>,
}

/// How to import.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Options {
    /// The process whose work is imported; otherwise the one that the files name, or the only one.
    pub pid: Option<u32>,
    /// The command as it was given; otherwise what the files say.
    pub command: Option<Vec<String>>,
    /// Sentences for every report, of whoever made the files.
    pub notes: Vec<String>,
}

/// What an import gave.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Imported {
    /// The folder of the trace.
    pub output: PathBuf,
    /// Command buffers in the trace.
    pub command_buffers: u64,
    /// Pieces of GPU work with times.
    pub timed_work: u64,
    /// What is missing.
    pub losses: Vec<Loss>,
    /// Sentences for every report.
    pub notes: Vec<String>,
}

/// Imports the files of whichever tool made them, and writes the trace `output`, which must not exist.
///
/// # Errors
/// No importer recognises an input, or as [`Importer::import`].
pub fn import(inputs: &[PathBuf], output: &Path, options: &Options) -> Result<Imported, Error> {
    let importer = IMPORTERS.iter().find(|importer| {
        let mut inputs = inputs.iter();
        inputs.any(|input| (importer.recognises)(input))
    });
    let importer = importer.ok_or_else(|| unrecognised(inputs))?;
    importer.import(inputs, output, options)
}

impl Importer {
    /// Imports files and writes the trace `output`, which must not exist.
    ///
    /// # Errors
    /// A file cannot be read or is something else; the process is not clear; there is nothing to import; the trace
    /// cannot be written. Nothing is left behind unless writing failed halfway.
    pub fn import(
        &self,
        inputs: &[PathBuf],
        output: &Path,
        options: &Options,
    ) -> Result<Imported, Error> {
        let trace = (self.read)(inputs, options)?;
        let imported = Imported {
            output: output.to_owned(),
            command_buffers: trace.tables.command_buffers.id.len() as u64,
            timed_work: timed_work(&trace.tables),
            losses: trace.manifest.losses.clone(),
            notes: trace.manifest.notes.clone(),
        };
        let mut writer = TraceWriter::create(output)?;
        *writer.tables_mut() = trace.tables;
        writer.finish(&trace.manifest)?;
        Ok(imported)
    }
}

fn timed_work(tables: &Tables) -> u64 {
    let starts = [
        &tables.dispatches.start_ns,
        &tables.transfers.start_ns,
        &tables.opaque_work.start_ns,
    ];
    starts.into_iter().flatten().flatten().count() as u64
}

/// Why no importer takes the inputs: one cannot be read, or all are something else.
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
    let reads: Vec<&str> = IMPORTERS.iter().map(|importer| importer.reads).collect();
    Error::Unrecognised {
        path: inputs.first().cloned().unwrap_or_default(),
        reads: reads.join(", "),
    }
}
