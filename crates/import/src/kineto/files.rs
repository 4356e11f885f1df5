//! Finds the files of an import and joins the files of several ranks into one trace.

use super::category::Category;
use super::collect::shift_of;
use super::document::{Document, Sink};
use super::event::Event;
use super::facts::TracePart;
use super::import_file::import;
use super::join::rank_prefix;
use super::json;
use super::metadata::Metadata;
use super::preface;
use super::source::{self, Source};
use crate::counted::read_full;
use crate::folder::Folder;
use crate::line_prefix::LinePrefix;
use crate::{Error, Options, Output, ranks};
use gapscope_trace::manifest::Rank;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// The number of bytes at the start of a document in which the events must begin; otherwise the file is not
/// recognised.
const LOOKED_AT: usize = 4 << 20;

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
    /// The time of the first event that has one.
    pub(super) first_ns: Option<i64>,
    /// Whether there is work of a device.
    has_work: bool,
    /// The prefixes of the names of processes, by which a merged file tells ranks apart.
    pub(super) prefixes: BTreeSet<Vec<u8>>,
}

impl Sink for Aside {
    type Error = Error;

    fn event(&mut self, event: &Event) -> Result<(), Error> {
        if self.first_ns.is_none() && event.phase != b'M' {
            self.first_ns = event.start_ns.filter(|ns| *ns != 0);
        }
        let category = Category::parse(event.category);
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
    /// Takes the rank that the user names for a file.
    ///
    /// # Errors
    /// The file says another rank, or holds several.
    fn take_named_rank(&mut self, named: Rank, path: &Path) -> Result<(), Error> {
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

/// Imports the files of several ranks (the processes of a distributed program), each into its own trace. Every file
/// is read twice: first only for its rank and times. Each must have another rank. The user may name the ranks that the
/// files do not say.
pub(super) fn ranks(
    files: &[PathBuf],
    all_bytes: u64,
    options: &Options,
    output: &mut Output,
) -> Result<(), Error> {
    let named = ranks::named(files, options)?;
    let mut asides = Vec::new();
    for (index, path) in files.iter().enumerate() {
        let mut aside = Aside::default();
        Document::new(Source::open(path)?).read(&mut aside)?;
        if let Some(named) = named.as_ref().map(|named| named[index]) {
            aside.take_named_rank(named, path)?;
        }
        asides.push((path.as_path(), aside));
    }
    // The front end of a server has a profile of its own beside those of the ranks, in which no device works.
    let is_beside = |aside: &Aside| aside.metadata.rank.is_none() && !aside.has_work;
    let mut notes = Vec::new();
    let mut has_ranks = asides
        .iter()
        .any(|(_, aside)| aside.metadata.rank.is_some());
    if !has_ranks {
        let with_work = asides.iter_mut().filter(|(_, aside)| aside.has_work);
        let (paths, with_work): (Vec<&Path>, Vec<&mut Aside>) =
            with_work.map(|(path, aside)| (*path, aside)).unzip();
        if let Some(ranks) = ranks::from_names(&paths) {
            for (aside, rank) in with_work.into_iter().zip(ranks) {
                aside.metadata.rank = Some(rank);
            }
            has_ranks = true;
            notes.push("The files do not say their ranks: those in the names of files and folders were taken.".to_owned());
        }
    }
    let mut by_rank: BTreeMap<u32, (&Path, Aside)> = BTreeMap::new();
    for (path, aside) in asides {
        if has_ranks && is_beside(&aside) {
            let file = path.file_name().unwrap_or_default().to_string_lossy();
            notes.push(format!(
                "{file} was left out: it has no rank and no GPU work, as the file of a server's front end. Import it alone to see it."
            ));
            continue;
        }
        let Some(rank) = aside.metadata.rank else {
            return Err(Error::foreign(
                path,
                "a file of one rank, which several files together must be",
                "it has no distributedInfo with rank and world_size; import it alone, or name the ranks of all files with --ranks",
            ));
        };
        if let Some((other, _)) = by_rank.get(&rank.rank) {
            return Err(Error::foreign(
                path,
                "the only file of its rank",
                format!(
                    "{} is of rank {} too; import each window of a rank alone, or give one file for each rank",
                    other.display(),
                    rank.rank
                ),
            ));
        }
        by_rank.insert(rank.rank, (path, aside));
    }
    let new = output.trace()?;
    // The times of all ranks count from one moment.
    let base_ns = (by_rank.values()).find_map(|(_, aside)| aside.metadata.base_ns);
    let first_ns = by_rank.values().find_map(|(_, aside)| aside.first_ns);
    let common_ns = first_ns.map_or(0, shift_of);
    let mut before = 0;
    for (rank, (path, aside)) in &by_rank {
        let from_base_ns = (aside.metadata.base_ns.zip(base_ns))
            .map_or(0, |(own, first)| own.saturating_sub(first));
        let shift_ns = Some(common_ns.saturating_add(from_base_ns));
        let trace = output.rank(*rank)?;
        let part = TracePart {
            bytes: (before, all_bytes),
            shift_ns,
            rank: aside.metadata.rank,
            ..TracePart::default()
        };
        import(path, trace, part, options, output)?;
        before += bytes(path);
    }
    let note = format!(
        "Imported from {} files of PyTorch's profiler (Kineto), one for each rank.",
        by_rank.len()
    );
    notes.insert(0, note);
    if named.is_some() {
        notes.push("The user named the ranks of the files.".to_owned());
    }
    output.finish_ranks(new, by_rank.into_keys().collect(), options, notes)
}
