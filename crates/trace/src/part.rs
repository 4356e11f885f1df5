//! Writes the parts of a table during a recording: Parquet files that each hold some of its rows, in order.

use crate::Error;
use crate::checksums::sign;
use crate::encoding::properties;
use arrow_array::RecordBatch;
use arrow_schema::Schema;
use gapscope_files::ContainedPath;
use parquet::arrow::ArrowWriter;
use std::fs::File;
use std::path::Path;
use std::sync::Arc;

/// The folder of the parts, in that of the trace.
pub(crate) const PARTS_FOLDER: &str = "parts";

/// The suffix of a part that is still being written: it has no footer yet, so nobody can read it.
pub(crate) const OPEN_SUFFIX: &str = ".open";

/// Writes the parts of one table, one after the other.
pub(crate) struct PartWriter {
    /// The name of the table.
    table: &'static str,
    folder: ContainedPath,
    schema: Arc<Schema>,
    /// The file names of the completed parts, in order.
    closed: Vec<String>,
    /// The sum of the sizes of the completed parts.
    closed_bytes: u64,
    /// The number in the name of the open part, or of the next one.
    next_number: u32,
    /// The part that is being written; `None` until rows come after the last close.
    open: Option<OpenPart>,
}

/// A part that is being written.
struct OpenPart {
    path: ContainedPath,
    writer: ArrowWriter<File>,
}

impl PartWriter {
    /// Continues after the parts `closed`, which are in `folder`.
    pub fn new(
        table: &'static str,
        folder: ContainedPath,
        schema: Arc<Schema>,
        closed: Vec<String>,
    ) -> Result<PartWriter, Error> {
        let mut part = PartWriter {
            table,
            folder,
            schema,
            closed_bytes: 0,
            next_number: 1,
            closed: Vec::new(),
            open: None,
        };
        for name in closed {
            let path = part.folder.join(&name);
            part.closed_bytes += path.bytes().map_err(Error::read(path.path()))?;
            if let Some((_, number)) = part_name(&name) {
                part.next_number = part.next_number.max(number.saturating_add(1));
            }
            part.closed.push(name);
        }
        Ok(part)
    }

    pub fn table(&self) -> &'static str {
        self.table
    }

    pub fn closed(&self) -> &[String] {
        &self.closed
    }

    pub fn closed_paths(&self) -> Vec<ContainedPath> {
        self.closed.iter().map(|n| self.folder.join(n)).collect()
    }

    /// Returns the size of all parts in bytes, without rows that the open one has not yet written.
    pub fn bytes(&self) -> u64 {
        let open = self.open.as_ref().map_or(0, |o| o.writer.bytes_written());
        self.closed_bytes + open as u64
    }

    /// Appends rows to the open part. When that fails, the open part is deleted and its space is free again.
    pub fn write(&mut self, rows: &RecordBatch) -> Result<(), Error> {
        let mut part = match self.open.take() {
            Some(part) => part,
            None => self.begin()?,
        };
        match part.writer.write(rows) {
            Ok(()) => {
                self.open = Some(part);
                Ok(())
            }
            Err(error) => {
                let _ = part.path.remove_file();
                Err(Error::write_parquet(part.path.path())(error))
            }
        }
    }

    /// Begins a part with the next number.
    fn begin(&self) -> Result<OpenPart, Error> {
        let path = self.folder.join(format!(
            "{}-{:06}.parquet{OPEN_SUFFIX}",
            self.table, self.next_number
        ));
        let file = path.create().map_err(Error::write(path.path()))?;
        let properties = properties(&self.schema);
        let writer = ArrowWriter::try_new(file, self.schema.clone(), Some(properties))
            .map_err(Error::write_parquet(path.path()))?;
        Ok(OpenPart { path, writer })
    }

    /// Completes the open part, if there is one. It then survives a crash of the machine.
    pub fn close(&mut self) -> Result<(), Error> {
        let Some(OpenPart { path, writer }) = self.open.take() else {
            return Ok(());
        };
        let name = format!("{}-{:06}.parquet", self.table, self.next_number);
        let closed = path.beside(&name);
        let done = writer
            .into_inner()
            .map_err(Error::write_parquet(path.path()))
            .and_then(|file| {
                sign(&file).map_err(Error::write_parquet(path.path()))?;
                file.sync_data().map_err(Error::write(path.path()))?;
                path.rename(&closed).map_err(Error::write(closed.path()))?;
                sync_folder(self.folder.path())?;
                file.metadata().map_err(Error::read(closed.path()))
            });
        match done {
            Ok(metadata) => {
                self.closed_bytes += metadata.len();
                self.closed.push(name);
                self.next_number += 1;
                Ok(())
            }
            Err(error) => {
                let _ = path.remove_file();
                Err(error)
            }
        }
    }
}

/// Syncs a folder, so that the names in it survive a crash of the machine.
pub(crate) fn sync_folder(folder: &Path) -> Result<(), Error> {
    File::open(folder)
        .and_then(|folder| folder.sync_all())
        .map_err(Error::write(folder))
}

/// Parses the file name of a closed part into its table and number.
pub(crate) fn part_name(name: &str) -> Option<(&str, u32)> {
    let (table, number) = name.strip_suffix(".parquet")?.rsplit_once('-')?;
    Some((table, number.parse().ok()?))
}
