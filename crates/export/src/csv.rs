//! CSV, a file for each table: RFC 4180 with `\n`, a header, and nothing where a value is unknown.

use crate::exported::{Exported, Rows};
use crate::in_order::in_order;
use gapscope_trace::tables::*;
use gapscope_trace::{Selection, Trace, for_each_table};
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

/// Why no CSV was written.
#[derive(Debug, thiserror::Error)]
#[error("{} cannot be written: {source}", path.display())]
pub struct Error {
    /// The file or folder.
    pub path: PathBuf,
    /// What the system says.
    pub source: io::Error,
}

/// One of several traces in one folder: every table begins with a column for its rank.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OfRank {
    /// The rank; absent of what has none.
    pub rank: Option<u32>,
    /// The folder has no trace so far.
    pub first: bool,
}

/// Writes a trace into a folder, which must not exist: `TABLE.csv` for each table, and the manifest as `trace.json`.
///
/// # Errors
/// The folder is there already, or a file cannot be written; then nothing is left.
pub fn write(trace: &Trace, folder: &Path) -> Result<Exported, Error> {
    fs::create_dir(folder).map_err(failed(folder))?;
    let each = |take: &mut (dyn FnMut(&Dispatches) + Send)| {
        take(&trace.tables.dispatches);
        Some(())
    };
    let write_all = || {
        let written = write_pieces(trace, each, folder, None)?;
        let mut exported = written.map(|(exported, ())| exported).unwrap_or_default();
        for alone in alone() {
            exported.rows.push(alone.write(trace, folder, None)?);
        }
        Ok(exported)
    };
    write_all().inspect_err(|_| {
        // It was made above, so nothing of anybody else is in it.
        let _ = fs::remove_dir_all(folder);
    })
}

/// A table that nothing refers to. So it can be read and written by itself, and no two of them need be in memory.
pub struct Alone {
    /// It, and what is needed to look into its ids.
    pub selection: Selection,
    name: &'static str,
    write: fn(&Trace, &mut File, Option<OfRank>) -> io::Result<u64>,
}

/// All tables that nothing refers to, but for that of dispatches.
pub fn alone() -> Vec<Alone> {
    let mut all = Vec::new();
    macro_rules! list {
        ($($field:ident: $table:ty,)+) => {$(
            if is_alone::<$table>() {
                all.push(Alone {
                    selection: Selection::referred_to().with::<$table>(),
                    name: <$table>::NAME,
                    write: |trace, file, of| write_table(&trace.tables.$field, file, of),
                });
            }
        )+};
    }
    for_each_table!(list);
    all
}

fn is_alone<T: Table>() -> bool {
    T::NAME != Dispatches::NAME && !Selection::is_referred_to(T::NAME)
}

/// What [`write_pieces`] writes.
pub fn together() -> Selection {
    let mut together = Selection::all();
    macro_rules! leave_out {
        ($($field:ident: $table:ty,)+) => {$(
            if is_alone::<$table>() {
                together = together.without::<$table>();
            }
        )+};
    }
    for_each_table!(leave_out);
    together
}

impl Alone {
    /// Writes the table of a trace into a folder that is there.
    ///
    /// # Errors
    /// Its file cannot be written.
    pub fn write(&self, trace: &Trace, folder: &Path, of: Option<OfRank>) -> Result<Rows, Error> {
        let path = folder.join(format!("{}.csv", self.name));
        let written =
            open(&path, is_first(of)).and_then(|mut file| (self.write)(trace, &mut file, of));
        Ok(Rows {
            table: self.name,
            drawn: written.map_err(failed(&path))?,
            without_times: 0,
        })
    }
}

/// Writes the tables of a trace that are not [`alone`] into a folder that is there, and its manifest, of a rank as `trace.rank=N.json`. Its dispatches are not in their
/// table: `each` hands them over piece by piece, in their order. `None` where it gives none, and then nothing is left;
/// otherwise with what it gave.
///
/// # Errors
/// A file cannot be written.
pub fn write_pieces<R>(
    trace: &Trace,
    each: impl Fn(&mut (dyn FnMut(&Dispatches) + Send)) -> Option<R>,
    folder: &Path,
    of: Option<OfRank>,
) -> Result<Option<(Exported, R)>, Error> {
    let mut exported = Exported::default();
    let mut count = |table, rows| {
        exported.rows.push(Rows {
            table,
            drawn: rows,
            without_times: 0,
        });
    };
    let path = folder.join(format!("{}.csv", Dispatches::NAME));
    let length = path.metadata().map_or(0, |file| file.len());
    let write_dispatches = || {
        let mut out = BufWriter::with_capacity(BUFFER, open(&path, is_first(of))?);
        write_head::<Dispatches>(of, &mut out)?;
        let before = before(of);
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
        // They are given again, in another way.
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
    macro_rules! write_tables {
        ($($field:ident: $table:ty,)+) => {$({
            let name = <$table>::NAME;
            if Selection::is_referred_to(name) {
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

fn failed(path: &Path) -> impl FnOnce(io::Error) -> Error {
    let path = path.to_owned();
    move |source| Error { path, source }
}

const BUFFER: usize = 1 << 20;

/// Opens a file that must not be there, or, `new` not being so, to write on at its end.
fn open(path: &Path, new: bool) -> io::Result<File> {
    match new {
        true => File::create_new(path),
        false => File::options().append(true).open(path),
    }
}

/// Whether the folder has no trace so far.
fn is_first(of: Option<OfRank>) -> bool {
    of.is_none_or(|of| of.first)
}

/// What stands before each row.
fn before(of: Option<OfRank>) -> String {
    of.map_or(String::new(), |of| match of.rank {
        Some(rank) => format!("{rank},"),
        None => ",".to_owned(),
    })
}

/// Writes a table, and gives how many rows it has.
fn write_table<T: Table + Sync>(table: &T, file: &mut File, of: Option<OfRank>) -> io::Result<u64> {
    let mut out = BufWriter::with_capacity(BUFFER, file);
    write_head::<T>(of, &mut out)?;
    write_rows(table, &before(of), &mut out)?;
    out.flush()?;
    Ok(table.len() as u64)
}

fn write_head<T: Table>(of: Option<OfRank>, out: &mut impl Write) -> io::Result<()> {
    let columns = T::COLUMNS.join(",");
    match of {
        None => writeln!(out, "{columns}"),
        Some(OfRank { first: true, .. }) => writeln!(out, "rank,{columns}"),
        Some(_) => Ok(()),
    }
}

/// Rows that are made text at once.
const CHUNK: usize = 4096;

/// Writes the rows of a table, each behind `before`.
fn write_rows<T: Table + Sync>(
    table: &T,
    before: &str,
    out: &mut (impl Write + Send),
) -> io::Result<()> {
    let rows = table.len();
    let chunks = (0..rows).step_by(CHUNK);
    in_order(out, chunks, |first, bytes| {
        let mut value = String::new();
        for row in first..rows.min(first + CHUNK) {
            bytes.extend_from_slice(before.as_bytes());
            for column in 0..T::COLUMNS.len() {
                if column > 0 {
                    bytes.push(b',');
                }
                value.clear();
                if table.write_text(row, column, &mut value) {
                    write_text(&value, bytes);
                }
            }
            bytes.push(b'\n');
        }
        Ok(())
    })
}

/// An empty text is quoted, unlike an unknown one.
fn write_text(text: &str, out: &mut Vec<u8>) {
    let plain = !text.is_empty() && !text.contains(['"', ',', '\n', '\r']);
    match plain {
        true => out.extend_from_slice(text.as_bytes()),
        false => out.extend_from_slice(format!("\"{}\"", text.replace('"', "\"\"")).as_bytes()),
    }
}
