//! Compares the contents of memory after a replay with those that the program left: outcomes (ranges of memory after
//! a submission, with hashes of the pieces of each) and bytes of the device go in, the pieces that differ come out.

use std::collections::BTreeMap;

use gapscope_capture::model::{Command, MemoryId, Outcome, PipelineId};
use gapscope_capture::{Capture, Hash};
use schemars::JsonSchema;
use serde::Serialize;

use crate::error::Error;
use crate::memory::Memory;
use crate::program::{Program, ProgramStep};
use crate::regions::{RegionOffset, Regions};
use crate::shader::Shader;
use crate::values::{Differing, Element};

/// The most writers that are named for one difference; earlier ones are left out.
const MAX_WRITERS: usize = 8;

/// A piece of an outcome, of at most [`gapscope_capture::CHUNK_BYTES`] bytes, with the hash that the program left
/// there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Piece {
    pub memory: MemoryId,
    pub offset: u64,
    pub bytes: u64,
    /// The hash of the bytes that the program left.
    pub hash: Hash,
    /// Number of the submission that the piece follows; `None` if it precedes the first.
    pub after: Option<usize>,
}

/// A piece of memory that holds other bytes than in the program.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Difference {
    /// The allocation.
    pub memory: u32,
    /// The first byte in the allocation.
    pub offset: u64,
    /// Size of the piece.
    pub bytes: u64,
    /// Number of the submission after which the piece differs, from 0.
    pub submission: Option<usize>,
    /// Buffers that contain the piece, with their numbers and names and where the piece begins in them.
    pub buffers: Vec<BufferPart>,
    /// Commands of the submission that wrote there; the last of them if there are many.
    pub writers: Vec<Writer>,
    /// The first element that differs, if the capture has the bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first: Option<Differing>,
}

/// A part of a buffer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct BufferPart {
    /// The buffer's number.
    pub buffer: u32,
    /// The buffer's name in the program.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The first byte of the part in the buffer.
    pub offset: u64,
}

/// A command that may have written to a piece.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Writer {
    /// Number of the dispatch; none: the command is a transfer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dispatch: Option<u64>,
    /// Name of the kernel, or the kind of the transfer.
    pub what: String,
}

/// Splits an outcome into pieces.
pub fn pieces(outcome: &Outcome, after: Option<usize>) -> Vec<Piece> {
    let places = gapscope_capture::pieces(outcome.offset, outcome.bytes);
    let pieces = outcome.hashes.iter().zip(places);
    pieces
        .map(|(hash, (offset, bytes))| Piece {
            memory: outcome.memory,
            offset,
            bytes,
            hash: *hash,
            after,
        })
        .collect()
}

/// Returns the pieces of memory whose hashes at the end of a program are known: what the host or a later outcome
/// overwrites is left out.
pub fn last(capture: &Capture, program: &Program<'_>) -> Vec<Piece> {
    let mut after = None;
    let mut known: Vec<Piece> = Vec::new();
    for step in &program.steps {
        match step {
            ProgramStep::Submission(submitted) => after = Some(submitted.index),
            ProgramStep::Content(content) => {
                let bytes = capture.content_bytes(content);
                known.retain(|piece| !overlaps(piece, content.memory, content.offset, bytes));
            }
            ProgramStep::Outcome(outcome) => {
                let (memory, offset) = (outcome.memory, outcome.offset);
                known.retain(|piece| !overlaps(piece, memory, offset, outcome.bytes));
                known.extend(pieces(outcome, after));
            }
        }
    }
    known
}

/// Returns whether a piece and a range of an allocation have a byte in common.
fn overlaps(piece: &Piece, memory: MemoryId, offset: u64, bytes: u64) -> bool {
    piece.memory == memory && piece.offset < offset + bytes && offset < piece.offset + piece.bytes
}

/// The result of a comparison: the pieces that differ from the program's.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Comparison {
    /// Pieces that differ, each with the first differing element, if the capture has the bytes.
    pub different: Vec<(Piece, Option<Differing>)>,
    /// Number of pieces that differ only within the tolerance.
    pub within: u64,
}

/// Compares pieces whose hashes differ, by their bytes.
pub struct Comparer<'a> {
    pub capture: &'a Capture,
    pub program: &'a Program<'a>,
    pub shaders: &'a BTreeMap<PipelineId, Shader>,
    /// The greatest error of a value, as a share of the greater of 1 and the captured value.
    pub tolerance: Option<f64>,
}

/// Reads the pieces from the device and compares their hashes, then the values of those that differ. Pieces of memory
/// that the replay does not have are left out.
pub fn compare(
    memory: &mut Memory,
    regions: &Regions,
    pieces: &[Piece],
    comparer: &Comparer<'_>,
) -> Result<Comparison, Error> {
    let placed: Vec<_> = pieces
        .iter()
        .filter_map(|piece| Some((piece, regions.place(piece.memory, piece.offset)?)))
        .collect();
    let places: Vec<(RegionOffset, u64)> = placed
        .iter()
        .map(|(piece, place)| (*place, piece.bytes))
        .collect();
    let mut found = Comparison::default();
    memory.download(&places, |index, bytes| {
        let piece = placed[index].0;
        if Hash::new(bytes) == piece.hash {
            return;
        }
        match comparer.differing(piece, bytes) {
            Verdict::Within => found.within += 1,
            Verdict::Differs(first) => found.different.push((*piece, first)),
        }
    })?;
    Ok(found)
}

/// The result for a piece with another hash: all values are within the tolerance, or the piece differs.
enum Verdict {
    /// All values are within the tolerance.
    Within,
    /// The first element that differs; `None` if it cannot be named.
    Differs(Option<Differing>),
}

impl Comparer<'_> {
    /// Compares a piece whose hash differs value by value, where the capture has its bytes.
    fn differing(&self, piece: &Piece, replayed: &[u8]) -> Verdict {
        let captured = match self.capture.chunk_bytes(piece.hash) {
            Some(_) => self.capture.chunk(piece.hash).ok(),
            None => None,
        };
        let Some(captured) = captured.filter(|captured| captured.len() == replayed.len()) else {
            return Verdict::Differs(None);
        };
        // `lead` are the bytes before the first whole element of the piece; they are compared as bytes.
        // Without a declared type of elements the bytes are compared, for which no tolerance applies.
        let declared = self.element(piece);
        let element = declared.unwrap_or(Element::U8);
        let tolerance = self
            .tolerance
            .filter(|_| declared.is_some_and(Element::is_float));
        let size = element.bytes() as usize;
        let lead = piece.offset.next_multiple_of(size as u64) - piece.offset;
        let lead = (lead as usize).min(captured.len());
        let pairs = captured[lead..]
            .chunks(size)
            .zip(replayed[lead..].chunks(size));
        let far = |(a, b): &(&[u8], &[u8])| {
            if a == b {
                return false;
            }
            let (a, b) = (element.value(a), element.value(b));
            let both_nan = a.is_nan() && b.is_nan();
            !tolerance.is_some_and(|share| both_nan || (a - b).abs() <= share * a.abs().max(1.0))
        };
        let first = pairs.enumerate().find(|(_, pair)| far(pair));
        match first {
            None if captured[..lead] == replayed[..lead] => Verdict::Within,
            None => Verdict::Differs(None),
            Some((index, (a, b))) => Verdict::Differs(Some(Differing {
                element: index as u64,
                kind: element,
                captured: element.text(a),
                replayed: element.text(b),
            })),
        }
    }

    /// Returns the type of elements that the last kernel that may have written to a piece declares; `None` without a
    /// type.
    fn element(&self, piece: &Piece) -> Option<Element> {
        let until = self.program.submissions();
        let until = until.filter(|submitted| Some(submitted.index) <= piece.after);
        let dispatches = until.flat_map(|submitted| submitted.dispatches());
        let elements = dispatches.filter_map(|(_, dispatch)| {
            let of = dispatch
                .bindings
                .iter()
                .filter(|binding| binding.is_writable());
            let here = of.filter(|binding| {
                binding.range.is_some_and(|range| {
                    let (memory, offset) = self.capture.place(range);
                    overlaps(piece, memory, offset, range.bytes)
                })
            });
            let shader = self.shaders.get(&dispatch.pipeline)?;
            here.map(|binding| shader.element(binding)).next()
        });
        elements.last().flatten()
    }
}

/// Returns the description of a differing piece: its buffers and the commands that wrote to it.
pub fn describe(
    capture: &Capture,
    program: &Program<'_>,
    (piece, first): &(Piece, Option<Differing>),
) -> Difference {
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
        first: first.clone(),
    }
}

/// Returns the commands that may have written to a piece, from the last submission before the comparison that has
/// any.
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
    let first = found.len().saturating_sub(MAX_WRITERS);
    found.split_off(first)
}

/// Names a command, which has this number if it is a dispatch.
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

/// Returns the ranges that a command may write.
pub fn written(command: &Command) -> Vec<gapscope_capture::model::BufferRange> {
    match command {
        Command::Dispatch(dispatch) => {
            let writable = dispatch
                .bindings
                .iter()
                .filter(|binding| binding.is_writable());
            writable.filter_map(|binding| binding.range).collect()
        }
        Command::Copy(copy) => (copy.regions.iter())
            .map(|region| copy.ranges(region)[1])
            .collect(),
        other => crate::regions::ranges(other),
    }
}
