//! Writes the content of memory to the capture: before a submission what the capture does not know yet, afterwards
//! what the submission has written. The ranges that its commands may access go in; records of content, in pieces
//! (chunks of a fixed size), come out. The layer's own buffers (`staging`) bring the bytes to the host.

use std::collections::HashMap;
use std::io;
use std::ops::Range;
use std::sync::Arc;

use gapscope_capture::model::{self, ContentCause, EndReason};
use gapscope_capture::{Hash, Record, Writer, pieces};
use gapscope_vulkan_layer::handles::Serial;
use gapscope_vulkan_layer::layer::Queue;

use super::intervals::Intervals;
use super::open_window::OpenWindow;
use super::quiet_writes::{end_reason, quietly};
use super::resolve::{Access, AccessedRange};
use super::staging::{BufferPiece, Failure};
use crate::objects::memory::Memory;

/// A piece of memory that is to be read, and where that is in a buffer.
struct PendingRead {
    memory: Arc<Memory>,
    bytes: Range<u64>,
    from: BufferPiece,
}

impl OpenWindow {
    /// Writes what the submission may read and the capture does not know yet. Memory that the host can write is
    /// always read, and written where its hash has changed.
    pub(super) fn write_content(
        &mut self,
        queue: &Queue,
        touches: &[AccessedRange],
    ) -> Result<(), EndReason> {
        // The bytes that were asked for already, and those that were written by then.
        let mut covered: HashMap<Serial, Intervals> = HashMap::new();
        let mut wanted = Vec::new();
        for touch in touches {
            let covered = covered.entry(touch.memory.serial).or_default();
            if touch.access != Access::Overwrite {
                let known = self.known.entry(touch.memory.serial).or_default();
                for part in covered.missing(touch.bytes.clone()) {
                    if touch.memory.is_host_visible() {
                        wanted.extend(cut(touch, part));
                    } else {
                        wanted.extend(known.missing(part).into_iter().flat_map(|p| cut(touch, p)));
                    }
                }
            }
            covered.add(touch.bytes.clone());
        }
        let mut run: Option<ContentRun> = None;
        let OpenWindow {
            writer,
            known,
            staging,
            ..
        } = self;
        let staging = staging.as_mut().ok_or(Failure::NoStaging)?;
        let from: Vec<BufferPiece> = wanted.iter().map(|wanted| wanted.from).collect();
        let numbers = &mut self.numbers;
        staging.read(queue, &from, |index, bytes| {
            let PendingRead {
                memory,
                bytes: range,
                ..
            } = &wanted[index];
            let known = known.entry(memory.serial).or_default();
            let hash = Hash::new(bytes);
            if known.is(range, hash) {
                return Ok(());
            }
            let cause = match known.touches(range) {
                true => ContentCause::HostWrite,
                false => ContentCause::FirstUse,
            };
            known.set(range.clone(), memory.is_host_visible().then_some(hash));
            let id = numbers.memory(memory);
            let mut write = || -> io::Result<()> {
                let hash = writer.chunk(bytes)?;
                match &mut run {
                    Some(run) if run.goes_on(id, range, cause) => run.add(range, hash),
                    _ => {
                        if let Some(run) = run.replace(ContentRun::new(id, range, cause, hash)) {
                            run.write(writer)?;
                        }
                    }
                }
                Ok(())
            };
            quietly(&mut write).map_err(end_reason)
        })?;
        match run {
            Some(run) => quietly(|| run.write(&mut self.writer)).map_err(end_reason),
            None => Ok(()),
        }
    }

    /// Returns the present content of memory.
    pub(super) fn content_of(
        &mut self,
        queue: &Queue,
        touch: &AccessedRange,
    ) -> Result<Vec<u8>, EndReason> {
        let from: Vec<BufferPiece> = cut(touch, touch.bytes.clone())
            .map(|wanted| wanted.from)
            .collect();
        let mut content = Vec::new();
        let staging = self.staging.as_mut().ok_or(Failure::NoStaging)?;
        staging.read(queue, &from, |_, bytes| {
            content.extend_from_slice(bytes);
            Ok(())
        })?;
        Ok(content)
    }

    /// Writes what the submission may have written: the hash of each piece, and its bytes if outputs are kept.
    pub(super) fn write_outcome(
        &mut self,
        queue: &Queue,
        touches: &[AccessedRange],
    ) -> Result<(), EndReason> {
        let mut covered: HashMap<Serial, Intervals> = HashMap::new();
        let mut wanted: Vec<PendingRead> = Vec::new();
        for touch in touches.iter().filter(|touch| touch.access != Access::Read) {
            let covered = covered.entry(touch.memory.serial).or_default();
            let parts = covered.missing(touch.bytes.clone());
            wanted.extend(parts.into_iter().flat_map(|part| cut(touch, part)));
            covered.add(touch.bytes.clone());
        }
        let OpenWindow {
            staging,
            known,
            numbers,
            writer,
            keeps_outputs,
            ..
        } = self;
        let staging = staging.as_mut().ok_or(Failure::NoStaging)?;
        let from: Vec<BufferPiece> = wanted.iter().map(|wanted| wanted.from).collect();
        let mut outcomes: Vec<model::Outcome> = Vec::new();
        staging.read(queue, &from, |index, bytes| {
            let PendingRead {
                memory,
                bytes: range,
                ..
            } = &wanted[index];
            let hash = match keeps_outputs {
                true => quietly(|| writer.chunk(bytes)).map_err(end_reason)?,
                false => Hash::new(bytes),
            };
            let known = known.entry(memory.serial).or_default();
            known.set(range.clone(), memory.is_host_visible().then_some(hash));
            let id = numbers.memory(memory);
            match outcomes.last_mut() {
                // Pieces end at the same places in both, so that theirs belong to one outcome.
                Some(last)
                    if last.memory == id
                        && last.offset + last.bytes == range.start
                        && range.start.is_multiple_of(gapscope_capture::CHUNK_BYTES) =>
                {
                    last.bytes += bytes.len() as u64;
                    last.hashes.push(hash);
                }
                _ => outcomes.push(model::Outcome {
                    memory: id,
                    offset: range.start,
                    bytes: bytes.len() as u64,
                    hashes: vec![hash],
                }),
            }
            Ok(())
        })?;
        for outcome in outcomes {
            quietly(|| self.writer.record(&Record::Outcome(outcome))).map_err(end_reason)?;
        }
        Ok(())
    }
}

/// Cuts a range of memory into the pieces of a capture.
fn cut(touch: &AccessedRange, part: Range<u64>) -> impl Iterator<Item = PendingRead> {
    pieces(part.start, part.end - part.start).map(|(start, bytes)| PendingRead {
        memory: touch.memory.clone(),
        bytes: start..start + bytes,
        from: BufferPiece {
            buffer: touch.buffer.handle,
            offset: start - touch.buffer_at,
            bytes,
        },
    })
}

/// Pieces of content that follow each other in an allocation, as one record.
struct ContentRun {
    content: model::Content,
    end: u64,
}

impl ContentRun {
    fn new(
        memory: model::MemoryId,
        range: &Range<u64>,
        cause: ContentCause,
        hash: Hash,
    ) -> ContentRun {
        ContentRun {
            content: model::Content {
                memory,
                offset: range.start,
                chunks: vec![hash],
                cause,
            },
            end: range.end,
        }
    }

    /// Returns true when a piece continues the run: it follows at once, at the border of a chunk, for the same cause.
    fn goes_on(&self, memory: model::MemoryId, range: &Range<u64>, cause: ContentCause) -> bool {
        self.content.memory == memory
            && self.content.cause == cause
            && self.end == range.start
            && range.start.is_multiple_of(gapscope_capture::CHUNK_BYTES)
    }

    fn add(&mut self, range: &Range<u64>, hash: Hash) {
        self.content.chunks.push(hash);
        self.end = range.end;
    }

    fn write(self, writer: &mut Writer) -> io::Result<()> {
        writer.record(&Record::Content(self.content))
    }
}
