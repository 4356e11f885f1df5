//! The columns that are kept of dispatches, taken from pieces of the table as they are read.
//!
//! The whole table fills a gigabyte for ten million dispatches. These columns take six bytes a dispatch where there are few
//! kernels and labels, and eight where a device's size is known; the [`Work`] of dispatches with known times comes on top.

use super::numbers::Numbers;
use super::work::{Work, WorkKind};
use gapscope_trace::ids::{BindingSetId, SubmissionId};
use gapscope_trace::lookup::{IdIndex, NONE};
use gapscope_trace::tables::Tables;

/// Columns by row of the table of dispatches.
#[derive(Debug, Default)]
pub struct DispatchColumns {
    /// How many dispatches there are.
    pub(super) count: usize,
    /// Rows of their kernels, or [`NONE`].
    pub kernels: Numbers,
    /// Rows of their innermost labels, their own or else their command buffers'; or [`NONE`].
    pub labels: Numbers,
    /// Ids of their sets of bindings, or [`NONE`].
    pub(super) bindings: Numbers,
    /// Their workgroups, or [`NONE`]. Kept only where a device's size is known, since nothing else needs them.
    pub groups: Numbers,
    pub(super) keeps_groups: bool,
    /// Whether labels, bindings and workgroups are kept.
    pub(super) keeps_all: bool,
    /// Whether kernels are kept.
    pub(super) keeps_kernels: bool,
    /// Where dispatches were launched that are in no command buffer. It ends with the last of these.
    pub launched: Vec<Launched>,
    /// Dispatches without known times, by row.
    pub untimed: Vec<Untimed>,
}

/// The place where a dispatch was launched that is in no command buffer.
#[derive(Debug, Clone, Copy)]
pub struct Launched {
    /// Index of its queue.
    pub queue: u32,
    /// Row of its submission, or [`NONE`].
    pub submission: u32,
}

/// A dispatch that is not work, because its times are not known.
#[derive(Debug, Clone, Copy)]
pub struct Untimed {
    /// Its row.
    pub row: u32,
    /// Row of its command buffer, or [`NONE`].
    pub command_buffer: u32,
    /// Its start, which may be known even so.
    pub start_ns: Option<i64>,
    /// Its duration, where that is known and its start is not, as in imported logs.
    pub duration_ns: Option<i64>,
}

impl DispatchColumns {
    /// Returns the set of bindings of a dispatch.
    #[inline]
    pub fn binding_set(&self, row: usize) -> Option<BindingSetId> {
        Some(self.bindings.at(row))
            .filter(|id| *id != NONE)
            .map(BindingSetId)
    }

    /// Returns how many dispatches there are.
    pub fn count(&self) -> usize {
        self.count
    }

    /// Returns the row of the submission that the row of `work` itself names, or [`NONE`].
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

    /// Reserves memory for `rows` dispatches, if there is enough: a damaged trace may claim any number.
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
