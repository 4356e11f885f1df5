//! Reads and writes the small JSON files that the server keeps for its readers: notes and preferences.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::Path;

/// Reads a file of at most `most` bytes; returns `None` where it does not exist.
///
/// # Errors
/// The file cannot be read, is larger, or is no regular file: opening a pipe would block.
pub fn read(path: &Path, most: u64) -> io::Result<Option<Vec<u8>>> {
    let file = match fs::metadata(path) {
        Ok(facts) if facts.is_file() => File::open(path)?,
        Ok(_) => return Err(io::Error::other("it is not a file")),
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    let mut bytes = Vec::new();
    file.take(most + 1).read_to_end(&mut bytes)?;
    match bytes.len() as u64 > most {
        true => Err(io::Error::other("it is too large")),
        false => Ok(Some(bytes)),
    }
}

/// Writes a file atomically: a concurrent reader gets the old or the new content.
///
/// # Errors
/// The system refuses.
pub fn write(path: &Path, content: &[u8]) -> io::Result<()> {
    let part = path.with_extension(format!("json.{}.part", std::process::id()));
    let write = || {
        let mut file = File::create(&part)?;
        file.write_all(content)?;
        file.sync_all()?;
        fs::rename(&part, path)
    };
    write().inspect_err(|_| {
        // The first error is the one that matters.
        let _ = fs::remove_file(&part);
    })
}

/// Returns the error of a file in another format than the only one that this gapscope writes and reads.
pub fn other_format(format: u32) -> io::Error {
    io::Error::other(format!("a later gapscope wrote it, in format {format}"))
}
