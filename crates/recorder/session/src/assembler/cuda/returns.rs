//! Which work had ended before a waiting call returned: for the bound of device times.

use gapscope_spool::event::Span;
use gapscope_spool::ids as hook;
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// Halves of either kind that are remembered for each queue: they come in any order, and calls long before the work
/// that they launched. Any pair that belongs together gives a bound.
const MOST: usize = 256;

/// Waits for queues and work on them.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Returns {
    queues: FxHashMap<u32, Queue>,
}

#[derive(Debug, Default, Serialize, Deserialize)]
struct Queue {
    /// Return and correlation of the launching call, end of the work.
    works: VecDeque<(i64, hook::Correlation, i64)>,
    /// Begin and end of the wait.
    waits: VecDeque<(i64, i64)>,
    /// Correlation of the call that put the event on the queue, and when a call returned that had waited for it.
    event_waits: VecDeque<(hook::Correlation, i64)>,
}

impl Returns {
    /// The host waited for a queue. Gives the end of the last work that had to end first, and the wait's return.
    pub fn waited(&mut self, queue: u32, wait: Span) -> Option<(i64, i64)> {
        let queue = self.queues.entry(queue).or_default();
        let (begin_ns, end_ns) = (wait.start_ns, wait.end_ns());
        remember(&mut queue.waits, (begin_ns, end_ns), |a, b| a.0 < b.0);
        // A call that had not returned may have been of another thread, and have put its work behind the wait.
        let before = queue
            .works
            .partition_point(|(launched_ns, ..)| *launched_ns <= begin_ns);
        let (.., last_ns) = queue.works.get(before.checked_sub(1)?)?;
        Some((*last_ns, end_ns))
    }

    /// The host waited until `return_ns` for an event that the call `recorded` had put on a queue. As [`Self::waited`].
    pub fn waited_for_event(
        &mut self,
        queue: u32,
        recorded: hook::Correlation,
        return_ns: i64,
    ) -> Option<(i64, i64)> {
        let queue = self.queues.entry(queue).or_default();
        let wait = (recorded, return_ns);
        remember(&mut queue.event_waits, wait, |a, b| a.0.is_before(b.0));
        let mut works = queue.works.iter().rev();
        let (.., last_ns) = works.find(|(_, launch, _)| launch.is_before(recorded))?;
        Some((*last_ns, return_ns))
    }

    /// Work ended on a queue, which the call `launch` had put there when it returned at `launched_ns`. Gives its end and a
    /// return that it must lie before.
    #[inline]
    pub fn ended(
        &mut self,
        queue: u32,
        (launched_ns, launch): (i64, hook::Correlation),
        end_ns: i64,
    ) -> Option<(i64, i64)> {
        let queue = self.queues.entry(queue).or_default();
        remember(&mut queue.works, (launched_ns, launch, end_ns), |a, b| {
            a.0 < b.0
        });
        let after = queue
            .waits
            .partition_point(|(begin_ns, _)| *begin_ns < launched_ns);
        let waited = queue.waits.get(after).map(|(_, return_ns)| *return_ns);
        let events = &queue.event_waits;
        let after = events.partition_point(|(recorded, _)| !launch.is_before(*recorded));
        let event = events.get(after).map(|(_, return_ns)| *return_ns);
        let return_ns = waited.into_iter().chain(event).min()?;
        Some((end_ns, return_ns))
    }
}

/// Puts a half where it belongs in order, mostly at the end.
#[inline]
fn remember<T>(halves: &mut VecDeque<T>, half: T, before: impl Fn(&T, &T) -> bool) {
    if halves.len() == MOST {
        halves.pop_front();
    }
    let mut at = halves.len();
    while at > 0 && before(&half, &halves[at - 1]) {
        at -= 1;
    }
    halves.insert(at, half);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn span(start_ns: i64, end_ns: i64) -> Span {
        Span {
            start_ns,
            duration_ns: end_ns - start_ns,
        }
    }

    #[test]
    fn a_wait_bounds_the_work_that_was_launched_before_it() {
        let mut returns = Returns::default();
        assert_eq!(returns.ended(1, (10, hook::Correlation(1)), 100), None);
        assert_eq!(returns.waited(2, span(50, 120)), None, "another queue");
        assert_eq!(returns.waited(1, span(50, 120)), Some((100, 120)));
        // Work that is told of after the wait.
        assert_eq!(
            returns.ended(1, (20, hook::Correlation(2)), 110),
            Some((110, 120))
        );
        // Work that was launched after it.
        assert_eq!(returns.ended(1, (130, hook::Correlation(4)), 200), None);
        // The first of several waits that follow.
        returns.waited(1, span(400, 500));
        returns.waited(1, span(300, 350));
        assert_eq!(
            returns.ended(1, (150, hook::Correlation(5)), 340),
            Some((340, 350))
        );
    }

    #[test]
    fn a_wait_for_an_event_bounds_the_work_that_was_launched_before_the_event() {
        let mut returns = Returns::default();
        assert_eq!(returns.ended(1, (10, hook::Correlation(1)), 100), None);
        assert_eq!(returns.ended(1, (30, hook::Correlation(5)), 900), None);
        // The event was put between the two; the second may still run.
        assert_eq!(
            returns.waited_for_event(1, hook::Correlation(3), 120),
            Some((100, 120))
        );
        // Work that is told of after the wait: before the event, and behind it.
        assert_eq!(
            returns.ended(1, (15, hook::Correlation(2)), 110),
            Some((110, 120))
        );
        assert_eq!(returns.ended(1, (40, hook::Correlation(6)), 950), None);
        // A wait for the stream that ended earlier bounds better.
        returns.waited(1, span(50, 115));
        assert_eq!(
            returns.ended(1, (16, hook::Correlation(2)), 112),
            Some((112, 115))
        );
        assert_eq!(
            returns.waited_for_event(2, hook::Correlation(3), 120),
            None,
            "another queue"
        );
    }
}
