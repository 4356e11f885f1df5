//! Opens, checks and projects the Parquet file of one table, for the reader, for merging parts and for SQL.

use crate::checksums::{ALTERED, CheckedFile, Checksums, Refused, footer_of};
use crate::panics::guarded;
use crate::versions::{self, Computed, Earlier};
use crate::{files, lookup, memory, pages, thrift, widening};
use arrow_array::{ArrayRef, RecordBatch, RecordBatchOptions};
use arrow_schema::{DataType, Field, FieldRef, Schema};
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::statistics::StatisticsConverter;
use parquet::arrow::arrow_reader::{
    ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReader,
    ParquetRecordBatchReaderBuilder,
};
use parquet::basic::{Compression, CompressionCodec};
use parquet::file::metadata::{PageIndexPolicy, ParquetMetaData, ParquetMetaDataReader};
use std::fs::File;
use std::io::{self, ErrorKind, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A file whose footer was read and makes sense.
#[derive(Debug, Clone)]
pub struct TableFile {
    path: PathBuf,
    table: &'static str,
    metadata: ArrowReaderMetadata,
    /// The wanted types of the columns.
    wanted: Arc<Schema>,
    rows: usize,
    checksums: Option<Arc<Checksums>>,
}

/// The most rows that a table can have: row numbers have 32 bits.
pub const MOST_ROWS: usize = lookup::NONE as usize - 1;

/// Decoded bytes after which the memory limit is checked.
const LOOK_BYTES: usize = 4 << 20;

/// Why columns cannot be read further.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReadError {
    /// The file is damaged, for this reason.
    Damaged(String),
    /// This process holds more memory than allowed ([`memory::limit`]).
    Memory,
}

/// Why a file cannot be opened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OpenError {
    /// There is no such file.
    Missing,
    /// The file is damaged, or may not be read.
    Unreadable(String),
}

impl TableFile {
    /// Reads the footer of `path`, the file of `table`. Texts are returned in the type that `wanted` gives them;
    /// columns that are not in `wanted` cannot be read.
    ///
    /// # Errors
    /// There is no such file, or its footer is damaged.
    pub fn open(
        path: &Path,
        table: &'static str,
        wanted: Arc<Schema>,
    ) -> Result<TableFile, OpenError> {
        let file = files::open(path).map_err(|e| match e.kind() {
            ErrorKind::NotFound => OpenError::Missing,
            _ => OpenError::Unreadable(e.to_string()),
        })?;
        let footer = guarded(|| footer(&file, &wanted)).map_err(OpenError::Unreadable)?;
        let (metadata, rows, checksums) = footer;
        Ok(TableFile {
            path: path.to_owned(),
            table,
            metadata,
            wanted,
            rows,
            checksums: checksums.map(Arc::new),
        })
    }

    /// Returns the path of the file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the metadata of the footer.
    pub fn metadata(&self) -> &ArrowReaderMetadata {
        &self.metadata
    }

    /// Opens the file for verified reading.
    pub(crate) fn file(&self) -> io::Result<CheckedFile> {
        CheckedFile::open(&self.path, self.checksums.clone())
    }

    /// Returns the number of rows.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Returns the number of row groups.
    pub fn row_groups(&self) -> usize {
        self.metadata.metadata().num_row_groups()
    }

    /// Returns the rows of a row group.
    ///
    /// # Panics
    /// There is no such row group.
    pub fn rows_of(&self, row_group: usize) -> usize {
        let rows = self.metadata.metadata().row_group(row_group).num_rows();
        usize::try_from(rows).unwrap_or(0)
    }

    /// Returns true when the file holds a column, or its predecessor from an earlier version of the format.
    pub fn has(&self, column: &str) -> bool {
        self.origin(column).is_some()
    }

    fn origin(&self, column: &str) -> Option<Origin> {
        let held = |name: &str| {
            let (_, field) = self.metadata.schema().fields().find(name)?;
            Some(Origin::Column(field.clone()))
        };
        held(column).or_else(|| match versions::earlier(self.table, column)? {
            Earlier::Named(name) => held(name),
            Earlier::Columns(computed) => {
                held(versions::ONLY_COLUMN).map(|_| Origin::Computed(computed))
            }
        })
    }

    /// Returns the type in which the file holds a column, where its values cannot be converted to the wanted type.
    pub fn foreign_type(&self, column: &str) -> Option<DataType> {
        let wanted = self.wanted.field_with_name(column).ok()?.data_type();
        let held = self.metadata.schema();
        let found = match self.origin(column)? {
            Origin::Column(field) => vec![field],
            // The source columns of version 1 had the type of the column that is computed from them.
            Origin::Computed(computed) => {
                let from = computed.from.iter();
                from.filter_map(|name| Some(held.fields().find(name)?.1.clone()))
                    .collect()
            }
        };
        let mut found = found.iter().map(|field| field.data_type());
        found
            .find(|found| !widening::is_read_as(found, wanted))
            .cloned()
    }

    /// Returns a statistic of the footer about a column in a row group, as an array of one value; `None` where the
    /// footer has none that is valid for the converted values.
    pub fn statistic(
        &self,
        column: &str,
        row_group: usize,
        statistic: Statistic,
    ) -> Option<ArrayRef> {
        let Origin::Column(field) = self.origin(column)? else {
            return None;
        };
        if statistic == Statistic::Absent && versions::is_absent_as_0(self.table, column) {
            return None;
        }
        let wanted = self.wanted.field_with_name(column).ok()?.data_type();
        if !widening::keeps_statistics(field.data_type(), wanted) {
            return None;
        }
        let converter = StatisticsConverter::try_new(
            field.name(),
            self.metadata.schema(),
            self.metadata.parquet_schema(),
        );
        let group = [self.metadata.metadata().row_groups().get(row_group)?];
        guarded(|| {
            let converter = converter.map_err(|e| e.to_string())?;
            let found = match statistic {
                Statistic::Least => converter.row_group_mins(group),
                Statistic::Greatest => converter.row_group_maxes(group),
                Statistic::Absent => {
                    let counts = converter.row_group_null_counts(group);
                    return counts
                        .map(|counts| Arc::new(counts) as ArrayRef)
                        .map_err(|e| e.to_string());
                }
            };
            found
                .map_err(|e| e.to_string())
                .and_then(|found| widening::read_as(&found, wanted))
        })
        .ok()
    }

    /// Reads those columns that the file has, batch by batch, of one row group or of all.
    ///
    /// # Errors
    /// The file can no longer be read, or its footer turns out to be wrong.
    pub fn read(
        &self,
        columns: &[&str],
        row_group: Option<usize>,
        batch_rows: usize,
    ) -> Result<Batches, String> {
        let mut held = Vec::new();
        let mut given = Vec::new();
        for column in columns {
            let Some(origin) = self.origin(column) else {
                continue;
            };
            let wanted = (self.wanted.field_with_name(column)).map_err(|e| e.to_string())?;
            let data_type = match &origin {
                Origin::Column(field) => {
                    held.push(field.name().clone());
                    match widening::is_read_as(field.data_type(), wanted.data_type()) {
                        true => wanted.data_type(),
                        false => field.data_type(),
                    }
                }
                Origin::Computed(computed) => {
                    held.extend(computed.from.iter().map(|name| (*name).to_owned()));
                    wanted.data_type()
                }
            };
            given.push(Given {
                field: Arc::new(Field::new(*column, data_type.clone(), true)),
                absent_as_0: versions::is_absent_as_0(self.table, column),
                origin,
            });
        }
        let fields = self.metadata.schema().fields().iter().enumerate();
        let places = fields.filter(|(_, field)| held.contains(field.name()));
        let mask = ProjectionMask::roots(
            self.metadata.parquet_schema(),
            places.map(|(place, _)| place).collect::<Vec<_>>(),
        );
        let file = self.file().map_err(|e| e.to_string())?;
        let refused = guarded(|| Ok(self.refused_pages(&file, &mask, row_group)))?;
        let reasons = refused.iter().map(|page| page.reason.clone()).collect();
        let file = file.refusing(refused);
        let mut reader =
            ParquetRecordBatchReaderBuilder::new_with_metadata(file, self.metadata.clone())
                .with_projection(mask)
                .with_batch_size(batch_rows);
        if let Some(row_group) = row_group {
            reader = reader.with_row_groups(vec![row_group]);
        }
        let fields = given.iter().map(|given| given.field.clone());
        let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
        Ok(Batches {
            reader: guarded(|| reader.build().map_err(|e| e.to_string()))?,
            given,
            schema,
            reasons,
            unlooked_bytes: 0,
        })
    }

    /// Returns the pages with impossible claims in some columns, of one row group or of all.
    fn refused_pages(
        &self,
        file: &CheckedFile,
        columns: &ProjectionMask,
        row_group: Option<usize>,
    ) -> Vec<Refused> {
        let groups = self.metadata.metadata().row_groups().iter().enumerate();
        let groups = groups.filter(|(at, _)| row_group.is_none_or(|wanted| wanted == *at));
        let chunks = groups.flat_map(|(_, group)| group.columns().iter().enumerate());
        let chunks = chunks.filter(|(leaf, _)| columns.leaf_included(*leaf));
        chunks
            .filter_map(|(_, chunk)| pages::first_refused(file, chunk))
            .collect()
    }
}

/// A statistic of a footer about a column in a row group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Statistic {
    /// The least value, or a lower bound.
    Least,
    /// The greatest value, or an upper bound.
    Greatest,
    /// Number of rows without a value.
    Absent,
}

/// The source of a column's values.
enum Origin {
    /// The file's own column.
    Column(FieldRef),
    /// Columns of version 1.
    Computed(Computed),
}

/// A column that is read.
struct Given {
    field: FieldRef,
    origin: Origin,
    absent_as_0: bool,
}

/// Batches of some columns of a file.
pub struct Batches {
    reader: ParquetRecordBatchReader,
    given: Vec<Given>,
    schema: Arc<Schema>,
    /// The reasons for refused pages.
    reasons: Vec<String>,
    /// Bytes decoded since the memory limit was last checked.
    unlooked_bytes: usize,
}

impl Iterator for Batches {
    type Item = Result<RecordBatch, ReadError>;

    fn next(&mut self) -> Option<Self::Item> {
        let batch = guarded(|| match self.reader.next() {
            Some(Ok(batch)) => self.give(&batch).map(Some),
            Some(Err(e)) => Err(self.reason(e.to_string())),
            None => Ok(None),
        });
        let batch = batch.map_err(ReadError::Damaged).transpose()?;
        Some(batch.and_then(|batch| self.look(batch)))
    }
}

impl Batches {
    /// Strips the words that libraries put around our own reasons.
    fn reason(&self, error: String) -> String {
        let own = self.reasons.iter().map(String::as_str).chain([ALTERED]);
        let own = own.into_iter().find(|own| error.contains(own));
        own.map_or(error.clone(), str::to_owned)
    }

    /// Checks the memory limit. Callers keep most of what they read, so this is where memory grows.
    fn look(&mut self, batch: RecordBatch) -> Result<RecordBatch, ReadError> {
        self.unlooked_bytes += batch.get_array_memory_size();
        if self.unlooked_bytes >= LOOK_BYTES {
            self.unlooked_bytes = 0;
            if memory::is_exceeded() {
                return Err(ReadError::Memory);
            }
        }
        Ok(batch)
    }

    fn give(&self, batch: &RecordBatch) -> Result<RecordBatch, String> {
        let mut arrays: Vec<ArrayRef> = Vec::with_capacity(self.given.len());
        for given in &self.given {
            let array = match &given.origin {
                Origin::Column(field) => batch.column_by_name(field.name()).cloned(),
                Origin::Computed(computed) => (computed.make)(batch, given.field.data_type()),
            };
            let array = array.ok_or_else(|| format!("{} cannot be read", given.field.name()))?;
            let array = widening::read_as(&array, given.field.data_type())?;
            arrays.push(match given.absent_as_0 {
                true => versions::without_0(array),
                false => array,
            });
        }
        let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
        RecordBatch::try_new_with_options(self.schema.clone(), arrays, &options)
            .map_err(|e| e.to_string())
    }
}

type Footer = (ArrowReaderMetadata, usize, Option<Checksums>);

fn footer(file: &File, wanted: &Schema) -> Result<Footer, String> {
    if !is_cut(file) && footer_of(file).is_some_and(|footer| !thrift::is_plausible(&footer)) {
        return Err("its footer is damaged".to_owned());
    }
    let metadata = ParquetMetaDataReader::new()
        .with_page_index_policy(PageIndexPolicy::Skip)
        .parse_and_finish(file)
        .map_err(|e| match is_cut(file) {
            true => "its end is missing".to_owned(),
            false => e.to_string(),
        })?;
    let checksums = Checksums::of(file, &metadata)?;
    readable(&metadata)?;
    let rows = rows(&metadata).ok_or("its columns differ in their numbers of rows")?;
    if rows > MOST_ROWS {
        return Err(format!(
            "it is damaged: it says that it has {rows} rows, and a table has {MOST_ROWS} at most"
        ));
    }
    let metadata = Arc::new(metadata);
    // The Arrow types that the file claims are those of its writer.
    let options = || ArrowReaderOptions::new().with_skip_arrow_metadata(true);
    let found =
        ArrowReaderMetadata::try_new(metadata.clone(), options()).map_err(|e| e.to_string())?;
    let fields = found.schema().fields().iter();
    let fields: Vec<Field> = fields
        .map(|field| {
            let text = wanted.fields().iter().map(|field| field.data_type());
            match text.into_iter().find(|t| is_text(t)) {
                Some(text) if is_text(field.data_type()) => {
                    field.as_ref().clone().with_data_type(text.clone())
                }
                _ => field.as_ref().clone(),
            }
        })
        .collect();
    let metadata = ArrowReaderMetadata::try_new(
        metadata,
        options().with_schema(Arc::new(Schema::new(fields))),
    )
    .map_err(|e| e.to_string())?;
    Ok((metadata, rows, checksums))
}

/// Returns true for a file that does not end like a Parquet file, such as one that was not completely written.
fn is_cut(mut file: &File) -> bool {
    // The shortest file has the magic number at both ends and four bytes between.
    let mut end = [0; 12];
    let read = file
        .seek(SeekFrom::End(-12))
        .and_then(|_| file.read_exact(&mut end));
    read.is_err() || !end.ends_with(b"PAR1")
}

/// Checks that every compression can be read.
fn readable(metadata: &ParquetMetaData) -> Result<(), String> {
    let groups = metadata.row_groups().iter();
    let mut used = groups.flat_map(|group| group.columns().iter().map(|c| c.compression()));
    let unread = used.find(|compression| {
        use Compression::{GZIP, LZ4, LZ4_RAW, SNAPPY, UNCOMPRESSED, ZSTD};
        !matches!(
            compression,
            UNCOMPRESSED | SNAPPY | ZSTD(_) | GZIP(_) | LZ4 | LZ4_RAW
        )
    });
    match unread {
        Some(compression) => Err(format!(
            "compressed with {}: write it again with zstd, snappy, lz4, gzip or without compression",
            format!("{:?}", CompressionCodec::from(compression)).to_lowercase()
        )),
        None => Ok(()),
    }
}

fn is_text(data_type: &DataType) -> bool {
    match data_type {
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => true,
        DataType::Dictionary(_, values) => is_text(values),
        _ => false,
    }
}

/// Returns the number of rows; `None` where columns disagree.
fn rows(metadata: &ParquetMetaData) -> Option<usize> {
    metadata.row_groups().iter().try_fold(0usize, |sum, group| {
        let rows = group.num_rows();
        let agree = group.columns().iter().all(|c| c.num_values() == rows);
        sum.checked_add(usize::try_from(rows).ok().filter(|_| agree)?)
    })
}
