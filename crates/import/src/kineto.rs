//! Imports Chrome's JSON traces, which PyTorch's profiler (Kineto) and other profilers write.

mod assemble;
mod category;
mod collect;
mod collectives;
mod counters;
mod document;
mod event;
mod facts;
mod files;
mod json;
mod lanes;
mod manifest;
mod metadata;
mod number;
mod numbered;
mod operands;
mod queues;
mod ranges;
mod source;
mod texts;
mod work;
mod xla;

use crate::{Error, Importer, Options, Output};
use assemble::Assembly;
use collect::Collector;
use document::Document;
use source::Source;
use std::path::{Path, PathBuf};

/// Imports Chrome's JSON.
pub const IMPORTER: Importer = Importer {
    name: "kineto",
    reads: "Chrome's JSON of PyTorch's profiler and others (.json, .json.gz)",
    recognises: files::recognises,
    read,
};

fn read(inputs: &[PathBuf], options: &Options, output: &mut Output) -> Result<(), Error> {
    let files = files::list(inputs)?;
    let all = files.iter().map(|path| files::bytes(path)).sum();
    match files.as_slice() {
        [file] => {
            let new = output.trace()?;
            import(file, new, (0, all), None, options, output)
        }
        _ => files::ranks(&files, all, options, output),
    }
}

/// Imports one file into a trace.
fn import(
    path: &Path,
    new: crate::NewTrace,
    bytes: (u64, u64),
    shift_ns: Option<i64>,
    options: &Options,
    output: &mut Output,
) -> Result<(), Error> {
    let source = Source::open(path)?;
    let mut found = Collector::new(output, new, bytes, shift_ns);
    let summary = Document::new(source).read(&mut found)?;
    if let Some(found) = summary.foreign {
        return Err(Error::Foreign {
            path: path.to_owned(),
            wanted: "Chrome's JSON",
            found,
        });
    }
    if summary.events == 0 {
        return Err(Error::NothingRecorded {
            reason: format!("{} holds no events", path.display()),
        });
    }
    let assembly = Assembly::run(&mut found)?;
    let file = path.file_name().unwrap_or_default().to_string_lossy();
    let manifest = manifest::finish(&mut found, &assembly, &summary, &file, options)?;
    let Collector { new, .. } = found;
    new.finish(&manifest, output)
}
