//! What memory holds after a replay against what it held in the program.

use gapscope_capture::model::{Command, MemoryId, Outcome};
use gapscope_capture::{Capture, Hash};
use serde::Serialize;

use crate::error::Error;
use crate::memory::Memory;
use crate::program::{Program, ProgramStep};
use crate::regions::{Place, Regions};

/// Writers named for one difference: the last are those that matter.
const MOST_WRITERS: usize = 8;

/// A piece of an outcome: at most [`gapscope_capture::CHUNK_BYTES`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Piece {
    pub memory: MemoryId,
    pub offset: u64,
    pub bytes: u64,
    pub hash: Hash,
    /// After which submission of the capture; none: before the first.
    pub after: Option<usize>,
}

/// A piece of memory with other bytes than in the program.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Difference {
    /// The allocation.
    pub memory: u32,
    /// Where the piece begins there.
    pub offset: u64,
    /// Its size.
    pub bytes: u64,
    /// After which submission, from 0.
    pub submission: Option<usize>,
    /// The buffers that are there: their numbers, names, and where the piece begins in them.
    pub buffers: Vec<BufferPart>,
    /// What the submission wrote there with, the last of them.
    pub writers: Vec<Writer>,
    /// The first element that differs, where the capture has the bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first: Option<crate::values::Differing>,
}

/// A part of a buffer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct BufferPart {
    /// Its number.
    pub buffer: u32,
    /// Its name in the program.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Where the part begins in it.
    pub offset: u64,
}

/// A command that may have written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Writer {
    /// The number of the dispatch; none: a transfer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dispatch: Option<u64>,
    /// Its kernel, or what the transfer is.
    pub what: String,
}

/// The pieces of an outcome.
pub fn pieces(outcome: &Outcome, after: Option<usize>) -> Vec<Piece> {
    let mut at = outcome.offset;
    let end = outcome.offset + outcome.bytes;
    let mut pieces = Vec::new();
    for hash in &outcome.hashes {
        let next =
            (at / gapscope_capture::CHUNK_BYTES + 1).saturating_mul(gapscope_capture::CHUNK_BYTES);
        let bytes = next.min(end) - at;
        pieces.push(Piece {
            memory: outcome.memory,
            offset: at,
            bytes,
            hash: *hash,
            after,
        });
        at += bytes;
    }
    pieces
}

/// The pieces that say what memory holds at the end of a program.
pub fn last(capture: &Capture, program: &Program<'_>) -> Vec<Piece> {
    let mut after = None;
    let mut known: Vec<Piece> = Vec::new();
    for step in &program.steps {
        match step {
            ProgramStep::Submission(submitted) => after = Some(submitted.index),
            ProgramStep::Content(content) => {
                let bytes = content
                    .chunks
                    .iter()
                    .filter_map(|hash| capture.chunk_bytes(*hash));
                let bytes: u64 = bytes.map(u64::from).sum();
                known.retain(|piece| !overlaps(piece, content.memory, content.offset, bytes));
            }
            ProgramStep::Outcome(outcome) => {
                known.retain(|piece| {
                    !overlaps(piece, outcome.memory, outcome.offset, outcome.bytes)
                });
                known.extend(pieces(outcome, after));
            }
        }
    }
    known
}

fn overlaps(piece: &Piece, memory: MemoryId, offset: u64, bytes: u64) -> bool {
    piece.memory == memory && piece.offset < offset + bytes && offset < piece.offset + piece.bytes
}

/// Which of the pieces have other bytes than in the program.
pub fn compare(
    memory: &mut Memory,
    regions: &Regions,
    pieces: &[Piece],
) -> Result<Vec<Piece>, Error> {
    let places: Vec<(Place, u64)> = pieces
        .iter()
        .filter_map(|piece| Some((regions.place(piece.memory, piece.offset)?, piece.bytes)))
        .collect();
    let mut different = Vec::new();
    memory.download(&places, |index, bytes| {
        if Hash::of(bytes) != pieces[index].hash {
            different.push(pieces[index]);
        }
    })?;
    Ok(different)
}

/// Says of a piece what it is of.
pub fn describe(capture: &Capture, program: &Program<'_>, piece: &Piece) -> Difference {
    let buffers = capture
        .buffers
        .values()
        .filter(|buffer| buffer.memory == piece.memory);
    let parts = buffers.filter_map(|buffer| {
        let offset = piece.offset.checked_sub(buffer.offset)?;
        (offset < buffer.bytes).then(|| BufferPart {
            buffer: buffer.id.0,
            name: buffer.name.clone(),
            offset,
        })
    });
    Difference {
        memory: piece.memory.0,
        offset: piece.offset,
        bytes: piece.bytes,
        submission: piece.after,
        buffers: parts.collect(),
        writers: writers(capture, program, piece),
        first: None,
    }
}

/// What wrote to a piece in the submission before it, or last.
fn writers(capture: &Capture, program: &Program<'_>, piece: &Piece) -> Vec<Writer> {
    let mut found = Vec::new();
    let until = program
        .submissions()
        .filter(|submitted| Some(submitted.index) <= piece.after);
    for submitted in until {
        let mut of_this = Vec::new();
        for buffer in &submitted.buffers {
            let mut number = buffer.first_dispatch;
            for command in buffer.commands {
                let dispatch = number;
                number += u64::from(matches!(command, Command::Dispatch(_)));
                let writes = written(command).into_iter().any(|range| {
                    let (memory, offset) = capture.place(range);
                    overlaps(piece, memory, offset, range.bytes)
                });
                if writes {
                    of_this.push(writer(capture, command, dispatch));
                }
            }
        }
        if !of_this.is_empty() {
            found = of_this;
        }
    }
    let first = found.len().saturating_sub(MOST_WRITERS);
    found.split_off(first)
}

fn writer(capture: &Capture, command: &Command, number: u64) -> Writer {
    let (dispatch, what) = match command {
        Command::Dispatch(dispatch) => (
            Some(number),
            capture.pipelines[&dispatch.pipeline].name.clone(),
        ),
        Command::Copy(_) => (None, "copy".to_owned()),
        Command::Fill(_) => (None, "fill".to_owned()),
        _ => (None, "update".to_owned()),
    };
    Writer { dispatch, what }
}

/// The ranges that a command may write.
pub fn written(command: &Command) -> Vec<gapscope_capture::model::BufferRange> {
    match command {
        Command::Dispatch(dispatch) => {
            let writable = dispatch.bindings.iter().filter(|binding| {
                !binding.read_only
                    && crate::check::kernel::STORAGE.contains(&binding.descriptor_type)
            });
            writable.filter_map(|binding| binding.range).collect()
        }
        Command::Copy(copy) => {
            let regions = copy.regions.iter();
            let to = regions.map(|region| gapscope_capture::model::BufferRange {
                buffer: copy.to,
                offset: region.to,
                bytes: region.bytes,
            });
            to.collect()
        }
        other => crate::regions::ranges(other),
    }
}
