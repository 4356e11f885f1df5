//! Chooses the path of a recording if the user names none, and says how another is named.

#[cfg(target_os = "linux")]
use crate::failure::Failure;
use std::ffi::OsStr;
#[cfg(target_os = "linux")]
use std::io::ErrorKind;
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

/// Turns an error of starting a recording into a failure. Where the output cannot be written, the failure says how another is
/// named.
#[cfg(target_os = "linux")]
pub fn or_elsewhere(error: gapscope_recorder::Error) -> Failure {
    let is_refused = match &error {
        gapscope_recorder::Error::Trace(gapscope_trace::Error::Write { source, .. }) => {
            source.kind() != ErrorKind::StorageFull
        }
        _ => false,
    };
    let failure = Failure::from(error);
    match is_refused {
        true => Failure {
            sentence: format!("{failure}; name another place with -o"),
            ..failure
        },
        false => failure,
    }
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
