//! Imports the JSON that `rocprofv3 --output-format json` writes.
//!
//! The document has an entry for each process. The names of agents (GPUs and CPUs), kernels and functions come
//! before the records, which are read one after the other, so that memory grows with the trace and not with the
//! text. [`crate::rocpd`] reads the same records as SQLite. The records become:
//!
#![doc = include_str!("rocprofv3/table.md")]

mod document;
mod records;

use crate::output::Output;
use crate::rocm;
use crate::{Error, Importer, Options};
use document::{Documents, Read as ReadInto};
use serde::de::DeserializeSeed;
use std::fs::File;
use std::io::{BufReader, Read};
use std::path::{Path, PathBuf};

/// Imports rocprofv3's JSON.
pub const IMPORTER: Importer = Importer {
    name: "rocprofv3",
    reads: "rocprofv3's JSON (`--output-format json`)",
    recognises,
    read,
    joins_named_ranks: false,
};

/// The name of the only member of the document.
const ROOT: &str = "\"rocprofiler-sdk-tool\"";

/// Returns whether a file begins with the document's only member.
fn recognises(path: &Path) -> bool {
    let mut start = Vec::new();
    let read = match path.is_file() {
        true => File::open(path).and_then(|file| file.take(256).read_to_end(&mut start)),
        false => return false,
    };
    let text = String::from_utf8_lossy(&start);
    read.is_ok()
        && text
            .trim_start()
            .strip_prefix('{')
            .is_some_and(|rest| rest.trim_start().starts_with(ROOT))
}

/// Reads the processes of all files into one trace. What a damaged document has before the damage is imported.
fn read(inputs: &[PathBuf], options: &Options, output: &mut Output) -> Result<(), Error> {
    let mut profile = rocm::profile();
    let sizes = inputs
        .iter()
        .map(|input| std::fs::metadata(input).map_or(0, |file| file.len()));
    let (all, mut read) = (sizes.sum::<u64>(), 0);
    let mut machines = Vec::new();
    for input in inputs {
        let refused = Error::read(input);
        let file = File::open(input).map_err(refused)?;
        let bytes = file.metadata().map_or(0, |file| file.len());
        let report = |done: u64| output.progress(read + done, all);
        let reader = BufReader::with_capacity(
            1 << 18,
            Counted {
                file,
                read: 0,
                report: &report,
            },
        );
        let mut json = serde_json::Deserializer::from_reader(reader);
        let mut documents = Documents {
            profile: &mut profile,
            machines: &mut machines,
            pid: options.pid,
        };
        if let Err(error) = ReadInto(&mut documents).deserialize(&mut json) {
            if !profile.has_rows() {
                return Err(Error::foreign(input, "rocprofv3's JSON", error.to_string()));
            }
            let reason = format!("the document ends or is damaged: {error}");
            (profile.inventory.losses).add("ends of documents".into(), 1, reason);
        }
        read += bytes;
    }
    rocm::write(profile, machines, "file", options, output)
}

/// A file that reports how far it was read: `report` is called after each read, with the bytes so far.
struct Counted<'a> {
    file: File,
    read: u64,
    report: &'a dyn Fn(u64),
}

impl Read for Counted<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let bytes = self.file.read(buffer)?;
        self.read += bytes as u64;
        (self.report)(self.read);
        Ok(bytes)
    }
}
