//! The content of memory: what a capture does not know yet, and what a submission has written.

use std::collections::HashMap;
use std::io;
use std::ops::Range;
use std::sync::Arc;

use gapscope_capture::model::{self, ContentCause, EndReason};
use gapscope_capture::{Hash, Record, Writer, pieces};
use gapscope_vulkan_layer::handles::Serial;
use gapscope_vulkan_layer::layer::Queue;

use super::disk::{disk, quietly};
use super::intervals::Intervals;
use super::open::Open;
use super::resolve::{Access, Touch};
use super::staging::Piece;
use crate::objects::memory::Memory;

/// A piece of memory that is to be read.
struct Wanted {
    memory: Arc<Memory>,
    bytes: Range<u64>,
    from: Piece,
}

impl Open {
    /// Writes what the submission may read and the capture does not know yet.
    pub(super) fn write_content(
        &mut self,
        queue: &Queue,
        touches: &[Touch],
    ) -> Result<(), EndReason> {
        // What was asked for already, and what was written by then.
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
        let mut run: Option<Run> = None;
        let Open {
            writer,
            known,
            staging,
            ..
        } = self;
        let staging = staging
            .as_mut()
            .ok_or_else(|| EndReason::Failed("nothing can be copied".to_owned()))?;
        let from: Vec<Piece> = wanted.iter().map(|wanted| wanted.from).collect();
        let numbers = &mut self.numbers;
        let mut error = None;
        let read = staging.read(queue, &from, |index, bytes| {
            let Wanted {
                memory,
                bytes: range,
                ..
            } = &wanted[index];
            let known = known.entry(memory.serial).or_default();
            let hash = Hash::of(bytes);
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
                        if let Some(run) = run.replace(Run::new(id, range, cause, hash)) {
                            run.write(writer)?;
                        }
                    }
                }
                Ok(())
            };
            quietly(&mut write).map_err(|e| {
                error = Some(disk(e));
                String::new()
            })
        });
        if let Some(error) = error {
            return Err(error);
        }
        read.map_err(EndReason::Failed)?;
        match run {
            Some(run) => quietly(|| run.write(&mut self.writer)).map_err(disk),
            None => Ok(()),
        }
    }

    /// What memory holds now.
    pub(super) fn content_of(
        &mut self,
        queue: &Queue,
        touch: &Touch,
    ) -> Result<Vec<u8>, EndReason> {
        let from: Vec<Piece> = cut(touch, touch.bytes.clone())
            .map(|wanted| wanted.from)
            .collect();
        let mut content = Vec::new();
        self.staging(|staging| {
            staging.read(queue, &from, |_, bytes| {
                content.extend_from_slice(bytes);
                Ok(())
            })
        })?;
        Ok(content)
    }

    /// Writes what the submission has written.
    pub(super) fn write_outcome(
        &mut self,
        queue: &Queue,
        touches: &[Touch],
    ) -> Result<(), EndReason> {
        let mut covered: HashMap<Serial, Intervals> = HashMap::new();
        let mut wanted: Vec<Wanted> = Vec::new();
        for touch in touches.iter().filter(|touch| touch.access != Access::Read) {
            let covered = covered.entry(touch.memory.serial).or_default();
            let parts = covered.missing(touch.bytes.clone());
            wanted.extend(parts.into_iter().flat_map(|part| cut(touch, part)));
            covered.add(touch.bytes.clone());
        }
        let Open {
            staging,
            known,
            numbers,
            writer,
            keeps_outputs,
            ..
        } = self;
        let staging = staging
            .as_mut()
            .ok_or_else(|| EndReason::Failed("nothing can be copied".to_owned()))?;
        let from: Vec<Piece> = wanted.iter().map(|wanted| wanted.from).collect();
        let mut error = None;
        let mut outcomes: Vec<model::Outcome> = Vec::new();
        let read = staging.read(queue, &from, |index, bytes| {
            let Wanted {
                memory,
                bytes: range,
                ..
            } = &wanted[index];
            let hash = match keeps_outputs {
                true => quietly(|| writer.chunk(bytes)).map_err(|e| {
                    error = Some(disk(e));
                    String::new()
                })?,
                false => Hash::of(bytes),
            };
            let known = known.entry(memory.serial).or_default();
            known.set(range.clone(), memory.is_host_visible().then_some(hash));
            let id = numbers.memory(memory);
            match outcomes.last_mut() {
                // Pieces end at the same places in both, so that theirs are one outcome's.
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
        });
        if let Some(error) = error {
            return Err(error);
        }
        read.map_err(EndReason::Failed)?;
        for outcome in outcomes {
            quietly(|| self.writer.record(&Record::Outcome(outcome))).map_err(disk)?;
        }
        Ok(())
    }
}

/// A range of a touch, in the pieces of a capture.
fn cut(touch: &Touch, part: Range<u64>) -> impl Iterator<Item = Wanted> {
    pieces(part.start, part.end - part.start).map(|(start, bytes)| Wanted {
        memory: touch.memory.clone(),
        bytes: start..start + bytes,
        from: Piece {
            buffer: touch.buffer.handle,
            offset: start - touch.buffer_at,
            bytes,
        },
    })
}

/// Pieces of content that follow each other.
struct Run {
    content: model::Content,
    end: u64,
}

impl Run {
    fn new(memory: model::MemoryId, range: &Range<u64>, cause: ContentCause, hash: Hash) -> Run {
        Run {
            content: model::Content {
                memory,
                offset: range.start,
                chunks: vec![hash],
                cause,
            },
            end: range.end,
        }
    }

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
