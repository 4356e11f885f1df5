//! Finds the traces of a distributed program's ranks, in the folders `rank=N` of its recording.

use crate::manifest;
use gapscope_files::ContainedPath;
use std::path::{Path, PathBuf};

/// Returns the subfolders `rank=N` that hold traces, by number, without those that are links; none for a trace of processes without ranks.
pub fn rank_folders(folder: &Path) -> Vec<(u32, PathBuf)> {
    let holds_trace = |path: &ContainedPath| path.join(manifest::FILE_NAME).is_file();
    ranks_where(folder, holds_trace)
}

/// Returns what is called `rank=N` in a folder of ranks and is a link, by number. A stranger's link may lead anywhere,
/// and is not followed.
pub fn rank_links(folder: &Path) -> Vec<(u32, PathBuf)> {
    ranks_where(folder, |path| path.path().is_symlink())
}

/// Returns what is called `rank=N` in a folder, by number, as far as `holds` is true for it.
fn ranks_where(folder: &Path, holds: impl Fn(&ContainedPath) -> bool) -> Vec<(u32, PathBuf)> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut ranks: Vec<(u32, PathBuf)> = entries
        .filter_map(|entry| {
            let name = entry.file_name();
            let rank = name.to_str()?.strip_prefix("rank=")?.parse().ok()?;
            holds(&ContainedPath::new(folder, &name)).then(|| (rank, entry.path()))
        })
        .collect();
    ranks.sort();
    ranks
}
