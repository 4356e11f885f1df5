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
pub(crate) const SETTLED_NS: i64 = 1_000_000_000;

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

/// What was put on one queue, in the order of the calls that put it there.
#[derive(Debug, Serialize, Deserialize)]
struct InOrder<T>(VecDeque<(Correlation, T)>);

impl<T> Default for InOrder<T> {
    fn default() -> Self {
        InOrder(VecDeque::new())
    }
}

impl<T> InOrder<T> {
    /// Adds what a call put on the queue. Where there are `most` items already, the oldest is dropped.
    fn insert(&mut self, correlation: Correlation, item: T, most: usize) {
        if self.0.len() >= most {
            self.0.pop_front();
        }
        let at = match self.0.back() {
            Some((last, _)) if *last > correlation => self.up_to(correlation),
            _ => self.0.len(),
        };
        self.0.insert(at, (correlation, item));
    }

    /// Returns how many items earlier calls put there.
    fn before(&self, correlation: Correlation) -> usize {
        self.0.partition_point(|(other, _)| *other < correlation)
    }

    /// Returns how many items the call and earlier ones put there.
    fn up_to(&self, correlation: Correlation) -> usize {
        self.0.partition_point(|(other, _)| *other <= correlation)
    }
}

/// Something came that is not remembered any more.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Forgotten;

/// The events of one process, and the waits for them.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct EventWaits {
    /// The submissions of each queue.
    submissions: FxHashMap<QueueId, InOrder<SubmissionId>>,
    /// Where each occurrence was put; the number 0 stands for the latest occurrence of its event.
    records: FxHashMap<EventOccurrence, StreamPlace>,
    /// The entries of `records` in the order in which they came, some of which were replaced since.
    remembered: VecDeque<(EventOccurrence, StreamPlace)>,
    /// Waits of each queue that no submission has followed.
    unfollowed: FxHashMap<QueueId, InOrder<EventOccurrence>>,
    /// All waits of each queue: an event behind them happens only after them.
    placed: FxHashMap<QueueId, InOrder<EventOccurrence>>,
    /// Waits whose submission is known; the first to be settled first.
    open: VecDeque<OpenWait>,
}

/// A wait for an event that a submission is known to follow.
#[derive(Debug, Serialize, Deserialize)]
struct OpenWait {
    /// The latest time that the producer had seen when the wait was taken.
    since_ns: i64,
    /// A submission that follows.
    submission: SubmissionId,
    place: StreamPlace,
    /// The event that is waited for.
    occurrence: EventOccurrence,
}

impl EventWaits {
    /// Takes an event that was put on a stream; beyond the bound, the oldest occurrences are forgotten.
    pub fn recorded(&mut self, occurrence: EventOccurrence, place: StreamPlace, bounds: &Bounds) {
        let latest = EventOccurrence {
            number: 0,
            ..occurrence
        };
        let is_old = |known: &StreamPlace| known.correlation > place.correlation;
        if !self.records.get(&latest).is_some_and(is_old) {
            self.records.insert(latest, place);
            self.remembered.push_back((latest, place));
        }
        if occurrence != latest {
            self.records.insert(occurrence, place);
            self.remembered.push_back((occurrence, place));
        }
        while self.remembered.len() > bounds.occurrences.saturating_mul(2) {
            if let Some((old, place)) = self.remembered.pop_front()
                && self.records.get(&old) == Some(&place)
            {
                self.records.remove(&old);
            }
        }
    }

    /// Returns where an occurrence of an event was put.
    pub fn record_of(&self, occurrence: EventOccurrence) -> Option<StreamPlace> {
        self.records.get(&occurrence).copied()
    }

    /// Returns the last submission that is known before a place, with its call.
    ///
    /// # Errors
    /// What was submitted before the place is forgotten.
    pub(crate) fn last_submission_before(
        &self,
        place: StreamPlace,
        bounds: &Bounds,
    ) -> Result<Option<(Correlation, SubmissionId)>, Forgotten> {
        let Some(known) = self.submissions.get(&place.queue) else {
            return Ok(None);
        };
        match known.before(place.correlation).checked_sub(1) {
            Some(last) => Ok(known.0.get(last).copied()),
            None if known.0.len() >= bounds.submissions => Err(Forgotten),
            None => Ok(None),
        }
    }

    /// Tells whether a wait was put on a queue before a place, and after the call `after` where that is given.
    pub(crate) fn has_wait_between(&self, after: Option<Correlation>, place: StreamPlace) -> bool {
        let Some(placed) = self.placed.get(&place.queue) else {
            return false;
        };
        let from = after.map_or(0, |after| placed.up_to(after));
        from < placed.before(place.correlation)
    }

    /// Takes a wait for an event that was put on a stream. Its row is of the first submission that follows there,
    /// which may have come or may be still to come.
    pub fn waits(
        &mut self,
        place: StreamPlace,
        occurrence: EventOccurrence,
        now_ns: i64,
        bounds: &Bounds,
    ) {
        let StreamPlace { queue, correlation } = place;
        let placed = self.placed.entry(queue).or_default();
        placed.insert(correlation, occurrence, bounds.placed_waits);
        let known = self.submissions.get(&queue);
        match known.and_then(|known| known.0.get(known.up_to(correlation))) {
            Some((_, submission)) => self.open.push_back(OpenWait {
                since_ns: now_ns,
                submission: *submission,
                place,
                occurrence,
            }),
            None => {
                let waits = self.unfollowed.entry(queue).or_default();
                waits.insert(correlation, occurrence, bounds.unfollowed_waits);
            }
        }
    }

    /// Takes work that was put on a stream: its submission is the one that follows the stream's earlier waits, unless
    /// another one does.
    #[inline]
    pub fn submitted(
        &mut self,
        place: StreamPlace,
        submission: SubmissionId,
        now_ns: i64,
        bounds: &Bounds,
    ) {
        let StreamPlace { queue, correlation } = place;
        let known = self.submissions.entry(queue).or_default();
        known.insert(correlation, submission, bounds.submissions);
        let Some(waits) = self.unfollowed.get_mut(&queue) else {
            return;
        };
        let followed = waits.before(correlation);
        for (correlation, occurrence) in waits.0.drain(..followed) {
            self.open.push_back(OpenWait {
                since_ns: now_ns,
                submission,
                place: StreamPlace { queue, correlation },
                occurrence,
            });
        }
        if waits.0.is_empty() {
            self.unfollowed.remove(&queue);
        }
    }

    /// Writes the rows of the waits that nothing changes any more, or of all waits where `all` says that nothing more
    /// comes. Returns how many of the rows are for something that is not known.
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
            for waits_for in self.awaited(open.place, open.occurrence, bounds) {
                if written.insert((submission, waits_for)) {
                    unknown += u64::from(waits_for.is_none());
                    rows::dependency(tables, submission, waits_for, None);
                }
            }
        }
        unknown
    }

    /// Returns the first submission behind a wait, which need not be the one that is known to follow: the submission
    /// of an earlier call may have come later.
    fn following(&self, open: &OpenWait, bounds: &Bounds) -> SubmissionId {
        let StreamPlace { queue, correlation } = open.place;
        let Some(known) = self.submissions.get(&queue) else {
            return open.submission;
        };
        let at = known.up_to(correlation);
        let may_be_forgotten = at == 0 && known.0.len() >= bounds.submissions;
        match known.0.get(at).filter(|_| !may_be_forgotten) {
            Some((_, first)) => *first,
            None => open.submission,
        }
    }

    /// Returns what a wait at a place is for: submissions, or `None` for what is not known. An event happens after the last submission
    /// before it, and after the waits of its queue that no work has followed there.
    fn awaited(
        &self,
        place: StreamPlace,
        occurrence: EventOccurrence,
        bounds: &Bounds,
    ) -> Vec<Option<SubmissionId>> {
        let mut awaited = Vec::new();
        let mut add = |submission| {
            if !awaited.contains(&submission) {
                awaited.push(submission);
            }
        };
        // Whatever is before a place on a queue is before all later places there.
        let mut seen: FxHashMap<QueueId, Correlation> = FxHashMap::default();
        let (mut ahead, mut steps) = (vec![(place.correlation, occurrence)], 0);
        while let Some((waiting, occurrence)) = ahead.pop() {
            steps += 1;
            if steps > MAX_STEPS {
                add(None);
                break;
            }
            // Where the number is not known, the event may have been recorded again meanwhile.
            let record = self.records.get(&occurrence);
            let record =
                record.filter(|record| occurrence.number != 0 || record.correlation < waiting);
            let Some(StreamPlace { queue, correlation }) = record.copied() else {
                add(None);
                continue;
            };
            let is_seen = seen.get(&queue).is_some_and(|until| *until >= correlation);
            if queue == place.queue || is_seen {
                continue;
            }
            seen.insert(queue, correlation);
            let record = StreamPlace { queue, correlation };
            let Ok(last) = self.last_submission_before(record, bounds) else {
                add(None);
                continue;
            };
            if let Some((_, submission)) = last {
                add(Some(submission));
            }
            let Some(placed) = self.placed.get(&queue) else {
                continue;
            };
            let until = placed.before(correlation);
            let from = last.map_or(0, |(correlation, _)| placed.up_to(correlation));
            let from = from.max(until.saturating_sub(MAX_STEPS)).min(until);
            ahead.extend(placed.0.range(from..until));
        }
        awaited
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_latest_occurrence_is_remembered_however_often_its_event_is_recorded() {
        let mut streams = EventWaits::default();
        let bounds = Bounds {
            occurrences: 4,
            ..Bounds::LIVE
        };
        let place = |correlation| StreamPlace {
            queue: QueueId(1),
            correlation: Correlation(correlation),
        };
        let occurrence = |number| EventOccurrence { event: 5, number };
        for number in 1..100 {
            streams.recorded(occurrence(number), place(number), &bounds);
        }
        assert_eq!(streams.record_of(occurrence(0)), Some(place(99)));
        assert_eq!(streams.record_of(occurrence(99)), Some(place(99)));
        assert_eq!(streams.record_of(occurrence(90)), None);
    }
}
