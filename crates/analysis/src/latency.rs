//! Measures the launch latency (the time from a submission call to the start of its work) and the depth of each
//! queue.
//!
//! Latency is from the start of the host's submission call to the start of the submission's first work on the device, for
//! work that waited for nothing but its own queue. Work that another queue, the host or the order of the default stream held up
//! is left out, with the work that came behind it on its queue before it started; so is work that waited for something of
//! unknown time, or longer than devices need to start what is free to run. For a submission that finds its queue without unfinished work it is launch latency proper, the submission call
//! included; otherwise it is mostly time in the queue, which is good: the device never has to wait. A submission is
//! outstanding from the start of its call to the end of its last work, and the depth is the number of outstanding submissions.
//!
//! All of this compares host times with device times, so it is right within the clock's error. Submissions without timed
//! work are left out.

use crate::gaps::Cause;
use crate::gaps::waits::WaitOrder;
use gapscope_timeline::Timeline;
use gapscope_timeline::durations::Durations;
use gapscope_trace::ids::QueueId;
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
    /// The same for the submissions that found the queue without unfinished work: launch latency proper. The others waited in
    /// the queue.
    pub submit_to_start_idle: Durations,
    /// Submissions that are in neither, because they, or what was before them on their queue, waited for something else
    /// after their call.
    pub waited_count: u64,
    /// These submissions by what they waited for last; they sum to `waited_count`.
    pub waited: Vec<Waited>,
    /// Submissions whose work seems to start before the call that submitted it, by more than the clock's error;
    /// absent where that error is not known.
    pub started_before_submission_count: Option<u64>,
    /// Time inside submission calls whose end is known.
    pub submit_calls: Durations,
    /// Most submissions outstanding at once: submitted and not finished.
    pub max_depth: Option<u32>,
    /// Mean over time, from the first submission to the end of the last work.
    pub mean_depth: Option<f64>,
    /// Time with nothing outstanding in that window: the host had given the queue nothing to do.
    pub depth_zero_ns: Option<i64>,
}

/// Submissions that waited for something other than their own queue's work.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Waited {
    /// What they waited for, by the cause of the idle time: `other-queue`, `host-signal`, `host-function`, `external-wait`, `context-switch`, or `unknown`.
    pub cause: Cause,
    /// Submissions.
    pub count: u64,
}

/// Measures latency and depth of each queue that has submissions with timed work. Only the submissions count that a
/// [`LabelFilter`](gapscope_timeline::LabelFilter) selects, but these may have waited for others.
pub(crate) fn latency(timeline: &Timeline, order: &WaitOrder) -> Vec<QueueLatency> {
    let selected = &timeline.selected().submission_ids;
    let ids = &timeline.trace.tables.submissions.id;
    let is_timed = |row: &u32| timeline.submissions[*row as usize].interval().is_some();
    let mut latency = Vec::new();
    for (queue, rows) in timeline.submissions_by_queue().iter().enumerate() {
        let mut rows: Vec<u32> = rows.iter().copied().filter(is_timed).collect();
        let keep = |row: &u32| selected.get(ids[*row as usize]).is_some();
        let mut found = queue_states(timeline, order, &rows);
        let mut kept = rows.iter().map(keep);
        found.retain(|_| kept.next() == Some(true));
        rows.retain(keep);
        if !rows.is_empty() {
            latency.push(queue_latency(timeline, queue, &rows, &found));
        }
    }
    latency
}

/// The state of a queue when a submission is made.
#[derive(Clone, Copy, PartialEq, Eq)]
enum QueueState {
    /// The queue has no unfinished work.
    Idle,
    /// The queue has unfinished work, and nothing else holds the submission up.
    Work,
    /// Something held up the submission, or an earlier one, after its call.
    Held(Cause),
}

/// Returns the states in which the timed submissions of a queue found it, in the order of their calls.
fn queue_states(timeline: &Timeline, order: &WaitOrder, rows: &[u32]) -> Vec<QueueState> {
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
        let free_ns = before_ns.max(order.call_end_ns(*row));
        let started_ns = times.first_start_ns.saturating_sub(free_ns);
        match () {
            () if held.0 > call_ns => QueueState::Held(held.1),
            () if order
                .other_context_ended(*row, times.first_start_ns)
                .is_some_and(|ns| ns > before_ns) =>
            {
                QueueState::Held(Cause::ContextSwitch)
            }
            () if started_ns >= order.most_start_up_ns(*row) => QueueState::Held(Cause::Unknown),
            () if before_ns <= call_ns => QueueState::Idle,
            () => QueueState::Work,
        }
    });
    rows.collect()
}

/// Measures a queue. `rows` are the queue's submissions in the order of their calls, at least one, and `found` is the
/// state of the queue at each of them. The depth is counted by one sweep over starts of calls and ends of work.
fn queue_latency(
    timeline: &Timeline,
    queue: usize,
    rows: &[u32],
    found: &[QueueState],
) -> QueueLatency {
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
    let latencies = |of: fn(QueueState) -> bool| {
        let rows = rows().zip(found).filter(move |(_, found)| of(**found));
        Durations::from_slice(&mut rows.map(|(row, _)| latency_ns(row)).collect::<Vec<_>>())
    };
    // The lists are made one after the other, since each fills eighty megabytes for ten million submissions.
    let submit_to_start_idle = latencies(|found| found == QueueState::Idle);
    let submit_to_start = latencies(|found| !matches!(found, QueueState::Held(_)));
    let waited = waited(found);
    // Calls of which only the moment is known end as they begin.
    let calls = rows().map(|row| table.duration_ns[row]);
    let submit_calls = Durations::from_slice(&mut calls.filter(|ns| *ns > 0).collect::<Vec<_>>());

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
        // A submission that ends as another begins was not outstanding with it.
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

/// Counts what submissions waited for, the most frequent first.
fn waited(found: &[QueueState]) -> Vec<Waited> {
    let mut counts = [0u64; Cause::ALL.len()];
    for found in found {
        if let QueueState::Held(cause) = found {
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
