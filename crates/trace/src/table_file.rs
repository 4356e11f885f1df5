//! Opens, checks and projects the Parquet file of one table, for the reader, for merging parts and for SQL. The
//! footer is at a file's end and tells where the columns of each row group are. To project is to read only some
//! columns, in the types of this version.

use crate::checksums::{CheckedFile, Checksums, RefusedPage, footer_bytes, footer_of};
use crate::damage::Damage;
use crate::panics::guarded;
use crate::versions::{self, Computation, Predecessor};
use crate::{conversion, memory, pages, thrift};

pub use crate::damage::MAX_ROWS;
use arrow_array::{ArrayRef, RecordBatch, RecordBatchOptions};
use arrow_schema::{DataType, Field, FieldRef, Schema};
use gapscope_files::ContainedPath;
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
use std::path::Path;
use std::sync::Arc;

/// A file whose footer was read and makes sense.
#[derive(Debug, Clone)]
pub struct TableFile {
    path: ContainedPath,
    table: &'static str,
    metadata: ArrowReaderMetadata,
    /// The columns that may be read, in the types that readers get.
    wanted: Arc<Schema>,
    /// The number of rows, which all columns have.
    rows: usize,
    /// The checksums of the file; `None` where it has none.
    checksums: Option<Arc<Checksums>>,
}

/// Decoded bytes after which the memory limit is checked.
const MEMORY_CHECK_BYTES: usize = 4 << 20;

/// Why columns cannot be read further.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ReadError {
    /// The file is damaged.
    #[error(transparent)]
    Damaged(#[from] Damage),
    /// This process holds more memory than allowed ([`memory::limit`]).
    #[error("reading takes more memory than allowed")]
    Memory,
}

impl TableFile {
    /// Reads the footer of `path`, the file of `table`. Texts are returned in the type that `wanted` gives them;
    /// columns that are not in `wanted` cannot be read.
    ///
    /// # Errors
    /// There is no such file, or its footer is damaged.
    pub fn open(
        path: &ContainedPath,
        table: &'static str,
        wanted: Arc<Schema>,
    ) -> Result<TableFile, Damage> {
        let file = path.open().map_err(|e| match e.kind() {
            ErrorKind::NotFound | ErrorKind::NotADirectory => Damage::Missing,
            _ => Damage::library(e),
        })?;
        let (metadata, rows, checksums) = guarded(|| footer(&file, &wanted))??;
        Ok(TableFile {
            path: path.clone(),
            table,
            metadata,
            wanted,
            rows,
            checksums: checksums.map(Arc::new),
        })
    }

    /// Returns the path of the file.
    pub fn path(&self) -> &Path {
        self.path.path()
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

    /// Returns what a column is read from; `None` where the file has neither the column nor a predecessor.
    fn origin(&self, column: &str) -> Option<ColumnOrigin> {
        let held = |name: &str| {
            let (_, field) = self.metadata.schema().fields().find(name)?;
            Some(ColumnOrigin::Column(field.clone()))
        };
        held(column).or_else(|| match versions::predecessor(self.table, column)? {
            Predecessor::Named(name) => held(name),
            Predecessor::Columns(computed) => {
                held(versions::VERSION_1_COLUMN).map(|_| ColumnOrigin::Computed(computed))
            }
        })
    }

    /// Returns the type in which the file holds a column, where its values cannot be converted to the wanted type.
    pub fn foreign_type(&self, column: &str) -> Option<DataType> {
        let wanted = self.wanted.field_with_name(column).ok()?.data_type();
        let held = self.metadata.schema();
        let found = match self.origin(column)? {
            ColumnOrigin::Column(field) => vec![field],
            // The source columns of version 1 had the type of the column that is computed from them.
            ColumnOrigin::Computed(computed) => {
                let from = computed.from.iter();
                from.filter_map(|name| Some(held.fields().find(name)?.1.clone()))
                    .collect()
            }
        };
        let mut found = found.iter().map(|field| field.data_type());
        found
            .find(|found| !conversion::is_convertible(found, wanted))
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
        let ColumnOrigin::Column(field) = self.origin(column)? else {
            return None;
        };
        if statistic == Statistic::NullCount && versions::had_zeros(self.table, column) {
            return None;
        }
        let wanted = self.wanted.field_with_name(column).ok()?.data_type();
        if !conversion::keeps_statistics(field.data_type(), wanted) {
            return None;
        }
        let converter = StatisticsConverter::try_new(
            field.name(),
            self.metadata.schema(),
            self.metadata.parquet_schema(),
        );
        let group = [self.metadata.metadata().row_groups().get(row_group)?];
        guarded(|| {
            let converter = converter.ok()?;
            let found = match statistic {
                Statistic::Min => converter.row_group_mins(group),
                Statistic::Max => converter.row_group_maxes(group),
                Statistic::NullCount => {
                    let counts = converter.row_group_null_counts(group).ok()?;
                    return Some(Arc::new(counts) as ArrayRef);
                }
            };
            conversion::convert(&found.ok()?, wanted).ok()
        })
        .ok()?
    }

    /// Reads those columns that the file has, batch by batch, of one row group or of all. A column that cannot be
    /// converted to its wanted type keeps its own.
    ///
    /// # Errors
    /// The file can no longer be read, or its footer turns out to be wrong.
    pub fn read(
        &self,
        columns: &[&str],
        row_group: Option<usize>,
        batch_rows: usize,
    ) -> Result<Batches, Damage> {
        let mut held = Vec::new();
        let mut columns_out = Vec::new();
        for column in columns {
            let Some(origin) = self.origin(column) else {
                continue;
            };
            let wanted = (self.wanted.field_with_name(column)).map_err(Damage::library)?;
            let data_type = match &origin {
                ColumnOrigin::Column(field) => {
                    held.push(field.name().clone());
                    match conversion::is_convertible(field.data_type(), wanted.data_type()) {
                        true => wanted.data_type(),
                        false => field.data_type(),
                    }
                }
                ColumnOrigin::Computed(computed) => {
                    held.extend(computed.from.iter().map(|name| (*name).to_owned()));
                    wanted.data_type()
                }
            };
            columns_out.push(OutputColumn {
                field: Arc::new(Field::new(*column, data_type.clone(), true)),
                had_zeros: versions::had_zeros(self.table, column),
                origin,
            });
        }
        let fields = self.metadata.schema().fields().iter().enumerate();
        let places = fields.filter(|(_, field)| held.contains(field.name()));
        let mask = ProjectionMask::roots(
            self.metadata.parquet_schema(),
            places.map(|(place, _)| place).collect::<Vec<_>>(),
        );
        let file = self.file().map_err(Damage::library)?;
        let refused = guarded(|| self.refused_pages(&file, &mask, row_group))?;
        let file = file.refusing(refused);
        file.take_damage();
        let mut reader =
            ParquetRecordBatchReaderBuilder::new_with_metadata(file.clone(), self.metadata.clone())
                .with_projection(mask)
                .with_batch_size(batch_rows);
        if let Some(row_group) = row_group {
            reader = reader.with_row_groups(vec![row_group]);
        }
        let fields = columns_out.iter().map(|column| column.field.clone());
        let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
        Ok(Batches {
            reader: guarded(|| reader.build())?.map_err(Damage::library)?,
            file,
            columns: columns_out,
            schema,
            unchecked_bytes: 0,
        })
    }

    /// Returns the pages with impossible claims in some columns, of one row group or of all.
    fn refused_pages(
        &self,
        file: &CheckedFile,
        columns: &ProjectionMask,
        row_group: Option<usize>,
    ) -> Vec<RefusedPage> {
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
    Min,
    /// The greatest value, or an upper bound.
    Max,
    /// Number of rows without a value.
    NullCount,
}

/// What a column is read from.
enum ColumnOrigin {
    /// A column of the file, which may have another name or type.
    Column(FieldRef),
    /// Columns of version 1.
    Computed(Computation),
}

/// A column that is returned.
struct OutputColumn {
    /// The column's name and type in the batches that are returned.
    field: FieldRef,
    origin: ColumnOrigin,
    /// True where 0 stands for an absent value.
    had_zeros: bool,
}

/// Batches of some columns of a file.
pub struct Batches {
    reader: ParquetRecordBatchReader,
    /// The file that the reader reads, asked for the damage that stopped the reader.
    file: CheckedFile,
    columns: Vec<OutputColumn>,
    schema: Arc<Schema>,
    /// Bytes decoded since the memory limit was last checked.
    unchecked_bytes: usize,
}

impl Iterator for Batches {
    type Item = Result<RecordBatch, ReadError>;

    fn next(&mut self) -> Option<Self::Item> {
        let batch = guarded(|| match self.reader.next()? {
            Ok(batch) => Some(self.convert(&batch)),
            Err(error) => Some(Err(
                (self.file.take_damage()).unwrap_or_else(|| Damage::library(error))
            )),
        });
        let batch = batch.unwrap_or_else(|panic| Some(Err(panic.into())))?;
        Some(
            batch
                .map_err(ReadError::Damaged)
                .and_then(|batch| self.check_memory(batch)),
        )
    }
}

impl Batches {
    /// Checks the memory limit. Callers keep most of what they read, so this is where memory grows.
    fn check_memory(&mut self, batch: RecordBatch) -> Result<RecordBatch, ReadError> {
        self.unchecked_bytes += batch.get_array_memory_size();
        if self.unchecked_bytes >= MEMORY_CHECK_BYTES {
            self.unchecked_bytes = 0;
            if memory::is_exceeded() {
                return Err(ReadError::Memory);
            }
        }
        Ok(batch)
    }

    /// Returns a batch of the file with the wanted columns, renamed, computed and converted.
    fn convert(&self, batch: &RecordBatch) -> Result<RecordBatch, Damage> {
        let mut arrays: Vec<ArrayRef> = Vec::with_capacity(self.columns.len());
        for column in &self.columns {
            let array = match &column.origin {
                ColumnOrigin::Column(field) => batch.column_by_name(field.name()).cloned(),
                ColumnOrigin::Computed(computed) => {
                    (computed.compute)(batch, column.field.data_type())
                }
            };
            let array = array.ok_or_else(|| Damage::Computed {
                column: column.field.name().clone(),
            })?;
            let array = conversion::convert(&array, column.field.data_type())?;
            arrays.push(match column.had_zeros {
                true => versions::zeros_to_absent(array),
                false => array,
            });
        }
        let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
        RecordBatch::try_new_with_options(self.schema.clone(), arrays, &options)
            .map_err(Damage::library)
    }
}

/// The metadata of a footer, the number of rows, and the checksums where there are some.
type Footer = (ArrowReaderMetadata, usize, Option<Checksums>);

/// The most bytes of a footer. With its checksums it takes a hundredth of its file.
const MAX_FOOTER_BYTES: u64 = 256 << 20;

/// Reads the footer and checks it; texts have the type of the texts in `wanted`.
fn footer(file: &File, wanted: &Schema) -> Result<Footer, Damage> {
    if !is_cut(file) && footer_bytes(file).is_ok_and(|bytes| bytes > MAX_FOOTER_BYTES) {
        return Err(Damage::Footer);
    }
    if !is_cut(file) && footer_of(file).is_some_and(|footer| !thrift::is_plausible(&footer)) {
        return Err(Damage::Footer);
    }
    let metadata = ParquetMetaDataReader::new()
        .with_page_index_policy(PageIndexPolicy::Skip)
        .parse_and_finish(file)
        .map_err(|e| match is_cut(file) {
            true => Damage::Cut,
            false => Damage::library(e),
        })?;
    let checksums = Checksums::read(file, &metadata)?;
    check_codecs(&metadata)?;
    let rows = rows(&metadata).ok_or(Damage::UnequalColumns)?;
    if rows > MAX_ROWS {
        return Err(Damage::ManyRows { rows });
    }
    let metadata = Arc::new(metadata);
    // The Arrow types that the file claims are those of its writer.
    let options = || ArrowReaderOptions::new().with_skip_arrow_metadata(true);
    let found =
        ArrowReaderMetadata::try_new(metadata.clone(), options()).map_err(Damage::library)?;
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
    .map_err(Damage::library)?;
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

/// Fails where a column is compressed in a way that is not read here.
fn check_codecs(metadata: &ParquetMetaData) -> Result<(), Damage> {
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
        Some(compression) => Err(Damage::Codec {
            codec: format!("{:?}", CompressionCodec::from(compression)).to_lowercase(),
        }),
        None => Ok(()),
    }
}

/// Returns true for types of texts, also in a dictionary.
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
