//! Finds the files of an export, and recognises recordings and exports by name and content.

use crate::Error;
use crate::folder::Folder;
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
    is_bundle(path)
        || has_extension(path, "xml")
        || !xml_files(path).is_empty()
        || starts_as_xml(path)
}

/// Returns the `.xml` files of a folder; none where there is no folder.
fn xml_files(folder: &Path) -> Vec<PathBuf> {
    Folder::list(folder, |name| has_extension(Path::new(name), "xml")).files
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
        std::fs::read_dir(input).map_err(Error::read(input))?;
        let found = xml_files(input);
        if found.is_empty() {
            return Err(Error::NoFiles {
                path: input.clone(),
                wanted: ".xml files: give the folder of what `xctrace export --output` wrote",
            });
        }
        files.extend(found);
    }
    Ok(files)
}
