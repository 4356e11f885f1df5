//! Makes the [`Scene`] of a trace (what exports draw), from a trace in memory or from its dispatches piece by piece.
//! A first pass over dispatches finds the first work of each command buffer or submission, to which an arrow may lead
//! from the host call that submitted it; a second pass packs them into lanes. Other rows are drawn in between.

use super::gaps::GapSlices;
use super::groups::{self, PidAllocator};
use super::labels::Labels;
use super::slices_by_owner::{QueueSlices, SlicesByOwner, ThreadKey};
use super::work_lanes::{self, PieceWork, WorkLanes};
use super::{Flows, PlaceInFile, Scene, SceneNames, counters};
use crate::TableRows;
use crate::lanes::Sharing;
use crate::packed::Lane;
use crate::slice::{Dispatch, Slice, SliceKind};
use gapscope_analysis::code::Stacks;
use gapscope_timeline::Timeline;
use gapscope_timeline::intervals::Interval;
use gapscope_timeline::submit_calls::SubmitCalls;
use gapscope_timeline::vocabulary::Vocabulary;
use gapscope_trace::Trace;
use gapscope_trace::ids::{CommandBufferId, ProcessId, QueueId, SubmissionId, ThreadId};
use gapscope_trace::lookup::{IdIndex, NONE};
use gapscope_trace::tables::{Dispatches, Table};
use rustc_hash::FxHashMap;
use std::mem::take;
use std::sync::mpsc::sync_channel;

/// The earliest piece of work of a target, a command buffer or submission that an arrow may lead to.
#[derive(Debug, Clone, Copy)]
struct FirstWork {
    start_ns: i64,
    kind: SliceKind,
    /// The index of the queue among those of [`SlicesByOwner`].
    queue: u32,
    /// The row of a dispatch, or the index of other work among the slices of its queue.
    index: u32,
}

/// The command buffer or submission that launched a piece of work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Launch {
    command_buffer: Option<CommandBufferId>,
    submission: Option<SubmissionId>,
}

/// Returns the launch of a row of a table of work.
macro_rules! launch {
    ($table:expr, $row:expr) => {
        Launch {
            command_buffer: $table.command_buffer.at($row),
            submission: $table.submission.at($row),
        }
    };
}

/// The target of the previous launch, kept because neighbours mostly share one.
#[derive(Debug, Default)]
struct LastTarget(Option<(Launch, Option<usize>)>);

impl LastTarget {
    /// Returns the target of a launch, and keeps it.
    #[inline]
    fn find(&mut self, builder: &Builder, launch: Launch) -> Option<usize> {
        match self.0 {
            Some((same, target)) if same == launch => target,
            _ => {
                let target = builder.target(launch);
                self.0 = Some((launch, target));
                target
            }
        }
    }
}

/// The state of making a scene.
struct Builder<'a> {
    trace: &'a Trace,
    slices: SlicesByOwner,
    command_buffers: IdIndex<CommandBufferId>,
    submissions: IdIndex<SubmissionId>,
    submit_calls: SubmitCalls,
    /// The numbers of dispatches and of their pieces that have been read.
    dispatches: usize,
    pieces: u32,
    /// The number of dispatches with times.
    drawn_dispatches: u64,
    /// The first work of each target: the rows of the command buffers, then those of submissions whose work has no
    /// command buffer.
    firsts: Vec<Option<FirstWork>>,
    /// The last end of each target, in nanoseconds.
    last_end_ns: Vec<Option<i64>>,
    /// The first and the last time that is drawn.
    times: Option<Interval>,
    /// The counts of rows by table, as they are drawn.
    rows: Vec<TableRows>,
}

impl<'a> Scene<'a> {
    /// Makes the scene of a trace that is in memory.
    pub fn new(trace: &'a Trace) -> Scene<'a> {
        let dispatches = &trace.tables.dispatches;
        let each = |take: &mut (dyn FnMut(&Dispatches) + Send)| {
            take(dispatches);
            Some(())
        };
        let labels = Labels::new(&trace.tables.markers);
        let scene = Scene::from_pieces(trace, labels, dispatches.len(), each);
        scene.expect("all dispatches are handed over").0
    }

    /// Makes the scene of a trace whose `labels` are given and whose `count` dispatches are not in its table. `each`
    /// hands the dispatches over piece by piece, in their order, as [`gapscope_trace::DispatchPieces`] reads them; it
    /// is called twice. Returns also what `each` returned at first; `None` when that was nothing.
    pub fn from_pieces<R>(
        trace: &'a Trace,
        labels: Labels,
        count: usize,
        each: impl Fn(&mut (dyn FnMut(&Dispatches) + Send)) -> Option<R>,
    ) -> Option<(Scene<'a>, R)> {
        let names = Vocabulary::new(&trace.manifest);
        let tables = &trace.tables;
        let mut builder = Builder::new(trace);
        let (mut timeline, read) = Timeline::from_pieces_for_gaps(trace, count, |take| {
            each(&mut |piece| {
                builder.read_piece(piece);
                take(piece);
            })
        })?;
        let gaps = GapSlices::new(&timeline);
        // The works (pieces of GPU work on the timeline) take most of the memory, and counters do not need them.
        for gpu in &mut timeline.gpus {
            take(&mut gpu.works);
        }
        let counted = gapscope_timeline::counters::counters(&timeline);
        let gpus = timeline.gpus.len();
        drop(timeline);
        builder.draw_others();
        builder.draw_host();
        builder.draw_labels(labels);
        let flows = builder.link_calls();
        builder.count_submissions();
        builder.count_counter_values();
        let (origin_ns, end_ns) = builder.all_times();
        builder.draw_work(each)?;

        let mut pids = PidAllocator::new(trace);
        let slices = &mut builder.slices;
        let mut groups = groups::processes(trace, &names, slices, &mut pids);
        let mut gpus = groups::gpus(trace, gpus, &names, slices, &mut pids);
        for (group, slices) in gpus.iter_mut().zip(gaps.slices) {
            group.add("gaps by cause".to_owned(), None, slices, Sharing::Apart);
        }
        let mut machine = groups::machine(&mut pids);
        counters::add(counted, &names, &mut gpus, &mut machine);
        groups.append(&mut gpus);
        groups.push(machine);
        groups.retain(|group| {
            !(group.tracks.is_empty() && group.counters.is_empty() && group.samples.is_empty())
        });
        let scene = Scene {
            trace,
            names: SceneNames::new(trace),
            groups,
            gaps: gaps.rows,
            stacks: Stacks::new(tables),
            flows,
            origin_ns,
            end_ns,
            rows: builder.rows,
            embedded: None,
            place: PlaceInFile::default(),
            command_buffers: builder.command_buffers,
        };
        Some((scene, read))
    }
}

impl<'a> Builder<'a> {
    fn new(trace: &'a Trace) -> Builder<'a> {
        let tables = &trace.tables;
        let targets = tables.command_buffers.len() + tables.submissions.len();
        Builder {
            trace,
            slices: SlicesByOwner::new(trace),
            command_buffers: IdIndex::new(&tables.command_buffers.id),
            submissions: IdIndex::new(&tables.submissions.id),
            submit_calls: SubmitCalls::new(trace),
            dispatches: 0,
            pieces: 0,
            drawn_dispatches: 0,
            firsts: vec![None; targets],
            last_end_ns: vec![None; targets],
            times: None,
            rows: Vec::new(),
        }
    }
}

impl Builder<'_> {
    /// Reads a piece in the first pass over dispatches, which collects what must be known before any is drawn.
    fn read_piece(&mut self, piece: &Dispatches) {
        let mut target = LastTarget::default();
        for (row, interval) in work_lanes::timed(&piece.start_ns, &piece.duration_ns) {
            let target = target.find(self, launch!(piece, row));
            let place = self.slices.queue(piece.queue[row]);
            let starts = &mut self.slices.queues[place].starts;
            starts.add(self.pieces, interval.start_ns);
            let row = (self.dispatches + row) as u32;
            self.reach(SliceKind::Dispatch, interval, place, row, target);
            self.drawn_dispatches += 1;
        }
        self.dispatches += piece.len();
        self.pieces += 1;
    }

    /// Draws dispatches, and all other work with them, in the second pass. The work of a piece is placed while the
    /// next one is read.
    fn draw_work<R>(
        &mut self,
        each: impl Fn(&mut (dyn FnMut(&Dispatches) + Send)) -> Option<R>,
    ) -> Option<()> {
        let queues = self.slices.queues.iter_mut();
        let mut lanes: Vec<WorkLanes> = queues
            .map(|queue| WorkLanes::new(take(&mut queue.starts), take(&mut queue.others)))
            .collect();
        let count = lanes.len();
        let lanes: Vec<Vec<Lane>> = std::thread::scope(|scope| {
            let (send, pieces) = sync_channel::<Vec<PieceWork>>(1);
            let placing = scope.spawn(move || {
                for (number, added) in (0..).zip(pieces) {
                    for (lanes, added) in lanes.iter_mut().zip(added) {
                        lanes.take(number, added);
                    }
                }
                lanes.into_iter().map(WorkLanes::finish).collect()
            });
            let mut first = 0;
            let read = each(&mut |piece| {
                // The receiver ends early only by a panic, which is noticed below.
                let _ = send.send(self.work_of_piece(piece, first, count));
                first += piece.len();
            });
            drop(send);
            let lanes = placing.join();
            let lanes = lanes.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            read.map(|_| lanes)
        })?;
        for (queue, lanes) in self.slices.queues.iter_mut().zip(lanes) {
            queue.work = lanes;
        }
        Some(())
    }

    /// Returns the work of a piece for each of `count` queues. `first` is the row of the piece's first dispatch.
    fn work_of_piece(&mut self, piece: &Dispatches, first: usize, count: usize) -> Vec<PieceWork> {
        let mut added: Vec<PieceWork> = (0..count).map(|_| PieceWork::default()).collect();
        let mut target = LastTarget::default();
        for (row, interval) in work_lanes::timed(&piece.start_ns, &piece.duration_ns) {
            let target = target.find(self, launch!(piece, row));
            let place = self.slices.queue(piece.queue[row]);
            let is_first = |work: FirstWork| {
                work.kind == SliceKind::Dispatch && work.index as usize == first + row
            };
            let begins = |target: &usize| {
                self.firsts
                    .get(*target)
                    .is_some_and(|work| work.is_some_and(is_first))
            };
            let flow = target.filter(begins).map_or(0, |target| target as u32 + 1);
            // A file that changes while it is read may have more queues than before.
            if let Some(added) = added.get_mut(place) {
                added.push(interval, &Dispatch::from_row(piece, row), flow);
            }
        }
        added
    }

    /// Makes slices of transfers, opaque work and command buffers, and counts dispatches.
    fn draw_others(&mut self) {
        self.count("dispatches", self.drawn_dispatches, self.dispatches);
        let tables = &self.trace.tables;
        macro_rules! draw {
            ($table:ident, $kind:expr) => {{
                let table = &tables.$table;
                let (mut drawn, mut target) = (0, LastTarget::default());
                for (row, interval) in work_lanes::timed(&table.start_ns, &table.duration_ns) {
                    drawn += 1;
                    let target = target.find(self, launch!(table, row));
                    let slice = Slice::new($kind, row as u32, interval);
                    self.draw_one(slice, table.queue[row], target);
                }
                self.count(stringify!($table), drawn, table.len());
            }};
        }
        draw!(transfers, SliceKind::Transfer);
        draw!(opaque_work, SliceKind::Opaque);

        let table = &tables.command_buffers;
        let mut drawn = 0;
        for (row, interval) in work_lanes::timed(&table.start_ns, &table.duration_ns) {
            drawn += 1;
            let slice = Slice::new(SliceKind::CommandBuffer, row as u32, interval);
            self.draw_one(slice, table.queue[row], Some(row));
        }
        self.count("command_buffers", drawn, table.len());
    }

    /// Returns the target of an arrow to a piece of work: its command buffer, or its submission when it has none.
    fn target(&self, launch: Launch) -> Option<usize> {
        let command_buffers = self.trace.tables.command_buffers.len();
        match launch.command_buffer {
            Some(id) => self.command_buffers.get(id),
            None => Some(command_buffers + self.submissions.get(launch.submission?)?),
        }
    }

    /// Returns the row of a target's submission: that of its command buffer, or the target itself.
    fn submission_of(&self, target: usize) -> Option<usize> {
        let ids = &self.trace.tables.command_buffers.submission;
        match ids.get(target) {
            Some(id) => self.submissions.get(*id),
            None => Some(target - ids.len()),
        }
    }

    /// Adds a slice to those of its queue, and to the times of its target.
    fn draw_one(&mut self, slice: Slice, queue: QueueId, target: Option<usize>) {
        let place = self.slices.queue(queue);
        let slices = slices_of(&mut self.slices.queues[place], slice.kind);
        slices.push(slice);
        let index = slices.len() as u32 - 1;
        let interval = Interval::new(slice.start_ns, slice.end_ns);
        self.reach(slice.kind, interval, place, index, target);
    }

    /// Includes a piece of work in the drawn times and in those of its target. The target's first work is the
    /// earliest; a command buffer is it only when no other work of the target was read before.
    #[inline]
    fn reach(
        &mut self,
        kind: SliceKind,
        interval: Interval,
        queue: usize,
        index: u32,
        target: Option<usize>,
    ) {
        self.reach_time(interval);
        let Some(target) = target else {
            return;
        };
        let last = &mut self.last_end_ns[target];
        *last = (*last).max(Some(interval.end_ns));
        let first = &mut self.firsts[target];
        let earlier = match first {
            None => true,
            // An arrow to a dispatch is more telling than one to the command buffer around it.
            Some(_) if kind == SliceKind::CommandBuffer => false,
            Some(first) => interval.start_ns < first.start_ns,
        };
        if earlier {
            *first = Some(FirstWork {
                start_ns: interval.start_ns,
                kind,
                queue: queue as u32,
                index,
            });
        }
    }

    /// Includes an interval in the drawn times.
    #[inline]
    fn reach_time(&mut self, interval: Interval) {
        self.times = Some(self.times.unwrap_or(interval).hull(interval));
    }

    /// Makes slices of host calls and of launches, by thread.
    fn draw_host(&mut self) {
        let calls = &self.trace.tables.host_calls;
        let mut drawn = 0;
        for row in 0..calls.len() {
            let times = Interval::from_row(Some(calls.start_ns[row]), Some(calls.duration_ns[row]));
            let Some(interval) = times else { continue };
            drawn += 1;
            let thread = (calls.process[row], calls.thread.at(row));
            self.draw_call(SliceKind::HostCall, row, thread, interval);
        }
        self.count("host_calls", drawn, calls.len());
        let s = &self.trace.tables.submissions;
        for row in 0..s.len() {
            let times = Interval::from_row(Some(s.start_ns[row]), Some(s.duration_ns[row]));
            if let Some(interval) = times.filter(|_| self.submit_calls.is_launch(self.trace, row)) {
                let thread = (s.process[row], s.thread.at(row));
                self.draw_call(SliceKind::Launch, row, thread, interval);
            }
        }
    }

    /// Adds a call to those of its thread.
    fn draw_call(
        &mut self,
        kind: SliceKind,
        row: usize,
        (process, thread): (ProcessId, Option<ThreadId>),
        interval: Interval,
    ) {
        self.reach_time(interval);
        let key = ThreadKey { process, thread };
        let slices = self.slices.threads.entry(key).or_default();
        let slice = Slice::new(kind, row as u32, interval);
        slices.calls.push(slice);
    }

    /// Counts the labels, and moves their lanes to their owners.
    fn draw_labels(&mut self, labels: Labels) {
        if let Some(times) = labels.times {
            self.reach_time(times);
        }
        self.count("markers", labels.drawn, labels.rows);
        labels.place(&mut self.slices);
    }

    /// Links submitting calls with the first work of each of their targets. Of first works, only those with an arrow
    /// are kept.
    fn link_calls(&mut self) -> Flows {
        // The call of each target that has work, where the call is drawn: a row of host calls or of submissions.
        let submissions = &self.trace.tables.submissions;
        let mut flow_of_call: FxHashMap<u32, u32> = FxHashMap::default();
        let mut flow_of_launch = vec![0; submissions.len()];
        for target in 0..self.firsts.len() {
            if let (Some(_), Some(row)) = (self.firsts[target], self.submission_of(target)) {
                match self.submit_calls.call(row) {
                    Some(call) => drop(flow_of_call.insert(call as u32, 0)),
                    None => flow_of_launch[row] = NONE,
                }
            }
        }
        // Calls with work are numbered from 1 in the order of their slices.
        let mut count = 0;
        for slice in self
            .slices
            .threads
            .values_mut()
            .flat_map(|thread| &mut thread.calls)
        {
            let flow = match slice.kind {
                SliceKind::HostCall => flow_of_call.get_mut(&slice.row),
                _ => flow_of_launch
                    .get_mut(slice.row as usize)
                    .filter(|flow| **flow == NONE),
            };
            if let Some(flow) = flow {
                count += 1;
                *flow = count;
                slice.flow = count;
            }
        }
        let flow = |target: usize| {
            let row = self.submission_of(target)?;
            let flow = match self.submit_calls.call(row) {
                Some(call) => flow_of_call.get(&(call as u32)).copied()?,
                None => flow_of_launch[row],
            };
            // The call of a target with work may have no times, so that it is not drawn.
            Some(flow).filter(|flow| ![0, NONE].contains(flow))
        };
        let pairs = (0..self.firsts.len()).filter_map(|target| {
            self.firsts[target]?;
            Some((flow(target)? - 1, target as u32))
        });
        let flows = Flows::new(count, pairs);
        let mut linked = vec![false; self.firsts.len()];
        for target in &flows.targets {
            linked[*target as usize] = true;
        }
        for ((target, first), linked) in (0..).zip(&mut self.firsts).zip(linked) {
            if !linked {
                *first = None;
            }
            if let Some(first) = first.filter(|first| first.kind != SliceKind::Dispatch) {
                let queue = &mut self.slices.queues[first.queue as usize];
                slices_of(queue, first.kind)[first.index as usize].flow = target + 1;
            }
        }
        flows
    }

    /// Counts the submissions whose work has times, which make up the queue depth.
    fn count_submissions(&mut self) {
        let starts = &self.trace.tables.submissions.start_ns;
        let mut ends: Vec<Option<i64>> = vec![None; starts.len()];
        for (target, end_ns) in take(&mut self.last_end_ns).into_iter().enumerate() {
            if let Some(submission) = self.submission_of(target) {
                ends[submission] = ends[submission].max(end_ns);
            }
        }
        let times = starts.iter().zip(&ends);
        let drawn = times.filter(|(start_ns, end_ns)| end_ns.is_some_and(|ns| ns >= **start_ns));
        self.count("submissions", drawn.count() as u64, ends.len());
    }

    /// Counts the values of recorded counters that can be drawn.
    fn count_counter_values(&mut self) {
        let values = &self.trace.tables.counter_values;
        if !values.value.is_empty() {
            let drawn = values.value.iter().filter(|value| value.is_finite());
            self.count("counter_values", drawn.count() as u64, values.len());
        }
    }

    /// Returns the first and the last time that is drawn or recorded.
    fn all_times(&self) -> (i64, i64) {
        let slices = self.times.map(|times| (times.start_ns, times.end_ns));
        let tables = &self.trace.tables;
        let points = tables.submissions.start_ns.iter();
        let points = points.chain(&tables.memory.at_ns);
        let points = points.chain(&tables.samples.time_ns).map(|ns| (*ns, *ns));
        let values = &tables.counter_values;
        let values = (values.start_ns.iter().zip(&values.duration_ns))
            .map(|(start_ns, ns)| (*start_ns, start_ns.saturating_add(ns.unwrap_or(0).max(0))));
        let manifest = &self.trace.manifest;
        let recorded = (manifest.start_ns, manifest.start_ns.max(manifest.end_ns));
        let all = slices.into_iter().chain(points).chain(values);
        all.fold(recorded, |a, b| (a.0.min(b.0), a.1.max(b.1)))
    }

    /// Notes that `drawn` of a table's rows are drawn.
    fn count(&mut self, table: &'static str, drawn: u64, rows: usize) {
        self.rows.push(TableRows {
            table,
            written: drawn,
            without_times: rows as u64 - drawn,
        });
    }
}

/// Returns the list of a queue's slices for work of a kind other than dispatches.
fn slices_of(queue: &mut QueueSlices, kind: SliceKind) -> &mut Vec<Slice> {
    match kind {
        SliceKind::CommandBuffer => &mut queue.command_buffers,
        _ => &mut queue.others,
    }
}
