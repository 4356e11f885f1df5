//! Finds all gaps, explains and adds them up.

use super::explain::{Explainer, Explanation};
use super::others::{LateTime, OutsideTime};
use super::queues::OfQueues;
use super::totals::{Certainty, Histogram, Totals};
use super::{Cause, DeviceIdle, Gap, GapPart, IdleTime, Pattern, QueueIdle, WorkName};
use crate::host::{HostThread, HostTotals};
use crate::intervals::Interval;
use crate::timeline::{Timeline, Work, WorkKind, Works};
use gapscope_trace::lookup::NONE;
use gapscope_trace::parallel;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Gaps of a device that are kept until their pattern is known: of more it is found by walks of their own.
const MOST_KEPT: usize = 1 << 20;

/// Idle time of all devices and queues in `window`. Gaps shorter than `threshold_ns` are counted apart; of the others
/// the `longest` ones are listed.
pub fn idle_time(
    timeline: &Timeline,
    window: Interval,
    threshold_ns: i64,
    longest: usize,
) -> IdleTime {
    let explainer = Explainer::new(timeline);
    let mut walk = Walk {
        explainer: &explainer,
        threshold_ns,
        longest,
        found: Found::default(),
    };
    let mut devices = Vec::new();
    let mut queues = Vec::new();
    let mut all = Totals::default();
    for (index, gpu) in timeline.gpus.iter().enumerate() {
        let Some(work_window) = gpu.work_window() else {
            continue;
        };
        let unknown_before_ns = walk.found.unknown_host_ns;
        let device_window = work_window.intersection(window);
        let OfGpu {
            device,
            queues: of_queues,
            pattern,
        } = walk.gpu(index as u32, device_window, window);
        let of_device = std::mem::take(&mut walk.found.outside);
        of_device.add_calls(explainer.host, &mut walk.found.other_threads);
        let late = std::mem::take(&mut walk.found.late);
        let compiling_ns = late.while_compiling_ns(explainer.host);
        let sum_ns = &mut walk.found.late_while_compiling_ns;
        *sum_ns = sum_ns.saturating_add(compiling_ns);
        all.add_all(&device);
        devices.push(DeviceIdle {
            device: index as u32,
            total_ns: device.total_ns,
            causes: device.rows(),
            unknown_host_ns: walk.found.unknown_host_ns - unknown_before_ns,
            pattern,
            ..DeviceIdle::default()
        });
        queues.extend(of_queues.into_iter().map(|(queue, totals)| QueueIdle {
            device: index as u32,
            queue_id: timeline.queues[queue].id,
            total_ns: totals.total_ns,
            causes: totals.rows(),
        }));
    }
    let found = walk.found;
    let found_gaps = found.longest_gaps.into_iter();
    let mut longest_gaps: Vec<LongGap> = found_gaps.map(|Reverse(gap)| gap).collect();
    longest_gaps.sort_by_key(|long_gap| {
        (
            Reverse(long_gap.duration_ns),
            long_gap.start_ns,
            long_gap.gpu,
        )
    });
    IdleTime {
        gap_count: all.gap_count,
        total_ns: all.total_ns,
        below_threshold_count: found.below_count,
        below_threshold_ns: found.below_ns,
        causes: all.rows(),
        devices,
        queues,
        longest: longest_gaps
            .iter()
            .map(|long_gap| long_gap.describe(&explainer, window))
            .collect(),
        histogram: found.histogram.rows(),
        host_calls: found.host.into_rows(explainer.host),
        other_thread_calls: found.other_threads.into_rows(explainer.host),
        unknown_host_ns: found.unknown_host_ns,
        late_while_compiling_ns: found.late_while_compiling_ns,
        untimed_host_function_ns: found.untimed_host_function_ns,
        serialised_ns: found.serialised_ns,
        serialised_count: found.serialised_count,
        uncertain_ns: all.uncertain_ns(),
        sides: all.side_rows(),
    }
}

struct Walk<'a> {
    explainer: &'a Explainer<'a>,
    threshold_ns: i64,
    longest: usize,
    found: Found,
}

/// Idle time of a GPU.
struct OfGpu {
    device: Totals,
    /// Of its queues, by their index.
    queues: Vec<(usize, Totals)>,
    pattern: Pattern,
}

/// What is found besides the totals.
#[derive(Default)]
struct Found {
    below_count: u64,
    below_ns: i64,
    histogram: Histogram,
    host: HostTotals,
    /// Of the device that is walked over.
    outside: OutsideTime,
    /// Of that device too.
    late: LateTime,
    late_while_compiling_ns: i64,
    other_threads: HostTotals,
    unknown_host_ns: i64,
    untimed_host_function_ns: i64,
    serialised_ns: i64,
    serialised_count: u64,
    longest_gaps: BinaryHeap<Reverse<LongGap>>,
}

/// Where one of the longest gaps is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct LongGap {
    duration_ns: i64,
    start_ns: i64,
    gpu: u32,
    /// Indices among the GPU's work.
    before: u32,
    after: u32,
}

/// The end of what ran so far, and which work that is.
#[derive(Clone, Copy)]
pub(super) struct Cursor {
    end_ns: i64,
    pub before: u32,
    /// Its command buffer.
    pub command_buffer: u32,
}

impl Cursor {
    pub const NONE: Cursor = Cursor {
        end_ns: i64::MIN,
        before: NONE,
        command_buffer: NONE,
    };

    /// Goes on by a piece of work; gives the gap before it and the index of the work before that gap.
    #[inline]
    pub fn advance(&mut self, at: usize, work: &Work) -> Option<(Interval, u32)> {
        let gap = (self.before != NONE && work.interval.start_ns > self.end_ns).then(|| {
            (
                Interval::new(self.end_ns, work.interval.start_ns),
                self.before,
            )
        });
        if self.before == NONE || work.interval.end_ns > self.end_ns {
            *self = Cursor {
                end_ns: work.interval.end_ns,
                before: at as u32,
                command_buffer: work.command_buffer,
            };
        }
        gap
    }

    /// Goes on by all that another passed.
    pub fn pass(&mut self, later: Cursor) {
        if self.before == NONE || (later.before != NONE && later.end_ns > self.end_ns) {
            *self = later;
        }
    }
}

/// The gaps of a device in `window` that are long enough.
fn gaps(works: &Works, window: Interval, threshold_ns: i64) -> impl Iterator<Item = Interval> {
    let mut cursor = Cursor::NONE;
    let between =
        (works.iter().enumerate()).filter_map(move |(at, work)| cursor.advance(at, &work));
    between
        .map(move |(gap, _)| gap.intersection(window))
        .filter(move |gap| gap.length_ns() >= threshold_ns.max(1))
}

impl Walk<'_> {
    fn gpu(&mut self, index: u32, device_window: Interval, window: Interval) -> OfGpu {
        let timeline = self.explainer.timeline;
        let queues = OfQueues::of(self.explainer, self.threshold_ns, window);
        let on_gpu = |queue: &usize| timeline.queues[*queue].gpu == index;
        let of_gpu: Vec<usize> = (0..timeline.queues.len()).filter(on_gpu).collect();
        if of_gpu.len() < 2 {
            let (device, pattern) = self.device(index, device_window);
            let queues = of_gpu.into_iter().map(|queue| (queue, device.clone()));
            return OfGpu {
                queues: queues.collect(),
                device,
                pattern,
            };
        }
        let ((device, pattern), mut queues) = parallel::both(
            || self.device(index, device_window),
            || queues.totals(index),
        );
        if let [(_, only)] = queues.as_mut_slice() {
            *only = device.clone();
        }
        OfGpu {
            device,
            queues,
            pattern,
        }
    }

    fn device(&mut self, index: u32, window: Interval) -> (Totals, Pattern) {
        let explainer = self.explainer;
        let works = &explainer.timeline.gpus[index as usize].works;
        let mut totals = Totals::default();
        let mut kept = Vec::new();
        let mut cursor = Cursor::NONE;
        let mut explanation = Explanation::default();
        for (at, work) in works.iter().enumerate() {
            let Some((gap, before)) = cursor.advance(at, &work) else {
                continue;
            };
            let inside = gap.intersection(window);
            if inside.length_ns() >= self.threshold_ns.max(1) {
                if kept.len() <= MOST_KEPT {
                    kept.push(inside);
                }
                explainer.explain(&works.at(before as usize), &work, gap, &mut explanation);
                totals.add_gap(explainer, gap, &explanation, index, window);
                self.keep(index, inside, &explanation, before, at);
            } else if !inside.is_empty() {
                self.found.below_count += 1;
                self.found.below_ns += inside.length_ns();
            }
        }
        let pattern = match kept.len() {
            0..=MOST_KEPT => Pattern::of(|| kept.iter().copied()),
            _ => Pattern::of(|| gaps(works, window, self.threshold_ns)),
        };
        (totals, pattern)
    }

    fn keep(
        &mut self,
        gpu: u32,
        inside: Interval,
        explanation: &Explanation,
        before: u32,
        after: usize,
    ) {
        let found = &mut self.found;
        let duration_ns = inside.length_ns();
        found.histogram.add(duration_ns);
        if explanation.waited {
            found.serialised_count += 1;
            found.serialised_ns = found.serialised_ns.saturating_add(duration_ns);
        }
        if let Some((late, thread)) = explanation.host {
            if let Some(thread) = thread {
                let late = late.intersection(inside);
                self.explainer.add_host(late, thread, &mut found.host);
                found.outside.add(self.explainer.host, late, thread);
                let parts = &explanation.parts;
                (found.late).add(self.explainer.host, parts, inside, thread.process);
            }
            if !thread.is_some_and(|thread| self.explainer.host.knows(thread.process)) {
                let late = (explanation.parts.iter()).filter(|part| part.cause == Cause::HostLate);
                let inside = late.map(|part| part.interval().intersection(inside).length_ns());
                found.unknown_host_ns = found.unknown_host_ns.saturating_add(inside.sum());
            }
        }
        for untimed in &explanation.untimed_functions {
            let ns = untimed.intersection(inside).length_ns();
            found.untimed_host_function_ns = found.untimed_host_function_ns.saturating_add(ns);
        }
        let shortest = found
            .longest_gaps
            .peek()
            .map_or(0, |Reverse(long_gap)| long_gap.duration_ns);
        if found.longest_gaps.len() < self.longest || duration_ns > shortest {
            found.longest_gaps.push(Reverse(LongGap {
                duration_ns,
                start_ns: inside.start_ns,
                gpu,
                before,
                after: after as u32,
            }));
            if found.longest_gaps.len() > self.longest {
                found.longest_gaps.pop();
            }
        }
    }
}

impl Totals {
    pub(super) fn add_gap(
        &mut self,
        explainer: &Explainer,
        gap: Interval,
        explanation: &Explanation,
        gpu: u32,
        window: Interval,
    ) {
        let Explanation { parts, .. } = explanation;
        let certainty = match (explanation.submission, explainer.error_ns[gpu as usize]) {
            (None, _) => Certainty::Whole,
            (Some(row), Some(error_ns)) => {
                Certainty::Within(explainer.shift(row, gap, parts, error_ns))
            }
            (Some(_), None) => Certainty::Unknown,
        };
        self.add(parts, &explanation.by_other_threads, &certainty, window);
    }
}

/// Describes single gaps; made once for many of them.
pub struct GapFinder<'a> {
    explainer: Explainer<'a>,
}

impl<'a> GapFinder<'a> {
    /// For the gaps of this timeline.
    pub fn of(timeline: &'a Timeline<'a>) -> GapFinder<'a> {
        GapFinder {
            explainer: Explainer::new(timeline),
        }
    }

    /// The gap of a device (an index of [`Timeline::gpus`]) that begins at `start_ns`, as [`IdleTime::longest`] has
    /// gaps; `None` when no work of it ends there, or none begins later.
    pub fn at(&self, device: usize, start_ns: i64) -> Option<Gap> {
        let works = &self.explainer.timeline.gpus.get(device)?.works;
        let after = works.partition_point(|work| work.interval.start_ns <= start_ns);
        let end_ns = works.get(after)?.interval.start_ns;
        let before = (0..after)
            .rev()
            .find(|at| works.at(*at).interval.end_ns == start_ns)?;
        let long_gap = LongGap {
            duration_ns: end_ns - start_ns,
            start_ns,
            gpu: device as u32,
            before: before as u32,
            after: after as u32,
        };
        let gap = Interval::new(start_ns, end_ns);
        Some(long_gap.describe(&self.explainer, gap))
    }
}

impl Explainer<'_> {
    /// Adds what a thread did in `late`.
    fn add_host(&self, late: Interval, thread: HostThread, totals: &mut HostTotals) {
        let mut outside_ns = late.length_ns();
        for segment in self.host.segments(thread, late) {
            let ns = segment.interval.intersection(late).length_ns();
            totals.add_segment(segment, ns);
            outside_ns -= ns;
        }
        if self.host.knows(thread.process) {
            totals.add_outside(outside_ns);
        }
    }
}

impl LongGap {
    fn describe(&self, explainer: &Explainer, window: Interval) -> Gap {
        let timeline = explainer.timeline;
        let works = &timeline.gpus[self.gpu as usize].works;
        let (before, after) = (
            &works.at(self.before as usize),
            &works.at(self.after as usize),
        );
        let gap = Interval::new(before.interval.end_ns, after.interval.start_ns);
        let mut explanation = Explanation::default();
        explainer.explain(before, after, gap, &mut explanation);
        let parts: Vec<GapPart> = (explanation.parts.iter())
            .map(|part| {
                let inside = part.interval().intersection(window);
                GapPart {
                    cause: part.cause,
                    start_ns: inside.start_ns,
                    duration_ns: inside.length_ns(),
                }
            })
            .filter(|part| part.duration_ns > 0)
            .collect();
        let cause = Totals::default().add(&parts, &[], &Certainty::Whole, window);

        let mut host = HostTotals::default();
        let mut others = HostTotals::default();
        if let Some((late, Some(thread))) = explanation.host {
            let late = late.intersection(window);
            explainer.add_host(late, thread, &mut host);
            for other in explainer.host.others(thread) {
                for segment in explainer.host.segments(other, late) {
                    let ns = segment.interval.intersection(late).length_ns();
                    others.add_segment(segment, ns);
                }
            }
        }
        let tables = &timeline.trace.tables;
        let submission = Some(timeline.submission_of(after) as usize)
            .filter(|row| *row < timeline.submissions.len());
        let process_id = submission.map(|row| tables.submissions.process[row]);
        let thread = submission.and_then(|row| tables.submissions.thread.at(row));
        let threads = &timeline.trace.manifest.threads;
        Gap {
            device: self.gpu,
            start_ns: self.start_ns,
            duration_ns: self.duration_ns,
            cause,
            parts,
            before: timeline.name(before),
            after: timeline.name(after),
            process_id,
            thread,
            thread_name: threads
                .iter()
                .find(|t| Some(t.process) == process_id && Some(t.thread) == thread)
                .map(|t| t.name.clone())
                .filter(|name| !name.is_empty()),
            submission: submission.map(|row| tables.submissions.id[row]),
            submit_start_ns: submission.map(|row| tables.submissions.start_ns[row]),
            host_calls: host.into_rows(explainer.host),
            other_threads: others.into_rows(explainer.host),
            waited_for_queue: (explanation.waited_for)
                .map(|queue| timeline.queues[queue as usize].id),
        }
    }
}

impl Timeline<'_> {
    /// What a piece of work is called: its kernel, the kind of a transfer or of other work.
    pub fn name_of(&self, work: &Work) -> String {
        let tables = &self.trace.tables;
        match work.kind() {
            WorkKind::Dispatch => match self.kernel_row(work.row()) {
                Some(row) => self.kernel_names.name(row).to_owned(),
                None => "unknown kernel".to_owned(),
            },
            WorkKind::Transfer => tables.transfers.kind[work.row()].as_str().to_owned(),
            WorkKind::Opaque => tables.opaque_work.kind[work.row()].as_str().to_owned(),
            WorkKind::CommandBuffer => (tables.command_buffers.name[work.row()].as_deref())
                .unwrap_or("command buffer")
                .to_owned(),
        }
    }

    /// The same, with where it belongs.
    fn name(&self, work: &Work) -> WorkName {
        let tables = &self.trace.tables;
        WorkName {
            name: self.name_of(work),
            label: self.label_of(work).and_then(|id| self.label_path(id)),
            command_buffer: tables
                .command_buffers
                .id
                .get(work.command_buffer as usize)
                .copied(),
            queue_id: self.queues[self.queue_of(work) as usize].id,
        }
    }
}
