//! Checks the destination of a capture before its start, and the written file after its end.

use super::{Backend, Destination, NotCaptured};
use std::path::Path;

impl Destination {
    /// Checks that the path can be written, by extension, absence of a file, folder, rights and free space; makes it
    /// absolute because the program may change its working directory.
    pub(super) fn check(&self, backend: &dyn Backend) -> Result<Destination, NotCaptured> {
        let Destination::File(path) = self else {
            return Ok(Destination::Live);
        };
        if path.as_os_str().is_empty() {
            return Err(NotCaptured::NoPath);
        }
        let path = std::path::absolute(path).unwrap_or_else(|_| path.clone());
        let expected = backend.extension();
        if path
            .extension()
            .is_none_or(|e| !e.eq_ignore_ascii_case(expected))
        {
            let backend = backend.name();
            return Err(NotCaptured::Extension {
                path,
                expected,
                backend,
            });
        }
        // A dangling link also takes the path.
        if path.symlink_metadata().is_ok() {
            return Err(NotCaptured::Exists { path });
        }
        let parent = path.parent().unwrap_or(Path::new("/")).to_owned();
        if !parent.is_dir() {
            return Err(NotCaptured::NoParent { parent });
        }
        if let Err(reason) = rustix::fs::access(&parent, rustix::fs::Access::WRITE_OK) {
            let reason = reason.to_string();
            return Err(NotCaptured::NotWritable { parent, reason });
        }
        let wanted_bytes = backend.least_free_bytes();
        // A file system that does not report its space is accepted.
        if let Ok(space) = rustix::fs::statvfs(&parent) {
            let free_bytes = space.f_bavail.saturating_mul(space.f_frsize);
            if free_bytes < wanted_bytes {
                return Err(NotCaptured::NoSpace {
                    parent,
                    free_bytes,
                    wanted_bytes,
                });
            }
        }
        Ok(Destination::File(path))
    }

    /// Checks that the capture was written, and returns its size; `None` for a destination without a path.
    pub(super) fn written(&self) -> Result<Option<u64>, NotCaptured> {
        let Destination::File(path) = self else {
            return Ok(None);
        };
        let not_written = |reason: String| NotCaptured::NotWritten {
            path: path.clone(),
            reason,
        };
        match size_of(path) {
            Ok(0) => Err(not_written("it is empty".to_owned())),
            Ok(bytes) => Ok(Some(bytes)),
            Err(error) => Err(not_written(error.to_string())),
        }
    }
}

/// Returns the size of a file, or of all files in a folder.
fn size_of(path: &Path) -> std::io::Result<u64> {
    let found = path.symlink_metadata()?;
    if !found.is_dir() {
        return Ok(found.len());
    }
    let mut bytes = 0;
    for entry in path.read_dir()? {
        bytes += size_of(&entry?.path())?;
    }
    Ok(bytes)
}
