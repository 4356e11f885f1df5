//! Writes a trace as CSV, one file for each table: RFC 4180 with `\n` and a header. Unknown values are empty.
//!
//! [`write()`] takes a trace in memory. A caller that never holds a whole trace calls [`write_pieces`] with the
//! tables that others refer to, and then [`IndependentTable::write`] for each of the [`independent_tables`].

use crate::exported::{Exported, TableRows};
use crate::ordered_output::write_in_order;
use gapscope_trace::csv_cell::write_cell;
use gapscope_trace::tables::*;
use gapscope_trace::{Selection, Trace, create_private_folder, for_each_table};
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

/// Why a file or folder was not written.
#[derive(Debug, thiserror::Error)]
#[error("{} cannot be written: {source}", path.display())]
pub struct Error {
    /// The file or folder.
    pub path: PathBuf,
    /// The system's error.
    pub source: io::Error,
}

/// The mark of one of several traces that share a folder. Every table then begins with a column for the rank.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RankColumn {
    /// The rank; absent for a trace without one.
    pub rank: Option<u32>,
    /// Whether this is the folder's first trace.
    pub first: bool,
}

/// Writes a trace into a folder, which must not exist: `TABLE.csv` for each table, and the manifest as `trace.json`.
///
/// # Errors
/// The folder exists already, or a file cannot be written. Then nothing is left.
pub fn write(trace: &Trace, folder: &Path) -> Result<Exported, Error> {
    create_private_folder(folder).map_err(failed(folder))?;
    // The only piece is the whole table.
    let each = |take: &mut (dyn FnMut(&Dispatches) + Send)| {
        take(&trace.tables.dispatches);
        Some(())
    };
    let write_all = || {
        let written = write_pieces(trace, each, folder, None)?;
        let mut exported = written.map(|(exported, ())| exported).unwrap_or_default();
        for table in independent_tables() {
            exported.rows.push(table.write(trace, folder, None)?);
        }
        Ok(exported)
    };
    write_all().inspect_err(|_| {
        // The folder was made above, so it holds nothing of anybody else.
        let _ = fs::remove_dir_all(folder);
    })
}

/// A table that no other table refers to. It can be read and written by itself, so that no two such tables are in
/// memory together.
pub struct IndependentTable {
    /// The table, and those that its ids refer to.
    pub selection: Selection,
    /// The table's name, which is also that of its file without `.csv`.
    name: &'static str,
    /// Writes the table of a trace, and returns the number of its rows.
    write: fn(&Trace, &mut File, Option<RankColumn>) -> io::Result<u64>,
}

/// Returns all tables that no other refers to, except for that of dispatches.
pub fn independent_tables() -> Vec<IndependentTable> {
    let mut all = Vec::new();
    macro_rules! list {
        ($($field:ident: $table:ty,)+) => {$(
            if is_independent::<$table>() {
                all.push(IndependentTable {
                    selection: Selection::referenced_ids().with::<$table>(),
                    name: <$table>::NAME,
                    write: |trace, file, of| write_table(&trace.tables.$field, file, of),
                });
            }
        )+};
    }
    for_each_table!(list);
    all
}

/// Returns whether no other table refers to this one, and it is not that of dispatches.
fn is_independent<T: Table>() -> bool {
    T::NAME != Dispatches::NAME && !Selection::is_referenced(T::NAME)
}

/// Returns the tables that [`write_pieces`] writes: all but the [`independent_tables`].
pub fn referenced_tables() -> Selection {
    let mut together = Selection::all();
    macro_rules! leave_out {
        ($($field:ident: $table:ty,)+) => {$(
            if is_independent::<$table>() {
                together = together.without::<$table>();
            }
        )+};
    }
    for_each_table!(leave_out);
    together
}

impl IndependentTable {
    /// Writes the table of a trace into an existing folder, behind the rows of earlier ranks unless `of` is absent or
    /// the first.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn write(
        &self,
        trace: &Trace,
        folder: &Path,
        of: Option<RankColumn>,
    ) -> Result<TableRows, Error> {
        let path = folder.join(format!("{}.csv", self.name));
        let written =
            open(&path, is_first(of)).and_then(|mut file| (self.write)(trace, &mut file, of));
        Ok(TableRows {
            table: self.name,
            written: written.map_err(failed(&path))?,
            without_times: 0,
        })
    }
}

/// Writes the tables of a trace that are not [`independent_tables`] into an existing folder, and its manifest, which
/// for a rank is `trace.rank=N.json`. `each` is called once, with a function to which it passes the dispatches piece
/// by piece, in their order. Returns the counts of rows and the result of `each`; `None` when `each` returned
/// nothing, and then no row of this trace is left, so that the caller can begin anew.
///
/// # Errors
/// A file cannot be written.
pub fn write_pieces<R>(
    trace: &Trace,
    each: impl Fn(&mut (dyn FnMut(&Dispatches) + Send)) -> Option<R>,
    folder: &Path,
    of: Option<RankColumn>,
) -> Result<Option<(Exported, R)>, Error> {
    let mut exported = Exported::default();
    let mut count = |table, rows| {
        exported.rows.push(TableRows {
            table,
            written: rows,
            without_times: 0,
        });
    };
    let path = folder.join(format!("{}.csv", Dispatches::NAME));
    let length = path.metadata().map_or(0, |file| file.len());
    let write_dispatches = || {
        let mut out = BufWriter::with_capacity(BUFFER_BYTES, open(&path, is_first(of))?);
        write_head::<Dispatches>(of, &mut out)?;
        let before = row_prefix(of);
        let (mut rows, mut result) = (0, Ok(()));
        let read = each(&mut |piece| {
            rows += piece.len() as u64;
            if result.is_ok() {
                result = write_rows(piece, &before, &mut out);
            }
        });
        result.and_then(|()| out.flush())?;
        Ok((rows, read))
    };
    let (rows, read) = write_dispatches().map_err(failed(&path))?;
    let Some(read) = read else {
        // The dispatches will be handed over again, in another way.
        let begun = match is_first(of) {
            true => fs::remove_file(&path),
            false => File::options()
                .write(true)
                .open(&path)
                .and_then(|file| file.set_len(length)),
        };
        begun.map_err(failed(&path))?;
        return Ok(None);
    };
    count(Dispatches::NAME, rows);
    // Writes each table that another one refers to.
    macro_rules! write_tables {
        ($($field:ident: $table:ty,)+) => {$({
            let name = <$table>::NAME;
            if Selection::is_referenced(name) {
                let path = folder.join(format!("{name}.csv"));
                let written = open(&path, is_first(of))
                    .and_then(|mut file| write_table(&trace.tables.$field, &mut file, of));
                count(name, written.map_err(failed(&path))?);
            }
        })+};
    }
    for_each_table!(write_tables);
    let path = folder.join(match of.and_then(|of| of.rank) {
        Some(rank) => format!("trace.rank={rank}.json"),
        None => "trace.json".to_owned(),
    });
    let write_manifest = || {
        let mut out = BufWriter::new(open(&path, true)?);
        serde_json::to_writer_pretty(&mut out, &trace.manifest)?;
        out.write_all(b"\n")?;
        out.flush()
    };
    write_manifest().map_err(failed(&path))?;
    Ok(Some((exported, read)))
}

/// Returns a function that makes an error of this module from one about `path`.
fn failed(path: &Path) -> impl FnOnce(io::Error) -> Error {
    let path = path.to_owned();
    move |source| Error { path, source }
}

const BUFFER_BYTES: usize = 1 << 20;

/// Opens a new file, or else an existing one to append to.
fn open(path: &Path, new: bool) -> io::Result<File> {
    match new {
        true => File::create_new(path),
        false => File::options().append(true).open(path),
    }
}

/// Returns whether a trace is the only one or the first of its folder, so that its files are new.
fn is_first(of: Option<RankColumn>) -> bool {
    of.is_none_or(|of| of.first)
}

/// Returns the text that precedes each row: the rank and a comma; nothing for a trace that has the folder alone.
fn row_prefix(of: Option<RankColumn>) -> String {
    of.map_or(String::new(), |of| match of.rank {
        Some(rank) => format!("{rank},"),
        None => ",".to_owned(),
    })
}

/// Writes a table and returns the number of its rows.
fn write_table<T: Table + Sync>(
    table: &T,
    file: &mut File,
    of: Option<RankColumn>,
) -> io::Result<u64> {
    let mut out = BufWriter::with_capacity(BUFFER_BYTES, file);
    write_head::<T>(of, &mut out)?;
    write_rows(table, &row_prefix(of), &mut out)?;
    out.flush()?;
    Ok(table.len() as u64)
}

/// Writes the names of the columns, unless an earlier trace of the folder has written them.
fn write_head<T: Table>(of: Option<RankColumn>, out: &mut impl Write) -> io::Result<()> {
    let columns = T::COLUMNS.join(",");
    match of {
        None => writeln!(out, "{columns}"),
        Some(RankColumn { first: true, .. }) => writeln!(out, "rank,{columns}"),
        Some(_) => Ok(()),
    }
}

/// The number of rows that are encoded together.
const CHUNK_ROWS: usize = 4096;

/// Writes the rows of a table, each after `before`.
fn write_rows<T: Table + Sync>(
    table: &T,
    before: &str,
    out: &mut (impl Write + Send),
) -> io::Result<()> {
    let rows = table.len();
    let chunks = (0..rows).step_by(CHUNK_ROWS);
    write_in_order(out, chunks, |first, bytes| {
        let mut value = String::new();
        for row in first..rows.min(first + CHUNK_ROWS) {
            bytes.extend_from_slice(before.as_bytes());
            for column in 0..T::COLUMNS.len() {
                if column > 0 {
                    bytes.push(b',');
                }
                value.clear();
                if table.write_text(row, column, &mut value) {
                    write_cell(&value, bytes)?;
                }
            }
            bytes.push(b'\n');
        }
        Ok(())
    })
}
