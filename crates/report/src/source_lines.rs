//! Adds to findings the source text of lines of code that a report names, from files of this machine.
//!
//! A trace names files, and a stranger's trace may name any. [`SourceAccess`] therefore says which files may be quoted:
//! none, those that the user's own recording names and that have not changed since, or those of a folder that the user
//! chose.

use gapscope_analysis::Findings;
use gapscope_analysis::code::CodeFrame;
use gapscope_files::ContainedPath;
use gapscope_trace::Manifest;
use gapscope_trace::own_recordings::OwnRecordings;
use std::collections::HashMap;
use std::path::{Component, Path, PathBuf};
use std::time::{Duration, SystemTime};

/// The maximum size of a file that is read. Nobody writes longer source files by hand.
const MAX_FILE_BYTES: u64 = 4 << 20;
/// The maximum number of characters of a line. Longer lines are cut.
const MAX_LINE_CHARACTERS: usize = 160;

/// The files of this machine that may be quoted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum SourceAccess {
    /// None, as for a stranger's trace.
    #[default]
    Nothing,
    /// Those that the trace names, which this user recorded on this machine: where folders are given, only files in them.
    Recorded(Option<Vec<PathBuf>>),
    /// Those in a folder that the user chose.
    Folder(PathBuf),
}

impl SourceAccess {
    /// Returns what may be quoted for a trace: files in `chosen` where the user chose a folder, and otherwise those of an
    /// own recording, as the folder `state` of the user remembers it. Files outside of `within` are not quoted, where
    /// folders are given.
    pub fn for_trace(
        trace: &Path,
        chosen: Option<&Path>,
        within: &[PathBuf],
        state: Option<&Path>,
    ) -> SourceAccess {
        let is_own = || state.is_some_and(|state| OwnRecordings::new(state).has(trace));
        match chosen {
            Some(folder) => SourceAccess::Folder(folder.to_owned()),
            None if is_own() && within.is_empty() => SourceAccess::Recorded(None),
            None if is_own() => {
                let resolved = within
                    .iter()
                    .filter_map(|folder| folder.canonicalize().ok());
                SourceAccess::Recorded(Some(resolved.collect()))
            }
            None => SourceAccess::Nothing,
        }
    }

    /// Returns the text of a file that a trace names, whose recording started at `recorded`; `None` where it may not be
    /// quoted, or changed after that.
    fn read(&self, path: &str, recorded: Option<SystemTime>) -> Option<String> {
        if !path.ends_with(".py") {
            return None;
        }
        let bytes = match self {
            SourceAccess::Nothing => return None,
            SourceAccess::Recorded(within) => {
                // The user's own links are followed, as the interpreter followed them.
                let path = Path::new(path).canonicalize().ok()?;
                let allowed = within.as_ref();
                if allowed.is_some_and(|all| !all.iter().any(|folder| path.starts_with(folder))) {
                    return None;
                }
                let file = ContainedPath::from(&*path);
                let modified = file.open().ok()?.metadata().ok()?.modified().ok()?;
                if modified > recorded? {
                    return None;
                }
                file.read(MAX_FILE_BYTES).ok()?
            }
            SourceAccess::Folder(folder) => in_folder(folder, path)?.read(MAX_FILE_BYTES).ok()?,
        };
        String::from_utf8(bytes).ok()
    }
}

/// Returns the file of a folder that ends as `path` does, with as many parts as possible: `src/train.py` in the folder
/// for `/home/somebody/work/src/train.py`.
fn in_folder(folder: &Path, path: &str) -> Option<ContainedPath> {
    let parts: Vec<Component> = Path::new(path)
        .components()
        .filter(|part| matches!(part, Component::Normal(_)))
        .collect();
    let named = (0..parts.len()).map(|first| parts[first..].iter().collect::<PathBuf>());
    let mut files = named.map(|name| ContainedPath::new(folder, name));
    files.find(ContainedPath::is_file)
}

/// Adds the text of each line by which a stack of the findings is shown.
pub fn add(findings: &mut Findings, manifest: &Manifest, access: &SourceAccess) {
    let Some(code) = findings.code.as_mut() else {
        return;
    };
    let mut lines = SourceLines::new(manifest, access);
    for frame in code.own_frames() {
        lines.fill(frame);
    }
}

/// A cache of files that were read. Only Python files are.
#[derive(Debug)]
pub struct SourceLines<'a> {
    access: &'a SourceAccess,
    /// When the recording started; `None` where the trace does not say.
    recorded: Option<SystemTime>,
    /// The texts of files by path; `None` for a file that is not used.
    files: HashMap<String, Option<String>>,
}

impl SourceLines<'_> {
    /// Makes an empty cache for frames of a trace.
    pub fn new<'a>(manifest: &Manifest, access: &'a SourceAccess) -> SourceLines<'a> {
        SourceLines {
            access,
            recorded: recorded(manifest),
            files: HashMap::new(),
        }
    }

    /// Adds the text of a frame's line, where its file can be read.
    pub fn fill(&mut self, frame: &mut CodeFrame) {
        let Some((path, line)) = frame.file.as_deref().zip(frame.line) else {
            return;
        };
        let text = (self.files)
            .entry(path.to_owned())
            .or_insert_with(|| self.access.read(path, self.recorded));
        frame.source = text.as_deref().and_then(|text| line_of(text, line));
    }
}

/// Returns when the recording started.
fn recorded(manifest: &Manifest) -> Option<SystemTime> {
    let ns = u64::try_from(manifest.start_unix_ns?).ok()?;
    SystemTime::UNIX_EPOCH.checked_add(Duration::from_nanos(ns))
}

/// Returns a line of a text, counted from 1, without blanks around it; `None` for an empty line.
fn line_of(text: &str, line: u32) -> Option<String> {
    let line = text.lines().nth(line.checked_sub(1)? as usize)?.trim();
    let cut: String = line.chars().take(MAX_LINE_CHARACTERS).collect();
    (!cut.is_empty()).then_some(cut)
}
