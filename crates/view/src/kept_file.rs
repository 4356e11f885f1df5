//! Reads and writes the small JSON files that the server keeps for its readers: notes and preferences.

use gapscope_files::ContainedPath;
use std::io;

/// Reads a file of at most `most` bytes; returns `None` where it does not exist.
///
/// # Errors
/// The file cannot be read, is larger, or is no regular file: opening a pipe would block, and a link may lead to a file
/// of the reader.
pub fn read(file: &ContainedPath, most: u64) -> io::Result<Option<Vec<u8>>> {
    match file.read(most) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        read => read.map(Some),
    }
}

/// Returns the error of a file in another format than the only one that this gapscope writes and reads.
pub fn other_format(format: u32) -> io::Error {
    io::Error::other(format!("a later gapscope wrote it, in format {format}"))
}
