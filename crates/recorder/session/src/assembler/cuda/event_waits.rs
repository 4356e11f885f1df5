//! Streams that wait for events of other streams: which submission waits for which.
//!
//! Correlations are given in the order of the calls, so they tell what was put on a stream before an event was
//! recorded there, and what after a wait.

use gapscope_spool::ids as hook;
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
/// So long, by the newest times told of, the records of what a wait refers to may come later than it.
const SETTLED_NS: i64 = 1_000_000_000;

/// An event and its occurrence; occurrence 0: the latest.
type Occurrence = (hook::CudaEvent, u64);

/// Events, and waits for them.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct EventWaits {
    /// Correlation and id of the submissions of each queue, in order.
    submissions: FxHashMap<u32, VecDeque<(hook::Correlation, u64)>>,
    /// Queue and correlation.
    records: FxHashMap<Occurrence, (u32, hook::Correlation)>,
    remembered: VecDeque<Occurrence>,
    /// Waits that the next submission of a queue has.
    waits: FxHashMap<u32, VecDeque<(hook::Correlation, Occurrence)>>,
    /// Waits whose submission is known; the first to be settled first.
    open: VecDeque<Open>,
}

#[derive(Debug, Serialize, Deserialize)]
struct Open {
    since_ns: i64,
    submission: u64,
    queue: u32,
    /// Of the call that put the wait on the queue.
    correlation: hook::Correlation,
    occurrence: Occurrence,
}

impl EventWaits {
    /// An event was put on a queue.
    pub fn recorded(&mut self, occurrence: Occurrence, queue: u32, correlation: hook::Correlation) {
        for occurrence in [occurrence, (occurrence.0, 0)] {
            if self
                .records
                .insert(occurrence, (queue, correlation))
                .is_none()
            {
                self.remembered.push_back(occurrence);
            }
        }
        while self.remembered.len() > MOST_OCCURRENCES {
            if let Some(old) = self.remembered.pop_front() {
                self.records.remove(&old);
            }
        }
    }

    /// The queue that an occurrence of an event was put on, and the correlation of the call that did.
    pub fn record_of(&self, occurrence: Occurrence) -> Option<(u32, hook::Correlation)> {
        self.records.get(&occurrence).copied()
    }

    /// A wait for an event was put on a queue.
    pub fn waits(
        &mut self,
        queue: u32,
        correlation: hook::Correlation,
        occurrence: Occurrence,
        now_ns: i64,
    ) {
        let known = self.submissions.get(&queue);
        let after = known.and_then(|known| {
            let at = known.partition_point(|(other, _)| !correlation.is_before(*other));
            known.get(at)
        });
        match after {
            Some((_, submission)) => self.open.push_back(Open {
                since_ns: now_ns,
                submission: *submission,
                queue,
                correlation,
                occurrence,
            }),
            None => {
                let waits = self.waits.entry(queue).or_default();
                if waits.len() == MOST_WAITS {
                    waits.pop_front();
                }
                waits.push_back((correlation, occurrence));
            }
        }
    }

    /// Work was put on a queue.
    #[inline]
    pub fn submitted(
        &mut self,
        queue: u32,
        correlation: hook::Correlation,
        submission: u64,
        now_ns: i64,
    ) {
        let known = self.submissions.entry(queue).or_default();
        if known.len() == MOST_SUBMISSIONS {
            known.pop_front();
        }
        let mut at = known.len();
        while at > 0 && correlation.is_before(known[at - 1].0) {
            at -= 1;
        }
        known.insert(at, (correlation, submission));
        if self.waits.is_empty() {
            return;
        }
        let Some(waits) = self.waits.get_mut(&queue) else {
            return;
        };
        waits.retain(|(wait, occurrence)| {
            let attached = wait.is_before(correlation);
            if attached {
                self.open.push_back(Open {
                    since_ns: now_ns,
                    submission,
                    queue,
                    correlation: *wait,
                    occurrence: *occurrence,
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
            match self.find(&open) {
                Found::Nothing => {}
                Found::Submission(waits_for) => tables.dependencies.push(Dependency {
                    submission: open.submission,
                    waits_for: Some(waits_for),
                    host_signal_ns: None,
                }),
                Found::Unknown => tables.dependencies.push(Dependency {
                    submission: open.submission,
                    waits_for: None,
                    host_signal_ns: None,
                }),
            }
        }
    }

    fn find(&self, open: &Open) -> Found {
        let Some((queue, recorded)) = self.records.get(&open.occurrence) else {
            return Found::Unknown;
        };
        if *queue == open.queue {
            return Found::Nothing;
        }
        if open.occurrence.1 == 0 && !recorded.is_before(open.correlation) {
            // The event was recorded again meanwhile.
            return Found::Unknown;
        }
        let Some(known) = self.submissions.get(queue) else {
            return Found::Nothing;
        };
        let at = known.partition_point(|(other, _)| other.is_before(*recorded));
        match at.checked_sub(1).and_then(|at| known.get(at)) {
            Some((_, submission)) => Found::Submission(*submission),
            None if known.len() == MOST_SUBMISSIONS => Found::Unknown,
            None => Found::Nothing,
        }
    }
}

/// What a wait is for.
enum Found {
    /// For nothing that takes time.
    Nothing,
    Submission(u64),
    Unknown,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(waits: &mut EventWaits) -> Vec<(u64, Option<u64>)> {
        let mut tables = Tables::default();
        waits.settle(0, true, &mut tables);
        let rows = tables.dependencies;
        rows.submission.into_iter().zip(rows.waits_for).collect()
    }

    #[test]
    fn a_wait_is_for_what_was_submitted_before_the_record() {
        let mut waits = EventWaits::default();
        waits.submitted(1, hook::Correlation(10), 100, 0);
        waits.submitted(1, hook::Correlation(14), 101, 0);
        waits.recorded((hook::CudaEvent(5), 1), 1, hook::Correlation(12));
        waits.waits(2, hook::Correlation(13), (hook::CudaEvent(5), 1), 0);
        // What was on the queue before the wait does not wait.
        waits.submitted(2, hook::Correlation(11), 200, 0);
        waits.submitted(2, hook::Correlation(15), 201, 0);
        waits.submitted(2, hook::Correlation(16), 202, 0);
        assert_eq!(rows(&mut waits), [(201, Some(100))]);
    }

    #[test]
    fn the_records_may_come_in_any_order() {
        let mut waits = EventWaits::default();
        waits.submitted(2, hook::Correlation(15), 201, 0);
        waits.submitted(2, hook::Correlation(11), 200, 0);
        waits.waits(2, hook::Correlation(13), (hook::CudaEvent(5), 1), 0);
        waits.recorded((hook::CudaEvent(5), 1), 1, hook::Correlation(12));
        waits.submitted(1, hook::Correlation(14), 101, 0);
        waits.submitted(1, hook::Correlation(10), 100, 0);
        assert_eq!(rows(&mut waits), [(201, Some(100))]);
    }

    #[test]
    fn a_wait_for_a_record_that_is_missing_is_unknown_and_one_on_the_same_queue_is_none() {
        let mut waits = EventWaits::default();
        waits.submitted(2, hook::Correlation(1), 199, 0);
        waits.recorded((hook::CudaEvent(6), 1), 2, hook::Correlation(2));
        waits.waits(2, hook::Correlation(3), (hook::CudaEvent(5), 1), 0);
        waits.waits(2, hook::Correlation(4), (hook::CudaEvent(6), 1), 0);
        waits.submitted(2, hook::Correlation(5), 200, 0);
        assert_eq!(rows(&mut waits), [(200, None)]);
    }

    #[test]
    fn correlations_may_wrap() {
        let mut waits = EventWaits::default();
        waits.submitted(1, hook::Correlation(u32::MAX - 1), 100, 0);
        waits.recorded((hook::CudaEvent(5), 0), 1, hook::Correlation(u32::MAX));
        waits.waits(2, hook::Correlation(1), (hook::CudaEvent(5), 0), 0);
        waits.submitted(2, hook::Correlation(2), 200, 0);
        assert_eq!(rows(&mut waits), [(200, Some(100))]);
    }
}
