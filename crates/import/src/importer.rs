//! Chooses an importer for files and runs it.

use crate::output::{Imported, Output, Progress};
use crate::{Error, IMPORTERS};
use std::path::{Path, PathBuf};

/// An importer, which makes traces of the files of one tool.
#[derive(Debug, Clone, Copy)]
pub struct Importer {
    /// The tool's name.
    pub name: &'static str,
    /// The files that the importer reads, in words for users: `exports of xctrace (…)`.
    pub reads: &'static str,
    /// Tells whether a file or folder is the tool's, by its content where that can be read.
    pub recognises: fn(&Path) -> bool,
    /// Makes a trace of files and folders; files of several ranks become one trace for each rank.
    pub read: fn(&[PathBuf], &Options, &mut Output) -> Result<(), Error>,
}

/// The options of an import.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Options {
    /// The process whose work is imported. By default it is the process that the files name, or the only one.
    pub pid: Option<u32>,
    /// The command of the program. By default it is the command that the files name.
    pub command: Option<Vec<String>>,
    /// Notes of the caller, which every report shows.
    pub notes: Vec<String>,
}

/// Imports files with the importer that recognises them, and writes the trace `output`, which must not exist.
///
/// # Errors
/// No importer recognises an input, or the importer fails; see [`Importer::import`].
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
    /// A file cannot be read or has another format; several processes qualify; there is nothing to import; or the
    /// trace cannot be written. No part of the trace is left on the disk.
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
    let reads: Vec<&str> = IMPORTERS.iter().map(|importer| importer.reads).collect();
    Error::Unrecognised {
        path: inputs.first().cloned().unwrap_or_default(),
        reads: reads.join(", "),
    }
}
