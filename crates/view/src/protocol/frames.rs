//! The headers of frames, the answers with many rows: they describe the columns of raw numbers that follow. `frame`
//! writes them. A trace's generation is a number that grows with each change of the trace.

use gapscope_analysis::code::{CodeSource, IdleCause, StackLine};
use gapscope_trace::ids::{ProcessId, ThreadId};
use gapscope_trace::tables::CounterUnit;
use schemars::JsonSchema;
use serde::Serialize;
use std::sync::Arc;

/// The header of every frame.
#[derive(Debug, Serialize, JsonSchema)]
pub struct FrameHeader {
    /// Values of each column.
    pub rows: usize,
    pub columns: Vec<ColumnHeader>,
}

/// Where a column of a frame lies.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ColumnHeader {
    pub name: &'static str,
    pub r#type: ColumnType,
    /// Bytes from the start of the columns.
    pub offset: usize,
}

/// The type of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ColumnType {
    F64,
    U32,
    U8,
}

/// What the header of a track's frame says besides.
#[derive(Debug, Default, Serialize, JsonSchema)]
pub struct TrackHeader {
    /// The generation that the frame leads to.
    pub generation: u64,
    /// Where each lane starts among the rows, and the end of the last.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub lanes: Vec<usize>,
    /// The tables of `row`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tables: Vec<&'static str>,
    /// The rows are all that the track has, whatever was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub whole: Option<bool>,
    /// The time that the answer is of, where a part was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub part: Option<[i64; 2]>,
    /// Equal slices of each lane that are there instead of its rows, where those are too many.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub slices: Option<usize>,
}

/// What the header of a counter's frame says besides.
#[derive(Debug, Serialize, JsonSchema)]
pub struct CounterHeader {
    pub generation: u64,
    #[schemars(with = "String")]
    pub unit: CounterUnit,
}

/// What the header of the frame of samples says besides.
#[derive(Debug, Serialize, JsonSchema)]
pub struct SamplesHeader<'a> {
    pub generation: u64,
    /// Ranges: a row is a time in which a submitting thread was in a range while a device was idle.
    pub told_by: CodeSource,
    /// Samples a second at first.
    pub rate_hz: Option<u32>,
    pub threads: Vec<SampledThread>,
    /// Names of system calls.
    pub calls: Vec<&'a str>,
    /// States of threads.
    pub states: Vec<&'static str>,
    /// How samples came about.
    pub sources: Vec<&'static str>,
    /// The rows of the table `frames`.
    pub frames: Vec<SampledFrame>,
    pub stacks: StackColumns,
    /// The lines by which stacks are told.
    pub lines: Vec<StackLine>,
}

/// A thread whose stacks were sampled.
#[derive(Debug, Serialize, JsonSchema)]
pub struct SampledThread {
    pub process: ProcessId,
    pub thread: Option<ThreadId>,
    pub name: String,
    /// The id of its track.
    pub track: String,
    /// It is of a process that does not submit itself.
    pub worker: bool,
}

/// A line of a function.
#[derive(Debug, Serialize, JsonSchema)]
pub struct SampledFrame {
    /// `train.py:41 load_batch`.
    pub text: String,
    pub name: String,
    pub function: Option<Arc<str>>,
    pub file: Option<Arc<str>>,
    pub line: Option<u32>,
    pub library: Option<Arc<str>>,
    pub kind: &'static str,
    /// It is code of the program itself, not of a library.
    pub own: bool,
    /// The text of the line; null where it is not known or the frame tells no stack.
    pub source: Option<String>,
}

/// For each row of the table `stacks` its innermost frame, the row of its callers' stack, and the line by which it is told.
#[derive(Debug, Serialize, JsonSchema)]
pub struct StackColumns {
    pub frame: Vec<Option<usize>>,
    /// Parents may form a circle in a damaged trace.
    pub parent: Vec<Option<usize>>,
    pub line: Vec<Option<u32>>,
}

/// What the header of the frame of samples in gaps says besides.
#[derive(Debug, Serialize, JsonSchema)]
pub struct IdleSamplesHeader {
    pub generation: u64,
    /// Why samples belong to idle time.
    pub parts: Vec<&'static str>,
    /// The idle time in which a thread's code is asked for.
    pub causes: Vec<IdleCause>,
}
