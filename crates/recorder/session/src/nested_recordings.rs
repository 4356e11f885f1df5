//! A recording inner another. The inner one's hooks write to its own spool, so that the outer one sees nothing of what
//! the inner one starts; the inner one therefore leaves a notice in the outer one's spool.

use crate::Error;
use crate::outcome::{Outcome, Recorded};
use gapscope_spool::{env, monotonic_ns};
use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

/// The name of a notice begins so; no spool of a process does. It holds the path of the inner trace.
const NOTICE_PREFIX: &str = "inner-";
/// More inner traces than these are counted, not named.
const MAX_NAMED_TRACES: usize = 3;

/// This recording's notice to the one around it.
#[derive(Debug)]
pub struct Notice {
    /// Absent when there is no recording around this one.
    file: Option<PathBuf>,
}

impl Notice {
    /// Leaves the notice: what this process starts from now on is in the trace `output`.
    pub fn leave(output: &Path) -> Notice {
        let outer = std::env::var_os(env::SPOOL).map(PathBuf::from);
        Notice::leave_in(outer, &absolute(output))
    }

    fn leave_in(outer: Option<PathBuf>, output: &Path) -> Notice {
        let name = format!("{NOTICE_PREFIX}{}-{}", std::process::id(), monotonic_ns());
        let file = outer.map(|spool| spool.join(name));
        // The outer recording may have ended long ago.
        Notice {
            file: file.filter(|file| fs::write(file, output.as_os_str().as_bytes()).is_ok()),
        }
    }

    /// Makes it say what has become of this recording.
    pub fn settle(self, recorded: &Result<Recorded, Error>) {
        let (Some(file), Ok(recorded)) = (self.file, recorded) else {
            return;
        };
        // What cannot be written now was refused because the outer recording has ended.
        let _ = match recorded.outcome {
            Outcome::NothingRecorded {
                trace_kept: false, ..
            } => fs::remove_file(file),
            // With captures alone, it is the first of them.
            _ if file.exists() => {
                fs::write(file, absolute(&recorded.output).as_os_str().as_bytes())
            }
            _ => Ok(()),
        };
    }
}

/// The outer session may have another working directory.
fn absolute(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned())
}

/// The traces of recordings inner the one with this spool.
pub fn inner_traces(spool: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(spool).into_iter().flatten().flatten();
    let notices = entries.filter(|e| {
        e.file_name()
            .as_bytes()
            .starts_with(NOTICE_PREFIX.as_bytes())
    });
    let mut traces: Vec<PathBuf> = notices
        .filter_map(|notice| Some(OsString::from_vec(fs::read(notice.path()).ok()?).into()))
        .collect();
    traces.sort();
    traces
}

/// Why a recording without GPU work has none, when there were recordings inner it.
pub fn reason(inner: &[PathBuf]) -> Option<String> {
    Some(format!(
        "the command itself {}, and there was no GPU work besides",
        predicate(inner)?
    ))
}

/// A note for the trace of a recording with others inner it.
pub fn note(inner: &[PathBuf]) -> Option<String> {
    Some(format!(
        "The command itself {}; that work is not in this trace.",
        predicate(inner)?
    ))
}

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
