//! Remembers which traces this user recorded on this machine, in a file of the user's own.
//!
//! A stranger's trace can name any file of its reader as a line of the program, so that reports quote source files only
//! for traces that were recorded here. The trace itself cannot be asked: whatever it says, a stranger can write. The
//! session remembers the hash of the table `frames`, the only one that names files with lines; a trace that has the same
//! table names the same files, wherever it was moved.

use crate::own_hashes::OwnHashes;
use crate::tables::{Frames, Table};
use gapscope_files::ContainedPath;
use std::fs::File;
use std::io;
use std::path::Path;

/// The hashes of the recordings of one user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OwnRecordings {
    hashes: OwnHashes,
}

impl OwnRecordings {
    /// Returns those that are kept in the user's folder for state, which may not exist yet.
    pub fn new(folder: &Path) -> OwnRecordings {
        OwnRecordings {
            hashes: OwnHashes::new(folder.join("recordings")),
        }
    }

    /// Remembers the trace in `folder`, which was recorded here and is complete. A trace without stacks needs no entry.
    ///
    /// # Errors
    /// The trace or the file of hashes cannot be read or written.
    pub fn remember(&self, folder: &Path) -> io::Result<()> {
        match frames(folder)? {
            Some(file) => self.hashes.remember(file),
            None => Ok(()),
        }
    }

    /// Returns true where the trace in `folder` names the same code as one that was recorded here.
    pub fn has(&self, folder: &Path) -> bool {
        let frames = frames(folder).ok().flatten();
        frames.is_some_and(|file| self.hashes.has(file))
    }
}

/// Opens a trace's table of frames; `None` where it has no such table.
fn frames(folder: &Path) -> io::Result<Option<File>> {
    match ContainedPath::new(folder, format!("{}.parquet", Frames::NAME)).open() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        file => file.map(Some),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Manifest, TraceWriter};
    use std::fs;

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
