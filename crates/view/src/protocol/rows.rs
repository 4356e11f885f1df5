//! The messages about single rows of a trace: details, links to other rows, neighbours in the graph of dependencies,
//! and the code of a kernel. A row is named by its table and its index in the table. A text stands for a number that
//! may pass 2^53.

use super::OrMissing;
use gapscope_analysis::dataflow::Hazard;
use gapscope_analysis::gaps::Gap;
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::BTreeMap;

/// Everything about one row of a table.
#[derive(Debug, Default, Serialize, JsonSchema)]
pub struct Row {
    pub table: String,
    pub row: usize,
    pub title: String,
    pub start_ns: Option<i64>,
    pub duration_ns: Option<i64>,
    /// Why its times are unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub times_unknown_because: Option<String>,
    /// The id of the track on which it is drawn.
    pub track: Option<String>,
    /// Its columns.
    pub fields: Vec<Field>,
    pub label: Option<RowLabel>,
    pub kernel: Option<RowKernel>,
    pub queue: Option<String>,
    pub device: Option<String>,
    pub thread: Option<String>,
    /// The buffers that are bound to a dispatch.
    pub bindings: Option<OrMissing<Vec<Binding>>>,
    /// Rows that belong to it, at most 64 of a relation.
    pub links: Vec<Link>,
    /// How many there are, for relations with more links than are listed.
    pub link_counts: BTreeMap<&'static str, usize>,
    /// The gap that a row of `gaps` is a part of.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gap: Option<Gap>,
}

/// A column of a row.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Field {
    pub name: &'static str,
    pub value: Option<String>,
    pub meaning: &'static str,
}

/// The label of a row, from the outermost in.
#[derive(Debug, Serialize, JsonSchema)]
pub struct RowLabel {
    pub path: Vec<String>,
    /// Rows of the table `labels`.
    pub rows: Vec<usize>,
}

/// The kernel of a row.
#[derive(Debug, Serialize, JsonSchema)]
pub struct RowKernel {
    pub row: usize,
    pub name: String,
    pub fields: Vec<Field>,
    pub has_source: bool,
}

/// A buffer range that is bound.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Binding {
    pub set: u32,
    pub binding: u32,
    pub element: u32,
    pub access: &'static str,
    /// The name of the buffer.
    pub buffer: String,
    pub buffer_row: Option<usize>,
    pub offset_bytes: String,
    pub bytes: String,
}

/// A row that belongs to another one.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Link {
    /// How it belongs to the other.
    pub relation: &'static str,
    #[serde(flatten)]
    pub work: WorkLink,
}

/// A row that is drawn.
#[derive(Debug, Default, Serialize, JsonSchema)]
pub struct WorkLink {
    pub table: &'static str,
    pub row: usize,
    pub name: String,
    /// The id of its track.
    pub track: Option<String>,
    pub start_ns: Option<i64>,
    pub duration_ns: Option<i64>,
}

/// What a dispatch or transfer depends on, and what depends on it, by bound buffer ranges.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Neighbours {
    pub predecessors: Vec<Neighbour>,
    pub successors: Vec<Neighbour>,
    /// What was searched, in a sentence.
    pub note: String,
}

/// Work on one end of a dependency.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Neighbour {
    #[serde(flatten)]
    pub work: WorkLink,
    /// Names of at most 8 buffers.
    pub buffers: Vec<String>,
    /// Bytes that both reach.
    pub bytes: String,
    pub kind: Hazard,
}

/// The code of a kernel.
#[derive(Debug, Serialize, JsonSchema)]
pub struct SourceText {
    pub language: String,
    pub text: String,
    /// The text is longer.
    pub cut: bool,
    /// Its file in the trace.
    pub file: String,
}

/// The only row of a table with the values that were asked for.
#[derive(Debug, Serialize, JsonSchema)]
pub struct RowNumber {
    pub row: usize,
}
