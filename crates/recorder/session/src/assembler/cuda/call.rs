//! Adds reports of CUDA's tracing library about host threads: functions that the host ran for a queue, and time
//! that the driver or the tracing took.

use super::{Assembler, known_thread};
use gapscope_spool::event::{OverheadKind, Span};
use gapscope_spool::ids as hook;
use gapscope_timeline_builder::Overhead;
use gapscope_trace::ids::{ProcessId, QueueId};
use gapscope_trace::tables::Tables;

impl Assembler {
    /// Records that a host function ran for a queue.
    pub(super) fn host_function(
        &mut self,
        process: ProcessId,
        queue: QueueId,
        thread: hook::Thread,
        span: Option<Span>,
        tables: &mut Tables,
    ) {
        if let Some(span) = self.checked(span) {
            self.with_timeline(process, tables, |timeline, out| {
                timeline.host_function(queue, known_thread(thread), span, out);
            });
        }
    }

    /// Adds time that the driver or the tracing library took.
    pub(super) fn cuda_overhead(
        &mut self,
        process: ProcessId,
        kind: OverheadKind,
        thread: hook::Thread,
        span: Option<Span>,
        tables: &mut Tables,
    ) {
        if let Some(span) = self.checked(span) {
            let overhead = Overhead {
                thread: known_thread(thread),
                span,
                kind,
                tool: "CUPTI",
            };
            self.with_timeline(process, tables, |timeline, out| {
                timeline.overhead(&overhead, out);
            });
        }
    }
}
