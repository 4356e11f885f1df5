//! Finds the traces of a distributed program's ranks, in the folders `rank=N` of its recording.

use crate::manifest;
use gapscope_files::ContainedPath;
use std::path::{Path, PathBuf};

/// Returns the subfolders `rank=N` that hold traces, by number, without those that are links; none for a trace of processes without ranks.
pub fn rank_folders(folder: &Path) -> Vec<(u32, PathBuf)> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut found: Vec<(u32, PathBuf)> = entries
        .filter_map(|entry| {
            let name = entry.file_name();
            let rank = name.to_str()?.strip_prefix("rank=")?.parse().ok()?;
            let manifest = ContainedPath::new(folder, &name).join(manifest::FILE_NAME);
            manifest.is_file().then(|| (rank, entry.path()))
        })
        .collect();
    found.sort();
    found
}
