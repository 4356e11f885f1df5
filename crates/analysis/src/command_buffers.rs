//! Sums up the command buffers of a trace: counts, durations and dispatches. A command buffer is one submitted
//! instance of recorded GPU commands.
//!
//! Each submitted instance counts: a command buffer that is submitted ten times counts ten times. Its duration is from its start
//! to its end on the device, including waits at barriers inside it. Its dispatches are those recorded in it, whether timed or not.

use gapscope_timeline::Timeline;
use gapscope_timeline::durations::Durations;
use gapscope_trace::ids::{CommandBufferId, QueueId};
use gapscope_trace::tables::{Table, Timing};
use schemars::JsonSchema;
use serde::Serialize;
use std::cmp::Reverse;
use std::collections::{BTreeMap, HashSet};

/// Command buffers over the whole recording.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
pub struct CommandBuffers {
    /// Submitted instances.
    pub count: u64,
    /// Submissions (batches), without host functions and waits that are put on a queue by themselves.
    pub submission_count: u64,
    /// Command buffers without dispatches, transfers and opaque work.
    pub empty_count: u64,
    /// Counts by whether their times are known, in the trace's words, the greatest count first.
    pub timings: Vec<TimingCount>,
    /// Mean number of dispatches in a command buffer; absent without command buffers.
    pub mean_dispatches: Option<f64>,
    /// Greatest number of dispatches in a command buffer.
    pub max_dispatches: Option<u32>,
    /// Durations on the device.
    pub durations: Durations,
    /// Times from the start of a command buffer to the start of the next on the same queue.
    pub start_to_start: Durations,
    /// The longest, the longest first.
    pub longest: Vec<CommandBufferRow>,
}

/// How many command buffers have a timing.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct TimingCount {
    /// `measured`, `bracketed`, or why the times are unknown.
    #[schemars(with = "String")]
    pub timing: Timing,
    /// Command buffers.
    pub count: u64,
}

/// One command buffer.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
pub struct CommandBufferRow {
    /// Id in the trace.
    pub id: CommandBufferId,
    /// Name that the program gave it.
    pub name: Option<String>,
    /// Path of its label.
    pub label: Option<String>,
    /// Id of the queue.
    pub queue_id: QueueId,
    /// When the device began it.
    pub start_ns: Option<i64>,
    /// How long it took.
    pub duration_ns: Option<i64>,
    /// Dispatches in it.
    pub dispatch_count: u32,
    /// Transfers in it.
    pub transfer_count: u32,
}

/// The start of a command buffer and the queue that ran it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Start {
    /// Index of the queue in the timeline.
    queue: u32,
    start_ns: i64,
}

/// Returns the mean number of dispatches in a command buffer, or `None` without command buffers.
pub(crate) fn mean_dispatches(timeline: &Timeline) -> Option<f64> {
    let counts = &timeline.trace.tables.command_buffers.dispatches;
    let dispatches: u64 = counts.iter().map(|count| u64::from(*count)).sum();
    (!counts.is_empty()).then(|| dispatches as f64 / counts.len() as f64)
}

/// Sums up all command buffers, and lists the `longest` of the timed ones.
pub fn command_buffers(timeline: &Timeline, longest: usize) -> CommandBuffers {
    let rows = &timeline.trace.tables.command_buffers;
    let opaque: HashSet<CommandBufferId> =
        (timeline.trace.tables.opaque_work.command_buffer.iter())
            .flatten()
            .collect();
    let empty = |row: &usize| {
        rows.dispatches[*row] == 0 && rows.transfers[*row] == 0 && !opaque.contains(&rows.id[*row])
    };
    let mut timings: BTreeMap<Timing, u64> = BTreeMap::new();
    for timing in &rows.timing {
        *timings.entry(*timing).or_default() += 1;
    }
    let mut timings: Vec<TimingCount> = timings
        .into_iter()
        .map(|(timing, count)| TimingCount { timing, count })
        .collect();
    timings.sort_by_key(|row| Reverse(row.count));

    let times = &timeline.command_buffers;
    let mut durations: Vec<i64> = times
        .iter()
        .filter_map(|t| Some(t.own?.length_ns()))
        .collect();
    let mut starts: Vec<Start> = (times.iter().zip(&timeline.command_buffer_queues))
        .filter_map(|(t, queue)| {
            Some(Start {
                queue: *queue,
                start_ns: t.own?.start_ns,
            })
        })
        .collect();
    starts.sort();
    let mut steps: Vec<i64> = (starts.windows(2))
        .filter(|pair| pair[0].queue == pair[1].queue)
        .map(|pair| pair[1].start_ns - pair[0].start_ns)
        .collect();
    let mut by_length: Vec<usize> = (0..rows.len())
        .filter(|row| times[*row].own.is_some())
        .collect();
    let length = |row: &usize| {
        let length_ns = times[*row].own.map_or(0, |own| own.length_ns());
        (Reverse(length_ns), rows.id[*row])
    };
    if longest < by_length.len() {
        by_length.select_nth_unstable_by_key(longest, length);
        by_length.truncate(longest);
    }
    by_length.sort_by_key(length);
    CommandBuffers {
        count: rows.len() as u64,
        submission_count: timeline.submission_count(),
        empty_count: (0..rows.len()).filter(empty).count() as u64,
        timings,
        mean_dispatches: mean_dispatches(timeline),
        max_dispatches: rows.dispatches.iter().max().copied(),
        durations: Durations::from_slice(&mut durations),
        start_to_start: Durations::from_slice(&mut steps),
        longest: (by_length.into_iter())
            .map(|row| CommandBufferRow {
                id: rows.id[row],
                name: rows.name[row].as_deref().map(str::to_owned),
                label: rows.label.at(row).and_then(|id| timeline.label_path(id)),
                queue_id: rows.queue[row],
                start_ns: times[row].own.map(|own| own.start_ns),
                duration_ns: times[row].own.map(|own| own.length_ns()),
                dispatch_count: rows.dispatches[row],
                transfer_count: rows.transfers[row],
            })
            .collect(),
    }
}
