//! The messages that the page receives, as the types that are written. `PROTOCOL.md` says what is asked for them, and the page's TypeScript
//! types (`web/src/generated/protocol.ts`) are generated from them.
//!
//! Times are nanoseconds from the trace's origin. Integers that may pass 2^53 are strings of digits.

#[cfg(test)]
mod typescript;

use gapscope_analysis::busy::DeviceBusy;
use gapscope_analysis::code::{IdleCause, Line};
use gapscope_analysis::dataflow::{FlowNode, Hazard};
use gapscope_analysis::fill::DeviceFill;
use gapscope_analysis::gaps::{Cause, CauseFacts, Gap, GapTotal, IdleTime};
use gapscope_analysis::intervals::Interval;
use gapscope_analysis::kernels::Kernel;
use gapscope_analysis::ranks::RankFindings;
use gapscope_analysis::transfers::TransferRow;
use gapscope_analysis::verdict::{Bound, Evidence};
use gapscope_dependencies::{EdgeKind, Need, NodeKind, Order};
use gapscope_report::{CauseNote, json};
use gapscope_trace::UnreadTable;
use gapscope_trace::ids::{DeviceId, ProcessId, QueueId, ThreadId};
use gapscope_trace::manifest::{LossSchema, Manifest, SamplingMode};
use gapscope_trace::tables::{CounterUnit, HostCallKind};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Equal slices of a trace's time for which busy shares of tracks are computed.
pub const BINS: usize = 2048;

/// An answer, or why it cannot be had.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(untagged)]
#[schemars(inline)]
pub enum OrMissing<T> {
    There(T),
    Missing(Missing),
}

/// Why an answer cannot be had.
#[derive(Debug, PartialEq, Serialize, JsonSchema)]
pub struct Missing {
    /// One sentence.
    pub missing: String,
    /// The file is there, and its content is not that of its hash.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub changed: bool,
}

impl<T> OrMissing<T> {
    /// Says in a sentence why there is no answer.
    pub fn missing(sentence: impl Into<String>) -> OrMissing<T> {
        OrMissing::Missing(Missing {
            missing: sentence.into(),
            changed: false,
        })
    }
}

/// What is open: all that the first drawing needs.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Overview {
    /// Version of the protocol.
    pub protocol: u32,
    /// Version of gapscope.
    pub gapscope: &'static str,
    /// What is said of a file; null where a server answers.
    pub file: Option<FileFacts>,
    /// The traces; empty for a capture.
    pub traces: Vec<TraceOverview>,
    /// Rows of a trace that the page may hold: more are asked for in parts. Absent in a file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub page_rows: Option<u64>,
    /// The server keeps what the reader prefers; absent in a file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub keeps: Option<bool>,
    /// The paths that `gapscope view` was given; absent in a file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub opened: Option<Vec<String>>,
    /// The state with which a file opens first, as in the address behind `#`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state: Option<String>,
    /// The name of the trace that a file shows first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first: Option<String>,
    /// The program whose ranks the traces are, on one clock.
    pub together: Option<String>,
    /// Slices of `busy`.
    pub bins: usize,
    /// The capture, where one is open.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub capture: Option<CaptureOverview>,
}

impl Overview {
    /// Puts overviews of traces together; `program` is the name of the program whose ranks they are.
    pub fn new(
        traces: Vec<TraceOverview>,
        program: Option<String>,
        file: Option<FileFacts>,
    ) -> Overview {
        Overview {
            protocol: 1,
            gapscope: env!("CARGO_PKG_VERSION"),
            file,
            traces,
            page_rows: None,
            keeps: None,
            opened: None,
            state: None,
            first: None,
            together: program,
            bins: BINS,
            capture: None,
        }
    }
}

/// What is said of a file with the page.
#[derive(Debug, Serialize, JsonSchema)]
pub struct FileFacts {
    /// What is left out and why, in sentences.
    pub folded: Option<String>,
    /// When it was made, on the wall clock.
    pub made_unix_ns: String,
}

/// One trace with its groups and tracks.
#[derive(Debug, Serialize, JsonSchema)]
pub struct TraceOverview {
    /// Its name.
    pub name: String,
    /// Grows when a live trace grows.
    pub generation: u64,
    /// Changes when rows and strings are numbered anew: when a recording was completed.
    pub edition: u64,
    /// The trace is being recorded.
    pub live: bool,
    /// The recording ended in an orderly way.
    pub complete: bool,
    /// The recording's start on the host's monotonic clock.
    pub origin_ns: String,
    /// The same on the wall clock.
    pub start_unix_ns: Option<String>,
    /// Length of the recording; null while its end is not known.
    pub duration_ns: Option<i64>,
    /// First and last time of anything that is drawn; the first may be below 0.
    pub extent: [i64; 2],
    /// How the GPU was sampled.
    pub sampling_mode: SamplingMode,
    /// The greatest clock error of all devices; null where it is unknown for one.
    pub clock_error_ns: Option<i64>,
    /// `trace.json`.
    #[schemars(with = "Manifest")]
    pub manifest: Value,
    /// The sizes of the tables.
    pub tables: Vec<TableFacts>,
    /// What was not recorded.
    #[schemars(with = "Vec<LossSchema>")]
    pub losses: Value,
    /// Notes of the recorder and damage found so far, in sentences; `notes` of the findings has all.
    pub remarks: Vec<String>,
    /// What could not be read of what drawing takes; `unread` of the findings has all.
    pub unread: Vec<UnreadTable>,
    /// All causes of idle time, in the words of the trace's API.
    pub causes: Vec<CauseFacts>,
    /// All kinds of host calls.
    pub calls: Vec<CallFacts>,
    /// GPUs, processes and the host, in the order in which they are drawn.
    pub groups: Vec<Group>,
    /// Tracks, in the order in which they are drawn.
    pub tracks: Vec<Track>,
    /// How its tracks were arranged before, where the server keeps that.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub arranged: Option<Arrangement>,
}

/// The size of a table.
#[derive(Debug, Serialize, JsonSchema)]
pub struct TableFacts {
    /// Its name.
    pub name: &'static str,
    /// Its rows; null where a file of it is missing or cannot be read.
    pub rows: Option<u64>,
    /// Bytes of its files.
    pub bytes: u64,
}

/// A kind of host call.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct CallFacts {
    /// Its stable name.
    #[schemars(with = "String")]
    pub call: HostCallKind,
    /// Why a device idles while the thread that is to submit is in such a call; null for polls, and where that is the
    /// program's own code.
    pub cause: Option<Cause>,
    /// The call waits for the GPU, or asks how far it is.
    pub waits: bool,
}

/// What a group of tracks belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum GroupKind {
    Gpu,
    Process,
    Host,
}

/// A GPU, a recorded process, or the host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Group {
    /// Its id among the groups.
    pub id: String,
    /// What it is.
    pub kind: GroupKind,
    /// Its name.
    pub name: String,
    /// The devices of a GPU.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub device_ids: Vec<DeviceId>,
    /// The id of a process.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub process: Option<ProcessId>,
}

/// What the rows of a track are; in order of their names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum TrackKind {
    Calls,
    CommandBuffers,
    Counter,
    Gaps,
    Labels,
    QueueLabels,
    Samples,
    ThreadLabels,
    Work,
}

/// A track: rows that are drawn together.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[schemars(rename = "TrackOverview")]
pub struct Track {
    /// Its id, by which it is asked for.
    pub id: String,
    /// The id of its group.
    pub group: String,
    /// What its rows are.
    pub kind: TrackKind,
    /// Its name.
    pub name: String,
    /// Rows that are drawn; null where that takes an analysis.
    pub rows: Option<u64>,
    /// Rows without known times.
    pub untimed: u64,
    /// Its queue.
    pub queue: Option<QueueId>,
    /// Its process.
    pub process: Option<ProcessId>,
    /// Its thread.
    pub thread: Option<ThreadId>,
    /// What a counter counts.
    pub counter: Option<CounterFacts>,
    /// The kind that all calls of the thread have.
    #[schemars(with = "Option<String>")]
    pub only_call: Option<HostCallKind>,
    /// The busy share of each of `bins` equal slices of `extent`, times 255, in base64; null for counters and gaps.
    pub busy: Option<String>,
}

/// What a counter counts.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct CounterFacts {
    /// Its name.
    pub name: String,
    /// Its unit.
    #[schemars(with = "String")]
    pub unit: CounterUnit,
    /// Where the values come from.
    pub source: String,
}

/// How the tracks of a trace are arranged, as the page writes it into its address. All absent: as at first.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Arrangement {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tracks: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub order: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
}

/// What the overview says of a capture.
#[derive(Debug, Serialize, JsonSchema)]
pub struct CaptureOverview {
    /// Its name.
    pub name: String,
    /// Version of the gapscope that wrote it.
    pub gapscope: String,
    /// The command that was captured.
    pub command: String,
    /// The system's id of its process.
    pub process: u32,
    /// The window that was asked for.
    pub window: String,
    /// When the program started, on the wall clock.
    pub started_unix_ns: String,
    /// The device.
    pub device: CapturedDevice,
    /// How the window ended; null where the capture was cut off.
    pub end: Option<&'static str>,
    /// How long the window was open; null where the capture was cut off.
    pub window_ns: Option<String>,
    pub submission_count: usize,
    pub dispatch_count: u64,
    pub transfer_count: u64,
    pub barrier_count: u64,
    pub buffer_count: usize,
    /// Bytes of the buffers as they were made, not of what the capture holds.
    pub buffer_bytes: String,
    pub kernel_count: usize,
    /// At most 2,000 of them.
    pub kernels: Vec<CapturedKernel>,
    /// Sentences about reading the capture.
    pub remarks: Vec<String>,
}

/// The device of a capture.
#[derive(Debug, Serialize, JsonSchema)]
pub struct CapturedDevice {
    pub name: String,
    pub driver: String,
    pub subgroup_size: u32,
}

/// A kernel of a capture.
#[derive(Debug, Serialize, JsonSchema)]
pub struct CapturedKernel {
    pub name: String,
    pub entry: String,
    pub dispatch_count: u64,
    pub constant_count: usize,
    pub required_subgroup_size: Option<u32>,
    pub code_bytes: Option<u32>,
    /// The hash of its code.
    pub code: Option<String>,
}

/// Texts of a trace: names in frames are indices into the list of all of them.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Strings<'a> {
    /// The index of the first one here.
    pub from: usize,
    pub strings: &'a [String],
}

/// How far the traces are recorded, in the order of the overview.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Live {
    pub traces: Vec<TraceStatus>,
}

/// How far a trace is recorded.
#[derive(Debug, Clone, Copy, Serialize, JsonSchema)]
pub struct TraceStatus {
    pub generation: u64,
    pub edition: u64,
    pub live: bool,
}

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
    pub lines: Vec<Line>,
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

/// What `gapscope report --json` prints, and what the page needs besides.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Findings")]
pub struct FindingsAnswer<'a> {
    #[serde(flatten)]
    pub report: json::Json<'a>,
    /// The generation of a live trace that the findings are of.
    pub generation: u64,
    /// For each of `gaps` what the report says of it.
    pub gap_notes: Vec<CauseNote>,
    /// For each of `kernels` its rows.
    pub kernel_rows: Vec<KernelRows<'a>>,
    /// For each of `labels` its path as an index in `strings`.
    pub label_names: Vec<Option<u32>>,
}

/// The rows of the table `kernels` that a kernel of the findings has, and its name as an index in `strings`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct KernelRows<'a> {
    pub name: Option<u32>,
    pub kernels: &'a [usize],
}

/// What the analyses say of a range of time.
#[derive(Debug, Serialize, JsonSchema)]
pub struct RangeFindings {
    pub window: Interval,
    pub verdict: Bound,
    #[serde(flatten)]
    pub evidence: Evidence,
    pub devices: Vec<DeviceBusy>,
    pub gpu_busy_ns: Option<i64>,
    pub gaps: Vec<GapTotal>,
    pub idle_time: IdleTime,
    pub fill: Vec<DeviceFill>,
    /// Dispatches that start in it.
    pub dispatch_count: u64,
    /// Kernels of the dispatches that start in it.
    pub kernels: Vec<Kernel>,
    /// Transfers that start in it, by kind.
    pub transfers: Vec<TransferRow>,
    /// Bytes of them; null where the size of one is not known.
    pub transfer_bytes: Option<String>,
}

/// Everything about one row of a table.
#[derive(Debug, Serialize, JsonSchema)]
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
#[derive(Debug, Serialize, JsonSchema)]
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

/// A part of what depends on what in a capture, or in a range of a trace.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Dependencies {
    /// The number of the first node here.
    pub first: usize,
    /// Nodes in all.
    pub node_count: usize,
    /// At most 2,000 nodes, in the order of execution.
    pub nodes: Vec<DependencyNode>,
    /// Edges of the graph.
    pub edge_count: usize,
    /// At most 10,000 edges between these nodes.
    pub edges: Vec<DependencyEdge>,
    /// Edges between these nodes that are left out: the smallest.
    pub edges_left_out: usize,
    /// Edges with one end in another part.
    pub edges_outside: usize,
    pub hazard_count: usize,
    pub possible_hazard_count: usize,
    pub barrier_count: usize,
    pub needless_count: usize,
    pub barriers: Vec<DependencyBarrier>,
    pub submissions: Vec<DependencySubmission>,
    /// The longest chain of the whole graph; null where it is not known.
    pub critical_path: Option<CriticalPath>,
    /// From this node on there are no edges: there are too many.
    pub cut_at: Option<usize>,
    /// Why hazards and needless barriers are not known.
    pub unknown: Option<String>,
    pub remarks: Vec<String>,
}

/// A dispatch or transfer with what it reaches.
#[derive(Debug, Serialize, JsonSchema)]
pub struct DependencyNode {
    pub id: usize,
    /// Null is never the case in a graph.
    pub kind: Option<NodeKind>,
    pub name: String,
    /// From the outermost in.
    pub labels: Vec<String>,
    pub submission: usize,
    pub read_bytes: String,
    pub written_bytes: String,
    /// Its bytes are exact; else at most so many.
    pub exact: bool,
    /// Why it may reach memory that is not among its accesses.
    pub beyond: Option<String>,
    pub duration_ns: Option<u64>,
    /// At most 64 accesses.
    pub accesses: Vec<DependencyAccess>,
    pub access_count: usize,
    /// The row that it is, in a trace.
    pub place: Option<NodePlace>,
}

/// The row of a trace that a node is.
#[derive(Debug, Serialize, JsonSchema)]
pub struct NodePlace {
    pub table: &'static str,
    pub row: usize,
    pub track: Option<String>,
    pub start_ns: Option<i64>,
}

/// Whether an access reads or writes.
#[derive(Debug, Clone, Copy, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Direction {
    Read,
    Write,
}

/// Memory that a node reads or writes.
#[derive(Debug, Serialize, JsonSchema)]
pub struct DependencyAccess {
    pub buffer: String,
    /// Set, binding and element; null for a transfer.
    pub binding: Option<[u32; 3]>,
    pub direction: Direction,
    pub bytes: String,
    /// Why maybe not all of the bytes are reached; null: they are exact.
    pub reason: Option<String>,
}

/// How sure it is that nothing orders two nodes.
#[derive(Debug, Clone, Copy, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum HazardCertainty {
    Certain,
    Possible,
}

/// A dependency of one node on another.
#[derive(Debug, Serialize, JsonSchema)]
pub struct DependencyEdge {
    pub from: usize,
    pub to: usize,
    pub kind: EdgeKind,
    /// Bytes that both reach.
    pub bytes: String,
    pub exact: bool,
    pub ordered_by: Order,
    pub hazard: Option<HazardCertainty>,
    /// Names of at most 8 buffers.
    pub buffers: Vec<String>,
    pub buffer_count: usize,
}

/// A barrier.
#[derive(Debug, Serialize, JsonSchema)]
pub struct DependencyBarrier {
    /// Nodes before it.
    pub position: usize,
    pub submission: usize,
    /// Which of its command buffer's commands it is.
    pub command: usize,
    pub need: Need,
    /// Why its need is not known.
    pub reason: Option<String>,
}

/// A submission of nodes.
#[derive(Debug, Default, Serialize, JsonSchema)]
pub struct DependencySubmission {
    pub number: usize,
    /// Its id in a trace.
    pub name: Option<String>,
    pub queue: Option<String>,
    pub called_ns: Option<String>,
    pub device_ns: Option<String>,
}

/// The unit of a critical path.
#[derive(Debug, Clone, Copy, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum PathUnit {
    Ns,
    Commands,
}

/// The longest chain of dependencies.
#[derive(Debug, Serialize, JsonSchema)]
pub struct CriticalPath {
    /// Those of its nodes that are here.
    pub nodes: Vec<usize>,
    pub node_count: usize,
    pub unit: PathUnit,
    pub length: String,
    /// The length of all nodes one after the other.
    pub work: String,
    pub parallelism: Option<f64>,
}

/// The folded dependency graph of a range, or of the whole trace.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Graph {
    /// At most 150 nodes.
    pub nodes: Vec<FlowNode>,
    /// Reads of what others wrote; an edge from a node to itself or backwards is a repetition.
    pub edges: Vec<GraphEdge>,
    /// What was folded, in a sentence.
    pub folded: String,
    pub dispatches: u64,
    /// The first so many dispatches and transfers, of which the graph is.
    pub considered: u64,
    /// How many of these have no known buffers.
    pub unknown: u64,
}

/// Reads of what others wrote.
#[derive(Debug, Serialize, JsonSchema)]
pub struct GraphEdge {
    pub from: u32,
    pub to: u32,
    /// Pairs of items.
    pub count: u64,
    /// Names of at most 8 buffers.
    pub buffers: Vec<String>,
    pub bytes: String,
}

/// Where a label was set, by start; at most 10,000.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Instances {
    pub instances: Vec<Instance>,
    /// How often it was set.
    pub count: usize,
}

/// A time for which a label was set.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Instance {
    pub start_ns: i64,
    pub duration_ns: i64,
    /// The id of its track.
    pub track: String,
    /// The row of the table `markers`.
    pub row: usize,
}

/// The ranks of the program compared, with the collectives of the greatest skews under `longest`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct RanksAnswer<'a> {
    #[serde(flatten)]
    pub ranks: RankFindings,
    /// The index of the trace of each of `ranks`.
    pub traces: &'a [usize],
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

/// A note of the reader at a moment or of a range of a trace.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Note {
    pub from_ns: i64,
    /// Null for a moment.
    pub to_ns: Option<i64>,
    pub text: String,
}

/// The notes of a trace.
#[derive(Debug, Serialize, JsonSchema)]
pub struct NotesAnswer {
    /// Changes with the notes.
    pub revision: String,
    pub notes: Vec<Note>,
    /// Why none can be written.
    pub unwritable: Option<String>,
}

/// The queries that were asked, the latest first.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Queries {
    pub queries: Vec<String>,
}

/// The kind of a column's values.
#[derive(Debug, Clone, Copy, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum SqlType {
    Integer,
    Fraction,
    Boolean,
    Text,
}

/// A column of an answer of SQL.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct SqlColumn {
    pub name: String,
    pub r#type: SqlType,
}

/// The rows that SQL has over all traces.
#[derive(Debug, Serialize, JsonSchema)]
pub struct SqlAnswer {
    pub columns: Vec<SqlColumn>,
    /// At most 1,000 rows; every value is a text, and NULL is null.
    pub rows: Vec<Vec<Option<String>>>,
    /// There are more rows than these.
    pub more: bool,
    /// Sentences about rows that are missing.
    pub missing: Vec<String>,
    /// What the column `trace` says of each trace, in the order of the overview.
    pub traces: Vec<String>,
    pub took_ms: f64,
}

/// What can be asked in SQL.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct Catalogue {
    pub tables: Vec<SqlTable>,
    pub saved: Vec<SavedQuery>,
}

/// A table that can be asked.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct SqlTable {
    pub name: String,
    pub meaning: String,
    pub columns: Vec<SqlTableColumn>,
}

/// A column of a table that can be asked.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct SqlTableColumn {
    pub name: String,
    pub r#type: String,
    pub meaning: String,
}

/// A query that gapscope brings along.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct SavedQuery {
    pub name: String,
    pub meaning: String,
    pub sql: String,
}

/// The only row of a table with the values that were asked for.
#[derive(Debug, Serialize, JsonSchema)]
pub struct RowNumber {
    pub row: usize,
}

/// Cuts long texts, as all that lists show are.
pub fn cut_texts<T: Serialize>(answer: &T) -> Value {
    fn cut(value: &mut Value) {
        match value {
            Value::String(text) if text.len() > 1000 => *text = crate::texts::cut(text),
            Value::Array(values) => values.iter_mut().for_each(cut),
            Value::Object(values) => values.values_mut().for_each(cut),
            _ => {}
        }
    }
    let mut value = serde_json::to_value(answer).unwrap_or_default();
    cut(&mut value);
    value
}
