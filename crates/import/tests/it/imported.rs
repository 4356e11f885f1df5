//! Imports files through the library's public interface.

use crate::database::database;
use gapscope_import::{Error, Imported, Options, import as import_files};
use gapscope_trace::ids::{KernelId, LabelId};
use gapscope_trace::lookup::LabelPaths;
use gapscope_trace::tables::{Kernel, Table};
use gapscope_trace::{LossKind, Selection, Trace};
use std::path::{Path, PathBuf};

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
    pub imported: Imported,
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
        noted(&self.trace, text)
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
    Ok(Import { trace, imported })
}

/// Imports bytes as a file with a name.
pub fn import_bytes(name: &str, bytes: &[u8]) -> Result<Import, Error> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(name);
    std::fs::write(&path, bytes).unwrap();
    import(&path)
}

/// Imports rows of a database, and returns the trace.
pub fn planted(text: &str) -> Trace {
    let import = import_bytes("export.sqlite", &database(text));
    import.unwrap().trace
}

/// Returns the path of a file in `fixtures/imports`.
pub fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../fixtures/imports")
        .join(name)
}

/// Returns the sum of the losses whose kind or reason contains a text.
pub fn loss(trace: &Trace, text: &str) -> u64 {
    let losses = trace.manifest.losses.iter();
    let losses = losses.filter(|loss| loss.to_string().contains(text));
    losses.map(|loss| loss.count).sum()
}

/// Returns the losses as their counts and kinds.
pub fn losses(trace: &Trace) -> Vec<String> {
    let losses = trace.manifest.losses.iter();
    losses
        .map(|loss| format!("{} {}", loss.count, loss.kind))
        .collect()
}

/// Returns true if a note contains a text.
pub fn noted(trace: &Trace, text: &str) -> bool {
    let mut notes = trace.manifest.notes.iter();
    notes.any(|note| note.contains(text))
}

/// Returns the texts of a label and those around it, outermost first, joined by ` / `.
pub fn path(trace: &Trace, label: Option<LabelId>) -> String {
    let paths = LabelPaths::new(&trace.tables.labels);
    label.map_or(String::new(), |label| paths.get(label).unwrap().to_owned())
}

/// Returns the text of a label without those around it.
pub fn text(trace: &Trace, label: LabelId) -> String {
    let mut labels = trace.tables.labels.iter();
    let label = labels.find(|row| row.id == label).unwrap();
    label.text.to_string()
}

/// Returns a kernel.
pub fn kernel(trace: &Trace, id: KernelId) -> Kernel {
    let mut kernels = trace.tables.kernels.iter();
    kernels.find(|row| row.id == id).unwrap()
}
