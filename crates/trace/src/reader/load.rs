//! Loads columns from Parquet files, several at once.

use crate::column::{ColumnValues, Texts};
use crate::parallel;
use crate::table::Table;
use crate::table_file::{MOST_ROWS, OpenError, ReadError, TableFile};
use crate::{Diagnostic, Error};
use std::cmp::Reverse;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

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
}

struct Column<'a> {
    name: &'static str,
    values: &'a mut dyn ColumnValues,
    /// How much of each file was read.
    read: Vec<Read>,
}

/// How much of a file's column was read.
struct Read {
    /// Rows with good values, from the file's first row on.
    rows: usize,
    /// Why reading ended early.
    failed: Option<String>,
}

/// Why reading ends.
enum Stop {
    /// The column has this many good values, and no more for this reason.
    Column(usize, String),
    Memory,
}

impl<'a> Source<'a> {
    /// Reads the footers of `paths`, files of `table`, and leaves out those that are unreadable. Only the columns
    /// that `selected` accepts are filled; the others stay empty.
    pub fn open<T: Table>(
        paths: Vec<PathBuf>,
        table: &'a mut T,
        selected: impl Fn(&'static str) -> bool,
        diagnostics: &mut Vec<Diagnostic>,
    ) -> Source<'a> {
        let mut files: Vec<Part> = Vec::new();
        for path in paths {
            let before = files.iter().map(|part| part.file.rows()).sum();
            match Part::open::<T>(&path, before) {
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
                .map(|(name, values)| Column {
                    name,
                    values,
                    read: Vec::new(),
                })
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
    fn open<T: Table>(path: &Path, before: usize) -> Result<Part, Diagnostic> {
        let file = open::<T>(path)?;
        if file.rows() > MOST_ROWS - before {
            return Err(Diagnostic::UnreadableFile {
                table: T::NAME,
                path: path.to_owned(),
                reason: format!("its table would have more than {MOST_ROWS} rows"),
            });
        }
        Ok(Part { file })
    }

    /// Appends a column, which shall have rows for `space` in the end.
    fn read(
        &self,
        column: &'static str,
        values: &mut dyn ColumnValues,
        texts: &mut Texts,
        space: usize,
    ) -> Result<(), Stop> {
        if !self.file.has(column) {
            return match values.nullable() {
                true => Ok(()),
                false => Err(Stop::Column(0, "the file has no such column".to_owned())),
            };
        }
        // Nothing tells which rows are missing.
        let other_number = || {
            Stop::Column(
                0,
                "it has another number of rows than its file says".to_owned(),
            )
        };
        let (first, all) = (values.rows(), self.file.rows());
        let batches = self.file.read(&[column], None, BATCH_ROWS);
        for batch in batches.map_err(|reason| Stop::Column(0, reason))? {
            let good = values.rows() - first;
            let batch = batch.map_err(|error| match error {
                ReadError::Damaged(reason) => Stop::Column(good, reason),
                ReadError::Memory => Stop::Memory,
            })?;
            if batch.num_rows() > all - good {
                return Err(other_number());
            }
            if !values.reserve(batch.num_rows(), space) {
                return Err(Stop::Memory);
            }
            if !values.append_array(batch.column(0).as_ref(), texts) {
                let held = batch.column(0).data_type();
                let reason = format!("it is of type {held}, or lacks values");
                return Err(Stop::Column(good, reason));
            }
        }
        match values.rows() - first == all {
            true => Ok(()),
            false => Err(other_number()),
        }
    }
}

/// Fills the columns of all tables.
///
/// # Errors
/// They take more memory than allowed.
pub(super) fn load(
    mut tables: Vec<Source<'_>>,
    diagnostics: &mut Vec<Diagnostic>,
) -> Result<(), Error> {
    let columns = tables.iter_mut().flat_map(|source| {
        let files = source.files.as_slice();
        source.columns.iter_mut().map(move |column| (files, column))
    });
    let mut jobs: Vec<_> = columns.collect();
    // The columns of the longest table come first, so that no thread ends with one of them.
    jobs.sort_by_key(|(files, _)| Reverse(rows(files)));
    let stopped = AtomicBool::new(false);
    parallel::each(jobs, |(files, column)| column.load(files, &stopped))
        .into_iter()
        .collect::<Result<(), Error>>()?;
    for table in &mut tables {
        table.settle(diagnostics);
    }
    Ok(())
}

/// Returns the number of rows of all files of a table, according to their footers.
fn rows(files: &[Part]) -> usize {
    files.iter().map(|part| part.file.rows()).sum()
}

impl Column<'_> {
    /// Appends the column of every file, as far as it can be read.
    fn load(&mut self, files: &[Part], stopped: &AtomicBool) -> Result<(), Error> {
        let mut texts = Texts::default();
        for (at, part) in files.iter().enumerate() {
            // Memory that another column gave back is not for this one.
            if stopped.load(Ordering::Relaxed) {
                break;
            }
            let first = self.values.rows();
            let all = first + rows(&files[at..]);
            let failed = match part.read(self.name, self.values, &mut texts, all) {
                Ok(()) => None,
                Err(Stop::Column(good, reason)) => {
                    self.values.truncate(first + good);
                    Some(reason)
                }
                Err(Stop::Memory) => {
                    stopped.store(true, Ordering::Relaxed);
                    return Err(Error::memory(part.file.path()));
                }
            };
            let rows = self.values.rows() - first;
            self.read.push(Read { rows, failed });
        }
        Ok(())
    }

    /// Truncates the rows of each file, or fills them up with defaults, to the number in `kept`.
    fn fit(&mut self, kept: &[usize]) {
        let mut end = self.values.rows();
        // Going backwards keeps earlier rows at their positions.
        for (read, kept) in self.read.iter().zip(kept).rev() {
            let first = end - read.rows;
            match read.rows > *kept {
                true => self.values.remove(first + kept..end),
                false => self.values.insert(end, kept - read.rows),
            }
            end = first;
        }
    }
}

impl Source<'_> {
    /// Gives all columns the same rows: those that have everything a row needs. Reports what is missing.
    fn settle(&mut self, diagnostics: &mut Vec<Diagnostic>) {
        let files = self.files.iter().enumerate();
        let kept = files.map(|(at, part)| self.kept(at, part, diagnostics));
        let kept: Vec<usize> = kept.collect();
        for column in &mut self.columns {
            column.fit(&kept);
        }
    }

    /// Returns the number of rows to keep of the file at `at`.
    fn kept(&self, at: usize, part: &Part, diagnostics: &mut Vec<Diagnostic>) -> usize {
        let (table, path) = (self.table, part.file.path());
        let missing = |column: &Column| part.file.rows() - column.read[at].rows;
        for column in self.columns.iter().filter(|c| c.values.nullable()) {
            if let Some(reason) = &column.read[at].failed {
                diagnostics.push(Diagnostic::UnreadableColumn {
                    table,
                    path: path.to_owned(),
                    column: column.name,
                    reason: reason.clone(),
                    rows: missing(column),
                });
            }
        }
        let needed = self.columns.iter().filter(|c| !c.values.nullable());
        let Some(first_end) = needed.min_by_key(|column| column.read[at].rows) else {
            // No column is required, so the longest optional one decides.
            let rows = self.columns.iter().map(|column| column.read[at].rows);
            return rows.max().unwrap_or(0);
        };
        if let Some(reason) = &first_end.read[at].failed {
            diagnostics.push(Diagnostic::UnreadableRows {
                table,
                path: path.to_owned(),
                column: first_end.name,
                reason: reason.clone(),
                rows: missing(first_end),
            });
        }
        first_end.read[at].rows
    }
}
