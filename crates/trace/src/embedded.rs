//! Embeds a whole trace, or a trace with those of its ranks, into the file of another format, from which it comes back as
//! it was.
//!
//! The file shows the trace in the way of its format, the *drawing*, which cannot hold everything. Behind the drawing
//! are the files of the trace's folder in [`Piece`]s, then a [`Seal`] of all bytes before the first piece. If the seal
//! does not fit, somebody changed the drawing, and the trace behind it is no longer what the file shows.
//!
//! Code of kernels is not embedded: whoever gives a drawing away does not expect to give away code.

use crate::tables::*;
use crate::{Error, for_each_table, manifest, rank_folders, read_manifest};
use gapscope_files::{ContainedPath, create_private_folder};
use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

/// The most bytes of a piece. It is a multiple of three, so that pieces in base64 need no padding.
pub const PIECE_BYTES: usize = 3 << 14;

/// A part of a file of a trace's folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Piece<'a> {
    /// The name of the file, behind the folder of its rank where there are ranks: `rank=3/kernels.parquet`.
    pub file: &'a str,
    /// The bytes that follow those of the pieces before it.
    pub bytes: &'a [u8],
}

/// A summary of the bytes of a drawing.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Seal {
    /// The number of bytes.
    pub bytes: u64,
    /// The CRC-32 of the bytes.
    pub crc32: u32,
}

/// Makes the seal of bytes while they pass through it.
#[derive(Debug)]
pub struct Sealing<W> {
    inner: W,
    bytes: u64,
    hasher: crc32fast::Hasher,
}

impl<W> Sealing<W> {
    /// Begins a seal for what passes to or from `inner`.
    pub fn new(inner: W) -> Sealing<W> {
        Sealing {
            inner,
            bytes: 0,
            hasher: crc32fast::Hasher::new(),
        }
    }

    /// Adds bytes that do not pass through.
    pub fn add(&mut self, bytes: &[u8]) {
        self.bytes += bytes.len() as u64;
        self.hasher.update(bytes);
    }

    /// Returns the seal of all bytes so far.
    pub fn seal(&self) -> Seal {
        Seal {
            bytes: self.bytes,
            crc32: self.hasher.clone().finalize(),
        }
    }
}

impl<W: Write> Write for Sealing<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.inner.write(bytes)?;
        self.add(&bytes[..written]);
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

/// Returns the names of the files of a complete trace's folder: the manifest and the tables.
fn names() -> Vec<String> {
    let mut names = vec![manifest::FILE_NAME.to_owned()];
    macro_rules! add {
        ($($field:ident: $table:ty,)+) => {$(
            names.push(format!("{}.parquet", <$table>::NAME));
        )+};
    }
    for_each_table!(add);
    names
}

/// Returns true where the trace of a folder can be embedded: it is complete, it is one trace, no command line in it
/// has what looks like a secret, and its files are files. A
/// stranger's trace may have links in their place, which lead to files of the reader.
pub fn can_embed(folder: &Path) -> bool {
    has_files_alone(folder)
        && read_manifest(folder).is_ok_and(|manifest| {
            manifest.complete
                && !manifest.altered
                && !manifest.had_secrets
                && manifest.ranks.is_empty()
        })
}

/// Returns true where the trace of a folder can be embedded together with those of its ranks: each of them can be.
pub fn can_embed_ranks(folder: &Path) -> bool {
    let ranks = rank_folders(folder);
    let is_own = |rank: u32, path: &Path| {
        let facts = fs::symlink_metadata(path);
        path.ends_with(rank_name(rank))
            && facts.is_ok_and(|facts| facts.is_dir())
            && can_embed(path)
    };
    has_files_alone(folder)
        && !ranks.is_empty()
        && ranks.iter().all(|(rank, path)| is_own(*rank, path))
        && read_manifest(folder)
            .is_ok_and(|manifest| manifest.complete && !manifest.altered && !manifest.had_secrets)
}

/// Returns the name of the folder of a rank's trace.
fn rank_name(rank: u32) -> String {
    format!("rank={rank}")
}

/// Returns true where what a folder has of a trace's files are files, and no links.
fn has_files_alone(folder: &Path) -> bool {
    let is_file = |name: &String| {
        let file = ContainedPath::new(folder, name);
        file.is_file() || !file.exists()
    };
    names().iter().all(is_file)
}

/// Hands the files of a complete trace over in pieces, then those of its ranks.
///
/// # Errors
/// A file cannot be read, or `take` returns an error.
pub fn each_piece(folder: &Path, mut take: impl FnMut(Piece) -> io::Result<()>) -> io::Result<()> {
    let mut all = names();
    for (rank, _) in rank_folders(folder) {
        let own = names().into_iter();
        all.extend(own.map(|name| format!("{}/{name}", rank_name(rank))));
    }
    let mut bytes = vec![0; PIECE_BYTES];
    for name in all {
        let mut file = match ContainedPath::new(folder, &name).open() {
            // Tables that older versions did not have may be missing.
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            file => file?,
        };
        loop {
            let mut filled = 0;
            while filled < bytes.len() {
                match file.read(&mut bytes[filled..])? {
                    0 => break,
                    read => filled += read,
                }
            }
            if filled == 0 {
                break;
            }
            take(Piece {
                file: &name,
                bytes: &bytes[..filled],
            })?;
        }
    }
    Ok(())
}

/// Writes an embedded trace to a folder of its own.
#[derive(Debug)]
pub struct Unpacking {
    folder: PathBuf,
    /// The names that files may have.
    names: Vec<String>,
    /// The files that were begun, in their folders.
    begun: BTreeSet<String>,
    /// The file of the last piece.
    open: Option<(String, File)>,
}

impl Unpacking {
    /// Creates the folder, which must not exist.
    ///
    /// # Errors
    /// The folder exists, or the system refuses to create it.
    pub fn create(folder: &Path) -> Result<Unpacking, Error> {
        create_private_folder(folder).map_err(|source| match source.kind() {
            io::ErrorKind::AlreadyExists => Error::Exists {
                path: folder.to_owned(),
            },
            _ => Error::write(folder)(source),
        })?;
        Ok(Unpacking {
            folder: folder.to_owned(),
            names: names(),
            begun: BTreeSet::new(),
            open: None,
        })
    }

    /// Appends a piece to its file. Returns false for a file that no trace has, and where the pieces of two files are mixed.
    ///
    /// # Errors
    /// The system refuses to write.
    pub fn take(&mut self, piece: Piece) -> Result<bool, Error> {
        let path = self.folder.join(piece.file);
        if self
            .open
            .as_ref()
            .is_none_or(|(name, _)| name != piece.file)
        {
            self.close()?;
            if !self.is_name(piece.file) || !self.begun.insert(piece.file.to_owned()) {
                return Ok(false);
            }
            let folder = path.parent().unwrap_or(&self.folder);
            match create_private_folder(folder) {
                Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
                    return Err(Error::write(folder)(error));
                }
                _ => {}
            }
            let file = ContainedPath::new(&self.folder, piece.file).create_new();
            let file = file.map_err(Error::write(&path))?;
            self.open = Some((piece.file.to_owned(), file));
        }
        let open = self.open.as_mut();
        let written = open.map_or(Ok(()), |(_, file)| file.write_all(piece.bytes));
        written.map_err(Error::write(&path))?;
        Ok(true)
    }

    /// Returns true for the name of a file of a trace, or of a rank's trace.
    fn is_name(&self, file: &str) -> bool {
        let name = match file.split_once('/') {
            Some((folder, name)) => {
                let rank = folder
                    .strip_prefix("rank=")
                    .and_then(|rank| rank.parse().ok());
                if rank.map(rank_name).as_deref() != Some(folder) {
                    return false;
                }
                name
            }
            None => file,
        };
        self.names.iter().any(|known| known == name)
    }

    /// Completes the file of the last piece.
    fn close(&mut self) -> Result<(), Error> {
        match self.open.take() {
            Some((name, file)) => file
                .sync_all()
                .map_err(Error::write(&self.folder.join(name))),
            None => Ok(()),
        }
    }

    /// Completes the files. Returns false where they are no complete trace.
    ///
    /// # Errors
    /// The system refuses to write.
    pub fn finish(mut self) -> Result<bool, Error> {
        self.close()?;
        Ok(can_embed(&self.folder) || can_embed_ranks(&self.folder))
    }

    /// Removes the folder, because the files are not those of a trace.
    pub fn remove(self) {
        // What is left of it is found by the next import, which then says that the folder exists.
        let _ = fs::remove_dir_all(&self.folder);
    }
}
