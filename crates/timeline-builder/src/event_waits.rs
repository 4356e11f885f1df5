//! Streams that wait for events of other streams: takes events, waits and submissions, and says which submission waits for which.
//!
//! Correlations ascend in the order of the calls, so they say what was put on a stream before an event was recorded there, and what
//! after a wait.

use crate::bounds::Bounds;
use crate::input::Correlation;
use crate::rows;
use gapscope_trace::ids::{QueueId, SubmissionId};
use gapscope_trace::tables::Tables;
use rustc_hash::{FxHashMap, FxHashSet};
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// The most waits that are looked at for one wait: what lies behind them is unknown.
const MAX_STEPS: usize = 1 << 13;
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
            let known = self.records.get(&occurrence);
            let is_newer = known.is_some_and(|known| known.correlation > place.correlation);
            if occurrence.number == 0 && is_newer {
                continue;
            }
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
                let at = waits.partition_point(|other| other.correlation <= correlation);
                waits.insert(at, wait);
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
        let at = match known.back() {
            Some(last) if last.correlation > correlation => {
                known.partition_point(|other| other.correlation <= correlation)
            }
            _ => known.len(),
        };
        let submitted = Submitted {
            correlation,
            submission,
        };
        known.insert(at, submitted);
        let Some(waits) = self.unfollowed.get_mut(&queue) else {
            return;
        };
        let followed = waits.partition_point(|wait| wait.correlation < correlation);
        for wait in waits.drain(..followed) {
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
        if waits.is_empty() {
            self.unfollowed.remove(&queue);
        }
    }

    /// Writes the rows of the waits that nothing changes any more; of all where `all` says that nothing more comes. Returns how many
    /// of them are for something that is not known.
    pub fn settle(&mut self, now_ns: i64, all: bool, bounds: &Bounds, tables: &mut Tables) -> u64 {
        let mut unknown = 0;
        let mut written = FxHashSet::default();
        while let Some(open) = self.open.front() {
            let is_recent = now_ns.saturating_sub(open.since_ns) < SETTLED_NS;
            if !all && is_recent && self.open.len() <= bounds.open_waits {
                break;
            }
            let Some(open) = self.open.pop_front() else {
                break;
            };
            let submission = self.following(&open, bounds);
            let wait = Wait {
                correlation: open.place.correlation,
                occurrence: open.occurrence,
            };
            for waits_for in self.awaited(open.place.queue, wait, bounds) {
                if written.insert((submission, waits_for)) {
                    unknown += u64::from(waits_for.is_none());
                    rows::dependency(tables, submission, waits_for, None);
                }
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

    /// Finds what a wait is for that was put on the queue `home`: submissions, or `None` for what is not known. An event happens after
    /// the last submission before it, and after the waits of its queue that no work has followed there.
    fn awaited(&self, home: QueueId, wait: Wait, bounds: &Bounds) -> Vec<Option<SubmissionId>> {
        let mut found = Vec::new();
        let add = |found: &mut Vec<_>, submission| {
            if !found.contains(&submission) {
                found.push(submission);
            }
        };
        // Whatever is before a place on a queue is before all later places there.
        let mut seen: FxHashMap<QueueId, Correlation> = FxHashMap::default();
        let (mut ahead, mut steps) = (vec![wait], 0);
        while let Some(wait) = ahead.pop() {
            steps += 1;
            if steps > MAX_STEPS {
                add(&mut found, None);
                break;
            }
            let record = match self.records.get(&wait.occurrence) {
                // Where the number is not known, the event may have been recorded again meanwhile.
                Some(record)
                    if wait.occurrence.number != 0 || record.correlation < wait.correlation =>
                {
                    *record
                }
                _ => {
                    add(&mut found, None);
                    continue;
                }
            };
            let recorded = record.correlation;
            let is_seen = (seen.get(&record.queue)).is_some_and(|until| *until >= recorded);
            if record.queue == home || is_seen {
                continue;
            }
            seen.insert(record.queue, recorded);
            let mut after = None;
            if let Some(known) = self.submissions.get(&record.queue) {
                let at = known.partition_point(|other| other.correlation < recorded);
                match at.checked_sub(1) {
                    Some(last) => {
                        after = Some(known[last].correlation);
                        add(&mut found, Some(known[last].submission));
                    }
                    None if known.len() >= bounds.submissions => {
                        add(&mut found, None);
                        continue;
                    }
                    None => {}
                }
            }
            let Some(placed) = self.placed.get(&record.queue) else {
                continue;
            };
            let until = placed.partition_point(|wait| wait.correlation < recorded);
            let from = after.map_or(0, |after| {
                placed.partition_point(|wait| wait.correlation <= after)
            });
            let from = from.max(until.saturating_sub(MAX_STEPS)).min(until);
            ahead.extend(placed.range(from..until));
        }
        found
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
    fn streams_that_wait_for_each_other_again_and_again_are_followed_once() {
        let mut streams = Streams::default();
        streams.submit(1, 1, 100);
        streams.record(event(1, 1), place(1, 2));
        streams.wait(place(2, 3), event(1, 1));
        for turn in 1..500 {
            let at = 10 * turn;
            streams.record(event(2, turn), place(2, at));
            streams.wait(place(3, at + 1), event(2, turn));
            streams.record(event(3, turn), place(3, at + 2));
            streams.wait(place(2, at + 3), event(3, turn));
        }
        streams.record(event(4, 1), place(2, 9000));
        streams.wait(place(4, 9001), event(4, 1));
        streams.wait(place(4, 9002), event(4, 1));
        streams.submit(4, 9003, 400);
        assert_eq!(streams.rows(), [(400, Some(100))]);
    }

    #[test]
    fn the_latest_occurrence_is_the_one_that_was_recorded_last() {
        let mut streams = Streams::default();
        streams.submit(1, 5, 100);
        streams.submit(1, 15, 101);
        streams.record(event(5, 2), place(1, 20));
        streams.record(event(5, 1), place(1, 10));
        streams.wait(place(2, 25), event(5, 0));
        streams.submit(2, 26, 200);
        assert_eq!(streams.rows(), [(200, Some(101))]);
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
