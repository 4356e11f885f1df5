//! Selects the work of a trace that lies under labels of a given name; the timeline of the selected work is built
//! beside the whole one. A first walk over the dispatches, in [`LabelFilter::new`], counts the selected rows;
//! a second one, while the timeline is built, hands the same rows to the second timeline.

use crate::label_match::LabelName;
use gapscope_trace::Trace;
use gapscope_trace::ids::{CommandBufferId, Id, LabelId, SubmissionId};
use gapscope_trace::lookup::IdIndex;
use gapscope_trace::optional::Optional;
use gapscope_trace::tables::{Dispatches, Table, Tables};

/// The columns of a table of work that name the label, command buffer and submission of its rows.
struct OwnerColumns<'a> {
    command_buffers: &'a Optional<CommandBufferId>,
    labels: &'a Optional<LabelId>,
    submissions: &'a Optional<SubmissionId>,
}

/// Makes the [`OwnerColumns`] of a table.
macro_rules! owners {
    ($rows:expr) => {
        OwnerColumns {
            command_buffers: &$rows.command_buffer,
            labels: &$rows.label,
            submissions: &$rows.submission,
        }
    };
}

/// The work of a trace that lies under the labels that a name means ([`LabelName`]), or inside of labels under them.
#[derive(Debug)]
pub struct LabelFilter {
    /// The tables of the selected work, without its dispatches.
    pub(super) trace: Trace,
    /// The number of dispatches that are selected.
    pub(super) dispatch_count: usize,
    /// The labels that the name means, and those inside of them.
    labels: Marked<LabelId>,
    /// The command buffers that lie under the labels.
    labelled_command_buffers: Marked<CommandBufferId>,
    is_empty: bool,
}

impl LabelFilter {
    /// Finds the work under the labels that `name` means. `feed` hands over the dispatches as for
    /// [`Timeline::from_pieces`](crate::Timeline::from_pieces). Returns `None` where `feed` hands over none.
    pub fn new(
        trace: &Trace,
        name: &str,
        feed: impl FnOnce(&mut (dyn FnMut(&Dispatches) + Send)) -> Option<()>,
    ) -> Option<LabelFilter> {
        let mut selection = Selection::new(trace, name);
        let mut dispatch_count = 0;
        feed(&mut |piece| dispatch_count += selection.add(owners!(piece)))?;
        let is_empty = !selection.any;
        Some(LabelFilter {
            trace: selection.trace(trace),
            dispatch_count,
            labels: selection.labels,
            labelled_command_buffers: selection.labelled_command_buffers,
            is_empty,
        })
    }

    /// Returns true where no work is selected.
    pub fn is_empty(&self) -> bool {
        self.is_empty
    }

    /// Returns the selected rows of a piece of the table of dispatches.
    pub(super) fn select(&self, piece: &Dispatches) -> Dispatches {
        let command_buffers = &self.labelled_command_buffers;
        piece.select(&selected(&self.labels, command_buffers, &owners!(piece)))
    }
}

/// A set of rows of a table, found by their ids.
#[derive(Debug, Clone)]
struct Marked<I> {
    ids: IdIndex<I>,
    /// For each row of the table, true where the row is in the set.
    rows: Vec<bool>,
}

impl<I: Id> Marked<I> {
    /// Returns a set without rows of the table that has these ids.
    fn none(ids: &[I]) -> Marked<I> {
        Marked {
            ids: IdIndex::new(ids),
            rows: vec![false; ids.len()],
        }
    }

    /// Adds the row with an id, if there is one.
    fn mark(&mut self, id: I) {
        if let Some(row) = self.ids.get(id) {
            self.rows[row] = true;
        }
    }

    fn has(&self, id: I) -> bool {
        self.ids.get(id).is_some_and(|row| self.rows[row])
    }

    /// Returns for each id whether its row is in the set.
    fn all(&self, ids: &[I]) -> Vec<bool> {
        ids.iter().map(|id| self.has(*id)).collect()
    }
}

/// Returns for each row whether it is under the labels, by its own label or else by its command buffer's.
fn selected(
    labels: &Marked<LabelId>,
    labelled_command_buffers: &Marked<CommandBufferId>,
    work: &OwnerColumns,
) -> Vec<bool> {
    let rows = work.labels.iter().zip(work.command_buffers);
    rows.map(|(label, command_buffer)| match label {
        Some(label) => labels.has(label),
        None => command_buffer.is_some_and(|id| labelled_command_buffers.has(id)),
    })
    .collect()
}

/// A label filter that is being built.
struct Selection {
    labels: Marked<LabelId>,
    labelled_command_buffers: Marked<CommandBufferId>,
    /// The command buffers that contain selected work.
    command_buffers: Marked<CommandBufferId>,
    /// The submissions that contain selected work.
    submissions: Marked<SubmissionId>,
    /// True where some work is selected.
    any: bool,
}

impl Selection {
    /// Selects from all tables but that of dispatches.
    fn new(trace: &Trace, name: &str) -> Selection {
        let tables = &trace.tables;
        let rows = &tables.labels;
        let name = LabelName::new(trace, name);
        let mut labels = Marked::none(&rows.id);
        for row in 0..rows.len() {
            if rows
                .outwards(&labels.ids, row)
                .any(|row| name.means(&rows.text[row]))
            {
                labels.mark(rows.id[row]);
            }
        }
        let rows = &tables.command_buffers;
        let mut labelled_command_buffers = Marked::none(&rows.id);
        for (id, label) in rows.id.iter().zip(&rows.label) {
            if label.is_some_and(|label| labels.has(label)) {
                labelled_command_buffers.mark(*id);
            }
        }
        let mut selection = Selection {
            labels,
            any: labelled_command_buffers.rows.contains(&true),
            command_buffers: labelled_command_buffers.clone(),
            labelled_command_buffers,
            submissions: Marked::none(&tables.submissions.id),
        };
        selection.add(owners!(tables.transfers));
        selection.add(owners!(tables.opaque_work));
        selection
    }

    /// Returns for each row of a table whether it is selected.
    fn selected(&self, work: &OwnerColumns) -> Vec<bool> {
        selected(&self.labels, &self.labelled_command_buffers, work)
    }

    /// Marks the command buffers and submissions of the selected rows, and returns the number of these rows.
    fn add(&mut self, work: OwnerColumns) -> usize {
        let mut count = 0;
        let selected = self.selected(&work).into_iter().enumerate();
        for (row, _) in selected.filter(|(_, selected)| *selected) {
            count += 1;
            if let Some(id) = work.command_buffers.at(row) {
                self.command_buffers.mark(id);
            }
            if let Some(id) = work.submissions.at(row) {
                self.submissions.mark(id);
            }
        }
        self.any |= count > 0;
        count
    }

    /// Returns the tables of the selected work, once the dispatches have been added.
    fn trace(&mut self, whole: &Trace) -> Trace {
        let from = &whole.tables;
        let command_buffers = self.command_buffers.all(&from.command_buffers.id);
        let command_buffers = from.command_buffers.select(&command_buffers);
        for submission in &command_buffers.submission {
            self.submissions.mark(*submission);
        }
        let submissions = self.submissions.all(&from.submissions.id);
        Trace {
            manifest: whole.manifest.clone(),
            tables: Tables {
                command_buffers,
                submissions: from.submissions.select(&submissions),
                transfers: from
                    .transfers
                    .select(&self.selected(&owners!(from.transfers))),
                opaque_work: from
                    .opaque_work
                    .select(&self.selected(&owners!(from.opaque_work))),
                kernels: from.kernels.clone(),
                labels: from.labels.clone(),
                markers: from.markers.clone(),
                buffers: from.buffers.clone(),
                bindings: from.bindings.clone(),
                ..Tables::default()
            },
            unread: whole.unread.clone(),
        }
    }
}
