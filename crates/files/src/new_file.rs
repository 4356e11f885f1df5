//! A file that appears under its name only when it is whole.

use crate::create_private_folder;
use rustix::fs::{CWD, Mode, OFlags, RenameFlags, openat, renameat_with};
use rustix::io::Errno;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

/// A file that is being written under a name of its own beside its place. [`NewFile::place`] gives it its name; without
/// that it is removed.
#[derive(Debug)]
pub struct NewFile {
    path: PathBuf,
    /// The name under which it is written; `None` once it has its own.
    beside: Option<PathBuf>,
    file: File,
}

impl NewFile {
    /// Begins a file that only its owner can read, as it holds what a trace holds. Nothing may have its name.
    ///
    /// # Errors
    /// Something has its name already, or the system refuses.
    pub fn create(path: &Path) -> io::Result<NewFile> {
        let beside = beside(path)?;
        // What has that name was left by a process of the same number.
        let _ = fs::remove_file(&beside);
        let flags =
            OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = openat(CWD, &beside, flags, Mode::from_raw_mode(0o600))?;
        Ok(NewFile {
            path: path.to_owned(),
            beside: Some(beside),
            file: File::from(file),
        })
    }

    /// Returns the file, to write to it.
    pub fn file(&self) -> &File {
        &self.file
    }

    /// Gives the file, which is whole, its name. Returns its size.
    ///
    /// # Errors
    /// Something has taken its name meanwhile, or the system refuses.
    pub fn place(mut self) -> io::Result<u64> {
        let bytes = self.file.metadata()?.len();
        if let Some(beside) = &self.beside {
            move_new(beside, &self.path)?;
        }
        self.beside = None;
        Ok(bytes)
    }
}

impl Drop for NewFile {
    fn drop(&mut self) {
        if let Some(beside) = &self.beside {
            // What cannot be removed has a name that says what it is.
            let _ = fs::remove_file(beside);
        }
    }
}

/// A folder that is being filled under a name of its own beside its place, as a [`NewFile`] is.
#[derive(Debug)]
pub struct NewFolder {
    path: PathBuf,
    /// The name under which it is filled; `None` once it has its own.
    beside: Option<PathBuf>,
}

impl NewFolder {
    /// Makes a folder that only its owner can enter. Nothing may have its name.
    ///
    /// # Errors
    /// Something has its name already, or the system refuses.
    pub fn create(path: &Path) -> io::Result<NewFolder> {
        let beside = beside(path)?;
        create_private_folder(&beside)?;
        Ok(NewFolder {
            path: path.to_owned(),
            beside: Some(beside),
        })
    }

    /// Returns the folder to write into.
    pub fn path(&self) -> &Path {
        self.beside.as_deref().unwrap_or(&self.path)
    }

    /// Gives the folder, which is whole, its name.
    ///
    /// # Errors
    /// Something has taken its name meanwhile, or the system refuses.
    pub fn place(mut self) -> io::Result<()> {
        move_new(self.path(), &self.path)?;
        self.beside = None;
        Ok(())
    }
}

impl Drop for NewFolder {
    fn drop(&mut self) {
        if let Some(beside) = &self.beside {
            let _ = fs::remove_dir_all(beside);
        }
    }
}

/// Returns the name under which a new file or folder is written, beside `path`, which nothing may have.
fn beside(path: &Path) -> io::Result<PathBuf> {
    if path.symlink_metadata().is_ok() {
        return Err(io::ErrorKind::AlreadyExists.into());
    }
    // `out/` names a folder, too.
    let mut name = OsString::from(".");
    name.push(path.file_name().ok_or(io::ErrorKind::InvalidInput)?);
    name.push(format!(".{}.part", std::process::id()));
    Ok(path.with_file_name(name))
}

/// Moves a file or folder to a name that must be free.
///
/// # Errors
/// Something has that name, or the system refuses.
pub fn move_new(from: &Path, to: &Path) -> io::Result<()> {
    match renameat_with(CWD, from, CWD, to, RenameFlags::NOREPLACE) {
        Ok(()) => Ok(()),
        // Some file systems cannot promise that, so the name is checked just before.
        Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) => match to.symlink_metadata() {
            Ok(_) => Err(io::ErrorKind::AlreadyExists.into()),
            Err(_) => fs::rename(from, to),
        },
        Err(error) => Err(error.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::os::unix::fs::{PermissionsExt, symlink};

    #[test]
    fn a_file_appears_whole_and_private_or_not_at_all() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("out.json");
        let new = NewFile::create(&path).unwrap();
        new.file().write_all(b"whole").unwrap();
        assert!(!path.exists());
        assert_eq!(new.place().unwrap(), 5);
        assert_eq!(fs::read(&path).unwrap(), b"whole");
        assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
        drop(NewFile::create(&folder.path().join("other")).unwrap());
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn nothing_is_overwritten_and_no_link_is_followed() {
        let folder = tempfile::tempdir().unwrap();
        let (path, link) = (folder.path().join("out"), folder.path().join("link"));
        symlink(folder.path().join("victim"), &link).unwrap();
        assert!(NewFile::create(&link).is_err());
        let new = NewFile::create(&path).unwrap();
        fs::write(&path, "theirs").unwrap();
        assert!(new.place().is_err());
        assert_eq!(fs::read(&path).unwrap(), b"theirs");
        assert!(!folder.path().join("victim").exists());
    }
}
