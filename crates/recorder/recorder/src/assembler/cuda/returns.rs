//! Pairs waits of the host with the work that they waited for. The work ended before the waiting call returned, which
//! bounds the error of device times.

use gapscope_spool::event::Span;
use gapscope_timeline_builder::{Correlation, StreamPlace};
use gapscope_trace::ids::QueueId;
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// The maximum number of waits and of pieces of work that are remembered for each queue. Records come in any order,
/// and calls long before the work that they launched. Each matching pair gives a bound.
const MAX_REMEMBERED: usize = 256;

/// The waits for queues and the work on them.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Returns {
    queues: FxHashMap<QueueId, QueueReturns>,
}

/// The work and the waits of one queue that are remembered.
#[derive(Debug, Default, Serialize, Deserialize)]
struct QueueReturns {
    /// The work, by the return of the launching call.
    works: VecDeque<EndedWork>,
    /// The waits for the queue, by their start.
    waits: VecDeque<Span>,
    /// The waits for events, by the correlation of the call that recorded the event.
    event_waits: VecDeque<EventWait>,
}

/// A piece of work that ended, with the call that launched it.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct EndedWork {
    /// The time at which the call returned.
    pub launched_ns: i64,
    /// The correlation (number) of the call.
    pub launch: Correlation,
    pub end_ns: i64,
}

/// A wait of the host for an event on a queue.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
struct EventWait {
    /// The correlation of the call that recorded the event on the queue.
    recorded: Correlation,
    /// The time at which the call that waited for the event returned.
    return_ns: i64,
}

/// A return of a waiting call, with the end of the work that it waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Return {
    /// The end of the last piece of work.
    pub end_ns: i64,
    /// The time of the return.
    pub return_ns: i64,
}

impl Returns {
    /// Adds a wait of the host for a queue. Returns the bound by the last work whose launch had returned when the
    /// wait began; `None` where none is known.
    pub fn waited(&mut self, queue: QueueId, wait: Span) -> Option<Return> {
        let queue = self.queues.entry(queue).or_default();
        remember(&mut queue.waits, wait, |a, b| a.start_ns < b.start_ns);
        // A call that had not returned may be of another thread, and may have enqueued its work after the wait began.
        let before = queue
            .works
            .partition_point(|work| work.launched_ns <= wait.start_ns);
        let last = queue.works.get(before.checked_sub(1)?)?;
        Some(Return {
            end_ns: last.end_ns,
            return_ns: wait.end_ns(),
        })
    }

    /// Adds a wait of the host for an event, which returned at `return_ns`. Returns the bound as [`Self::waited`]
    /// does.
    pub fn waited_for_event(&mut self, record: StreamPlace, return_ns: i64) -> Option<Return> {
        let queue = self.queues.entry(record.queue).or_default();
        let recorded = record.correlation;
        let wait = EventWait {
            recorded,
            return_ns,
        };
        remember(&mut queue.event_waits, wait, |a, b| a.recorded < b.recorded);
        let mut works = queue.works.iter().rev();
        let last = works.find(|work| work.launch < recorded)?;
        Some(Return {
            end_ns: last.end_ns,
            return_ns,
        })
    }

    /// Adds work that ended on a queue. Returns the bound by the earlier of two returns: that of the first wait for
    /// the queue that began after the launch, and that of the first wait for an event that was recorded after it;
    /// `None` where none is known.
    #[inline]
    pub fn ended(&mut self, queue: QueueId, work: EndedWork) -> Option<Return> {
        let queue = self.queues.entry(queue).or_default();
        remember(&mut queue.works, work, |a, b| a.launched_ns < b.launched_ns);
        let after = queue
            .waits
            .partition_point(|wait| wait.start_ns < work.launched_ns);
        let waited = queue.waits.get(after).map(Span::end_ns);
        let events = &queue.event_waits;
        let after = events.partition_point(|wait| work.launch >= wait.recorded);
        let event = events.get(after).map(|wait| wait.return_ns);
        Some(Return {
            end_ns: work.end_ns,
            return_ns: waited.into_iter().chain(event).min()?,
        })
    }
}

/// Inserts an item in order, mostly at the end; beyond [`MAX_REMEMBERED`] the first item is forgotten.
#[inline]
fn remember<T>(items: &mut VecDeque<T>, item: T, before: impl Fn(&T, &T) -> bool) {
    if items.len() == MAX_REMEMBERED {
        items.pop_front();
    }
    let mut at = items.len();
    while at > 0 && before(&item, &items[at - 1]) {
        at -= 1;
    }
    items.insert(at, item);
}

#[cfg(test)]
mod tests {
    use super::*;

    const QUEUE: QueueId = QueueId(1);

    fn work(launched_ns: i64, launch: u64, end_ns: i64) -> EndedWork {
        EndedWork {
            launched_ns,
            launch: Correlation(launch),
            end_ns,
        }
    }

    fn record(queue: u32, correlation: u64) -> StreamPlace {
        StreamPlace {
            queue: QueueId(queue),
            correlation: Correlation(correlation),
        }
    }

    fn bound(end_ns: i64, return_ns: i64) -> Option<Return> {
        Some(Return { end_ns, return_ns })
    }

    #[test]
    fn a_wait_bounds_the_work_that_was_launched_before_it() {
        let mut returns = Returns::default();
        let wait = Span::between(50, 120);
        assert_eq!(returns.ended(QUEUE, work(10, 1, 100)), None);
        assert_eq!(returns.waited(QueueId(2), wait), None, "another queue");
        assert_eq!(returns.waited(QUEUE, wait), bound(100, 120));
        // The record of this work comes after the wait.
        assert_eq!(returns.ended(QUEUE, work(20, 2, 110)), bound(110, 120));
        // This work was launched after the wait.
        assert_eq!(returns.ended(QUEUE, work(130, 4, 200)), None);
        // The first of several later waits counts.
        returns.waited(QUEUE, Span::between(400, 500));
        returns.waited(QUEUE, Span::between(300, 350));
        assert_eq!(returns.ended(QUEUE, work(150, 5, 340)), bound(340, 350));
    }

    #[test]
    fn a_wait_for_an_event_bounds_the_work_that_was_launched_before_the_event() {
        let mut returns = Returns::default();
        assert_eq!(returns.ended(QUEUE, work(10, 1, 100)), None);
        assert_eq!(returns.ended(QUEUE, work(30, 5, 900)), None);
        // The event was recorded between the two; the second may still run.
        let event = record(1, 3);
        assert_eq!(returns.waited_for_event(event, 120), bound(100, 120));
        // The records of this work come after the wait: one before the event, and one behind it.
        assert_eq!(returns.ended(QUEUE, work(15, 2, 110)), bound(110, 120));
        assert_eq!(returns.ended(QUEUE, work(40, 6, 950)), None);
        // A wait for the stream that ended earlier is a tighter bound.
        returns.waited(QUEUE, Span::between(50, 115));
        assert_eq!(returns.ended(QUEUE, work(16, 2, 112)), bound(112, 115));
        assert_eq!(
            returns.waited_for_event(record(2, 3), 120),
            None,
            "another queue"
        );
    }
}
