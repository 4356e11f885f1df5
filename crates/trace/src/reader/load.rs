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
            files,
            columns: columns
                .map(|(name, values)| Column { name, values })
                .collect(),
        }
    }
}

/// Opens the file of a table.
pub(super) fn open<T: Table>(path: &Path) -> Result<TableFile, Diagnostic> {
    TableFile::open(path, T::NAME, T::schema()).map_err(|error| {
        let path = path.to_owned();
        match error {
            OpenError::Missing => Diagnostic::MissingFile { path },
            OpenError::Unreadable(reason) => Diagnostic::UnreadableFile { path, reason },
        }
    })
}

impl Part {
    fn open<T: Table>(path: &Path, first: usize) -> Result<Part, Diagnostic> {
        let file = open::<T>(path)?;
        let Some(end) = first.checked_add(file.rows()) else {
            return Err(Diagnostic::UnreadableFile {
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
            if let Err(reason) = part.read(self.name, self.values) {
                self.values.truncate(part.rows.start);
                failures.push(Failure {
                    file: index,
                    column: self.name,
                    reason,
                });
            }
            self.values.resize(part.rows.end);
        }
        failures
    }
}

impl Part {
    fn read(&self, column: &'static str, values: &mut dyn ColumnValues) -> Result<(), String> {
        if !self.file.has(column) {
            return match values.nullable() {
                true => Ok(()),
                false => Err("the file has no such column".to_owned()),
            };
        }
        for batch in self.file.read(&[column], None, BATCH_ROWS)? {
            let batch = batch?;
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
        for part in self.files.drain(..) {
            diagnostics.push(Diagnostic::UnreadableFile {
                path: part.file.path().to_owned(),
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
            let path = file.file.path().to_owned();
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
