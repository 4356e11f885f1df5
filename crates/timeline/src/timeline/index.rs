//! The type of the timeline: a trace's work by GPU, with the tables indexed by id, and look-ups by piece of work.

use super::dispatches::DispatchColumns;
use super::gpu::Gpu;
use super::synchronous::synchronous;
use super::times::{CommandBufferTimes, OnUndefinedQueues, QueueOfGpu, SubmissionTimes};
use super::work::{Work, WorkKind};
use super::works::Iter;
use crate::host::HostThreads;
use crate::intervals::Interval;
use crate::vocabulary::KernelNames;
use gapscope_trace::Trace;
use gapscope_trace::ids::{CommandBufferId, KernelId, LabelId, QueueId, SubmissionId};
use gapscope_trace::lookup::{IdIndex, NONE};
use gapscope_trace::tables::MemoryPlace;
use std::iter::Peekable;
use std::sync::OnceLock;

/// A trace, indexed by time and by id for the analyses.
#[derive(Debug)]
pub struct Timeline<'a> {
    /// The trace. Its table of dispatches is empty where the dispatches came in pieces.
    pub trace: &'a Trace,
    /// The GPUs, in the order in which the manifest first names one of their devices.
    pub gpus: Vec<Gpu>,
    /// The queues: those of the manifest first, then those that only rows name.
    pub queues: Vec<QueueOfGpu>,
    /// The index of each queue in [`Self::queues`], by its id.
    pub queue_ids: IdIndex<QueueId>,
    /// The times of each command buffer, by its row in the table.
    pub command_buffers: Vec<CommandBufferTimes>,
    /// The index in [`Self::queues`] of each command buffer's queue, by the command buffer's row. It has a vector of
    /// its own because it is read for each piece of work.
    pub command_buffer_queues: Vec<u32>,
    /// The row of each command buffer in its table, by id.
    pub command_buffer_ids: IdIndex<CommandBufferId>,
    /// The times of each submission, by its row in the table.
    pub submissions: Vec<SubmissionTimes>,
    /// The row of each submission in its table, by id.
    pub submission_ids: IdIndex<SubmissionId>,
    /// The row of each label in its table, by id.
    pub label_ids: IdIndex<LabelId>,
    /// The row of each kernel in its table, by id.
    pub kernel_ids: IdIndex<KernelId>,
    /// For each row of the table of kernels, true where the kernel communicates with other devices. Empty where no
    /// kernel does.
    pub communicates: Vec<bool>,
    /// The names of the kernels.
    pub kernel_names: KernelNames,
    /// The work that names a queue which the trace does not define: its times are not used.
    pub on_undefined_queues: OnUndefinedQueues,
    /// The columns that are kept of dispatches.
    pub dispatches: DispatchColumns,
    /// The rows of each queue's submissions; empty until they are asked for.
    pub(super) by_queue: OnceLock<Vec<Vec<u32>>>,
    /// The segments of host threads; empty until they are asked for.
    pub(super) host_threads: OnceLock<HostThreads>,
    /// The timeline of the work that a label filter selects; `None` without a filter.
    pub(super) selected: Option<Box<Timeline<'a>>>,
}

impl<'a> Timeline<'a> {
    /// Returns the segments of host threads. They are computed at the first call, because that takes as long as an
    /// analysis, and kept, because several analyses need them.
    pub fn host_threads(&self) -> &HostThreads {
        self.host_threads.get_or_init(|| {
            let waits = synchronous(self.trace, &self.submissions, &self.submission_ids);
            HostThreads::new(self.trace, &waits)
        })
    }

    /// Returns the timeline of the work that the [`LabelFilter`](super::LabelFilter) selects; all work where there is no
    /// filter.
    pub fn selected(&self) -> &Timeline<'a> {
        self.selected.as_deref().unwrap_or(self)
    }

    /// Returns true where a [`LabelFilter`](super::LabelFilter) selects work.
    pub fn is_filtered(&self) -> bool {
        self.selected.is_some()
    }

    /// Returns the index in [`Self::queues`] of the queue that ran `work`.
    #[inline]
    pub fn queue_of(&self, work: &Work) -> u32 {
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

    /// Returns the index in [`Self::queues`] of the queue that ran the transfer in this row of the table.
    pub fn queue_of_transfer(&self, row: usize) -> u32 {
        self.queue_ids.row(self.trace.tables.transfers.queue[row])
    }

    /// Returns the id of the submission that launched `work`, where the trace says.
    pub fn submission_id_of(&self, work: &Work) -> Option<SubmissionId> {
        let ids = &self.trace.tables.submissions.id;
        ids.get(self.submission_of(work) as usize).copied()
    }

    /// Returns the row of the submission that launched `work`, or [`NONE`].
    #[inline]
    pub fn submission_of(&self, work: &Work) -> u32 {
        if let Some(times) = self.command_buffers.get(work.command_buffer as usize) {
            return times.submission;
        }
        let tables = &self.trace.tables;
        self.dispatches
            .submission_of(work, tables, &self.submission_ids)
    }

    /// Returns the row of the kernel of a dispatch, or `None` where it is unknown.
    #[inline]
    pub fn kernel_row(&self, dispatch: usize) -> Option<usize> {
        let row = self.dispatches.kernels.at(dispatch);
        (row != NONE).then_some(row as usize)
    }

    /// Returns true for a row of `transfers` that is a move of managed memory's pages: the driver makes it where a
    /// processor touches the pages, and no call submits it.
    pub fn is_page_move(&self, transfer: usize) -> bool {
        let rows = &self.trace.tables.transfers;
        matches!(
            rows.host_memory.get(transfer),
            Some(Some(MemoryPlace::Managed))
        ) && rows.submission.get(transfer).is_none()
            && rows.command_buffer.get(transfer).is_none()
    }

    /// Returns the name of a piece of work: its kernel, or the kind of a transfer or of other work.
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

    /// Returns the id of the innermost label of `work`, which is its own or else its command buffer's. Returns `None`
    /// where there is no label or the trace lacks it.
    pub fn label_of(&self, work: &Work) -> Option<LabelId> {
        let ids = &self.trace.tables.labels.id;
        ids.get(self.label_row_of(work) as usize).copied()
    }

    /// Returns the row of the innermost label of `work`, or [`NONE`].
    #[inline]
    pub fn label_row_of(&self, work: &Work) -> u32 {
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

    /// Returns the texts from the outermost label to the label with this id, joined by ` / `.
    pub fn label_path(&self, id: LabelId) -> Option<String> {
        let row = self.label_ids.get(id)?;
        Some(self.trace.tables.labels.path(&self.label_ids, row))
    }

    /// Calls `visit` with the work of all GPUs in order of time.
    #[inline]
    pub fn each_work(&self, mut visit: impl FnMut(&Work)) {
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

    /// Returns the length of the longest piece of work.
    pub fn longest_ns(&self) -> i64 {
        let of_gpus = self.gpus.iter().map(|gpu| gpu.extent.longest_ns);
        of_gpus.max().unwrap_or(0)
    }

    /// Returns the interval from the start of the first work of any GPU to the end of the last.
    pub fn work_window(&self) -> Option<Interval> {
        self.gpus
            .iter()
            .filter_map(Gpu::work_window)
            .reduce(Interval::hull)
    }

    /// Returns the greatest error of a GPU's times on the host's clock, or `None` where it is unknown for one of the
    /// GPU's devices.
    pub fn clock_error_ns(&self, gpu: usize) -> Option<i64> {
        let devices = &self.trace.manifest.devices;
        let errors = self.gpus[gpu]
            .devices
            .iter()
            .map(|row| devices[*row].clock.error_ns);
        errors.reduce(|a, b| Some(a?.max(b?)))?
    }
}
