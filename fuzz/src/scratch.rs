//! A folder for the files of one input, in memory where the system has such a place.

use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// A new folder, which is removed with what is returned.
pub fn folder() -> TempDir {
    let memory = Path::new("/dev/shm");
    let made = match memory.is_dir() {
        true => tempfile::tempdir_in(memory),
        false => tempfile::tempdir(),
    };
    made.expect("a folder for the files of inputs can be made")
}

/// Writes a file of a folder.
pub fn file(folder: &Path, name: &str, bytes: &[u8]) -> PathBuf {
    let path = folder.join(name);
    std::fs::write(&path, bytes).expect("a file of the folder for inputs can be written");
    path
}
