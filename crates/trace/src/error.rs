//! Errors of writing and opening traces.

use crate::damage::Damage;
use crate::manifest::FORMAT_VERSION;
use crate::memory::{self, VARIABLE, size_text};
use parquet::errors::ParquetError;
use std::io;
use std::path::{Path, PathBuf};

/// Why a trace cannot be written or opened at all. Damage that leaves something to read is a [`Diagnostic`](crate::Diagnostic).
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The output exists already.
    #[error("{} exists already: choose another name or remove it", path.display())]
    Exists {
        /// The folder that was to be created.
        path: PathBuf,
    },
    /// The output's parent folder is missing.
    #[error("{} cannot be made: the folder {} does not exist", path.display(), parent.display())]
    NoParent {
        /// The folder that was to be created.
        path: PathBuf,
        /// The missing parent folder.
        parent: PathBuf,
    },
    /// A file or folder cannot be written.
    #[error("{} cannot be written: {source}", path.display())]
    Write {
        /// The file or folder.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// A file or folder cannot be read.
    #[error("{} cannot be read: {source}", path.display())]
    Read {
        /// The file or folder.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// A part of an unfinished trace is damaged, so the trace cannot be completed.
    #[error("{} is damaged ({reason}): the trace stays unfinished", path.display())]
    DamagedPart {
        /// The part.
        path: PathBuf,
        /// What is wrong with the part.
        reason: Damage,
    },
    /// The trace is complete, so nothing can be added to it.
    #[error("{} is complete already", path.display())]
    Complete {
        /// The trace.
        path: PathBuf,
    },
    /// The name of a source is not a hash, or its extension is not a word.
    #[error(
        "`{name}` is not a name for a source: a hexadecimal hash, a dot and a word are expected"
    )]
    SourceName {
        /// The name.
        name: String,
    },
    /// The path leads to something other than a trace.
    #[error("{} is not a gapscope trace: {found}", path.display())]
    Foreign {
        /// The path.
        path: PathBuf,
        /// A guess at what the path leads to.
        found: String,
    },
    /// Nothing is at the path of a trace, and a trace whose name differs by its extension is beside it.
    #[error("{} does not exist: is {} meant?", path.display(), meant.display())]
    Missing {
        /// The path.
        path: PathBuf,
        /// The trace that is there.
        meant: PathBuf,
    },
    /// A later gapscope wrote the trace.
    #[error(
        "{} has trace format {version}, and this gapscope reads up to {FORMAT_VERSION}: open it with a newer gapscope, such as the one that wrote it",
        path.display()
    )]
    Newer {
        /// The trace.
        path: PathBuf,
        /// The version of the trace.
        version: u64,
    },
    /// Reading takes more memory than allowed.
    #[error(
        "{} cannot be read with {} of memory, the limit here: set {VARIABLE} to more if the machine has it, or record a shorter time",
        path.display(), size_text(*limit_bytes)
    )]
    Memory {
        /// The file that was being read.
        path: PathBuf,
        /// The limit in bytes.
        limit_bytes: u64,
    },
    /// The manifest cannot be parsed.
    #[error("{} is damaged: {reason}", path.display())]
    DamagedManifest {
        /// The manifest.
        path: PathBuf,
        /// What is wrong with the manifest.
        reason: String,
    },
}

impl Error {
    /// Returns a function that makes the error of making the folder of a trace from the system's.
    pub fn not_made(folder: &Path) -> impl FnOnce(io::Error) -> Error {
        |source| match (source.kind(), folder.parent()) {
            (io::ErrorKind::AlreadyExists, _) => Error::Exists {
                path: folder.to_owned(),
            },
            (io::ErrorKind::NotFound, Some(parent)) => Error::NoParent {
                path: folder.to_owned(),
                parent: parent.to_owned(),
            },
            _ => Error::write(folder)(source),
        }
    }

    /// Returns a function that makes the error of writing `path` from the system's.
    pub(crate) fn write(path: &Path) -> impl FnOnce(io::Error) -> Error {
        |source| Error::Write {
            path: path.to_owned(),
            source,
        }
    }

    /// Returns a function that makes the error of reading `path` from the system's.
    pub(crate) fn read(path: &Path) -> impl FnOnce(io::Error) -> Error {
        |source| Error::Read {
            path: path.to_owned(),
            source,
        }
    }

    /// Returns a function that makes the error of writing `path` from the Parquet library's.
    pub(crate) fn write_parquet(path: &Path) -> impl FnOnce(ParquetError) -> Error {
        |error| Error::Write {
            path: path.to_owned(),
            source: into_io(error),
        }
    }

    /// Returns the error for exceeding the memory limit while `path` was read.
    pub(crate) fn memory(path: &Path) -> Error {
        Error::Memory {
            path: path.to_owned(),
            limit_bytes: memory::limit(),
        }
    }

    /// Returns a function that makes the error of a damaged part from its damage.
    pub(crate) fn damaged_part(path: &Path) -> impl Fn(Damage) -> Error {
        |reason| Error::DamagedPart {
            path: path.to_owned(),
            reason,
        }
    }
}

/// Returns the system's own error where there is one: it says "no space left" in fewer words.
fn into_io(error: ParquetError) -> io::Error {
    match error {
        ParquetError::External(inner) => match inner.downcast::<io::Error>() {
            Ok(error) => *error,
            Err(inner) => io::Error::other(inner),
        },
        error => io::Error::other(error),
    }
}
