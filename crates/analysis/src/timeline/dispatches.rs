//! What the analyses keep of each dispatch.
//!
//! Of ten million dispatches the columns of the table fill a gigabyte. What is kept here are six bytes of each where there are
//! few kernels and labels, eight where a device's size is known, and its [`Work`] where its times are known; it can be taken from pieces of the table
//! as they are read.

use super::numbers::Numbers;
use super::work::{Work, WorkKind};
use gapscope_trace::ids::{BindingSetId, SubmissionId};
use gapscope_trace::lookup::{IdIndex, NONE};
use gapscope_trace::tables::Tables;

/// Columns by row of the table of dispatches.
#[derive(Debug, Default)]
pub(crate) struct DispatchColumns {
    /// How many dispatches there are.
    pub(super) count: usize,
    /// Row of its kernel, or [`NONE`].
    pub(crate) kernels: Numbers,
    /// Row of its innermost label, its own or else its command buffer's; or [`NONE`].
    pub(crate) labels: Numbers,
    /// Id of its set of bindings, or [`NONE`].
    pub(super) bindings: Numbers,
    /// Its workgroups, or [`NONE`]. Only where a device's size is known: nothing else needs them.
    pub(crate) groups: Numbers,
    pub(super) keeps_groups: bool,
    /// Labels, bindings and workgroups are kept.
    pub(super) keeps_all: bool,
    /// Kernels are.
    pub(super) keeps_kernels: bool,
    /// Of what is in no command buffer; shorter where none follow.
    pub(crate) launched: Vec<Launched>,
    /// Those without known times, by row.
    pub(crate) untimed: Vec<Untimed>,
}

/// Where a dispatch was launched that is in no command buffer.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Launched {
    /// Index of its queue.
    pub(crate) queue: u32,
    /// Row of its submission, or [`NONE`].
    pub(crate) submission: u32,
}

/// A dispatch that is not work, because its times are not known.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Untimed {
    pub(crate) row: u32,
    /// Row of its command buffer, or [`NONE`].
    pub(crate) command_buffer: u32,
    /// Its start may be known even so.
    pub(crate) start_ns: Option<i64>,
    /// How long it ran, where that is known and not when (imports of logs).
    pub(crate) duration_ns: Option<i64>,
}

impl DispatchColumns {
    /// The set of bindings of a dispatch.
    #[inline]
    pub(crate) fn binding_set(&self, row: usize) -> Option<BindingSetId> {
        Some(self.bindings.at(row))
            .filter(|id| *id != NONE)
            .map(BindingSetId)
    }

    /// How many dispatches there are.
    pub(crate) fn len(&self) -> usize {
        self.count
    }

    /// Row of the submission that the own row of `work` names, or [`NONE`].
    #[inline]
    pub(super) fn submission_of(
        &self,
        work: &Work,
        tables: &Tables,
        submissions: &IdIndex<SubmissionId>,
    ) -> u32 {
        let row = work.row();
        let id = match work.kind() {
            WorkKind::Dispatch => {
                return self
                    .launched
                    .get(row)
                    .map_or(NONE, |launched| launched.submission);
            }
            WorkKind::Transfer => tables.transfers.submission.at(row),
            WorkKind::Opaque => tables.opaque_work.submission.at(row),
            WorkKind::CommandBuffer => None,
        };
        id.map_or(NONE, |id| submissions.row(id))
    }

    /// Makes space for so many, where there is some: a damaged trace may claim any number.
    pub(super) fn reserve(&mut self, rows: usize) {
        let columns = [
            (self.keeps_kernels, &mut self.kernels),
            (self.keeps_all, &mut self.labels),
            (self.keeps_all, &mut self.bindings),
            (self.keeps_all && self.keeps_groups, &mut self.groups),
        ];
        for (_, column) in columns.into_iter().filter(|(kept, _)| *kept) {
            column.reserve(rows);
        }
    }
}
