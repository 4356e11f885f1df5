//! Reads the files of a capture, of whoever made it.

use std::fmt;
use std::fs::{File, OpenOptions};
use std::io::{self, BufRead, BufReader, Read};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use crate::content::RunningHash;
use crate::model::*;
use crate::{CONTENT, Capture, FORMAT, RECORDS};

/// A line longer than this is of nobody's program: some 500,000 dispatches in one command buffer.
const LINE_BYTES: u64 = 256 << 20;
const NO_HEADER: &str = "its first line does not describe one";

/// Why a capture cannot be read at all.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// A file is missing, or cannot be read.
    #[error("cannot read {path}: {error}", path = path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What the system says.
        error: io::Error,
    },
    /// It does not begin as a capture does.
    #[error("{path} is not a capture: {reason}", path = path.display())]
    NotACapture {
        /// The file of records.
        path: PathBuf,
        /// What is wrong.
        reason: String,
    },
    /// A later version wrote it.
    #[error(
        "the capture has format {format}, and this gapscope reads up to {FORMAT}: read it with version {gapscope} or later"
    )]
    Later {
        /// Its format.
        format: u32,
        /// Who wrote it.
        gapscope: String,
    },
}

/// Where a capture stops being right. What came before it is there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// The line of `capture.jsonl`, from 1.
    pub line: usize,
    /// What is wrong with it.
    pub reason: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Problem { line, reason } = self;
        write!(
            f,
            "line {line} of {RECORDS}: {reason}: the capture is read as far as here"
        )
    }
}

impl Capture {
    /// Reads the records, up to the first that is not right, which is the problem that comes with the capture. Content is read when it is asked
    /// for.
    ///
    /// # Errors
    /// There is no capture, or one of a later version.
    pub fn open(folder: &Path) -> Result<(Capture, Option<Problem>), ReadError> {
        let open = |name| {
            let path = folder.join(name);
            regular(&path).map_err(|error| ReadError::File { path, error })
        };
        let mut lines = Lines {
            file: BufReader::new(open(RECORDS)?),
            line: 0,
        };
        let content = ContentFile::new(open(CONTENT)?);
        let not = |reason: String| ReadError::NotACapture {
            path: folder.join(RECORDS),
            reason,
        };
        let first = lines.next_line().map_err(|problem| not(problem.reason))?;
        let first = first.ok_or_else(|| not("it is empty".to_owned()))?;
        check_format(&first)?;
        let Ok(Record::Capture(header)) = serde_json::from_slice(&first) else {
            return Err(not(NO_HEADER.to_owned()));
        };
        if header.format == 0 {
            return Err(not(NO_HEADER.to_owned()));
        }
        let mut capture = Capture::new(header, content);
        let mut before = RunningHash::default();
        before.add(&first);
        let problem = loop {
            let line = match lines.next_line() {
                Ok(Some(line)) => line,
                Ok(None) => break None,
                Err(problem) => break Some(problem),
            };
            let record = serde_json::from_slice(&line).map_err(|error| not_a_record(&error));
            let added = record.and_then(|record| match record {
                Record::Check(hash) if hash == before.so_far() => Ok(()),
                Record::Check(_) => Err("what is before it is not as it was written".to_owned()),
                record => capture.add(record),
            });
            if let Err(reason) = added {
                let line = lines.line;
                break Some(Problem { line, reason });
            }
            before.add(&line);
        };
        Ok((capture, problem))
    }
}

/// `content.bin`: frames, one behind the other.
#[derive(Debug)]
pub(crate) struct ContentFile {
    file: File,
    /// Its size, when it was last asked for.
    bytes: u64,
    /// Where the last frame that was taken ends.
    taken: u64,
}

impl ContentFile {
    fn new(file: File) -> ContentFile {
        ContentFile {
            file,
            bytes: 0,
            taken: 0,
        }
    }

    /// Takes the next frame, if the file has it.
    pub(crate) fn take(&mut self, chunk: &Chunk) -> Result<(), String> {
        let Chunk {
            hash, at, stored, ..
        } = chunk;
        if *at < self.taken {
            let taken = self.taken;
            return Err(format!(
                "content {hash} begins at byte {at}, before the end of the last at byte {taken}"
            ));
        }
        let end = at.checked_add(u64::from(*stored));
        let end = end.ok_or_else(|| format!("content {hash} begins at byte {at}"))?;
        if end > self.bytes {
            // The program may still be writing.
            let there = self.file.metadata().map_err(|error| error.to_string())?;
            self.bytes = there.len();
        }
        if end > self.bytes {
            let bytes = self.bytes;
            return Err(format!(
                "content {hash} ends at byte {end}, and {CONTENT} has {bytes} bytes"
            ));
        }
        self.taken = end;
        Ok(())
    }

    pub(crate) fn read(&self, chunk: &Chunk) -> io::Result<Vec<u8>> {
        let mut frame = vec![0; chunk.stored as usize];
        self.file.read_exact_at(&mut frame, chunk.at)?;
        Ok(frame)
    }
}

/// A file of the folder itself: no link, which could lead out of it, and no pipe or device, which could be without end.
fn regular(path: &Path) -> io::Result<File> {
    let other = |what| io::Error::new(io::ErrorKind::InvalidInput, what);
    let kind = path.symlink_metadata()?.file_type();
    if kind.is_symlink() {
        return Err(other("it is a symbolic link, and may lead anywhere"));
    }
    let irregular = "it is not a regular file";
    if !kind.is_file() {
        return Err(other(irregular));
    }
    let file = OpenOptions::new()
        .read(true)
        // It may have been exchanged since.
        .custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK)
        .open(path)?;
    match file.metadata()?.is_file() {
        true => Ok(file),
        false => Err(other(irregular)),
    }
}

/// A later version may have other fields: its number comes first.
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

/// What the parser says of a line, which is all one line.
fn not_a_record(error: &serde_json::Error) -> String {
    let text = error.to_string();
    let what = text
        .rsplit_once(" at line ")
        .map_or(&*text, |parts| parts.0);
    format!("{} (column {})", readable(what), error.column())
}

/// The beginning of a text that may quote the file, without what could steer a terminal.
fn readable(text: &str) -> String {
    const CHARACTERS: usize = 200;
    let mut readable = String::new();
    for c in text.chars().take(CHARACTERS) {
        match c {
            '"' | '\'' | '\\' => readable.push(c),
            c => readable.extend(c.escape_debug()),
        }
    }
    readable
}

struct Lines {
    file: BufReader<File>,
    line: usize,
}

impl Lines {
    /// The next whole line with its line feed; one without an end was being written.
    fn next_line(&mut self) -> Result<Option<Vec<u8>>, Problem> {
        let mut line = Vec::new();
        self.line += 1;
        let problem = |line, reason: String| Problem { line, reason };
        let read = (&mut self.file)
            .take(LINE_BYTES)
            .read_until(b'\n', &mut line);
        read.map_err(|error| problem(self.line, error.to_string()))?;
        let bytes = line.len() as u64;
        match line.last() {
            None => Ok(None),
            Some(b'\n') => Ok(Some(line)),
            Some(_) if bytes == LINE_BYTES => {
                let reason = format!("it is longer than {LINE_BYTES} bytes");
                Err(problem(self.line, reason))
            }
            Some(_) => Err(problem(self.line, "it has no end".to_owned())),
        }
    }
}
