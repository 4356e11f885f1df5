//! Imports Chrome's JSON traces, which PyTorch's profiler (Kineto) and other profilers write.
//!
//! A document is a list of events: ranges of host threads, calls of CUDA or HIP, work of devices, and values of
//! counters. `document` reads the events of a file and passes them to `collect`, which sorts them by kind; `assemble`
//! then joins calls with the work that they launched, `manifest` adds what is not an event, and `Profile`, which
//! keeps calls, work and labels until then, writes the rows of the trace. `import_file` calls them in this order.

mod assemble;
mod autograd;
mod category;
mod collect;
mod collectives;
mod counters;
mod described_calls;
mod document;
mod documents;
mod event;
mod facts;
mod files;
mod import_file;
mod join;
mod join_shared;
pub(crate) mod joined;
mod json;
mod lanes;
mod log;
mod manifest;
mod merged;
mod metadata;
mod number;
mod operands;
mod preface;
mod producers;
mod producers_work;
mod ranges;
mod scopes;
mod several_files;
mod shared_devices;
mod source;
mod streams;
mod work;
mod xla;

use crate::{Error, Importer, Options, Output};
use facts::{DocumentChoice, TracePart};
use import_file::{Attempt, import};
use std::path::{Path, PathBuf};

/// Imports Chrome's JSON.
pub const IMPORTER: Importer = Importer {
    name: "kineto",
    reads: "Chrome's JSON of PyTorch's profiler and others (.json, .json.gz)",
    recognises: files::recognises,
    read,
    joins_named_ranks: true,
};

/// Imports one file into one trace, or several files as those of the ranks of one program.
fn read(inputs: &[PathBuf], options: &Options, output: &mut Output) -> Result<(), Error> {
    let (files, notes) = files::list(inputs)?;
    let options = &Options {
        notes: [&*options.notes, &*notes].concat(),
        ..options.clone()
    };
    let all = files.iter().map(|path| files::bytes(path)).sum();
    match files.as_slice() {
        _ if !options.ranks.is_empty() => several_files::import_all(&files, all, options, output),
        [file] if merged::is_merged(file) => merged::ranks(file, all, options, output),
        [file] => import_alone(file, all, options, output),
        _ => several_files::import_all(&files, all, options, output),
    }
}

/// Imports one file. Most files are read once: those that turn out to have several documents, or to name their devices
/// behind their events, or to begin with a time of another clock, are read again.
fn import_alone(
    file: &Path,
    all_bytes: u64,
    options: &Options,
    output: &mut Output,
) -> Result<(), Error> {
    let mut names = None;
    let mut shift_ns = None;
    loop {
        let part = TracePart {
            documents: DocumentChoice::Only,
            names: names.as_ref(),
            shift_ns,
            ..TracePart::whole((0, all_bytes))
        };
        let new = output.trace()?;
        let attempt = import(file, new, part, options, output)?;
        if matches!(attempt, Attempt::Whole) {
            return Ok(());
        }
        output.withdraw();
        // Each of these is found once, because it is known in the next attempt.
        match attempt {
            Attempt::Whole => return Ok(()),
            Attempt::SeveralDocuments => {
                return documents::import_each(file, all_bytes, options, output);
            }
            Attempt::LateNames(late) => names = Some(late),
            Attempt::OtherClock(other_ns) => shift_ns = Some(other_ns),
        }
    }
}
