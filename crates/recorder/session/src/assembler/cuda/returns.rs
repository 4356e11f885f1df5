//! Which work had ended before a waiting call returned: for the bound of device times.

use gapscope_spool::event::Span;
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
    /// Begin of the launching call, end of the work.
    works: VecDeque<(i64, i64)>,
    /// Begin and end of the wait.
    waits: VecDeque<(i64, i64)>,
}

impl Returns {
    /// The host waited for a queue. Gives the end of the last work that had to end first, and the wait's return.
    pub fn waited(&mut self, queue: u32, wait: Span) -> Option<(i64, i64)> {
        let queue = self.queues.entry(queue).or_default();
        let (begin_ns, end_ns) = (wait.start_ns, wait.end_ns());
        remember(&mut queue.waits, (begin_ns, end_ns));
        let before = queue
            .works
            .partition_point(|(call_ns, _)| *call_ns < begin_ns);
        let (_, last_ns) = queue.works.get(before.checked_sub(1)?)?;
        Some((*last_ns, end_ns))
    }

    /// Work ended on a queue. Gives its end and the first return that it must lie before.
    #[inline]
    pub fn ended(&mut self, queue: u32, call_ns: i64, end_ns: i64) -> Option<(i64, i64)> {
        let queue = self.queues.entry(queue).or_default();
        remember(&mut queue.works, (call_ns, end_ns));
        let after = queue
            .waits
            .partition_point(|(begin_ns, _)| *begin_ns <= call_ns);
        let (_, return_ns) = queue.waits.get(after)?;
        Some((end_ns, *return_ns))
    }
}

/// Puts a half where it belongs in time, mostly at the end.
#[inline]
fn remember(halves: &mut VecDeque<(i64, i64)>, half: (i64, i64)) {
    if halves.len() == MOST {
        halves.pop_front();
    }
    let mut at = halves.len();
    while at > 0 && half.0 < halves[at - 1].0 {
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
        assert_eq!(returns.ended(1, 10, 100), None);
        assert_eq!(returns.waited(2, span(50, 120)), None, "another queue");
        assert_eq!(returns.waited(1, span(50, 120)), Some((100, 120)));
        // Work that is told of after the wait.
        assert_eq!(returns.ended(1, 20, 110), Some((110, 120)));
        // Work that was launched after it.
        assert_eq!(returns.ended(1, 130, 200), None);
        // The first of several waits that follow.
        returns.waited(1, span(400, 500));
        returns.waited(1, span(300, 350));
        assert_eq!(returns.ended(1, 150, 340), Some((340, 350)));
    }
}
