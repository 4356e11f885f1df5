//! Writes a capture while the program runs: records and bytes go in, the two files of the capture's folder come out.
//! Order of calls: `create`, then each object before the records that name it, and an `End` record last.

use gapscope_files::{ContainedPath, create_private_folder};
use serde::Serialize;
use std::collections::HashSet;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::FileExt;
use std::path::Path;

use crate::content::{Hash, MAX_CHUNK_BYTES, RunningHash, pieces};
use crate::cuda::CudaRecord;
use crate::model::*;
use crate::{CONTENT, RECORDS};

/// The place of a record among the others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LinePlace {
    /// The first line.
    First,
    /// A submission, or a launch: a check comes before it.
    Submission,
    /// The end: a check comes after it.
    End,
    /// Any other place.
    Other,
}

/// A line of a capture.
pub trait Line: Serialize {
    /// Returns where the line stands.
    fn place(&self) -> LinePlace;
}

impl Line for Record {
    fn place(&self) -> LinePlace {
        match self {
            Record::Capture(_) => LinePlace::First,
            Record::Submission(_) => LinePlace::Submission,
            Record::End(_) => LinePlace::End,
            _ => LinePlace::Other,
        }
    }
}

impl Line for CudaRecord {
    fn place(&self) -> LinePlace {
        match self {
            CudaRecord::Capture(_) => LinePlace::First,
            CudaRecord::Launch(_) => LinePlace::Submission,
            CudaRecord::End(_) => LinePlace::End,
            _ => LinePlace::Other,
        }
    }
}

/// The first line of a capture of any interface.
#[derive(Serialize)]
struct First<D> {
    capture: Header<D>,
}

impl<D: Serialize> Line for First<D> {
    fn place(&self) -> LinePlace {
        LinePlace::First
    }
}

/// A compressed piece of content.
#[derive(Debug)]
pub struct Frame {
    hash: Hash,
    /// Size before compression.
    bytes: u32,
    stored: Vec<u8>,
}

impl Frame {
    /// Compresses a piece whose hash is known.
    ///
    /// # Errors
    /// The piece is larger than 64 MiB, which no reader takes.
    pub fn new(hash: Hash, bytes: &[u8]) -> io::Result<Frame> {
        if bytes.len() > MAX_CHUNK_BYTES as usize {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        // Weights hardly shrink at any level, and zeros shrink at every one.
        let stored = zstd::bulk::compress(bytes, 1)?;
        Ok(Frame {
            hash,
            bytes: bytes.len() as u32,
            stored,
        })
    }
}

/// A capture that is being written. Without an `End` record it counts as cut off.
#[derive(Debug)]
pub struct Writer {
    records: BufWriter<File>,
    /// The hash of all lines written so far, for checks.
    hash: RunningHash,
    content: File,
    /// The size of `content.bin`.
    at: u64,
    /// The hashes of the pieces that were written.
    kept: HashSet<Hash>,
}

impl Writer {
    /// Creates the folder, which must not exist, and writes the first record, without what looks like a secret in the
    /// command line.
    ///
    /// # Errors
    /// The folder exists or cannot be created, or its files cannot be written.
    pub fn create<D: Serialize>(folder: &Path, header: Header<D>) -> io::Result<Writer> {
        create_private_folder(folder)?;
        let create = |name| ContainedPath::new(folder, name).create_new();
        let mut writer = Writer {
            records: BufWriter::new(create(RECORDS)?),
            hash: RunningHash::default(),
            content: create(CONTENT)?,
            at: 0,
            kept: HashSet::new(),
        };
        writer.record(&First {
            capture: header.without_secrets(),
        })?;
        Ok(writer)
    }

    /// Writes a record, and a check where one belongs. Content that the record names must have been written before.
    ///
    /// # Errors
    /// The record cannot be written, for example because the disk is full.
    pub fn record<L: Line>(&mut self, record: &L) -> io::Result<()> {
        let place = record.place();
        if place == LinePlace::Submission {
            self.check()?;
        }
        self.line(record)?;
        match place {
            LinePlace::End => self.check()?,
            LinePlace::First | LinePlace::Submission => {}
            LinePlace::Other => return Ok(()),
        }
        // The next record may come much later.
        self.records.flush()
    }

    /// Writes the hash of all lines before.
    fn check(&mut self) -> io::Result<()> {
        self.line(&Record::Check(self.hash.so_far()))
    }

    fn line(&mut self, record: &impl Serialize) -> io::Result<()> {
        let mut line = serde_json::to_vec(record)?;
        line.push(b'\n');
        self.hash.add(&line);
        self.records.write_all(&line)
    }

    /// Writes a piece of content, unless an equal one was written, and returns its hash.
    ///
    /// # Errors
    /// The piece cannot be written, or is larger than 64 MiB, which no reader takes.
    pub fn chunk(&mut self, bytes: &[u8]) -> io::Result<Hash> {
        let hash = Hash::new(bytes);
        if self.kept.contains(&hash) {
            return Ok(hash);
        }
        self.frame(&Frame::new(hash, bytes)?)?;
        Ok(hash)
    }

    /// Returns whether a piece with this hash was written.
    pub fn has(&self, hash: Hash) -> bool {
        self.kept.contains(&hash)
    }

    /// Writes a piece that was compressed before, unless an equal one was written.
    ///
    /// # Errors
    /// The piece cannot be written.
    pub fn frame(&mut self, frame: &Frame) -> io::Result<()> {
        if self.kept.contains(&frame.hash) {
            return Ok(());
        }
        let chunk = Chunk {
            hash: frame.hash,
            at: self.at,
            stored: frame.stored.len() as u32,
            bytes: frame.bytes,
        };
        // The offset is given, so that a frame that was written in part is overwritten.
        self.content.write_all_at(&frame.stored, self.at)?;
        self.at += u64::from(chunk.stored);
        self.record(&Record::Chunk(chunk))?;
        self.kept.insert(frame.hash);
        Ok(())
    }

    /// Writes a kernel: its SPIR-V, a layout with these bindings as set 0 and so many bytes of push constants, and the
    /// pipeline. All of them have the same `number` as id, which the ids in `pipeline` are set to.
    ///
    /// # Errors
    /// A record cannot be written.
    pub fn kernel(
        &mut self,
        number: u32,
        code: &[u8],
        bindings: Vec<LayoutBinding>,
        push_constants: u32,
        pipeline: Pipeline,
    ) -> io::Result<PipelineId> {
        let code = self.chunk(code)?;
        let (module, set_layout) = (ModuleId(number), SetLayoutId(number));
        let (layout, id) = (PipelineLayoutId(number), PipelineId(number));
        self.record(&Record::Module(Module { id: module, code }))?;
        self.record(&Record::SetLayout(SetLayout {
            id: set_layout,
            flags: 0,
            bindings,
        }))?;
        let range = PushConstantRange {
            stages: COMPUTE_STAGE,
            offset: 0,
            bytes: push_constants,
        };
        self.record(&Record::PipelineLayout(PipelineLayout {
            id: layout,
            flags: 0,
            sets: vec![Some(set_layout)],
            push_constants: Vec::from_iter((push_constants > 0).then_some(range)),
        }))?;
        self.record(&Record::Pipeline(Pipeline {
            id,
            layout,
            module,
            ..pipeline
        }))?;
        Ok(id)
    }

    /// Writes the bytes of an allocation that begin at `offset`. Without bytes nothing is written.
    ///
    /// # Errors
    /// The bytes cannot be written.
    pub fn content(
        &mut self,
        memory: MemoryId,
        offset: u64,
        bytes: &[u8],
        cause: ContentCause,
    ) -> io::Result<()> {
        if bytes.is_empty() {
            return Ok(());
        }
        let mut chunks = Vec::new();
        for piece in split(bytes, offset) {
            chunks.push(self.chunk(piece)?);
        }
        self.record(&Record::Content(Content {
            memory,
            offset,
            chunks,
            cause,
        }))
    }

    /// Writes the hashes of the bytes of an allocation that begin at `offset`. Without bytes nothing is written.
    ///
    /// # Errors
    /// The hashes cannot be written.
    pub fn outcome(&mut self, memory: MemoryId, offset: u64, bytes: &[u8]) -> io::Result<()> {
        if bytes.is_empty() {
            return Ok(());
        }
        let hashes = split(bytes, offset).map(Hash::new).collect();
        self.record(&Record::Outcome(Outcome {
            memory,
            offset,
            bytes: bytes.len() as u64,
            hashes,
        }))
    }
}

/// Splits bytes that begin at `offset` in their allocation into pieces.
fn split(bytes: &[u8], offset: u64) -> impl Iterator<Item = &[u8]> {
    pieces(offset, bytes.len() as u64)
        .map(move |(at, size)| &bytes[(at - offset) as usize..][..size as usize])
}
