//! Adds to findings the source text of lines of code that a report names, from files that have not changed since the
//! trace was recorded.

use gapscope_analysis::Findings;
use gapscope_analysis::code::CodeFrame;
use gapscope_trace::Manifest;
use std::collections::HashMap;
use std::fs;
use std::time::{Duration, SystemTime};

/// The maximum size of a file that is read. Nobody writes longer source files by hand.
const MAX_FILE_BYTES: u64 = 4 << 20;
/// The maximum number of characters of a line. Longer lines are cut.
const MAX_LINE_CHARACTERS: usize = 160;

/// Adds the text of each line by which a stack of the findings is shown.
pub fn add(findings: &mut Findings, manifest: &Manifest) {
    let Some(code) = findings.code.as_mut() else {
        return;
    };
    let mut lines = SourceLines::new(manifest);
    for frame in code.own_frames() {
        lines.fill(frame);
    }
}

/// A cache of files that were read. A trace may come from another machine: only Python files are read, and only where
/// they have not changed since it was recorded.
#[derive(Debug)]
pub struct SourceLines {
    /// When the recording started; `None` where the trace does not say, and no file is read.
    recorded: Option<SystemTime>,
    /// The texts of files by path; `None` for a file that is not used.
    files: HashMap<String, Option<String>>,
}

impl SourceLines {
    /// Makes an empty cache for frames of a trace.
    pub fn new(manifest: &Manifest) -> SourceLines {
        SourceLines {
            recorded: recorded(manifest),
            files: HashMap::new(),
        }
    }

    /// Adds the text of a frame's line, where its file can be read.
    pub fn fill(&mut self, frame: &mut CodeFrame) {
        let Some(recorded) = self.recorded else {
            return;
        };
        let Some((path, line)) = frame.file.as_deref().zip(frame.line) else {
            return;
        };
        let text = (self.files)
            .entry(path.to_owned())
            .or_insert_with(|| read(path, recorded));
        frame.source = text.as_deref().and_then(|text| line_of(text, line));
    }
}

/// Returns when the recording started.
fn recorded(manifest: &Manifest) -> Option<SystemTime> {
    let ns = u64::try_from(manifest.start_unix_ns?).ok()?;
    SystemTime::UNIX_EPOCH.checked_add(Duration::from_nanos(ns))
}

/// Returns the text of a file; `None` for other files than Python's, for large ones, and for those that changed
/// after `recorded`.
fn read(path: &str, recorded: SystemTime) -> Option<String> {
    let facts = fs::metadata(path).ok()?;
    let is_as_it_was = facts.modified().is_ok_and(|modified| modified <= recorded);
    let is_read = path.ends_with(".py") && facts.is_file() && facts.len() <= MAX_FILE_BYTES;
    (is_read && is_as_it_was).then(|| fs::read_to_string(path).ok())?
}

/// Returns a line of a text, counted from 1, without blanks around it; `None` for an empty line.
fn line_of(text: &str, line: u32) -> Option<String> {
    let line = text.lines().nth(line.checked_sub(1)? as usize)?.trim();
    let cut: String = line.chars().take(MAX_LINE_CHARACTERS).collect();
    (!cut.is_empty()).then_some(cut)
}
