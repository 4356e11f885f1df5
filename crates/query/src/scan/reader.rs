//! Reads row groups one after the other and adds the columns that no file has.

use super::names::Names;
use super::plan::Unit;
use crate::library::Library;
use crate::schema::{ColumnFacts, Name, Origin};
use datafusion::arrow::array::{ArrayRef, RecordBatch, RecordBatchOptions, new_null_array};
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::common::ScalarValue;
use datafusion::error::DataFusionError;
use gapscope_trace::table_file::{Batches, TableFile};
use std::collections::HashMap;
use std::sync::Arc;

type Result<T> = std::result::Result<T, DataFusionError>;

/// The batches of some row groups.
pub(super) struct Reader {
    library: Arc<Library>,
    files: Arc<Vec<Option<TableFile>>>,
    columns: Arc<[ColumnFacts]>,
    schema: SchemaRef,
    /// Columns to read of a file: those of the answer and the keys of names.
    of_file: Vec<String>,
    units: std::vec::IntoIter<Unit>,
    batch_rows: usize,
    left: Option<usize>,
    source: Option<OfSource>,
    open: Option<Open>,
    failed: bool,
}

/// What all rows of a trace share.
struct OfSource {
    index: usize,
    names: HashMap<Name, Names>,
    /// Columns with one value in every row, each as long as a batch may be.
    constants: HashMap<Origin, ArrayRef>,
}

/// The row group that is being read.
enum Open {
    Columns {
        source: usize,
        batches: Batches,
    },
    /// No column of the file is needed: so many rows are left.
    Rows(usize),
}

impl Reader {
    pub fn new(
        library: Arc<Library>,
        files: Arc<Vec<Option<TableFile>>>,
        columns: Vec<ColumnFacts>,
        schema: SchemaRef,
        units: Vec<Unit>,
        batch_rows: usize,
        limit: Option<usize>,
    ) -> Reader {
        let mut of_file: Vec<String> = Vec::new();
        let mut need = |name: &str| {
            if !of_file.iter().any(|there| there == name) {
                of_file.push(name.to_owned());
            }
        };
        for column in &columns {
            match column.origin {
                Origin::File => need(&column.name),
                Origin::Name(name) => name.keys().iter().for_each(|key| need(key)),
                Origin::Trace | Origin::Partition(_) => {}
            }
        }
        Reader {
            library,
            files,
            columns: columns.into(),
            schema,
            of_file,
            units: units.into_iter(),
            batch_rows,
            left: limit,
            source: None,
            open: None,
            failed: false,
        }
    }

    fn batch(&mut self) -> Result<Option<RecordBatch>> {
        loop {
            if self.left == Some(0) {
                return Ok(None);
            }
            let read = match &mut self.open {
                None => None,
                Some(Open::Rows(0)) => None,
                Some(Open::Rows(left)) => {
                    let rows = (*left).min(self.batch_rows);
                    *left -= rows;
                    Some((rows, None))
                }
                Some(Open::Columns { source, batches }) => {
                    let source = *source;
                    let next = batches.next().transpose();
                    let next = next.map_err(|reason| self.damaged(source, &reason))?;
                    next.map(|batch| (batch.num_rows(), Some(batch)))
                }
            };
            match read {
                Some((rows, batch)) => return self.complete(rows, batch.as_ref()).map(Some),
                None => match self.units.next() {
                    Some(unit) => self.start(unit)?,
                    None => return Ok(None),
                },
            }
        }
    }

    fn start(&mut self, unit: Unit) -> Result<()> {
        if self
            .source
            .as_ref()
            .is_none_or(|source| source.index != unit.source)
        {
            self.source = Some(OfSource {
                index: unit.source,
                names: HashMap::new(),
                constants: HashMap::new(),
            });
        }
        let Some(file) = &self.files[unit.source] else {
            return Ok(());
        };
        let known = self.of_file.iter().map(String::as_str);
        let known: Vec<&str> = known.filter(|name| file.has(name)).collect();
        self.open = Some(match known.is_empty() {
            true => Open::Rows(unit.rows),
            false => {
                let batches = file.read(&known, Some(unit.row_group), self.batch_rows);
                Open::Columns {
                    source: unit.source,
                    batches: batches.map_err(|reason| self.damaged(unit.source, &reason))?,
                }
            }
        });
        Ok(())
    }

    fn damaged(&self, source: usize, reason: &str) -> DataFusionError {
        let source = &self.library.traces.sources[source];
        DataFusionError::Execution(format!(
            "{} is damaged ({reason}): leave this trace out",
            source.name
        ))
    }

    /// Adds what the file does not have.
    fn complete(&mut self, rows: usize, read: Option<&RecordBatch>) -> Result<RecordBatch> {
        let keep = self.left.map_or(rows, |left| left.min(rows));
        self.left = self.left.map(|left| left - keep);
        let of_file = |name: &str| read.and_then(|batch| batch.column_by_name(name)).cloned();
        let mut arrays = Vec::with_capacity(self.columns.len());
        let columns = self.columns.clone();
        for column in columns.iter() {
            let missing = || new_null_array(&column.data_type, rows);
            arrays.push(match column.origin {
                Origin::File => of_file(&column.name).unwrap_or_else(missing),
                Origin::Name(name) => {
                    let keys = name.keys().iter().map(|key| of_file(key));
                    match keys.collect::<Option<Vec<ArrayRef>>>() {
                        Some(keys) => self.names(name).resolve(&keys)?,
                        None => missing(),
                    }
                }
                Origin::Trace | Origin::Partition(_) => {
                    let constant = self.constant(column.origin)?;
                    if constant.len() < rows {
                        self.value(column.origin).to_array_of_size(rows)?
                    } else {
                        constant.slice(0, rows)
                    }
                }
            });
        }
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        let batch = RecordBatch::try_new_with_options(self.schema.clone(), arrays, &options)?;
        Ok(batch.slice(0, keep))
    }

    fn names(&mut self, name: Name) -> &Names {
        let of_source = self
            .source
            .as_mut()
            .expect("a row group of a trace is open");
        let source = &self.library.traces.sources[of_source.index];
        let names = of_source.names.entry(name);
        names.or_insert_with(|| Names::of(name, source))
    }

    /// The value of a column in every row of the trace that is being read.
    fn value(&self, origin: Origin) -> ScalarValue {
        let of_source = self
            .source
            .as_ref()
            .expect("a row group of a trace is open");
        self.library.constant(origin, of_source.index)
    }

    fn constant(&mut self, origin: Origin) -> Result<ArrayRef> {
        let of_source = self
            .source
            .as_ref()
            .expect("a row group of a trace is open");
        if let Some(array) = of_source.constants.get(&origin) {
            return Ok(array.clone());
        }
        let array = self.value(origin).to_array_of_size(self.batch_rows)?;
        let of_source = self
            .source
            .as_mut()
            .expect("a row group of a trace is open");
        of_source.constants.insert(origin, array.clone());
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
