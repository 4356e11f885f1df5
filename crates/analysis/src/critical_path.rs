//! Follows the critical path of a device (the chain of work of which each piece started as the one before it ended)
//! through transfers and communication that run beside computing.
//!
//! Busy time counts a moment as computing wherever anything computes. Where kernels wait for a copy engine that is never
//! idle, or for a stream of collectives, the path runs through these however much computes beside them: faster kernels win
//! nothing. Two figures tell such a device apart. `waited_ns` is the time in which nothing computed, and the next work that
//! computed started as a transfer (or communication) ended; the path's time in such work leaves to all else what
//! faster kernels could win at most.
//!
//! A piece of work is started by the last end of these:
//!
//! | end of | where from |
//! |---|---|
//! | the work before it on its queue | the order of a queue |
//! | work that its submission waits for | recorded dependencies ([`WaitOrder`]) |
//! | work of another queue, at most [`HANDOVER_NS`] earlier, while the submission stood ready | the times alone |
//! | work for which the host waited right before the submission | the times alone |
//!
//! Where only times show it, chance is bounded by [`CHANCE_SHARE`], and the findings say that they are inferred.
//!
//! What this cannot know: what a piece of work waits for in its middle, and which work of other devices it waits for.
//!
//! The search costs a walk over the work, and is made only for devices on which transfers or communication
//! were exposed for [`SLACK_SHARE`] of the time. Input is a timeline with the busy time of its devices; output are
//! the [`CriticalPath`]s, from which the verdict decides.

use crate::gaps::waits::WaitOrder;
use gapscope_timeline::busy::DeviceBusy;
use gapscope_timeline::host::{HostThread, WaitOutcome};
use gapscope_timeline::intervals::Interval;
use gapscope_timeline::quantity::ratio;
use gapscope_timeline::thresholds::{CHANCE_SHARE, HANDOVER_NS, ROUND_TRIP_NS, SLACK_SHARE};
use gapscope_timeline::vocabulary::Vocabulary;
use gapscope_timeline::{Content, Timeline, Work, Works};
use gapscope_trace::ids::QueueId;
use schemars::JsonSchema;
use serde::Serialize;

/// The critical path of a device, as far as it runs through one kind of work that computing waited for.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct CriticalPath {
    /// Index of the device in the findings.
    pub device: u32,
    /// The kind of work: `communication` or `transfer`.
    pub what: &'static str,
    /// Id of the queue that ran most of it.
    pub queue_id: QueueId,
    /// Name of that queue.
    pub queue: String,
    /// The path's time in such work.
    pub path_ns: i64,
    /// Length of the gaps between work that computes which ended as such work did. Time in which nothing ran may be part
    /// of the gaps.
    pub waited_ns: i64,
    /// Part of `waited_ns` for which no recorded order but only times show that computing waited.
    pub inferred_ns: i64,
    /// How often computing waited so.
    pub wait_count: u64,
    /// Length of the judged window of the device.
    pub window_ns: i64,
}

/// The kinds of work that a path may run through besides computing, with their names in JSON.
const KINDS: [(Content, &str); 2] = [
    (Content::Communication, "communication"),
    (Content::Transfer, "transfer"),
];

/// Returns the paths through transfers and communication of each device on which these were exposed for long enough.
pub(crate) fn critical_paths(
    timeline: &Timeline,
    devices: &[DeviceBusy],
    window: Interval,
) -> Vec<CriticalPath> {
    let exposed = devices.iter().filter(|device| {
        device.analysed.is_some_and(|share| {
            let parts = share.parts;
            let least_ns = parts.communication_ns.max(parts.transfer_ns);
            parts.compute_ns > 0 && ratio(least_ns, share.window_ns) >= SLACK_SHARE
        })
    });
    let exposed: Vec<&DeviceBusy> = exposed.collect();
    if exposed.is_empty() {
        return Vec::new();
    }
    let order = WaitOrder::new(timeline);
    let vocabulary = Vocabulary::new(&timeline.trace.manifest);
    let mut paths = Vec::new();
    for device in exposed {
        let window = device.analysed.map_or(window, |share| share.window);
        let graph = Graph::new(timeline, &order, device.index, window);
        let waits = graph.waits();
        let Some(last) = waits.last else { continue };
        let spent = graph.path(last);
        for (kind, (_, what)) in KINDS.iter().enumerate() {
            let waited = waits.kinds[kind];
            let by_queue = spent.iter().map(|queue| queue[kind]);
            let most = by_queue.clone().enumerate().max_by_key(|(_, ns)| *ns);
            let Some((queue, _)) = most.filter(|(_, ns)| *ns > 0 && waited.total_ns > 0) else {
                continue;
            };
            let queue_id = timeline.queues[queue].id;
            paths.push(CriticalPath {
                device: device.index,
                what,
                queue_id,
                queue: vocabulary.queue(queue_id),
                path_ns: by_queue.sum(),
                waited_ns: waited.total_ns,
                inferred_ns: waited.inferred_ns,
                wait_count: waited.count,
                window_ns: window.length_ns(),
            });
        }
    }
    paths
}

/// Returns the place of a kind of work in [`KINDS`], or `None` for work that computes.
fn kind_of(content: Content) -> Option<usize> {
    KINDS.iter().position(|(kind, _)| *kind == content)
}

/// The work of a device by queue, for look-ups of what started a piece of work.
struct Graph<'a> {
    timeline: &'a Timeline<'a>,
    order: &'a WaitOrder<'a>,
    gpu: u32,
    works: &'a Works,
    window: Interval,
    /// The clock's error; 0 where it is not known.
    error_ns: i64,
    /// How long after an end work counts as started by that end without a recorded wait.
    inferred_within_ns: i64,
    /// The indices of the work of each queue of the timeline, in order of start.
    queues: Vec<Vec<u32>>,
}

/// The work whose end started another piece of work.
struct Starter {
    at: u32,
    work: Work,
    evidence: Evidence,
}

/// How it is known that the end of a piece of work started another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Evidence {
    /// The order of a queue or a recorded wait, with no more time between than a handover takes.
    Recorded,
    /// Times alone.
    Inferred,
    /// The work before, although something else held up the start after it.
    Before,
}

/// What computing waited for.
#[derive(Default)]
struct Waited {
    /// The sums of each of [`KINDS`].
    kinds: [WaitedFor; KINDS.len()],
    /// The index of the work that computes and ends last.
    last: Option<u32>,
}

#[derive(Debug, Clone, Copy, Default)]
struct WaitedFor {
    total_ns: i64,
    inferred_ns: i64,
    count: u64,
}

/// The path's time in each of [`KINDS`] on one queue.
type Spent = [i64; KINDS.len()];

impl<'a> Graph<'a> {
    fn new(
        timeline: &'a Timeline<'a>,
        order: &'a WaitOrder<'a>,
        gpu: u32,
        window: Interval,
    ) -> Graph<'a> {
        let works = &timeline.gpus[gpu as usize].works;
        let mut queues = vec![Vec::new(); timeline.queues.len()];
        let mut ends = 0i64;
        for (at, work) in works.iter().enumerate() {
            queues[timeline.queue_of(&work) as usize].push(at as u32);
            ends += i64::from(kind_of(timeline.content(&work)).is_some());
        }
        let apart_ns = window.length_ns() / ends.max(1);
        Graph {
            timeline,
            order,
            gpu,
            works,
            window,
            error_ns: timeline.clock_error_ns(gpu as usize).unwrap_or(0).max(0),
            inferred_within_ns: HANDOVER_NS.min((CHANCE_SHARE * apart_ns as f64) as i64),
            queues,
        }
    }

    /// Adds up the times in which computing waited for other work.
    fn waits(&self) -> Waited {
        let mut waited = Waited::default();
        let mut computed_until_ns = i64::MIN;
        for (at, work) in self.works.iter().enumerate() {
            let interval = work.interval;
            if kind_of(self.timeline.content(&work)).is_some()
                || interval.start_ns >= self.window.end_ns
            {
                continue;
            }
            if computed_until_ns > i64::MIN {
                let gap = Interval::new(computed_until_ns, interval.start_ns);
                let gap = gap.intersection(self.window);
                if !gap.is_empty() {
                    self.add_wait(at as u32, &work, gap, &mut waited);
                }
            }
            if interval.end_ns >= computed_until_ns {
                computed_until_ns = interval.end_ns;
                waited.last = Some(at as u32);
            }
        }
        waited
    }

    /// Adds a gap between work that computes, where the end of other work ended the gap. The gap may hold time in which
    /// nothing ran: the verdict believes no more of the sum than the time in which such work ran alone.
    fn add_wait(&self, at: u32, work: &Work, gap: Interval, waited: &mut Waited) {
        let Some(starter) = self.starter(at, work) else {
            return;
        };
        let kind = kind_of(self.timeline.content(&starter.work));
        let (Some(kind), true) = (kind, starter.evidence != Evidence::Before) else {
            return;
        };
        let sum = &mut waited.kinds[kind];
        sum.total_ns = sum.total_ns.saturating_add(gap.length_ns());
        if starter.evidence == Evidence::Inferred {
            sum.inferred_ns = sum.inferred_ns.saturating_add(gap.length_ns());
        }
        sum.count += 1;
    }

    /// Returns the time in each kind of work, by queue, on the path that leads to the work at an index.
    fn path(&self, last: u32) -> Vec<Spent> {
        let mut spent = vec![Spent::default(); self.timeline.queues.len()];
        let (mut at, mut work) = (last, self.works.at(last as usize));
        let mut until_ns = work.interval.end_ns;
        loop {
            let ran = Interval::new(work.interval.start_ns, until_ns).intersection(self.window);
            if let Some(kind) = kind_of(self.timeline.content(&work)) {
                let sum_ns = &mut spent[self.timeline.queue_of(&work) as usize][kind];
                *sum_ns = sum_ns.saturating_add(ran.length_ns());
            }
            if work.interval.start_ns <= self.window.start_ns {
                return spent;
            }
            let before = self
                .starter(at, &work)
                .or_else(|| self.any_before(at, &work));
            let Some(before) = before else {
                return spent;
            };
            (at, work) = (before.at, before.work);
            until_ns = work.interval.end_ns;
        }
    }

    /// Returns the work whose end started the work at an index, or the last before it that its own queue's order or a
    /// recorded wait names.
    fn starter(&self, at: u32, work: &Work) -> Option<Starter> {
        let start_ns = work.interval.start_ns;
        let queue = self.timeline.queue_of(work);
        let row = self.timeline.submission_of(work);
        let submission = self.timeline.submissions.get(row as usize);
        let awaited = submission.and_then(|times| {
            let begun = times.first_start_ns < start_ns;
            let last = self.order.waits(row, start_ns, begun).last?;
            let is_here = self.timeline.queues[last.queue as usize].gpu == self.gpu;
            is_here.then(|| self.ended_by(last.queue, at, last.end_ns))?
        });
        let own = self.ended_by(queue, at, start_ns);
        let ordered = own.into_iter().chain(awaited);
        let ordered = ordered.max_by_key(|(_, work)| work.interval.end_ns);
        let starter = |(at, work), evidence| Starter { at, work, evidence };
        let ended_ns = ordered.map_or(i64::MIN, |(_, work)| work.interval.end_ns);
        let calls_ns = &self.timeline.trace.tables.submissions.start_ns;
        let call_ns = calls_ns.get(row as usize).copied();
        // A recorded wait that ended after the call held up the work, however long the handover took.
        let waited_last = awaited.is_some_and(|(_, work)| work.interval.end_ns == ended_ns)
            && call_ns.is_some_and(|call_ns| call_ns <= ended_ns);
        if waited_last || ended_ns >= start_ns.saturating_sub(HANDOVER_NS) {
            return ordered.map(|ordered| starter(ordered, Evidence::Recorded));
        }
        let by_times =
            (self.handed_over(at, work, call_ns)).or_else(|| self.host_waited(at, row, ended_ns));
        by_times
            .map(|other| starter(other, Evidence::Inferred))
            .or_else(|| ordered.map(|ordered| starter(ordered, Evidence::Before)))
    }

    /// Returns the work of another queue that ended right before the work at an index started, where that was
    /// submitted already.
    fn handed_over(&self, at: u32, work: &Work, call_ns: Option<i64>) -> Option<(u32, Work)> {
        let start_ns = work.interval.start_ns;
        let from_ns = start_ns.saturating_sub(self.inferred_within_ns);
        let from_ns = from_ns.max(call_ns.unwrap_or(i64::MIN));
        self.last_ended(at, Interval::new(from_ns, start_ns))
    }

    /// Returns the work that ended as the host's wait for it returned, where the host made the submission of a row
    /// right after that wait. `ended_ns` is the end of the work before it.
    fn host_waited(&self, at: u32, row: u32, ended_ns: i64) -> Option<(u32, Work)> {
        let table = &self.timeline.trace.tables.submissions;
        let index = row as usize;
        let call_ns = *table.start_ns.get(index)?;
        if call_ns <= ended_ns {
            return None;
        }
        let thread = HostThread::from_row(table.process[index], table.thread.at(index))?;
        let before = Interval::new(call_ns.saturating_sub(ROUND_TRIP_NS), call_ns);
        let calls = self.timeline.host_threads().segments(thread, before);
        let wait = calls.iter().rev().find(|call| {
            call.waits
                && call.is_last
                && call.outcome != WaitOutcome::NotDone
                && call.interval.end_ns <= call_ns
        })?;
        let from_ns = wait.interval.end_ns.saturating_sub(HANDOVER_NS);
        let from_ns = from_ns.saturating_sub(self.error_ns).max(wait.since_ns);
        let until_ns = wait.interval.end_ns.saturating_add(self.error_ns);
        self.last_ended(at, Interval::new(from_ns.max(ended_ns), until_ns))
    }

    /// Returns the work before an index that ended last of all queues, in an interval that includes its end.
    fn last_ended(&self, at: u32, within: Interval) -> Option<(u32, Work)> {
        let queues = 0..self.queues.len() as u32;
        let ended = queues.filter_map(|queue| self.ended_by(queue, at, within.end_ns));
        ended
            .filter(|(_, work)| work.interval.end_ns >= within.start_ns)
            .max_by_key(|(_, work)| work.interval.end_ns)
    }

    /// Returns the work that ended last before the work at an index started, whatever the reason.
    fn any_before(&self, at: u32, work: &Work) -> Option<Starter> {
        let until = Interval::new(i64::MIN, work.interval.start_ns);
        let (at, work) = self.last_ended(at, until)?;
        let evidence = Evidence::Before;
        Some(Starter { at, work, evidence })
    }

    /// Returns the last work of a queue that started before the work at an index and had ended at `until_ns`.
    fn ended_by(&self, queue: u32, at: u32, until_ns: i64) -> Option<(u32, Work)> {
        /// So many pieces of work of a queue may run at once for the search to see past them.
        const AT_ONCE: usize = 64;
        let all = &self.queues[queue as usize];
        let before = &all[..all.partition_point(|other| *other < at)];
        let works = before.iter().rev().take(AT_ONCE);
        let mut works = works.map(|at| (*at, self.works.at(*at as usize)));
        works.find(|(_, work)| work.interval.end_ns <= until_ns)
    }
}
