//! Writes samples of stacks (the functions that a host thread was in at a moment) for the page, as a [`Frame`] of
//! columns: all samples for tracks, and those in gaps for the code of idle time. A `SampledFrame` is a stack's line.

use crate::analysed_trace::AnalysedTrace;
use crate::code_ranges;
use crate::frame::Frame;
use crate::protocol::{
    ColumnType, IdleSamplesHeader, SampledFrame, SamplesHeader, StackColumns, cut_texts,
};
use crate::stack_rows::{NONE, Numbered, described, sampled_frame};
use crate::track::ThreadKey;
use gapscope_analysis::code::{CodeSamples, CodeSource, SampleRole, StackLine};
use gapscope_report::source_lines::{SourceAccess, SourceLines};
use gapscope_trace::Trace;
use gapscope_trace::tables::{SampleSource, Table, ThreadState};
use rustc_hash::FxHashMap;
use std::collections::HashSet;

/// The reasons why a sample belongs to idle time, with the page's words for them.
const PARTS: [(SampleRole, &str); 3] = [
    (SampleRole::Sampled, "sampled"),
    (SampleRole::Exact, "exact"),
    (SampleRole::Worker, "worker"),
];

/// Returns the thread of each sample.
pub fn threads(trace: &Trace) -> impl Iterator<Item = ThreadKey> + '_ {
    let table = &trace.tables.samples;
    let threads = table.process.iter().zip(&table.thread);
    threads.map(|(process, thread)| ThreadKey {
        process: *process,
        thread: Some(*thread),
    })
}

/// Makes the frame of all samples, with their stacks and the source text of lines that are `allowed` in its header, or else that of
/// the time in ranges while devices were idle; `None` where the trace has neither.
pub fn samples(analysed: &AnalysedTrace, allowed: &SourceAccess) -> Option<Vec<u8>> {
    let Some(samples) = CodeSamples::new(analysed.timeline) else {
        return code_ranges::all(analysed);
    };
    let snapshot = &analysed.snapshot;
    let trace = analysed.timeline.trace;
    let table = &trace.tables.samples;
    let rows = table.len();
    let mut threads = Numbered::new();
    let thread: Vec<u32> = self::threads(trace)
        .map(|of| threads.number_of(of))
        .collect();
    let mut calls = Numbered::new();
    let call: Vec<u32> = (table.system_call.iter())
        .map(|call| call.as_deref().map_or(NONE, |call| calls.number_of(call)))
        .collect();
    let stack_rows: FxHashMap<_, u32> = (trace.tables.stacks.id.iter())
        .enumerate()
        .map(|(row, id)| (*id, row as u32))
        .collect();
    let states = ThreadState::ALL.iter().chain([&ThreadState::Unknown]);
    let states: Vec<ThreadState> = states.copied().collect();
    let sources = SampleSource::ALL.iter().chain([&SampleSource::Unknown]);
    let sources: Vec<SampleSource> = sources.copied().collect();
    let (lines, of_stack) = samples.lines();
    let header = cut_texts(&SamplesHeader {
        generation: snapshot.generation,
        told_by: CodeSource::Samples,
        rate_hz: trace.manifest.stack_rate_hz,
        threads: described(analysed, &threads.all),
        calls: calls.all,
        states: states.iter().map(|state| state.as_str()).collect(),
        sources: sources.iter().map(|source| source.as_str()).collect(),
        frames: frames(&samples, trace, &lines, allowed),
        stacks: stacks(trace, of_stack),
        lines,
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
    let mut frame = Frame::new(header, rows, &columns);
    frame.f64(table.time_ns.iter().map(|ns| *ns as f64));
    frame.f64((table.period_ns.iter()).map(|ns| ns.map_or(f64::NAN, |ns| ns as f64)));
    frame.u32(thread.into_iter());
    let stack = |id| stack_rows.get(&id).copied();
    let program = |id| samples.program(id).and_then(stack).unwrap_or(NONE);
    frame.u32((table.stack.iter()).map(|id| id.map_or(NONE, program)));
    frame.u32(call.into_iter());
    frame.u32((table.gil_holder.iter()).map(|thread| thread.map_or(NONE, |thread| thread.0)));
    let place = |at: Option<usize>| at.unwrap_or(0) as u8;
    frame.u8((table.state.iter()).map(|state| place(states.iter().position(|one| one == state))));
    frame.u8((table.source.iter()).map(|source| place(sources.iter().position(|one| one == source))));
    Some(frame.finish())
}

/// Returns the rows of the table `frames`, with the source text of those by which stacks are shown.
fn frames(
    samples: &CodeSamples,
    trace: &Trace,
    lines: &[StackLine],
    allowed: &SourceAccess,
) -> Vec<SampledFrame> {
    let told: HashSet<u32> = lines.iter().map(|line| line.frame).collect();
    let mut source_lines = SourceLines::new(&trace.manifest, allowed);
    let frames = (0..trace.tables.frames.len()).map(|row| {
        let mut frame = samples.frame(row);
        if told.contains(&(row as u32)) {
            source_lines.fill(&mut frame);
        }
        sampled_frame(frame)
    });
    frames.collect()
}

/// Returns the tree of stacks, with the line by which each is shown.
fn stacks(trace: &Trace, line: Vec<Option<u32>>) -> StackColumns {
    let tables = &trace.tables;
    let frame_rows: FxHashMap<_, usize> = tables.frames.id.iter().copied().zip(0..).collect();
    let stack_rows: FxHashMap<_, usize> = tables.stacks.id.iter().copied().zip(0..).collect();
    let frame = tables.stacks.frame.iter().map(|id| frame_rows.get(id));
    let parents = tables.stacks.parent.iter();
    let parent = parents.map(|id| stack_rows.get(id.as_ref()?));
    StackColumns {
        frame: frame.map(|row| row.copied()).collect(),
        parent: parent.map(|row| row.copied()).collect(),
        line,
    }
}

/// Makes the frame of the samples in gaps, or else that of the time in ranges; `None` where the trace has neither.
pub fn idle(analysed: &AnalysedTrace) -> Option<Vec<u8>> {
    let Some(samples) = CodeSamples::new(analysed.timeline) else {
        return code_ranges::idle(analysed);
    };
    let (idle, causes) = samples.idle(analysed.finder());
    let snapshot = &analysed.snapshot;
    let header = IdleSamplesHeader {
        generation: snapshot.generation,
        parts: PARTS.map(|(_, text)| text).to_vec(),
        causes,
    };
    let columns = [
        ("sample", ColumnType::U32),
        ("device", ColumnType::U32),
        ("weight", ColumnType::F64),
        ("cause", ColumnType::U32),
        ("label", ColumnType::U32),
        ("part", ColumnType::U8),
    ];
    let texts = &snapshot.texts;
    let mut frame = Frame::new(header, idle.len(), &columns);
    frame.u32(idle.iter().map(|one| one.row));
    frame.u32(idle.iter().map(|one| one.device));
    frame.f64(idle.iter().map(|one| one.weight_ns));
    frame.u32(idle.iter().map(|one| texts.cause(one.cause)));
    frame.u32((idle.iter()).map(|one| one.label.map_or(NONE, |id| texts.label_path(id))));
    frame.u8((idle.iter()).map(|one| {
        let part = PARTS.iter().position(|(role, _)| *role == one.role);
        part.unwrap_or(0) as u8
    }));
    Some(frame.finish())
}
