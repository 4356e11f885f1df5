//! Adds up the idle time between the work of each queue of a GPU. All cores work on stretches of the GPU's work.
//!
//! Each stretch is walked twice: [`QueueWalk::passed`] finds the last work of each queue in it, so that the gap
//! before a queue's first work in the next stretch is known, and [`QueueWalk::walk`] explains the gaps. A cursor is
//! the place of one queue in the work that has been passed.

use super::Cause;
use super::explain::{Explainer, Explanation, Idle};
use super::totals::Totals;
use gapscope_timeline::Cursor;
use gapscope_timeline::intervals::Interval;
use gapscope_trace::lookup::NONE;
use gapscope_trace::parallel::each;
use std::ops::Range;

/// The number of pieces of work that one job walks over. The results of a stretch take little memory beside them.
const STRETCH_WORKS: usize = 1 << 19;

/// A walk over the work of the queues of GPUs.
pub(super) struct QueueWalk<'e, 'a> {
    explainer: &'e Explainer<'a>,
    threshold_ns: i64,
    window: Interval,
    /// The length of a stretch in pieces of work, as [`STRETCH_WORKS`].
    stretch_works: usize,
}

impl<'e, 'a> QueueWalk<'e, 'a> {
    /// Prepares a walk over the gaps in `window` that are at least as long as the threshold.
    pub fn new(
        explainer: &'e Explainer<'a>,
        threshold_ns: i64,
        window: Interval,
    ) -> QueueWalk<'e, 'a> {
        QueueWalk {
            explainer,
            threshold_ns,
            window,
            stretch_works: STRETCH_WORKS,
        }
    }

    /// Returns the index and the idle time of each queue of a GPU that has work.
    pub fn totals(&self, gpu: u32) -> Vec<(usize, Totals)> {
        let works = self.explainer.timeline.gpus[gpu as usize].works.len();
        let begins = (0..works).step_by(self.stretch_works);
        let stretches: Vec<Range<usize>> = begins
            .map(|at| at..works.min(at + self.stretch_works))
            .collect();
        // The work that each queue ran last before a stretch: the gap before its first work in the stretch begins with it.
        let earlier = stretches[..stretches.len().saturating_sub(1)].to_vec();
        let mut before = self.cursors();
        let mut begun = vec![before.clone()];
        for last in each(earlier, |stretch| self.passed(gpu, stretch)) {
            for (cursor, last) in before.iter_mut().zip(last) {
                cursor.join(last);
            }
            begun.push(before.clone());
        }
        let jobs = stretches.into_iter().zip(begun).collect();
        let found = each(jobs, |(stretch, begun)| self.walk(gpu, stretch, begun));
        let all = found.into_iter().reduce(|mut all, next| {
            for ((had, totals), (has, more)) in all.iter_mut().zip(next) {
                *had |= has;
                totals.add_all(&more);
            }
            all
        });
        let queues = all.unwrap_or_default().into_iter().enumerate();
        queues
            .filter(|(_, (has_work, _))| *has_work)
            .map(|(queue, (_, totals))| (queue, totals))
            .collect()
    }

    /// Returns a cursor for each queue of the timeline, before all work.
    fn cursors(&self) -> Vec<Cursor> {
        vec![Cursor::default(); self.explainer.timeline.queues.len()]
    }

    /// Returns a cursor for each queue that has passed a stretch of work.
    fn passed(&self, gpu: u32, stretch: Range<usize>) -> Vec<Cursor> {
        let timeline = self.explainer.timeline;
        let works = &timeline.gpus[gpu as usize].works;
        let mut last = self.cursors();
        for (at, work) in stretch.clone().zip(works.range(stretch)) {
            last[timeline.queue_of(&work) as usize].advance(at, &work);
        }
        last
    }

    /// Returns the idle time of each queue in a stretch of work, and whether the queue had work by its end. The cursors have
    /// passed all work before.
    fn walk(
        &self,
        gpu: u32,
        stretch: Range<usize>,
        mut cursors: Vec<Cursor>,
    ) -> Vec<(bool, Totals)> {
        let explainer = self.explainer;
        let timeline = explainer.timeline;
        let works = &timeline.gpus[gpu as usize].works;
        let mut totals = vec![Totals::default(); cursors.len()];
        let mut explanation = Explanation::default();
        for (at, work) in stretch.clone().zip(works.range(stretch)) {
            let queue = timeline.queue_of(&work) as usize;
            let (cursor, totals) = (&mut cursors[queue], &mut totals[queue]);
            let command_buffer = cursor.command_buffer();
            let Some(gap) = cursor.advance(at, &work) else {
                continue;
            };
            let ns = gap.interval.intersection(self.window).length_ns();
            if ns < self.threshold_ns.max(1) {
                continue;
            }
            // Most gaps, of which there may be ten million, take this shortcut.
            if explainer.has_one_cause_inside
                && command_buffer == work.command_buffer
                && command_buffer != NONE
                && gap.interval.length_ns() < explainer.start_up_ns(queue as u32)
            {
                totals.add_one(Cause::WithinCommandBuffer, ns);
                continue;
            }
            let before = works.at(gap.before as usize);
            let interval = gap.interval;
            explainer.explain(Idle::Queue, &before, &work, interval, &mut explanation);
            totals.add_gap(explainer, gap.interval, &explanation, gpu, self.window);
        }
        let has_work = cursors.iter().map(Cursor::has_passed_work);
        has_work.zip(totals).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gapscope_timeline::Timeline;
    use gapscope_trace::Trace;
    use proptest::prelude::*;
    use std::fmt::Write;

    proptest! {
        #[test]
        fn queues_idle_as_long_however_their_work_is_parted(works in prop::collection::vec((1u32..4, 0i64..900, 0i64..90), 0..40)) {
            let mut text = "device id=1\nqueue id=1 device=1\nqueue id=2 device=1\nqueue id=3 device=1\n".to_owned();
            for (queue, start, length) in &works {
                let _ = writeln!(text, "dispatch queue={queue} kernel=1 start_ns={start} duration_ns={length}");
            }
            let trace = Trace::from_text(&text).unwrap();
            let timeline = Timeline::new(&trace);
            let explainer = Explainer::new(&timeline);
            let totals = |stretch_works| {
                let walk = QueueWalk::new(&explainer, 0, Interval::new(0, 1000));
                let queues = QueueWalk { stretch_works, ..walk }.totals(0).into_iter();
                queues.map(|(queue, totals)| (queue, totals.gap_count, totals.total_ns, totals.rows())).collect::<Vec<_>>()
            };
            let whole = totals(usize::MAX);
            let used: std::collections::BTreeSet<u32> = works.iter().map(|(queue, ..)| *queue).collect();
            prop_assert_eq!(whole.len(), used.len());
            for stretch in [1, 2, 7] {
                prop_assert_eq!(totals(stretch), whole.clone());
            }
        }
    }
}
