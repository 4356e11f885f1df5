//! Describes a file or folder that is not a trace.

use crate::Error;
use crate::manifest;
use gapscope_files::ContainedPath;
use std::io::Read;
use std::path::{Path, PathBuf};

/// The beginning of the guesses at files that `gapscope import` reads, or of which it says what to do with them.
const LOOKS_LIKE: &str = "it looks like ";

/// Returns the error that `path` is not a trace, with a guess at what it is.
pub(super) fn error(path: &Path) -> Error {
    let meant = meant_trace(path);
    if let Err(e) = path.metadata() {
        return match meant {
            Some(meant) => Error::Missing {
                path: path.to_owned(),
                meant,
            },
            None => Error::read(path)(e),
        };
    }
    let found = if path.is_dir() {
        folder(path)
    } else {
        match first_bytes(path) {
            Ok(bytes) => file(path, &bytes),
            Err(e) => return Error::read(path)(e),
        }
    };
    let found = match meant {
        Some(meant) => format!("{found}; is {} meant?", meant.display()),
        None if found.starts_with(LOOKS_LIKE) => format!(
            "{found}; make a trace of it: gapscope import {}",
            path.display()
        ),
        None => found.to_owned(),
    };
    Error::Foreign {
        path: path.to_owned(),
        found,
    }
}

/// Returns the trace that a path without its extension means, as `run` may mean `run.gapscope`; `None` where there is no such
/// trace.
pub fn meant_trace(path: &Path) -> Option<PathBuf> {
    let mut name = path.file_name()?.to_owned();
    name.push(".gapscope");
    let meant = path.with_file_name(name);
    let manifest = ContainedPath::new(&meant, manifest::FILE_NAME);
    manifest.open().is_ok().then_some(meant)
}

/// Guesses by its extension what a folder is.
fn folder(path: &Path) -> &'static str {
    let extension = path.extension().and_then(|e| e.to_str()).unwrap_or("");
    match extension {
        "trace" => "it looks like an Instruments (xctrace) recording",
        "gputrace" => "it looks like a Metal GPU capture",
        "gapscope" => "it has no trace.json, which a recording writes first",
        _ => "it is a folder without a trace.json",
    }
}

/// Returns the first 64 KiB of a file.
fn first_bytes(path: &Path) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    ContainedPath::from(path)
        .open()?
        .take(1 << 16)
        .read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Guesses by its first bytes, and else by its name, what a file is.
fn file(path: &Path, bytes: &[u8]) -> &'static str {
    let has = |text: &[u8]| bytes.windows(text.len()).any(|window| window == text);
    let begins = |text: &[u8]| bytes.starts_with(text);
    if bytes.is_empty() {
        "it is an empty file"
    } else if begins(b"PAR1") {
        "it is a Parquet file; give the whole folder of a trace"
    } else if begins(b"SQLite format 3\0") {
        "it looks like an SQLite database, such as an Nsight Systems export"
    } else if begins(&[0x1f, 0x8b]) {
        "it looks like a file compressed by gzip, such as a Chrome or Kineto trace"
    } else if begins(&[0x28, 0xb5, 0x2f, 0xfd]) {
        "it looks like a file compressed by zstd, such as a Chrome or Kineto trace"
    } else if begins(b"\x7fELF") {
        "it is a program; record it with `gapscope record PROGRAM`"
    } else if has(b"\"traceEvents\"") {
        "it looks like a Chrome or Kineto trace in JSON"
    } else if has(b"\"format_version\"") && has(b"\"sampling_mode\"") {
        "it is the manifest of one; give its folder"
    } else if has(b"<trace-query-result") || has(b"<trace-toc") {
        "it looks like an export of Instruments (xctrace)"
    } else {
        named(path).unwrap_or("a trace is a folder with a trace.json, and this is a file")
    }
}

/// Guesses by its name what a file is; `None` where the name says nothing.
fn named(path: &Path) -> Option<&'static str> {
    const NAMES: [(&str, &str); 8] = [
        (".nsys-rep", "it looks like a report of Nsight Systems"),
        (".qdrep", "it looks like a report of Nsight Systems"),
        (".pftrace", "it looks like a trace of Perfetto"),
        (".perfetto-trace", "it looks like a trace of Perfetto"),
        (".xplane.pb", "it looks like a profile of JAX or TensorFlow"),
        (".chrome_trace", "it looks like a trace of Triton's Proton"),
        (".json", "it looks like a file in JSON of another tool"),
        (".csv", "it looks like a table of another tool"),
    ];
    let name = path.file_name()?.to_string_lossy();
    let known = NAMES.iter().find(|(end, _)| name.ends_with(end));
    known.map(|(_, found)| *found)
}
