//! The command-buffer table.
//!
//! A row is one submitted instance: a command buffer that is submitted ten times counts ten times. Its duration is
//! from its start to its end on the device, waits at barriers inside it included. `dispatches` counts what is recorded in it,
//! whether timed or not.

use crate::durations::Durations;
use crate::timeline::Timeline;
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
    /// Those with neither dispatch, transfer nor opaque work.
    pub empty_count: u64,
    /// By whether their times are known, in the trace's words, most first.
    pub timings: Vec<TimingCount>,
    /// Mean number of dispatches in one; absent without command buffers.
    pub mean_dispatches: Option<f64>,
    /// Most dispatches in one.
    pub max_dispatches: Option<u32>,
    /// Durations on the device.
    pub durations: Durations,
    /// From the start of one to the start of the next on the same queue.
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

/// When a command buffer started, and on which queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Start {
    queue: u32,
    start_ns: i64,
}

/// All command buffers; of the timed ones the `longest` are listed.
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
    let dispatches: u64 = rows.dispatches.iter().map(|n| u64::from(*n)).sum();
    CommandBuffers {
        count: rows.len() as u64,
        submission_count: timeline.submission_count(),
        empty_count: (0..rows.len()).filter(empty).count() as u64,
        timings,
        mean_dispatches: (!rows.is_empty()).then(|| dispatches as f64 / rows.len() as f64),
        max_dispatches: rows.dispatches.iter().max().copied(),
        durations: Durations::of(&mut durations),
        start_to_start: Durations::of(&mut steps),
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
