//! What is wrong with a trace that can still be read.

use crate::damage::Damage;
use crate::manifest::{self, Manifest};
use std::path::{Path, PathBuf};

/// A problem that reading a trace met and that a report on it should state. Each prints as one sentence.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Diagnostic {
    /// The recording is running, or the process that writes the trace was killed.
    #[error(
        "the recording was not completed: rows after its last checkpoint are missing (`gapscope recover` may have them)"
    )]
    Unfinished,
    /// There are tables but no manifest.
    #[error("{} is missing: what it says of the recording as a whole is unknown", path.display())]
    NoManifest {
        /// Where the manifest should be.
        path: PathBuf,
    },
    /// The manifest differs from the one that was written.
    #[error("{} was changed or damaged after it was written: what it says may be wrong", path.display())]
    AlteredManifest {
        /// Path of the manifest.
        path: PathBuf,
    },
    /// A table has no file.
    #[error("{} is missing: its rows are unknown", path.display())]
    MissingFile {
        /// The name of the table.
        table: &'static str,
        /// Where the file should be.
        path: PathBuf,
    },
    /// A file cannot be read; it may be cut off.
    #[error("{} cannot be read ({reason}): its rows are missing", path.display())]
    UnreadableFile {
        /// The name of the table.
        table: &'static str,
        /// The path of the table's file.
        path: PathBuf,
        /// The damage that ends the reading.
        reason: Damage,
    },
    /// A column that rows cannot do without is missing, of another type, or damaged.
    #[error("{}: column {column} cannot be read ({reason}): {rows} rows are missing", path.display())]
    UnreadableRows {
        /// The name of the table.
        table: &'static str,
        /// The path of the table's file.
        path: PathBuf,
        /// The name of the column.
        column: &'static str,
        /// The damage that ends the reading.
        reason: Damage,
        /// Rows that are missing: from the damage to the end of the file.
        rows: usize,
    },
    /// A column that rows can do without is of another type or damaged.
    #[error("{}: column {column} cannot be read ({reason}): it is unknown in {rows} rows", path.display())]
    UnreadableColumn {
        /// The name of the table.
        table: &'static str,
        /// The path of the table's file.
        path: PathBuf,
        /// The name of the column.
        column: &'static str,
        /// The damage that ends the reading.
        reason: Damage,
        /// Rows without the column: from the damage to the end of the file.
        rows: usize,
    },
    /// Rows refer to ids that the trace does not have.
    #[error("{table}: the trace does not know the {column} of {rows} row(s), such as {example}")]
    UnknownId {
        /// The name of the table.
        table: &'static str,
        /// The column with the ids.
        column: &'static str,
        /// Number of such rows.
        rows: usize,
        /// One of the unknown ids.
        example: u64,
    },
}

impl Diagnostic {
    /// Returns true where something that was written is missing, damaged or altered, as opposed to never recorded.
    pub fn is_damage(&self) -> bool {
        !matches!(self, Diagnostic::Unfinished | Diagnostic::UnknownId { .. })
    }

    /// Returns the diagnostic for the manifest of the trace `folder`, if there is one.
    pub fn for_manifest(folder: &Path, manifest: &Manifest) -> Option<Diagnostic> {
        let path = || folder.join(manifest::FILE_NAME);
        manifest
            .altered
            .then(|| Diagnostic::AlteredManifest { path: path() })
    }
}
