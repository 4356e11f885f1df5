//! Merges the parts of a table (the files that a recording wrote, each with some of the rows) into its file. The rows
//! keep their order.

use crate::Error;
use crate::checksums::{CheckedFile, sign};
use crate::column::Texts;
use crate::damage::Damage;
use crate::encoding::properties;
use crate::table_file::{ReadError, TableFile};
use crate::tables::Table;
use gapscope_files::ContainedPath;
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_reader::ArrowReaderMetadata;
use parquet::arrow::arrow_writer::{ArrowRowGroupWriterFactory, compute_leaves};
use parquet::column::writer::ColumnCloseResult;
use parquet::errors::ParquetError;
use parquet::file::writer::SerializedFileWriter;
use std::fs::File;
use std::path::Path;

/// The most rows that are decoded before they are encoded together. A long recording has many small parts, and memory
/// is bounded.
const PENDING_ROWS: usize = 1 << 17;

/// Row groups from this size on are copied as they are: encoding them again would take time and save little.
const LARGE_ROWS: i64 = 1 << 14;

/// Writes the file of table `T` in `folder` from `parts`, which stay. A single part becomes the file as it is. An
/// earlier file is replaced.
pub(crate) fn merge<T: Table>(folder: &Path, parts: &[ContainedPath]) -> Result<(), Error> {
    let path = ContainedPath::new(folder, format!("{}.parquet", T::NAME));
    let new = path.beside(format!("{}.parquet.new", T::NAME));
    let _ = new.remove_file();
    let merged = match parts {
        // A hard link takes no time and no space. Some file systems have none.
        [only] if only.link(&new).is_ok() => Ok(()),
        parts => Merge::<T>::begin(&new).and_then(|merge| merge.run(parts)),
    };
    let renamed = merged.and_then(|()| new.rename(&path).map_err(Error::write(path.path())));
    if renamed.is_err() {
        let _ = new.remove_file();
    }
    renamed
}

/// A merge that is under way.
struct Merge<T> {
    /// The file that is being written.
    path: ContainedPath,
    /// The writer of that file.
    writer: SerializedFileWriter<File>,
    /// Makes the encoders of a row group's columns.
    factory: ArrowRowGroupWriterFactory,
    /// Rows of small row groups, to be encoded together.
    pending: T,
    /// The distinct texts of the pending rows.
    texts: Texts,
}

impl<T: Table> Merge<T> {
    /// Creates the file.
    fn begin(path: &ContainedPath) -> Result<Merge<T>, Error> {
        let file = path.create_new().map_err(Error::write(path.path()))?;
        let schema = T::schema();
        let properties = properties(&schema);
        let (writer, factory) = ArrowWriter::try_new(file, schema, Some(properties))
            .and_then(ArrowWriter::into_serialized_writer)
            .map_err(Error::write_parquet(path.path()))?;
        Ok(Merge {
            path: path.clone(),
            writer,
            factory,
            pending: T::default(),
            texts: Texts::default(),
        })
    }

    /// Adds all parts, and writes the end of the file with its checksums.
    fn run(mut self, parts: &[ContainedPath]) -> Result<(), Error> {
        for part in parts {
            self.add(part)?;
        }
        self.write_pending()?;
        let path = self.path;
        let file = self.writer.into_inner();
        let file = file.map_err(Error::write_parquet(path.path()))?;
        sign(&file).map_err(Error::write_parquet(path.path()))?;
        file.sync_data().map_err(Error::write(path.path()))
    }

    /// Adds a part, of which small row groups become pending and large ones are copied.
    fn add(&mut self, part: &ContainedPath) -> Result<(), Error> {
        let damaged = Error::damaged_part(part.path());
        let table = TableFile::open(part, T::NAME, T::schema()).map_err(&damaged)?;
        let file = table.file().map_err(Error::read(part.path()))?;
        let metadata = table.metadata();
        // A recording of an earlier gapscope that this one recovers may have had other columns.
        let same_columns =
            metadata.parquet_schema().columns() == self.writer.schema_descr().columns();
        let groups = metadata.metadata().row_groups();
        for (index, group) in groups.iter().enumerate() {
            if same_columns && group.num_rows() >= LARGE_ROWS {
                self.write_pending()?;
                self.copy(&file, metadata, index)
                    .map_err(|error| match file.take_damage() {
                        Some(damage) => damaged(damage),
                        None => Error::write_parquet(self.path.path())(error),
                    })?;
            } else {
                self.decode(&table, index)?;
            }
        }
        Ok(())
    }

    /// Copies a row group with its encoded bytes.
    fn copy(
        &mut self,
        file: &CheckedFile,
        metadata: &ArrowReaderMetadata,
        index: usize,
    ) -> Result<(), ParquetError> {
        let group = metadata.metadata().row_group(index);
        let mut out = self.writer.next_row_group()?;
        for column in group.columns() {
            let close = ColumnCloseResult {
                bytes_written: column.compressed_size() as u64,
                rows_written: group.num_rows() as u64,
                metadata: column.clone(),
                bloom_filter: None,
                column_index: None,
                offset_index: None,
            };
            out.append_column(file, close)?;
        }
        out.close()?;
        Ok(())
    }

    /// Adds the rows of a row group to the pending rows, which are written whenever they are many.
    fn decode(&mut self, table: &TableFile, row_group: usize) -> Result<(), Error> {
        let damaged = Error::damaged_part(table.path());
        let batches = table.read(T::COLUMNS, Some(row_group), PENDING_ROWS);
        for batch in batches.map_err(&damaged)? {
            let batch = batch.map_err(|error| match error {
                ReadError::Damaged(damage) => damaged(damage),
                ReadError::Memory => Error::memory(table.path()),
            })?;
            let appended = self.pending.append_batch(&batch, &mut self.texts);
            appended.map_err(|column| damaged(Damage::Column { column }))?;
            if self.pending.len() >= PENDING_ROWS {
                self.write_pending()?;
            }
        }
        Ok(())
    }

    /// Writes the pending rows as one row group, unless there are none.
    fn write_pending(&mut self) -> Result<(), Error> {
        if self.pending.is_empty() {
            return Ok(());
        }
        let rows = self.pending.to_batch();
        self.pending.clear();
        self.texts = Texts::default();
        let mut write = || {
            let group = self.writer.flushed_row_groups().len();
            let columns = self.factory.create_column_writers(group)?;
            let schema = T::schema();
            let mut out = self.writer.next_row_group()?;
            let fields = schema.fields().iter().zip(rows.columns());
            for (mut column, (field, values)) in columns.into_iter().zip(fields) {
                for leaf in compute_leaves(field, values)? {
                    column.write(&leaf)?;
                }
                column.close()?.append_to_row_group(&mut out)?;
            }
            out.close().map(|_| ())
        };
        write().map_err(Error::write_parquet(self.path.path()))
    }
}
