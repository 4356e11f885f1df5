//! Remembers which traces this user recorded on this machine, in a file of the user's own.
//!
//! A stranger's trace can name any file of its reader as a line of the program, so that reports quote source files only
//! for traces that were recorded here. The trace itself cannot be asked: whatever it says, a stranger can write. The
//! session remembers the hash of the table `frames`, the only one that names files with lines; a trace that has the same
//! table names the same files, wherever it was moved.

use crate::tables::{Frames, Table};
use gapscope_files::ContainedPath;
use std::fs::{self, DirBuilder, File};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// The most bytes of the file, some 16,000 recordings. Beyond them the older half is forgotten.
const MAX_FILE_BYTES: usize = 1 << 20;

/// The hashes of the recordings of one user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OwnRecordings {
    file: PathBuf,
}

impl OwnRecordings {
    /// Returns those that are kept in the user's folder for state, which may not exist yet.
    pub fn new(folder: &Path) -> OwnRecordings {
        OwnRecordings {
            file: folder.join("recordings"),
        }
    }

    /// Remembers the trace in `folder`, which was recorded here and is complete. A trace without stacks needs no entry.
    ///
    /// # Errors
    /// The trace or the file of hashes cannot be read or written.
    pub fn remember(&self, folder: &Path) -> io::Result<()> {
        let Some(hash) = frames_hash(folder)? else {
            return Ok(());
        };
        if let Some(folder) = self.file.parent() {
            DirBuilder::new()
                .recursive(true)
                .mode(0o700)
                .create(folder)?;
        }
        let kept = fs::read_to_string(&self.file).unwrap_or_default();
        if kept.len() >= MAX_FILE_BYTES {
            let newer = kept.lines().skip(kept.lines().count() / 2);
            let text: String = newer.flat_map(|line| [line, "\n"]).collect();
            ContainedPath::from(&*self.file).replace_private(text.as_bytes())?;
        }
        let mut file = (File::options().append(true).create(true))
            .mode(0o600)
            .open(&self.file)?;
        // One write, so that recordings that end together do not mix their lines.
        file.write_all(format!("{hash}\n").as_bytes())
    }

    /// Returns true where the trace in `folder` names the same code as one that was recorded here.
    pub fn has(&self, folder: &Path) -> bool {
        let Ok(Some(hash)) = frames_hash(folder) else {
            return false;
        };
        let kept = fs::read_to_string(&self.file).unwrap_or_default();
        kept.lines().any(|line| line == hash)
    }
}

/// Returns the hash of a trace's table of frames; `None` where it has no such table.
fn frames_hash(folder: &Path) -> io::Result<Option<String>> {
    let file = match ContainedPath::new(folder, format!("{}.parquet", Frames::NAME)).open() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        file => file?,
    };
    let mut hasher = blake3::Hasher::new();
    hasher.update_reader(file)?;
    Ok(Some(hasher.finalize().to_hex().to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Manifest, TraceWriter};

    fn trace(folder: &Path, file: &str) {
        let mut writer = TraceWriter::create(folder).unwrap();
        let text = format!("frame id=1 kind=python function=\"f\" file=\"{file}\" line=1");
        let parsed = crate::Trace::from_text(&text).unwrap();
        writer.tables_mut().frames = parsed.tables.frames;
        writer.finish(&Manifest::default()).unwrap();
    }

    #[test]
    fn a_trace_is_own_where_it_names_the_files_of_one_that_was_recorded() {
        let outer = tempfile::tempdir().unwrap();
        let own = OwnRecordings::new(&outer.path().join("state/gapscope"));
        let path = |name: &str| outer.path().join(name);
        trace(&path("recorded"), "/home/me/train.py");
        trace(&path("strange"), "/home/me/.ssh/keys.py");
        assert!(!own.has(&path("recorded")));
        own.remember(&path("recorded")).unwrap();
        fs::rename(path("recorded"), path("moved")).unwrap();
        assert!(own.has(&path("moved")));
        assert!(!own.has(&path("strange")));
        // A stranger's table in the folder of an own recording.
        fs::copy(path("strange/frames.parquet"), path("moved/frames.parquet")).unwrap();
        assert!(!own.has(&path("moved")));
    }
}
