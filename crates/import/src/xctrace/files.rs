//! Finds the files of an export, and recognises recordings and exports by name and content.

use crate::Error;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

/// Returns true if a path names a recording of Instruments, `NAME.trace`, which only Apple's tools can read.
pub fn is_bundle(path: &Path) -> bool {
    has_extension(path, "trace")
}

fn has_extension(path: &Path, wanted: &str) -> bool {
    path.extension()
        .is_some_and(|extension| extension == wanted)
}

/// Returns true for a recording, a folder of XML files, or an XML file of xctrace.
pub(super) fn recognises(path: &Path) -> bool {
    let in_folder = || std::fs::read_dir(path).into_iter().flatten().flatten();
    is_bundle(path)
        || has_extension(path, "xml")
        || in_folder().any(|entry| has_extension(&entry.path(), "xml"))
        || starts_as_xml(path)
}

/// Returns true if the first sign of a file that is not white space is `<`, and the file is no web page.
fn starts_as_xml(path: &Path) -> bool {
    let mut start = Vec::new();
    let read = File::open(path).and_then(|file| file.take(256).read_to_end(&mut start));
    let text = start.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&start);
    let text = text.trim_ascii_start().to_ascii_lowercase();
    let is_page = text.starts_with(b"<!doctype html") || text.starts_with(b"<html");
    read.is_ok() && text.starts_with(b"<") && !is_page
}

/// Returns the files that are given, and the `.xml` files of the folders that are given, those of each folder by
/// name. A recording, and a folder without such files, is an error.
pub(super) fn list(inputs: &[PathBuf]) -> Result<Vec<PathBuf>, Error> {
    let mut files = Vec::new();
    for input in inputs {
        if is_bundle(input) {
            return Err(Error::ToolOnly {
                path: input.clone(),
                form: "a recording of Instruments, which only xctrace on a Mac can read: import it there, or export its tables with `xctrace export` first",
            });
        }
        if !input.is_dir() {
            files.push(input.clone());
            continue;
        }
        let refused = Error::read(input);
        let before = files.len();
        for entry in std::fs::read_dir(input).map_err(refused)? {
            let path = entry.map_err(refused)?.path();
            // A pipe might never end.
            if has_extension(&path, "xml") && path.is_file() {
                files.push(path);
            }
        }
        if files.len() == before {
            return Err(Error::NoFiles {
                path: input.clone(),
                wanted: ".xml files: give the folder of what `xctrace export --output` wrote",
            });
        }
        files[before..].sort();
    }
    Ok(files)
}
