//! CSV, a file for each table: RFC 4180 with `\n`, a header, and nothing where a value is unknown.

use crate::exported::{Exported, Rows};
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
    fs::create_dir(folder).map_err(failed(folder))?;
    write_all(trace, folder).inspect_err(|_| {
        // It was made above, so nothing of anybody else is in it.
        let _ = fs::remove_dir_all(folder);
    })
}

fn write_all(trace: &Trace, folder: &Path) -> Result<Exported, Error> {
    let mut exported = Exported::default();
    macro_rules! write_tables {
        ($($field:ident: $table:ty,)+) => {$({
            let path = folder.join(format!("{}.csv", <$table>::NAME));
            write_file(&path, |out| write_table(&trace.tables.$field, out)).map_err(failed(&path))?;
            exported.rows.push(Rows {
                table: <$table>::NAME,
                drawn: trace.tables.$field.len() as u64,
                without_times: 0,
            });
        })+};
    }
    for_each_table!(write_tables);
    let path = folder.join("trace.json");
    write_file(&path, |out| {
        serde_json::to_writer_pretty(&mut *out, &trace.manifest)?;
        out.write_all(b"\n")
    })
    .map_err(failed(&path))?;
    Ok(exported)
}

fn failed(path: &Path) -> impl FnOnce(io::Error) -> Error {
    let path = path.to_owned();
    move |source| Error { path, source }
}

fn write_file(
    path: &Path,
    write: impl FnOnce(&mut BufWriter<File>) -> io::Result<()>,
) -> io::Result<()> {
    let mut out = BufWriter::with_capacity(1 << 20, File::create_new(path)?);
    write(&mut out)?;
    out.flush()
}

/// Writes one table.
///
/// # Errors
/// Those of `out`.
fn write_table<T: Table>(table: &T, out: &mut impl Write) -> io::Result<()> {
    writeln!(out, "{}", T::COLUMNS.join(","))?;
    for row in 0..table.len() {
        let mut values = T::row_to_text(&table.row(row)).into_iter().peekable();
        for (index, column) in T::COLUMNS.iter().enumerate() {
            if index > 0 {
                out.write_all(b",")?;
            }
            if let Some((_, text)) = values.next_if(|(name, _)| name == column) {
                write_text(&text, out)?;
            }
        }
        out.write_all(b"\n")?;
    }
    Ok(())
}

/// An empty text is quoted, unlike an unknown one.
fn write_text(text: &str, out: &mut impl Write) -> io::Result<()> {
    let plain = !text.is_empty() && !text.contains(['"', ',', '\n', '\r']);
    match plain {
        true => out.write_all(text.as_bytes()),
        false => write!(out, "\"{}\"", text.replace('"', "\"\"")),
    }
}
