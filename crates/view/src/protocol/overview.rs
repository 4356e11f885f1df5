//! The message that the page asks for first: the open traces with their groups and tracks, or the open capture.
//! `overview` and `served_capture` make it. In `Arrangement` each text is a part of what the page writes into its
//! address, and the server keeps it unread.

use gapscope_analysis::code::CodeSource;
use gapscope_analysis::gaps::{Cause, CauseFacts};
use gapscope_trace::UnreadTable;
use gapscope_trace::ids::{DeviceId, ProcessId, QueueId, ThreadId};
use gapscope_trace::manifest::{Loss, LossSchema, Manifest, SamplingMode};
use gapscope_trace::tables::{CounterUnit, HostCallKind};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Equal slices of a trace's time for which busy shares of tracks are computed.
pub const BINS: usize = 2048;

/// Something that was not recorded.
#[derive(Debug, Serialize, JsonSchema)]
pub struct LossLine {
    #[serde(flatten)]
    #[schemars(with = "LossSchema")]
    pub loss: Loss,
    /// Its number and what it is, in a phrase.
    pub text: String,
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
    #[schemars(with = "Vec<LossLine>")]
    pub losses: Value,
    /// Notes of the recorder and damage found so far, in sentences; `notes` of the findings has all.
    pub remarks: Vec<String>,
    /// What could not be read of what drawing takes; `unread` of the findings has all.
    pub unread: Vec<UnreadTable>,
    /// All causes of idle time, in the words of the trace's API.
    pub causes: Vec<CauseFacts>,
    /// The first number in `strings` of the names of kinds of transfers, and the number after the last. No other name has these numbers.
    pub transfer_names: [u32; 2],
    /// All kinds of host calls, then the functions that were called.
    pub calls: Vec<CallFacts>,
    /// GPUs, processes and the host, in the order in which they are drawn.
    pub groups: Vec<Group>,
    /// Tracks, in the order in which they are drawn.
    pub tracks: Vec<Track>,
    /// What tells the code behind idle time; null where the trace has neither samples nor ranges of submitting threads.
    pub code: Option<CodeSource>,
    /// How its tracks were arranged before, where the server keeps that.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub arranged: Option<Arrangement>,
}

/// The size of a table.
#[derive(Debug, Serialize, JsonSchema)]
pub struct TableFacts {
    pub name: &'static str,
    /// Its rows; null where a file of it is missing or cannot be read.
    pub rows: Option<u64>,
    /// Bytes of its files.
    pub bytes: u64,
}

/// A kind of host call, or a function of such calls.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct CallFacts {
    /// The name that its calls are drawn with: that of the function, or of the kind for calls without a function.
    pub name: String,
    /// The stable name of the kind.
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
    pub kind: GroupKind,
    pub name: String,
    /// The devices of a GPU.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub device_ids: Vec<DeviceId>,
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
    pub name: String,
    /// Rows that are drawn; null where that takes an analysis.
    pub rows: Option<u64>,
    /// Rows without known times.
    pub untimed: u64,
    pub queue: Option<QueueId>,
    pub process: Option<ProcessId>,
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
    pub name: String,
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
