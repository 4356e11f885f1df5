//! Walks over the work of devices for what started each piece. [`super`] says by which evidence.
//!
//! A timeline goes in, indexed once as a [`Graph`]; what computing waited for on a device, and the path that leads to a
//! piece of work, come out of a [`Walk`].

use super::parts::PathParts;
use super::peers::{Peers, WorkIndex};
use super::{COMPUTE, KINDS, NAMES};
use crate::gaps::Side;
use crate::gaps::waits::WaitOrder;
use gapscope_timeline::host::{HostThread, WaitOutcome};
use gapscope_timeline::intervals::Interval;
use gapscope_timeline::quantity::ratio;
use gapscope_timeline::thresholds::{ALONE_SHARE, CHANCE_SHARE, HANDOVER_NS, ROUND_TRIP_NS};
use gapscope_timeline::{Content, Timeline, Work};

/// Returns the place of a kind of work in [`NAMES`].
fn kind_of(content: Content) -> usize {
    let kind = KINDS.iter().position(|kind| *kind == content);
    kind.unwrap_or(COMPUTE)
}

/// So many pieces of work of a queue may run at once for the search to see past them.
const AT_ONCE: usize = 64;

/// The work by queue, for look-ups of what started a piece of work.
pub(super) struct Graph<'a> {
    timeline: &'a Timeline<'a>,
    order: &'a WaitOrder<'a>,
    /// The kernels that waited for another device to come to their collective or message; none where one device worked.
    peers: Peers,
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

/// How long before a submission the host's wait may have returned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Since {
    /// So long that the submission belongs to the wait's round trip.
    RoundTrip,
    /// Any time, which the host then spent on something else.
    AnyTime,
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

impl WaitedFor {
    pub(super) fn add(&mut self, wait: &Wait) {
        let ns = wait.interval.length_ns();
        if ns <= 0 {
            return;
        }
        self.total_ns = self.total_ns.saturating_add(ns);
        if wait.is_inferred {
            self.inferred_ns = self.inferred_ns.saturating_add(ns);
        }
        self.is_remote |= wait.is_remote;
        self.count += 1;
    }
}

/// A time in which computing waited for other work.
pub(crate) struct Wait {
    /// The index in [`NAMES`] of what it waited for.
    pub(crate) kind: usize,
    pub(crate) interval: Interval,
    /// True where only times show this.
    pub(crate) is_inferred: bool,
    /// True where another device ran what it waited for.
    pub(crate) is_remote: bool,
    /// The work that waited.
    pub(crate) after: Work,
}

/// A path's time in each of [`NAMES`] on one queue.
pub(super) type Spent = [i64; NAMES.len()];

/// The time of a path.
pub(super) struct Path {
    /// The time in work, by the index of the queue.
    pub(super) spent: Vec<Spent>,
    /// The time between pieces of work, by the index of the device that ran the later one.
    pub(super) idle_ns: Vec<i64>,
}

impl Path {
    /// Returns the time on a device.
    pub(super) fn on_device(&self, timeline: &Timeline, device: u32) -> PathParts {
        let mut parts = PathParts::default();
        let queues = timeline.queues.iter().zip(&self.spent);
        for (_, spent) in queues.filter(|(queue, _)| queue.gpu == device) {
            for (kind, ns) in spent.iter().enumerate() {
                let content = KINDS.get(kind).copied();
                parts.add_work(content.unwrap_or(Content::Compute), *ns);
            }
        }
        parts.add_idle(Side::Unknown, self.idle_ns[device as usize]);
        parts
    }
}

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
        // Where no error is known, ends and starts are compared as the file has them.
        let error_ns = errors.max().unwrap_or_default().max(0);
        Graph {
            timeline,
            order,
            peers: match several {
                true => Peers::new(timeline, error_ns),
                false => Peers::default(),
            },
            error_ns,
            queues,
            end_count,
            ends,
        }
    }

    /// Returns true where kernels of several devices belong to one collective or message.
    pub(super) fn has_operations(&self) -> bool {
        self.peers.has_operations()
    }

    pub(super) fn work(&self, place: WorkIndex) -> Work {
        let gpu = &self.timeline.gpus[place.gpu as usize];
        gpu.works.at(place.at as usize)
    }

    pub(super) fn kind(&self, work: &Work) -> usize {
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

    /// Returns the work that ended last, in an interval that includes its end, and started before a piece of work: work of
    /// any device and kind, as a host waits for it.
    fn last_ended_anywhere(
        &self,
        place: WorkIndex,
        work: &Work,
        within: Interval,
    ) -> Option<(WorkIndex, Work)> {
        let queues = 0..self.queues.len() as u32;
        queues
            .filter_map(|queue| self.ended_by(queue, place, work, within.end_ns))
            .filter(|(_, work)| work.interval.end_ns >= within.start_ns)
            .max_by_key(|(_, work)| work.interval.end_ns)
    }
}

impl Walk<'_, '_> {
    /// Visits the times in which computing on a device waited for other work, in order of time. Returns the work that computes
    /// and ends last.
    pub(super) fn each_wait(&self, gpu: u32, mut visit: impl FnMut(&Wait)) -> Option<WorkIndex> {
        let (mut last, mut computed_until_ns) = (None, i64::MIN);
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
                    self.wait(place, &work, gap, &mut visit);
                }
            }
            if interval.end_ns >= computed_until_ns {
                computed_until_ns = interval.end_ns;
                last = Some(place);
            }
        }
        last
    }

    /// Visits the times in which kernels of a device waited for another device while nothing computed, each with the kernel.
    pub(super) fn each_peer_wait(&self, gpu: u32, mut visit: impl FnMut(&Work, Interval)) {
        let graph = self.graph;
        let mut covered_until_ns = i64::MIN;
        let mut waits = (graph.peers.waits(gpu).iter()).filter_map(|(wait, at)| {
            let apart = Interval::new(wait.start_ns.max(covered_until_ns), wait.end_ns);
            let apart = apart.intersection(self.window);
            covered_until_ns = covered_until_ns.max(wait.end_ns);
            (!apart.is_empty()).then_some((apart, *at))
        });
        let mut visit = |at: u32, wait: Interval| {
            if !wait.is_empty() {
                visit(&graph.work(WorkIndex { gpu, at }), wait);
            }
        };
        let mut computed_until_ns = i64::MIN;
        let mut next = waits.next();
        for work in &graph.timeline.gpus[gpu as usize].works {
            if next.is_none() {
                return;
            }
            let start_ns = work.interval.start_ns.max(computed_until_ns);
            let computed = Interval::new(start_ns, work.interval.end_ns);
            if graph.kind(&work) != COMPUTE || computed.is_empty() {
                continue;
            }
            computed_until_ns = computed.end_ns;
            while let Some((wait, at)) = next.filter(|(wait, _)| wait.start_ns < computed.end_ns) {
                visit(
                    at,
                    Interval::new(wait.start_ns, wait.end_ns.min(computed.start_ns)),
                );
                if wait.end_ns > computed.end_ns {
                    let rest = Interval::new(wait.start_ns.max(computed.end_ns), wait.end_ns);
                    next = Some((rest, at));
                    break;
                }
                next = waits.next();
            }
        }
        while let Some((wait, at)) = next {
            visit(at, wait);
            next = waits.next();
        }
    }

    /// Visits a gap between work that computes, where the end of other work ended the gap. The gap may hold time in which
    /// nothing ran: the verdict believes no more of the sum than the time in which such work ran alone, or in which the
    /// device idled for work of another. Up to when the last device came to that work, the gap counts for what that device
    /// waited for.
    fn wait(&self, place: WorkIndex, work: &Work, gap: Interval, visit: &mut impl FnMut(&Wait)) {
        let Some(starter) = self.starter(place, work) else {
            return;
        };
        if starter.evidence == Evidence::Before {
            return;
        }
        let wait = |kind: usize, interval, is_inferred, is_remote| Wait {
            kind,
            interval,
            is_inferred,
            is_remote,
            after: *work,
        };
        let kind = self.graph.kind(&starter.work);
        let is_remote = starter.place.gpu != place.gpu;
        let peer = self.graph.peers.awaited(starter.place);
        let Some((peer, came)) = peer.map(|peer| (peer, self.graph.work(peer))) else {
            if kind != COMPUTE || is_remote {
                let is_inferred = starter.evidence == Evidence::Inferred;
                visit(&wait(kind, gap, is_inferred, is_remote));
            }
            return;
        };
        let came_ns = came.interval.start_ns.clamp(gap.start_ns, gap.end_ns);
        let earlier = self.starter(peer, &came);
        if let Some(earlier) = earlier.filter(|earlier| earlier.evidence != Evidence::Before) {
            let kind = self.graph.kind(&earlier.work);
            visit(&wait(
                kind,
                Interval::new(gap.start_ns, came_ns),
                true,
                true,
            ));
        }
        // Only times show which kernel of another device belongs to this one.
        visit(&wait(
            kind,
            Interval::new(came_ns, gap.end_ns),
            true,
            is_remote,
        ));
    }

    /// Returns the work before a piece of work on the path. Where the host made the submission some time after a wait, the
    /// time since the wait is the host's, and the path goes on with the work that the host had waited for.
    pub(super) fn before(&self, place: WorkIndex, work: &Work) -> Option<(WorkIndex, Work)> {
        let starter = self.starter(place, work);
        if let Some(starter) = starter
            .as_ref()
            .filter(|starter| starter.evidence == Evidence::Before)
        {
            let row = self.graph.timeline.submission_of(work);
            let ended_ns = starter.work.interval.end_ns;
            if let Some(awaited) = self.host_waited(place, work, row, ended_ns, Since::AnyTime) {
                return Some(awaited);
            }
            if let Some(communicated) = self.communicated_since(place, work, ended_ns) {
                return Some(communicated);
            }
        }
        let before = starter.or_else(|| self.any_before(place, work))?;
        Some((before.place, before.work))
    }

    /// Returns the path that leads to a piece of work. It leaves a kernel that waited for another device for the one that came
    /// last there. The times in work on it are visited, the last first, each with the kind in [`NAMES`].
    pub(super) fn each_step(
        &self,
        last: WorkIndex,
        mut visit: impl FnMut(&Work, usize, Interval),
    ) -> Path {
        let graph = self.graph;
        let mut path = Path {
            spent: vec![Spent::default(); graph.queues.len()],
            idle_ns: vec![0; graph.timeline.gpus.len()],
        };
        let (mut place, mut work) = (last, graph.work(last));
        let mut until_ns = work.interval.end_ns;
        loop {
            let queue = graph.timeline.queue_of(&work) as usize;
            let kind = graph.kind(&work);
            let peer = graph
                .peers
                .awaited(place)
                .map(|peer| (peer, graph.work(peer)));
            let peer = peer.filter(|(_, came)| came.interval.start_ns < until_ns);
            let (from_place, from) = peer.unwrap_or((place, work));
            let ran = Interval::new(from.interval.start_ns, until_ns).intersection(self.window);
            visit(&work, kind, ran);
            (place, work) = (from_place, from);
            let sum_ns = &mut path.spent[queue][kind];
            *sum_ns = sum_ns.saturating_add(ran.length_ns());
            if work.interval.start_ns <= self.window.start_ns {
                return path;
            }
            let Some((earlier, ended)) = self.before(place, &work) else {
                return path;
            };
            // Clocks of devices may differ: an end counts up to the start that it caused.
            until_ns = ended.interval.end_ns.min(work.interval.start_ns);
            let idle = Interval::new(until_ns, work.interval.start_ns).intersection(self.window);
            let idle_ns = &mut path.idle_ns[place.gpu as usize];
            *idle_ns = idle_ns.saturating_add(idle.length_ns());
            (place, work) = (earlier, ended);
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
            .or_else(|| self.host_waited(place, work, row, ended_ns, Since::RoundTrip));
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

    /// Returns the work that the host waited for, as the trace says or else as it ended when the wait returned, where the host made the submission of a row
    /// some time after that wait. `ended_ns` is the end of the work before it.
    fn host_waited(
        &self,
        place: WorkIndex,
        work: &Work,
        row: u32,
        ended_ns: i64,
        since: Since,
    ) -> Option<(WorkIndex, Work)> {
        let graph = self.graph;
        let table = &graph.timeline.trace.tables.submissions;
        let index = row as usize;
        let call_ns = *table.start_ns.get(index)?;
        if call_ns <= ended_ns {
            return None;
        }
        let thread = HostThread::from_row(table.process[index], table.thread.at(index))?;
        let from_ns = match since {
            Since::RoundTrip => call_ns.saturating_sub(ROUND_TRIP_NS),
            Since::AnyTime => ended_ns,
        };
        let before = Interval::new(from_ns, call_ns);
        let calls = graph.timeline.host_threads().segments(thread, before);
        let wait = calls.rev().find(|call| {
            call.waits
                && call.is_last
                && call.outcome != WaitOutcome::NotDone
                && call.interval.end_ns <= call_ns
        })?;
        if let Some(awaited) = graph.order.recorded_waits().awaited(thread, &wait)
            && let Some(ran) = graph.timeline.submissions[awaited as usize].interval()
        {
            let queue = graph.timeline.submissions[awaited as usize].queue;
            let awaited = graph.ended_by(queue, place, work, ran.end_ns);
            return awaited.filter(|(_, work)| work.interval.end_ns >= ended_ns);
        }
        let from_ns = wait.interval.end_ns.saturating_sub(HANDOVER_NS);
        let from_ns = from_ns.saturating_sub(graph.error_ns).max(wait.since_ns);
        let until_ns = wait.interval.end_ns.saturating_add(graph.error_ns);
        let within = Interval::new(from_ns.max(ended_ns), until_ns);
        match since {
            Since::RoundTrip => graph.last_ended(place, work, within),
            Since::AnyTime => graph.last_ended_anywhere(place, work, within),
        }
    }

    /// Returns the communication of the device that ended last between the end of the work before and the start of a piece of work. Nothing
    /// of that order ran for most of it, so that the device was not idle then: whoever launched the piece of work late may have waited for it, which
    /// the trace does not have to say.
    fn communicated_since(
        &self,
        place: WorkIndex,
        work: &Work,
        ended_ns: i64,
    ) -> Option<(WorkIndex, Work)> {
        let graph = self.graph;
        let start_ns = work.interval.start_ns;
        let queues = (0..graph.queues.len() as u32)
            .filter(|queue| graph.timeline.queues[*queue as usize].gpu == place.gpu);
        let last = queues
            .filter_map(|queue| graph.ended_by(queue, place, work, start_ns))
            .filter(|(_, work)| graph.timeline.content(work) == Content::Communication)
            .max_by_key(|(_, work)| work.interval.end_ns);
        last.filter(|(_, work)| {
            let ran = work.interval;
            let alone_ns = ran.end_ns.saturating_sub(ended_ns.max(ran.start_ns));
            alone_ns > 0 && ratio(alone_ns, ran.length_ns()) >= ALONE_SHARE
        })
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
