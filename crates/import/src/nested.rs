//! Finds the files of a recording in a folder whose own files no importer knows: profilers put them into folders of runs, of
//! machines, of processes and of ranks. A folder goes in, and the files of one format come out.

use crate::folder::Folder;
use crate::{Importer, folder, importer_of, kineto, nsys, perfetto, rocpd, rocprofv3, xplane};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// How deep folders are looked into, and how many files at most.
const MAX_DEPTH: usize = 5;
const MAX_FILES: usize = 4_096;

/// Formats in which profilers write the same recording beside each other, the best one first.
const SAME_RECORDING: [&Importer; 6] = [
    &nsys::IMPORTER,
    &xplane::IMPORTER,
    &rocpd::IMPORTER,
    &rocprofv3::IMPORTER,
    &perfetto::IMPORTER,
    &kineto::IMPORTER,
];

/// The file of Ascend's profiler that has the host and the device; beside it lie those of single parts of the tool.
const ASCEND: &str = "trace_view.json";

/// The parts of names of files in which recordings are.
const PARTS: [&str; 7] = [
    ".json",
    ".sqlite",
    ".pb",
    ".pftrace",
    ".db",
    ".chrome_trace",
    ".perfetto-trace",
];

/// The files of a folder that are imported in its place.
#[derive(Debug, Default)]
pub(crate) struct Nested {
    pub files: Vec<PathBuf>,
    /// What was left out, in sentences.
    pub notes: Vec<String>,
}

impl Nested {
    /// Looks into the folders of a folder; `None` where they have no file that is imported.
    pub(crate) fn find(folder: &Path) -> Option<Nested> {
        let (mut files, mut folders) = (Vec::new(), Vec::new());
        collect(folder, MAX_DEPTH, &mut files, &mut folders);
        let mut by_format: BTreeMap<&str, Vec<PathBuf>> = BTreeMap::new();
        for file in files {
            if let Some(importer) = importer_of(std::slice::from_ref(&file)) {
                by_format.entry(importer.name).or_default().push(file);
            }
        }
        let of = |importer: &Importer| by_format.get(importer.name).cloned();
        let mut chosen = SAME_RECORDING
            .iter()
            .find_map(|importer| of(importer))
            .or_else(|| by_format.values().next().cloned())?;
        // Files of both are joined.
        let exports = chosen.iter().any(|file| nsys::recognises(file));
        chosen.extend(
            of(&kineto::IMPORTER)
                .filter(|_| exports)
                .unwrap_or_default(),
        );
        let is_ascend = |file: &PathBuf| file.file_name().is_some_and(|name| name == ASCEND);
        if chosen.iter().any(is_ascend) {
            chosen.retain(is_ascend);
        }
        let left_out = by_format.values().flatten();
        let left_out: Vec<&PathBuf> = left_out.filter(|file| !chosen.contains(file)).collect();
        let mut notes = folder::left_out(&folders);
        notes.extend(left_out.first().map(|first| {
            let first = first.strip_prefix(folder).unwrap_or(first).display();
            let more = match left_out.len() - 1 {
                0 => String::new(),
                more => format!(" and {more} more"),
            };
            format!("Left out, as files beside them have the same recording or more of it: {first}{more}. Give such a file itself to import it.")
        }));
        Some(Nested {
            files: chosen,
            notes,
        })
    }
}

/// Adds the files of a folder and of the folders in it, by name, and those folders. Links to folders are not followed.
fn collect(
    folder: &Path,
    depth: usize,
    files: &mut Vec<PathBuf>,
    inner_folders: &mut Vec<PathBuf>,
) {
    let is_wanted = |name: &str| PARTS.iter().any(|part| name.contains(part));
    files.extend(Folder::list(folder, is_wanted).files);
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut folders: Vec<PathBuf> = entries
        .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()))
        .map(|entry| entry.path())
        .collect();
    folders.sort();
    for inner in folders {
        if depth > 0 && files.len() < MAX_FILES {
            inner_folders.push(inner.clone());
            collect(&inner, depth - 1, files, inner_folders);
        }
    }
    files.truncate(MAX_FILES);
}
