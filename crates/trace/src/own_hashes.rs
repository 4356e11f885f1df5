//! Remembers the hashes of files that this user made on this machine, in a file of the user's own.

use std::fs::{self, DirBuilder, File};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::PathBuf;

use gapscope_files::ContainedPath;

/// The most bytes of the file, some 16,000 hashes. Beyond them the older half is forgotten.
const MAX_FILE_BYTES: usize = 1 << 20;

/// A file with a hash in each line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OwnHashes {
    file: PathBuf,
}

impl OwnHashes {
    /// Returns the hashes in a file, which may not exist yet.
    pub fn new(file: PathBuf) -> OwnHashes {
        OwnHashes { file }
    }

    /// Adds the hash of all that a reader has.
    ///
    /// # Errors
    /// The reader fails, or the file of hashes cannot be written.
    pub fn remember(&self, reader: impl Read) -> io::Result<()> {
        let hash = hash(reader)?;
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
        // One write, so that programs that end together do not mix their lines.
        file.write_all(format!("{hash}\n").as_bytes())
    }

    /// Returns whether the hash of all that a reader has was remembered.
    pub fn has(&self, reader: impl Read) -> bool {
        let Ok(hash) = hash(reader) else {
            return false;
        };
        let kept = fs::read_to_string(&self.file).unwrap_or_default();
        kept.lines().any(|line| line == hash)
    }
}

fn hash(reader: impl Read) -> io::Result<String> {
    let mut hasher = blake3::Hasher::new();
    hasher.update_reader(reader)?;
    Ok(hasher.finalize().to_hex().to_string())
}
