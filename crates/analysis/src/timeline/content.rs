//! What pieces of work do.

use super::{Timeline, Work, WorkKind};
use gapscope_trace::tables::{OpaqueWorkKind, SubmissionKind};

/// What a piece of work does, as far as the trace says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Content {
    /// It computes, whatever else is in it.
    Compute,
    /// It communicates with other devices and does little else.
    Communication,
    /// It moves data and does nothing else.
    Transfer,
    /// It computes, or does only what is set here: it is timed as a whole.
    Whole { communication: bool, transfer: bool },
}

impl Timeline<'_> {
    /// What `work` does.
    #[inline]
    pub(crate) fn content(&self, work: &Work) -> Content {
        match work.kind() {
            WorkKind::Dispatch if self.communicates.is_empty() => Content::Compute,
            WorkKind::Dispatch => match self.kernel_row(work.row()) {
                Some(row) if self.communicates[row] => Content::Communication,
                _ => Content::Compute,
            },
            WorkKind::Transfer => Content::Transfer,
            WorkKind::Opaque => match self.trace.tables.opaque_work.kind[work.row()] {
                OpaqueWorkKind::Graph => Content::ANYTHING,
                _ => Content::Compute,
            },
            WorkKind::CommandBuffer => self.content_of_command_buffer(work),
        }
    }

    fn content_of_command_buffer(&self, work: &Work) -> Content {
        let tables = &self.trace.tables;
        let rows = &tables.command_buffers;
        // Kernels are known by name, and by their times not.
        let communication = !self.communicates.is_empty();
        match (rows.dispatches[work.row()], rows.transfers[work.row()]) {
            (0, 0) => {
                let submission = self.submission_of(work) as usize;
                match tables.submissions.kind.get(submission) {
                    Some(SubmissionKind::Graph) => Content::ANYTHING,
                    _ => Content::Compute,
                }
            }
            (0, _) => Content::Transfer,
            (_, 0) if !communication => Content::Compute,
            (_, transfers) => Content::Whole {
                communication,
                transfer: transfers > 0,
            },
        }
    }
}

impl Content {
    /// Of a graph whose nodes are not in the trace.
    const ANYTHING: Content = Content::Whole {
        communication: true,
        transfer: true,
    };
}
