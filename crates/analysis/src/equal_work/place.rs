//! What rows of a trace say about where they belong.

use crate::timeline::{Timeline, Untimed, Work};
use gapscope_trace::ids::{CommandBufferId, LabelId, QueueId, SubmissionId};
use gapscope_trace::lookup::NONE;

/// Where a piece of work belongs. Rows are [`NONE`] where there is none.
#[derive(Debug, Clone, Copy)]
pub(super) struct Place {
    /// Row of its innermost label.
    pub label: u32,
    /// When it began, or else its command buffer.
    pub start_ns: Option<i64>,
    /// Row of its command buffer.
    pub command_buffer: u32,
    /// Row of its submission.
    pub submission: u32,
    /// Index of its queue.
    pub queue: u32,
}

/// The columns that transfers and opaque work share.
#[derive(Debug, Clone, Copy)]
pub(super) struct Row {
    pub command_buffer: Option<CommandBufferId>,
    pub label: Option<LabelId>,
    pub submission: Option<SubmissionId>,
    pub queue: QueueId,
    pub start_ns: Option<i64>,
}

impl Place {
    pub(super) fn of_work(timeline: &Timeline, work: &Work) -> Place {
        Place {
            label: timeline.label_row_of(work),
            start_ns: Some(work.interval.start_ns),
            command_buffer: work.command_buffer,
            submission: timeline.submission_of(work),
            queue: timeline.queue_of(work),
        }
    }

    pub(super) fn of_untimed(timeline: &Timeline, untimed: &Untimed) -> Place {
        let columns = &timeline.dispatches;
        let row = untimed.row as usize;
        let launched = columns.launched.get(row);
        Place {
            label: columns.labels.at(row),
            start_ns: untimed.start_ns,
            command_buffer: untimed.command_buffer,
            submission: launched.map_or(NONE, |launched| launched.submission),
            queue: launched.map_or(NONE, |launched| launched.queue),
        }
        .inside(timeline)
    }

    pub(super) fn of_row(timeline: &Timeline, row: Row) -> Place {
        let id = row.command_buffer;
        let command_buffer = id.map_or(NONE, |id| timeline.command_buffer_ids.row(id));
        let labels = &timeline.trace.tables.command_buffers.label;
        let around = labels.get(command_buffer as usize);
        let label = row.label.or(around);
        let submission = row.submission;
        Place {
            label: label.map_or(NONE, |id| timeline.label_ids.row(id)),
            start_ns: row.start_ns,
            command_buffer,
            submission: submission.map_or(NONE, |id| timeline.submission_ids.row(id)),
            queue: timeline.queue_row(row.queue),
        }
        .inside(timeline)
    }

    /// `row` is one of the table.
    pub(super) fn of_command_buffer(timeline: &Timeline, row: usize) -> Place {
        let label = timeline.trace.tables.command_buffers.label.at(row);
        Place {
            label: label.map_or(NONE, |id| timeline.label_ids.row(id)),
            start_ns: None,
            command_buffer: row as u32,
            submission: NONE,
            queue: NONE,
        }
        .inside(timeline)
    }

    /// With what its command buffer knows of it.
    fn inside(self, timeline: &Timeline) -> Place {
        let row = self.command_buffer as usize;
        let Some(times) = timeline.command_buffers.get(row) else {
            return self;
        };
        let starts = &timeline.trace.tables.command_buffers.start_ns;
        Place {
            start_ns: self.start_ns.or(starts.at(row)),
            submission: times.submission,
            queue: timeline.command_buffer_queues[row],
            ..self
        }
    }
}
