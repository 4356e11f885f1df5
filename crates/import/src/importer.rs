//! What an importer is.

use crate::output::{Imported, Output, Progress};
use crate::{Error, IMPORTERS};
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
    /// Makes a trace of files and folders, with one for each rank where they are of several.
    pub read: fn(&[PathBuf], &Options, &mut Output) -> Result<(), Error>,
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

/// Imports the files of whichever tool made them, and writes the trace `output`, which must not exist.
///
/// # Errors
/// No importer recognises an input, or as [`Importer::import`].
pub fn import(
    inputs: &[PathBuf],
    output: &Path,
    options: &Options,
    progress: Progress,
) -> Result<Imported, Error> {
    let importer = IMPORTERS.iter().find(|importer| {
        let mut inputs = inputs.iter();
        inputs.any(|input| (importer.recognises)(input))
    });
    let importer = importer.ok_or_else(|| unrecognised(inputs))?;
    importer.import(inputs, output, options, progress)
}

impl Importer {
    /// Imports files and writes the trace `output`, which must not exist.
    ///
    /// # Errors
    /// A file cannot be read or is something else; the process is not clear; there is nothing to import; the trace
    /// cannot be written. Nothing is left behind.
    pub fn import(
        &self,
        inputs: &[PathBuf],
        output: &Path,
        options: &Options,
        progress: Progress,
    ) -> Result<Imported, Error> {
        let mut output = Output::new(output, progress);
        let result = (self.read)(inputs, options, &mut output);
        output.end(result)
    }
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
