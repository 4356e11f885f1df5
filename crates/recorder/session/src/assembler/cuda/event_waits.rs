//! Streams that wait for events of other streams: which submission waits for which.
//!
//! Correlations are given in the order of the calls, so they say what was put on a stream before an event was
//! recorded there, and what after a wait.

use gapscope_spool::ids as hook;
use gapscope_trace::ids::{QueueId, SubmissionId};
use gapscope_trace::tables::{Dependency, Table, Tables};
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// Submissions that a queue remembers.
const MOST_SUBMISSIONS: usize = 1 << 12;
/// Occurrences of events that are remembered.
const MOST_OCCURRENCES: usize = 1 << 16;
/// Waits of a queue that no submission has followed.
const MOST_WAITS: usize = 1 << 10;
/// Waits of a queue that are remembered for what other queues wait for there.
const MOST_PLACED: usize = 1 << 12;
/// The longest chain of queues that is followed, each of which waits for the one before.
const LONGEST_CHAIN: u32 = 16;
/// The records of what a wait refers to may come this much later than it, by the newest times recorded.
const SETTLED_NS: i64 = 1_000_000_000;

/// One occurrence of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Occurrence {
    pub event: hook::CudaEvent,
    /// Tells the event's occurrences apart; 0: the latest.
    pub number: u64,
}

/// The place of an event, or of a wait for one, among what is put on a queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct QueuePlace {
    pub queue: QueueId,
    /// Of the call that put it there.
    pub correlation: hook::Correlation,
}

/// Events, and waits for them.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct EventWaits {
    /// The submissions of each queue, in order.
    submissions: FxHashMap<QueueId, VecDeque<Submitted>>,
    records: FxHashMap<Occurrence, QueuePlace>,
    remembered: VecDeque<Occurrence>,
    /// Waits that the next submission of a queue has.
    waits: FxHashMap<QueueId, VecDeque<Wait>>,
    /// All waits that were put on a queue, in order: an event behind them happens only after them.
    placed: FxHashMap<QueueId, VecDeque<Wait>>,
    /// Waits whose submission is known; the first to be settled first.
    open: VecDeque<OpenWait>,
}

#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
struct Submitted {
    correlation: hook::Correlation,
    submission: SubmissionId,
}

#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
struct Wait {
    correlation: hook::Correlation,
    occurrence: Occurrence,
}

#[derive(Debug, Serialize, Deserialize)]
struct OpenWait {
    since_ns: i64,
    submission: SubmissionId,
    place: QueuePlace,
    occurrence: Occurrence,
}

impl EventWaits {
    /// An event was put on a queue.
    pub fn recorded(&mut self, occurrence: Occurrence, place: QueuePlace) {
        let latest = Occurrence {
            number: 0,
            ..occurrence
        };
        for occurrence in [occurrence, latest] {
            if self.records.insert(occurrence, place).is_none() {
                self.remembered.push_back(occurrence);
            }
        }
        while self.remembered.len() > MOST_OCCURRENCES {
            if let Some(old) = self.remembered.pop_front() {
                self.records.remove(&old);
            }
        }
    }

    /// Where an occurrence of an event was put.
    pub fn record_of(&self, occurrence: Occurrence) -> Option<QueuePlace> {
        self.records.get(&occurrence).copied()
    }

    /// A wait for an event was put on a queue.
    pub fn waits(&mut self, place: QueuePlace, occurrence: Occurrence, now_ns: i64) {
        let correlation = place.correlation;
        let wait = Wait {
            correlation,
            occurrence,
        };
        let placed = self.placed.entry(place.queue).or_default();
        if placed.len() == MOST_PLACED {
            placed.pop_front();
        }
        let before = |other: &Wait| !correlation.is_before(other.correlation);
        let at = placed.len()
            - placed
                .iter()
                .rev()
                .take_while(|other| !before(other))
                .count();
        placed.insert(at, wait);
        let known = self.submissions.get(&place.queue);
        let after = known.and_then(|known| {
            let at = known.partition_point(|other| !correlation.is_before(other.correlation));
            known.get(at)
        });
        match after {
            Some(after) => self.open.push_back(OpenWait {
                since_ns: now_ns,
                submission: after.submission,
                place,
                occurrence,
            }),
            None => {
                let waits = self.waits.entry(place.queue).or_default();
                if waits.len() == MOST_WAITS {
                    waits.pop_front();
                }
                waits.push_back(wait);
            }
        }
    }

    /// Work was put on a queue.
    #[inline]
    pub fn submitted(&mut self, place: QueuePlace, submission: SubmissionId, now_ns: i64) {
        let QueuePlace { queue, correlation } = place;
        let known = self.submissions.entry(queue).or_default();
        if known.len() == MOST_SUBMISSIONS {
            known.pop_front();
        }
        let mut at = known.len();
        while at > 0 && correlation.is_before(known[at - 1].correlation) {
            at -= 1;
        }
        known.insert(
            at,
            Submitted {
                correlation,
                submission,
            },
        );
        if self.waits.is_empty() {
            return;
        }
        let Some(waits) = self.waits.get_mut(&queue) else {
            return;
        };
        waits.retain(|wait| {
            let attached = wait.correlation.is_before(correlation);
            if attached {
                self.open.push_back(OpenWait {
                    since_ns: now_ns,
                    submission,
                    place: QueuePlace {
                        queue,
                        correlation: wait.correlation,
                    },
                    occurrence: wait.occurrence,
                });
            }
            !attached
        });
        if waits.is_empty() {
            self.waits.remove(&queue);
        }
    }

    /// Rows for the waits that nothing changes any more; for all when nothing more comes.
    pub fn settle(&mut self, now_ns: i64, all: bool, tables: &mut Tables) {
        while let Some(open) = self.open.front() {
            if !all && now_ns.saturating_sub(open.since_ns) < SETTLED_NS {
                break;
            }
            let Some(open) = self.open.pop_front() else {
                break;
            };
            let mut awaited = Vec::new();
            let wait = Wait {
                correlation: open.place.correlation,
                occurrence: open.occurrence,
            };
            self.awaited(open.place.queue, wait, 0, &mut awaited);
            for waits_for in awaited {
                tables.dependencies.push(Dependency {
                    submission: open.submission,
                    waits_for,
                    host_signal_ns: None,
                });
            }
        }
    }

    /// What a wait is for that was put, at last, for work on the queue `home`: submissions, or what is not known.
    fn awaited(
        &self,
        home: QueueId,
        wait: Wait,
        depth: u32,
        found: &mut Vec<Option<SubmissionId>>,
    ) {
        let add = |found: &mut Vec<_>, what| {
            if !found.contains(&what) {
                found.push(what);
            }
        };
        let record = match self.records.get(&wait.occurrence) {
            // With an unknown number: the event was recorded again meanwhile.
            Some(record)
                if wait.occurrence.number != 0
                    || record.correlation.is_before(wait.correlation) =>
            {
                record
            }
            _ => return add(found, None),
        };
        if record.queue == home {
            return;
        }
        let last = self.submissions.get(&record.queue).and_then(|known| {
            let at = known.partition_point(|other| other.correlation.is_before(record.correlation));
            match at.checked_sub(1) {
                Some(last) => Some(Some(known[last])),
                None if known.len() == MOST_SUBMISSIONS => Some(None),
                None => None,
            }
        });
        match last {
            Some(Some(last)) => add(found, Some(last.submission)),
            Some(None) => return add(found, None),
            None => {}
        }
        // Waits of that queue which no work has followed there: the event happens after them too.
        let after = last.flatten().map(|last| last.correlation);
        let placed = self.placed.get(&record.queue).into_iter().flatten();
        for behind in placed.filter(|behind| {
            behind.correlation.is_before(record.correlation)
                && after.is_none_or(|after| after.is_before(behind.correlation))
        }) {
            match depth < LONGEST_CHAIN {
                true => self.awaited(home, *behind, depth + 1, found),
                false => add(found, None),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(queue: u32, correlation: u32) -> QueuePlace {
        QueuePlace {
            queue: QueueId(queue),
            correlation: hook::Correlation(correlation),
        }
    }

    fn event(event: u32, number: u64) -> Occurrence {
        Occurrence {
            event: hook::CudaEvent(event),
            number,
        }
    }

    fn submit(waits: &mut EventWaits, queue: u32, correlation: u32, submission: u64) {
        waits.submitted(place(queue, correlation), SubmissionId(submission), 0);
    }

    fn rows(waits: &mut EventWaits) -> Vec<(u64, Option<u64>)> {
        let mut tables = Tables::default();
        waits.settle(0, true, &mut tables);
        let rows = tables.dependencies;
        let ids = rows.submission.iter().zip(&rows.waits_for);
        ids.map(|(id, waits_for)| (id.0, waits_for.map(|id| id.0)))
            .collect()
    }

    #[test]
    fn a_wait_is_for_what_was_submitted_before_the_record() {
        let mut waits = EventWaits::default();
        submit(&mut waits, 1, 10, 100);
        submit(&mut waits, 1, 14, 101);
        waits.recorded(event(5, 1), place(1, 12));
        waits.waits(place(2, 13), event(5, 1), 0);
        // What was on the queue before the wait does not wait.
        submit(&mut waits, 2, 11, 200);
        submit(&mut waits, 2, 15, 201);
        submit(&mut waits, 2, 16, 202);
        assert_eq!(rows(&mut waits), [(201, Some(100))]);
    }

    #[test]
    fn the_records_may_come_in_any_order() {
        let mut waits = EventWaits::default();
        submit(&mut waits, 2, 15, 201);
        submit(&mut waits, 2, 11, 200);
        waits.waits(place(2, 13), event(5, 1), 0);
        waits.recorded(event(5, 1), place(1, 12));
        submit(&mut waits, 1, 14, 101);
        submit(&mut waits, 1, 10, 100);
        assert_eq!(rows(&mut waits), [(201, Some(100))]);
    }

    #[test]
    fn a_wait_for_a_record_that_is_missing_is_unknown_and_one_on_the_same_queue_is_none() {
        let mut waits = EventWaits::default();
        submit(&mut waits, 2, 1, 199);
        waits.recorded(event(6, 1), place(2, 2));
        waits.waits(place(2, 3), event(5, 1), 0);
        waits.waits(place(2, 4), event(6, 1), 0);
        submit(&mut waits, 2, 5, 200);
        assert_eq!(rows(&mut waits), [(200, None)]);
    }

    #[test]
    fn a_wait_goes_through_a_queue_without_work() {
        let mut waits = EventWaits::default();
        submit(&mut waits, 1, 10, 100);
        waits.recorded(event(5, 1), place(1, 11));
        // Queue 2 has work of its own before, and none between its wait and its record.
        submit(&mut waits, 2, 12, 200);
        waits.waits(place(2, 13), event(5, 1), 0);
        waits.recorded(event(6, 1), place(2, 14));
        // And after its record a wait that nobody else waits for.
        submit(&mut waits, 4, 15, 400);
        waits.recorded(event(7, 1), place(4, 16));
        waits.waits(place(2, 17), event(7, 1), 0);
        waits.waits(place(3, 18), event(6, 1), 0);
        submit(&mut waits, 3, 19, 300);
        assert_eq!(rows(&mut waits), [(300, Some(200)), (300, Some(100))]);
    }

    #[test]
    fn a_chain_that_comes_back_or_does_not_end_is_survived() {
        let mut waits = EventWaits::default();
        submit(&mut waits, 1, 10, 100);
        waits.recorded(event(5, 1), place(1, 11));
        waits.waits(place(2, 12), event(5, 1), 0);
        waits.recorded(event(6, 1), place(2, 13));
        waits.waits(place(1, 14), event(6, 1), 0);
        submit(&mut waits, 1, 15, 101);
        assert_eq!(rows(&mut waits), [], "its own work is before it anyway");
        let mut waits = EventWaits::default();
        for queue in 1..60 {
            waits.waits(place(queue, 10 * queue), event(queue, 1), 0);
            waits.recorded(event(queue + 1, 1), place(queue, 10 * queue + 1));
        }
        submit(&mut waits, 59, 1000, 1);
        assert_eq!(rows(&mut waits), [(1, None)]);
    }

    #[test]
    fn correlations_may_wrap() {
        let mut waits = EventWaits::default();
        submit(&mut waits, 1, u32::MAX - 1, 100);
        waits.recorded(event(5, 0), place(1, u32::MAX));
        waits.waits(place(2, 1), event(5, 0), 0);
        submit(&mut waits, 2, 2, 200);
        assert_eq!(rows(&mut waits), [(200, Some(100))]);
    }
}
