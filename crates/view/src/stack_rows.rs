//! Describes threads and stack frames for the page, and numbers distinct values, for the columns of samples of stacks and of times
//! in ranges.

use crate::analysed_trace::AnalysedTrace;
use crate::protocol::{SampledFrame, SampledThread};
use crate::track::{ThreadKey, TrackId};
use gapscope_analysis::code::{CodeFrame, text};
use gapscope_trace::ids::ProcessId;
use rustc_hash::FxHashMap;
use std::collections::HashSet;
use std::hash::Hash;

/// The value that stands for an unknown one in columns of indices and ids.
pub(crate) const NONE: u32 = u32::MAX;

/// Distinct values, numbered in the order in which they first occur.
pub(crate) struct Numbered<T> {
    pub(crate) all: Vec<T>,
    numbers: FxHashMap<T, u32>,
}

impl<T: Copy + Eq + Hash> Numbered<T> {
    pub(crate) fn new() -> Numbered<T> {
        Numbered {
            all: Vec::new(),
            numbers: FxHashMap::default(),
        }
    }

    /// Returns the number of a value, which is added where it is new.
    pub(crate) fn number_of(&mut self, value: T) -> u32 {
        let all = &mut self.all;
        *self.numbers.entry(value).or_insert_with(|| {
            all.push(value);
            all.len() as u32 - 1
        })
    }
}

/// Returns the names and tracks of threads.
pub(crate) fn described(analysed: &AnalysedTrace, threads: &[ThreadKey]) -> Vec<SampledThread> {
    let snapshot = &analysed.snapshot;
    let workers: HashSet<ProcessId> = (snapshot.trace.manifest.processes.iter())
        .filter(|process| process.is_only_sampled())
        .map(|process| process.id)
        .collect();
    let thread = |of: &ThreadKey| SampledThread {
        process: of.process,
        thread: of.thread,
        name: snapshot.vocabulary.thread(of.process, of.thread),
        track: TrackId::Samples(*of).to_string(),
        worker: workers.contains(&of.process),
    };
    threads.iter().map(thread).collect()
}

/// Returns a frame as the page reads it.
pub(crate) fn sampled_frame(frame: CodeFrame) -> SampledFrame {
    SampledFrame {
        text: text(std::slice::from_ref(&frame)),
        name: frame.short_name().to_owned(),
        own: frame.is_own(),
        kind: frame.kind.as_str(),
        function: frame.function,
        file: frame.file,
        line: frame.line,
        library: frame.library,
        source: frame.source,
    }
}
