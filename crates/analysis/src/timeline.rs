//! The timeline: a trace's work in order of time, by GPU, with its tables indexed by id.
//!
//! *Work* is what makes a device busy. In the dispatch modes it is every dispatch, transfer and piece of opaque work
//! with known times, and besides them every command buffer that has times of its own while something inside has none:
//! that one counts from its start to its end. In `pass` mode dispatches without times lie in passes, which are opaque
//! work, and are none themselves. In `command-buffer` mode work is the command buffers with known times.
//!
//! [`Gpus`](crate::vocabulary::Gpus) says which devices are one GPU. Work on a queue that the manifest does not list belongs
//! to a GPU named `unknown device`.

mod build;
mod content;
mod dispatches;
mod nearly_sorted;
mod numbers;
mod packer;
mod times;
mod work;
mod works;

use crate::host::Host;
use crate::intervals::Interval;
use crate::vocabulary::KernelNames;
use build::Builder;
use dispatches::DispatchColumns;
pub(crate) use dispatches::Untimed;
use gapscope_trace::Trace;
use gapscope_trace::ids::{CommandBufferId, KernelId, LabelId, QueueId, SubmissionId};
use gapscope_trace::lookup::{IdIndex, NONE};
use gapscope_trace::tables::Dispatches;
use std::iter::Peekable;
use std::sync::OnceLock;
use times::{CommandBufferTimes, QueueOfGpu, SubmissionTimes};

pub(crate) use content::Content;
pub use work::{Gpu, Work, WorkKind};
pub use works::{Iter, Works};

/// A trace, indexed for the analyses.
#[derive(Debug)]
pub struct Timeline<'a> {
    /// The trace. Its table of dispatches is empty where they came in pieces.
    pub trace: &'a Trace,
    /// GPUs, in the order in which the manifest first names one of their devices.
    pub gpus: Vec<Gpu>,
    pub(crate) queues: Vec<QueueOfGpu>,
    pub(crate) queue_ids: IdIndex<QueueId>,
    /// By row of the table.
    pub(crate) command_buffers: Vec<CommandBufferTimes>,
    /// The same: index in [`Self::queues`]. By itself, because it is asked of each piece of work.
    pub(crate) command_buffer_queues: Vec<u32>,
    pub(crate) command_buffer_ids: IdIndex<CommandBufferId>,
    /// By row of the table.
    pub(crate) submissions: Vec<SubmissionTimes>,
    pub(crate) submission_ids: IdIndex<SubmissionId>,
    pub(crate) label_ids: IdIndex<LabelId>,
    pub(crate) kernel_ids: IdIndex<KernelId>,
    /// By row of the table of kernels: they communicate with other devices. Empty where none does.
    pub(crate) communicates: Vec<bool>,
    /// What kernels are called.
    pub kernel_names: KernelNames,
    pub(crate) dispatches: DispatchColumns,
    host: OnceLock<Host>,
}

impl<'a> Timeline<'a> {
    /// What host threads did, laid out when it is first asked for: several analyses need it, and it takes as long as they do.
    pub(crate) fn host(&self) -> &Host {
        self.host.get_or_init(|| Host::of(self.trace))
    }

    /// Indexes a trace.
    pub fn of(trace: &'a Trace) -> Timeline<'a> {
        let dispatches = &trace.tables.dispatches;
        let count = dispatches.queue.len();
        let (timeline, ()) = Timeline::fed(trace, count, true, |take| take(dispatches));
        timeline
    }

    /// Indexes a trace whose `count` dispatches are not in its table: `feed` hands them over piece by piece, in their
    /// order, as [`gapscope_trace::DispatchPieces`] reads them. `None` where it gives none.
    ///
    /// Findings and activity are the same as of the whole trace, in a fraction of its memory.
    /// [Dataflow](crate::dataflow) needs the table.
    pub fn of_pieces<R>(
        trace: &'a Trace,
        count: usize,
        feed: impl FnOnce(&mut (dyn FnMut(&Dispatches) + Send)) -> Option<R>,
    ) -> Option<(Timeline<'a>, R)> {
        let (timeline, fed) = Timeline::fed(trace, count, true, feed);
        Some((timeline, fed?))
    }

    /// The same, of which only gaps and counters are asked: it keeps no kernels, labels and bindings of dispatches.
    pub fn of_times<R>(
        trace: &'a Trace,
        count: usize,
        feed: impl FnOnce(&mut (dyn FnMut(&Dispatches) + Send)) -> Option<R>,
    ) -> Option<(Timeline<'a>, R)> {
        let (timeline, fed) = Timeline::fed(trace, count, false, feed);
        Some((timeline, fed?))
    }

    fn fed<R>(
        trace: &'a Trace,
        count: usize,
        keeps_all: bool,
        feed: impl FnOnce(&mut (dyn FnMut(&Dispatches) + Send)) -> R,
    ) -> (Timeline<'a>, R) {
        std::thread::scope(|scope| {
            let mut builder = Builder::new(scope, trace, count, keeps_all);
            let fed = feed(&mut |piece| builder.add(piece));
            (builder.finish(), fed)
        })
    }

    /// Index in [`Self::queues`] of the queue that ran `work`.
    #[inline]
    pub(crate) fn queue_of(&self, work: &Work) -> u32 {
        let of_command_buffer = (self.command_buffer_queues).get(work.command_buffer as usize);
        if let Some(queue) = of_command_buffer {
            return *queue;
        }
        let tables = &self.trace.tables;
        let id = match work.kind() {
            WorkKind::Dispatch => return self.dispatches.launched[work.row()].queue,
            WorkKind::Transfer => tables.transfers.queue[work.row()],
            WorkKind::Opaque => tables.opaque_work.queue[work.row()],
            WorkKind::CommandBuffer => tables.command_buffers.queue[work.row()],
        };
        self.queue_ids.row(id)
    }

    /// Id of the submission that launched `work`; absent when the trace does not say.
    pub fn submission_id_of(&self, work: &Work) -> Option<SubmissionId> {
        let ids = &self.trace.tables.submissions.id;
        ids.get(self.submission_of(work) as usize).copied()
    }

    /// Index in [`Self::queues`] of a queue, or [`NONE`].
    #[inline]
    pub(crate) fn queue_row(&self, id: QueueId) -> u32 {
        self.queue_ids.row(id)
    }

    /// Row of the submission that launched `work`, or [`NONE`].
    #[inline]
    pub(crate) fn submission_of(&self, work: &Work) -> u32 {
        if let Some(times) = self.command_buffers.get(work.command_buffer as usize) {
            return times.submission;
        }
        let tables = &self.trace.tables;
        self.dispatches
            .submission_of(work, tables, &self.submission_ids)
    }

    /// Row of the kernel of a dispatch.
    #[inline]
    pub(crate) fn kernel_row(&self, dispatch: usize) -> Option<usize> {
        let row = self.dispatches.kernels.at(dispatch);
        (row != NONE).then_some(row as usize)
    }

    /// Id of the innermost label of `work`: its own, else its command buffer's. Absent also where the trace does not have
    /// that label.
    pub fn label_of(&self, work: &Work) -> Option<LabelId> {
        let ids = &self.trace.tables.labels.id;
        ids.get(self.label_row_of(work) as usize).copied()
    }

    /// Row of the innermost label of `work`, or [`NONE`].
    #[inline]
    pub(crate) fn label_row_of(&self, work: &Work) -> u32 {
        let tables = &self.trace.tables;
        let own = match work.kind() {
            WorkKind::Dispatch => return self.dispatches.labels.at(work.row()),
            WorkKind::Transfer => tables.transfers.label.at(work.row()),
            WorkKind::Opaque => tables.opaque_work.label.at(work.row()),
            WorkKind::CommandBuffer => None,
        };
        let around = &tables.command_buffers.label;
        let label = own.or_else(|| around.get(work.command_buffer as usize));
        label.map_or(NONE, |id| self.label_ids.row(id))
    }

    /// Visits all work in order of its interval, over all GPUs.
    #[inline]
    pub(crate) fn each_work(&self, mut visit: impl FnMut(&Work)) {
        let mut working = self.gpus.iter().filter(|gpu| !gpu.works.is_empty());
        if let (Some(only), None) = (working.next(), working.next()) {
            return only.works.iter().for_each(|work| visit(&work));
        }
        let all = self.gpus.iter().map(|gpu| gpu.works.iter().peekable());
        let mut left: Vec<_> = all.collect();
        let interval = |works: &mut Peekable<Iter>| works.peek().map(|work| work.interval);
        while let Some((_, next)) = (left.iter_mut().enumerate())
            .filter_map(|(at, works)| Some((interval(works)?, at)))
            .min()
        {
            if let Some(work) = left[next].next() {
                visit(&work);
            }
        }
    }

    /// The longest that a piece of work took.
    pub(crate) fn longest_ns(&self) -> i64 {
        let of_gpus = self.gpus.iter().map(|gpu| gpu.reach.longest_ns);
        of_gpus.max().unwrap_or(0)
    }

    /// From the start of the first work of any GPU to the end of the last.
    pub fn work_window(&self) -> Option<Interval> {
        self.gpus
            .iter()
            .filter_map(Gpu::work_window)
            .reduce(Interval::hull)
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
    pub(crate) fn label_path(&self, id: LabelId) -> Option<String> {
        let row = self.label_ids.get(id)?;
        Some(self.trace.tables.labels.path(&self.label_ids, row))
    }
}
