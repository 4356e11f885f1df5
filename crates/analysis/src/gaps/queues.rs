//! Idle time between the work of each queue of a GPU, by stretches of its work on all cores.

use super::Cause;
use super::explain::{Explainer, Explanation};
use super::totals::Totals;
use super::walk::Cursor;
use crate::intervals::Interval;
use gapscope_trace::lookup::NONE;
use gapscope_trace::parallel::each;
use std::ops::Range;

/// Work that is walked over at a time: what is found before it is little beside.
const STRETCH: usize = 1 << 19;

/// Idle time between the work of each queue.
pub(super) struct OfQueues<'a> {
    explainer: &'a Explainer<'a>,
    threshold_ns: i64,
    window: Interval,
    /// Pieces of work that are walked over at a time.
    stretch: usize,
}

impl<'a> OfQueues<'a> {
    /// In a window, of gaps that are long enough.
    pub fn of(explainer: &'a Explainer<'a>, threshold_ns: i64, window: Interval) -> OfQueues<'a> {
        OfQueues {
            explainer,
            threshold_ns,
            window,
            stretch: STRETCH,
        }
    }

    /// Of the queues of a GPU that have work, by their index.
    pub fn totals(&self, gpu: u32) -> Vec<(usize, Totals)> {
        let works = self.explainer.timeline.gpus[gpu as usize].works.len();
        let begins = (0..works).step_by(self.stretch);
        let stretches: Vec<Range<usize>> =
            begins.map(|at| at..works.min(at + self.stretch)).collect();
        // What each queue ran last before a stretch, which is what the gap before its first work in it begins with.
        let earlier = stretches[..stretches.len().saturating_sub(1)].to_vec();
        let mut before = self.none();
        let mut begun = vec![before.clone()];
        for last in each(earlier, |stretch| self.last(gpu, stretch)) {
            for (cursor, last) in before.iter_mut().zip(last) {
                cursor.pass(last);
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

    fn none(&self) -> Vec<Cursor> {
        vec![Cursor::NONE; self.explainer.timeline.queues.len()]
    }

    /// What each queue ran last of a stretch of work.
    fn last(&self, gpu: u32, stretch: Range<usize>) -> Vec<Cursor> {
        let timeline = self.explainer.timeline;
        let works = &timeline.gpus[gpu as usize].works;
        let mut last = self.none();
        for (at, work) in stretch.clone().zip(works.range(stretch)) {
            last[timeline.queue_of(&work) as usize].advance(at, &work);
        }
        last
    }

    /// The idle time of each queue in a stretch of work, and whether it had work by its end. `cursors`: what it ran before.
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
            let command_buffer = cursor.command_buffer;
            let Some((gap, before)) = cursor.advance(at, &work) else {
                continue;
            };
            let ns = gap.intersection(self.window).length_ns();
            if ns < self.threshold_ns.max(1) {
                continue;
            }
            // Of ten million gaps most are such.
            if explainer.inside_is_inside
                && command_buffer == work.command_buffer
                && command_buffer != NONE
            {
                totals.add_one(Cause::WithinCommandBuffer, ns);
                continue;
            }
            explainer.explain(&works.at(before as usize), &work, gap, &mut explanation);
            totals.add_gap(explainer, gap, &explanation, gpu, self.window);
        }
        let has_work = cursors.iter().map(|cursor| cursor.before != NONE);
        has_work.zip(totals).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::timeline::Timeline;
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
            let timeline = Timeline::of(&trace);
            let explainer = Explainer::new(&timeline);
            let totals = |stretch| {
                let of = OfQueues { stretch, ..OfQueues::of(&explainer, 0, Interval::new(0, 1000)) };
                let queues = of.totals(0).into_iter();
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
