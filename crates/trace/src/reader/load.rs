//! Loading columns from Parquet files, several at once.

use crate::Diagnostic;
use crate::column::ColumnValues;
use crate::parallel;
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{
    ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReader,
    ParquetRecordBatchReaderBuilder,
};
use std::any::Any;
use std::cmp::Reverse;
use std::fs::File;
use std::io::ErrorKind;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

/// Rows that are decoded at once: their arrays stay in the processor's cache.
pub(super) const BATCH_ROWS: usize = 1 << 14;

/// A table's columns and the files that they come from.
pub(super) struct Source<'a> {
    files: Vec<TableFile>,
    columns: Vec<Column<'a>>,
    /// Columns that are not selected stay empty.
    pub bare: bool,
}

#[derive(Debug)]
pub(super) struct TableFile {
    path: PathBuf,
    metadata: ArrowReaderMetadata,
    /// Its rows' places in the table.
    rows: Range<usize>,
}

struct Column<'a> {
    name: &'static str,
    selected: bool,
    values: &'a mut dyn ColumnValues,
}

/// A column of a file that could not be read.
struct Failure {
    file: usize,
    column: &'static str,
    reason: String,
}

impl<'a> Source<'a> {
    /// Reads the footers of `paths`. Files without a readable one are left out.
    pub fn open(
        paths: Vec<PathBuf>,
        columns: impl Iterator<Item = (&'a &'static str, &'a mut dyn ColumnValues)>,
        selected: impl Fn(&'static str) -> bool,
        diagnostics: &mut Vec<Diagnostic>,
    ) -> Source<'a> {
        let mut files: Vec<TableFile> = Vec::new();
        for path in paths {
            let first = files.last().map_or(0, |file| file.rows.end);
            match TableFile::open(&path, first) {
                Ok(file) => files.push(file),
                Err(diagnostic) => diagnostics.push(diagnostic),
            }
        }
        let columns = columns.map(|(name, values)| Column {
            name,
            selected: selected(name),
            values,
        });
        Source {
            files,
            columns: columns.collect(),
            bare: false,
        }
    }
}

impl TableFile {
    pub fn open(path: &Path, first: usize) -> Result<TableFile, Diagnostic> {
        let unreadable = |reason: String| Diagnostic::UnreadableFile {
            path: path.to_owned(),
            reason,
        };
        let file = File::open(path).map_err(|e| match e.kind() {
            ErrorKind::NotFound => Diagnostic::MissingFile {
                path: path.to_owned(),
            },
            _ => unreadable(e.to_string()),
        })?;
        let metadata = guarded(|| {
            ArrowReaderMetadata::load(&file, ArrowReaderOptions::new()).map_err(|e| e.to_string())
        })
        .map_err(unreadable)?;
        let rows = metadata
            .metadata()
            .row_groups()
            .iter()
            .try_fold(0usize, |sum, group| {
                let rows = group.num_rows();
                let agree = group.columns().iter().all(|c| c.num_values() == rows);
                sum.checked_add(usize::try_from(rows).ok().filter(|_| agree)?)
            })
            .and_then(|rows| Some(first..first.checked_add(rows)?))
            .ok_or_else(|| unreadable("its columns differ in their numbers of rows".to_owned()))?;
        Ok(TableFile {
            path: path.to_owned(),
            metadata,
            rows,
        })
    }
}

/// Fills the columns of all tables.
pub(super) fn load(mut tables: Vec<Source<'_>>, diagnostics: &mut Vec<Diagnostic>) {
    for table in &mut tables {
        if table.bare {
            table.columns.retain(|column| column.selected);
        }
        table.reserve(diagnostics);
    }
    let columns = tables.iter_mut().enumerate().flat_map(|(table, source)| {
        let files = source.files.as_slice();
        let columns = source.columns.iter_mut();
        columns.map(move |column| (table, files, column))
    });
    let mut jobs: Vec<_> = columns.collect();
    // The columns of the longest table first, so that no thread is left with one at last.
    jobs.sort_by_key(|(_, files, column)| {
        Reverse((column.selected, files.last().map_or(0, |f| f.rows.end)))
    });
    let failed = parallel::each(jobs, |(table, files, column)| (table, column.load(files)));
    let mut failures: Vec<Vec<Failure>> = tables.iter().map(|_| Vec::new()).collect();
    for (table, failed) in failed {
        failures[table].extend(failed);
    }
    for (table, mut failures) in tables.iter_mut().zip(failures) {
        failures.sort_by_key(|failure| failure.file);
        table.settle(failures, diagnostics);
    }
}

impl Column<'_> {
    /// Appends the column of every file. What is left out or fails is filled with defaults.
    fn load(&mut self, files: &[TableFile]) -> Vec<Failure> {
        let mut failures = Vec::new();
        let wanted = self.selected || !self.values.nullable();
        for (index, file) in files.iter().enumerate() {
            if wanted && let Err(reason) = guarded(|| file.read(self.name, self.values)) {
                self.values.truncate(file.rows.start);
                failures.push(Failure {
                    file: index,
                    column: self.name,
                    reason,
                });
            }
            self.values.resize(file.rows.end);
        }
        failures
    }
}

impl TableFile {
    /// Its rows' places in the table.
    pub fn rows(&self) -> Range<usize> {
        self.rows.clone()
    }

    /// The values of a column, batch by batch; `None` where the file has no such column.
    pub fn batches(&self, column: &str) -> Result<Option<ParquetRecordBatchReader>, String> {
        let leaves = self.metadata.parquet_schema().columns();
        let Some(leaf) = leaves.iter().position(|c| c.path().parts() == [column]) else {
            return Ok(None);
        };
        let file = File::open(&self.path).map_err(|e| e.to_string())?;
        let mask = ProjectionMask::leaves(self.metadata.parquet_schema(), [leaf]);
        ParquetRecordBatchReaderBuilder::new_with_metadata(file, self.metadata.clone())
            .with_projection(mask)
            .with_batch_size(BATCH_ROWS)
            .build()
            .map(Some)
            .map_err(|e| e.to_string())
    }

    fn read(&self, column: &str, values: &mut dyn ColumnValues) -> Result<(), String> {
        let Some(batches) = self.batches(column)? else {
            return if values.nullable() {
                Ok(())
            } else {
                Err("the file has no such column".to_owned())
            };
        };
        for batch in batches {
            let batch = batch.map_err(|e| e.to_string())?;
            if !values.append_array(batch.column(0).as_ref()) {
                return Err(format!(
                    "it is of type {}, or lacks values",
                    batch.column(0).data_type()
                ));
            }
        }
        if values.rows() == self.rows.end {
            Ok(())
        } else {
            Err("it has another number of rows than its file says".to_owned())
        }
    }
}

impl Source<'_> {
    /// Makes space for all rows. Without it the files are as good as unreadable: a damaged one may claim any number.
    fn reserve(&mut self, diagnostics: &mut Vec<Diagnostic>) {
        let rows = self.files.last().map_or(0, |file| file.rows.end);
        if self.columns.iter_mut().all(|c| c.values.reserve(rows)) {
            return;
        }
        for file in self.files.drain(..) {
            diagnostics.push(Diagnostic::UnreadableFile {
                path: file.path,
                reason: format!("there is not enough memory for {rows} rows"),
            });
        }
    }

    /// Reports failures, and removes the rows that mean nothing because of them.
    fn settle(&mut self, failures: Vec<Failure>, diagnostics: &mut Vec<Diagnostic>) {
        let mut removed = Vec::new();
        for failure in failures {
            let file = &self.files[failure.file];
            let needed = self
                .columns
                .iter()
                .any(|c| c.name == failure.column && !c.values.nullable());
            let path = file.path.clone();
            let rows = file.rows.len();
            let Failure { column, reason, .. } = failure;
            if !needed {
                diagnostics.push(Diagnostic::UnreadableColumn {
                    path,
                    column,
                    reason,
                    rows,
                });
            } else if removed.last() != Some(&file.rows) {
                removed.push(file.rows.clone());
                diagnostics.push(Diagnostic::UnreadableRows {
                    path,
                    column,
                    reason,
                    rows,
                });
            }
        }
        for rows in removed.into_iter().rev() {
            for column in &mut self.columns {
                column.values.remove(rows.clone());
            }
        }
    }
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
