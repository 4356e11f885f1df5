//! Keeps baselines (the figures of earlier runs) as JSON files in a folder: saves, reads, lists and removes them by
//! name.

use super::fingerprint::Fingerprint;
use crate::exit;
use crate::failure::Failure;
use gapscope_comparison::diff::RunDigest;
use gapscope_files::ContainedPath;
use serde::{Deserialize, Serialize};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// The version of the files' format.
const VERSION: u32 = 1;

/// The folder in which baselines are unless the user names another, in the current folder.
const DEFAULT_FOLDER: &str = ".gapscope/baselines";

/// The maximum size of a file. A larger file is refused; a baseline of a thousand runs is far smaller.
const MAX_FILE_BYTES: u64 = 256 << 20;

/// The maximum length of a baseline's name.
const MAX_NAME_LETTERS: usize = 100;

/// The figures of runs, and the machines on which they were recorded.
#[derive(Debug, Serialize, Deserialize)]
pub struct Baseline {
    /// The time of saving in seconds since 1970; `None` if unknown.
    pub saved_unix_s: Option<i64>,
    /// The version of gapscope that saved it.
    pub gapscope: String,
    pub fingerprint: Fingerprint,
    /// The figures of each run, at least one.
    pub runs: Vec<RunDigest>,
}

impl Baseline {
    /// Returns the time of saving, in UTC.
    pub fn saved(&self) -> Option<String> {
        let at = chrono::DateTime::from_timestamp(self.saved_unix_s?, 0)?;
        Some(at.format("%Y-%m-%d %H:%M UTC").to_string())
    }
}

/// The content of a file: the version of its format, and the baseline.
#[derive(Serialize)]
struct BaselineFile<'a> {
    gapscope_baseline: u32,
    #[serde(flatten)]
    baseline: &'a Baseline,
}

/// The version of a file's format, which is read before the rest of the file.
#[derive(Deserialize)]
struct VersionHeader {
    gapscope_baseline: u32,
}

/// A folder of baselines.
pub struct Store {
    /// The folder, which need not exist.
    pub folder: PathBuf,
}

impl Store {
    /// Returns the folder of the project in the current folder. The project may be a stranger's: no link is followed
    /// there.
    pub fn of_project() -> Result<Store, Failure> {
        let folder = Path::new(DEFAULT_FOLDER);
        for part in folder.ancestors() {
            if part.is_symlink() {
                return Err(failure!(
                    "{} is a symbolic link, and may lead anywhere: name the folder of the baselines by --baselines",
                    part.display()
                ));
            }
        }
        Ok(Store {
            folder: folder.to_owned(),
        })
    }

    /// Returns the file of the baseline with a name.
    fn path(&self, name: &str) -> Result<PathBuf, Failure> {
        let fits = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
        if name.is_empty()
            || name.len() > MAX_NAME_LETTERS
            || name.starts_with('.')
            || !name.chars().all(fits)
        {
            return Err(failure!(
                "\"{name}\" cannot name a baseline: use at most {MAX_NAME_LETTERS} letters, digits, -, _ and ., and no . first"
            )
            .status(exit::USAGE));
        }
        Ok(self.folder.join(format!("{name}.json")))
    }

    /// Returns the file for a new baseline. An existing baseline with the name is an error unless `replace` is set.
    pub fn free(&self, name: &str, replace: bool) -> Result<PathBuf, Failure> {
        let path = self.path(name)?;
        match path.symlink_metadata().is_ok() && !replace {
            true => Err(failure!(
                "the baseline {name} exists already, in {}: give --replace, or another name",
                path.display()
            )),
            false => Ok(path),
        }
    }

    /// Writes a baseline, whole or not at all, and returns its size.
    pub fn write(&self, path: &Path, baseline: &Baseline) -> Result<u64, Failure> {
        let text = serde_json::to_string(&BaselineFile {
            gapscope_baseline: VERSION,
            baseline,
        })? + "\n";
        let cannot =
            |error: std::io::Error| failure!("{} cannot be written: {error}", path.display());
        std::fs::create_dir_all(&self.folder).map_err(cannot)?;
        let file = ContainedPath::from(path);
        file.replace(text.as_bytes()).map_err(cannot)?;
        Ok(text.len() as u64)
    }

    /// Reads a baseline, and returns it with its file. Files of another version or without runs are errors.
    pub fn open(&self, name: &str) -> Result<(PathBuf, Baseline), Failure> {
        let path = self.path(name)?;
        let shown = path.display();
        let cannot = |error: &dyn std::fmt::Display| {
            failure!("{shown} cannot be read as a baseline: {error}")
        };
        // The folder may have come with a stranger's project.
        let file = ContainedPath::from(&*path);
        let bytes = match file.bytes() {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == ErrorKind::NotFound => return Err(self.missing(name)),
            Err(error) => return Err(cannot(&error)),
        };
        if bytes > MAX_FILE_BYTES {
            return Err(cannot(&format!(
                "it has {bytes} bytes, and {MAX_FILE_BYTES} at most are read"
            )));
        }
        let text = file.read(MAX_FILE_BYTES).map_err(|error| cannot(&error))?;
        let head: VersionHeader = serde_json::from_slice(&text).map_err(|error| cannot(&error))?;
        if head.gapscope_baseline != VERSION {
            return Err(cannot(&format!(
                "it is of version {}, and this gapscope reads version {VERSION}; save it again",
                head.gapscope_baseline
            )));
        }
        let baseline: Baseline = serde_json::from_slice(&text).map_err(|error| cannot(&error))?;
        if baseline.runs.is_empty() {
            return Err(cannot(&"it has no runs"));
        }
        Ok((path, baseline))
    }

    /// Removes a baseline and returns its file.
    pub fn remove(&self, name: &str) -> Result<PathBuf, Failure> {
        let path = self.path(name)?;
        match std::fs::remove_file(&path) {
            Ok(()) => Ok(path),
            Err(error) if error.kind() == ErrorKind::NotFound => Err(self.missing(name)),
            Err(error) => Err(failure!("{} cannot be removed: {error}", path.display())),
        }
    }

    /// Returns the sorted names of all baselines; none if the folder does not exist.
    pub fn names(&self) -> Result<Vec<String>, Failure> {
        let cannot =
            |error: std::io::Error| failure!("{} cannot be read: {error}", self.folder.display());
        let entries = match std::fs::read_dir(&self.folder) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries.map_err(cannot)?,
        };
        let mut names = Vec::new();
        for entry in entries {
            let file = entry.map_err(cannot)?.file_name();
            let name = file.to_str().and_then(|file| file.strip_suffix(".json"));
            names.extend(name.map(str::to_owned));
        }
        names.sort();
        Ok(names)
    }

    /// Returns the error that no baseline has this name, with the names that there are.
    fn missing(&self, name: &str) -> Failure {
        let folder = self.folder.display();
        let there = match self.names().unwrap_or_default().as_slice() {
            [] => "there is none".to_owned(),
            names => format!("there are {}", names.join(", ")),
        };
        failure!(
            "no baseline is called {name} in {folder}: {there}; `gapscope baseline save {name} TRACE` makes it"
        )
    }
}
