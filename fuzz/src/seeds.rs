//! Finds the inputs that each target begins with. The name of a target goes in, and the paths of its inputs come out.
//!
//! `xtask` includes this file, so that libFuzzer begins with the same inputs as the tests.

use std::path::{Path, PathBuf};

/// The folder of the inputs that are kept for fuzzing alone. It has a folder for each target.
pub const CORPUS: &str = "fuzz/corpus";

/// Targets and those fixtures of other tests that are inputs of the target as they are. `*` stands for the name of any
/// file of the folder.
const FIXTURES: [(&str, &str); 7] = [
    ("database", "fixtures/imports/rocprofv3.json"),
    ("kineto", "fixtures/kineto/*.json"),
    ("manifest", "fixtures/v1.gapscope/trace.json"),
    ("manifest", "fixtures/v2.gapscope/trace.json"),
    ("perfetto", "crates/import/tests/perfetto/*.pftrace"),
    ("rows", "crates/report/tests/traces/*.txt"),
    ("rows", "fixtures/v1.txt"),
];

/// Returns the fixtures that are inputs of a target. `root` is the folder of the repository.
pub fn fixtures(root: &Path, target: &str) -> Vec<PathBuf> {
    let of_target = FIXTURES.iter().filter(|(name, _)| *name == target);
    let paths = of_target.map(|(_, path)| root.join(path));
    let listed = paths.flat_map(|path| {
        if path.file_stem() != Some("*".as_ref()) {
            return vec![path];
        }
        let mut files = files(path.parent().unwrap_or(root));
        files.retain(|file| file.extension() == path.extension());
        files
    });
    listed.collect()
}

/// Returns the paths of all files in a folder, or nothing if there is no such folder.
pub fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten();
    entries.flatten().map(|entry| entry.path()).collect()
}
