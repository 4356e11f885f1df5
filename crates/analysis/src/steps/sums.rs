//! Adds up the parts of the verdict's time in each step, and outside of all, in one walk over the work and the gaps of the devices.
//!
//! The time from the first work of the program to the last is cut at the starts and ends of the steps and of the judged window. Each
//! slice has one step or none, and lies in the window or outside.

use super::{FoundSteps, Step, StepIdle, StepPart};
use crate::critical_path::{PathVisitor, Wait, visited_paths};
use crate::gaps::Cause;
use crate::gaps::explain::Explainer;
use crate::gaps::visit::visit_gaps;
use crate::slices::{Unions, cut, piece_of_slices};
use gapscope_timeline::busy::{self, BusyParts};
use gapscope_timeline::intervals::Interval;
use gapscope_timeline::quantity::ratio;
use gapscope_timeline::{Content, Timeline, Work};
use std::cmp::Reverse;

/// The longest gap of a slice.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct LongestGap {
    pub(super) device: usize,
    /// When the gap began, which may be before the slice.
    pub(super) start_ns: i64,
    inside_ns: i64,
}

/// The device time of a slice or a step.
#[derive(Debug, Clone, Default)]
pub(super) struct Sum {
    busy: BusyParts,
    /// The idle time by cause, without that of the recording itself.
    idle: Vec<(Cause, i64)>,
    /// The idle time in gaps that are too short to be explained.
    unexplained_ns: i64,
    /// The time before the first and after the last work of a device, while another had work.
    imbalance_ns: i64,
    /// The same, in which work without known times may have run.
    untimed_ns: i64,
    /// The time in which kernels that communicate waited for another device.
    peers_ns: i64,
    pub(super) longest: LongestGap,
}

/// A kind of device time: a part of the verdict that is no idle time with a cause, or such a cause.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Part(&'static str),
    Idle(Cause),
}

impl Sum {
    fn add(&mut self, other: &Sum) {
        self.busy = self.busy.plus(other.busy);
        for (cause, ns) in &other.idle {
            self.add_idle(*cause, *ns);
        }
        let sum = |ns: &mut i64, more: i64| *ns = ns.saturating_add(more);
        sum(&mut self.unexplained_ns, other.unexplained_ns);
        sum(&mut self.imbalance_ns, other.imbalance_ns);
        sum(&mut self.untimed_ns, other.untimed_ns);
        sum(&mut self.peers_ns, other.peers_ns);
        if other.longest.inside_ns > self.longest.inside_ns {
            self.longest = other.longest;
        }
    }

    fn add_idle(&mut self, cause: Cause, ns: i64) {
        match self.idle.iter_mut().find(|(of, _)| *of == cause) {
            Some((_, sum)) => *sum = sum.saturating_add(ns),
            None => self.idle.push((cause, ns)),
        }
    }

    /// Returns the time that is no idle time with a cause, by the names of the verdict's parts.
    fn worked(&self) -> [(&'static str, i64); 6] {
        let peers_ns = self.peers_ns.min(self.busy.communication_ns);
        let unknown_ns = [self.busy.whole_ns, self.busy.doubtful_ns, self.untimed_ns];
        let unknown_ns = unknown_ns
            .into_iter()
            .fold(self.unexplained_ns, i64::saturating_add);
        [
            ("compute", self.busy.compute_ns),
            ("communication", self.busy.communication_ns - peers_ns),
            ("peers", peers_ns),
            ("transfer", self.busy.transfer_ns),
            ("imbalance", self.imbalance_ns),
            ("unknown", unknown_ns),
        ]
    }

    /// Returns all of the time by kind.
    pub(super) fn kinds(&self) -> Vec<(Kind, i64)> {
        let worked = self
            .worked()
            .into_iter()
            .map(|(what, ns)| (Kind::Part(what), ns));
        let idle = self
            .idle
            .iter()
            .map(|(cause, ns)| (Kind::Idle(*cause), *ns));
        worked.chain(idle).collect()
    }

    /// Returns the parts of the time that are above 0, the largest first.
    pub(super) fn parts(&self) -> Vec<StepPart> {
        let mut parts: Vec<(&'static str, i64)> = self.worked().to_vec();
        for (cause, ns) in &self.idle {
            let what = cause.side().as_str();
            match parts.iter_mut().find(|(of, _)| *of == what) {
                Some((_, sum)) => *sum = sum.saturating_add(*ns),
                None => parts.push((what, *ns)),
            }
        }
        let window_ns = parts
            .iter()
            .fold(0, |sum: i64, (_, ns)| sum.saturating_add(*ns));
        let mut parts: Vec<StepPart> = (parts.into_iter())
            .filter(|(_, ns)| *ns > 0)
            .map(|(what, total_ns)| StepPart {
                what,
                total_ns,
                share: ratio(total_ns, window_ns),
            })
            .collect();
        parts.sort_by_key(|part| Reverse(part.total_ns));
        parts
    }

    fn idle(&self) -> Vec<StepIdle> {
        let idle = self.idle.iter().map(|(cause, ns)| StepIdle {
            cause: *cause,
            total_ns: *ns,
        });
        let mut idle: Vec<StepIdle> = idle.filter(|idle| idle.total_ns > 0).collect();
        idle.sort_by_key(|idle| (Reverse(idle.total_ns), idle.cause));
        idle
    }
}

/// The steps of a program with the parts of their time.
#[derive(Debug)]
pub(crate) struct StepSums {
    pub(super) found: FoundSteps,
    pub(super) steps: Vec<Step>,
    /// The time of each step.
    pub(super) sums: Vec<Sum>,
    /// The judged time outside of all steps that are not left out.
    pub(super) outside: Sum,
}

impl StepSums {
    /// Splits the time of steps. `window` is the judged window, gaps shorter than `threshold_ns` in it are not explained.
    pub(crate) fn new(
        explainer: &Explainer,
        found: FoundSteps,
        window: Interval,
        threshold_ns: i64,
    ) -> StepSums {
        let timeline = explainer.timeline;
        let all = timeline.work_window().unwrap_or_default();
        let slices = Slices::new(&found.ranges, all, window);
        let sums = slices.sums(explainer, all, window, threshold_ns);
        let mut by_step = vec![Sum::default(); found.ranges.len()];
        let mut outside = Sum::default();
        // A step that goes on after the last work is judged like the others.
        let is_left_out = |range: &Interval| {
            range.start_ns < window.start_ns && all.start_ns < window.start_ns
                || range.end_ns <= window.start_ns
                || range.start_ns >= window.end_ns
                || range.end_ns > window.end_ns && window.end_ns < all.end_ns
        };
        for (slice, sum) in sums.iter().enumerate() {
            let step = slices.steps[slice];
            if let Some(step) = step {
                by_step[step].add(sum);
            }
            let counts = step.is_some_and(|step| !is_left_out(&found.ranges[step]));
            if !counts && window.contains(slices.bounds[slice]) {
                outside.add(sum);
            }
        }
        let numbers = |at: usize| found.numbers.get(at).copied().unwrap_or(at as u64 + 1);
        let steps = found.ranges.iter().zip(&by_step).enumerate();
        let steps = steps.map(|(at, (range, sum))| {
            let parts = sum.parts();
            Step {
                number: numbers(at),
                start_ns: range.start_ns,
                duration_ns: range.length_ns(),
                is_left_out: is_left_out(range),
                is_slow: false,
                window_ns: parts
                    .iter()
                    .fold(0, |sum, part| sum.saturating_add(part.total_ns)),
                parts,
                idle: sum.idle(),
                because: None,
            }
        });
        StepSums {
            steps: steps.collect(),
            found,
            sums: by_step,
            outside,
        }
    }
}

/// The slices of the program's time.
struct Slices {
    bounds: Vec<i64>,
    /// The step of each slice.
    steps: Vec<Option<usize>>,
}

impl Slices {
    fn new(ranges: &[Interval], all: Interval, window: Interval) -> Slices {
        let edges = ranges
            .iter()
            .flat_map(|range| [range.start_ns, range.end_ns]);
        let edges = edges.chain([window.start_ns, window.end_ns]);
        let inside = edges.filter(|ns| all.start_ns < *ns && *ns < all.end_ns);
        let mut bounds: Vec<i64> = inside.chain([all.start_ns, all.end_ns]).collect();
        bounds.sort_unstable();
        bounds.dedup();
        let mut next = 0;
        let starts = bounds[..bounds.len() - 1].iter();
        let steps = starts.map(|start_ns| {
            while ranges
                .get(next)
                .is_some_and(|range| range.end_ns <= *start_ns)
            {
                next += 1;
            }
            ranges
                .get(next)
                .is_some_and(|range| range.contains(*start_ns))
                .then_some(next)
        });
        Slices {
            steps: steps.collect(),
            bounds,
        }
    }

    /// Returns the sum of each slice.
    fn sums(
        &self,
        explainer: &Explainer,
        all: Interval,
        window: Interval,
        threshold_ns: i64,
    ) -> Vec<Sum> {
        let timeline = explainer.timeline;
        let bounds = &self.bounds[..];
        let mut sums = vec![Sum::default(); self.steps.len()];
        for (device, gpu) in timeline.gpus.iter().enumerate() {
            let Some(worked) = gpu.work_window() else {
                continue;
            };
            let untimed = explainer.order().unmeasured().on_gpu(device as u32);
            self.add_busy(timeline, device, untimed, &mut sums);
            let mut place = 0;
            visit_gaps(explainer, device, |gap, _, parts| {
                let inside = gap.intersection(window);
                let is_short = !inside.is_empty() && inside.length_ns() < threshold_ns;
                for part in parts.iter().filter(|part| part.cause != Cause::Recording) {
                    cut(bounds, &mut place, part.interval(), |slice, piece| {
                        let ns = piece.length_ns();
                        match is_short && window.contains(piece.start_ns) {
                            true => sums[slice].unexplained_ns += ns,
                            false => sums[slice].add_idle(part.cause, ns),
                        }
                    });
                }
                piece_of_slices(bounds, gap, |slice, piece| {
                    let longest = &mut sums[slice].longest;
                    if piece.length_ns() > longest.inside_ns {
                        *longest = LongestGap {
                            device,
                            start_ns: gap.start_ns,
                            inside_ns: piece.length_ns(),
                        };
                    }
                });
            });
            // Before its first and after its last work a device had none, as far as the times of its work are known.
            for without in [
                Interval::new(all.start_ns, worked.start_ns),
                Interval::new(worked.end_ns, all.end_ns),
            ] {
                piece_of_slices(bounds, without, |slice, piece| {
                    sums[slice].imbalance_ns += piece.length_ns();
                });
                for time in untimed {
                    piece_of_slices(bounds, time.intersection(without), |slice, piece| {
                        sums[slice].imbalance_ns -= piece.length_ns();
                        sums[slice].untimed_ns += piece.length_ns();
                    });
                }
            }
        }
        self.add_peers(explainer, window, &mut sums);
        sums
    }

    /// Adds the busy time of a device. Beside communication and transfers, work without known times may have run at the times `untimed`.
    fn add_busy(&self, timeline: &Timeline, device: usize, untimed: &[Interval], sums: &mut [Sum]) {
        let gpu = &timeline.gpus[device];
        let bounds = &self.bounds[..];
        let mut known = vec![Unions::default(); sums.len()];
        let mut place = 0;
        for work in &gpu.works {
            let content = timeline.content(&work);
            cut(bounds, &mut place, work.interval, |slice, piece| {
                known[slice].add(piece, content);
            });
        }
        let worked = gpu.work_window().unwrap_or_default();
        let untimed = untimed.iter().map(|time| time.intersection(worked));
        let mut untimed = untimed.filter(|time| !time.is_empty()).peekable();
        if untimed.peek().is_none() {
            for (sum, known) in sums.iter_mut().zip(&known) {
                sum.busy = sum.busy.plus(known.parts());
            }
            return;
        }
        let mut beside = vec![Unions::default(); sums.len()];
        let mut place = 0;
        let mut add = |interval: Interval, content: Content| {
            cut(bounds, &mut place, interval, |slice, piece| {
                beside[slice].add(piece, content);
            });
        };
        for work in &gpu.works {
            while let Some(time) = untimed.next_if(|time| time.start_ns <= work.interval.start_ns) {
                add(time, Content::Compute);
            }
            add(work.interval, timeline.content(&work));
        }
        untimed.for_each(|time| add(time, Content::Compute));
        for (sum, (known, beside)) in sums.iter_mut().zip(known.iter().zip(&beside)) {
            let certain = beside.parts();
            let parts = known.parts();
            let parts = parts.with_certain(certain.communication_ns, certain.transfer_ns);
            sum.busy = sum.busy.plus(parts);
        }
    }

    /// Adds the time in which kernels that communicate waited for another device.
    fn add_peers(&self, explainer: &Explainer, window: Interval, sums: &mut [Sum]) {
        let timeline = explainer.timeline;
        let communicates = sums.iter().any(|sum| sum.busy.communication_ns > 0);
        if timeline.gpus.len() < 2 || !communicates {
            return;
        }
        let order = explainer.order();
        let unmeasured = order.unmeasured();
        let devices = busy::busy_beside(timeline, Some(window), |gpu| unmeasured.on_gpu(gpu));
        let mut peers = Peers {
            bounds: &self.bounds,
            window,
            sums,
        };
        visited_paths(timeline, order, &devices, window, &mut peers);
    }
}

/// Adds the waits for other devices to the slices of the judged window.
struct Peers<'a> {
    bounds: &'a [i64],
    window: Interval,
    sums: &'a mut [Sum],
}

impl PathVisitor for Peers<'_> {
    fn on_path(&mut self, _: usize, _: &Work, _: Interval) {}

    fn waited(&mut self, _: u32, _: &Wait) {}

    fn waited_for_peer(&mut self, _: &Work, waited: Interval) {
        piece_of_slices(
            self.bounds,
            waited.intersection(self.window),
            |slice, piece| {
                self.sums[slice].peers_ns += piece.length_ns();
            },
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gaps::Side;
    use crate::slices::slice_of;

    #[test]
    fn slices_have_the_step_that_they_lie_in() {
        let ranges = [
            Interval::new(5, 20),
            Interval::new(20, 30),
            Interval::new(40, 90),
        ];
        let slices = Slices::new(&ranges, Interval::new(10, 60), Interval::new(25, 60));
        assert_eq!(slices.bounds, [10, 20, 25, 30, 40, 60]);
        assert_eq!(slices.steps, [Some(0), Some(1), Some(1), None, Some(2)]);
        assert_eq!(slice_of(&slices.bounds, 59), 4);
    }

    #[test]
    fn sides_of_idle_time_are_parts() {
        let mut sum = Sum::default();
        for side in Side::ALL {
            let cause = Cause::ALL
                .into_iter()
                .find(|cause| cause.side() == side)
                .unwrap();
            sum.add_idle(cause, 10);
        }
        sum.unexplained_ns = 5;
        let parts: Vec<_> = sum
            .parts()
            .iter()
            .map(|part| (part.what, part.total_ns))
            .collect();
        assert_eq!(
            parts,
            [("unknown", 15), ("host", 10), ("sync", 10), ("launch", 10)]
        );
    }
}
