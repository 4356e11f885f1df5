//! Reads the folder of a capture into a [`Capture`]. The files are not trusted: whatever is in them, reading ends,
//! takes bounded memory and does not panic.
//!
//! Input is a folder, output a capture with all records up to the first invalid one, and the problem with that one.
//! Each line of `capture.jsonl` is parsed, compared with the hash of the lines before it if it is a check, and added
//! by `check.rs`.

use gapscope_files::ContainedPath;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

use crate::content::RunningHash;
use crate::content_file::ContentFile;
use crate::invalid::{Fault, InvalidRecord};
use crate::model::*;
use crate::{CONTENT, Capture, FORMAT, RECORDS};

/// The most bytes of a line of `capture.jsonl`, some 500,000 dispatches in one command buffer. A longer line is
/// invalid.
const MAX_LINE_BYTES: u64 = 256 << 20;

/// Why a folder cannot be read as a capture at all.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// A file is missing, or cannot be read.
    #[error("cannot read {path}: {error}", path = path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The system's error.
        error: io::Error,
    },
    /// The file does not begin as a capture does.
    #[error("{path} is not a capture: {reason}", path = path.display())]
    NotACapture {
        /// The file of records.
        path: PathBuf,
        /// Why the first line is invalid.
        reason: InvalidRecord,
    },
    /// A later version of gapscope wrote the capture.
    #[error(
        "the capture has format {format}, and this gapscope reads up to {FORMAT}: read it with version {gapscope} or later"
    )]
    Later {
        /// The format of the capture.
        format: u32,
        /// The version that wrote it.
        gapscope: String,
    },
}

/// The first invalid line of a capture. The records before it were read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line} of {RECORDS}: {reason}: the capture is read as far as here")]
pub struct Problem {
    /// The line of `capture.jsonl`, from 1.
    pub line: usize,
    /// Why the line is invalid.
    pub reason: InvalidRecord,
}

impl Capture {
    /// Reads the records up to the first invalid one, and returns the capture and the problem with that record, if
    /// there is one. Content is read only when [`Capture::chunk`] is called.
    ///
    /// # Errors
    /// There is no capture, or a later version wrote it.
    pub fn open(folder: &Path) -> Result<(Capture, Option<Problem>), ReadError> {
        let open = |name| {
            let path = ContainedPath::new(folder, name);
            path.open().map_err(|error| ReadError::File {
                path: path.path().to_owned(),
                error,
            })
        };
        let mut lines = Lines {
            file: BufReader::new(open(RECORDS)?),
            line: 0,
        };
        let content = ContentFile::new(open(CONTENT)?);
        let not_a_capture = |fault: Fault| ReadError::NotACapture {
            path: folder.join(RECORDS),
            reason: fault.into(),
        };
        let first = lines.next_line().map_err(not_a_capture)?;
        let first = first.ok_or_else(|| not_a_capture(Fault::Empty))?;
        check_format(&first)?;
        let header = match serde_json::from_slice(&first) {
            Ok(Record::Capture(header)) if header.format > 0 => header.without_secrets(),
            _ => return Err(not_a_capture(Fault::NoHeader)),
        };
        let mut capture = Capture::new(header, content);
        let mut before = RunningHash::default();
        before.add(&first);
        let mut add_next = || -> Result<bool, Fault> {
            let Some(line) = lines.next_line()? else {
                return Ok(false);
            };
            match serde_json::from_slice(&line).map_err(|error| not_a_record(&error))? {
                Record::Check(hash) if hash == before.so_far() => {}
                Record::Check(_) => return Err(Fault::Changed),
                record => capture.add(record)?,
            }
            before.add(&line);
            Ok(true)
        };
        let fault = loop {
            match add_next() {
                Ok(true) => {}
                Ok(false) => break None,
                Err(fault) => break Some(fault),
            }
        };
        let problem = fault.map(|fault| Problem {
            line: lines.line,
            reason: fault.into(),
        });
        Ok((capture, problem))
    }
}

/// Refuses later formats. The number is read first, as other fields may be different there.
fn check_format(line: &[u8]) -> Result<(), ReadError> {
    #[derive(serde::Deserialize)]
    struct Version {
        format: u32,
        #[serde(default)]
        gapscope: String,
    }
    #[derive(serde::Deserialize)]
    struct First {
        capture: Version,
    }
    match serde_json::from_slice::<First>(line) {
        Ok(First {
            capture: Version { format, gapscope },
        }) if format > FORMAT => Err(ReadError::Later {
            format,
            gapscope: readable(&gapscope),
        }),
        _ => Ok(()),
    }
}

/// Returns a fault with the parser's message, without its line number, which is always 1.
fn not_a_record(error: &serde_json::Error) -> Fault {
    let text = error.to_string();
    let what = text
        .rsplit_once(" at line ")
        .map_or(&*text, |parts| parts.0);
    Fault::Json {
        message: readable(what),
        column: error.column(),
    }
}

/// Shortens a text that may quote the file, and escapes what could steer a terminal.
fn readable(text: &str) -> String {
    const MAX_CHARACTERS: usize = 200;
    let mut readable = String::new();
    for c in text.chars().take(MAX_CHARACTERS) {
        match c {
            '"' | '\'' | '\\' => readable.push(c),
            c => readable.extend(c.escape_debug()),
        }
    }
    readable
}

/// The lines of `capture.jsonl`.
struct Lines {
    file: BufReader<File>,
    /// Number of the line that was read last, from 1.
    line: usize,
}

impl Lines {
    /// Returns the next line with its line feed. A last line without one was still being written, and is a problem.
    fn next_line(&mut self) -> Result<Option<Vec<u8>>, Fault> {
        let mut line = Vec::new();
        self.line += 1;
        let read = (&mut self.file)
            .take(MAX_LINE_BYTES)
            .read_until(b'\n', &mut line);
        read.map_err(|error| Fault::Unreadable(error.to_string()))?;
        let bytes = line.len() as u64;
        match line.last() {
            None => Ok(None),
            Some(b'\n') => Ok(Some(line)),
            Some(_) if bytes == MAX_LINE_BYTES => Err(Fault::LongLine(MAX_LINE_BYTES)),
            Some(_) => Err(Fault::OpenLine),
        }
    }
}
