//! Opens traces and reads selected columns into memory. [`read`] finds the files of each table, opens them (`load`),
//! reads the selected columns on all cores, gives kernels the user's names, and checks that ids lead somewhere
//! (`references`). [`DispatchPieces`] reads dispatches a piece at a time, and [`Tail`] the rows of a running
//! recording as they come.

mod foreign;
pub(crate) mod load;
mod pieces;
mod references;
mod selection;
mod tail;

use crate::manifest::{FORMAT_VERSION, Manifest};
use crate::tables::*;
use crate::{Diagnostic, Error, Trace, UnreadTable, checksums, for_each_table, manifest, part};
use gapscope_files::ContainedPath;
use load::TableSource;
use serde::Deserialize;
use std::collections::HashMap;
use std::io::ErrorKind;
use std::path::Path;

pub use crate::versions::{has_table, is_optional};
pub use foreign::meant_trace;
pub use pieces::DispatchPieces;
pub use selection::Selection;
pub use tail::Tail;

/// The most bytes of a manifest. Each rank, process and loss takes some hundred.
const MAX_MANIFEST_BYTES: u64 = 64 << 20;

/// Reads the manifest of the trace `folder`.
///
/// # Errors
/// `folder` is not a trace, or a later gapscope's, or its manifest is damaged.
pub fn read_manifest(folder: &Path) -> Result<Manifest, Error> {
    match manifest_or_missing(folder)? {
        Some(manifest) => Ok(manifest),
        None => Err(foreign::error(folder)),
    }
}

/// Reads the manifest; `None` where the folder has none.
fn manifest_or_missing(folder: &Path) -> Result<Option<Manifest>, Error> {
    let path = folder.join(manifest::FILE_NAME);
    let bytes = match ContainedPath::from(&*path).read(MAX_MANIFEST_BYTES) {
        Ok(bytes) => bytes,
        Err(e) if matches!(e.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
            return Ok(None);
        }
        Err(e) => return Err(Error::read(&path)(e)),
    };
    let damaged = |e: serde_json::Error| Error::DamagedManifest {
        path: path.clone(),
        reason: e.to_string(),
    };
    // The version comes first: a later one may have changed everything else.
    let version: ManifestVersion = serde_json::from_slice(&bytes).map_err(damaged)?;
    match version.format_version {
        None => Err(Error::Foreign {
            path: folder.to_owned(),
            found: format!("its {} has no format_version", manifest::FILE_NAME),
        }),
        Some(found) if found > u64::from(FORMAT_VERSION) => Err(Error::Newer {
            path: folder.to_owned(),
            version: found,
        }),
        Some(_) => {
            let mut manifest: Manifest = serde_json::from_slice(&bytes).map_err(damaged)?;
            manifest.altered = checksums::is_altered_manifest(&bytes);
            manifest.hide_secrets();
            Ok(Some(manifest))
        }
    }
}

/// The only field of a manifest that is read before its version is known.
#[derive(Deserialize)]
struct ManifestVersion {
    format_version: Option<u64>,
}

/// Reads the trace `folder` as far as possible. The diagnostics say what is damaged or missing.
///
/// # Errors
/// `folder` is not a trace, or a later gapscope's, or its manifest is damaged, or reading takes more memory than
/// [`memory::limit`](crate::memory::limit).
pub fn read(folder: &Path, selection: &Selection) -> Result<(Trace, Vec<Diagnostic>), Error> {
    let parts = find_parts(folder)?;
    let mut diagnostics = Vec::new();
    let manifest = match manifest_or_missing(folder)? {
        Some(manifest) => {
            diagnostics.extend(Diagnostic::for_manifest(folder, &manifest));
            manifest
        }
        None if parts.values().all(Vec::is_empty) && !has_tables(folder) => {
            return Err(foreign::error(folder));
        }
        None => {
            diagnostics.push(Diagnostic::NoManifest {
                path: folder.join(manifest::FILE_NAME),
            });
            Manifest {
                format_version: FORMAT_VERSION,
                ..Manifest::default()
            }
        }
    };
    // Until the manifest is complete, the parts are the trace, even if some tables were merged already.
    let from_parts =
        !manifest.complete && ContainedPath::new(folder, part::PARTS_FOLDER).is_folder();
    if !manifest.complete {
        diagnostics.push(Diagnostic::Unfinished);
    }
    let mut tables = Tables::default();
    let mut sources = Vec::new();
    macro_rules! sources {
        ($($field:ident: $table:ty,)+) => {$(
            let name = <$table>::NAME;
            if selection.has_table(name) && has_table(manifest.format_version, name) {
                let mut paths = if from_parts {
                    parts.get(name).cloned().unwrap_or_default()
                } else {
                    vec![table_path(folder, name)]
                };
                if is_optional(name) {
                    paths.retain(|path| path.exists());
                }
                let selected = |column| selection.has_column(name, column);
                sources.push(TableSource::open(paths, &mut tables.$field, selected, &mut diagnostics));
            }
        )+};
    }
    for_each_table!(sources);
    load::load(sources, &mut diagnostics)?;
    if let Some(names) = selection.names() {
        names.apply(&mut tables.kernels);
    }
    let unread = unread(&diagnostics, &tables);
    let trace = Trace {
        manifest,
        tables,
        unread,
    };
    references::check(&trace, selection, &mut diagnostics);
    Ok((trace, diagnostics))
}

/// Returns a diagnostic for each column with ids that the trace does not define.
pub(crate) fn dangling_ids(trace: &Trace) -> Vec<Diagnostic> {
    let mut diagnostics = Vec::new();
    references::check(trace, &Selection::all(), &mut diagnostics);
    diagnostics
}

/// Returns the tables of which rows or columns are missing.
fn unread(diagnostics: &[Diagnostic], tables: &Tables) -> Vec<UnreadTable> {
    let mut rows = HashMap::new();
    macro_rules! count {
        ($($field:ident: $table:ty,)+) => {$(
            rows.insert(<$table>::NAME, tables.$field.len());
        )+};
    }
    for_each_table!(count);
    let unread =
        |diagnostic| UnreadTable::from_diagnostic(diagnostic, |table| rows.get(table).copied());
    diagnostics.iter().filter_map(unread).collect()
}

fn table_path(folder: &Path, table: &str) -> ContainedPath {
    ContainedPath::new(folder, format!("{table}.parquet"))
}

/// Returns true where the folder has the file of at least one table.
fn has_tables(folder: &Path) -> bool {
    macro_rules! any_exists {
        ($($field:ident: $table:ty,)+) => { $(table_path(folder, <$table>::NAME).exists())||+ };
    }
    for_each_table!(any_exists)
}

/// Returns the closed parts of each table, in order.
pub(crate) fn find_parts(folder: &Path) -> Result<HashMap<String, Vec<ContainedPath>>, Error> {
    let folder = ContainedPath::new(folder, part::PARTS_FOLDER);
    let mut numbered = Vec::new();
    match folder.names() {
        Ok(names) => {
            for name in names {
                if let Some((table, number)) = name.to_str().and_then(part::part_name) {
                    numbered.push((table.to_owned(), number, folder.join(&name)));
                }
            }
        }
        Err(e) if matches!(e.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {}
        Err(e) => return Err(Error::read(folder.path())(e)),
    }
    numbered.sort();
    let mut parts: HashMap<String, Vec<ContainedPath>> = HashMap::new();
    for (table, _, path) in numbered {
        parts.entry(table).or_default().push(path);
    }
    Ok(parts)
}
