//! Reads the row groups (parts of Parquet files) of a partition (a part of the scan, which runs beside the others)
//! one after the other into batches, and adds the columns that no file has: the trace's name, folder values, and
//! names behind ids.

use super::leaf::Result;
use super::names::Names;
use super::row_group::RowGroup;
use crate::library::Library;
use crate::schema::{ColumnFacts, IdName, Origin};
use crate::source::TraceValue;
use datafusion::arrow::array::cast::AsArray;
use datafusion::arrow::array::{ArrayRef, RecordBatch, RecordBatchOptions, new_null_array};
use datafusion::arrow::datatypes::{SchemaRef, UInt64Type};
use datafusion::error::DataFusionError;
use gapscope_trace::Damage;
use gapscope_trace::ids::SubmissionId;
use gapscope_trace::table_file::{Batches, ReadError, TableFile};
use std::collections::HashMap;
use std::sync::Arc;

/// The column of ids in which the format has a number where the id is not known.
pub(super) const UNKNOWN_AS_NUMBER: &str = "submission";

/// Returns ids with nulls in place of unknown ones.
fn null_where_unknown(ids: ArrayRef) -> ArrayRef {
    let unknown = SubmissionId::UNKNOWN.0;
    match ids.as_primitive_opt::<UInt64Type>() {
        Some(numbers) if numbers.values().contains(&unknown) => {
            Arc::new(numbers.unary_opt::<_, UInt64Type>(|id| (id != unknown).then_some(id)))
        }
        _ => ids,
    }
}

/// The state of reading the row groups of one partition; it is an iterator of batches.
pub(super) struct Reader {
    library: Arc<Library>,
    /// The table's file in each trace; `None` where there is none.
    files: Arc<Vec<Option<TableFile>>>,
    /// The columns of the answer, in order.
    columns: Arc<[ColumnFacts]>,
    schema: SchemaRef,
    /// The columns to read of a file: those of the answer and the keys of names.
    file_columns: Vec<String>,
    /// The row groups that are still to be read.
    groups: std::vec::IntoIter<RowGroup>,
    batch_rows: usize,
    /// The rows that the limit still allows; `None` without a limit.
    left: Option<usize>,
    source: SourceValues,
    /// The row group that is being read; `None` before the first.
    open: Option<OpenGroup>,
    /// True after an error, which ends the iteration.
    failed: bool,
}

/// The values that all rows of a trace share.
struct SourceValues {
    /// Index of the trace among the session's.
    index: usize,
    /// The names behind ids, once they were needed.
    names: HashMap<IdName, Names>,
    /// Columns with one value in every row, as long as the longest batch so far.
    values: HashMap<TraceValue, ArrayRef>,
}

/// The row group that is being read.
enum OpenGroup {
    Columns(Batches),
    /// The state where no column of the file is needed: the number of rows that remain.
    Rows(usize),
}

impl Reader {
    pub fn new(
        library: Arc<Library>,
        files: Arc<Vec<Option<TableFile>>>,
        columns: Vec<ColumnFacts>,
        schema: SchemaRef,
        groups: Vec<RowGroup>,
        batch_rows: usize,
        limit: Option<usize>,
    ) -> Reader {
        let mut file_columns: Vec<String> = Vec::new();
        let mut need = |name: &str| {
            if !file_columns.iter().any(|there| there == name) {
                file_columns.push(name.to_owned());
            }
        };
        for column in &columns {
            match column.origin {
                Origin::Own => need(&column.name),
                Origin::Name(name) => name.keys().iter().for_each(|key| need(key)),
                Origin::Trace(_) => {}
            }
        }
        Reader {
            library,
            files,
            columns: columns.into(),
            schema,
            file_columns,
            source: SourceValues::new(groups.first().map_or(0, |group| group.source)),
            groups: groups.into_iter(),
            batch_rows,
            left: limit,
            open: None,
            failed: false,
        }
    }

    /// Returns the next batch, of this row group or of the next that has rows; `None` at the end.
    fn batch(&mut self) -> Result<Option<RecordBatch>> {
        loop {
            if self.left == Some(0) {
                return Ok(None);
            }
            let read = match &mut self.open {
                None => None,
                Some(OpenGroup::Rows(0)) => None,
                Some(OpenGroup::Rows(left)) => {
                    let rows = (*left).min(self.batch_rows);
                    *left -= rows;
                    Some((rows, None))
                }
                Some(OpenGroup::Columns(batches)) => {
                    let next = batches.next().transpose();
                    let next = next.map_err(|error| self.failed(error))?;
                    next.map(|batch| (batch.num_rows(), Some(batch)))
                }
            };
            match read {
                Some((rows, batch)) => return self.complete(rows, batch.as_ref()).map(Some),
                None => match self.groups.next() {
                    Some(group) => self.start(group)?,
                    None => return Ok(None),
                },
            }
        }
    }

    /// Opens a row group; a new trace needs new names. Columns that the file lacks are not read.
    fn start(&mut self, group: RowGroup) -> Result<()> {
        if self.source.index != group.source {
            self.source = SourceValues::new(group.source);
        }
        let Some(file) = &self.files[group.source] else {
            return Ok(());
        };
        let known = self.file_columns.iter().map(String::as_str);
        let known: Vec<&str> = known.filter(|name| file.has(name)).collect();
        self.open = Some(match known.is_empty() {
            true => OpenGroup::Rows(group.rows),
            false => {
                let batches = file.read(&known, Some(group.index), self.batch_rows);
                OpenGroup::Columns(batches.map_err(|damage| self.damaged(&damage))?)
            }
        });
        Ok(())
    }

    fn failed(&self, error: ReadError) -> DataFusionError {
        match error {
            ReadError::Damaged(damage) => self.damaged(&damage),
            ReadError::Memory => DataFusionError::ResourcesExhausted(String::new()),
        }
    }

    fn damaged(&self, damage: &Damage) -> DataFusionError {
        let source = &self.library.traces.sources[self.source.index];
        DataFusionError::Execution(format!(
            "{} is damaged ({damage}): leave this trace out",
            source.name
        ))
    }

    /// Adds the columns that the file does not have (null where their keys are missing), and cuts the batch at the
    /// limit.
    fn complete(&mut self, rows: usize, read: Option<&RecordBatch>) -> Result<RecordBatch> {
        let keep = self.left.map_or(rows, |left| left.min(rows));
        self.left = self.left.map(|left| left - keep);
        let file_columns = |name: &str| read.and_then(|batch| batch.column_by_name(name)).cloned();
        let mut arrays = Vec::with_capacity(self.columns.len());
        let columns = self.columns.clone();
        for column in columns.iter() {
            let missing = || new_null_array(&column.data_type, rows);
            arrays.push(match column.origin {
                Origin::Own => match file_columns(&column.name) {
                    Some(array) if column.name == UNKNOWN_AS_NUMBER => null_where_unknown(array),
                    Some(array) => array,
                    None => missing(),
                },
                Origin::Name(name) => {
                    let keys = name.keys().iter().map(|key| file_columns(key));
                    match keys.collect::<Option<Vec<ArrayRef>>>() {
                        Some(keys) => self.source.names(name, &self.library).resolve(&keys)?,
                        None => missing(),
                    }
                }
                Origin::Trace(value) => {
                    let value = self.source.value(value, rows, &self.library)?;
                    value.slice(0, rows)
                }
            });
        }
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        let batch = RecordBatch::try_new_with_options(self.schema.clone(), arrays, &options)?;
        Ok(batch.slice(0, keep))
    }
}

impl SourceValues {
    fn new(index: usize) -> SourceValues {
        SourceValues {
            index,
            names: HashMap::new(),
            values: HashMap::new(),
        }
    }

    fn names(&mut self, name: IdName, library: &Library) -> &Names {
        let source = &library.traces.sources[self.index];
        let names = self.names.entry(name);
        names.or_insert_with(|| Names::load(name, source, library))
    }

    /// Returns a column of one value, with at least `rows` rows.
    fn value(&mut self, value: TraceValue, rows: usize, library: &Library) -> Result<ArrayRef> {
        if let Some(array) = self.values.get(&value).filter(|array| array.len() >= rows) {
            return Ok(array.clone());
        }
        let scalar = library.traces.value(value, self.index);
        let array = scalar.to_array_of_size(rows)?;
        self.values.insert(value, array.clone());
        Ok(array)
    }
}

impl Iterator for Reader {
    type Item = Result<RecordBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.failed {
            return None;
        }
        let batch = self.batch().transpose();
        self.failed = matches!(batch, Some(Err(_)));
        batch
    }
}
