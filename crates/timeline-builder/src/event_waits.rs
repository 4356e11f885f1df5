//! Streams that wait for events of other streams: takes events, waits and submissions, and says which submission waits for which.
//!
//! Correlations ascend in the order of the calls, so they say what was put on a stream before an event was recorded there, and what
//! after a wait.

use crate::bounds::Bounds;
use crate::input::Correlation;
use crate::rows;
use gapscope_trace::ids::{QueueId, SubmissionId};
use gapscope_trace::tables::Tables;
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// The longest chain of queues that is followed, each of which waits for the one before.
const MAX_CHAIN: u32 = 16;
/// The records of what a wait refers to may come this much later than the wait, by the newest times recorded.
const SETTLED_NS: i64 = 1_000_000_000;

/// One occurrence of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct EventOccurrence {
    /// The event, as the producer numbers it.
    pub event: u64,
    /// Tells the event's occurrences apart; 0: the latest one before the call that names it.
    pub number: u64,
}

/// The place of an event, or of a wait for one, among what is put on a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct StreamPlace {
    /// The stream.
    pub queue: QueueId,
    /// The call that put the event or the wait there.
    pub correlation: Correlation,
}

/// The events of one process, and the waits for them.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct EventWaits {
    /// The submissions of each queue, in order.
    submissions: FxHashMap<QueueId, VecDeque<Submitted>>,
    records: FxHashMap<EventOccurrence, StreamPlace>,
    remembered: VecDeque<EventOccurrence>,
    /// Waits of each queue that no submission has followed.
    unfollowed: FxHashMap<QueueId, VecDeque<Wait>>,
    /// All waits of each queue, in order: an event behind them happens only after them.
    placed: FxHashMap<QueueId, VecDeque<Wait>>,
    /// Waits whose submission is known; the first to be settled first.
    open: VecDeque<OpenWait>,
}

#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
struct Submitted {
    correlation: Correlation,
    submission: SubmissionId,
}

#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
struct Wait {
    correlation: Correlation,
    occurrence: EventOccurrence,
}

#[derive(Debug, Serialize, Deserialize)]
struct OpenWait {
    since_ns: i64,
    /// A submission that follows.
    submission: SubmissionId,
    place: StreamPlace,
    occurrence: EventOccurrence,
}

impl EventWaits {
    /// Takes an event that was put on a stream.
    pub fn recorded(&mut self, occurrence: EventOccurrence, place: StreamPlace, bounds: &Bounds) {
        let latest = EventOccurrence {
            number: 0,
            ..occurrence
        };
        for occurrence in [occurrence, latest] {
            if self.records.insert(occurrence, place).is_none() {
                self.remembered.push_back(occurrence);
            }
        }
        while self.remembered.len() > bounds.occurrences {
            if let Some(old) = self.remembered.pop_front() {
                self.records.remove(&old);
            }
        }
    }

    /// Returns where an occurrence of an event was put.
    pub fn record_of(&self, occurrence: EventOccurrence) -> Option<StreamPlace> {
        self.records.get(&occurrence).copied()
    }

    /// Takes a wait for an event that was put on a stream.
    pub fn waits(
        &mut self,
        place: StreamPlace,
        occurrence: EventOccurrence,
        now_ns: i64,
        bounds: &Bounds,
    ) {
        let StreamPlace { queue, correlation } = place;
        let wait = Wait {
            correlation,
            occurrence,
        };
        let placed = self.placed.entry(queue).or_default();
        if placed.len() >= bounds.placed_waits {
            placed.pop_front();
        }
        let at = placed.partition_point(|other| other.correlation <= correlation);
        placed.insert(at, wait);
        let known = self.submissions.get(&queue);
        let after = known.and_then(|known| {
            known.get(known.partition_point(|other| other.correlation <= correlation))
        });
        match after {
            Some(after) => self.open.push_back(OpenWait {
                since_ns: now_ns,
                submission: after.submission,
                place,
                occurrence,
            }),
            None => {
                let waits = self.unfollowed.entry(queue).or_default();
                if waits.len() >= bounds.unfollowed_waits {
                    waits.pop_front();
                }
                waits.push_back(wait);
            }
        }
    }

    /// Takes work that was put on a stream.
    #[inline]
    pub fn submitted(
        &mut self,
        place: StreamPlace,
        submission: SubmissionId,
        now_ns: i64,
        bounds: &Bounds,
    ) {
        if bounds.submissions == 0 {
            return;
        }
        let StreamPlace { queue, correlation } = place;
        let known = self.submissions.entry(queue).or_default();
        if known.len() >= bounds.submissions {
            known.pop_front();
        }
        let mut at = known.len();
        while at > 0 && correlation < known[at - 1].correlation {
            at -= 1;
        }
        let submitted = Submitted {
            correlation,
            submission,
        };
        known.insert(at, submitted);
        let Some(waits) = self.unfollowed.get_mut(&queue) else {
            return;
        };
        waits.retain(|wait| {
            let followed = wait.correlation < correlation;
            if followed {
                self.open.push_back(OpenWait {
                    since_ns: now_ns,
                    submission,
                    place: StreamPlace {
                        queue,
                        correlation: wait.correlation,
                    },
                    occurrence: wait.occurrence,
                });
            }
            !followed
        });
        if waits.is_empty() {
            self.unfollowed.remove(&queue);
        }
    }

    /// Writes the rows of the waits that nothing changes any more; of all where `all` says that nothing more comes. Returns how many
    /// of them are for something that is not known.
    pub fn settle(&mut self, now_ns: i64, all: bool, bounds: &Bounds, tables: &mut Tables) -> u64 {
        let mut unknown = 0;
        while let Some(open) = self.open.front() {
            if !all && now_ns.saturating_sub(open.since_ns) < SETTLED_NS {
                break;
            }
            let Some(open) = self.open.pop_front() else {
                break;
            };
            let submission = self.following(&open, bounds);
            let mut awaited = Vec::new();
            let wait = Wait {
                correlation: open.place.correlation,
                occurrence: open.occurrence,
            };
            self.awaited(open.place.queue, wait, 0, bounds, &mut awaited);
            for waits_for in awaited {
                unknown += u64::from(waits_for.is_none());
                rows::dependency(tables, submission, waits_for, None);
            }
        }
        unknown
    }

    /// Returns the first submission behind a wait: one that was put on the stream before that which is known to follow may have come
    /// later.
    fn following(&self, open: &OpenWait, bounds: &Bounds) -> SubmissionId {
        let StreamPlace { queue, correlation } = open.place;
        let Some(known) = self.submissions.get(&queue) else {
            return open.submission;
        };
        let at = known.partition_point(|other| other.correlation <= correlation);
        let may_be_forgotten = at == 0 && known.len() >= bounds.submissions;
        match known.get(at).filter(|_| !may_be_forgotten) {
            Some(first) => first.submission,
            None => open.submission,
        }
    }

    /// Finds what a wait is for that was put, in the end, before work on the queue `home`: submissions, or `None` for what is not
    /// known.
    fn awaited(
        &self,
        home: QueueId,
        wait: Wait,
        depth: u32,
        bounds: &Bounds,
        found: &mut Vec<Option<SubmissionId>>,
    ) {
        let add = |found: &mut Vec<_>, submission| {
            if !found.contains(&submission) {
                found.push(submission);
            }
        };
        let record = match self.records.get(&wait.occurrence) {
            // Where the number is not known, the event may have been recorded again meanwhile.
            Some(record)
                if wait.occurrence.number != 0 || record.correlation < wait.correlation =>
            {
                record
            }
            _ => return add(found, None),
        };
        if record.queue == home {
            return;
        }
        let recorded = record.correlation;
        let last = self.submissions.get(&record.queue).and_then(|known| {
            let at = known.partition_point(|other| other.correlation < recorded);
            match at.checked_sub(1) {
                Some(last) => Some(Some(known[last])),
                None if known.len() >= bounds.submissions => Some(None),
                None => None,
            }
        });
        match last {
            Some(Some(last)) => add(found, Some(last.submission)),
            Some(None) => return add(found, None),
            None => {}
        }
        // The event also happens after the waits of its queue that no work has followed there.
        let after = last.flatten().map(|last| last.correlation);
        let Some(placed) = self.placed.get(&record.queue) else {
            return;
        };
        let from = after.map_or(0, |after| {
            placed.partition_point(|wait| wait.correlation <= after)
        });
        let until = placed.partition_point(|wait| wait.correlation < recorded);
        for behind in placed.range(from.min(until)..until) {
            match depth < MAX_CHAIN {
                true => self.awaited(home, *behind, depth + 1, bounds, found),
                false => add(found, None),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(queue: u32, correlation: u64) -> StreamPlace {
        StreamPlace {
            queue: QueueId(queue),
            correlation: Correlation(correlation),
        }
    }

    fn event(event: u64, number: u64) -> EventOccurrence {
        EventOccurrence { event, number }
    }

    /// Events, waits and submissions under the bounds of a recording.
    #[derive(Default)]
    struct Streams(EventWaits);

    impl Streams {
        fn submit(&mut self, queue: u32, correlation: u64, submission: u64) {
            let place = place(queue, correlation);
            (self.0).submitted(place, SubmissionId(submission), 0, &Bounds::LIVE);
        }

        fn record(&mut self, occurrence: EventOccurrence, place: StreamPlace) {
            self.0.recorded(occurrence, place, &Bounds::LIVE);
        }

        fn wait(&mut self, place: StreamPlace, occurrence: EventOccurrence) {
            self.0.waits(place, occurrence, 0, &Bounds::LIVE);
        }

        fn rows(&mut self) -> Vec<(u64, Option<u64>)> {
            let mut tables = Tables::default();
            self.0.settle(0, true, &Bounds::LIVE, &mut tables);
            let rows = tables.dependencies;
            let ids = rows.submission.iter().zip(&rows.waits_for);
            ids.map(|(id, waits_for)| (id.0, waits_for.map(|id| id.0)))
                .collect()
        }
    }

    #[test]
    fn a_wait_is_for_what_was_submitted_before_the_record() {
        let mut streams = Streams::default();
        streams.submit(1, 10, 100);
        streams.submit(1, 14, 101);
        streams.record(event(5, 1), place(1, 12));
        streams.wait(place(2, 13), event(5, 1));
        // Work that was on the queue before the wait does not wait.
        streams.submit(2, 11, 200);
        streams.submit(2, 15, 201);
        streams.submit(2, 16, 202);
        assert_eq!(streams.rows(), [(201, Some(100))]);
    }

    #[test]
    fn the_records_may_come_in_any_order() {
        let mut streams = Streams::default();
        streams.submit(2, 15, 201);
        streams.submit(2, 11, 200);
        streams.wait(place(2, 13), event(5, 1));
        streams.record(event(5, 1), place(1, 12));
        streams.submit(1, 14, 101);
        streams.submit(1, 10, 100);
        assert_eq!(streams.rows(), [(201, Some(100))]);
    }

    #[test]
    fn a_wait_is_of_the_first_submission_behind_it_whichever_comes_first() {
        let mut streams = Streams::default();
        streams.submit(1, 10, 100);
        streams.record(event(5, 1), place(1, 11));
        streams.wait(place(2, 12), event(5, 1));
        streams.submit(2, 14, 201);
        streams.submit(2, 13, 200);
        assert_eq!(streams.rows(), [(200, Some(100))]);
    }

    #[test]
    fn a_wait_for_a_record_that_is_missing_is_unknown_and_one_on_the_same_queue_is_none() {
        let mut streams = Streams::default();
        streams.submit(2, 1, 199);
        streams.record(event(6, 1), place(2, 2));
        streams.wait(place(2, 3), event(5, 1));
        streams.wait(place(2, 4), event(6, 1));
        streams.submit(2, 5, 200);
        assert_eq!(streams.rows(), [(200, None)]);
    }

    #[test]
    fn a_wait_goes_through_a_queue_without_work() {
        let mut streams = Streams::default();
        streams.submit(1, 10, 100);
        streams.record(event(5, 1), place(1, 11));
        // Queue 2 has work of its own before, and none between its wait and its record.
        streams.submit(2, 12, 200);
        streams.wait(place(2, 13), event(5, 1));
        streams.record(event(6, 1), place(2, 14));
        // Behind its record there is a wait that nothing else waits for.
        streams.submit(4, 15, 400);
        streams.record(event(7, 1), place(4, 16));
        streams.wait(place(2, 17), event(7, 1));
        streams.wait(place(3, 18), event(6, 1));
        streams.submit(3, 19, 300);
        assert_eq!(streams.rows(), [(300, Some(200)), (300, Some(100))]);
    }

    #[test]
    fn a_chain_that_comes_back_or_does_not_end_is_survived() {
        let mut streams = Streams::default();
        streams.submit(1, 10, 100);
        streams.record(event(5, 1), place(1, 11));
        streams.wait(place(2, 12), event(5, 1));
        streams.record(event(6, 1), place(2, 13));
        streams.wait(place(1, 14), event(6, 1));
        streams.submit(1, 15, 101);
        assert_eq!(streams.rows(), [], "a queue's own work is before it anyway");
        let mut streams = Streams::default();
        for queue in 1..60 {
            let correlation = 10 * u64::from(queue);
            streams.wait(place(queue, correlation), event(queue.into(), 1));
            streams.record(
                event(u64::from(queue) + 1, 1),
                place(queue, correlation + 1),
            );
        }
        streams.submit(59, 1000, 1);
        assert_eq!(streams.rows(), [(1, None)]);
    }
}
