//! Tells of pieces of work whether they compute, communicate or move data.

use super::index::Timeline;
use super::work::{Work, WorkKind};
use gapscope_trace::tables::{OpaqueWorkKind, SubmissionKind};

/// The activity of a piece of work, as far as the trace tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Content {
    /// The work computes, whatever else it does.
    Compute,
    /// The work communicates with other devices and does little else.
    Communication,
    /// The work moves data and does nothing else.
    Transfer,
    /// The work is timed as a whole, and its parts are not: it computes, or does only what the fields allow.
    Whole {
        /// True where the work may communicate.
        communication: bool,
        /// True where the work may move data.
        transfer: bool,
        /// True where the device may idle between the parts of the work.
        idle: bool,
    },
}

impl Timeline<'_> {
    /// Returns the activity of `work`.
    #[inline]
    pub fn content(&self, work: &Work) -> Content {
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

    /// Returns the activity of a command buffer that is work itself, by its numbers of dispatches and transfers.
    /// Only one with a single command is known to do that from its start to its end.
    fn content_of_command_buffer(&self, work: &Work) -> Content {
        let tables = &self.trace.tables;
        let rows = &tables.command_buffers;
        let row = work.row();
        let (dispatches, transfers) = (rows.dispatches[row], rows.transfers[row]);
        // The names of its kernels are known, and their times are not.
        let communication = dispatches > 0 && !self.communicates.is_empty();
        let times = &self.command_buffers[row];
        let declared = dispatches.saturating_add(transfers);
        let commands = declared.max(times.timed.saturating_add(times.untimed));
        let idle = commands != 1 || rows.host_functions.at(row).is_some_and(|nodes| nodes > 0);
        if declared == 0 {
            let submission = self.submission_of(work) as usize;
            if tables.submissions.kind.get(submission) == Some(&SubmissionKind::Graph) {
                return Content::ANYTHING;
            }
        }
        match (dispatches, transfers) {
            (0, 1..) if !idle => Content::Transfer,
            (_, 0) if !idle && !communication => Content::Compute,
            _ => Content::Whole {
                communication,
                transfer: transfers > 0,
                idle,
            },
        }
    }
}

impl Content {
    /// The content of a CUDA graph whose nodes are not in the trace.
    const ANYTHING: Content = Content::Whole {
        communication: true,
        transfer: true,
        idle: true,
    };
}
