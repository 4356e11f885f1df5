//! Writes files that appear whole or not at all. A file is written beside its place under another name and then
//! renamed.

use crate::Error;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// The extension of a file that is still being written; it is renamed when it is complete.
pub(crate) const NEW_EXTENSION: &str = "new";

/// Returns `path` with [`NEW_EXTENSION`] appended.
pub(crate) fn temporary_path(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".");
    name.push(NEW_EXTENSION);
    PathBuf::from(name)
}

/// Opens a file or folder for reading. Anything else might never end, such as a pipe or a device, and is an error.
pub(crate) fn open(path: &Path) -> io::Result<File> {
    // This comes first because opening a pipe blocks until there is a writer.
    let found = fs::metadata(path)?;
    match found.is_file() || found.is_dir() {
        true => File::open(path),
        false => Err(io::Error::other("it is not a file but a pipe or a device")),
    }
}

/// Replaces or creates `path` atomically: readers see the old bytes or the new ones.
pub(crate) fn replace(path: &Path, bytes: &[u8]) -> Result<(), Error> {
    let new = temporary_path(path);
    let written = File::create(&new).and_then(|mut file| {
        file.write_all(bytes)?;
        file.sync_data()?;
        fs::rename(&new, path)
    });
    if let Err(error) = written {
        let _ = fs::remove_file(&new);
        return Err(Error::write(path)(error));
    }
    path.parent().map_or(Ok(()), sync_folder)
}

/// Syncs a folder, so that the names in it survive a crash of the machine.
pub(crate) fn sync_folder(folder: &Path) -> Result<(), Error> {
    File::open(folder)
        .and_then(|folder| folder.sync_all())
        .map_err(Error::write(folder))
}

/// Creates a folder that only its owner can enter, whatever the umask. A trace holds the program's arguments and
/// code, and during a recording it names the library that the program loads.
pub fn create_private_folder(path: &Path) -> io::Result<()> {
    let mut folder = fs::DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut folder, 0o700);
    folder.create(path)
}
