//! Keeps a list of the files and folders that this process has not finished, so that a signal which ends the process
//! can remove them first.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// The unfinished files and folders of this process.
static UNFINISHED: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

/// How often the removal of a folder is tried while other threads still make files in it, and the time between two tries.
const TRIES: u32 = 100;
const BETWEEN_TRIES: Duration = Duration::from_millis(5);

/// An entry of the list, which lasts as long as this value.
#[derive(Debug)]
pub struct Unfinished {
    path: PathBuf,
}

impl Unfinished {
    /// Adds a file or folder, which need not exist yet.
    pub fn new(path: &Path) -> Unfinished {
        list().push(path.to_owned());
        Unfinished {
            path: path.to_owned(),
        }
    }

    /// Returns the file or folder.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        let mut list = list();
        if let Some(at) = list.iter().position(|path| *path == self.path) {
            list.swap_remove(at);
        }
    }
}

/// Removes all that is unfinished, for a process that is about to end: from now on, no thread can begin, finish or give
/// up anything, so that no other thread reports the removal as an error.
pub fn remove_unfinished() {
    let list = list();
    for path in list.iter() {
        for _ in 0..TRIES {
            remove(path);
            if path.symlink_metadata().is_err() {
                break;
            }
            std::thread::sleep(BETWEEN_TRIES);
        }
    }
    std::mem::forget(list);
}

/// Removes a file, a link or a folder. Where the system refuses, its name says what it is.
pub(crate) fn remove(path: &Path) {
    if fs::remove_file(path).is_err() {
        let _ = fs::remove_dir_all(path);
    }
}

fn list() -> MutexGuard<'static, Vec<PathBuf>> {
    UNFINISHED.lock().unwrap_or_else(PoisonError::into_inner)
}
