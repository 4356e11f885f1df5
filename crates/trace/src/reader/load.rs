//! Loading columns from Parquet files, several at once.

use crate::Diagnostic;
use crate::column::ColumnValues;
use crate::parallel;
use crate::table::Table;
use crate::table_file::{OpenError, TableFile};
use std::cmp::Reverse;
use std::ops::Range;
use std::path::{Path, PathBuf};

/// Rows that are decoded at once: their arrays stay in the processor's cache.
pub(super) const BATCH_ROWS: usize = 1 << 14;

/// A table's columns and the files that they come from.
pub(super) struct Source<'a> {
    table: &'static str,
    files: Vec<Part>,
    columns: Vec<Column<'a>>,
}

/// One file of a table.
struct Part {
    file: TableFile,
    /// Its rows' places in the table.
    rows: Range<usize>,
}

struct Column<'a> {
    name: &'static str,
    values: &'a mut dyn ColumnValues,
}

/// A column of a file that could not be read.
struct Failure {
    file: usize,
    column: &'static str,
    /// The rows that it has no values for.
    rows: Range<usize>,
    reason: String,
}

impl<'a> Source<'a> {
    /// Reads the footers of `paths`, files of `table`. Those without a readable one are left out. Only the columns that
    /// `selected` says are filled: the others stay empty.
    pub fn open<T: Table>(
        paths: Vec<PathBuf>,
        table: &'a mut T,
        selected: impl Fn(&'static str) -> bool,
        diagnostics: &mut Vec<Diagnostic>,
    ) -> Source<'a> {
        let mut files: Vec<Part> = Vec::new();
        for path in paths {
            let first = files.last().map_or(0, |part| part.rows.end);
            match Part::open::<T>(&path, first) {
                Ok(file) => files.push(file),
                Err(diagnostic) => diagnostics.push(diagnostic),
            }
        }
        let columns = T::COLUMNS.iter().zip(table.columns_mut());
        let columns = columns.filter(|(name, _)| selected(name));
        Source {
            table: T::NAME,
            files,
            columns: columns
                .map(|(name, values)| Column { name, values })
                .collect(),
        }
    }
}

/// Opens the file of a table.
pub(crate) fn open<T: Table>(path: &Path) -> Result<TableFile, Diagnostic> {
    TableFile::open(path, T::NAME, T::schema()).map_err(|error| {
        let (table, path) = (T::NAME, path.to_owned());
        match error {
            OpenError::Missing => Diagnostic::MissingFile { table, path },
            OpenError::Unreadable(reason) => Diagnostic::UnreadableFile {
                table,
                path,
                reason,
            },
        }
    })
}

impl Part {
    fn open<T: Table>(path: &Path, first: usize) -> Result<Part, Diagnostic> {
        let file = open::<T>(path)?;
        let Some(end) = first.checked_add(file.rows()) else {
            return Err(Diagnostic::UnreadableFile {
                table: T::NAME,
                path: path.to_owned(),
                reason: "there are too many rows".to_owned(),
            });
        };
        Ok(Part {
            file,
            rows: first..end,
        })
    }
}

/// Fills the columns of all tables.
pub(super) fn load(mut tables: Vec<Source<'_>>, diagnostics: &mut Vec<Diagnostic>) {
    for table in &mut tables {
        table.reserve(diagnostics);
    }
    let columns = tables.iter_mut().enumerate().flat_map(|(table, source)| {
        let files = source.files.as_slice();
        let columns = source.columns.iter_mut();
        columns.map(move |column| (table, files, column))
    });
    let mut jobs: Vec<_> = columns.collect();
    // The columns of the longest table first, so that no thread is left with one at last.
    jobs.sort_by_key(|(_, files, _)| Reverse(files.last().map_or(0, |f| f.rows.end)));
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
    /// Appends the column of every file. What fails is filled with defaults.
    fn load(&mut self, files: &[Part]) -> Vec<Failure> {
        let mut failures = Vec::new();
        for (index, part) in files.iter().enumerate() {
            if let Err((good, reason)) = part.read(self.name, self.values) {
                self.values.truncate(good);
                failures.push(Failure {
                    file: index,
                    column: self.name,
                    rows: good..part.rows.end,
                    reason,
                });
            }
            self.values.resize(part.rows.end);
        }
        failures
    }
}

impl Part {
    /// Appends a column. The error is the rows up to which its values are good, and why there are no more.
    fn read(
        &self,
        column: &'static str,
        values: &mut dyn ColumnValues,
    ) -> Result<(), (usize, String)> {
        let first = self.rows.start;
        if !self.file.has(column) {
            return match values.nullable() {
                true => Ok(()),
                false => Err((first, "the file has no such column".to_owned())),
            };
        }
        let batches = self.file.read(&[column], None, BATCH_ROWS);
        for batch in batches.map_err(|reason| (first, reason))? {
            let good = values.rows();
            let batch = batch.map_err(|reason| (good, reason))?;
            if !values.append_array(batch.column(0).as_ref()) {
                let held = batch.column(0).data_type();
                return Err((good, format!("it is of type {held}, or lacks values")));
            }
        }
        match values.rows() == self.rows.end {
            true => Ok(()),
            // Which of them are missing cannot be told.
            false => Err((
                first,
                "it has another number of rows than its file says".to_owned(),
            )),
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
        for part in self.files.drain(..) {
            diagnostics.push(Diagnostic::UnreadableFile {
                table: self.table,
                path: part.file.path().to_owned(),
                reason: format!("there is not enough memory for {rows} rows"),
            });
        }
    }

    /// Reports failures, and removes the rows that mean nothing because of them.
    fn settle(&mut self, failures: Vec<Failure>, diagnostics: &mut Vec<Diagnostic>) {
        // What a row needs and the file lacks: of each file the column that ends first.
        let mut cut: Vec<Failure> = Vec::new();
        for failure in failures {
            let mut columns = self.columns.iter();
            if columns.any(|c| c.name == failure.column && !c.values.nullable()) {
                match cut.last_mut().filter(|last| last.file == failure.file) {
                    Some(last) if last.rows.start <= failure.rows.start => {}
                    Some(last) => *last = failure,
                    None => cut.push(failure),
                }
            } else {
                diagnostics.push(Diagnostic::UnreadableColumn {
                    table: self.table,
                    path: self.files[failure.file].file.path().to_owned(),
                    column: failure.column,
                    reason: failure.reason,
                    rows: failure.rows.len(),
                });
            }
        }
        for failure in cut.iter().rev() {
            for column in &mut self.columns {
                column.values.remove(failure.rows.clone());
            }
        }
        for failure in cut {
            diagnostics.push(Diagnostic::UnreadableRows {
                table: self.table,
                path: self.files[failure.file].file.path().to_owned(),
                column: failure.column,
                reason: failure.reason,
                rows: failure.rows.len(),
            });
        }
    }
}
