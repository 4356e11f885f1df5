//! Writes a trace while it is recorded.
//!
//! Rows go to Parquet parts, `parts/TABLE-NNNNNN.parquet`, which [`TraceWriter::checkpoint`] closes and
//! [`TraceWriter::finish`] merges into `TABLE.parquet`. A trace whose writer was killed opens as far as its closed
//! parts go, and [`TraceWriter::resume`] continues it. The order of calls: [`TraceWriter::create`], rows into
//! [`TraceWriter::tables_mut`] with [`TraceWriter::flush_full`] after them, now and then [`TraceWriter::checkpoint`],
//! and at the end [`TraceWriter::finish`].

use crate::checksums;
use crate::manifest::{self, Manifest};
use crate::merge::merge;
use crate::part::{self, PartWriter, sync_folder};
use crate::tables::*;
use crate::{Error, Tables, for_each_table, reader};
use gapscope_files::{ContainedPath, create_private_folder};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, HashSet};
use std::io::Write;
use std::path::{Path, PathBuf};

/// The closed parts of an unfinished trace: file names in `parts/` by table, in order.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Parts {
    /// File names by table.
    pub tables: BTreeMap<String, Vec<String>>,
}

/// The writer of one trace.
pub struct TraceWriter {
    folder: PathBuf,
    /// The rows that are not encoded yet.
    tables: Tables,
    /// The writers of all tables' parts, in the order of [`for_each_table`].
    parts: Vec<PartWriter>,
    /// The file names of the sources that are written.
    sources: HashSet<String>,
    /// The bytes of the sources that this writer has written.
    source_bytes: u64,
}

impl std::fmt::Debug for TraceWriter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TraceWriter")
            .field("folder", &self.folder)
            .finish_non_exhaustive()
    }
}

impl TraceWriter {
    /// Rows of a table that [`Self::flush_full`] encodes at once: enough that a batch costs little beside its rows,
    /// few enough that a recording needs little memory.
    pub const BATCH_ROWS: usize = 1 << 13;

    /// Creates the trace `folder`, whose parent must exist.
    ///
    /// # Errors
    /// `folder` exists, its parent does not, or the system refuses.
    pub fn create(folder: &Path) -> Result<TraceWriter, Error> {
        create_private_folder(folder).map_err(Error::not_made(folder))?;
        make_folder(&folder.join(part::PARTS_FOLDER))?;
        make_folder(&folder.join(SOURCES_FOLDER))?;
        TraceWriter::open(folder, &Parts::default())
    }

    /// Continues the unfinished trace `folder` with the parts of its last durable checkpoint. Anything that was
    /// written later is deleted.
    ///
    /// # Errors
    /// The trace is complete, a part is missing, or the system refuses.
    pub fn resume(folder: &Path, parts: &Parts) -> Result<TraceWriter, Error> {
        if reader::read_manifest(folder).is_ok_and(|manifest| manifest.complete) {
            return Err(Error::Complete {
                path: folder.to_owned(),
            });
        }
        let part_folder = ContainedPath::new(folder, part::PARTS_FOLDER);
        let listed: HashSet<&str> = parts
            .tables
            .values()
            .flatten()
            .map(String::as_str)
            .collect();
        for name in listed.iter() {
            let path = part_folder.join(name);
            path.bytes().map_err(Error::read(path.path()))?;
        }
        for name in part_folder
            .names()
            .map_err(Error::read(part_folder.path()))?
        {
            let is_part = name.to_str().is_some_and(|name| {
                let name = name.strip_suffix(part::OPEN_SUFFIX).unwrap_or(name);
                part::part_name(name).is_some()
            });
            if is_part && name.to_str().is_none_or(|name| !listed.contains(name)) {
                let path = part_folder.join(&name);
                path.remove_file().map_err(Error::write(path.path()))?;
            }
        }
        TraceWriter::open(folder, parts)
    }

    /// Makes the writer of an existing folder, which continues after `parts`.
    fn open(folder: &Path, parts: &Parts) -> Result<TraceWriter, Error> {
        let part_folder = ContainedPath::new(folder, part::PARTS_FOLDER);
        let mut writers = Vec::new();
        macro_rules! open_parts {
            ($($field:ident: $table:ty,)+) => {$(
                let name = <$table>::NAME;
                let closed = parts.tables.get(name).cloned().unwrap_or_default();
                writers.push(PartWriter::new(name, part_folder.clone(), <$table>::schema(), closed)?);
            )+};
        }
        for_each_table!(open_parts);
        Ok(TraceWriter {
            folder: folder.to_owned(),
            tables: Tables::default(),
            parts: writers,
            sources: HashSet::new(),
            source_bytes: 0,
        })
    }

    /// Returns the folder of the trace.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Returns the rows that are not encoded yet. Push new ones here, and call [`Self::flush_full`] often.
    pub fn tables_mut(&mut self) -> &mut Tables {
        &mut self.tables
    }

    /// Returns the bytes on disk so far, in parts and sources.
    pub fn bytes_written(&self) -> u64 {
        self.source_bytes + self.parts.iter().map(PartWriter::bytes).sum::<u64>()
    }

    /// Encodes the tables that have [`Self::BATCH_ROWS`] rows waiting. The call is cheap when none has.
    ///
    /// # Errors
    /// The system refuses: the disk may be full. The rows since the last checkpoint of the table that could not be
    /// written are lost; everything else stays.
    pub fn flush_full(&mut self) -> Result<(), Error> {
        match self.tables.have(Self::BATCH_ROWS) {
            true => self.flush(Self::BATCH_ROWS),
            false => Ok(()),
        }
    }

    /// Encodes the rows of tables that have at least `least_rows`.
    fn flush(&mut self, least_rows: usize) -> Result<(), Error> {
        let mut parts = self.parts.iter_mut();
        macro_rules! flush {
            ($($field:ident: $table:ty,)+) => {$(
                let table = &mut self.tables.$field;
                let part = parts.next().expect("every table has its parts");
                if table.len() >= least_rows {
                    let rows = table.to_batch();
                    table.clear();
                    part.write(&rows)?;
                }
            )+};
        }
        for_each_table!(flush);
        Ok(())
    }

    /// Writes all rows and closes the open parts: they are complete and survive a crash of the machine.
    ///
    /// # Errors
    /// See [`Self::flush_full`].
    pub fn checkpoint(&mut self) -> Result<Parts, Error> {
        self.flush(1)?;
        let mut listed = Parts::default();
        for part in &mut self.parts {
            part.close()?;
            if !part.closed().is_empty() {
                let name = part.table().to_owned();
                listed.tables.insert(name, part.closed().to_vec());
            }
        }
        Ok(listed)
    }

    /// Writes `sources/HASH.EXTENSION` unless it exists. It survives the death of this process, but not a crash of
    /// the machine.
    ///
    /// # Errors
    /// The hash is not hexadecimal, the extension is not a word, or the system refuses.
    pub fn add_source(&mut self, hash: &str, extension: &str, bytes: &[u8]) -> Result<(), Error> {
        let name = format!("{hash}.{extension}");
        let is_word = |text: &str, fits: fn(&u8) -> bool| {
            !text.is_empty() && text.len() <= 128 && text.bytes().all(|b| fits(&b))
        };
        if !is_word(hash, u8::is_ascii_hexdigit) || !is_word(extension, u8::is_ascii_alphanumeric) {
            return Err(Error::SourceName { name });
        }
        if self.sources.contains(&name) {
            return Ok(());
        }
        let path = ContainedPath::new(&self.folder, SOURCES_FOLDER).join(&name);
        if !path.exists() {
            let new = path.beside(format!("{name}.new"));
            let written = new.create().and_then(|mut file| file.write_all(bytes));
            written.and_then(|()| new.rename(&path)).map_err(|source| {
                let _ = new.remove_file();
                Error::write(path.path())(source)
            })?;
            self.source_bytes += bytes.len() as u64;
        }
        self.sources.insert(name);
        Ok(())
    }

    /// Writes `trace.json` for an unfinished trace, whatever [`Manifest::complete`] says. A trace opens as soon as it
    /// has a manifest.
    ///
    /// # Errors
    /// The system refuses. An earlier manifest stays.
    pub fn write_manifest(&self, manifest: &Manifest) -> Result<(), Error> {
        self.replace_manifest(manifest, false)
    }

    /// Writes `trace.json` with this value of `complete`, and this version of the format.
    fn replace_manifest(&self, manifest: &Manifest, complete: bool) -> Result<(), Error> {
        let mut manifest = Manifest {
            format_version: manifest::FORMAT_VERSION,
            complete,
            ..manifest.clone()
        };
        manifest.hide_secrets();
        let json = serde_json::to_vec_pretty(&manifest).expect("a manifest's keys are texts");
        let json = checksums::signed_manifest(json);
        let path = ContainedPath::new(&self.folder, manifest::FILE_NAME);
        path.replace(&json).map_err(Error::write(path.path()))?;
        sync_folder(&self.folder)
    }

    /// Completes the trace: all rows, one file for each table, and the manifest.
    ///
    /// # Errors
    /// The system refuses, perhaps because the disk is full. The trace is then unfinished, and opens with all rows up
    /// to the last checkpoint.
    pub fn finish(mut self, manifest: &Manifest) -> Result<(), Error> {
        self.checkpoint()?;
        let mut parts = self.parts.iter();
        macro_rules! merge {
            ($($field:ident: $table:ty,)+) => {$(
                let part = parts.next().expect("every table has its parts");
                let paths = part.closed_paths();
                if !(paths.is_empty() && reader::is_optional(<$table>::NAME)) {
                    merge::<$table>(&self.folder, &paths)?;
                }
            )+};
        }
        for_each_table!(merge);
        self.replace_manifest(manifest, true)?;
        // The parts go last, so that at every moment either the parts or the tables count. The parts of a complete
        // trace are not read, so failing to delete one does no harm.
        let _ = ContainedPath::new(&self.folder, part::PARTS_FOLDER).remove_folder();
        Ok(())
    }
}

/// The folder of the kernels' sources, in that of the trace.
pub const SOURCES_FOLDER: &str = "sources";

fn make_folder(path: &Path) -> Result<(), Error> {
    create_private_folder(path).map_err(Error::write(path))
}
