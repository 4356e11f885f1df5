//! Adds up the idle time of devices and queues by cause, lists the longest gaps, and describes single gaps.
//!
//! Order of calls: [`idle_time`] walks over each device, explains its gaps on all cores (`explain.rs`), adds the parts up
//! (`totals.rs`) and keeps the longest gaps; [`GapFinder`] explains single gaps later.

use super::at_work::AtWork;
use super::building::BuildSums;
use super::explain::{Explainer, Explanation, HeldUp, Idle};
use super::host_totals::HostTotals;
use super::other_threads::{LateTime, OutsideTime};
use super::queues::QueueWalk;
use super::submit_calls::{SubmitCalls, Submitted, copies};
use super::totals::{Certainty, Histogram, Totals};
use super::unknown_reason::UnknownTimes;
use super::visit::visit_gaps;
use super::{
    Cause, DeviceIdle, Gap, GapPart, IdleTime, Pattern, QueueIdle, UnknownReason, WaitTime,
    WorkName,
};
use gapscope_timeline::host::HostThread;
use gapscope_timeline::intervals::Interval;
use gapscope_timeline::{Gap as WorkGap, Timeline, Work, Works};
use gapscope_trace::parallel;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// The maximum number of gaps of a device that are kept until their pattern is known. The pattern of more gaps takes
/// walks of its own.
const MAX_KEPT_GAPS: usize = 1 << 20;

/// Adds up the idle time of all devices and queues in `window`. Gaps shorter than `threshold_ns` are counted apart; the
/// `longest` others are listed.
pub fn idle_time(
    timeline: &Timeline,
    window: Interval,
    threshold_ns: i64,
    longest: usize,
) -> IdleTime {
    explained_idle_time(&Explainer::new(timeline), window, threshold_ns, longest)
}

/// Returns the same from an explainer that exists already.
pub(crate) fn explained_idle_time(
    explainer: &Explainer,
    window: Interval,
    threshold_ns: i64,
    longest: usize,
) -> IdleTime {
    let timeline = explainer.timeline;
    let mut walk = Walk {
        explainer,
        threshold_ns,
        longest,
        copies: copies(timeline),
        sums: Sums::default(),
        at_work: AtWork::default(),
    };
    let mut devices = Vec::new();
    let mut queues = Vec::new();
    let mut all = Totals::default();
    for (index, gpu) in timeline.gpus.iter().enumerate() {
        let Some(work_window) = gpu.work_window() else {
            continue;
        };
        let unknown_before_ns = walk.sums.unknown_host_ns;
        let untimed_before_ns = walk.sums.untimed_host_function_ns;
        let untimed_work = |walk: &Walk| walk.sums.unknown.total_ns(UnknownReason::UntimedWork);
        let untimed_work_before_ns = untimed_work(&walk);
        let not_of_host_before_ns = walk.sums.unknown.not_of_host_ns();
        let device_window = work_window.intersection(window);
        let GpuTotals {
            device,
            queues: queue_totals,
            pattern,
        } = walk.gpu(index as u32, device_window, window);
        let outside = std::mem::take(&mut walk.sums.outside);
        outside.add_calls(explainer.host_threads, &mut walk.sums.other_threads);
        let late = std::mem::take(&mut walk.sums.late);
        let compiling_ns = late.while_compiling_ns(explainer.host_threads);
        let sum_ns = &mut walk.sums.late_while_compiling_ns;
        *sum_ns = sum_ns.saturating_add(compiling_ns);
        all.add_all(&device);
        devices.push(DeviceIdle {
            device: index as u32,
            total_ns: device.total_ns,
            causes: device.rows(),
            sides: device.side_rows(),
            unknown_host_ns: walk.sums.unknown_host_ns - unknown_before_ns,
            untimed_host_function_ns: walk.sums.untimed_host_function_ns - untimed_before_ns,
            untimed_work_ns: untimed_work(&walk) - untimed_work_before_ns,
            not_of_host_ns: walk.sums.unknown.not_of_host_ns() - not_of_host_before_ns,
            pattern,
            ..DeviceIdle::default()
        });
        queues.extend(queue_totals.into_iter().map(|(queue, totals)| QueueIdle {
            device: index as u32,
            queue_id: timeline.queues[queue].id,
            total_ns: totals.total_ns,
            causes: totals.rows(),
        }));
    }
    let (copies, at_work, sums) = (walk.copies, walk.at_work, walk.sums);
    let host_calls = sums.host.into_rows(explainer.host_threads);
    let mut submit_calls = sums.submit_calls;
    submit_calls.add_earlier(timeline, &copies, &host_calls);
    // What was loaded before the first work was built before it.
    let first_ns = timeline.work_window().map(|work| work.start_ns);
    let loaded = match first_ns.is_some_and(|first_ns| window.start_ns <= first_ns) {
        true => Interval::new(i64::MIN, window.end_ns),
        false => window,
    };
    let waits = HeldUp::ALL.into_iter().zip(sums.waits);
    let waits = waits.flat_map(|(held_up, totals)| {
        let rows = totals.into_rows(explainer.host_threads);
        rows.into_iter().map(move |time| WaitTime { held_up, time })
    });
    let waits = waits.collect();
    let mut longest_gaps = sums.longest_gaps.into_gaps();
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
        below_threshold_count: sums.below_count,
        below_threshold_ns: sums.below_ns,
        causes: all.rows(),
        devices,
        queues,
        longest: longest_gaps
            .iter()
            .map(|long_gap| long_gap.describe(explainer, window))
            .collect(),
        histogram: sums.histogram.rows(),
        host_calls,
        submit_calls,
        waits,
        other_thread_calls: sums.other_threads.into_rows(explainer.host_threads),
        unknown_host_ns: sums.unknown_host_ns,
        unknown_submitter_ns: sums.unknown_submitter_ns,
        told_by_code_ns: sums.told_by_code_ns,
        late_while_compiling_ns: sums.late_while_compiling_ns,
        late_host_was: None,
        built: sums.building.built(&explainer.builders, loaded),
        threads_at_work: at_work.rows(timeline),
        untimed_host_function_ns: sums.untimed_host_function_ns,
        unknown_reasons: sums.unknown.rows(),
        serialised_ns: sums.serialised_ns,
        serialised_count: sums.serialised_count,
        uncertain_ns: all.uncertain_ns(),
        sides: all.side_rows(),
    }
}

/// A walk over the gaps of all devices, one after the other, with what it has added up so far.
struct Walk<'e, 'a> {
    explainer: &'e Explainer<'a>,
    threshold_ns: i64,
    /// The number of longest gaps to keep.
    longest: usize,
    /// For each submission, what it is as a copy; empty where all copies are plain ones.
    copies: Vec<Submitted>,
    sums: Sums,
    at_work: AtWork<'e>,
}

/// The idle time of a GPU and of its queues.
struct GpuTotals {
    device: Totals,
    /// The index and the idle time of each queue.
    queues: Vec<(usize, Totals)>,
    pattern: Pattern,
}

/// The sums of a walk over some gaps or all, beside the totals by cause.
#[derive(Default)]
struct Sums {
    /// Gaps below the threshold. The fields from here on are as in [`IdleTime`].
    below_count: u64,
    below_ns: i64,
    histogram: Histogram,
    /// What the submitting threads did.
    host: HostTotals,
    submit_calls: SubmitCalls,
    /// Waits by how they held up the submitting thread.
    waits: [HostTotals; HeldUp::ALL.len()],
    /// The time outside of calls, of the device that the walk is at.
    outside: OutsideTime,
    /// The time of a late host, of the device that the walk is at.
    late: LateTime,
    late_while_compiling_ns: i64,
    building: BuildSums,
    /// The stretches in which a thread was late and others may have been at work.
    late_stretches: Vec<(HostThread, Interval)>,
    other_threads: HostTotals,
    unknown_host_ns: i64,
    unknown_submitter_ns: i64,
    told_by_code_ns: i64,
    untimed_host_function_ns: i64,
    unknown: UnknownTimes,
    serialised_ns: i64,
    serialised_count: u64,
    longest_gaps: LongestGaps,
}

/// The longest gaps of a walk.
#[derive(Default)]
struct LongestGaps {
    /// The longest gaps so far, the shortest of them on top.
    kept: BinaryHeap<Reverse<LongGap>>,
    /// All gaps that were among the longest when they came.
    came: Vec<LongGap>,
}

impl LongestGaps {
    /// Adds a gap, which counts as long if it is longer than the shortest of `most` that are kept.
    fn add(&mut self, gap: LongGap, most: usize) {
        let shortest = self.kept.peek();
        let shortest_ns = shortest.map_or(0, |Reverse(gap)| gap.duration_ns);
        if self.kept.len() < most || gap.duration_ns > shortest_ns {
            self.came.push(gap);
            self.kept.push(Reverse(gap));
            if self.kept.len() > most {
                self.kept.pop();
            }
        }
    }

    /// Adds later gaps, as if they came one after the other.
    fn add_all(&mut self, later: LongestGaps, most: usize) {
        for gap in later.came {
            self.add(gap, most);
        }
    }

    fn into_gaps(self) -> Vec<LongGap> {
        self.kept.into_iter().map(|Reverse(gap)| gap).collect()
    }
}

/// The place of a long gap among the work of its GPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct LongGap {
    duration_ns: i64,
    start_ns: i64,
    gpu: u32,
    /// The indices of the work before and after the gap among the GPU's work.
    before: u32,
    after: u32,
}

/// Returns the gaps of a device in `window` that are at least as long as the threshold.
fn gaps(works: &Works, window: Interval, threshold_ns: i64) -> impl Iterator<Item = Interval> {
    (works.gaps())
        .map(move |gap| gap.interval.intersection(window))
        .filter(move |gap| gap.length_ns() >= threshold_ns.max(1))
}

impl Walk<'_, '_> {
    /// Adds up the gaps of a GPU and of its queues: of the GPU in `device_window`, of queues in `window`. A GPU with
    /// one used queue has the same totals for it.
    fn gpu(&mut self, index: u32, device_window: Interval, window: Interval) -> GpuTotals {
        let timeline = self.explainer.timeline;
        let queues = QueueWalk::new(self.explainer, self.threshold_ns, window);
        let on_gpu = |queue: &usize| timeline.queues[*queue].gpu == index;
        let of_gpu: Vec<usize> = (0..timeline.queues.len()).filter(on_gpu).collect();
        if of_gpu.len() < 2 {
            let (device, pattern) = self.device(index, device_window);
            let queues = of_gpu.into_iter().map(|queue| (queue, device.clone()));
            return GpuTotals {
                queues: queues.collect(),
                device,
                pattern,
            };
        }
        let ((device, pattern), mut queues) = parallel::both(
            || self.device(index, device_window),
            || queues.totals(index),
        );
        if let [(_, only)] = queues.as_mut_slice()
            && self.explainer.knows_all_work()
        {
            *only = device.clone();
        }
        GpuTotals {
            device,
            queues,
            pattern,
        }
    }

    /// Adds up the gaps of a device by cause, and finds their pattern (whether they come regularly).
    fn device(&mut self, index: u32, window: Interval) -> (Totals, Pattern) {
        let (explainer, threshold_ns, longest) =
            (self.explainer, self.threshold_ns.max(1), self.longest);
        let gpu = &explainer.timeline.gpus[index as usize];
        let works = &gpu.works;
        let (mut totals, mut sums) = (Totals::default(), std::mem::take(&mut self.sums));
        let (mut kept, mut below_count, mut below_ns) = (Vec::new(), 0, 0);
        let mut is_inside = |gap: &WorkGap| {
            let inside = gap.interval.intersection(window);
            let is_inside = inside.length_ns() >= threshold_ns;
            if is_inside && kept.len() <= MAX_KEPT_GAPS {
                kept.push(inside);
            } else if !is_inside && !inside.is_empty() {
                below_count += 1;
                below_ns += inside.length_ns();
            }
            is_inside
        };
        let sum = |(totals, sums): &mut (Totals, Sums), gap: &WorkGap, found: &Explanation| {
            let inside = gap.interval.intersection(window);
            if inside.length_ns() >= threshold_ns {
                totals.add_gap(explainer, gap.interval, found, index, window);
                self.add(sums, index, inside, found, *gap);
            }
        };
        let mut late_stretches = Vec::new();
        let mut add = |(more_totals, mut more): (Totals, Sums)| {
            totals.add_all(&more_totals);
            late_stretches.append(&mut more.late_stretches);
            sums.add_all(more, longest);
        };
        let mut explain = |all: bool| {
            let gaps = works.gaps().filter(|gap| is_inside(gap) || all);
            explainer.explain_each(index as usize, gaps, sum, &mut add)
        };
        let mut is_done = false;
        // The parts of all gaps are kept for other analyses, unless most are outside of the window.
        let work_window = gpu.work_window().unwrap_or_default();
        if window.length_ns() >= work_window.length_ns() / 2 {
            explainer.explained[index as usize].get_or_init(|| {
                is_done = true;
                explain(true)
            });
        }
        if !is_done {
            explain(false);
        }
        sums.below_count += below_count;
        sums.below_ns += below_ns;
        for (thread, late) in late_stretches {
            let (timeline, ranges) = (explainer.timeline, explainer.ranges());
            self.at_work.add(timeline, ranges, thread, late);
        }
        self.sums = sums;
        let pattern = match kept.len() {
            0..=MAX_KEPT_GAPS => Pattern::new(|| kept.iter().copied()),
            _ => Pattern::new(|| gaps(works, window, self.threshold_ns)),
        };
        (totals, pattern)
    }

    /// Adds the part of a gap that is `inside` the window to the sums, and keeps the gap if it is among the longest.
    fn add(
        &self,
        sums: &mut Sums,
        gpu: u32,
        inside: Interval,
        explanation: &Explanation,
        gap: WorkGap,
    ) {
        let duration_ns = inside.length_ns();
        sums.histogram.add(duration_ns);
        if explanation.waited {
            sums.serialised_count += 1;
            sums.serialised_ns = sums.serialised_ns.saturating_add(duration_ns);
        }
        if let Some(row) = explanation.submission {
            let (timeline, parts) = (self.explainer.timeline, &explanation.parts);
            (sums.submit_calls).add(timeline, &self.copies, row, parts, inside);
        }
        if let Some((late, thread)) = explanation.host {
            if let Some(thread) = thread {
                let late = late.intersection(inside);
                self.explainer.add_host(late, thread, &mut sums.host);
                let host_threads = self.explainer.host_threads;
                sums.outside.add(host_threads, late, thread);
                let parts = &explanation.parts;
                (sums.late).add(host_threads, parts, inside, thread.process);
                let late = parts.iter().filter(|part| part.cause == Cause::HostLate);
                let late = late.map(|part| part.interval().intersection(inside));
                let long = late.filter(|late| AtWork::takes(*late));
                (sums.late_stretches).extend(long.map(|late| (thread, late)));
            }
            if !thread.is_some_and(|thread| self.explainer.host_threads.knows(thread.process)) {
                for part in (explanation.parts.iter()).filter(|part| part.cause == Cause::HostLate)
                {
                    sums.add_without_calls(
                        self.explainer,
                        thread,
                        part.interval().intersection(inside),
                    );
                }
            }
        }
        if let Some((thread, building)) = explanation.building {
            sums.building.add(thread, building, inside);
        }
        if let Some(waiting) = &explanation.waiting {
            let waits = explanation.parts.iter();
            let waits = waits.filter(|part| part.cause == Cause::AfterHostWait);
            let inside = waits.map(|part| part.interval().intersection(inside).length_ns());
            sums.waits[waiting.held_up as usize].add_segment(&waiting.call, inside.sum());
        }
        for untimed in &explanation.untimed_functions {
            let ns = untimed.intersection(inside).length_ns();
            sums.untimed_host_function_ns = sums.untimed_host_function_ns.saturating_add(ns);
        }
        for (unknown, reason) in &explanation.unknown {
            let ns = unknown.intersection(inside).length_ns();
            sums.unknown.add(*reason, ns);
        }
        let long_gap = LongGap {
            duration_ns,
            start_ns: inside.start_ns,
            gpu,
            before: gap.before,
            after: gap.after,
        };
        sums.longest_gaps.add(long_gap, self.longest);
    }
}

impl Sums {
    /// Adds the sums of later gaps of the same device, but for stretches in which a thread was late.
    fn add_all(&mut self, later: Sums, longest: usize) {
        let add = |sum: &mut i64, ns: i64| *sum = sum.saturating_add(ns);
        self.histogram.add_all(&later.histogram);
        self.host.add_all(later.host);
        self.submit_calls.add_all(later.submit_calls);
        for (waits, later) in self.waits.iter_mut().zip(later.waits) {
            waits.add_all(later);
        }
        self.outside.append(later.outside);
        self.late.append(later.late);
        self.building.add_all(later.building);
        add(&mut self.unknown_host_ns, later.unknown_host_ns);
        add(&mut self.unknown_submitter_ns, later.unknown_submitter_ns);
        add(&mut self.told_by_code_ns, later.told_by_code_ns);
        add(
            &mut self.untimed_host_function_ns,
            later.untimed_host_function_ns,
        );
        self.unknown.add_all(&later.unknown);
        add(&mut self.serialised_ns, later.serialised_ns);
        self.serialised_count += later.serialised_count;
        self.longest_gaps.add_all(later.longest_gaps, longest);
    }

    /// Adds time of a late host of whose process the trace has no calls.
    fn add_without_calls(
        &mut self,
        explainer: &Explainer,
        thread: Option<HostThread>,
        late: Interval,
    ) {
        let late_ns = late.length_ns();
        let told_ns = thread.map_or(0, |thread| explainer.told_by_code_ns(thread, late));
        let add = |sum: &mut i64, ns: i64| *sum = sum.saturating_add(ns);
        add(&mut self.told_by_code_ns, told_ns);
        add(&mut self.unknown_host_ns, late_ns - told_ns);
        if thread.is_none() {
            add(&mut self.unknown_submitter_ns, late_ns);
        }
    }
}

impl Totals {
    /// Adds the part of an explained gap that is in `window`, with how certain its causes are.
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

/// A finder of gaps, which is made once and visits or describes many of them.
pub struct GapFinder<'a> {
    pub(crate) explainer: Explainer<'a>,
}

impl<'a> GapFinder<'a> {
    /// Prepares the descriptions of gaps of a timeline.
    pub fn new(timeline: &'a Timeline<'a>) -> GapFinder<'a> {
        GapFinder {
            explainer: Explainer::new(timeline),
        }
    }

    /// Returns the timeline whose gaps are found.
    pub fn timeline(&self) -> &'a Timeline<'a> {
        self.explainer.timeline
    }

    /// Visits the gaps of a device (an index of [`Timeline::gpus`]) in order of time, each with the parts that cover it. These
    /// are the gaps that [`idle_time`] adds up without a threshold over the device's whole work.
    pub fn each(&self, device: usize, mut visit: impl FnMut(Interval, &[GapPart])) {
        self.each_between(device, |gap, _, parts| visit(gap, parts));
    }

    /// Visits gaps as [`GapFinder::each`] does, and hands over the work before each gap and the work that ends it.
    pub fn each_between(&self, device: usize, visit: impl FnMut(Interval, [&Work; 2], &[GapPart])) {
        visit_gaps(&self.explainer, device, visit);
    }

    /// Describes the gap of a device (an index of [`Timeline::gpus`]) that begins at `start_ns`, as
    /// [`IdleTime::longest`] describes gaps. Returns `None` when no work of the device ends at that time, or none
    /// begins later.
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
    /// Adds what a thread did in `late` to the totals. Time outside of calls counts only where the trace has calls of
    /// the process.
    fn add_host(&self, late: Interval, thread: HostThread, totals: &mut HostTotals) {
        let mut outside_ns = late.length_ns();
        for segment in self.host_threads.segments(thread, late) {
            let ns = segment.interval.intersection(late).length_ns();
            totals.add_segment(&segment, ns);
            outside_ns -= ns;
        }
        if self.host_threads.knows(thread.process) {
            totals.add_outside(outside_ns);
        }
    }
}

impl LongGap {
    /// Explains the gap, and describes the part of it that is in `window`.
    fn describe(&self, explainer: &Explainer, window: Interval) -> Gap {
        let timeline = explainer.timeline;
        let works = &timeline.gpus[self.gpu as usize].works;
        let (before, after) = (
            &works.at(self.before as usize),
            &works.at(self.after as usize),
        );
        let gap = Interval::new(before.interval.end_ns, after.interval.start_ns);
        let mut explanation = Explanation::default();
        explainer.explain(Idle::Gpu, before, after, gap, &mut explanation);
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
            for other in explainer.host_threads.other_threads(thread) {
                for segment in explainer.host_threads.segments(other, late) {
                    let ns = segment.interval.intersection(late).length_ns();
                    others.add_segment(&segment, ns);
                }
            }
        }
        let tables = &timeline.trace.tables;
        let submission = Some(timeline.submission_of(after) as usize)
            .filter(|row| *row < timeline.submissions.len());
        let process_id = submission.map(|row| tables.submissions.process[row]);
        let thread = submission.and_then(|row| tables.submissions.thread.at(row));
        let host_thread = process_id.and_then(|process| HostThread::from_row(process, thread));
        Gap {
            device: self.gpu,
            start_ns: self.start_ns,
            duration_ns: self.duration_ns,
            cause,
            parts,
            before: WorkName::new(timeline, before),
            after: WorkName::new(timeline, after),
            process_id,
            thread,
            thread_name: host_thread.and_then(|thread| thread.name(&timeline.trace.manifest)),
            submission: submission.map(|row| tables.submissions.id[row]),
            submit_start_ns: submission.map(|row| tables.submissions.start_ns[row]),
            host_calls: host.into_rows(explainer.host_threads),
            other_threads: others.into_rows(explainer.host_threads),
            waited_for_queue: (explanation.waited_for)
                .map(|queue| timeline.queues[queue as usize].id),
        }
    }
}

impl WorkName {
    fn new(timeline: &Timeline, work: &Work) -> WorkName {
        let command_buffers = &timeline.trace.tables.command_buffers;
        let label = timeline.label_of(work);
        WorkName {
            name: timeline.name_of(work),
            label: label.and_then(|id| timeline.label_path(id)),
            command_buffer: (command_buffers.id.get(work.command_buffer as usize)).copied(),
            queue_id: timeline.queues[timeline.queue_of(work) as usize].id,
        }
    }
}
