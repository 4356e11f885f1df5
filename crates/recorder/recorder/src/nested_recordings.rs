//! Tells an outer recording about recordings inside it. The hooks (gapscope's libraries in a program) of the inner
//! recording write to its own spool (their log), so that the outer recording has nothing of their work; the inner
//! recording therefore leaves a notice in the outer one's spool.

use crate::Error;
use crate::outcome::{Outcome, Recorded};
use gapscope_files::ContainedPath;
use gapscope_spool::{env, monotonic_ns};
use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

/// The beginning of a notice's name, which no spool of a process has. The notice holds the path of the inner trace.
const NOTICE_PREFIX: &str = "inner-";
/// The most bytes of a notice: a path cannot be longer.
const MAX_NOTICE_BYTES: u64 = 4096;
/// Inner traces beyond this number are counted, not named.
const MAX_NAMED_TRACES: usize = 3;

/// A recording's notice to the recording around it.
#[derive(Debug)]
pub struct Notice {
    /// Absent when no recording is around this one.
    file: Option<PathBuf>,
}

impl Notice {
    /// Leaves a notice that what this process starts from now on is in the trace `output`.
    pub fn leave(output: &Path) -> Notice {
        let outer = std::env::var_os(env::SPOOL).map(PathBuf::from);
        Notice::leave_in(outer, &absolute(output))
    }

    /// Leaves the notice in the spool `outer`, if there is one.
    fn leave_in(outer: Option<PathBuf>, output: &Path) -> Notice {
        let name = format!("{NOTICE_PREFIX}{}-{}", std::process::id(), monotonic_ns());
        let file = outer.map(|spool| spool.join(name));
        // The write fails when the outer recording ended long ago.
        Notice {
            file: file.filter(|file| fs::write(file, output.as_os_str().as_bytes()).is_ok()),
        }
    }

    /// Makes the notice say what has become of this recording: removes it when nothing was recorded and no trace is
    /// left, otherwise names the trace that is left.
    pub fn settle(self, recorded: &Result<Recorded, Error>) {
        let (Some(file), Ok(recorded)) = (self.file, recorded) else {
            return;
        };
        // A write fails when the outer recording has ended meanwhile.
        let _ = match &recorded.outcome {
            // A recording around three names the innermost, because nothing is left of the middle one.
            Outcome::RecordedInside {
                trace_kept: false,
                inner,
                ..
            } if let Some(first) = inner.first() => fs::write(file, first.as_os_str().as_bytes()),
            Outcome::NothingRecorded {
                trace_kept: false, ..
            } => fs::remove_file(file),
            // When only captures remain, the notice names the first of them.
            _ if file.exists() => {
                fs::write(file, absolute(&recorded.output).as_os_str().as_bytes())
            }
            _ => Ok(()),
        };
    }
}

/// Returns an absolute path, because the outer session may have another working directory.
fn absolute(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned())
}

/// Returns the traces of the recordings that ran inside the one with this spool.
pub fn inner_traces(spool: &Path) -> Vec<PathBuf> {
    let spool = ContainedPath::from(spool);
    let names = spool.names().unwrap_or_default().into_iter();
    let notices = names.filter(|name| name.as_bytes().starts_with(NOTICE_PREFIX.as_bytes()));
    let mut traces: Vec<PathBuf> = notices
        .filter_map(|name| spool.join(name).read(MAX_NOTICE_BYTES).ok())
        .map(|bytes| OsString::from_vec(bytes).into())
        .collect();
    traces.sort();
    traces
}

/// Returns the reason why a recording has no GPU work, if recordings ran inside it.
pub fn reason(inner: &[PathBuf]) -> Option<String> {
    Some(format!(
        "the command itself {}, and there was no GPU work besides",
        predicate(inner)?
    ))
}

/// Returns a note for the trace of a recording, if recordings ran inside it.
pub fn note(inner: &[PathBuf]) -> Option<String> {
    Some(format!(
        "The command itself {}; that work is not in this trace.",
        predicate(inner)?
    ))
}

/// Returns the predicate of a sentence about the command that names the inner traces; `None` when there are none.
fn predicate(inner: &[PathBuf]) -> Option<String> {
    let named: Vec<String> = inner
        .iter()
        .take(MAX_NAMED_TRACES)
        .map(|path| path.display().to_string())
        .collect();
    let more = match inner.len() - named.len() {
        _ if named.is_empty() => return None,
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    Some(format!(
        "ran `gapscope record`, which recorded what it started in {}{more}",
        named.join(", ")
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_notice_without_a_recording_around_it_is_none() {
        let folder = tempfile::tempdir().unwrap();
        let gone = folder.path().join("gone");
        let inner = Path::new("/inner.gapscope");
        assert_eq!(Notice::leave_in(None, inner).file, None);
        assert_eq!(Notice::leave_in(Some(gone), inner).file, None);
        assert_eq!(inner_traces(folder.path()), Vec::<PathBuf>::new());
        assert_eq!(reason(&[]), None);
    }

    #[test]
    fn many_recordings_inside_are_counted() {
        let folder = tempfile::tempdir().unwrap();
        let _notices: Vec<Notice> = (1..=5)
            .map(|n| {
                let trace = PathBuf::from(format!("/{n}.gapscope"));
                Notice::leave_in(Some(folder.path().to_owned()), &trace)
            })
            .collect();
        let note = note(&inner_traces(folder.path())).unwrap();
        assert_eq!(
            note,
            "The command itself ran `gapscope record`, which recorded what it started in /1.gapscope, /2.gapscope, \
             /3.gapscope and 2 more; that work is not in this trace."
        );
    }
}
