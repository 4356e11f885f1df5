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
        if path.as_os_str().as_encoded_bytes().contains(&0) {
            let path = path.clone();
            return Err(NotCaptured::BadPath {
                path,
                reason: "it holds a NUL byte".to_owned(),
            });
        }
        let path = std::path::absolute(path).unwrap_or_else(|_| path.clone());
        let Some(path) = backend.output(&path) else {
            return Err(NotCaptured::Extension {
                path,
                expected: backend.extension(),
                backend: backend.name(),
            });
        };
        // A dangling link also takes the path.
        match path.symlink_metadata() {
            Ok(_) => return Err(NotCaptured::Exists { path }),
            Err(error) if error.kind() == std::io::ErrorKind::InvalidFilename => {
                let reason = format!(
                    "a part of it is longer than the file system allows, or holds characters that it refuses ({error})"
                );
                return Err(NotCaptured::BadPath { path, reason });
            }
            Err(_) => {}
        }
        let parent = path.parent().unwrap_or(Path::new("/")).to_owned();
        if !parent.is_dir() {
            return Err(NotCaptured::NoParent { parent });
        }
        if let Err(reason) = check_name_length(&parent, &path) {
            return Err(NotCaptured::BadPath { path, reason });
        }
        if let Err(reason) = rustix::fs::access(&parent, rustix::fs::Access::WRITE_OK) {
            let reason = reason.to_string();
            return Err(NotCaptured::NotWritable { parent, reason });
        }
        let wanted_bytes = backend.least_free_bytes();
        // A file system that does not report its space, such as a network's with 0 blocks, is accepted.
        if let Ok(space) = rustix::fs::statvfs(&parent)
            && space.f_blocks > 0
        {
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

/// The bytes that backends add to the name while they write.
const NAME_SPARE_BYTES: usize = 16;

/// Checks that the last part of the path, with what backends add to it while they write, is no longer than the file
/// system of `parent` allows; an error says what it allows.
fn check_name_length(parent: &Path, path: &Path) -> Result<(), String> {
    let most = rustix::fs::statvfs(parent).map_or(255, |space| space.f_namemax as usize);
    let most = if most == 0 { 255 } else { most };
    let bytes = path.file_name().map_or(0, |name| name.len());
    if bytes + NAME_SPARE_BYTES <= most {
        return Ok(());
    }
    let allowed = most.saturating_sub(NAME_SPARE_BYTES);
    Err(format!(
        "its name has {bytes} bytes, and a capture's may have {allowed} here"
    ))
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
