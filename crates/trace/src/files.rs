//! Files that appear whole or not at all.

use crate::Error;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// Ends the name of a file that is being written and gets its own name when it is whole.
pub(crate) const NEW: &str = "new";

/// `path` with [`NEW`] appended.
pub(crate) fn new_name(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".");
    name.push(NEW);
    PathBuf::from(name)
}

/// Opens a file to read it. What is no file, such as a pipe or a device, might never end, and is an error.
pub(crate) fn open(path: &Path) -> io::Result<File> {
    // Asked first: to open a pipe waits for who writes into it.
    let found = fs::metadata(path)?;
    match found.is_file() || found.is_dir() {
        true => File::open(path),
        false => Err(io::Error::other("it is not a file but a pipe or a device")),
    }
}

/// Replaces `path`, or makes it: whoever reads sees the old bytes or the new ones.
pub(crate) fn replace(path: &Path, bytes: &[u8]) -> Result<(), Error> {
    let new = new_name(path);
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

/// Makes the names in a folder survive a crash of the machine.
pub(crate) fn sync_folder(folder: &Path) -> Result<(), Error> {
    File::open(folder)
        .and_then(|folder| folder.sync_all())
        .map_err(Error::write(folder))
}

/// Makes a folder that nobody but its owner can enter, whatever the umask: a trace holds arguments and code of the program, and
/// while it is recorded the library that the program loads is named in it.
pub fn own_folder(path: &Path) -> io::Result<()> {
    let mut folder = fs::DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut folder, 0o700);
    folder.create(path)
}
