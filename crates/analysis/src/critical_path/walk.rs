//! Walks over the work of devices for what started each piece. [`super`] says by which evidence.
//!
//! A timeline goes in, indexed once as a [`Graph`]; what computing waited for on a device, and the path that leads to a
//! piece of work, come out of a [`Walk`].

use super::{COMPUTE, KINDS, NAMES};
use crate::gaps::waits::WaitOrder;
use gapscope_timeline::host::{HostThread, WaitOutcome};
use gapscope_timeline::intervals::Interval;
use gapscope_timeline::thresholds::{CHANCE_SHARE, HANDOVER_NS, ROUND_TRIP_NS};
use gapscope_timeline::{Content, Timeline, Work};

/// Returns the place of a kind of work in [`NAMES`].
fn kind_of(content: Content) -> usize {
    let kind = KINDS.iter().position(|kind| *kind == content);
    kind.unwrap_or(COMPUTE)
}

/// So many pieces of work of a queue may run at once for the search to see past them.
const AT_ONCE: usize = 64;

/// A piece of work: its device, and its index there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct WorkIndex {
    pub(super) gpu: u32,
    at: u32,
}

/// The work by queue, for look-ups of what started a piece of work.
pub(super) struct Graph<'a> {
    timeline: &'a Timeline<'a>,
    order: &'a WaitOrder<'a>,
    /// The greatest clock error of the devices; 0 where none is known.
    error_ns: i64,
    /// The indices of the work of each queue of the timeline, in order of start.
    queues: Vec<Vec<u32>>,
    /// The number of transfers and pieces of communication.
    end_count: i64,
    /// These with their ends, in order of the ends; empty where one device worked.
    ends: Vec<(i64, WorkIndex)>,
}

/// A graph of work in a window.
pub(super) struct Walk<'g, 'a> {
    graph: &'g Graph<'a>,
    window: Interval,
    /// How long after an end work counts as started by that end without a recorded wait.
    inferred_within_ns: i64,
}

/// The work whose end started another piece of work.
struct Starter {
    place: WorkIndex,
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
pub(super) struct Waited {
    /// The sums of each of [`NAMES`]; for computing, of that on other devices.
    pub(super) kinds: [WaitedFor; NAMES.len()],
    /// The work that computes and ends last.
    pub(super) last: Option<WorkIndex>,
}

impl Waited {
    /// Returns the sums over all kinds of work.
    pub(super) fn all(&self) -> WaitedFor {
        (self.kinds.iter()).fold(WaitedFor::default(), |sum, kind| WaitedFor {
            total_ns: sum.total_ns.saturating_add(kind.total_ns),
            inferred_ns: sum.inferred_ns.saturating_add(kind.inferred_ns),
            is_remote: sum.is_remote || kind.is_remote,
            count: sum.count + kind.count,
        })
    }
}

#[derive(Debug, Clone, Copy, Default)]
pub(super) struct WaitedFor {
    pub(super) total_ns: i64,
    pub(super) inferred_ns: i64,
    /// True where some of such work was another device's.
    pub(super) is_remote: bool,
    pub(super) count: u64,
}

/// A path's time in each of [`NAMES`] on one queue.
pub(super) type Spent = [i64; NAMES.len()];

impl<'a> Graph<'a> {
    pub(super) fn new(
        timeline: &'a Timeline<'a>,
        order: &'a WaitOrder<'a>,
        several: bool,
    ) -> Graph<'a> {
        let mut queues = vec![Vec::new(); timeline.queues.len()];
        let (mut ends, mut end_count) = (Vec::new(), 0);
        for (device, gpu) in timeline.gpus.iter().zip(0u32..) {
            for (work, at) in device.works.iter().zip(0u32..) {
                queues[timeline.queue_of(&work) as usize].push(at);
                let is_end = kind_of(timeline.content(&work)) != COMPUTE;
                end_count += i64::from(is_end);
                if several && is_end {
                    ends.push((work.interval.end_ns, WorkIndex { gpu, at }));
                }
            }
        }
        ends.sort_unstable_by_key(|(end_ns, _)| *end_ns);
        let errors = (0..timeline.gpus.len()).filter_map(|gpu| timeline.clock_error_ns(gpu));
        Graph {
            timeline,
            order,
            // Where no error is known, ends and starts are compared as the file has them.
            error_ns: errors.max().unwrap_or_default().max(0),
            queues,
            end_count,
            ends,
        }
    }

    pub(super) fn work(&self, place: WorkIndex) -> Work {
        let gpu = &self.timeline.gpus[place.gpu as usize];
        gpu.works.at(place.at as usize)
    }

    fn kind(&self, work: &Work) -> usize {
        kind_of(self.timeline.content(work))
    }

    pub(super) fn within(&self, window: Interval) -> Walk<'_, 'a> {
        let apart_ns = window.length_ns() / self.end_count.max(1);
        Walk {
            graph: self,
            window,
            inferred_within_ns: HANDOVER_NS.min((CHANCE_SHARE * apart_ns as f64) as i64),
        }
    }

    /// Returns the last work of a queue that started before a piece of work and had ended at `until_ns`.
    fn ended_by(
        &self,
        queue: u32,
        place: WorkIndex,
        work: &Work,
        until_ns: i64,
    ) -> Option<(WorkIndex, Work)> {
        let all = &self.queues[queue as usize];
        let gpu = self.timeline.queues[queue as usize].gpu;
        let start_ns = |at: u32| self.work(WorkIndex { gpu, at }).interval.start_ns;
        let before = match gpu == place.gpu {
            true => all.partition_point(|other| *other < place.at),
            false => all.partition_point(|other| start_ns(*other) < work.interval.start_ns),
        };
        let places = all[..before].iter().rev().take(AT_ONCE);
        let mut works = places.map(|at| {
            let place = WorkIndex { gpu, at: *at };
            (place, self.work(place))
        });
        works.find(|(_, work)| work.interval.end_ns <= until_ns)
    }

    /// Returns the work that ended last, in an interval that includes its end, and started before a piece of work: work of
    /// the same device, or transfers and communication of another.
    fn last_ended(
        &self,
        place: WorkIndex,
        work: &Work,
        within: Interval,
    ) -> Option<(WorkIndex, Work)> {
        let queues = (0..self.queues.len() as u32)
            .filter(|queue| self.timeline.queues[*queue as usize].gpu == place.gpu);
        let here = queues.filter_map(|queue| self.ended_by(queue, place, work, within.end_ns));
        // Clocks of devices may differ by their error.
        let until_ns = within.end_ns.saturating_add(self.error_ns);
        let until = self.ends.partition_point(|(end_ns, _)| *end_ns <= until_ns);
        let elsewhere = self.ends[..until].iter().rev().take(AT_ONCE);
        let elsewhere = (elsewhere.take_while(|(end_ns, _)| *end_ns >= within.start_ns))
            .map(|(_, place)| (*place, self.work(*place)))
            .find(|(other, ended)| {
                other.gpu != place.gpu && ended.interval.start_ns < work.interval.start_ns
            });
        here.chain(elsewhere)
            .filter(|(_, work)| work.interval.end_ns >= within.start_ns)
            .max_by_key(|(_, work)| work.interval.end_ns)
    }
}

impl Walk<'_, '_> {
    /// Adds up the times in which computing on a device waited for other work.
    pub(super) fn waits(&self, gpu: u32) -> Waited {
        let mut waited = Waited::default();
        let mut computed_until_ns = i64::MIN;
        let works = &self.graph.timeline.gpus[gpu as usize].works;
        for (work, at) in works.iter().zip(0u32..) {
            let interval = work.interval;
            if self.graph.kind(&work) != COMPUTE || interval.start_ns >= self.window.end_ns {
                continue;
            }
            let place = WorkIndex { gpu, at };
            if computed_until_ns > i64::MIN {
                let gap = Interval::new(computed_until_ns, interval.start_ns);
                let gap = gap.intersection(self.window);
                if !gap.is_empty() {
                    self.add_wait(place, &work, gap, &mut waited);
                }
            }
            if interval.end_ns >= computed_until_ns {
                computed_until_ns = interval.end_ns;
                waited.last = Some(place);
            }
        }
        waited
    }

    /// Adds a gap between work that computes, where the end of other work ended the gap. The gap may hold time in which
    /// nothing ran: the verdict believes no more of the sum than the time in which such work ran alone, or in which the
    /// device idled for work of another.
    fn add_wait(&self, place: WorkIndex, work: &Work, gap: Interval, waited: &mut Waited) {
        let Some(starter) = self.starter(place, work) else {
            return;
        };
        let kind = self.graph.kind(&starter.work);
        let is_remote = starter.place.gpu != place.gpu;
        if starter.evidence == Evidence::Before || kind == COMPUTE && !is_remote {
            return;
        }
        let sum = &mut waited.kinds[kind];
        let gap_ns = gap.length_ns();
        sum.total_ns = sum.total_ns.saturating_add(gap_ns);
        if starter.evidence == Evidence::Inferred {
            sum.inferred_ns = sum.inferred_ns.saturating_add(gap_ns);
        }
        sum.is_remote |= is_remote;
        sum.count += 1;
    }

    /// Returns the time in each kind of work, by queue, on the path that leads to a piece of work.
    pub(super) fn path(&self, last: WorkIndex) -> Vec<Spent> {
        let graph = self.graph;
        let mut spent = vec![Spent::default(); graph.queues.len()];
        let (mut place, mut work) = (last, graph.work(last));
        let mut until_ns = work.interval.end_ns;
        loop {
            let ran = Interval::new(work.interval.start_ns, until_ns).intersection(self.window);
            let queue = graph.timeline.queue_of(&work) as usize;
            let sum_ns = &mut spent[queue][graph.kind(&work)];
            *sum_ns = sum_ns.saturating_add(ran.length_ns());
            if work.interval.start_ns <= self.window.start_ns {
                return spent;
            }
            let before = (self.starter(place, &work)).or_else(|| self.any_before(place, &work));
            let Some(before) = before else {
                return spent;
            };
            // Clocks of devices may differ: an end counts up to the start that it caused.
            until_ns = before.work.interval.end_ns.min(work.interval.start_ns);
            (place, work) = (before.place, before.work);
        }
    }

    /// Returns the work whose end started a piece of work, or the last before it that its own queue's order or a
    /// recorded wait names.
    fn starter(&self, place: WorkIndex, work: &Work) -> Option<Starter> {
        let graph = self.graph;
        let start_ns = work.interval.start_ns;
        let queue = graph.timeline.queue_of(work);
        let row = graph.timeline.submission_of(work);
        let submission = graph.timeline.submissions.get(row as usize);
        let awaited = submission.and_then(|times| {
            let begun = times.first_start_ns < start_ns;
            let until_ns = match graph.ends.is_empty() {
                true => start_ns,
                // The work may be another device's, on another clock.
                false => start_ns.saturating_add(graph.error_ns),
            };
            let last = graph.order.waits(row, until_ns, begun).last?;
            graph.ended_by(last.queue, place, work, last.end_ns)
        });
        let own = graph.ended_by(queue, place, work, start_ns);
        let ordered = own.into_iter().chain(awaited);
        let ordered = ordered.max_by_key(|(_, work)| work.interval.end_ns);
        let starter = |(place, work), evidence| Starter {
            place,
            work,
            evidence,
        };
        let ended_ns = ordered.map_or(i64::MIN, |(_, work)| work.interval.end_ns);
        let calls_ns = &graph.timeline.trace.tables.submissions.start_ns;
        let call_ns = calls_ns.get(row as usize).copied();
        // A recorded wait that ended after the call held up the work, however long the handover took.
        let waited_last = awaited.is_some_and(|(_, work)| work.interval.end_ns == ended_ns)
            && call_ns.is_some_and(|call_ns| call_ns <= ended_ns);
        if waited_last || ended_ns >= start_ns.saturating_sub(HANDOVER_NS) {
            return ordered.map(|ordered| starter(ordered, Evidence::Recorded));
        }
        let by_times = (self.handed_over(place, work, call_ns))
            .or_else(|| self.host_waited(place, work, row, ended_ns));
        by_times
            .map(|other| starter(other, Evidence::Inferred))
            .or_else(|| ordered.map(|ordered| starter(ordered, Evidence::Before)))
    }

    /// Returns the work of another queue that ended right before a piece of work started, where that was submitted
    /// already.
    fn handed_over(
        &self,
        place: WorkIndex,
        work: &Work,
        call_ns: Option<i64>,
    ) -> Option<(WorkIndex, Work)> {
        let start_ns = work.interval.start_ns;
        let from_ns = start_ns.saturating_sub(self.inferred_within_ns);
        let from_ns = from_ns.max(call_ns.unwrap_or(i64::MIN));
        let within = Interval::new(from_ns, start_ns);
        self.graph.last_ended(place, work, within)
    }

    /// Returns the work that ended as the host's wait for it returned, where the host made the submission of a row
    /// right after that wait. `ended_ns` is the end of the work before it.
    fn host_waited(
        &self,
        place: WorkIndex,
        work: &Work,
        row: u32,
        ended_ns: i64,
    ) -> Option<(WorkIndex, Work)> {
        let graph = self.graph;
        let table = &graph.timeline.trace.tables.submissions;
        let index = row as usize;
        let call_ns = *table.start_ns.get(index)?;
        if call_ns <= ended_ns {
            return None;
        }
        let thread = HostThread::from_row(table.process[index], table.thread.at(index))?;
        let before = Interval::new(call_ns.saturating_sub(ROUND_TRIP_NS), call_ns);
        let calls = graph.timeline.host_threads().segments(thread, before);
        let wait = calls.iter().rev().find(|call| {
            call.waits
                && call.is_last
                && call.outcome != WaitOutcome::NotDone
                && call.interval.end_ns <= call_ns
        })?;
        let from_ns = wait.interval.end_ns.saturating_sub(HANDOVER_NS);
        let from_ns = from_ns.saturating_sub(graph.error_ns).max(wait.since_ns);
        let until_ns = wait.interval.end_ns.saturating_add(graph.error_ns);
        graph.last_ended(place, work, Interval::new(from_ns.max(ended_ns), until_ns))
    }

    /// Returns the work of the device that ended last before a piece of work started, whatever the reason.
    fn any_before(&self, place: WorkIndex, work: &Work) -> Option<Starter> {
        let until = Interval::new(i64::MIN, work.interval.start_ns);
        let (place, work) = self.graph.last_ended(place, work, until)?;
        let evidence = Evidence::Before;
        Some(Starter {
            place,
            work,
            evidence,
        })
    }
}
