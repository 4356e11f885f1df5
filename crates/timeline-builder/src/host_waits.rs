//! Calls that wait for a queue, or for an event on one: takes these calls and the submissions of all queues, in any order, and says
//! which submission each call waited for.
//!
//! A call waits for what was put on the queue before a place there: that of the call itself, or of the event. Its submission is the
//! last one before that place. The records of submissions come late, so that a call is kept for a while before its row is written.

use crate::bounds::Bounds;
use crate::event_waits::{EventWaits, SETTLED_NS, StreamPlace};
use crate::input::{ApiCall, Correlation};
use gapscope_trace::ids::{QueueId, SubmissionId};
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// A submission, with the call that made it.
type Submitted = (Correlation, SubmissionId);

/// The waits of one process's host threads whose rows are not written.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct HostWaits {
    queues: FxHashMap<QueueId, QueueWaits>,
}

/// The waits for one queue, in the order of their places there.
#[derive(Debug, Default, Serialize, Deserialize)]
struct QueueWaits {
    open: VecDeque<OpenHostWait>,
    /// The last submission before the latest wait that is not kept any more.
    last: Option<Submitted>,
}

/// A wait that may be for a submission whose record has not come.
#[derive(Debug, Serialize, Deserialize)]
struct OpenHostWait {
    /// The latest time that the producer had seen when the wait was taken.
    since_ns: i64,
    call: ApiCall,
    /// The place on the queue up to which the call waits.
    up_to: Correlation,
    /// The last submission that is known between the wait before this one and its place.
    last: Option<Submitted>,
    /// What was submitted before the place is not remembered any more.
    is_forgotten: bool,
}

/// A call that waited, and all that is known of what it waited for.
pub(crate) struct HostWait {
    pub(crate) call: ApiCall,
    pub(crate) queue: QueueId,
    pub(crate) submission: Option<SubmissionId>,
}

impl HostWaits {
    /// Takes a call that waits for what is before a place on a queue.
    pub(crate) fn waits(
        &mut self,
        call: ApiCall,
        place: StreamPlace,
        now_ns: i64,
        events: &EventWaits,
        bounds: &Bounds,
    ) {
        let open = &mut self.queues.entry(place.queue).or_default().open;
        let at = open.partition_point(|other| other.up_to <= place.correlation);
        let known = events.last_submission_before(place, bounds);
        let wait = OpenHostWait {
            since_ns: now_ns,
            call,
            up_to: place.correlation,
            last: known.unwrap_or_default(),
            is_forgotten: known.is_err(),
        };
        open.insert(at, wait);
    }

    /// Takes a submission, and the place where its call put it.
    #[inline]
    pub(crate) fn submitted(&mut self, place: StreamPlace, submission: SubmissionId) {
        let Some(queue) = self.queues.get_mut(&place.queue) else {
            return;
        };
        let next = (queue.open).partition_point(|wait| wait.up_to <= place.correlation);
        if let Some(wait) = queue.open.get_mut(next) {
            wait.last = wait.last.max(Some((place.correlation, submission)));
        }
    }

    /// Takes out the waits for which nothing more comes, or all of them where `all` says so, and calls `write` with each.
    pub(crate) fn settle(
        &mut self,
        (now_ns, all): (i64, bool),
        bounds: &Bounds,
        events: &EventWaits,
        mut write: impl FnMut(HostWait),
    ) {
        for (queue, waits) in &mut self.queues {
            while let Some(first) = waits.open.front() {
                let is_recent = now_ns.saturating_sub(first.since_ns) < SETTLED_NS;
                if !all && is_recent && waits.open.len() <= bounds.host_waits {
                    break;
                }
                let Some(wait) = waits.open.pop_front() else {
                    break;
                };
                write(waits.settled(*queue, wait, events));
            }
        }
        if all {
            self.queues.clear();
        }
    }

    /// Takes out the wait for a queue that a new one leaves no room for.
    pub(crate) fn trimmed(
        &mut self,
        queue: QueueId,
        bounds: &Bounds,
        events: &EventWaits,
    ) -> Option<HostWait> {
        let waits = self.queues.get_mut(&queue)?;
        let is_full = waits.open.len() > bounds.host_waits;
        let wait = is_full.then(|| waits.open.pop_front()).flatten()?;
        Some(waits.settled(queue, wait, events))
    }
}

impl QueueWaits {
    /// Returns what the first of all waits was for. It is unknown where the queue itself waits for another one after its last submission:
    /// the call waits for the work of both.
    fn settled(&mut self, queue: QueueId, wait: OpenHostWait, events: &EventWaits) -> HostWait {
        let place = StreamPlace {
            queue,
            correlation: wait.up_to,
        };
        let before = self.last.filter(|(call, _)| *call < wait.up_to);
        let last = wait.last.max(before);
        self.last = self.last.max(last);
        let after = last.map(|(call, _)| call);
        let is_alone = !wait.is_forgotten && !events.has_wait_between(after, place);
        let submission = last.filter(|_| is_alone);
        HostWait {
            call: wait.call,
            queue,
            submission: submission.map(|(_, submission)| submission),
        }
    }
}
