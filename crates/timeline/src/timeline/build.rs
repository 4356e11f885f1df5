//! Builds the timeline of a trace from the trace's tables, and from its table of dispatches either whole or in
//! pieces. First come the GPUs, queues, submissions, transfers and opaque work, then the dispatches in the order of
//! their rows, and last the command buffers that are work and the sums of each.

use super::dispatches::{DispatchColumns, Launched, Untimed};
use super::filter::LabelFilter;
use super::gpu::Gpu;
use super::index::Timeline;
use super::packer::{Packed, Packing};
use super::times::{CommandBufferTimes, OnUndefinedQueues, QueueOfGpu, Ran, SubmissionTimes};
use super::work::{Work, WorkKind};
use crate::intervals::Interval;
use crate::vocabulary::Gpus;
use crate::vocabulary::KernelNames;
use gapscope_trace::Trace;
use gapscope_trace::ids::{CommandBufferId, QueueId};
use gapscope_trace::kernel_names::is_communication;
use gapscope_trace::lookup::{IdIndex, NONE};
use gapscope_trace::manifest::SamplingMode;
use gapscope_trace::optional::Optional;
use gapscope_trace::tables::{Dispatches, Table, Timing};
use gapscope_trace::text_column::TextColumn;
use std::collections::HashMap;
use std::sync::{Arc, OnceLock};
use std::thread::Scope;

impl<'a> Timeline<'a> {
    /// Returns the timeline of a trace whose tables hold all rows.
    pub fn new(trace: &'a Trace) -> Timeline<'a> {
        let dispatches = &trace.tables.dispatches;
        let count = dispatches.queue.len();
        let (timeline, ()) = fed(trace, None, count, true, |take| take(dispatches));
        timeline
    }

    /// Returns the timeline of a trace whose `count` dispatches are not in its table. `feed` hands the dispatches
    /// over piece by piece, in their order, as [`gapscope_trace::DispatchPieces`] reads them. Returns `None` where
    /// `feed` hands over none. The work that `filter` selects is [`Timeline::selected`].
    ///
    /// Findings and activity are the same as of the whole trace, in a fraction of its memory. Dataflow needs the table.
    pub fn from_pieces<R>(
        trace: &'a Trace,
        filter: Option<&'a LabelFilter>,
        count: usize,
        feed: impl FnOnce(&mut (dyn FnMut(&Dispatches) + Send)) -> Option<R>,
    ) -> Option<(Timeline<'a>, R)> {
        let (timeline, fed) = fed(trace, filter, count, true, feed);
        Some((timeline, fed?))
    }

    /// Returns a timeline as [`Timeline::from_pieces`] does, for gaps and counters only: the timeline keeps no
    /// kernels, labels and bindings of dispatches.
    pub fn from_pieces_for_gaps<R>(
        trace: &'a Trace,
        count: usize,
        feed: impl FnOnce(&mut (dyn FnMut(&Dispatches) + Send)) -> Option<R>,
    ) -> Option<(Timeline<'a>, R)> {
        let (timeline, fed) = fed(trace, None, count, false, feed);
        Some((timeline, fed?))
    }
}

/// Builds the timeline, and that of the work that `filter` selects, from the dispatches that `feed` hands over.
/// `count` is how many will come, and with `keeps_all` false only columns for gaps and counters are kept. Returns the
/// timeline and the result of `feed`.
fn fed<'a, R>(
    trace: &'a Trace,
    filter: Option<&'a LabelFilter>,
    count: usize,
    keeps_all: bool,
    feed: impl FnOnce(&mut (dyn FnMut(&Dispatches) + Send)) -> R,
) -> (Timeline<'a>, R) {
    std::thread::scope(|scope| {
        let mut builder = Builder::new(scope, trace, count, keeps_all);
        let mut selected = filter.map(|filter| {
            let builder = Builder::new(scope, &filter.trace, filter.dispatch_count, keeps_all);
            (filter, builder)
        });
        let fed = feed(&mut |piece| {
            builder.add(piece);
            if let Some((filter, builder)) = &mut selected {
                builder.add(&filter.select(piece));
            }
        });
        let mut timeline = builder.finish();
        timeline.selected = selected.map(|(_, builder)| Box::new(builder.finish()));
        (timeline, fed)
    })
}

/// A timeline that is being built: `new` adds all but dispatches, `add` these, and `finish` command buffers as work.
struct Builder<'scope, 'a> {
    /// The timeline so far, without work.
    timeline: Timeline<'a>,
    /// The work, which a thread of its own sorts and packs.
    packing: Packing<'scope, 'a>,
    manifest_gpus: Gpus,
    /// The index of the GPU that stands for queues where the manifest lists none; `None` until a queue occurs.
    unlisted_gpu: Option<u32>,
    /// True where the manifest lists queues and devices, so that other queues are of damaged rows.
    defines_queues: bool,
    /// The indices of queues that were found since [`Timeline::queue_ids`] was made.
    new_queues: HashMap<QueueId, u32>,
    /// True where work in command buffers has times of its own.
    times_inside: bool,
}

/// The columns that transfers and opaque work share.
struct WorkRows<'a> {
    command_buffers: &'a Optional<CommandBufferId>,
    queues: &'a [QueueId],
    start_ns: &'a Optional<i64>,
    duration_ns: &'a Optional<i64>,
}

impl<'scope, 'a: 'scope> Builder<'scope, 'a> {
    /// Begins with a trace of `dispatches` dispatches, of which either all columns are kept or only those that gaps and
    /// counters need.
    fn new<'env>(
        scope: &'scope Scope<'scope, 'env>,
        trace: &'a Trace,
        dispatches: usize,
        keeps_all: bool,
    ) -> Builder<'scope, 'a> {
        let tables = &trace.tables;
        let mut builder = Builder {
            packing: Packing::new(scope, &tables.command_buffers.id),
            timeline: Timeline {
                trace,
                gpus: Vec::new(),
                queues: Vec::new(),
                queue_ids: IdIndex::default(),
                command_buffers: Vec::new(),
                command_buffer_queues: Vec::new(),
                command_buffer_ids: IdIndex::new(&tables.command_buffers.id),
                submissions: Vec::new(),
                submission_ids: IdIndex::new(&tables.submissions.id),
                label_ids: IdIndex::new(&tables.labels.id),
                kernel_ids: IdIndex::new(&tables.kernels.id),
                communicates: communicating(&tables.kernels.name),
                kernel_names: KernelNames::new(&tables.kernels),
                on_undefined_queues: OnUndefinedQueues::default(),
                dispatches: DispatchColumns::default(),
                by_queue: OnceLock::new(),
                host_threads: OnceLock::new(),
                selected: None,
            },
            manifest_gpus: Gpus::new(&trace.manifest),
            unlisted_gpu: None,
            defines_queues: false,
            new_queues: HashMap::new(),
            times_inside: trace.manifest.sampling_mode != SamplingMode::CommandBuffer,
        };
        builder.find_gpus();
        builder.find_queues();
        builder.find_submissions();
        let timeline = &mut builder.timeline;
        timeline.dispatches.grids.kept =
            (trace.tables.kernels.accesses.iter()).any(Option::is_some);
        timeline.dispatches.keeps_all = keeps_all;
        // The causes of gaps depend on which kernels communicate.
        timeline.dispatches.keeps_kernels = keeps_all || !timeline.communicates.is_empty();
        timeline.dispatches.reserve(dispatches);
        builder.find_other_work();
        builder
    }

    /// Adds the GPUs of the manifest, still without work.
    fn find_gpus(&mut self) {
        let gpus = (0..self.manifest_gpus.count()).map(|gpu| Gpu {
            devices: self.manifest_gpus.rows(gpu).to_vec(),
            ..Gpu::default()
        });
        self.timeline.gpus = gpus.collect();
        let has_queues = !self.timeline.trace.manifest.queues.is_empty();
        self.defines_queues = has_queues && !self.timeline.gpus.is_empty();
    }

    /// Adds the queues of the manifest, and those that only rows of tables other than dispatches name.
    fn find_queues(&mut self) {
        let trace = self.timeline.trace;
        for (row, queue) in trace.manifest.queues.iter().enumerate() {
            let gpu = self.manifest_gpus.of_device(queue.device);
            self.add_queue(queue.id, gpu.map(|gpu| gpu as u32), Some(row as u32));
        }
        let tables = &trace.tables;
        let mut last = None;
        let named = (tables.command_buffers.queue.iter())
            .chain(&tables.transfers.queue)
            .chain(&tables.opaque_work.queue)
            .chain(&tables.submissions.queue);
        for id in named.filter(|id| last.replace(**id) != Some(**id)) {
            self.add_queue(*id, None, None);
        }
        self.index_queues();
    }

    /// Adds a queue that is not known yet. Where `gpu` is `None`, it belongs to the unlisted GPU, or is undefined and stands among
    /// the queues of the first GPU. `row` is its row in the manifest, if it has one.
    fn add_queue(&mut self, id: QueueId, gpu: Option<u32>, row: Option<u32>) {
        if self.new_queues.contains_key(&id) {
            return;
        }
        let is_undefined = gpu.is_none() && self.defines_queues;
        let gpus = &mut self.timeline.gpus;
        let gpu = gpu.or(is_undefined.then_some(0)).unwrap_or_else(|| {
            *self.unlisted_gpu.get_or_insert_with(|| {
                gpus.push(Gpu::default());
                gpus.len() as u32 - 1
            })
        });
        let queues = &mut self.timeline.queues;
        self.new_queues.insert(id, queues.len() as u32);
        queues.push(QueueOfGpu {
            id,
            gpu,
            row,
            is_undefined,
        });
    }

    /// Makes the index of queues by id anew, which then has the new queues too.
    fn index_queues(&mut self) {
        let ids: Vec<QueueId> = self.timeline.queues.iter().map(|q| q.id).collect();
        self.timeline.queue_ids = IdIndex::new(&ids);
        self.new_queues.clear();
    }

    /// Returns the index of a dispatch's queue, which is added where nothing else names it.
    fn queue_of_dispatch(&mut self, id: QueueId) -> u32 {
        match self.timeline.queue_ids.row(id) {
            NONE => {
                self.add_queue(id, None, None);
                self.new_queues[&id]
            }
            queue => queue,
        }
    }

    /// Adds the submissions and command buffers, still without times of their work.
    fn find_submissions(&mut self) {
        let timeline = &mut self.timeline;
        let tables = &timeline.trace.tables;
        let queue_of = |id: QueueId| timeline.queue_ids.row(id);
        timeline.submissions = (tables.submissions.queue.iter())
            .map(|queue| SubmissionTimes::new(queue_of(*queue)))
            .collect();
        let rows = &tables.command_buffers;
        timeline.command_buffer_queues = rows.queue.iter().map(|queue| queue_of(*queue)).collect();
        timeline.command_buffers = (0..rows.len())
            .map(|row| {
                CommandBufferTimes::new(
                    timeline.submission_ids.row(rows.submission[row]),
                    Interval::from_row(rows.start_ns.at(row), rows.duration_ns.at(row)),
                )
            })
            .collect();
    }

    /// Adds the next dispatches of the trace.
    fn add(&mut self, piece: &Dispatches) {
        let tables = &self.timeline.trace.tables;
        // A dispatch without a time of its own lies in a pass, whose time counts.
        let in_passes = self.timeline.trace.manifest.sampling_mode == SamplingMode::Pass;
        let mut last = (None, NONE, None);
        let mut last_queue = None;
        let columns = &mut self.timeline.dispatches;
        if columns.count == 0 {
            columns.keeps_groups = columns.keeps_all && !piece.groups_x.is_empty();
        }
        for at in 0..piece.queue.len() {
            let id = piece.command_buffer.at(at);
            if last.0 != id {
                let row = id.map_or(NONE, |id| self.timeline.command_buffer_ids.row(id));
                let label = tables.command_buffers.label.get(row as usize);
                last = (id, row, label);
            }
            let (_, command_buffer, label_around) = last;
            let queue = match last_queue {
                Some((id, queue)) if id == piece.queue[at] => queue,
                _ => self.queue_of_dispatch(piece.queue[at]),
            };
            last_queue = Some((piece.queue[at], queue));

            let timeline = &mut self.timeline;
            let row = timeline.dispatches.count();
            let columns = &mut timeline.dispatches;
            columns.count += 1;
            if columns.keeps_kernels {
                let kernel = timeline.kernel_ids.row(piece.kernel[at]);
                columns.kernels.push(kernel);
            }
            if columns.keeps_all {
                let label = piece.label.at(at).or(label_around);
                let label = label.map_or(NONE, |id| timeline.label_ids.row(id));
                columns.labels.push(label);
                columns
                    .bindings
                    .push(piece.bindings.at(at).map_or(NONE, |id| id.0));
                if columns.keeps_groups {
                    columns.groups.push(groups(piece, at));
                }
                if columns.grids.kept {
                    columns.grids.push(grid(piece, at));
                }
            }
            let of_command_buffer = timeline.command_buffer_queues.get(command_buffer as usize);
            let times = timeline.command_buffers.get_mut(command_buffer as usize);
            if times.is_none() {
                let nowhere = Launched {
                    queue: NONE,
                    submission: NONE,
                };
                columns.launched.resize(row, nowhere);
                let submission = piece.submission.at(at);
                columns.launched.push(Launched {
                    queue,
                    submission: submission.map_or(NONE, |id| timeline.submission_ids.row(id)),
                });
            }
            // Work outside of command buffers has its own times in every mode.
            let interval = Interval::from_row(piece.start_ns.at(at), piece.duration_ns.at(at))
                .filter(|_| self.times_inside || id.is_none());
            let queue = of_command_buffer.copied().unwrap_or(queue);
            let is_undefined = timeline.queues[queue as usize].is_undefined;
            timeline.on_undefined_queues.dispatches +=
                u64::from(is_undefined && interval.is_some());
            let interval = interval.filter(|_| !is_undefined);
            match (interval, times) {
                (Some(_), Some(times)) => times.timed += 1,
                (None, Some(times)) if !in_passes => times.untimed += 1,
                _ => {}
            }
            match interval {
                Some(interval) => {
                    let work = Work::new(interval, command_buffer, WorkKind::Dispatch, row);
                    let gpu = timeline.queues[queue as usize].gpu;
                    self.packing.push(gpu as usize, work);
                }
                None => columns.untimed.push(Untimed {
                    row: row as u32,
                    command_buffer,
                    start_ns: piece.start_ns.at(at),
                    duration_ns: piece
                        .duration_ns
                        .at(at)
                        .filter(|ns| *ns >= 0 && piece.start_ns.at(at).is_none()),
                }),
            }
        }
    }

    /// Returns the timeline, once all dispatches have been added.
    fn finish(mut self) -> Timeline<'a> {
        self.index_queues();
        self.find_command_buffers();
        self.packed()
    }

    /// Adds the transfers and the opaque work, which is GPU work that is timed as a whole.
    fn find_other_work(&mut self) {
        let tables = &self.timeline.trace.tables;
        let (t, o) = (&tables.transfers, &tables.opaque_work);
        let mut known = vec![Vec::new(); self.timeline.gpus.len()];
        self.find_rows(
            &mut known,
            WorkKind::Transfer,
            WorkRows {
                command_buffers: &t.command_buffer,
                queues: &t.queue,
                start_ns: &t.start_ns,
                duration_ns: &t.duration_ns,
            },
        );
        self.find_rows(
            &mut known,
            WorkKind::Opaque,
            WorkRows {
                command_buffers: &o.command_buffer,
                queues: &o.queue,
                start_ns: &o.start_ns,
                duration_ns: &o.duration_ns,
            },
        );
        self.packing.add_known(known);
    }

    /// Adds the rows of one table: those with known times to the work of their GPU in `known`, and all to the counts
    /// of their command buffers.
    fn find_rows(&mut self, known: &mut [Vec<Work>], kind: WorkKind, rows: WorkRows) {
        let timeline = &mut self.timeline;
        let mut last = (None, NONE);
        for (row, id) in rows.command_buffers.iter().enumerate() {
            if last.0 != id {
                let row = id.map_or(NONE, |id| timeline.command_buffer_ids.row(id));
                last = (id, row);
            }
            // Work outside of command buffers has its own times in every mode.
            let interval = Interval::from_row(rows.start_ns.at(row), rows.duration_ns.at(row))
                .filter(|_| self.times_inside || id.is_none());
            let of_command_buffer = timeline.command_buffer_queues.get(last.1 as usize);
            let queue = of_command_buffer.copied();
            let queue = queue.unwrap_or_else(|| timeline.queue_ids.row(rows.queues[row]));
            let is_undefined = timeline.queues[queue as usize].is_undefined;
            if is_undefined && interval.is_some() {
                let undefined = &mut timeline.on_undefined_queues;
                match kind {
                    WorkKind::Transfer => undefined.transfers += 1,
                    _ => undefined.opaque_work += 1,
                }
            }
            let interval = interval.filter(|_| !is_undefined);
            if let Some(times) = timeline.command_buffers.get_mut(last.1 as usize) {
                match interval {
                    Some(_) => times.timed += 1,
                    None => times.untimed += 1,
                }
            }
            if let Some(interval) = interval {
                let gpu = timeline.queues[queue as usize].gpu;
                let work = Work::new(interval, last.1, kind, row);
                known[gpu as usize].push(work);
            }
        }
    }

    /// Adds the command buffers that are work themselves ([`CommandBufferTimes::whole`], or all in the mode
    /// `command-buffer`).
    fn find_command_buffers(&mut self) {
        let timeline = &mut self.timeline;
        let rows = &timeline.trace.tables.command_buffers;
        for (row, times) in timeline.command_buffers.iter_mut().enumerate() {
            let Some(own) = times.own else { continue };
            let declared = rows.dispatches[row] > 0 || rows.transfers[row] > 0;
            let has_more = rows.timing[row] == Timing::Bracketed || declared;
            times.whole = !self.times_inside || times.untimed > 0 || (times.timed == 0 && has_more);
            if times.whole {
                let gpu = timeline.queues[timeline.command_buffer_queues[row] as usize].gpu;
                let work = Work::new(own, row as u32, WorkKind::CommandBuffer, row);
                self.packing.push(gpu as usize, work);
            }
        }
    }

    /// Returns the timeline with its work, and the times of command buffers and submissions added up.
    fn packed(self) -> Timeline<'a> {
        let mut timeline = self.timeline;
        let Packed {
            gpus,
            command_buffers,
        } = self.packing.finish();
        for (gpu, (works, extent)) in timeline.gpus.iter_mut().zip(gpus) {
            (gpu.works, gpu.extent) = (works, extent);
        }
        for (times, ran) in timeline.command_buffers.iter_mut().zip(command_buffers) {
            times.ran = ran;
        }
        let Timeline {
            trace,
            gpus,
            command_buffers,
            submissions,
            submission_ids,
            dispatches,
            ..
        } = &mut timeline;
        let all = command_buffers.len();
        for gpu in gpus.iter().filter(|gpu| gpu.extent.has_launched) {
            for work in &gpu.works {
                if (work.command_buffer as usize) < all {
                    continue;
                }
                let submission = dispatches.submission_of(&work, &trace.tables, submission_ids);
                if let Some(times) = submissions.get_mut(submission as usize) {
                    times.add(work.interval);
                }
            }
        }
        for times in command_buffers {
            if let Some(submission) = submissions.get_mut(times.submission as usize) {
                let Ran {
                    first_start_ns,
                    last_end_ns,
                    ..
                } = times.ran;
                submission.add(Interval::new(first_start_ns, last_end_ns));
                // A command buffer with work is timed by the work, or as a whole.
                let ran = times.ran.has_work() || times.untimed > 0;
                submission.without_work += u32::from(!ran && times.own.is_some());
            }
        }
        timeline
    }
}

/// Returns the number of workgroups of a dispatch, or [`NONE`] where it is unknown.
fn groups(piece: &Dispatches, at: usize) -> u32 {
    let Some([x, y, z]) = grid(piece, at) else {
        return NONE;
    };
    let groups = x.saturating_mul(y).saturating_mul(z);
    groups.min(NONE - 1)
}

/// Returns the numbers of workgroups of a dispatch by axis, or `None` where they are unknown.
fn grid(piece: &Dispatches, at: usize) -> Option<[u32; 3]> {
    let axes = [&piece.groups_x, &piece.groups_y, &piece.groups_z];
    let [x, y, z] = axes.map(|axis| axis.get(at));
    Some([x?, y?, z?])
}

/// Returns for each kernel whether it communicates with other devices. The list is empty where no kernel does.
fn communicating(names: &TextColumn<Arc<str>>) -> Vec<bool> {
    let rows: Vec<bool> = names.iter().map(|name| is_communication(name)).collect();
    match rows.contains(&true) {
        true => rows,
        false => Vec::new(),
    }
}
