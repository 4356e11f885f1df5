//! Launch latency and queue depth.
//!
//! Latency is from the start of the host's submission call to the start of the submission's first work on the device.
//! For a submission that finds its queue without unfinished work it is launch latency proper, the submission call
//! included; otherwise it is mostly time in the queue, which is good: the device never has to wait. A submission is
//! outstanding from the start of its call to the end of its last work, and the depth is how many are.
//!
//! Both compare host times with device times, so they are right within the clock's error. Submissions without timed
//! work are left out.

use crate::durations::Durations;
use crate::timeline::Timeline;
use gapscope_trace::ids::QueueId;
use serde::Serialize;

/// Launch latency and queue depth of one queue, over the whole recording.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct QueueLatency {
    /// Index of the device in the findings.
    pub device: u32,
    /// Id of the queue in the trace.
    pub queue_id: QueueId,
    /// Submissions with timed work.
    pub submission_count: u64,
    /// From the start of the submission call to the start of its first work: all submissions.
    pub submit_to_start: Durations,
    /// The same for submissions that found the queue without unfinished work: launch latency proper. The others
    /// waited in the queue.
    pub submit_to_start_idle: Durations,
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

/// Latency and depth of each queue that has submissions with timed work.
pub fn latency(timeline: &Timeline) -> Vec<QueueLatency> {
    let table = &timeline.trace.tables.submissions;
    let mut by_queue: Vec<Vec<u32>> = vec![Vec::new(); timeline.queues.len()];
    for (row, times) in timeline.submissions.iter().enumerate() {
        if times.interval().is_some() {
            by_queue[times.queue as usize].push(row as u32);
        }
    }
    (by_queue.into_iter().enumerate())
        .filter(|(_, rows)| !rows.is_empty())
        .map(|(queue, mut rows)| {
            let order = |row: &u32| (table.start_ns[*row as usize], table.id[*row as usize]);
            rows.sort_unstable_by_key(|row| (order(row), *row));
            queue_latency(timeline, queue, &rows)
        })
        .collect()
}

/// `rows`: submissions by start, not empty.
fn queue_latency(timeline: &Timeline, queue: usize, rows: &[u32]) -> QueueLatency {
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
    let mut finished_ns = i64::MIN;
    let found_idle = rows().filter(|row| {
        let before_ns = finished_ns;
        finished_ns = finished_ns.max(timeline.submissions[*row].last_end_ns);
        before_ns <= table.start_ns[*row]
    });
    // One after the other: of ten million submissions each list fills eighty megabytes.
    let submit_to_start_idle = Durations::of(&mut found_idle.map(latency_ns).collect::<Vec<_>>());
    let submit_to_start = Durations::of(&mut rows().map(latency_ns).collect::<Vec<_>>());
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
        submission_count: submit_to_start.timed_count,
        submit_to_start,
        submit_to_start_idle,
        started_before_submission_count: error_ns.map(|_| early),
        submit_calls,
        max_depth: Some(max_depth as u32),
        mean_depth: (window_ns > 0).then(|| area / window_ns as f64),
        depth_zero_ns: Some(zero_ns),
    }
}
