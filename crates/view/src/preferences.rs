//! Keeps a reader's preferences for all servers in one file, since a browser keeps them for one port alone: how the
//! tracks of each trace are arranged, and which queries were asked.

use crate::Error;
use crate::kept_file;
use crate::protocol::Arrangement;
use crate::snapshot::Snapshot;
use gapscope_files::ContainedPath;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::fs::DirBuilder;
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

/// Name of the file in the folder of preferences.
const FILE: &str = "view.json";
/// The only version of the file that this gapscope writes and reads.
const FORMAT: u32 = 1;
/// The most traces whose arrangement is kept; beyond them the oldest is dropped.
const MAX_ARRANGEMENTS: usize = 200;
/// The most queries that are kept; beyond them the oldest is dropped.
const MAX_QUERIES: usize = 30;
/// The most bytes of an arrangement or of a query; a longer one is refused.
const MAX_TEXT_BYTES: usize = 60_000;
/// The most bytes of the file; a larger one is not read.
const MAX_FILE_BYTES: u64 = 32 << 20;

/// The content of the file, the latest entries first.
#[derive(Debug, Default, Serialize, Deserialize)]
struct PreferencesFile {
    format: u32,
    #[serde(default)]
    queries: Vec<String>,
    #[serde(default)]
    arranged: Vec<Arranged>,
}

/// The kept arrangement of the tracks of one trace, which is named by its [`identity`].
#[derive(Debug, Serialize, Deserialize)]
struct Arranged {
    /// The identity of the trace.
    trace: String,
    #[serde(flatten)]
    how: Arrangement,
}

/// The reason why a preference is not kept.
#[derive(Debug, thiserror::Error)]
pub enum PreferenceError {
    /// The request is too long.
    #[error("It is too long to be kept.")]
    TooLong,
    /// The request cannot be parsed.
    #[error("It cannot be understood: {0}.")]
    Malformed(#[from] serde_json::Error),
    /// There is no folder for preferences.
    #[error("There is no folder for it.")]
    NoFolder,
    /// The file cannot be read or written.
    #[error("{0}.")]
    Unwritable(Error),
}

/// The preferences of a reader.
pub struct Preferences {
    /// The path of the file; `None` where nothing is kept.
    file: Option<ContainedPath>,
    /// Held while the file is changed.
    writing: Mutex<()>,
}

impl Preferences {
    /// Makes the preferences that are kept in a folder; without a folder nothing is kept.
    pub fn new(folder: Option<&Path>) -> Preferences {
        Preferences {
            file: folder.map(|folder| {
                // The folder and the file are the user's own, and may be links to where the user keeps settings.
                let path = folder.join(FILE);
                ContainedPath::from(&*path.canonicalize().unwrap_or(path))
            }),
            writing: Mutex::new(()),
        }
    }

    /// Returns true where preferences are kept.
    pub fn are_kept(&self) -> bool {
        self.file.is_some()
    }

    /// Returns the queries, the latest first.
    pub fn queries(&self) -> Vec<String> {
        self.read().unwrap_or_default().queries
    }

    /// Returns the kept arrangements by the [`identity`] of their trace.
    pub fn arrangements(&self) -> HashMap<String, Arrangement> {
        let arranged = self.read().unwrap_or_default().arranged.into_iter();
        arranged.map(|kept| (kept.trace, kept.how)).collect()
    }

    /// Keeps how the tracks of a trace are arranged; the default arrangement is forgotten instead. `trace` is the
    /// [`identity`] of the trace.
    ///
    /// # Errors
    /// See [`PreferenceError`].
    pub fn arrange(&self, trace: String, sent: &[u8]) -> Result<(), PreferenceError> {
        let how: Arrangement = parsed(sent)?;
        self.change(|written| {
            written.arranged.retain(|one| one.trace != trace);
            if how != Arrangement::default() {
                written.arranged.insert(0, Arranged { trace, how });
                written.arranged.truncate(MAX_ARRANGEMENTS);
            }
        })
    }

    /// Keeps a query that was asked as the latest; the same query is kept once.
    ///
    /// # Errors
    /// See [`PreferenceError`].
    pub fn ask(&self, sent: &[u8]) -> Result<(), PreferenceError> {
        let query: String = parsed(sent)?;
        self.change(|written| {
            written.queries.retain(|one| *one != query);
            written.queries.insert(0, query);
            written.queries.truncate(MAX_QUERIES);
        })
    }

    /// Reads the file, changes its content and writes it.
    fn change(&self, change: impl FnOnce(&mut PreferencesFile)) -> Result<(), PreferenceError> {
        let Some(path) = &self.file else {
            return Err(PreferenceError::NoFolder);
        };
        let _writing = self.writing.lock().unwrap_or_else(PoisonError::into_inner);
        let refused = |error: io::Error| {
            let (path, reason) = (path.path().to_owned(), error.to_string());
            PreferenceError::Unwritable(Error::Write { path, reason })
        };
        // A file that cannot be read is of a later gapscope or of another program: it is left alone.
        let mut written = self.read().map_err(refused)?;
        written.format = FORMAT;
        change(&mut written);
        write(path, &written).map_err(refused)
    }

    /// Reads the file; without a file nothing is kept yet.
    fn read(&self) -> io::Result<PreferencesFile> {
        let Some(path) = &self.file else {
            return Ok(PreferencesFile::default());
        };
        let Some(bytes) = kept_file::read(path, MAX_FILE_BYTES)? else {
            return Ok(PreferencesFile::default());
        };
        let written: PreferencesFile = serde_json::from_slice(&bytes)?;
        match written.format {
            FORMAT => Ok(written),
            format => Err(kept_file::other_format(format)),
        }
    }
}

/// Parses what a request sends, unless it is too long.
fn parsed<'a, T: Deserialize<'a>>(sent: &'a [u8]) -> Result<T, PreferenceError> {
    match sent.len() > MAX_TEXT_BYTES {
        true => Err(PreferenceError::TooLong),
        false => Ok(serde_json::from_slice(sent)?),
    }
}

/// Writes the file, and makes its folder where that is missing.
fn write(file: &ContainedPath, written: &PreferencesFile) -> io::Result<()> {
    if let Some(folder) = file.path().parent() {
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(folder)?;
    }
    file.replace_private(&serde_json::to_vec_pretty(written)?)
}

/// Returns a text that identifies a trace wherever its folder is: its start, by the wall clock and the machine's
/// monotonic clock. Its name stands for an unknown time of the wall clock.
pub fn identity(snapshot: &Snapshot, name: &str) -> String {
    let start = snapshot.trace.manifest.start_unix_ns;
    let start = start.map_or(name.to_owned(), |ns| ns.to_string());
    format!("{start}.{}", snapshot.origin_ns)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;
    use std::fs;

    fn arrange(kept: &Preferences, trace: &str, how: &str) {
        kept.arrange(trace.to_owned(), how.as_bytes()).unwrap();
    }

    #[test]
    fn arrangements_are_kept_by_trace_for_the_next_server() {
        let folder = tempfile::tempdir().unwrap();
        let place = folder.path().join("not/there/yet");
        let kept = Preferences::new(Some(&place));
        arrange(&kept, "a", r#"{"tracks": "pq1.work", "text": "q"}"#);
        arrange(&kept, "b", r#"{"order": "x"}"#);
        let again = Preferences::new(Some(&place));
        let of = |traces: &[&str]| {
            let kept = again.arrangements();
            json!(
                traces
                    .iter()
                    .map(|trace| kept.get(*trace))
                    .collect::<Vec<_>>()
            )
        };
        let first = json!({"tracks": "pq1.work", "text": "q"});
        assert_eq!(of(&["b", "c", "a"]), json!([{"order": "x"}, null, first]));
        // As at first is nothing that would have to be kept.
        arrange(&kept, "a", "{}");
        assert_eq!(of(&["a"]), json!([null]));
        for trace in 0..MAX_ARRANGEMENTS + 5 {
            arrange(&kept, &trace.to_string(), r#"{"order": "y"}"#);
        }
        assert_eq!(of(&["b", "4", "5"]), json!([null, null, {"order": "y"}]));
    }

    #[test]
    fn queries_are_kept_once_the_latest_first() {
        let folder = tempfile::tempdir().unwrap();
        let kept = Preferences::new(Some(folder.path()));
        for query in ["select 1", "select 2", "select 1"] {
            kept.ask(json!(query).to_string().as_bytes()).unwrap();
        }
        assert_eq!(kept.queries(), ["select 1", "select 2"]);
        assert!(matches!(
            kept.ask(b"{}"),
            Err(PreferenceError::Malformed(_))
        ));
        let long = json!("x".repeat(MAX_TEXT_BYTES)).to_string();
        assert!(matches!(
            kept.ask(long.as_bytes()),
            Err(PreferenceError::TooLong)
        ));
    }

    #[test]
    fn what_cannot_be_read_is_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(FILE);
        let kept = Preferences::new(Some(folder.path()));
        for text in ["{", r#"{"format": 2, "queries": ["x"]}"#] {
            fs::write(&path, text).unwrap();
            assert!(kept.queries().is_empty());
            assert!(matches!(
                kept.ask(b"\"select 1\""),
                Err(PreferenceError::Unwritable(_))
            ));
            assert_eq!(fs::read_to_string(&path).unwrap(), text);
        }
    }

    #[test]
    fn without_a_folder_nothing_is_kept() {
        let kept = Preferences::new(None);
        assert!(matches!(
            kept.ask(b"\"select 1\""),
            Err(PreferenceError::NoFolder)
        ));
        assert!(kept.queries().is_empty());
        assert!(!kept.are_kept());
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_not(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let folder = tempfile::tempdir().unwrap();
            fs::write(folder.path().join(FILE), &bytes).unwrap();
            let kept = Preferences::new(Some(folder.path()));
            let _ = kept.queries();
            let _ = kept.arrangements();
        }
    }
}
