//! Samples of threads' stacks: all of them for the tracks, and those in gaps for the code of idle time.

use crate::analyst::Analysed;
use crate::answers::cut_texts;
use crate::frame::{Frame, Type};
use crate::track::{ThreadKey, TrackId};
use gapscope_analysis::code::{CodeSamples, IdleCause, SampleRole, text};
use gapscope_report::source_lines::SourceLines;
use gapscope_trace::Trace;
use gapscope_trace::ids::ProcessId;
use gapscope_trace::tables::{SampleSource, Table, ThreadState};
use rustc_hash::FxHashMap;
use serde_json::{Map, Value, json};
use std::collections::HashSet;
use std::hash::Hash;

/// A value that is not known, in columns of indices and ids.
const NONE: u32 = u32::MAX;
const PARTS: [(SampleRole, &str); 3] = [
    (SampleRole::Sampled, "sampled"),
    (SampleRole::Exact, "exact"),
    (SampleRole::Worker, "worker"),
];

/// The thread of each sample.
pub fn threads(trace: &Trace) -> impl Iterator<Item = ThreadKey> + '_ {
    let table = &trace.tables.samples;
    let threads = table.process.iter().zip(&table.thread);
    threads.map(|(process, thread)| ThreadKey {
        process: *process,
        thread: Some(*thread),
    })
}

/// Values by the order in which they first came.
struct Numbered<T> {
    all: Vec<T>,
    numbers: FxHashMap<T, u32>,
}

impl<T: Copy + Eq + Hash> Numbered<T> {
    fn new() -> Numbered<T> {
        Numbered {
            all: Vec::new(),
            numbers: FxHashMap::default(),
        }
    }

    fn of(&mut self, value: T) -> u32 {
        let all = &mut self.all;
        *self.numbers.entry(value).or_insert_with(|| {
            all.push(value);
            all.len() as u32 - 1
        })
    }
}

/// The frame of all samples, with their stacks in its header; `None`: the trace has no samples.
pub fn samples(analysed: &Analysed) -> Option<Vec<u8>> {
    let samples = CodeSamples::new(analysed.timeline)?;
    let snapshot = &analysed.snapshot;
    let trace = analysed.timeline.trace;
    let table = &trace.tables.samples;
    let rows = table.len();
    let mut threads = Numbered::new();
    let thread: Vec<u32> = self::threads(trace).map(|of| threads.of(of)).collect();
    let mut calls = Numbered::new();
    let call: Vec<u32> = (table.system_call.iter())
        .map(|call| call.as_deref().map_or(NONE, |call| calls.of(call)))
        .collect();
    let stack_rows: FxHashMap<_, u32> = (trace.tables.stacks.id.iter())
        .enumerate()
        .map(|(row, id)| (*id, row as u32))
        .collect();
    let mut header = Map::new();
    header.insert("generation".to_owned(), snapshot.generation.into());
    header.insert("rate_hz".to_owned(), json!(trace.manifest.stack_rate_hz));
    header.insert("threads".to_owned(), described(analysed, &threads.all));
    header.insert("calls".to_owned(), json!(calls.all));
    let states = ThreadState::ALL.iter().chain([&ThreadState::Unknown]);
    let states: Vec<ThreadState> = states.copied().collect();
    let sources = SampleSource::ALL.iter().chain([&SampleSource::Unknown]);
    let sources: Vec<SampleSource> = sources.copied().collect();
    let texts = |texts: Vec<&str>| json!(texts);
    header.insert(
        "states".to_owned(),
        texts(states.iter().map(|state| state.as_str()).collect()),
    );
    header.insert(
        "sources".to_owned(),
        texts(sources.iter().map(|source| source.as_str()).collect()),
    );
    stacks(&samples, trace, &mut header);
    header.values_mut().for_each(cut_texts);
    let columns = [
        ("at", Type::F64),
        ("period", Type::F64),
        ("thread", Type::U32),
        ("stack", Type::U32),
        ("call", Type::U32),
        ("gil", Type::U32),
        ("state", Type::U8),
        ("source", Type::U8),
    ];
    let mut frame = Frame::new(header, rows, &columns);
    frame.f64(table.time_ns.iter().map(|ns| *ns as f64));
    frame.f64((table.period_ns.iter()).map(|ns| ns.map_or(f64::NAN, |ns| ns as f64)));
    frame.u32(thread.into_iter());
    let stack = |id| stack_rows.get(&id).copied();
    frame.u32((table.stack.iter()).map(|id| id.and_then(stack).unwrap_or(NONE)));
    frame.u32(call.into_iter());
    frame.u32((table.gil_holder.iter()).map(|thread| thread.map_or(NONE, |thread| thread.0)));
    let place = |at: Option<usize>| at.unwrap_or(0) as u8;
    frame.u8((table.state.iter()).map(|state| place(states.iter().position(|one| one == state))));
    frame.u8((table.source.iter()).map(|source| place(sources.iter().position(|one| one == source))));
    Some(frame.finish())
}

fn described(analysed: &Analysed, threads: &[ThreadKey]) -> Value {
    let snapshot = &analysed.snapshot;
    let workers: HashSet<ProcessId> = (snapshot.trace.manifest.processes.iter())
        .filter(|process| process.is_only_sampled())
        .map(|process| process.id)
        .collect();
    let thread = |of: &ThreadKey| {
        json!({
            "process": of.process,
            "thread": of.thread,
            "name": snapshot.vocabulary.thread(of.process, of.thread),
            "track": TrackId::Samples(*of).to_string(),
            "worker": workers.contains(&of.process),
        })
    };
    threads.iter().map(thread).collect()
}

/// The frames, the tree of stacks, and the lines by which stacks are told.
fn stacks(samples: &CodeSamples, trace: &Trace, header: &mut Map<String, Value>) {
    let tables = &trace.tables;
    let (lines, of_stack) = samples.lines();
    let told: HashSet<u32> = lines.iter().map(|line| line.frame).collect();
    let mut source_lines = SourceLines::of(&trace.manifest);
    let frame_rows: FxHashMap<_, usize> = (tables.frames.id.iter())
        .enumerate()
        .map(|(row, id)| (*id, row))
        .collect();
    let stack_rows: FxHashMap<_, usize> = (tables.stacks.id.iter())
        .enumerate()
        .map(|(row, id)| (*id, row))
        .collect();
    let frames = (0..tables.frames.len()).map(|row| {
        let mut frame = samples.frame(row);
        if told.contains(&(row as u32)) {
            source_lines.fill(&mut frame);
        }
        json!({
            "text": text(std::slice::from_ref(&frame)),
            "name": frame.short_name(),
            "function": frame.function,
            "file": frame.file,
            "line": frame.line,
            "library": frame.library,
            "kind": frame.kind.as_str(),
            "own": frame.is_own(),
            "source": frame.source,
        })
    });
    header.insert("frames".to_owned(), frames.collect());
    let frame = tables.stacks.frame.iter().map(|id| frame_rows.get(id));
    let parent = tables
        .stacks
        .parent
        .iter()
        .map(|id| stack_rows.get(id.as_ref()?));
    header.insert(
        "stacks".to_owned(),
        json!({
            "frame": frame.collect::<Vec<_>>(),
            "parent": parent.collect::<Vec<_>>(),
            "line": of_stack,
        }),
    );
    let lines = lines.iter();
    let lines = lines.map(|line| json!({"text": line.text, "frame": line.frame}));
    header.insert("lines".to_owned(), lines.collect());
}

/// The frame of the samples in gaps; `None`: the trace has no samples.
pub fn idle(analysed: &Analysed) -> Option<Vec<u8>> {
    let (idle, causes) = CodeSamples::new(analysed.timeline)?.idle();
    let snapshot = &analysed.snapshot;
    let mut header = Map::new();
    header.insert("generation".to_owned(), snapshot.generation.into());
    header.insert("parts".to_owned(), json!(PARTS.map(|(_, text)| text)));
    let described = |of: &IdleCause| {
        json!({
            "cause": of.cause,
            "total_ns": of.total_ns,
            "without_samples_ns": of.without_samples_ns,
            "samples": of.samples,
        })
    };
    header.insert("causes".to_owned(), causes.iter().map(described).collect());
    let columns = [
        ("sample", Type::U32),
        ("device", Type::U32),
        ("weight", Type::F64),
        ("cause", Type::U32),
        ("label", Type::U32),
        ("part", Type::U8),
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
