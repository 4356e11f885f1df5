//! Measures the sizes of a trace's tables without reading their rows.

use crate::damage::Damage;
use crate::manifest::FORMAT_VERSION;
use crate::reader::{find_parts, load};
use crate::table_file::TableFile;
use crate::tables::*;
use crate::versions::{has_table, is_optional};
use crate::{Diagnostic, Error, for_each_table, part};
use gapscope_files::ContainedPath;
use std::path::Path;

/// The size of a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableSize {
    /// Name of the table.
    pub table: &'static str,
    /// Number of rows; absent when one of its files is missing or cannot be read.
    pub rows: Option<u64>,
    /// The file that cannot be read and the reason, as a sentence.
    pub unread: Option<String>,
    /// Bytes of the table's files.
    pub bytes: u64,
}

/// Returns the sizes of all tables that the trace `folder` of `format_version` has; while it is incomplete, those of
/// the parts (files with some of a table's rows) that are written whole.
///
/// # Errors
/// The folder cannot be read.
pub fn table_sizes(folder: &Path, format_version: u32) -> Result<Vec<TableSize>, Error> {
    let parts = find_parts(folder)?;
    let from_parts = ContainedPath::new(folder, part::PARTS_FOLDER).is_folder();
    let files = |table: &str| match from_parts {
        true => parts.get(table).cloned().unwrap_or_default(),
        false => vec![ContainedPath::new(folder, format!("{table}.parquet"))],
    };
    let mut sizes = Vec::new();
    macro_rules! add {
        ($($field:ident: $table:ty,)+) => {$(
            let name = <$table>::NAME;
            let of_table = files(name);
            let is_there = !is_optional(name) || of_table.iter().any(|file| file.exists());
            if has_table(format_version, name) && is_there {
                sizes.push(size::<$table>(&of_table, format_version));
            }
        )+};
    }
    for_each_table!(add);
    Ok(sizes)
}

/// Returns the size of a table with these files.
fn size<T: Table>(files: &[ContainedPath], format_version: u32) -> TableSize {
    let bytes = files.iter().filter_map(|file| file.bytes().ok());
    // Tables of before lack columns of today, which reading makes up for.
    let is_of_today = format_version == FORMAT_VERSION;
    let opened = files.iter().map(|file| match is_of_today {
        true => open::<T>(file),
        false => load::open::<T>(file),
    });
    let opened: Result<Vec<_>, _> = opened.collect();
    let rows = opened
        .as_ref()
        .map(|files| files.iter().map(|file| file.rows() as u64).sum());
    TableSize {
        table: T::NAME,
        rows: rows.ok(),
        unread: opened.err().map(|diagnostic| diagnostic.to_string()),
        bytes: bytes.sum(),
    }
}

/// Opens a file of a table. A file without a column that every row has is another table's, and says nothing of this one's rows.
fn open<T: Table>(path: &ContainedPath) -> Result<TableFile, Diagnostic> {
    let file = load::open::<T>(path)?;
    let mut table = T::default();
    let columns = T::COLUMNS.iter().zip(table.columns_mut());
    let mut missing = columns.filter(|(name, values)| !values.nullable() && !file.has(name));
    match missing.next() {
        Some((column, _)) => Err(Diagnostic::UnreadableFile {
            table: T::NAME,
            path: path.path().to_owned(),
            reason: Damage::Column { column },
        }),
        None => Ok(file),
    }
}
