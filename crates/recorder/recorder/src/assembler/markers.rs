//! Writes the rows of labels that command buffers contain (in a trace, a marker is the row of a label).

use super::cross_buffer_labels::CrossBufferLabel;
use gapscope_spool::event::Span;
use gapscope_timeline_builder::rows;
use gapscope_trace::ids::{CommandBufferId, LabelId, ProcessId, QueueId};
use gapscope_trace::tables::{Marker, MarkerScope, Tables};

/// Writes the row of a label over several command buffers.
pub fn label_marker(
    process: ProcessId,
    queue: QueueId,
    known: &CrossBufferLabel,
    tables: &mut Tables,
) {
    let span = known.covered.span();
    command_buffer_marker(
        process,
        queue,
        known.label,
        known.command_buffer,
        span,
        tables,
    );
}

/// Writes the row of a label in command buffers; `span` is that of the timed work inside, `None` without any.
pub fn command_buffer_marker(
    process: ProcessId,
    queue: QueueId,
    label: LabelId,
    command_buffer: CommandBufferId,
    span: Option<Span>,
    tables: &mut Tables,
) {
    let scope = MarkerScope::CommandBuffer;
    let start_ns = span.map(|span| span.start_ns);
    let duration_ns = span.map(|span| span.duration_ns);
    let row = rows::marker_row(process, scope, label, start_ns, duration_ns);
    rows::marker(
        tables,
        Marker {
            queue: Some(queue),
            command_buffer: Some(command_buffer),
            ..row
        },
    );
}
