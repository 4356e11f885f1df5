//! Finds the label, command buffer, submission and queue that a piece of work belongs to. Two parts of a trace are
//! compared (`equal_work.rs`); the place tells which of them a piece of work belongs to.

use gapscope_timeline::{Timeline, Untimed, Work};
use gapscope_trace::ids::{CommandBufferId, LabelId, QueueId, SubmissionId};
use gapscope_trace::lookup::NONE;

/// The rows of the things that a piece of work belongs to; [`NONE`] stands for no such thing.
#[derive(Debug, Clone, Copy)]
pub(super) struct WorkPlace {
    /// The row of the innermost label around the work.
    pub label: u32,
    /// The start of the work, or of its command buffer where the work has no times.
    pub start_ns: Option<i64>,
    /// The row of the command buffer that holds the work.
    pub command_buffer: u32,
    /// The row of the submission that holds the work.
    pub submission: u32,
    /// The index of the queue that ran the work.
    pub queue: u32,
}

impl WorkPlace {
    pub(super) fn from_work(timeline: &Timeline, work: &Work) -> WorkPlace {
        WorkPlace {
            label: timeline.label_row_of(work),
            start_ns: Some(work.interval.start_ns),
            command_buffer: work.command_buffer,
            submission: timeline.submission_of(work),
            queue: timeline.queue_of(work),
        }
    }

    /// Returns the place of a dispatch without known times.
    pub(super) fn from_untimed(timeline: &Timeline, untimed: &Untimed) -> WorkPlace {
        let columns = &timeline.dispatches;
        let row = untimed.row as usize;
        let launched = columns.launched.get(row);
        WorkPlace {
            label: columns.labels.at(row),
            start_ns: untimed.start_ns,
            command_buffer: untimed.command_buffer,
            submission: launched.map_or(NONE, |launched| launched.submission),
            queue: launched.map_or(NONE, |launched| launched.queue),
        }
        .inside(timeline)
    }

    /// Returns the place of a transfer or of opaque work, by the columns that their tables share.
    pub(super) fn from_row(
        timeline: &Timeline,
        command_buffer: Option<CommandBufferId>,
        label: Option<LabelId>,
        submission: Option<SubmissionId>,
        queue: QueueId,
        start_ns: Option<i64>,
    ) -> WorkPlace {
        let command_buffer = command_buffer.map_or(NONE, |id| timeline.command_buffer_ids.row(id));
        let labels = &timeline.trace.tables.command_buffers.label;
        let label = label.or(labels.get(command_buffer as usize));
        WorkPlace {
            label: label.map_or(NONE, |id| timeline.label_ids.row(id)),
            start_ns,
            command_buffer,
            submission: submission.map_or(NONE, |id| timeline.submission_ids.row(id)),
            queue: timeline.queue_ids.row(queue),
        }
        .inside(timeline)
    }

    /// Returns the place of a command buffer, whose row must be in the table.
    pub(super) fn from_command_buffer(timeline: &Timeline, row: usize) -> WorkPlace {
        let label = timeline.trace.tables.command_buffers.label.at(row);
        WorkPlace {
            label: label.map_or(NONE, |id| timeline.label_ids.row(id)),
            start_ns: None,
            command_buffer: row as u32,
            submission: NONE,
            queue: NONE,
        }
        .inside(timeline)
    }

    /// Fills in the start, submission and queue of the command buffer. Work without a command buffer is returned as
    /// it is.
    fn inside(self, timeline: &Timeline) -> WorkPlace {
        let row = self.command_buffer as usize;
        let Some(times) = timeline.command_buffers.get(row) else {
            return self;
        };
        let starts = &timeline.trace.tables.command_buffers.start_ns;
        WorkPlace {
            start_ns: self.start_ns.or(starts.at(row)),
            submission: times.submission,
            queue: timeline.command_buffer_queues[row],
            ..self
        }
    }
}
