//! Imports files through the library's public interface.

use gapscope_import::{Error, Options, import as import_files};
use gapscope_trace::tables::Table;
use gapscope_trace::{LossKind, Selection, Trace};
use std::path::Path;

/// Access to the rows of a table.
pub trait Rows: Table {
    fn iter(&self) -> impl Iterator<Item = Self::Row> {
        (0..self.len()).map(|index| self.row(index))
    }
}

impl<T: Table> Rows for T {}

/// The result of an import with its trace as a reader finds it.
#[derive(Debug)]
pub struct Import {
    pub trace: Trace,
}

impl Import {
    /// Returns the count of a loss.
    pub fn loss(&self, kind: &str) -> u64 {
        let losses = self.trace.manifest.losses.iter();
        let of = losses.filter(|loss| loss.kind.as_str() == kind);
        of.map(|loss| loss.count).sum()
    }

    /// Returns true if a note contains a text.
    pub fn notes(&self, text: &str) -> bool {
        self.trace
            .manifest
            .notes
            .iter()
            .any(|note| note.contains(text))
    }
}

/// Imports a file.
pub fn import(path: &Path) -> Result<Import, Error> {
    import_with(path, &Options::default())
}

/// Imports a file with options.
pub fn import_with(path: &Path, options: &Options) -> Result<Import, Error> {
    let folder = tempfile::tempdir().unwrap();
    let output = folder.path().join("out.gapscope");
    let imported = import_files(&[path.to_owned()], &output, options, &|_, _| {});
    if imported.is_err() {
        assert!(!output.exists(), "a failed import leaves nothing behind");
    }
    let imported = imported?;
    let (trace, diagnostics) = gapscope_trace::read(&output, &Selection::all()).unwrap();
    // Diagnostics may only concern submissions without a row, whose call is not in the file.
    for diagnostic in diagnostics {
        let text = format!("{diagnostic:?}");
        assert!(text.contains("column: \"submission\""), "{text}");
        let lost = imported.losses.iter();
        let lost = lost.filter(|loss| loss.kind == LossKind::HostCallsOfWork);
        assert!(lost.count() > 0, "{text}");
    }
    Ok(Import { trace })
}

/// Imports bytes as a file with a name.
pub fn import_bytes(name: &str, bytes: &[u8]) -> Result<Import, Error> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(name);
    std::fs::write(&path, bytes).unwrap();
    import(&path)
}
