//! Restricts the paths that a client gives tools to its roots (the folders that may be used), after links are
//! resolved.

use std::ffi::OsString;
use std::path::{Component, Path, PathBuf};

/// The most files that one glob may name.
const MAX_MATCHES: usize = 4096;

/// Why a path is refused. Each prints as one sentence.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RootsError {
    #[error("no root is a folder: {0}")]
    NoRoot(String),
    #[error("{path} does not exist in {roots}")]
    Absent { path: String, roots: String },
    #[error("{path} is outside of the folders that may be used: {roots}")]
    Outside { path: String, roots: String },
    #[error("{path} is no glob: {reason}")]
    Glob { path: String, reason: String },
    #[error("{0} names more than {MAX_MATCHES} files: name fewer")]
    ManyMatches(String),
    #[error("{0} is no name for a file")]
    NoFileName(String),
    #[error("{0} exists already: choose another name")]
    Exists(String),
    #[error("a path is empty, or has a zero byte in it")]
    Empty,
    #[error("{0} goes upwards (..): name the file itself")]
    Upwards(String),
}

/// The folders that all paths must be in.
#[derive(Debug, Clone)]
pub struct Roots(Vec<PathBuf>);

impl Roots {
    /// Keeps those of `folders` that exist.
    ///
    /// # Errors
    /// None of them exists.
    pub fn new(folders: &[PathBuf]) -> Result<Roots, RootsError> {
        let there = folders
            .iter()
            .filter_map(|folder| folder.canonicalize().ok());
        let there: Vec<PathBuf> = there.filter(|folder| folder.is_dir()).collect();
        match there.is_empty() {
            true => Err(RootsError::NoRoot(list(folders))),
            false => Ok(Roots(there)),
        }
    }

    /// Returns the first root, to which relative paths refer.
    pub fn first(&self) -> &Path {
        &self.0[0]
    }

    /// Returns all roots.
    pub fn folders(&self) -> &[PathBuf] {
        &self.0
    }

    /// Resolves a file or folder that exists.
    ///
    /// # Errors
    /// It does not exist, or is outside of the roots.
    pub fn existing(&self, text: &str) -> Result<PathBuf, RootsError> {
        let path = self.full(text)?;
        let found = path.canonicalize().map_err(|_| self.absent(text))?;
        self.inside(&found, text)
    }

    /// Resolves a path, or a glob (a pattern with `*`, `?` or `[`) to all that match it. A path that exists is no
    /// glob.
    ///
    /// # Errors
    /// Nothing matches, or a match is outside of the roots.
    pub fn matching(&self, text: &str) -> Result<Vec<PathBuf>, RootsError> {
        let path = self.full(text)?;
        if path.exists() {
            return Ok(vec![self.existing(text)?]);
        }
        let pattern = path.to_str().ok_or_else(|| self.absent(text))?;
        let all = glob::glob(pattern).map_err(|error| RootsError::Glob {
            path: text.to_owned(),
            reason: error.to_string(),
        })?;
        // A glob may search far, so its fixed part is checked before the matches are used.
        let fixed: PathBuf = path
            .components()
            .take_while(|part| !part.as_os_str().to_string_lossy().contains(['*', '?', '[']))
            .collect();
        let start = fixed.canonicalize().map_err(|_| self.absent(text))?;
        self.inside(&start, text)?;
        let mut found = Vec::new();
        for one in all.flatten() {
            if found.len() == MAX_MATCHES {
                return Err(RootsError::ManyMatches(text.to_owned()));
            }
            let one = one.canonicalize().map_err(|_| self.absent(text))?;
            found.push(self.inside(&one, text)?);
        }
        match found.is_empty() {
            true => Err(self.absent(text)),
            false => Ok(found),
        }
    }

    /// Resolves a file or folder to write, which must not exist yet, in a folder that does.
    ///
    /// # Errors
    /// It exists, its folder does not, or it is outside of the roots.
    pub fn new_file(&self, text: &str) -> Result<PathBuf, RootsError> {
        let path = self.full(text)?;
        let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else {
            return Err(RootsError::NoFileName(text.to_owned()));
        };
        let folder = folder.canonicalize().map_err(|_| self.absent(text))?;
        let path = self.inside(&folder, text)?.join(name);
        match path.symlink_metadata() {
            Ok(_) => Err(RootsError::Exists(text.to_owned())),
            Err(_) => Ok(path),
        }
    }

    /// Makes a path absolute, from the first root. `..` is refused, because behind a link it would mean another
    /// folder.
    fn full(&self, text: &str) -> Result<PathBuf, RootsError> {
        if text.is_empty() || text.contains('\0') {
            return Err(RootsError::Empty);
        }
        let path = Path::new(text);
        if path.components().any(|part| part == Component::ParentDir) {
            return Err(RootsError::Upwards(text.to_owned()));
        }
        Ok(self.first().join(path))
    }

    /// Returns a resolved path if it is in a root; `text` is the client's spelling of it.
    fn inside(&self, path: &Path, text: &str) -> Result<PathBuf, RootsError> {
        match self.0.iter().any(|root| path.starts_with(root)) {
            true => Ok(path.to_owned()),
            false => Err(RootsError::Outside {
                path: text.to_owned(),
                roots: list(&self.0),
            }),
        }
    }

    /// Returns the error that nothing is at a path.
    fn absent(&self, text: &str) -> RootsError {
        RootsError::Absent {
            path: text.to_owned(),
            roots: list(&self.0),
        }
    }
}

/// Returns the folder of a root's `file:` address, with `%` escapes decoded; `None` for other addresses.
pub fn folder_of_address(address: &str) -> Option<PathBuf> {
    use std::os::unix::ffi::OsStringExt;
    let path = address.strip_prefix("file://")?;
    let path = path.strip_prefix("localhost").unwrap_or(path);
    let mut bytes = Vec::with_capacity(path.len());
    let mut rest = path.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'%' => {
                let digit = |byte: Option<u8>| char::from(byte?).to_digit(16);
                (digit(rest.next())? * 16 + digit(rest.next())?) as u8
            }
            byte => byte,
        });
    }
    let path = PathBuf::from(OsString::from_vec(bytes));
    path.is_absolute().then_some(path)
}

/// Returns folders as a text, with commas between them.
fn list(folders: &[PathBuf]) -> String {
    let each = folders.iter().map(|folder| folder.display().to_string());
    each.collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn nothing_outside_is_named() {
        let outer = tempfile::tempdir().unwrap();
        let root = outer.path().join("root");
        std::fs::create_dir_all(root.join("rank=0")).unwrap();
        std::fs::create_dir_all(outer.path().join("secret")).unwrap();
        symlink(outer.path().join("secret"), root.join("link")).unwrap();
        let roots = Roots::new(std::slice::from_ref(&root)).unwrap();
        let root = root.canonicalize().unwrap();
        assert_eq!(roots.existing("rank=0"), Ok(root.join("rank=0")));
        assert_eq!(roots.matching("rank=*"), Ok(vec![root.join("rank=0")]));
        assert_eq!(roots.new_file("new"), Ok(root.join("new")));
        for wrong in [
            "link",
            "../secret",
            "/etc/passwd",
            "",
            "a\0b",
            "rank=0/../../secret",
        ] {
            assert!(roots.existing(wrong).is_err(), "{wrong}");
            assert!(roots.matching(wrong).is_err(), "{wrong}");
        }
        for wrong in [
            "/etc/pass*",
            "/*/passwd",
            "l*",
            "*/../../secret",
            "[",
            "none*",
        ] {
            assert!(roots.matching(wrong).is_err(), "{wrong}");
        }
        for wrong in ["link/new", "rank=0", "../new", "/tmp/new", "none/new", "/"] {
            assert!(roots.new_file(wrong).is_err(), "{wrong}");
        }
        assert!(Roots::new(&[root.join("none")]).is_err());
    }

    #[test]
    fn an_address_is_a_folder() {
        assert_eq!(
            folder_of_address("file:///a%20b/c"),
            Some(PathBuf::from("/a b/c"))
        );
        assert_eq!(
            folder_of_address("file://localhost/a"),
            Some(PathBuf::from("/a"))
        );
        for wrong in ["https://a/b", "file://host/a", "file:///a%2", "a"] {
            assert_eq!(folder_of_address(wrong), None, "{wrong}");
        }
    }
}
