//! Writes the time that submitting threads spent in ranges while devices were idle, in the frames that samples of stacks have: a
//! piece of time is a row in place of a sample, and a chain of ranges is a stack. Only traces without samples have them.

use crate::analysed_trace::AnalysedTrace;
use crate::frame::Frame;
use crate::protocol::{ColumnType, IdleSamplesHeader, SamplesHeader, StackColumns, cut_texts};
use crate::stack_rows::{NONE, Numbered, described, sampled_frame};
use crate::track::ThreadKey;
use gapscope_analysis::code::CodeSource;

/// The word for how a row came about.
const SOURCE: &str = "range";

/// Makes the frame of all pieces, with the chains of ranges in its header.
pub fn all(analysed: &AnalysedTrace) -> Option<Vec<u8>> {
    let ranges = analysed.idle_ranges()?;
    let mut threads = Numbered::new();
    let thread: Vec<u32> = (ranges.pieces.iter())
        .map(|piece| {
            threads.number_of(ThreadKey {
                process: piece.thread.process,
                thread: Some(piece.thread.thread),
            })
        })
        .collect();
    let chains = &ranges.chains;
    let header = cut_texts(&SamplesHeader {
        generation: analysed.snapshot.generation,
        told_by: CodeSource::Ranges,
        rate_hz: None,
        threads: described(analysed, &threads.all),
        calls: Vec::new(),
        states: vec!["unknown"],
        sources: vec![SOURCE],
        frames: ranges.frames.iter().cloned().map(sampled_frame).collect(),
        stacks: StackColumns {
            frame: chains
                .iter()
                .map(|chain| Some(chain.frame as usize))
                .collect(),
            parent: chains
                .iter()
                .map(|chain| chain.caller.map(|caller| caller as usize))
                .collect(),
            line: chains.iter().map(|chain| chain.line).collect(),
        },
        lines: ranges.lines.clone(),
    });
    let columns = [
        ("at", ColumnType::F64),
        ("period", ColumnType::F64),
        ("thread", ColumnType::U32),
        ("stack", ColumnType::U32),
        ("call", ColumnType::U32),
        ("gil", ColumnType::U32),
        ("state", ColumnType::U8),
        ("source", ColumnType::U8),
    ];
    let pieces = &ranges.pieces;
    let mut frame = Frame::new(header, pieces.len(), &columns);
    frame.f64(pieces.iter().map(|piece| piece.interval.start_ns as f64));
    frame.f64(pieces.iter().map(|piece| piece.interval.length_ns() as f64));
    frame.u32(thread.into_iter());
    frame.u32(pieces.iter().map(|piece| piece.chain));
    frame.u32(pieces.iter().map(|_| NONE));
    frame.u32(pieces.iter().map(|_| NONE));
    frame.u8(pieces.iter().map(|_| 0));
    frame.u8(pieces.iter().map(|_| 0));
    Some(frame.finish())
}

/// Makes the frame of the pieces with their causes and devices.
pub fn idle(analysed: &AnalysedTrace) -> Option<Vec<u8>> {
    let ranges = analysed.idle_ranges()?;
    let snapshot = &analysed.snapshot;
    let header = IdleSamplesHeader {
        generation: snapshot.generation,
        parts: vec!["sampled"],
        causes: ranges.causes.clone(),
    };
    let columns = [
        ("sample", ColumnType::U32),
        ("device", ColumnType::U32),
        ("weight", ColumnType::F64),
        ("cause", ColumnType::U32),
        ("label", ColumnType::U32),
        ("part", ColumnType::U8),
    ];
    let (pieces, texts) = (&ranges.pieces, &snapshot.texts);
    let mut frame = Frame::new(header, pieces.len(), &columns);
    frame.u32(0..pieces.len() as u32);
    frame.u32(pieces.iter().map(|piece| piece.device));
    frame.f64(pieces.iter().map(|piece| piece.interval.length_ns() as f64));
    frame.u32(pieces.iter().map(|piece| texts.cause(piece.cause)));
    frame.u32(
        pieces
            .iter()
            .map(|piece| piece.label.map_or(NONE, |id| texts.label_path(id))),
    );
    frame.u8(pieces.iter().map(|_| 0));
    Some(frame.finish())
}
