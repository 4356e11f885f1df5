//! Describes tables of which rows or columns could not be read.

use crate::Diagnostic;
use crate::damage::Damage;
use schemars::JsonSchema;
use serde::Serialize;
use std::fmt;
use std::path::Path;

/// A table that a trace should have, and of which rows or a column could not be read. Findings that rest on it are
/// unknown.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct UnreadTable {
    /// The table.
    pub table: &'static str,
    /// Name of the table's file.
    pub file: String,
    /// The column; absent where the whole file cannot be read.
    pub column: Option<&'static str>,
    /// Why, as the end of a sentence.
    pub reason: String,
    /// Rows of the table that could be read.
    pub rows_read: u64,
    /// Rows that are missing; absent where their number is unknown, 0 where only values of `column` are missing.
    pub rows_missing: Option<u64>,
}

impl UnreadTable {
    /// Converts a diagnostic about a table. `rows_read` returns the rows of a table that could be read.
    pub(crate) fn from_diagnostic(
        diagnostic: &Diagnostic,
        rows_read: impl Fn(&str) -> Option<usize>,
    ) -> Option<UnreadTable> {
        let (table, path, column, reason, rows_missing) = match diagnostic {
            Diagnostic::MissingFile { table, path } => (table, path, None, &Damage::Missing, None),
            Diagnostic::UnreadableFile {
                table,
                path,
                reason,
            } => (table, path, None, reason, None),
            Diagnostic::UnreadableRows {
                table,
                path,
                column,
                reason,
                rows,
            } => (table, path, Some(*column), reason, Some(*rows)),
            Diagnostic::UnreadableColumn {
                table,
                path,
                column,
                reason,
                ..
            } => (table, path, Some(*column), reason, Some(0)),
            _ => return None,
        };
        Some(UnreadTable {
            table,
            file: file_name(path),
            column,
            reason: reason.to_string(),
            rows_read: rows_read(table).unwrap_or(0) as u64,
            rows_missing: rows_missing.map(|rows| rows as u64),
        })
    }

    /// Returns true where rows are missing, as opposed to values of one column.
    pub fn lacks_rows(&self) -> bool {
        self.rows_missing != Some(0)
    }
}

fn file_name(path: &Path) -> String {
    let name = path.file_name().unwrap_or(path.as_os_str());
    name.to_string_lossy().into_owned()
}

/// Formats a clause: "dispatches.parquet cannot be read (its end is missing)".
impl fmt::Display for UnreadTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let UnreadTable {
            file,
            column,
            reason,
            ..
        } = self;
        match column {
            None => write!(f, "{file} cannot be read ({reason})"),
            Some(column) => write!(f, "column {column} of {file} cannot be read ({reason})"),
        }
    }
}
