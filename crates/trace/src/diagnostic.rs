//! What a trace that opens still lacks.

use crate::manifest::Manifest;
use crate::reader::MANIFEST;
use std::path::{Path, PathBuf};

/// Something that reading a trace met and that a report on it should say. Each prints as one sentence.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Diagnostic {
    /// The recording runs, or its session was killed.
    #[error(
        "the recording was not completed: rows after its last checkpoint are missing (`gapscope recover` may have them)"
    )]
    Unfinished,
    /// There are tables without a manifest.
    #[error("{} is missing: what it says of the recording as a whole is unknown", path.display())]
    NoManifest {
        /// Where it should be.
        path: PathBuf,
    },
    /// The manifest is not as it was written.
    #[error("{} was changed or damaged after it was written: what it says may be wrong", path.display())]
    AlteredManifest {
        /// Where it is.
        path: PathBuf,
    },
    /// A table has no file.
    #[error("{} is missing: its rows are unknown", path.display())]
    MissingFile {
        /// The table.
        table: &'static str,
        /// Where it should be.
        path: PathBuf,
    },
    /// A file cannot be read, such as one that was cut off.
    #[error("{} cannot be read ({reason}): its rows are missing", path.display())]
    UnreadableFile {
        /// The table.
        table: &'static str,
        /// The file.
        path: PathBuf,
        /// Why.
        reason: String,
    },
    /// A file lacks a column, or holds it in another type or damaged, and rows mean nothing without it.
    #[error("{}: column {column} cannot be read ({reason}): {rows} rows are missing", path.display())]
    UnreadableRows {
        /// The table.
        table: &'static str,
        /// The file.
        path: PathBuf,
        /// The column.
        column: &'static str,
        /// Why.
        reason: String,
        /// Rows that are missing: those from the damage to the end of the file.
        rows: usize,
    },
    /// A file holds a column in another type or damaged, and rows may lack it.
    #[error("{}: column {column} cannot be read ({reason}): it is unknown in {rows} rows", path.display())]
    UnreadableColumn {
        /// The table.
        table: &'static str,
        /// The file.
        path: PathBuf,
        /// The column.
        column: &'static str,
        /// Why.
        reason: String,
        /// Rows without it: those from the damage to the end of the file.
        rows: usize,
    },
    /// Rows refer to something that the trace does not have.
    #[error("{table}: the trace does not know the {column} of {rows} row(s), such as {example}")]
    UnknownId {
        /// The table.
        table: &'static str,
        /// Its column.
        column: &'static str,
        /// How many rows.
        rows: usize,
        /// One of the ids.
        example: u64,
    },
}

impl Diagnostic {
    /// True where something that was written is missing, damaged or was changed, and not of what the recorder left out.
    pub fn is_damage(&self) -> bool {
        !matches!(self, Diagnostic::Unfinished | Diagnostic::UnknownId { .. })
    }

    /// What is to be said of the manifest of the trace `folder`.
    pub fn of_manifest(folder: &Path, manifest: &Manifest) -> Option<Diagnostic> {
        let path = || folder.join(MANIFEST);
        manifest
            .altered
            .then(|| Diagnostic::AlteredManifest { path: path() })
    }
}
