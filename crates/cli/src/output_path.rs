//! Chooses the path of a recording if the user names none.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

/// Returns `NAME.gapscope` in `folder` for the program NAME, or the first of `NAME-2.gapscope`, … that is free,
/// because nothing is ever overwritten.
pub fn for_trace(folder: &Path, program: &OsStr) -> PathBuf {
    free_path(folder, program, "gapscope")
}

/// Returns `NAME.gapcapture` in `folder`, or the first free name, as [`for_trace`] does.
#[cfg(target_os = "linux")]
pub fn for_capture(folder: &Path, program: &OsStr) -> PathBuf {
    free_path(folder, program, "gapcapture")
}

/// Returns the first free path for a program's name and an extension.
fn free_path(folder: &Path, program: &OsStr, extension: &str) -> PathBuf {
    let name = Path::new(program)
        .file_name()
        .unwrap_or(OsStr::new("trace"));
    let name = name.to_string_lossy();
    let mut output = folder.join(format!("{name}.{extension}"));
    let mut number = 2;
    while output.symlink_metadata().is_ok() {
        output = folder.join(format!("{name}-{number}.{extension}"));
        number += 1;
    }
    output
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_recording_gets_a_number() {
        let folder = tempfile::tempdir().unwrap();
        let next = || for_trace(folder.path(), OsStr::new("/usr/bin/llama-cli"));
        assert_eq!(next(), folder.path().join("llama-cli.gapscope"));
        std::fs::create_dir(next()).unwrap();
        assert_eq!(next(), folder.path().join("llama-cli-2.gapscope"));
        // A link to a missing file also takes its name.
        std::os::unix::fs::symlink("nowhere", next()).unwrap();
        assert_eq!(next(), folder.path().join("llama-cli-3.gapscope"));
    }
}
