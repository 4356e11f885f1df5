//! A folder for the files of one input, in memory if the system supports that.

use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// Creates a folder, which is removed when the returned value is dropped.
pub fn folder() -> TempDir {
    let memory = Path::new("/dev/shm");
    let made = match memory.is_dir() {
        true => tempfile::tempdir_in(memory),
        false => tempfile::tempdir(),
    };
    made.expect("a folder for the files of inputs can be made")
}

/// Writes a file in a folder.
pub fn file(folder: &Path, name: &str, bytes: &[u8]) -> PathBuf {
    let path = folder.join(name);
    std::fs::write(&path, bytes).expect("a file of the folder for inputs can be written");
    path
}
