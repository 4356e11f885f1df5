//! The Parquet file of one table: opened, checked and projected in this one place, for the reader, for merging parts
//! and for SQL.

use crate::version1;
use arrow_array::{ArrayRef, RecordBatch, RecordBatchOptions};
use arrow_schema::{DataType, Field, FieldRef, Schema};
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{
    ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReader,
    ParquetRecordBatchReaderBuilder,
};
use parquet::file::metadata::{PageIndexPolicy, ParquetMetaData, ParquetMetaDataReader};
use std::any::Any;
use std::fs::File;
use std::io::ErrorKind;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A file whose footer was read and makes sense.
#[derive(Debug, Clone)]
pub struct TableFile {
    path: PathBuf,
    table: &'static str,
    metadata: ArrowReaderMetadata,
    /// The types in which columns are wanted.
    wanted: Arc<Schema>,
    rows: usize,
}

/// Why a file cannot be opened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OpenError {
    /// There is none.
    Missing,
    /// It is damaged, or may not be read.
    Unreadable(String),
}

impl TableFile {
    /// Reads the footer of `path`, the file of `table`, whose columns are wanted as `wanted` says: texts are given in
    /// its type for them. Columns that it does not have cannot be read.
    ///
    /// # Errors
    /// There is no such file, or its footer is damaged.
    pub fn open(
        path: &Path,
        table: &'static str,
        wanted: Arc<Schema>,
    ) -> Result<TableFile, OpenError> {
        let file = File::open(path).map_err(|e| match e.kind() {
            ErrorKind::NotFound => OpenError::Missing,
            _ => OpenError::Unreadable(e.to_string()),
        })?;
        let (metadata, rows) = guarded(|| footer(&file, &wanted)).map_err(OpenError::Unreadable)?;
        Ok(TableFile {
            path: path.to_owned(),
            table,
            metadata,
            wanted,
            rows,
        })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What its footer says.
    pub fn metadata(&self) -> &ArrowReaderMetadata {
        &self.metadata
    }

    /// Rows in all.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Rows of a row group.
    ///
    /// # Panics
    /// There is no such row group.
    pub fn rows_of(&self, row_group: usize) -> usize {
        let rows = self.metadata.metadata().row_group(row_group).num_rows();
        usize::try_from(rows).unwrap_or(0)
    }

    /// True when it holds a column, or what an earlier version of the format had in its place.
    pub fn has(&self, column: &str) -> bool {
        self.holds(column)
            || version1::derived(self.table, column)
                .is_some_and(|derived| self.holds(derived.from[0]))
    }

    fn holds(&self, column: &str) -> bool {
        self.metadata.schema().index_of(column).is_ok()
    }

    /// The type in which the file holds a column, where that is not the wanted one.
    pub fn foreign_type(&self, column: &str) -> Option<&DataType> {
        let found = self.metadata.schema().field_with_name(column).ok()?;
        let wanted = self.wanted.field_with_name(column).ok()?;
        (found.data_type() != wanted.data_type()).then(|| found.data_type())
    }

    /// Reads columns, those of them that the file has, batch by batch: of one row group or of all.
    ///
    /// # Errors
    /// The file cannot be read any more, or its footer is wrong after all.
    pub fn read(
        &self,
        columns: &[&'static str],
        row_group: Option<usize>,
        batch_rows: usize,
    ) -> Result<Batches, String> {
        let mut held = Vec::new();
        let mut given = Vec::new();
        for column in columns.iter().copied().filter(|column| self.has(column)) {
            let derived = match self.holds(column) {
                true => None,
                false => version1::derived(self.table, column),
            };
            match &derived {
                None => held.push(column),
                Some(derived) => held.extend(derived.from),
            }
            let data_type = match self.wanted.field_with_name(column) {
                Ok(field) => field.data_type().clone(),
                Err(e) => return Err(e.to_string()),
            };
            given.push(Given {
                column,
                data_type,
                derived,
            });
        }
        let file = File::open(&self.path).map_err(|e| e.to_string())?;
        let fields = self.metadata.schema().fields().iter().enumerate();
        let places = fields.filter(|(_, field)| held.contains(&field.name().as_str()));
        let mask = ProjectionMask::roots(
            self.metadata.parquet_schema(),
            places.map(|(place, _)| place).collect::<Vec<_>>(),
        );
        let mut reader =
            ParquetRecordBatchReaderBuilder::new_with_metadata(file, self.metadata.clone())
                .with_projection(mask)
                .with_batch_size(batch_rows);
        if let Some(row_group) = row_group {
            reader = reader.with_row_groups(vec![row_group]);
        }
        let reader = reader.build().map_err(|e| e.to_string())?;
        Ok(Batches { reader, given })
    }
}

/// A column that is read.
struct Given {
    column: &'static str,
    data_type: DataType,
    derived: Option<&'static version1::Derived>,
}

/// The batches of some columns of a file. Each may fail or, of a damaged file, panic: see [`guarded`].
pub struct Batches {
    reader: ParquetRecordBatchReader,
    given: Vec<Given>,
}

impl Iterator for Batches {
    type Item = Result<RecordBatch, String>;

    fn next(&mut self) -> Option<Self::Item> {
        let batch = match self.reader.next()? {
            Ok(batch) => batch,
            Err(e) => return Some(Err(e.to_string())),
        };
        Some(self.give(&batch))
    }
}

impl Batches {
    fn give(&self, batch: &RecordBatch) -> Result<RecordBatch, String> {
        let mut fields: Vec<FieldRef> = Vec::with_capacity(self.given.len());
        let mut arrays: Vec<ArrayRef> = Vec::with_capacity(self.given.len());
        for given in &self.given {
            let array = match given.derived {
                None => batch.column_by_name(given.column).cloned(),
                Some(derived) => (derived.make)(batch, &given.data_type),
            };
            let array = array.ok_or_else(|| format!("{} cannot be read", given.column))?;
            let data_type = array.data_type().clone();
            fields.push(Arc::new(Field::new(given.column, data_type, true)));
            arrays.push(array);
        }
        let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
        let schema = Arc::new(Schema::new(fields));
        RecordBatch::try_new_with_options(schema, arrays, &options).map_err(|e| e.to_string())
    }
}

fn footer(file: &File, wanted: &Schema) -> Result<(ArrowReaderMetadata, usize), String> {
    let metadata = ParquetMetaDataReader::new()
        .with_page_index_policy(PageIndexPolicy::Skip)
        .parse_and_finish(file)
        .map_err(|e| e.to_string())?;
    let rows = rows(&metadata).ok_or("its columns differ in their numbers of rows")?;
    let metadata = Arc::new(metadata);
    // What the file itself says of its types is of the Arrow that wrote it.
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
    Ok((metadata, rows))
}

fn is_text(data_type: &DataType) -> bool {
    match data_type {
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => true,
        DataType::Dictionary(_, values) => is_text(values),
        _ => false,
    }
}

/// All rows; `None` where columns disagree.
fn rows(metadata: &ParquetMetaData) -> Option<usize> {
    metadata.row_groups().iter().try_fold(0usize, |sum, group| {
        let rows = group.num_rows();
        let agree = group.columns().iter().all(|c| c.num_values() == rows);
        sum.checked_add(usize::try_from(rows).ok().filter(|_| agree)?)
    })
}

/// Runs a call into the Parquet library, which may panic when it meets a damaged file.
///
/// # Errors
/// That of the call, or what it panicked with.
pub fn guarded<T>(call: impl FnOnce() -> Result<T, String>) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(call)).unwrap_or_else(|panic| Err(message(&*panic)))
}

fn message(panic: &(dyn Any + Send)) -> String {
    let text = panic
        .downcast_ref::<String>()
        .map(String::as_str)
        .or_else(|| panic.downcast_ref::<&str>().copied());
    format!("it is damaged: {}", text.unwrap_or("the reader gave up"))
}
