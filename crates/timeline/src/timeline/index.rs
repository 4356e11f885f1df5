//! The timeline itself, and what it tells of each piece of work.

use super::dispatches::DispatchColumns;
use super::gpu::Gpu;
use super::times::{CommandBufferTimes, QueueOfGpu, SubmissionTimes};
use super::work::{Work, WorkKind};
use super::works::Iter;
use crate::host::HostThreads;
use crate::intervals::Interval;
use crate::vocabulary::KernelNames;
use gapscope_trace::Trace;
use gapscope_trace::ids::{CommandBufferId, KernelId, LabelId, QueueId, SubmissionId};
use gapscope_trace::lookup::{IdIndex, NONE};
use std::iter::Peekable;
use std::sync::OnceLock;

/// A trace, indexed for the analyses.
#[derive(Debug)]
pub struct Timeline<'a> {
    /// The trace. Its table of dispatches is empty where they came in pieces.
    pub trace: &'a Trace,
    /// GPUs, in the order in which the manifest first names one of their devices.
    pub gpus: Vec<Gpu>,
    /// Queues: those of the manifest, and those that only rows name.
    pub queues: Vec<QueueOfGpu>,
    /// Indices in [`Self::queues`].
    pub queue_ids: IdIndex<QueueId>,
    /// By row of the table.
    pub command_buffers: Vec<CommandBufferTimes>,
    /// By row of the table of command buffers: index in [`Self::queues`]. It has a vector of its own because it is read for
    /// each piece of work.
    pub command_buffer_queues: Vec<u32>,
    /// Rows of the table.
    pub command_buffer_ids: IdIndex<CommandBufferId>,
    /// By row of the table.
    pub submissions: Vec<SubmissionTimes>,
    /// Rows of the table.
    pub submission_ids: IdIndex<SubmissionId>,
    /// Rows of the table.
    pub label_ids: IdIndex<LabelId>,
    /// Rows of the table.
    pub kernel_ids: IdIndex<KernelId>,
    /// By row of the table of kernels: whether it communicates with other devices. Empty where none does.
    pub communicates: Vec<bool>,
    /// What kernels are called.
    pub kernel_names: KernelNames,
    /// What is kept of dispatches.
    pub dispatches: DispatchColumns,
    pub(super) host_threads: OnceLock<HostThreads>,
    pub(super) selected: Option<Box<Timeline<'a>>>,
}

impl<'a> Timeline<'a> {
    /// Returns what host threads did. It is laid out at the first call, because it takes as long as an analysis and several
    /// of them need it.
    pub fn host_threads(&self) -> &HostThreads {
        self.host_threads
            .get_or_init(|| HostThreads::new(self.trace))
    }

    /// Returns the timeline of the work that the [`LabelFilter`](super::LabelFilter) selects; all work where there is no
    /// filter.
    pub fn selected(&self) -> &Timeline<'a> {
        self.selected.as_deref().unwrap_or(self)
    }

    /// True where a [`LabelFilter`](super::LabelFilter) selects work.
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

    /// Returns the row of the kernel of a dispatch.
    #[inline]
    pub fn kernel_row(&self, dispatch: usize) -> Option<usize> {
        let row = self.dispatches.kernels.at(dispatch);
        (row != NONE).then_some(row as usize)
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

    /// Returns the id of the innermost label of `work`: its own, else its command buffer's. Absent also where the trace does
    /// not have that label.
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

    /// Returns the texts from the outermost label to this one, joined by ` / `.
    pub fn label_path(&self, id: LabelId) -> Option<String> {
        let row = self.label_ids.get(id)?;
        Some(self.trace.tables.labels.path(&self.label_ids, row))
    }

    /// Visits the work of all GPUs in order of its interval.
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

    /// Returns the time from the start of the first work of any GPU to the end of the last.
    pub fn work_window(&self) -> Option<Interval> {
        self.gpus
            .iter()
            .filter_map(Gpu::work_window)
            .reduce(Interval::hull)
    }

    /// Returns the greatest error of a GPU's times on the host's clock, or `None` where one of its devices does not know it.
    pub fn clock_error_ns(&self, gpu: usize) -> Option<i64> {
        let devices = &self.trace.manifest.devices;
        let errors = self.gpus[gpu]
            .devices
            .iter()
            .map(|row| devices[*row].clock.error_ns);
        errors.reduce(|a, b| Some(a?.max(b?)))?
    }
}
