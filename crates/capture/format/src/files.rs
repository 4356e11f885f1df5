//! Reads the folder of a capture into a [`Capture`]. The files are not trusted: whatever is in them, reading ends,
//! takes bounded memory and does not panic.
//!
//! Input is a folder, output a capture of Vulkan or of CUDA, as its first line says, with all records up to the first invalid one, and the problem with that one.
//! Each line of `capture.jsonl` is parsed, compared with the hash of the lines before it if it is a check, and added
//! by `check.rs`.

use gapscope_files::ContainedPath;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

use crate::content::{Hash, RunningHash};
use crate::content_file::ContentFile;
use crate::contents::Contents;
use crate::cuda::{CudaCapture, CudaRecord};
use crate::invalid::{Fault, InvalidRecord};
use crate::model::*;
use crate::{CONTENT, CUDA_FORMAT, Capture, FORMAT, RECORDS};

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
    /// The capture holds launches of CUDA, and a capture of Vulkan is needed.
    #[error("the capture holds work of CUDA, and this takes captures of Vulkan")]
    OfCuda,
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
    /// There is no capture, a later version wrote it, or it holds work of another interface than Vulkan.
    pub fn open(folder: &Path) -> Result<(Capture, Option<Problem>), ReadError> {
        match AnyCapture::open(folder)? {
            (AnyCapture::Vulkan(capture), problem) => Ok((*capture, problem)),
            (AnyCapture::Cuda(_), _) => Err(ReadError::OfCuda),
        }
    }
}

/// A capture of one of the interfaces.
#[derive(Debug)]
pub enum AnyCapture {
    /// Commands of Vulkan.
    Vulkan(Box<Capture>),
    /// Launches of CUDA.
    Cuda(Box<CudaCapture>),
}

impl AnyCapture {
    /// Reads the records up to the first invalid one, and returns the capture and the problem with that record, if
    /// there is one. Content is read only when a chunk is asked for.
    ///
    /// # Errors
    /// There is no capture, or a later version wrote it.
    pub fn open(folder: &Path) -> Result<(AnyCapture, Option<Problem>), ReadError> {
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
        let contents = Contents::new(ContentFile::new(open(CONTENT)?));
        let not_a_capture = |fault: Fault| ReadError::NotACapture {
            path: folder.join(RECORDS),
            reason: fault.into(),
        };
        let first = lines.next_line().map_err(not_a_capture)?;
        let first = first.ok_or_else(|| not_a_capture(Fault::Empty))?;
        let api = check_format(&first)?;
        let no_header = || not_a_capture(Fault::NoHeader);
        Ok(match api {
            CapturedApi::Vulkan => {
                let header = match serde_json::from_slice(&first) {
                    Ok(Record::Capture(header)) if header.format > 0 => header.without_secrets(),
                    _ => return Err(no_header()),
                };
                let mut capture = Capture::new(header, contents);
                let problem = lines.read(&first, |record| match record {
                    Record::Check(hash) => Ok(Some(hash)),
                    record => capture.add(record).map(|()| None),
                });
                (AnyCapture::Vulkan(Box::new(capture)), problem)
            }
            CapturedApi::Cuda => {
                let header = match serde_json::from_slice(&first) {
                    Ok(CudaRecord::Capture(header)) if header.format >= CUDA_FORMAT => {
                        header.without_secrets()
                    }
                    _ => return Err(no_header()),
                };
                let mut capture = CudaCapture::new(header, contents);
                let problem = lines.read(&first, |record| match record {
                    CudaRecord::Check(hash) => {
                        capture.add(CudaRecord::Check(hash)).map(|()| Some(hash))
                    }
                    record => capture.add(record).map(|()| None),
                });
                capture.finish();
                (AnyCapture::Cuda(Box::new(capture)), problem)
            }
        })
    }
}

/// Refuses later formats, and returns the interface whose work the capture holds. Both are read first, as other fields
/// may be different in a later format.
fn check_format(line: &[u8]) -> Result<CapturedApi, ReadError> {
    #[derive(serde::Deserialize)]
    struct Version {
        format: u32,
        #[serde(default)]
        gapscope: String,
        #[serde(default)]
        api: Option<serde_json::Value>,
    }
    #[derive(serde::Deserialize)]
    struct First {
        capture: Version,
    }
    match serde_json::from_slice::<First>(line) {
        Ok(First {
            capture: Version {
                format, gapscope, ..
            },
        }) if format > FORMAT => Err(ReadError::Later {
            format,
            gapscope: readable(&gapscope),
        }),
        Ok(First {
            capture: Version { api: Some(api), .. },
        }) if api == "cuda" => Ok(CapturedApi::Cuda),
        _ => Ok(CapturedApi::Vulkan),
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
    /// Reads all lines after the first into records, and hands each to `add`, which returns the hash of a check.
    /// Returns the problem with the first invalid line, at which the reading stops.
    fn read<R: serde::de::DeserializeOwned>(
        mut self,
        first: &[u8],
        mut add: impl FnMut(R) -> Result<Option<Hash>, Fault>,
    ) -> Option<Problem> {
        let mut before = RunningHash::default();
        before.add(first);
        let mut add_next = |lines: &mut Lines| -> Result<bool, Fault> {
            let Some(line) = lines.next_line()? else {
                return Ok(false);
            };
            let record = serde_json::from_slice(&line).map_err(|error| not_a_record(&error))?;
            if add(record)?.is_some_and(|hash| hash != before.so_far()) {
                return Err(Fault::Changed);
            }
            before.add(&line);
            Ok(true)
        };
        let fault = loop {
            match add_next(&mut self) {
                Ok(true) => {}
                Ok(false) => break None,
                Err(fault) => break Some(fault),
            }
        };
        fault.map(|fault| Problem {
            line: self.line,
            reason: fault.into(),
        })
    }

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
