//! The timeline: a trace's work in order of time, by GPU, with its tables indexed by id.
//!
//! *Work* is what makes a device busy. In the dispatch modes it is every dispatch, transfer and piece of opaque work
//! with known times, and besides them every command buffer that has times of its own while something inside has none:
//! that one counts from its begin to its end. In `pass` mode dispatches without times lie in passes, which are opaque
//! work, and are none themselves. In `command-buffer` mode work is the command buffers with known times.
//!
//! A physical GPU is all devices of the trace with one uuid, whatever the process; a device without a uuid is a GPU of
//! its own. Work on a queue that the manifest does not list belongs to a GPU named `unknown device`.

use crate::ids::{Ids, NONE};
use crate::intervals::Interval;
use gapscope_trace::Trace;
use gapscope_trace::manifest::SamplingMode;
use gapscope_trace::tables::{Table, Tables, Timing};
use std::collections::HashMap;

/// A trace, indexed for the analyses.
#[derive(Debug)]
pub struct Timeline<'a> {
    /// The trace.
    pub trace: &'a Trace,
    /// GPUs, in the order in which the manifest first names one of their devices.
    pub gpus: Vec<Gpu>,
    pub(crate) queues: Vec<QueueOfGpu>,
    queue_ids: Ids,
    /// By row of the table.
    pub(crate) command_buffers: Vec<CommandBufferTimes>,
    pub(crate) command_buffer_ids: Ids,
    /// By row of the table.
    pub(crate) submissions: Vec<SubmissionTimes>,
    pub(crate) submission_ids: Ids,
    pub(crate) label_ids: Ids,
    pub(crate) kernel_ids: Ids,
}

/// A physical GPU and its work.
#[derive(Debug, Default)]
pub struct Gpu {
    /// Rows of its devices in the manifest.
    pub devices: Vec<usize>,
    /// Its work by start.
    pub works: Vec<Work>,
}

/// A piece of work with known times.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Work {
    /// When it ran.
    pub interval: Interval,
    /// Row of its command buffer, or [`NONE`].
    pub(crate) command_buffer: u32,
    source: u32,
}

/// The table that a piece of work is a row of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WorkKind {
    /// `dispatches`.
    Dispatch,
    /// `transfers`.
    Transfer,
    /// `opaque_work`.
    Opaque,
    /// `command_buffers`.
    CommandBuffer,
}

/// Two bits of [`Work::source`] say the table, the others the row: no table has 2^30 rows in memory.
const ROW_BITS: u32 = 30;

impl Work {
    fn new(interval: Interval, command_buffer: u32, kind: WorkKind, row: usize) -> Work {
        Work {
            interval,
            command_buffer,
            source: ((kind as u32) << ROW_BITS) | (row as u32 & ((1 << ROW_BITS) - 1)),
        }
    }

    /// The table that it is a row of.
    pub fn kind(&self) -> WorkKind {
        match self.source >> ROW_BITS {
            0 => WorkKind::Dispatch,
            1 => WorkKind::Transfer,
            2 => WorkKind::Opaque,
            _ => WorkKind::CommandBuffer,
        }
    }

    /// The row.
    pub fn row(&self) -> usize {
        (self.source & ((1 << ROW_BITS) - 1)) as usize
    }

    /// Id of the submission that its own row names.
    fn own_submission(&self, tables: &Tables) -> Option<u64> {
        match self.kind() {
            WorkKind::Dispatch => tables.dispatches.submission[self.row()],
            WorkKind::Transfer => tables.transfers.submission[self.row()],
            WorkKind::Opaque => tables.opaque_work.submission[self.row()],
            WorkKind::CommandBuffer => None,
        }
    }
}

/// The columns that dispatches, transfers and opaque work share.
struct Rows<'a> {
    command_buffers: &'a [Option<u64>],
    queues: &'a [u32],
    start_ns: &'a [Option<i64>],
    duration_ns: &'a [Option<i64>],
}

impl<'a> Rows<'a> {
    fn of(
        command_buffers: &'a [Option<u64>],
        queues: &'a [u32],
        start_ns: &'a [Option<i64>],
        duration_ns: &'a [Option<i64>],
    ) -> Rows<'a> {
        Rows {
            command_buffers,
            queues,
            start_ns,
            duration_ns,
        }
    }
}

/// A queue of the manifest, or one that only rows name.
#[derive(Debug, Clone, Copy)]
pub(crate) struct QueueOfGpu {
    pub(crate) id: u32,
    pub(crate) gpu: u32,
    /// Row in the manifest.
    pub(crate) row: Option<u32>,
}

/// What the work of a command buffer says about it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CommandBufferTimes {
    /// Index in [`Timeline::queues`].
    pub(crate) queue: u32,
    /// Row of its submission, or [`NONE`].
    pub(crate) submission: u32,
    /// Its own times.
    pub(crate) own: Option<Interval>,
    /// Pieces of work inside, with and without times.
    pub(crate) timed: u32,
    pub(crate) untimed: u32,
    /// First start and last end of the work, the command buffer itself included where it is work.
    pub(crate) first_start_ns: i64,
    pub(crate) last_end_ns: i64,
    /// Sum and union of the pieces inside.
    pub(crate) sum_ns: i64,
    pub(crate) union_ns: i64,
    /// True when it counts as busy from begin to end though dispatches are timed.
    pub(crate) whole: bool,
}

/// When the work of a submission ran. Without timed work, `first_start_ns` is above `last_end_ns`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SubmissionTimes {
    pub(crate) first_start_ns: i64,
    pub(crate) last_end_ns: i64,
    /// Index in [`Timeline::queues`].
    pub(crate) queue: u32,
}

impl SubmissionTimes {
    fn add(&mut self, work: Interval) {
        self.first_start_ns = self.first_start_ns.min(work.start_ns);
        self.last_end_ns = self.last_end_ns.max(work.end_ns);
    }

    pub(crate) fn interval(&self) -> Option<Interval> {
        (self.first_start_ns <= self.last_end_ns)
            .then(|| Interval::new(self.first_start_ns, self.last_end_ns))
    }
}

impl<'a> Timeline<'a> {
    /// Indexes a trace.
    pub fn of(trace: &'a Trace) -> Timeline<'a> {
        let tables = &trace.tables;
        let mut timeline = Timeline {
            trace,
            gpus: Vec::new(),
            queues: Vec::new(),
            queue_ids: Ids::Empty,
            command_buffers: Vec::new(),
            command_buffer_ids: Ids::new(tables.command_buffers.id.iter().copied()),
            submissions: Vec::new(),
            submission_ids: Ids::new(tables.submissions.id.iter().copied()),
            label_ids: Ids::new(tables.labels.id.iter().map(|id| u64::from(*id))),
            kernel_ids: Ids::new(tables.kernels.id.iter().map(|id| u64::from(*id))),
        };
        timeline.find_gpus();
        timeline.find_submissions();
        timeline.find_work();
        for gpu in &mut timeline.gpus {
            let ids = &tables.command_buffers.id;
            let id = |work: &Work| ids.get(work.command_buffer as usize);
            let order = |a: &Work, b: &Work| {
                a.interval
                    .cmp(&b.interval)
                    .then_with(|| id(a).cmp(&id(b)))
                    .then_with(|| (a.source >> ROW_BITS).cmp(&(b.source >> ROW_BITS)))
            };
            if !gpu.works.is_sorted_by(|a, b| order(a, b).is_le()) {
                gpu.works.sort_by(order);
            }
        }
        timeline.sum_command_buffers();
        timeline
    }

    fn find_gpus(&mut self) {
        let manifest = &self.trace.manifest;
        let mut by_uuid: HashMap<&str, u32> = HashMap::new();
        let mut by_device: HashMap<u32, u32> = HashMap::new();
        for (row, device) in manifest.devices.iter().enumerate() {
            let fresh = self.gpus.len() as u32;
            let gpu = match device.uuid.as_str() {
                "" => fresh,
                uuid => *by_uuid.entry(uuid).or_insert(fresh),
            };
            if gpu == fresh {
                self.gpus.push(Gpu::default());
            }
            self.gpus[gpu as usize].devices.push(row);
            by_device.entry(device.id).or_insert(gpu);
        }
        let mut stray: Option<u32> = None;
        let mut seen: HashMap<u32, ()> = HashMap::new();
        let tables = &self.trace.tables;
        let listed = manifest.queues.iter().enumerate();
        let listed = listed.map(|(row, q)| (q.id, by_device.get(&q.device).copied(), Some(row)));
        let mut last = None;
        let named = (tables.command_buffers.queue.iter())
            .chain(&tables.dispatches.queue)
            .chain(&tables.transfers.queue)
            .chain(&tables.opaque_work.queue)
            .chain(&tables.submissions.queue)
            .filter(|id| last.replace(**id) != Some(**id))
            .map(|id| (*id, None, None));
        for (id, gpu, row) in listed.chain(named) {
            if seen.insert(id, ()).is_some() {
                continue;
            }
            let gpu = gpu.unwrap_or_else(|| {
                *stray.get_or_insert_with(|| {
                    self.gpus.push(Gpu::default());
                    self.gpus.len() as u32 - 1
                })
            });
            self.queues.push(QueueOfGpu {
                id,
                gpu,
                row: row.map(|row| row as u32),
            });
        }
        let ids: Vec<u64> = self.queues.iter().map(|q| u64::from(q.id)).collect();
        self.queue_ids = Ids::new(ids.into_iter());
    }

    fn find_submissions(&mut self) {
        let tables = &self.trace.tables;
        let queue_of = |id: u32| self.queue_ids.row(u64::from(id));
        self.submissions = (tables.submissions.queue.iter())
            .map(|queue| SubmissionTimes {
                first_start_ns: i64::MAX,
                last_end_ns: i64::MIN,
                queue: queue_of(*queue),
            })
            .collect();
        let rows = &tables.command_buffers;
        self.command_buffers = (0..rows.len())
            .map(|row| CommandBufferTimes {
                queue: queue_of(rows.queue[row]),
                submission: self.submission_ids.row(rows.submission[row]),
                own: Interval::of_row(rows.start_ns[row], rows.duration_ns[row]),
                timed: 0,
                untimed: 0,
                first_start_ns: i64::MAX,
                last_end_ns: i64::MIN,
                sum_ns: 0,
                union_ns: 0,
                whole: false,
            })
            .collect();
    }

    fn find_work(&mut self) {
        let tables = &self.trace.tables;
        let inside = self.trace.manifest.sampling_mode != SamplingMode::CommandBuffer;
        let (d, t, o) = (&tables.dispatches, &tables.transfers, &tables.opaque_work);
        if inside && self.gpus.len() == 1 {
            self.gpus[0].works.reserve_exact(d.len());
        }
        self.find_rows(
            WorkKind::Dispatch,
            inside,
            Rows::of(&d.command_buffer, &d.queue, &d.start_ns, &d.duration_ns),
        );
        self.find_rows(
            WorkKind::Transfer,
            inside,
            Rows::of(&t.command_buffer, &t.queue, &t.start_ns, &t.duration_ns),
        );
        self.find_rows(
            WorkKind::Opaque,
            inside,
            Rows::of(&o.command_buffer, &o.queue, &o.start_ns, &o.duration_ns),
        );

        let rows = &tables.command_buffers;
        for (row, times) in self.command_buffers.iter_mut().enumerate() {
            let Some(own) = times.own else { continue };
            let declared = rows.dispatches[row] > 0 || rows.transfers[row] > 0;
            let dark = rows.timing[row] == Timing::Bracketed || declared;
            times.whole = inside && (times.untimed > 0 || (times.timed == 0 && dark));
            if times.whole || !inside {
                let gpu = self.queues[times.queue as usize].gpu;
                let work = Work::new(own, row as u32, WorkKind::CommandBuffer, row);
                self.gpus[gpu as usize].works.push(work);
            }
        }
    }

    fn find_rows(&mut self, kind: WorkKind, inside: bool, rows: Rows) {
        // A dispatch without a time of its own lies in a pass, whose time counts.
        let in_passes =
            kind == WorkKind::Dispatch && self.trace.manifest.sampling_mode == SamplingMode::Pass;
        let mut last = (None, NONE);
        for (row, id) in rows.command_buffers.iter().enumerate() {
            if last.0 != *id {
                let row = id.map_or(NONE, |id| self.command_buffer_ids.row(id));
                last = (*id, row);
            }
            // What is in no command buffer has its own times in every mode.
            let interval = Interval::of_row(rows.start_ns[row], rows.duration_ns[row])
                .filter(|_| inside || id.is_none());
            let mut queue = None;
            if let Some(times) = self.command_buffers.get_mut(last.1 as usize) {
                queue = Some(times.queue);
                match interval {
                    Some(_) => times.timed += 1,
                    None if in_passes => {}
                    None => times.untimed += 1,
                }
            }
            if let Some(interval) = interval {
                let queue =
                    queue.unwrap_or_else(|| self.queue_ids.row(u64::from(rows.queues[row])));
                let gpu = self.queues[queue as usize].gpu;
                let work = Work::new(interval, last.1, kind, row);
                self.gpus[gpu as usize].works.push(work);
            }
        }
    }

    fn sum_command_buffers(&mut self) {
        let (tables, ids) = (&self.trace.tables, &self.submission_ids);
        for work in self.gpus.iter().flat_map(|gpu| &gpu.works) {
            let Some(times) = self.command_buffers.get_mut(work.command_buffer as usize) else {
                let submission = work.own_submission(tables).map_or(NONE, |id| ids.row(id));
                if let Some(times) = self.submissions.get_mut(submission as usize) {
                    times.add(work.interval);
                }
                continue;
            };
            let Interval { start_ns, end_ns } = work.interval;
            if work.kind() != WorkKind::CommandBuffer {
                let fresh = Interval::new(start_ns.max(times.last_end_ns), end_ns);
                times.sum_ns = times.sum_ns.saturating_add(work.interval.length_ns());
                times.union_ns = times.union_ns.saturating_add(fresh.length_ns());
            }
            times.first_start_ns = times.first_start_ns.min(start_ns);
            times.last_end_ns = times.last_end_ns.max(end_ns);
        }
        for times in &self.command_buffers {
            if let Some(submission) = self.submissions.get_mut(times.submission as usize) {
                submission.add(Interval {
                    start_ns: times.first_start_ns,
                    end_ns: times.last_end_ns,
                });
            }
        }
    }

    /// Index in [`Self::queues`] of the queue that ran `work`.
    #[inline]
    pub(crate) fn queue_of(&self, work: &Work) -> u32 {
        if let Some(times) = self.command_buffers.get(work.command_buffer as usize) {
            return times.queue;
        }
        let tables = &self.trace.tables;
        let id = match work.kind() {
            WorkKind::Dispatch => tables.dispatches.queue[work.row()],
            WorkKind::Transfer => tables.transfers.queue[work.row()],
            WorkKind::Opaque => tables.opaque_work.queue[work.row()],
            WorkKind::CommandBuffer => tables.command_buffers.queue[work.row()],
        };
        self.queue_ids.row(u64::from(id))
    }

    /// Id of the submission that launched `work`; absent when the trace does not say.
    pub fn submission_id_of(&self, work: &Work) -> Option<u64> {
        let ids = &self.trace.tables.submissions.id;
        ids.get(self.submission_of(work) as usize).copied()
    }

    /// Row of the submission that launched `work`, or [`NONE`].
    #[inline]
    pub(crate) fn submission_of(&self, work: &Work) -> u32 {
        if let Some(times) = self.command_buffers.get(work.command_buffer as usize) {
            return times.submission;
        }
        let own = work.own_submission(&self.trace.tables);
        own.map_or(NONE, |id| self.submission_ids.row(id))
    }

    /// Id of the innermost label of `work`: its own, else its command buffer's.
    #[inline]
    pub fn label_of(&self, work: &Work) -> Option<u32> {
        let tables = &self.trace.tables;
        let own = match work.kind() {
            WorkKind::Dispatch => tables.dispatches.label[work.row()],
            WorkKind::Transfer => tables.transfers.label[work.row()],
            WorkKind::Opaque => tables.opaque_work.label[work.row()],
            WorkKind::CommandBuffer => None,
        };
        own.or_else(|| {
            *tables
                .command_buffers
                .label
                .get(work.command_buffer as usize)?
        })
    }

    /// True when `work` is known to move data and do nothing else; `None` when it may do both.
    pub(crate) fn is_transfer(&self, work: &Work) -> Option<bool> {
        match work.kind() {
            WorkKind::Dispatch | WorkKind::Opaque => Some(false),
            WorkKind::Transfer => Some(true),
            WorkKind::CommandBuffer => {
                let rows = &self.trace.tables.command_buffers;
                match (rows.dispatches[work.row()], rows.transfers[work.row()]) {
                    (_, 0) => Some(false),
                    (0, _) => Some(true),
                    _ => None,
                }
            }
        }
    }

    /// From the begin of the first work of any GPU to the end of the last.
    pub fn work_window(&self) -> Option<Interval> {
        self.gpus
            .iter()
            .filter_map(Gpu::work_window)
            .reduce(Interval::hull)
    }
}

impl Gpu {
    /// From the begin of its first work to the end of its last.
    pub fn work_window(&self) -> Option<Interval> {
        let first = self.works.first()?.interval.start_ns;
        let last = self.works.iter().map(|work| work.interval.end_ns).max()?;
        Some(Interval::new(first, last))
    }
}

impl Timeline<'_> {
    /// The greatest error of a GPU's times on the host's clock; `None` when one of its devices does not know it.
    pub(crate) fn clock_error_ns(&self, gpu: usize) -> Option<i64> {
        let devices = &self.trace.manifest.devices;
        let errors = self.gpus[gpu]
            .devices
            .iter()
            .map(|row| devices[*row].clock.error_ns);
        errors.reduce(|a, b| Some(a?.max(b?)))?
    }

    /// Texts from the outermost label to this one, joined by ` / `.
    pub(crate) fn label_path(&self, id: u32) -> Option<String> {
        /// Deeper nesting is no nesting but a ring of labels that are each other's parents.
        const DEEPEST: usize = 64;
        let labels = &self.trace.tables.labels;
        let mut texts = Vec::new();
        let mut next = Some(id);
        while let Some(row) = next.and_then(|id| self.label_ids.get(u64::from(id))) {
            if texts.len() == DEEPEST {
                break;
            }
            texts.push(labels.text[row].as_str());
            next = labels.parent[row];
        }
        texts.reverse();
        (!texts.is_empty()).then(|| texts.join(" / "))
    }
}
