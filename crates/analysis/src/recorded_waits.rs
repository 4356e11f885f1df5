//! Says for which work calls waited, as far as the trace records it. A timeline goes in; out comes, for a call of a thread, the
//! submission that the call waited for.
//!
//! | call | submission |
//! |---|---|
//! | a wait, or a poll that found its work done, with [`waits_for`](gapscope_trace::tables::HostCalls::waits_for) | that one |
//! | a wait for a queue that the trace names | the last one to that queue whose call had returned as the wait began |
//!
//! Such a call waited for that submission and for what was put on its queue before, and for nothing else ([`RecordedWaits::is_for`]).
//! Waits whose result is not known count as done; those that failed or ran into a time limit are left out. Of all other calls the trace
//! does not say for which work they waited, and who asks has to infer it from times.

use gapscope_timeline::host::{HostThread, Segment};
use gapscope_timeline::{Standing, Timeline};
use gapscope_trace::ids::QueueId;
use gapscope_trace::lookup::NONE;
use gapscope_trace::tables::{HostCallKind, Table, UNKNOWN_RESULT};

/// How many submissions before a wait are looked at for calls that had not returned as it began.
const MAX_OPEN_CALLS: usize = 64;

/// The calls that waited for known work.
pub(crate) struct RecordedWaits<'a> {
    timeline: &'a Timeline<'a>,
    /// In order of thread and return.
    waits: Vec<RecordedWait>,
}

/// A call that waited for known work.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct RecordedWait {
    pub(crate) thread: Option<HostThread>,
    /// When the call returned.
    pub(crate) end_ns: i64,
    /// The row of the submission that it waited for.
    pub(crate) awaited: u32,
    /// The row of the call.
    call: u32,
}

impl<'a> RecordedWaits<'a> {
    pub(crate) fn new(timeline: &'a Timeline<'a>) -> RecordedWaits<'a> {
        let table = &timeline.trace.tables.host_calls;
        let mut waits = Vec::new();
        for row in 0..table.len() {
            let call = table.call[row];
            let is_done =
                table.result[row] == 0 || table.result[row] == UNKNOWN_RESULT && !call.is_poll();
            if !call.is_wait() || !is_done {
                continue;
            }
            let recorded = table.waits_for.get(row);
            let awaited = match (recorded, call) {
                (Some(id), _) => Some(timeline.submission_ids.row(id)),
                (None, HostCallKind::WaitQueueIdle) => (table.queue.at(row))
                    .and_then(|id| last_submitted(timeline, id, table.start_ns[row])),
                (None, _) => None,
            };
            if let Some(awaited) = awaited.filter(|row| *row != NONE) {
                waits.push(RecordedWait {
                    thread: HostThread::from_row(table.process[row], table.thread.at(row)),
                    end_ns: table.start_ns[row].saturating_add(table.duration_ns[row].max(0)),
                    awaited,
                    call: row as u32,
                });
            }
        }
        waits.sort_unstable();
        RecordedWaits { timeline, waits }
    }

    /// Returns all of these calls.
    pub(crate) fn all(&self) -> &[RecordedWait] {
        &self.waits
    }

    /// Returns for each row of the table of calls whether it is one of these.
    pub(crate) fn has_rows(&self) -> Vec<bool> {
        let mut rows = vec![false; self.timeline.trace.tables.host_calls.len()];
        for wait in &self.waits {
            rows[wait.call as usize] = true;
        }
        rows
    }

    /// Returns the row of the submission that a call of a thread waited for; `None` where the trace does not say.
    pub(crate) fn awaited(&self, thread: HostThread, call: &Segment) -> Option<u32> {
        if !call.is_last {
            return None;
        }
        let key = (Some(thread), call.interval.end_ns);
        let at = (self.waits).partition_point(|wait| (wait.thread, wait.end_ns) < key);
        let wait = self.waits.get(at)?;
        ((wait.thread, wait.end_ns) == key).then_some(wait.awaited)
    }

    /// Returns whether a call of a thread waited for the work of the submission in `row`, or `None` where the trace does not say. What a
    /// submission without known times waited for itself is not known here.
    pub(crate) fn is_for(&self, thread: HostThread, call: &Segment, row: u32) -> Option<bool> {
        let awaited = self.awaited(thread, call)?;
        let queue_of = |row: u32| Some(self.timeline.submissions.get(row as usize)?.queue);
        let is_covered = queue_of(awaited) == Some(queue_of(row)?)
            && self.timeline.call_order(row) <= self.timeline.call_order(awaited);
        let is_certain =
            is_covered || matches!(self.timeline.standing(awaited), Standing::Timed(_));
        is_certain.then_some(is_covered)
    }
}

/// Returns the row of the last submission to a queue whose call had returned at `at_ns`, and those before it on the queue likewise.
fn last_submitted(timeline: &Timeline, queue_id: QueueId, at_ns: i64) -> Option<u32> {
    let queue = timeline.queue_ids.row(queue_id);
    let rows = timeline.submissions_by_queue().get(queue as usize)?;
    let table = &timeline.trace.tables.submissions;
    let begun = rows.partition_point(|row| table.start_ns[*row as usize] < at_ns);
    let mut last = None;
    // What another thread was submitting may have come too late for the wait.
    for row in rows[..begun].iter().rev().take(MAX_OPEN_CALLS) {
        match table.end_ns(*row as usize) > at_ns {
            true => last = None,
            false => last = last.or(Some(*row)),
        }
    }
    last
}
