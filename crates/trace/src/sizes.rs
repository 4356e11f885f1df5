//! Sizes of a trace's tables, without reading their rows.

use crate::reader::find_parts;
use crate::tables::*;
use crate::version1::has_table;
use crate::{Error, for_each_table, part};
use parquet::file::reader::{FileReader, SerializedFileReader};
use std::fs::File;
use std::path::{Path, PathBuf};

/// The size of a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableSize {
    /// Its name.
    pub table: &'static str,
    /// Its rows; absent when a file of it is damaged or missing.
    pub rows: Option<u64>,
    /// Bytes of its files.
    pub bytes: u64,
}

/// The sizes of all tables that a trace of `format_version` has, the trace `folder`; of its closed parts while it is not
/// complete.
///
/// # Errors
/// The folder cannot be read.
pub fn table_sizes(folder: &Path, format_version: u32) -> Result<Vec<TableSize>, Error> {
    let parts = find_parts(folder)?;
    let from_parts = folder.join(part::FOLDER).is_dir();
    let files = |table: &str| match from_parts {
        true => parts.get(table).cloned().unwrap_or_default(),
        false => vec![folder.join(format!("{table}.parquet"))],
    };
    let mut sizes = Vec::new();
    macro_rules! add {
        ($($field:ident: $table:ty,)+) => {$(
            let name = <$table>::NAME;
            if has_table(format_version, name) {
                sizes.push(size(name, &files(name)));
            }
        )+};
    }
    for_each_table!(add);
    Ok(sizes)
}

fn size(table: &'static str, files: &[PathBuf]) -> TableSize {
    let bytes = files.iter().filter_map(|file| file.metadata().ok());
    TableSize {
        table,
        rows: files.iter().map(|file| rows(file)).sum(),
        bytes: bytes.map(|facts| facts.len()).sum(),
    }
}

fn rows(file: &Path) -> Option<u64> {
    let reader = SerializedFileReader::new(File::open(file).ok()?).ok()?;
    u64::try_from(reader.metadata().file_metadata().num_rows()).ok()
}
