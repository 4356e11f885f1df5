//! A path inside of a folder, and what can be done with the file there.

use rustix::fs::{
    AtFlags, CWD, Dir, FileType, Mode, OFlags, Stat, openat, renameat, statat, unlinkat,
};
use rustix::io::Errno;
use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStringExt;
use std::path::{Component, Path, PathBuf};

/// How folders on the way are opened. Linux needs no permission to list them.
#[cfg(target_os = "linux")]
const PASSED: OFlags = OFlags::PATH;
#[cfg(not(target_os = "linux"))]
const PASSED: OFlags = OFlags::RDONLY;

/// A file or folder inside of a folder that a stranger may have made. Links are followed on the way to the folder, which
/// the user named, and never inside of it.
///
/// Each part of the name is opened from the one before it and without following links. The kernel's `openat2` does the
/// same in one call, but on Linux alone; names here have at most three parts.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ContainedPath {
    /// The whole path.
    path: PathBuf,
    /// The number of parts at the end of `path` that are inside of the folder.
    parts: usize,
}

impl ContainedPath {
    /// Returns the path of `name` in `folder`. A name that leads out of the folder is refused when it is used.
    pub fn new(folder: &Path, name: impl AsRef<Path>) -> ContainedPath {
        let name = name.as_ref();
        ContainedPath {
            path: folder.join(name),
            parts: name.components().count(),
        }
    }

    /// Returns the path of `name` in this folder.
    pub fn join(&self, name: impl AsRef<Path>) -> ContainedPath {
        let name = name.as_ref();
        ContainedPath {
            path: self.path.join(name),
            parts: self.parts + name.components().count(),
        }
    }

    /// Returns the path of a file beside this one.
    pub fn beside(&self, name: impl AsRef<OsStr>) -> ContainedPath {
        ContainedPath {
            path: self.path.with_file_name(name),
            parts: self.parts,
        }
    }

    /// Returns the whole path, for messages.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Opens a regular file for reading.
    ///
    /// # Errors
    /// There is no such file, it is a link, or something that might never end, such as a pipe or a device.
    pub fn open(&self) -> io::Result<File> {
        self.open_regular(OFlags::RDONLY)
    }

    /// Opens a regular file for reading and for changes in its place. A file with a second name is refused, because
    /// that name may be outside of the folder.
    ///
    /// # Errors
    /// As for [`ContainedPath::open`], or the file has another name.
    pub fn open_for_changes(&self) -> io::Result<File> {
        let file = self.open_regular(OFlags::RDWR)?;
        match rustix::fs::fstat(&file)?.st_nlink {
            1 => Ok(file),
            _ => Err(refused(
                "it has a second name, and may be in another folder too",
            )),
        }
    }

    fn open_regular(&self, access: OFlags) -> io::Result<File> {
        let (folder, name) = self.parent()?;
        // The kind comes first, because opening a device can have an effect. Whatever is exchanged meanwhile is
        // noticed below.
        check_regular(&statat(&folder, &name, AtFlags::SYMLINK_NOFOLLOW)?)?;
        let flags = access | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = openat(&folder, &name, flags, Mode::empty()).map_err(without_link)?;
        check_regular(&rustix::fs::fstat(&file)?)?;
        Ok(File::from(file))
    }

    /// Reads a regular file of at most `most` bytes.
    ///
    /// # Errors
    /// As for [`ContainedPath::open`], or the file is larger.
    pub fn read(&self, most: u64) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        self.open()?
            .take(most.saturating_add(1))
            .read_to_end(&mut bytes)?;
        match bytes.len() as u64 > most {
            true => Err(io::Error::new(
                io::ErrorKind::FileTooLarge,
                "it is too large",
            )),
            false => Ok(bytes),
        }
    }

    /// Creates a file that must not exist.
    ///
    /// # Errors
    /// Something has that name already, or the system refuses.
    pub fn create_new(&self) -> io::Result<File> {
        self.create_with(Mode::from_raw_mode(0o666))
    }

    fn create_with(&self, mode: Mode) -> io::Result<File> {
        let (folder, name) = self.parent()?;
        let flags =
            OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        Ok(File::from(openat(&folder, &name, flags, mode)?))
    }

    /// Creates a file anew: what had its name before, such as what an earlier session left, is removed and not written
    /// to.
    ///
    /// # Errors
    /// The system refuses, or a folder has that name.
    pub fn create(&self) -> io::Result<File> {
        self.create_anew_with(Mode::from_raw_mode(0o666))
    }

    fn create_anew_with(&self, mode: Mode) -> io::Result<File> {
        match self.remove_file() {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        self.create_with(mode)
    }

    /// Replaces or creates the file atomically: readers see the old bytes or the new ones. A link of that name is
    /// replaced, and what it leads to stays as it is.
    ///
    /// # Errors
    /// The system refuses; the old file stays.
    pub fn replace(&self, bytes: &[u8]) -> io::Result<()> {
        self.replace_with(bytes, Mode::from_raw_mode(0o666))
    }

    /// Does what [`ContainedPath::replace`] does, for a file that only its owner may read.
    ///
    /// # Errors
    /// As for [`ContainedPath::replace`].
    pub fn replace_private(&self, bytes: &[u8]) -> io::Result<()> {
        self.replace_with(bytes, Mode::from_raw_mode(0o600))
    }

    fn replace_with(&self, bytes: &[u8], mode: Mode) -> io::Result<()> {
        let mut name = self.path.file_name().unwrap_or_default().to_owned();
        name.push(format!(".{}.new", std::process::id()));
        let new = self.beside(name);
        let written = new.create_anew_with(mode).and_then(|mut file| {
            file.write_all(bytes)?;
            file.sync_data()?;
            new.rename(self)
        });
        written.inspect_err(|_| {
            // The first error is the one that matters.
            let _ = new.remove_file();
        })
    }

    /// Renames the file to another name in the same folder, and replaces what has that name.
    ///
    /// # Errors
    /// The system refuses.
    pub fn rename(&self, to: &ContainedPath) -> io::Result<()> {
        let (from_folder, from) = self.parent()?;
        let (to_folder, to) = to.parent()?;
        Ok(renameat(&from_folder, from, &to_folder, to)?)
    }

    /// Gives the regular file of this path a second name in the same folder or another.
    ///
    /// # Errors
    /// The system or its file system refuses, or this path is no regular file.
    pub fn link(&self, to: &ContainedPath) -> io::Result<()> {
        let (from_folder, from) = self.parent()?;
        check_regular(&statat(&from_folder, &from, AtFlags::SYMLINK_NOFOLLOW)?)?;
        let (to_folder, to) = to.parent()?;
        Ok(rustix::fs::linkat(
            &from_folder,
            from,
            &to_folder,
            to,
            AtFlags::empty(),
        )?)
    }

    /// Removes a file, or a link itself.
    ///
    /// # Errors
    /// There is none, or the system refuses.
    pub fn remove_file(&self) -> io::Result<()> {
        let (folder, name) = self.parent()?;
        Ok(unlinkat(&folder, name, AtFlags::empty())?)
    }

    /// Removes a folder with all that is in it; links in it are removed and not followed.
    ///
    /// # Errors
    /// The system refuses.
    pub fn remove_folder(&self) -> io::Result<()> {
        self.parent()?;
        fs::remove_dir_all(&self.path)
    }

    /// Returns true for a regular file; false for a link to one.
    pub fn is_file(&self) -> bool {
        self.kind() == Some(FileType::RegularFile)
    }

    /// Returns true for a folder; false for a link to one.
    pub fn is_folder(&self) -> bool {
        self.kind() == Some(FileType::Directory)
    }

    /// Returns true where anything has this name, also a link that leads nowhere.
    pub fn exists(&self) -> bool {
        self.kind().is_some()
    }

    /// Returns the size of a regular file.
    ///
    /// # Errors
    /// As for [`ContainedPath::open`].
    pub fn bytes(&self) -> io::Result<u64> {
        let (folder, name) = self.parent()?;
        let facts = statat(&folder, &name, AtFlags::SYMLINK_NOFOLLOW)?;
        check_regular(&facts)?;
        Ok(u64::try_from(facts.st_size).unwrap_or(0))
    }

    /// Returns the names in a folder, sorted.
    ///
    /// # Errors
    /// There is no such folder, or it is a link.
    pub fn names(&self) -> io::Result<Vec<OsString>> {
        let (folder, name) = self.parent()?;
        let mut names = Vec::new();
        for entry in Dir::new(open_folder(&folder, &name)?)? {
            let name = entry?.file_name().to_bytes().to_vec();
            if name != b"." && name != b".." {
                names.push(OsString::from_vec(name));
            }
        }
        names.sort();
        Ok(names)
    }

    /// Returns the kind of what has this name; `None` where nothing has it.
    fn kind(&self) -> Option<FileType> {
        let (folder, name) = self.parent().ok()?;
        let facts = statat(&folder, name, AtFlags::SYMLINK_NOFOLLOW).ok()?;
        Some(FileType::from_raw_mode(facts.st_mode))
    }

    /// Opens the folder in which the last part of the name is, and returns that part with it.
    fn parent(&self) -> io::Result<(OwnedFd, OsString)> {
        let all: Vec<Component> = self.path.components().collect();
        let (folder, name) = all.split_at(all.len().saturating_sub(self.parts));
        let folder: PathBuf = folder.iter().collect();
        let start = match folder.as_os_str().is_empty() {
            true => Path::new("."),
            false => &folder,
        };
        let flags = PASSED | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let mut at = openat(CWD, start, flags, Mode::empty())?;
        let mut parts = name.iter().map(|part| match part {
            Component::Normal(part) => Ok(part.to_os_string()),
            _ => Err(refused("its name leads out of the folder")),
        });
        let last = parts
            .next_back()
            .ok_or_else(|| refused("it has no name"))??;
        for part in parts {
            at = open_folder(&at, &part?)?;
        }
        Ok((at, last))
    }
}

/// A file of a trace may be named by its path alone, where the whole path was named by the user.
impl From<&Path> for ContainedPath {
    fn from(path: &Path) -> ContainedPath {
        ContainedPath {
            path: path.to_owned(),
            parts: 1,
        }
    }
}

/// Creates a folder that only its owner can enter, whatever the umask. A trace holds the program's arguments and
/// code, and during a recording it names the library that the program loads.
///
/// # Errors
/// Something has that name already, or the system refuses.
pub fn create_private_folder(path: &Path) -> io::Result<()> {
    let mut folder = fs::DirBuilder::new();
    std::os::unix::fs::DirBuilderExt::mode(&mut folder, 0o700);
    folder.create(path)
}

/// Opens a folder of a folder; a link is refused.
fn open_folder(folder: &OwnedFd, name: &OsStr) -> io::Result<OwnedFd> {
    let facts = statat(folder, name, AtFlags::SYMLINK_NOFOLLOW)?;
    if FileType::from_raw_mode(facts.st_mode) == FileType::Symlink {
        return Err(link());
    }
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    openat(folder, name, flags, Mode::empty()).map_err(without_link)
}

/// Refuses all but regular files.
fn check_regular(facts: &Stat) -> io::Result<()> {
    match FileType::from_raw_mode(facts.st_mode) {
        FileType::RegularFile => Ok(()),
        FileType::Symlink => Err(link()),
        _ => Err(refused("it is not a regular file")),
    }
}

/// Returns the error for a link that took the name of a file or folder after it was looked at.
fn without_link(error: Errno) -> io::Error {
    match error {
        Errno::LOOP | Errno::MLINK => link(),
        error => error.into(),
    }
}

fn link() -> io::Error {
    refused("it is a symbolic link, and may lead anywhere")
}

fn refused(reason: &'static str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, reason)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    /// Makes a folder `trace` with a file, beside a folder `home` with a secret to which links in `trace` lead.
    fn planted() -> (tempfile::TempDir, PathBuf) {
        let outer = tempfile::tempdir().unwrap();
        let (trace, home) = (outer.path().join("trace"), outer.path().join("home"));
        fs::create_dir_all(trace.join("parts")).unwrap();
        fs::create_dir(&home).unwrap();
        fs::write(home.join("secret"), "secret").unwrap();
        fs::write(trace.join("parts/own"), "own").unwrap();
        symlink("../home/secret", trace.join("link")).unwrap();
        symlink(&home, trace.join("folder")).unwrap();
        fs::hard_link(home.join("secret"), trace.join("second")).unwrap();
        (outer, trace)
    }

    #[test]
    fn what_is_in_the_folder_is_read_and_what_links_lead_to_is_not() {
        let (_outer, trace) = planted();
        let read = |name: &str| ContainedPath::new(&trace, name).read(100);
        assert_eq!(read("parts/own").unwrap(), b"own");
        assert_eq!(
            ContainedPath::new(&trace, "parts")
                .join("own")
                .bytes()
                .unwrap(),
            3
        );
        for name in [
            "link",
            "folder/secret",
            "../home/secret",
            "parts",
            "/etc/passwd",
            "",
            ".",
        ] {
            assert!(read(name).is_err(), "{name}");
        }
        assert!(ContainedPath::new(&trace, "folder").names().is_err());
        assert_eq!(
            ContainedPath::new(&trace, "parts").names().unwrap(),
            ["own"]
        );
        assert!(!ContainedPath::new(&trace, "link").is_file());
        assert!(!ContainedPath::new(&trace, "folder").is_folder());
        assert!(ContainedPath::new(&trace, "parts/own").read(2).is_err());
    }

    #[test]
    fn what_links_lead_to_is_not_changed() {
        let (outer, trace) = planted();
        let secret = || fs::read_to_string(outer.path().join("home/secret")).unwrap();
        for name in ["link", "folder/secret", "folder/new", "../home/new"] {
            let path = ContainedPath::new(&trace, name);
            assert!(path.open_for_changes().is_err(), "{name}");
            assert!(path.create_new().is_err(), "{name}");
        }
        assert!(
            ContainedPath::new(&trace, "second")
                .open_for_changes()
                .is_err()
        );
        assert!(
            ContainedPath::new(&trace, "folder/secret")
                .remove_file()
                .is_err()
        );
        ContainedPath::new(&trace, "link").replace(b"new").unwrap();
        ContainedPath::new(&trace, "second")
            .replace(b"new")
            .unwrap();
        assert_eq!(secret(), "secret");
        assert_eq!(fs::read_dir(outer.path().join("home")).unwrap().count(), 1);
        assert_eq!(ContainedPath::new(&trace, "link").read(9).unwrap(), b"new");
    }

    #[test]
    fn a_pipe_in_place_of_a_file_ends_at_once() {
        let (_outer, trace) = planted();
        let pipe = trace.join("pipe");
        rustix::fs::mkfifoat(CWD, &pipe, Mode::from_raw_mode(0o600)).unwrap();
        let error = ContainedPath::new(&trace, "pipe").open().unwrap_err();
        assert_eq!(error.to_string(), "it is not a regular file");
    }

    #[test]
    fn a_path_of_the_current_folder_needs_no_folder() {
        assert!(ContainedPath::new(Path::new(""), "Cargo.toml").is_file());
        assert!(ContainedPath::from(Path::new("Cargo.toml")).is_file());
    }
}
