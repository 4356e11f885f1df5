//! Rows of labels in command buffers.

use super::spanning::SpanningLabel;
use gapscope_spool::event::Span;
use gapscope_trace::ids::{CommandBufferId, LabelId, ProcessId, QueueId};
use gapscope_trace::tables::{Marker, MarkerScope, Table, Tables};

/// The row of a label over several command buffers.
pub fn label_marker(
    process: ProcessId,
    queue: QueueId,
    known: &SpanningLabel,
    tables: &mut Tables,
) {
    let span = known.hull.span();
    command_buffer_marker(
        process,
        queue,
        known.label,
        known.command_buffer,
        span,
        tables,
    );
}

/// The row of a label in command buffers.
pub fn command_buffer_marker(
    process: ProcessId,
    queue: QueueId,
    label: LabelId,
    command_buffer: CommandBufferId,
    span: Option<Span>,
    tables: &mut Tables,
) {
    tables.markers.push(Marker {
        process,
        scope: MarkerScope::CommandBuffer,
        label,
        queue: Some(queue),
        thread: None,
        command_buffer: Some(command_buffer),
        start_ns: span.map(|span| span.start_ns),
        duration_ns: span.map(|span| span.duration_ns),
        domain: None,
        category: None,
        payload: None,
    });
}
