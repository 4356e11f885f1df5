//! The type that every importer of this crate is a value of: the tool's name, the files that are recognised, and
//! the function that reads them.

use crate::output::{Imported, Output, Progress};
use crate::{Error, Options, ranks};
use gapscope_trace::Trace;
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
    /// Makes a trace of files and folders and writes it through the output; files of several ranks become one trace
    /// for each rank.
    pub read: fn(&[PathBuf], &Options, &mut Output) -> Result<(), Error>,
    /// Whether `read` itself gives files the ranks that [`Options::ranks`] names, and puts their times on one clock.
    pub joins_named_ranks: bool,
}

impl Importer {
    /// Imports files and writes the trace `output`, which must not exist. `progress` is called while files are read.
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
        let result = self.read_into(inputs, options, &mut output);
        output.end(result)
    }

    /// Imports files as traces in memory: those of ranks in their order, and then the one without a rank. A trace that
    /// is embedded in a file is unpacked in `folder`, which is removed.
    ///
    /// # Errors
    /// See [`Self::import`].
    pub fn traces(
        &self,
        inputs: &[PathBuf],
        folder: &Path,
        options: &Options,
    ) -> Result<Vec<Trace>, Error> {
        let mut output = Output::in_memory(folder);
        let result = self.read_into(inputs, options, &mut output);
        output.into_traces(result)
    }

    fn read_into(
        &self,
        inputs: &[PathBuf],
        options: &Options,
        output: &mut Output,
    ) -> Result<(), Error> {
        match options.ranks.is_empty() || self.joins_named_ranks {
            true => (self.read)(inputs, options, output),
            false => ranks::import_each(self.read, inputs, options, output),
        }
    }
}
