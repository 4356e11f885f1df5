//! A file that appears under its name only when it is whole.

use crate::create_private_folder;
use crate::unfinished::{Unfinished, remove};
use rustix::fs::{
    AtFlags, CWD, FlockOperation, Mode, OFlags, RenameFlags, flock, linkat, openat, renameat_with,
};
use rustix::io::Errno;
use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// The permissions of a file that only its owner can read.
const OWNERS: Mode = Mode::RUSR.union(Mode::WUSR);

/// A file that is being written without a name, or under a name of its own beside its place where the file system
/// knows no files without names. [`NewFile::place`] gives it its name; without that it is removed. Where it has no name
/// yet, nothing is left of it however this process ends.
#[derive(Debug)]
pub struct NewFile {
    path: PathBuf,
    /// The file under its own name beside its place; `None` where the file has no name.
    beside: Option<Beside>,
    file: File,
}

impl NewFile {
    /// Begins a file that only its owner can read, as it holds what a trace holds. Nothing may have its name.
    ///
    /// # Errors
    /// Something has its name already, or the system refuses.
    pub fn create(path: &Path) -> io::Result<NewFile> {
        must_be_free(path)?;
        let path = path.to_owned();
        if let Some(file) = nameless(&path) {
            return Ok(NewFile {
                path,
                beside: None,
                file,
            });
        }
        NewFile::named(path)
    }

    /// Begins a file under a name of its own beside its place.
    fn named(path: PathBuf) -> io::Result<NewFile> {
        let beside = Beside::new(&path)?;
        let flags =
            OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = File::from(openat(CWD, beside.path(), flags, OWNERS)?);
        lock(&file);
        Ok(NewFile {
            path,
            beside: Some(beside),
            file,
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
    pub fn place(self) -> io::Result<u64> {
        let bytes = self.file.metadata()?.len();
        match self.beside {
            Some(beside) => beside.place(&self.path)?,
            None => name(&self.file, &self.path)?,
        }
        Ok(bytes)
    }
}

/// Opens a file without a name in the folder of `path`; `None` where that is not possible.
#[cfg(target_os = "linux")]
fn nameless(path: &Path) -> Option<File> {
    let flags = OFlags::RDWR | OFlags::TMPFILE | OFlags::CLOEXEC;
    let file = File::from(openat(CWD, folder(path), flags, OWNERS).ok()?);
    // A name is given through that folder, which a sandbox may lack.
    descriptor(&file).exists().then_some(file)
}

#[cfg(not(target_os = "linux"))]
fn nameless(_: &Path) -> Option<File> {
    None
}

/// Gives a file without a name its name, which must be free.
fn name(file: &File, path: &Path) -> io::Result<()> {
    let flags = AtFlags::SYMLINK_FOLLOW;
    Ok(linkat(CWD, descriptor(file), CWD, path, flags)?)
}

/// Returns the path by which this process sees one of its descriptors.
fn descriptor(file: &File) -> PathBuf {
    PathBuf::from(format!("/proc/self/fd/{}", file.as_raw_fd()))
}

/// A folder that is being filled under a name of its own beside its place. [`NewFolder::place`] gives it its name;
/// without that it is removed.
#[derive(Debug)]
pub struct NewFolder {
    path: PathBuf,
    beside: Beside,
    /// The open folder, whose lock says that a process still fills it.
    _locked: File,
}

impl NewFolder {
    /// Makes a folder that only its owner can enter. Nothing may have its name.
    ///
    /// # Errors
    /// Something has its name already, or the system refuses.
    pub fn create(path: &Path) -> io::Result<NewFolder> {
        must_be_free(path)?;
        let beside = Beside::new(path)?;
        create_private_folder(beside.path())?;
        let locked = File::open(beside.path())?;
        lock(&locked);
        Ok(NewFolder {
            path: path.to_owned(),
            beside,
            _locked: locked,
        })
    }

    /// Returns the folder to write into.
    pub fn path(&self) -> &Path {
        self.beside.path()
    }

    /// Gives the folder, which is whole, its name.
    ///
    /// # Errors
    /// Something has taken its name meanwhile, or the system refuses.
    pub fn place(self) -> io::Result<()> {
        self.beside.place(&self.path)
    }
}

/// The name of something unfinished beside its place: `.NAME.PID.part`. What has that name is removed unless it got its
/// place.
#[derive(Debug)]
struct Beside {
    unfinished: Unfinished,
    placed: bool,
}

/// The most bytes of a name that are part of the name beside it, so that the latter is no longer than names can be.
const MAX_NAME: usize = 200;

impl Beside {
    /// Returns the name of this process for something unfinished, and removes what processes that were killed have left
    /// under theirs.
    fn new(path: &Path) -> io::Result<Beside> {
        // `out/` names a folder, too.
        let name = path.file_name().ok_or(io::ErrorKind::InvalidInput)?;
        let mut start = OsString::from(".");
        start.push(match name.to_str() {
            Some(text) => OsStr::new(&text[..text.floor_char_boundary(MAX_NAME)]),
            None => OsStr::from_bytes(&name.as_bytes()[..name.len().min(MAX_NAME)]),
        });
        start.push(".");
        remove_abandoned(folder(path), &start);
        start.push(format!("{}.part", std::process::id()));
        let path = path.with_file_name(start);
        // A file that still has that name has no lock, as on a file system without locks.
        remove(&path);
        Ok(Beside {
            unfinished: Unfinished::new(&path),
            placed: false,
        })
    }

    fn path(&self) -> &Path {
        self.unfinished.path()
    }

    fn place(mut self, path: &Path) -> io::Result<()> {
        move_new(self.path(), path)?;
        self.placed = true;
        Ok(())
    }
}

impl Drop for Beside {
    fn drop(&mut self) {
        if !self.placed {
            remove(self.path());
        }
    }
}

/// Removes unfinished files and folders whose names begin with `start`, and whose locks have ended with their processes.
fn remove_abandoned(folder: &Path, start: &OsStr) {
    let Ok(entries) = fs::read_dir(folder) else {
        return;
    };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let middle = (name.as_bytes().strip_prefix(start.as_bytes()))
            .and_then(|rest| rest.strip_suffix(b".part"));
        let by_a_process =
            middle.is_some_and(|pid| !pid.is_empty() && pid.iter().all(u8::is_ascii_digit));
        if by_a_process && is_abandoned(&entry.path()) {
            remove(&entry.path());
        }
    }
}

/// Returns true for a file or folder that can be locked, and hence is locked by nobody.
fn is_abandoned(path: &Path) -> bool {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    openat(CWD, path, flags, Mode::empty()).is_ok_and(|file| lock(&File::from(file)))
}

/// Locks a file or folder until it is closed. Returns false where another process has locked it, or the file system
/// knows no locks.
fn lock(file: &File) -> bool {
    flock(file, FlockOperation::NonBlockingLockExclusive).is_ok()
}

/// Returns an error where something has this name already.
fn must_be_free(path: &Path) -> io::Result<()> {
    match path.symlink_metadata() {
        Ok(_) => Err(io::ErrorKind::AlreadyExists.into()),
        Err(_) => Ok(()),
    }
}

/// Returns the folder of a path.
fn folder(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    }
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
    fn a_file_with_a_name_of_its_own_appears_as_one_without() {
        let folder = tempfile::tempdir().unwrap();
        let names = || fs::read_dir(folder.path()).unwrap().count();
        let path = folder.path().join("out.json");
        drop(NewFile::named(path.clone()).unwrap());
        assert_eq!(names(), 0);
        let new = NewFile::named(path.clone()).unwrap();
        new.file().write_all(b"whole").unwrap();
        assert_eq!((new.place().unwrap(), names()), (5, 1));
        assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    }

    #[test]
    fn the_longest_names_are_names_of_files_and_folders() {
        let folder = tempfile::tempdir().unwrap();
        let name = format!("{}x", "ü".repeat(127));
        let path = folder.path().join(&name);
        NewFolder::create(&path).unwrap().place().unwrap();
        fs::remove_dir(&path).unwrap();
        NewFile::named(path.clone()).unwrap().place().unwrap();
        assert!(path.is_file());
    }

    #[test]
    fn what_a_killed_process_left_is_removed_and_what_a_running_one_writes_stays() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::write(at(".out.4000001.part"), "left").unwrap();
        fs::create_dir(at(".out.4000002.part")).unwrap();
        fs::write(at(".out.4000002.part/rows.csv"), "left").unwrap();
        let running = File::create(at(".out.4000003.part")).unwrap();
        assert!(lock(&running));
        for other in [".out.part", ".out.json.7.part", ".out.x.part", "out.8.part"] {
            fs::write(at(other), "theirs").unwrap();
        }
        let new = NewFolder::create(&at("out")).unwrap();
        fs::write(new.path().join("rows.csv"), "whole").unwrap();
        new.place().unwrap();
        let all = fs::read_dir(folder.path()).unwrap();
        let mut names: Vec<String> = all
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        assert_eq!(
            names,
            [
                ".out.4000003.part",
                ".out.json.7.part",
                ".out.part",
                ".out.x.part",
                "out",
                "out.8.part"
            ]
        );
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
