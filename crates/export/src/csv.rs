//! CSV, a file for each table: RFC 4180 with `\n`, a header, and nothing where a value is unknown.

use crate::exported::{Exported, Rows};
use crate::in_order::in_order;
use gapscope_trace::tables::*;
use gapscope_trace::{Trace, for_each_table};
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

/// Writes a trace into a folder, which must not exist: `TABLE.csv` for each table, and the manifest as `trace.json`.
///
/// # Errors
/// The folder is there already, or a file cannot be written; then nothing is left.
pub fn write(trace: &Trace, folder: &Path) -> Result<Exported, Error> {
    let each = |take: &mut (dyn FnMut(&Dispatches) + Send)| {
        take(&trace.tables.dispatches);
        Some(())
    };
    let written = write_pieces(trace, each, folder)?;
    Ok(written.map(|(exported, ())| exported).unwrap_or_default())
}

/// The same of a trace whose dispatches are not in its table: `each` hands them over piece by piece, in their order. `None`
/// where it gives none, and then nothing is left; otherwise with what it gave.
///
/// # Errors
/// Those of [`write`].
pub fn write_pieces<R>(
    trace: &Trace,
    each: impl Fn(&mut (dyn FnMut(&Dispatches) + Send)) -> Option<R>,
    folder: &Path,
) -> Result<Option<(Exported, R)>, Error> {
    fs::create_dir(folder).map_err(failed(folder))?;
    let written = write_all(trace, each, folder, None);
    if !matches!(written, Ok(Some(_))) {
        // It was made above, so nothing of anybody else is in it.
        let _ = fs::remove_dir_all(folder);
    }
    written
}

/// One of several traces in one folder: every table begins with a column for its rank.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OfRank {
    /// The rank; absent of what has none.
    pub rank: Option<u32>,
    /// The folder has no trace so far.
    pub first: bool,
}

/// The same into a folder that is there, behind the rows of the traces before. The manifest of a rank is `trace.rank=N.json`.
///
/// # Errors
/// A file cannot be written.
pub fn add_pieces<R>(
    trace: &Trace,
    each: impl Fn(&mut (dyn FnMut(&Dispatches) + Send)) -> Option<R>,
    folder: &Path,
    of: OfRank,
) -> Result<Option<(Exported, R)>, Error> {
    write_all(trace, each, folder, Some(of))
}

fn write_all<R>(
    trace: &Trace,
    each: impl Fn(&mut (dyn FnMut(&Dispatches) + Send)) -> Option<R>,
    folder: &Path,
    of: Option<OfRank>,
) -> Result<Option<(Exported, R)>, Error> {
    let mut exported = Exported::default();
    let first = of.is_none_or(|of| of.first);
    let before = match of {
        None => String::new(),
        Some(OfRank { rank, .. }) => rank.map_or(",".to_owned(), |rank| format!("{rank},")),
    };
    let path_of = |table: &str| folder.join(format!("{table}.csv"));
    let path = path_of(Dispatches::NAME);
    let mut read = None;
    let mut count = 0;
    let length = path.metadata().map_or(0, |file| file.len());
    write_file(&path, first, |out| {
        write_head::<Dispatches>(of, out)?;
        let mut result = Ok(());
        read = each(&mut |piece| {
            count += piece.len() as u64;
            if result.is_ok() {
                result = write_rows(piece, &before, out);
            }
        });
        result
    })
    .map_err(failed(&path))?;
    let Some(read) = read else {
        // They are given again, in another way.
        let begun = match first {
            true => fs::remove_file(&path),
            false => File::options()
                .write(true)
                .open(&path)
                .and_then(|file| file.set_len(length)),
        };
        begun.map_err(failed(&path))?;
        return Ok(None);
    };
    macro_rules! write_tables {
        ($($field:ident: $table:ty,)+) => {$({
            if <$table>::NAME != Dispatches::NAME {
                let path = path_of(<$table>::NAME);
                count = trace.tables.$field.len() as u64;
                write_file(&path, first, |out| {
                    write_head::<$table>(of, out)?;
                    write_rows(&trace.tables.$field, &before, out)
                })
                .map_err(failed(&path))?;
            }
            exported.rows.push(Rows {
                table: <$table>::NAME,
                drawn: count,
                without_times: 0,
            });
        })+};
    }
    for_each_table!(write_tables);
    let manifest = match of.and_then(|of| of.rank) {
        Some(rank) => format!("trace.rank={rank}.json"),
        None => "trace.json".to_owned(),
    };
    let path = folder.join(manifest);
    write_file(&path, true, |out| {
        serde_json::to_writer_pretty(&mut *out, &trace.manifest)?;
        out.write_all(b"\n")
    })
    .map_err(failed(&path))?;
    Ok(Some((exported, read)))
}

fn failed(path: &Path) -> impl FnOnce(io::Error) -> Error {
    let path = path.to_owned();
    move |source| Error { path, source }
}

/// Writes a file that must not be there, or, `new` not being so, on at its end.
fn write_file(
    path: &Path,
    new: bool,
    write: impl FnOnce(&mut BufWriter<File>) -> io::Result<()>,
) -> io::Result<()> {
    let file = match new {
        true => File::create_new(path)?,
        false => File::options().append(true).open(path)?,
    };
    let mut out = BufWriter::with_capacity(1 << 20, file);
    write(&mut out)?;
    out.flush()
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
