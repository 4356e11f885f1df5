//! Launch latency and queue depth.
//!
//! Latency is from the start of the host's submission call to the start of the submission's first work on the device, of
//! work that waited for nothing but its own queue: what another queue, the host or the order of the default stream held is
//! left out, with what came behind it on its queue before it started, and so is work that waited for something of unknown
//! time. For a submission that finds its queue without unfinished work it is launch latency proper, the submission call
//! included; otherwise it is mostly time in the queue, which is good: the device never has to wait. A submission is
//! outstanding from the start of its call to the end of its last work, and the depth is how many are.
//!
//! All compare host times with device times, so they are right within the clock's error. Submissions without timed
//! work are left out.

use crate::durations::Durations;
use crate::gaps::Cause;
use crate::gaps::waits::Order;
use crate::timeline::Timeline;
use gapscope_trace::ids::{QueueId, SubmissionId};
use schemars::JsonSchema;
use serde::Serialize;
use std::cmp::Reverse;

/// Launch latency and queue depth of one queue, over the whole recording.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
pub struct QueueLatency {
    /// Index of the device in the findings.
    pub device: u32,
    /// Id of the queue in the trace.
    pub queue_id: QueueId,
    /// Submissions with timed work.
    pub submission_count: u64,
    /// From the start of the submission call to the start of its first work, of submissions that waited for nothing but
    /// earlier work of their own queue.
    pub submit_to_start: Durations,
    /// The same for those of them that found the queue without unfinished work: launch latency proper. The others
    /// waited in the queue.
    pub submit_to_start_idle: Durations,
    /// Submissions that are in neither, because they, or what was before them on their queue, waited for something else
    /// after their call.
    pub waited_count: u64,
    /// The same by what they waited for last; they sum to `waited_count`.
    pub waited: Vec<Waited>,
    /// Submissions whose work seems to start before the call that submitted it, by more than the clock's error;
    /// absent where that error is not known.
    pub started_before_submission_count: Option<u64>,
    /// Submission calls: time inside, of those whose end is known.
    pub submit_calls: Durations,
    /// Most submissions outstanding at once: submitted and not finished.
    pub max_depth: Option<u32>,
    /// Mean over time, from the first submission to the end of the last work.
    pub mean_depth: Option<f64>,
    /// Time with nothing outstanding in that window: the host had given the queue nothing to do.
    pub depth_zero_ns: Option<i64>,
}

/// Submissions that waited for something else than their own queue's work.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Waited {
    /// What for, as idle time at it is called: `other-queue`, `host-signal`, `host-function`, `external-wait`, or `unknown`.
    pub cause: Cause,
    /// Submissions.
    pub count: u64,
}

/// Latency and depth of each queue that has submissions with timed work.
pub fn latency(timeline: &Timeline) -> Vec<QueueLatency> {
    latency_of(timeline, |_| true)
}

/// The same of the submissions that `keep` takes.
pub(crate) fn latency_of(
    timeline: &Timeline,
    keep: impl Fn(SubmissionId) -> bool,
) -> Vec<QueueLatency> {
    let order = Order::of(timeline);
    let ids = &timeline.trace.tables.submissions.id;
    let timed = timeline.in_order(|row| timeline.submissions[row].interval().is_some());
    let mut latency = Vec::new();
    for (queue, mut rows) in timed.into_iter().enumerate() {
        let keep = |row: &u32| keep(ids[*row as usize]);
        let mut found = found(timeline, &order, &rows);
        let mut kept = rows.iter().map(keep);
        found.retain(|_| kept.next() == Some(true));
        rows.retain(keep);
        if !rows.is_empty() {
            latency.push(queue_latency(timeline, queue, &rows, &found));
        }
    }
    latency
}

/// What a submission found on its queue.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Found {
    /// No unfinished work.
    Idle,
    /// Only work.
    Work,
    /// Something that held it, or what was before it, after its call.
    Held(Cause),
}

/// What the submissions of a queue found: all that are timed, in the order of their calls.
fn found(timeline: &Timeline, order: &Order, rows: &[u32]) -> Vec<Found> {
    let calls_ns = &timeline.trace.tables.submissions.start_ns;
    let mut finished_ns = i64::MIN;
    let mut held = (i64::MIN, Cause::Unknown);
    let rows = rows.iter().map(|row| {
        let (times, call_ns) = (
            &timeline.submissions[*row as usize],
            calls_ns[*row as usize],
        );
        let before_ns = finished_ns;
        finished_ns = finished_ns.max(times.last_end_ns);
        if let Some(until) = order.held_until(*row)
            && until.0 > held.0
        {
            held = until;
        }
        match () {
            () if held.0 > call_ns => Found::Held(held.1),
            () if before_ns <= call_ns => Found::Idle,
            () => Found::Work,
        }
    });
    rows.collect()
}

/// `rows`: submissions in the order of their calls, not empty. `found`: what each found.
fn queue_latency(timeline: &Timeline, queue: usize, rows: &[u32], found: &[Found]) -> QueueLatency {
    let table = &timeline.trace.tables.submissions;
    let of_gpu = timeline.queues[queue];
    let error_ns = timeline.clock_error_ns(of_gpu.gpu as usize);
    let rows = || rows.iter().map(|row| *row as usize);
    let latency_ns = |row: usize| {
        let first_start_ns = timeline.submissions[row].first_start_ns;
        first_start_ns.saturating_sub(table.start_ns[row])
    };
    let early = rows()
        .filter(|row| error_ns.is_some_and(|error| latency_ns(*row) < error.saturating_neg()))
        .count() as u64;
    let latencies = |of: fn(Found) -> bool| {
        let rows = rows().zip(found).filter(move |(_, found)| of(**found));
        Durations::of(&mut rows.map(|(row, _)| latency_ns(row)).collect::<Vec<_>>())
    };
    // One after the other: of ten million submissions each list fills eighty megabytes.
    let submit_to_start_idle = latencies(|found| found == Found::Idle);
    let submit_to_start = latencies(|found| !matches!(found, Found::Held(_)));
    let waited = waited(found);
    // Of some only the moment is known: they end as they begin.
    let calls = rows().map(|row| table.duration_ns[row]);
    let submit_calls = Durations::of(&mut calls.filter(|ns| *ns > 0).collect::<Vec<_>>());

    let mut ends: Vec<i64> = rows()
        .map(|row| {
            timeline.submissions[row]
                .last_end_ns
                .max(table.start_ns[row])
        })
        .collect();
    ends.sort_unstable();
    let mut begins = rows().map(|row| table.start_ns[row]).peekable();
    let first_ns = begins.peek().copied().unwrap_or_default();
    let (mut depth, mut max_depth, mut zero_ns, mut area) = (0i32, 0, 0i64, 0f64);
    let mut last_ns = first_ns;
    let mut step = |at_ns: i64, by: i32| {
        let ns = at_ns.saturating_sub(last_ns);
        if depth == 0 {
            zero_ns = zero_ns.saturating_add(ns);
        }
        area += f64::from(depth) * ns as f64;
        depth += by;
        max_depth = max_depth.max(depth);
        last_ns = at_ns;
    };
    for end_ns in ends {
        // What ends as another begins was not outstanding with it.
        while let Some(begin_ns) = begins.next_if(|begin_ns| *begin_ns < end_ns) {
            step(begin_ns, 1);
        }
        step(end_ns, -1);
    }
    let window_ns = last_ns.saturating_sub(first_ns);
    QueueLatency {
        device: of_gpu.gpu,
        queue_id: of_gpu.id,
        submission_count: rows().len() as u64,
        submit_to_start,
        submit_to_start_idle,
        waited_count: waited.iter().map(|waited| waited.count).sum(),
        waited,
        started_before_submission_count: error_ns.map(|_| early),
        submit_calls,
        max_depth: Some(max_depth as u32),
        mean_depth: (window_ns > 0).then(|| area / window_ns as f64),
        depth_zero_ns: Some(zero_ns),
    }
}

/// What submissions waited for, the most frequent first.
fn waited(found: &[Found]) -> Vec<Waited> {
    let mut counts = [0u64; Cause::ALL.len()];
    for found in found {
        if let Found::Held(cause) = found {
            counts[*cause as usize] += 1;
        }
    }
    let mut waited: Vec<Waited> = (Cause::ALL.into_iter().zip(counts))
        .filter(|(_, count)| *count > 0)
        .map(|(cause, count)| Waited { cause, count })
        .collect();
    waited.sort_by_key(|waited| Reverse(waited.count));
    waited
}
