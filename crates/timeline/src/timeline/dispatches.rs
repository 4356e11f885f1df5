//! The columns that a timeline keeps of dispatches, filled from pieces of the table of dispatches as they are read.
//!
//! The whole table fills a gigabyte for ten million dispatches. These columns take six bytes a dispatch where there
//! are few kernels and labels, eight where workgroups are read, and the [`Work`] of dispatches with known times.

use super::numbers::Numbers;
use super::work::{Work, WorkKind};
use gapscope_trace::ids::{BindingSetId, SubmissionId};
use gapscope_trace::lookup::{IdIndex, NONE};
use gapscope_trace::tables::Tables;
use std::collections::HashMap;

/// The kept columns, by row of the table of dispatches.
#[derive(Debug, Default)]
pub struct DispatchColumns {
    /// The number of dispatches.
    pub(super) count: usize,
    /// The row of each dispatch's kernel, or [`NONE`].
    pub kernels: Numbers,
    /// The row of each dispatch's innermost label, which is its own or else its command buffer's, or [`NONE`].
    pub labels: Numbers,
    /// The id of each dispatch's set of bindings, or [`NONE`].
    pub(super) bindings: Numbers,
    /// The number of each dispatch's workgroups, or [`NONE`].
    pub(super) groups: Numbers,
    /// The numbers of each dispatch's workgroups by axis, kept only where a kernel's code says which bytes they touch.
    pub(super) grids: Grids,
    /// True where workgroups are kept, provided that [`Self::keeps_all`] is true: where they are read.
    pub(super) keeps_groups: bool,
    /// True where labels and bindings are kept, and workgroups if [`Self::keeps_groups`] is true too.
    pub(super) keeps_all: bool,
    /// True where kernels are kept.
    pub(super) keeps_kernels: bool,
    /// The queues and submissions of dispatches that are in no command buffer, by row; rows of dispatches in command
    /// buffers hold [`NONE`]. The list ends with the last dispatch in no command buffer.
    pub launched: Vec<Launched>,
    /// The dispatches without known times, in order of their rows.
    pub untimed: Vec<Untimed>,
}

/// The numbers of workgroups of dispatches by axis: many dispatches have few different ones.
#[derive(Debug, Default)]
pub(super) struct Grids {
    /// True where they are kept, provided that all columns are.
    pub(super) kept: bool,
    /// The place in `all` of each dispatch's, or [`NONE`].
    places: Numbers,
    all: Vec<[u32; 3]>,
    by_grid: HashMap<[u32; 3], u32>,
}

impl Grids {
    /// Adds those of the next dispatch.
    pub(super) fn push(&mut self, grid: Option<[u32; 3]>) {
        let place = grid.map(|grid| {
            *self.by_grid.entry(grid).or_insert_with(|| {
                self.all.push(grid);
                self.all.len() as u32 - 1
            })
        });
        self.places.push(place.unwrap_or(NONE));
    }
}

/// The queue and submission of a dispatch that is in no command buffer.
#[derive(Debug, Clone, Copy)]
pub struct Launched {
    /// The index of the queue.
    pub queue: u32,
    /// The row of the submission, or [`NONE`].
    pub submission: u32,
}

/// A dispatch that is not work, because its times are not known.
#[derive(Debug, Clone, Copy)]
pub struct Untimed {
    /// The dispatch's row.
    pub row: u32,
    /// The row of the dispatch's command buffer, or [`NONE`].
    pub command_buffer: u32,
    /// The dispatch's start, which may be known although its duration is not.
    pub start_ns: Option<i64>,
    /// The dispatch's duration, where it is known and the start is not, as in imported logs.
    pub duration_ns: Option<i64>,
}

impl DispatchColumns {
    /// Returns the id of the set of bindings of a dispatch.
    #[inline]
    pub fn binding_set(&self, row: usize) -> Option<BindingSetId> {
        Some(self.bindings.at(row))
            .filter(|id| *id != NONE)
            .map(BindingSetId)
    }

    /// Returns the numbers of a dispatch's workgroups by axis, or `None` where they are unknown or not kept.
    #[inline]
    pub fn grid(&self, row: usize) -> Option<[u32; 3]> {
        let is_kept = self.grids.kept && self.keeps_all;
        let place = is_kept.then(|| self.grids.places.at(row))?;
        self.grids.all.get(place as usize).copied()
    }

    /// Returns the number of workgroups of a dispatch; `None` where it is not known, or was not read.
    #[inline]
    pub fn groups(&self, row: usize) -> Option<u32> {
        let groups = self.keeps_groups.then(|| self.groups.at(row))?;
        (groups != NONE).then_some(groups)
    }

    /// Returns the number of dispatches.
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
        // Whether workgroups are kept is known with the first piece.
        let columns = [
            (self.keeps_kernels, &mut self.kernels),
            (self.keeps_all, &mut self.labels),
            (self.keeps_all, &mut self.bindings),
        ];
        for (_, column) in columns.into_iter().filter(|(kept, _)| *kept) {
            column.reserve(rows);
        }
    }
}
