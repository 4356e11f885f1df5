//! Streams that wait for events of other streams.
//!
//! Correlations are given in the order of the calls, so they say what was put on a stream before an event was recorded
//! there, and what after a wait.

use super::work::Submissions;
use super::{Correlation, EventOnQueue, Profile};
use crate::Error;
use crate::output::NewTrace;
use gapscope_trace::LossKind;
use gapscope_trace::ids::{ProcessId, QueueId, SubmissionId};
use gapscope_trace::tables::{Dependency, Table};
use rustc_hash::FxHashMap;

/// The submissions of a queue, in order.
type OnQueues = FxHashMap<QueueId, Vec<(Correlation, SubmissionId)>>;

impl Profile {
    /// Writes what waits for what: the next submission on the stream that waits, for the last one before the event.
    pub(super) fn write_dependencies(
        &mut self,
        submissions: &Submissions,
        new: &mut NewTrace,
    ) -> Result<(), Error> {
        let mut waits = std::mem::take(&mut self.waits);
        if waits.is_empty() {
            return Ok(());
        }
        let mut on_queues = OnQueues::default();
        for (call, submitted) in self.calls.iter().zip(submissions) {
            if let (Some(correlation), Some(submitted)) = (call.correlation, submitted) {
                let queue = on_queues.entry(submitted.queue).or_default();
                queue.push((correlation, submitted.id));
            }
        }
        for queue in on_queues.values_mut() {
            queue.sort_unstable();
        }
        let mut events: FxHashMap<(ProcessId, u64), Vec<EventOnQueue>> = FxHashMap::default();
        for event in std::mem::take(&mut self.events) {
            events
                .entry((event.process, event.event))
                .or_default()
                .push(event);
        }
        for of_event in events.values_mut() {
            of_event.sort_by_key(|event| event.correlation);
        }
        waits.sort_by_key(|wait| wait.correlation);
        let (mut unknown, mut pairs) = (0, Vec::new());
        for wait in &waits {
            let recorded = events
                .get(&(wait.process, wait.event))
                .and_then(|of_event| {
                    let after =
                        of_event.partition_point(|event| event.correlation < wait.correlation);
                    of_event[..after].last()
                });
            let Some(event) = recorded else {
                unknown += 1;
                continue;
            };
            // Its own stream is in order anyway.
            if event.queue == wait.queue {
                continue;
            }
            let waiting = next(&on_queues, wait.queue, wait.correlation);
            let signals = last(&on_queues, event.queue, event.correlation);
            if let (Some(submission), Some(waits_for)) = (waiting, signals) {
                pairs.push((submission, waits_for));
            }
        }
        pairs.sort_unstable();
        pairs.dedup();
        for (submission, waits_for) in pairs {
            new.tables_mut().dependencies.push(Dependency {
                submission,
                waits_for: Some(waits_for),
                host_signal_ns: None,
            });
            new.flush()?;
        }
        let reason = "the file does not say where the events were recorded that streams waited for";
        self.ledger.add(LossKind::Waits, unknown, reason);
        Ok(())
    }
}

/// The first submission on a queue after a call.
fn next(on_queues: &OnQueues, queue: QueueId, after: Correlation) -> Option<SubmissionId> {
    let queue = on_queues.get(&queue)?;
    let at = queue.partition_point(|(correlation, _)| *correlation <= after);
    queue.get(at).map(|(_, submission)| *submission)
}

/// The last submission on a queue before a call.
fn last(on_queues: &OnQueues, queue: QueueId, before: Correlation) -> Option<SubmissionId> {
    let queue = on_queues.get(&queue)?;
    let at = queue.partition_point(|(correlation, _)| *correlation < before);
    queue[..at].last().map(|(_, submission)| *submission)
}
