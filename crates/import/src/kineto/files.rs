//! Finds the files of an import, and reads what must be known of a file before it is imported.

use super::category::Category;
use super::document::Sink;
use super::event::Event;
use super::join::rank_prefix;
use super::json;
use super::metadata::Metadata;
use super::preface;
use super::source::{self, Source};
use crate::Error;
use crate::counted::read_full;
use crate::folder::Folder;
use crate::line_prefix::LinePrefix;
use crate::since_1970::Times;
use gapscope_trace::manifest::Rank;
use std::collections::BTreeSet;
use std::ops::Range;
use std::path::{Path, PathBuf};

/// The number of bytes at the start of a document in which the events must begin; otherwise the file is not
/// recognised.
const LOOKED_AT: usize = 4 << 20;

/// The maximum number of processes with calls that are kept of a file.
const MAX_CALLERS: usize = 64;

/// Returns true if a file is Chrome's JSON, or if a folder holds such a file.
pub(super) fn recognises(path: &Path) -> bool {
    match path.is_dir() {
        true => json_files(path)
            .files
            .iter()
            .take(16)
            .any(|path| is_document(path)),
        false => is_document(path),
    }
}

/// Returns the files of a folder whose names end like those of Chrome's JSON.
fn json_files(folder: &Path) -> Folder {
    Folder::list(folder, |name| {
        name.ends_with(".json") || name.ends_with(".json.gz")
    })
}

/// Returns whether the start of a file looks like a document: an array whose first element is an object, with `"ph"`
/// near it, or an object with `traceEvents`.
fn is_document(path: &Path) -> bool {
    let Ok(mut file) = source::open(path) else {
        return false;
    };
    let mut bytes = vec![0; 1 << 12];
    // The bytes before a read error may suffice.
    let mut filled = fill(&mut *file, &mut bytes, 0);
    let from = match bytes[..filled].starts_with(b"\xef\xbb\xbf") {
        true => 3,
        false => 0,
    };
    let at = json::skip_space(&bytes[..filled], from);
    let has = |key: &[u8]| memchr::memmem::find(&bytes[..filled], key).is_some();
    match bytes[..filled].get(at) {
        Some(b'[') if preface::bytes(&bytes[at..filled]) == Some(0) => {
            let inside = json::skip_space(&bytes[..filled], at + 1);
            bytes[..filled].get(inside) == Some(&b'{')
                && (has(b"\"ph\"") || has(b"\"traceEvents\""))
        }
        Some(b'{') => loop {
            let start = &bytes[at..filled];
            if memchr::memmem::find(start, b"\"traceEvents\"").is_some()
                || preface::has_event_line(&start[..start.len().min(preface::LOOKED_AT)])
            {
                return true;
            }
            if filled < bytes.len() || filled >= LOOKED_AT {
                return false;
            }
            bytes.resize(filled * 4, 0);
            filled = fill(&mut *file, &mut bytes, filled);
        },
        // Text may stand in front, such as lines of a log.
        Some(_) => {
            bytes.resize(preface::LOOKED_AT, 0);
            filled = fill(&mut *file, &mut bytes, filled);
            preface::bytes(&bytes[at..filled]).is_some()
                && LinePrefix::find(&bytes[..filled]).is_none()
        }
        None => false,
    }
}

/// Reads into `bytes` from `filled` on, and returns how many are filled when they are full or the file ends.
pub(super) fn fill(file: &mut dyn std::io::Read, bytes: &mut [u8], mut filled: usize) -> usize {
    while filled < bytes.len() {
        match read_full(file, &mut bytes[filled..][..1]) {
            Ok(1) => filled += 1,
            _ => break,
        }
        filled += read_full(file, &mut bytes[filled..]).unwrap_or(0);
    }
    filled
}

/// Returns the files of the inputs, with notes on what is left out. A folder stands for all its files of JSON that are
/// documents of events.
pub(super) fn list(inputs: &[PathBuf]) -> Result<(Vec<PathBuf>, Vec<String>), Error> {
    let (mut files, mut notes) = (Vec::new(), Vec::new());
    for input in inputs {
        if !input.is_dir() {
            files.push(input.clone());
            continue;
        }
        let found = json_files(input).files;
        if found.is_empty() {
            return Err(Error::NoFiles {
                path: input.clone(),
                wanted: "files of Chrome's JSON (.json, .json.gz)",
            });
        }
        let (documents, others): (Vec<_>, Vec<_>) =
            found.into_iter().partition(|path| is_document(path));
        if let Some(other) = others.first().filter(|_| !documents.is_empty()) {
            let name = other.file_name().unwrap_or_default().to_string_lossy();
            notes.push(match others.len() - 1 {
                0 => format!("{name} was left out: it has no list of events."),
                more => {
                    format!("{name} and {more} more were left out: they have no list of events.")
                }
            });
        }
        files.extend(if documents.is_empty() {
            others
        } else {
            documents
        });
    }
    Ok((files, notes))
}

/// Returns the size of a file, or 0 if it is unknown.
pub(super) fn bytes(path: &Path) -> u64 {
    std::fs::metadata(path).map_or(0, |facts| facts.len())
}

/// The facts of a document that are read before it is imported.
#[derive(Default)]
pub(super) struct Aside {
    pub(super) metadata: Metadata,
    /// The times of events, by the file's clock.
    pub(super) times: Times,
    /// The processes that made calls, as far as they are few.
    callers: BTreeSet<Box<[u8]>>,
    /// Whether there is work of a device.
    pub(super) has_work: bool,
    /// The prefixes of the names of processes, by which a merged file tells ranks apart.
    pub(super) prefixes: BTreeSet<Vec<u8>>,
}

impl Sink for Aside {
    type Error = Error;

    fn event(&mut self, event: &Event) -> Result<(), Error> {
        if event.phase != b'M'
            && let Some(start_ns) = event.start_ns
        {
            self.times.add(start_ns, event.end_ns().unwrap_or(start_ns));
        }
        let category = Category::parse(event.category);
        if category == Category::Call
            && self.callers.len() < MAX_CALLERS
            && !self.callers.contains(event.pid)
        {
            self.callers.insert(event.pid.into());
        }
        self.has_work |= matches!(category, Category::Kernel | Category::Copy | Category::Fill);
        if let Some(prefix) = rank_prefix(event.pid)
            && !self.prefixes.contains(prefix)
        {
            self.prefixes.insert(prefix.to_vec());
        }
        Ok(())
    }

    fn member(&mut self, key: &[u8], value: &[u8]) -> Result<(), Error> {
        self.metadata.member(key, value);
        Ok(())
    }

    fn progress(&mut self, _: &Source) -> Result<(), Error> {
        Ok(())
    }
}

impl Aside {
    /// Returns the times since the moment from which the file's clock counts, where the file says it.
    pub(super) fn unix_span_ns(&self) -> Option<Range<i64>> {
        let base_ns = self.metadata.base_ns.unwrap_or(0);
        let span_ns = self.times.span_ns()?;
        Some(span_ns.start.saturating_add(base_ns)..span_ns.end.saturating_add(base_ns))
    }

    pub(super) fn has_callers(&self) -> bool {
        !self.callers.is_empty()
    }

    /// Returns whether a process may have made calls in both files.
    pub(super) fn has_same_callers(&self, other: &Aside) -> bool {
        let are_known = self.has_callers() && other.has_callers();
        !are_known || !self.callers.is_disjoint(&other.callers)
    }

    /// Takes the rank that the user names for a file.
    ///
    /// # Errors
    /// The file says another rank, or holds several.
    pub(super) fn take_named_rank(&mut self, named: Rank, path: &Path) -> Result<(), Error> {
        let wanted = "a file of the rank that was named for it";
        if self.prefixes.len() > 1 {
            let count = self.prefixes.len();
            let text = format!("it holds {count} ranks, which it names itself");
            return Err(Error::foreign(path, wanted, text));
        }
        match self.metadata.rank {
            Some(own) if own.rank != named.rank => {
                let text = format!("it says that it is of rank {}", own.rank);
                Err(Error::foreign(path, wanted, text))
            }
            Some(_) => Ok(()),
            None => {
                self.metadata.rank = Some(named);
                Ok(())
            }
        }
    }
}
