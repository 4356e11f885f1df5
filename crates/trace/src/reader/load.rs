//! Loads columns from Parquet files, several at once. The input is a [`TableSource`] for each table, whose columns
//! are filled in place. A file that is damaged gives the rows before its damage. Diagnostics tell what is missing.

use crate::column::{ColumnValues, Texts};
use crate::damage::Damage;
use crate::parallel;
use crate::table::Table;
use crate::table_file::{MAX_ROWS, ReadError, TableFile};
use crate::{Diagnostic, Error};
use gapscope_files::ContainedPath;
use std::cmp::Reverse;
use std::sync::atomic::{AtomicBool, Ordering};

/// Rows that are decoded at once: their arrays stay in the processor's cache.
pub(super) const BATCH_ROWS: usize = 1 << 14;

/// A table's columns and the files that they come from.
pub(super) struct TableSource<'a> {
    table: &'static str,
    files: Vec<TableFile>,
    columns: Vec<SelectedColumn<'a>>,
}

/// A column to be filled.
struct SelectedColumn<'a> {
    name: &'static str,
    /// The column in memory.
    values: &'a mut dyn ColumnValues,
    /// How much of each file was read.
    read: Vec<ColumnRead>,
}

/// How much of a column was read from one file.
struct ColumnRead {
    /// Rows with good values, from the file's first row on.
    rows: usize,
    /// Why the rest was not read; `None` where all was.
    failed: Option<Damage>,
}

/// Why reading a column stopped.
enum ReadStop {
    /// The column has this many good values, and no more for this reason.
    Column(usize, Damage),
    /// Memory is exhausted, or would be more than the limit.
    Memory,
}

impl<'a> TableSource<'a> {
    /// Reads the footers of `paths`, files of `table`, and leaves out those that are unreadable. Only the columns
    /// that `selected` accepts are filled; the others stay empty.
    pub fn open<T: Table>(
        paths: Vec<ContainedPath>,
        table: &'a mut T,
        selected: impl Fn(&'static str) -> bool,
        diagnostics: &mut Vec<Diagnostic>,
    ) -> TableSource<'a> {
        let mut files: Vec<TableFile> = Vec::new();
        for path in paths {
            let before = files.iter().map(TableFile::rows).sum();
            match open_part::<T>(&path, before) {
                Ok(file) => files.push(file),
                Err(diagnostic) => diagnostics.push(diagnostic),
            }
        }
        let columns = T::COLUMNS.iter().zip(table.columns_mut());
        let columns = columns.filter(|(name, _)| selected(name));
        TableSource {
            table: T::NAME,
            files,
            columns: columns
                .map(|(name, values)| SelectedColumn {
                    name,
                    values,
                    read: Vec::new(),
                })
                .collect(),
        }
    }
}

/// Opens a file of a table; the error is the diagnostic for a missing or unreadable one.
pub(crate) fn open<T: Table>(path: &ContainedPath) -> Result<TableFile, Diagnostic> {
    TableFile::open(path, T::NAME, T::schema()).map_err(|damage| {
        let (table, path) = (T::NAME, path.path().to_owned());
        match damage {
            Damage::Missing => Diagnostic::MissingFile { table, path },
            reason => Diagnostic::UnreadableFile {
                table,
                path,
                reason,
            },
        }
    })
}

/// Opens a further file of a table that has `before` rows.
fn open_part<T: Table>(path: &ContainedPath, before: usize) -> Result<TableFile, Diagnostic> {
    let file = open::<T>(path)?;
    if file.rows() > MAX_ROWS - before {
        return Err(Diagnostic::UnreadableFile {
            table: T::NAME,
            path: path.path().to_owned(),
            reason: Damage::ManyRowsInTable,
        });
    }
    Ok(file)
}

/// Appends a column of a file to `values`, which will have `space` rows once all files are read. Fails with the
/// number of good values where the column ends early, and with none where nothing tells which rows are missing.
fn read_column(
    file: &TableFile,
    column: &'static str,
    values: &mut dyn ColumnValues,
    texts: &mut Texts,
    space: usize,
) -> Result<(), ReadStop> {
    if !file.has(column) {
        return match values.nullable() {
            true => Ok(()),
            false => Err(ReadStop::Column(0, Damage::NoColumn)),
        };
    }
    // Nothing tells which rows are missing.
    let other_rows = || ReadStop::Column(0, Damage::OtherRows);
    let (first, all) = (values.rows(), file.rows());
    let batches = file.read(&[column], None, BATCH_ROWS);
    for batch in batches.map_err(|damage| ReadStop::Column(0, damage))? {
        let good = values.rows() - first;
        let batch = batch.map_err(|error| match error {
            ReadError::Damaged(damage) => ReadStop::Column(good, damage),
            ReadError::Memory => ReadStop::Memory,
        })?;
        if batch.num_rows() > all - good {
            return Err(other_rows());
        }
        if !values.reserve(batch.num_rows(), space) {
            return Err(ReadStop::Memory);
        }
        if !values.append_array(batch.column(0).as_ref(), texts) {
            let held = batch.column(0).data_type().clone();
            return Err(ReadStop::Column(good, Damage::TypeOrNullsOf { held }));
        }
    }
    match values.rows() - first == all {
        true => Ok(()),
        false => Err(other_rows()),
    }
}

/// Fills the columns of all tables.
///
/// # Errors
/// They take more memory than allowed.
pub(super) fn load(
    mut tables: Vec<TableSource<'_>>,
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
fn rows(files: &[TableFile]) -> usize {
    files.iter().map(TableFile::rows).sum()
}

impl SelectedColumn<'_> {
    /// Appends the column of every file, as far as it can be read.
    fn load(&mut self, files: &[TableFile], stopped: &AtomicBool) -> Result<(), Error> {
        let mut texts = Texts::default();
        for (at, file) in files.iter().enumerate() {
            // Memory that another column gave back is not for this one.
            if stopped.load(Ordering::Relaxed) {
                break;
            }
            let first = self.values.rows();
            let all = first + rows(&files[at..]);
            let failed = match read_column(file, self.name, self.values, &mut texts, all) {
                Ok(()) => None,
                Err(ReadStop::Column(good, damage)) => {
                    self.values.truncate(first + good);
                    Some(damage)
                }
                Err(ReadStop::Memory) => {
                    stopped.store(true, Ordering::Relaxed);
                    return Err(Error::memory(file.path()));
                }
            };
            let rows = self.values.rows() - first;
            self.read.push(ColumnRead { rows, failed });
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

impl TableSource<'_> {
    /// Gives all columns the same rows: those that have everything a row needs. Reports what is missing.
    fn settle(&mut self, diagnostics: &mut Vec<Diagnostic>) {
        let files = self.files.iter().enumerate();
        let kept = files.map(|(at, file)| self.rows_to_keep(at, file, diagnostics));
        let kept: Vec<usize> = kept.collect();
        for column in &mut self.columns {
            column.fit(&kept);
        }
    }

    /// Returns the number of rows to keep of the file at `at`: the good rows of the required column that has the
    /// fewest, or where no column is required, of the column that has the most. Adds a diagnostic for each optional
    /// column that ends early, and one for the required column that ends first.
    fn rows_to_keep(
        &self,
        at: usize,
        file: &TableFile,
        diagnostics: &mut Vec<Diagnostic>,
    ) -> usize {
        let (table, path) = (self.table, file.path());
        let missing = |column: &SelectedColumn| file.rows() - column.read[at].rows;
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
