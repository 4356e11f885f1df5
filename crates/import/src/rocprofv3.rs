//! Imports the JSON that `rocprofv3 --output-format json` writes.
//!
//! The document has an entry for each process. The names of agents (GPUs and CPUs), kernels and functions come
//! before the records, which are read one after the other, so that memory grows with the trace and not with the
//! text. [`crate::rocpd`] reads the same records as SQLite. The records become:
//!
#![doc = include_str!("rocprofv3/table.md")]

mod document;
mod loose;
mod records;
mod tidy;

use crate::output::Output;
use crate::{Error, Importer, Options};
use crate::{counted, rocm};
use document::{Documents, Read as ReadInto};
use gapscope_trace::LossKind;
use rustc_hash::FxHashMap;
use serde::de::DeserializeSeed;
use std::fs::File;
use std::io::{BufReader, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use tidy::Tidy;

/// Imports rocprofv3's JSON.
pub const IMPORTER: Importer = Importer {
    name: "rocprofv3",
    reads: "rocprofv3's JSON (`--output-format json`)",
    recognises,
    read,
    joins_named_ranks: false,
};

/// The name of the only member of the document.
const ROOT: &[u8] = b"\"rocprofiler-sdk-tool\"";

/// The length of a byte order mark, which is no text before the document.
const MARK_BYTES: u64 = 3;

/// How far into a file the document may begin.
const LOOKED_AT: u64 = 1 << 16;

/// Returns whether a file begins with the document's only member.
fn recognises(path: &Path) -> bool {
    beginning(path).is_some()
}

/// Returns the number of bytes before the document, such as lines of a log; `None` where there is no document.
fn beginning(path: &Path) -> Option<u64> {
    if !path.is_file() {
        return None;
    }
    let mut start = Vec::new();
    let mut file = File::open(path).ok()?.take(LOOKED_AT);
    file.read_to_end(&mut start).ok()?;
    let root = memchr::memmem::find(&start, ROOT)?;
    let before = start[..root].trim_ascii_end().strip_suffix(b"{")?;
    let is_mark = before == b"\xef\xbb\xbf" || before.trim_ascii().is_empty();
    let is_text = !before.contains(&0);
    is_text.then_some(match is_mark {
        true => before
            .strip_prefix(b"\xef\xbb\xbf")
            .map_or(0, |_| MARK_BYTES),
        false => before.len() as u64,
    })
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
        let bytes = std::fs::metadata(input).map_or(0, |file| file.len());
        let preface_bytes = beginning(input).unwrap_or(0);
        let mut documents = Documents {
            profile: &mut profile,
            machines: &mut machines,
            pid: options.pid,
            processes: 0,
            late: FxHashMap::default(),
            is_again: false,
        };
        let mut damage = None;
        loop {
            let mut file = File::open(input).map_err(refused)?;
            file.seek(SeekFrom::Start(preface_bytes)).map_err(refused)?;
            let report = |done: u64| output.progress(read + done, all);
            let file = Counted {
                file,
                read: 0,
                report: &report,
            };
            let reader = BufReader::with_capacity(1 << 18, Tidy::new(file));
            let mut json = serde_json::Deserializer::from_reader(reader);
            documents.processes = 0;
            // One document may follow another.
            loop {
                damage = damage.or(ReadInto(&mut documents).deserialize(&mut json).err());
                if damage.is_some() || json.end().is_ok() {
                    break;
                }
            }
            if documents.late.is_empty() || documents.is_again {
                break;
            }
            documents.is_again = true;
        }
        let odd = loose::take_odd();
        let reason = "their type is not the one that rocprofv3 writes";
        profile.inventory.lose("values", odd, reason);
        if preface_bytes > MARK_BYTES {
            let reason = format!("not JSON: the {preface_bytes} bytes before the document");
            (profile.inventory.losses).add(LossKind::FileParts, 1, reason);
        }
        if let Some(error) = damage {
            if !profile.has_rows() {
                return Err(Error::foreign(input, "rocprofv3's JSON", error.to_string()));
            }
            let reason = match error.is_eof() {
                true => counted::ends_in_the_middle(bytes),
                false => format!("the document is damaged: {error}"),
            };
            (profile.inventory.losses).add(LossKind::FileRests, 1, reason);
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
