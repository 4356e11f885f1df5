//! Finds the times in which work without known times, or work that is lost (`lost_launches.rs`), may have run.
//!
//! In such a time the device is neither known to work nor known to idle. It begins with the call that submitted the
//! work, and ends with the first of these: the hook saw that the command buffer had finished; the next work of the queue
//! with known times started, or work of another queue that waited for it; a thread returned from a wait for it, or the submitting thread from
//! a wait for unknown work that it began after the call. Where no call is known that submitted the work, it begins with the start of the work, as far as that is
//! known, and else it is all time (`without_calls`).
//!
//! Input is a timeline; output is a set of intervals for each queue and for each GPU. Where all work is timed, the
//! search takes one look at each submission and command buffer.

use super::host_waits::HostWaits;
use super::lost_launches::{lost_launches, may_lack_work};
use crate::recorded_waits::RecordedWaits;
use gapscope_timeline::host::HostThread;
use gapscope_timeline::intervals::{Interval, union};
use gapscope_timeline::thresholds::MISSING_WORK_SHARE;
use gapscope_timeline::{Standing, Timeline};
use gapscope_trace::lookup::NONE;
use gapscope_trace::tables::{SubmissionKind, Table};
use std::collections::HashMap;

/// The times in which work without known times may have run.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Unmeasured {
    /// The rows of the submissions of whose command buffers some are timed and some are not, sorted.
    partly: Vec<u32>,
    /// The times of each queue, by its index; empty where all work is timed. The intervals of a queue do not overlap.
    queues: Vec<Vec<Interval>>,
    /// The times of each GPU, likewise.
    gpus: Vec<Vec<Interval>>,
    /// From the first submission of such work to the last.
    submitted: Option<Interval>,
}

/// A command buffer with the row of its submission.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Submitted {
    submission: u32,
    command_buffer: u32,
}

impl Unmeasured {
    pub(crate) fn new(timeline: &Timeline, recorded_waits: &RecordedWaits) -> Unmeasured {
        let all = timeline.command_buffers.iter().zip(0u32..);
        let mut open: Vec<u32> = all
            .filter(|(times, _)| times.submission != NONE && times.has_untimed_work())
            .map(|(times, _)| times.submission)
            .collect();
        let is_untimed = |row| matches!(timeline.standing(row), Standing::Untimed);
        let lost = lost_launches(timeline);
        let without_calls = without_calls(timeline);
        if lost.is_empty()
            && without_calls.is_empty()
            && open.is_empty()
            && !(0..timeline.submissions.len() as u32).any(is_untimed)
        {
            return Unmeasured::default();
        }
        open.sort_unstable();
        open.dedup();
        let mut inside: Vec<Submitted> = (timeline.command_buffers.iter().zip(0u32..))
            .filter(|(times, _)| open.binary_search(&times.submission).is_ok())
            .map(|(times, command_buffer)| Submitted {
                submission: times.submission,
                command_buffer,
            })
            .collect();
        inside.sort_unstable();
        let bounds = Bounds::new(timeline, recorded_waits);
        let queues = timeline.submissions_by_queue();
        let mut queues: Vec<Vec<Interval>> = (queues.iter())
            .map(|rows| of_queue(timeline, rows, &inside, &bounds))
            .collect();
        for more in [lost, without_calls] {
            for (times, mut more) in queues.iter_mut().zip(more) {
                times.append(&mut more);
            }
        }
        let starts = queues.iter().flatten().map(|time| time.start_ns);
        let starts = starts.filter(|start_ns| *start_ns > i64::MIN);
        let submitted = starts.map(|start_ns| Interval::new(start_ns, start_ns));
        let submitted = submitted.reduce(Interval::hull);
        let mut gpus = vec![Vec::new(); timeline.gpus.len()];
        for (queue, times) in timeline.queues.iter().zip(&mut queues) {
            union(times);
            gpus[queue.gpu as usize].extend_from_slice(times);
        }
        gpus.iter_mut().for_each(union);
        open.retain(|row| matches!(timeline.standing(*row), Standing::Timed(_)));
        Unmeasured {
            partly: open,
            queues,
            gpus,
            submitted,
        }
    }

    /// Returns how long such work was submitted before `window` and after it.
    pub(crate) fn submitted_outside(&self, window: Interval) -> [i64; 2] {
        let submitted = self.submitted.unwrap_or(window);
        [
            window.start_ns.saturating_sub(submitted.start_ns).max(0),
            submitted.end_ns.saturating_sub(window.end_ns).max(0),
        ]
    }

    /// Returns true where all work is timed.
    pub(crate) fn is_empty(&self) -> bool {
        self.gpus.iter().all(Vec::is_empty)
    }

    /// Returns true where some of a submission's work is timed and some is not.
    pub(super) fn has_a_part_of(&self, row: u32) -> bool {
        self.partly.binary_search(&row).is_ok()
    }

    /// Returns the times of a queue, by its index.
    pub(crate) fn on_queue(&self, queue: u32) -> &[Interval] {
        self.queues.get(queue as usize).map_or(&[], Vec::as_slice)
    }

    /// Returns the times of a GPU, by its index.
    pub(crate) fn on_gpu(&self, gpu: u32) -> &[Interval] {
        self.gpus.get(gpu as usize).map_or(&[], Vec::as_slice)
    }
}

/// Returns the times in which untimed work of a queue may have run. `rows` are its submissions in the order of their
/// calls, and `inside` are the command buffers of those with untimed work.
fn of_queue(
    timeline: &Timeline,
    rows: &[u32],
    inside: &[Submitted],
    bounds: &Bounds,
) -> Vec<Interval> {
    let table = &timeline.trace.tables.submissions;
    let seen_ns = &timeline.trace.tables.command_buffers.seen_ns;
    let mut times = Vec::new();
    let mut next_ns = i64::MAX;
    for row in rows.iter().rev().copied() {
        let at = row as usize;
        let start_ns = table.start_ns[at];
        let latest_ns = || bounds.latest_ns(timeline, row);
        let from = inside.partition_point(|of| of.submission < row);
        let own = inside[from..].iter().take_while(|of| of.submission == row);
        let own: Vec<u32> = own.map(|of| of.command_buffer).collect();
        for command_buffer in own.iter().rev().map(|row| *row as usize) {
            let ran = &timeline.command_buffers[command_buffer];
            if ran.has_untimed_work() {
                let seen_ns = seen_ns.at(command_buffer).unwrap_or(i64::MAX);
                let end_ns = next_ns.min(seen_ns).min(latest_ns());
                times.push(Interval::new(start_ns, end_ns));
            }
            if ran.ran.has_work() {
                next_ns = next_ns.min(ran.ran.first_start_ns);
            }
        }
        match timeline.standing(row) {
            Standing::Untimed if own.is_empty() => {
                times.push(Interval::new(start_ns, next_ns.min(latest_ns())));
            }
            Standing::Timed(work) => next_ns = next_ns.min(work.start_ns),
            Standing::Untimed | Standing::NoWork(_) => {}
        }
    }
    times.retain(|time| !time.is_empty());
    times
}

/// Returns the times of each queue in which work may have run that has no times and of which no call is known; empty where there is none.
///
/// Of work whose start is not known either, that is all time, as soon as sums lack too much of the device's work.
fn without_calls(timeline: &Timeline) -> Vec<Vec<Interval>> {
    const ALL_TIME: Interval = Interval {
        start_ns: i64::MIN,
        end_ns: i64::MAX,
    };
    if may_lack_work(timeline) {
        return vec![vec![ALL_TIME]; timeline.queues.len()];
    }
    let untimed = untimed_without_calls(timeline);
    if untimed.is_empty() {
        return Vec::new();
    }
    let mut starts: Vec<Vec<i64>> = vec![Vec::new(); timeline.queues.len()];
    timeline.each_work(|work| {
        starts[timeline.queue_of(work) as usize].push(work.interval.start_ns);
    });
    starts.iter_mut().for_each(|starts| starts.sort_unstable());
    let mut placeless = vec![0u64; timeline.gpus.len()];
    let mut times = vec![Vec::new(); timeline.queues.len()];
    for (queue, start_ns) in untimed {
        let queue = queue as usize;
        let Some(start_ns) = start_ns.filter(|_| !timeline.queues[queue].is_undefined) else {
            placeless[timeline.queues[queue].gpu as usize] += 1;
            continue;
        };
        let next = starts[queue].partition_point(|next_ns| *next_ns <= start_ns);
        let end_ns = starts[queue].get(next).copied().unwrap_or(i64::MAX);
        times[queue].push(Interval::new(start_ns, end_ns));
    }
    for (times, queue) in times.iter_mut().zip(&timeline.queues) {
        let placeless = placeless[queue.gpu as usize];
        let all = placeless.saturating_add(timeline.gpus[queue.gpu as usize].works.len() as u64);
        if placeless as f64 > MISSING_WORK_SHARE * all as f64 {
            times.push(ALL_TIME);
        }
    }
    times
}

/// Returns the queue of each piece of work that has no times and of which no call is known, with its start where that is known.
fn untimed_without_calls(timeline: &Timeline) -> Vec<(u32, Option<i64>)> {
    let columns = &timeline.dispatches;
    let dispatches = columns.untimed.iter().filter_map(|untimed| {
        let launched = columns.launched.get(untimed.row as usize)?;
        let is_placeless = launched.queue != NONE && launched.submission == NONE;
        is_placeless.then_some((launched.queue, untimed.start_ns))
    });
    let tables = &timeline.trace.tables;
    let (transfers, opaque) = (&tables.transfers, &tables.opaque_work);
    let mut all: Vec<(u32, Option<i64>)> = dispatches.collect();
    for (queues, starts, lengths, calls, buffers) in [
        (
            &transfers.queue,
            &transfers.start_ns,
            &transfers.duration_ns,
            &transfers.submission,
            &transfers.command_buffer,
        ),
        (
            &opaque.queue,
            &opaque.start_ns,
            &opaque.duration_ns,
            &opaque.submission,
            &opaque.command_buffer,
        ),
    ] {
        for (row, queue) in queues.iter().enumerate() {
            let has_times = Interval::from_row(starts.at(row), lengths.at(row)).is_some();
            let is_known = |row: u32| row != NONE;
            let has_call = (calls.at(row))
                .is_some_and(|call| is_known(timeline.submission_ids.row(call)))
                || (buffers.at(row))
                    .is_some_and(|id| is_known(timeline.command_buffer_ids.row(id)));
            if !has_times && !has_call {
                all.push((timeline.queue_ids.row(*queue), starts.at(row)));
            }
        }
    }
    all
}

/// Returns the times in which moves of managed memory may have run, by the index of the GPU. A move has no times of its own.
pub(super) fn page_moves(
    timeline: &Timeline,
    recorded_waits: &RecordedWaits,
) -> Vec<Vec<Interval>> {
    let kinds = &timeline.trace.tables.submissions.kind;
    let mut gpus = vec![Vec::new(); timeline.gpus.len()];
    if !kinds.contains(&SubmissionKind::Prefetch) {
        return gpus;
    }
    let bounds = Bounds::new(timeline, recorded_waits);
    let queues = timeline.submissions_by_queue();
    for (queue, rows) in timeline.queues.iter().zip(queues) {
        let mut next_ns = i64::MAX;
        for row in rows.iter().rev().copied() {
            match timeline.standing(row) {
                Standing::NoWork(SubmissionKind::Prefetch) => {
                    let start_ns = timeline.trace.tables.submissions.start_ns[row as usize];
                    let end_ns = next_ns.min(bounds.latest_ns(timeline, row));
                    gpus[queue.gpu as usize].push(Interval::new(start_ns, end_ns));
                }
                Standing::Timed(work) => next_ns = next_ns.min(work.start_ns),
                Standing::Untimed | Standing::NoWork(_) => {}
            }
        }
    }
    for moves in &mut gpus {
        moves.retain(|time| !time.is_empty());
        union(moves);
    }
    gpus
}

/// What tells that a submission has ended.
struct Bounds {
    waits: HostWaits,
    /// For each queue the place of each submission that the host waited for in the order of the queue, and when the first
    /// wait for that submission or a later one returned; in that order.
    returned_ns: Vec<Vec<(u32, i64)>>,
    /// The place of each row in the order of its queue; empty where `returned_ns` is.
    places: Vec<u32>,
    /// When the first work started that waited for a submission, by the row of that submission.
    awaited_ns: HashMap<u32, i64>,
}

impl Bounds {
    fn new(timeline: &Timeline, recorded_waits: &RecordedWaits) -> Bounds {
        let (mut returned_ns, mut places) = (Vec::new(), Vec::new());
        let mut is_recorded = Vec::new();
        if !recorded_waits.all().is_empty() {
            is_recorded = recorded_waits.has_rows();
            places = vec![0; timeline.submissions.len()];
            for rows in timeline.submissions_by_queue() {
                for (row, place) in rows.iter().zip(0..) {
                    places[*row as usize] = place;
                }
            }
            returned_ns = vec![Vec::new(); timeline.queues.len()];
        }
        for wait in recorded_waits.all() {
            let queue = timeline.submissions[wait.awaited as usize].queue;
            let place = places[wait.awaited as usize];
            returned_ns[queue as usize].push((place, wait.end_ns));
        }
        for returned in &mut returned_ns {
            returned.sort_unstable();
            let mut first_ns = i64::MAX;
            for (_, end_ns) in returned.iter_mut().rev() {
                first_ns = first_ns.min(*end_ns);
                *end_ns = first_ns;
            }
        }
        Bounds {
            waits: HostWaits::new(timeline, &is_recorded),
            returned_ns,
            places,
            awaited_ns: awaited(timeline),
        }
    }

    /// Returns when a submission had ended at the latest.
    fn latest_ns(&self, timeline: &Timeline, row: u32) -> i64 {
        let table = &timeline.trace.tables.submissions;
        let at = row as usize;
        let thread = HostThread::from_row(table.process[at], table.thread.at(at));
        let call_end_ns = table.end_ns(at);
        let returned_ns = thread.and_then(|thread| self.waits.first_return(thread, call_end_ns));
        let awaited_ns = self.awaited_ns.get(&row).copied();
        let ends = [returned_ns, awaited_ns, self.recorded_return(timeline, row)];
        let ends = ends.into_iter().flatten();
        ends.min().unwrap_or(i64::MAX)
    }

    /// Returns when the first wait returned of which the trace says that it was for a submission, or for a later one of its queue.
    fn recorded_return(&self, timeline: &Timeline, row: u32) -> Option<i64> {
        let queue = timeline.submissions[row as usize].queue;
        let returned = self.returned_ns.get(queue as usize)?;
        let place = *self.places.get(row as usize)?;
        let at = returned.partition_point(|(of, _)| *of < place);
        returned.get(at).map(|(_, end_ns)| *end_ns)
    }
}

/// Returns when the first timed work started that waited for each submission, by the row of that submission.
fn awaited(timeline: &Timeline) -> HashMap<u32, i64> {
    let table = &timeline.trace.tables.dependencies;
    let mut awaited_ns: HashMap<u32, i64> = HashMap::new();
    for row in 0..table.len() {
        let Some(awaited) = table.waits_for.at(row) else {
            continue;
        };
        let awaited = timeline.submission_ids.row(awaited);
        let waiting = timeline.submission_ids.row(table.submission[row]);
        let ran = timeline.submissions.get(waiting as usize);
        if let Some(ran) = ran
            .and_then(|times| times.interval())
            .filter(|_| awaited != NONE)
        {
            let start_ns = awaited_ns.entry(awaited).or_insert(i64::MAX);
            *start_ns = ran.start_ns.min(*start_ns);
        }
    }
    awaited_ns
}
