//! What the host says: calls, and labels on queues and threads.

use super::Assembler;
use super::commands;
use super::device::OpenQueueLabel;
use super::thread_labels::ThreadPlace;
use gapscope_spool::event::{LabelEdge, LabelScope};
use gapscope_spool::ids as hook;
use gapscope_trace::ids::{LabelId, ProcessId, QueueId, ThreadId};
use gapscope_trace::tables::{Marker, MarkerScope, Table, Tables};
use std::sync::Arc;

/// One end of a label.
#[derive(Debug, Clone, Copy)]
pub(super) struct LabelRecord {
    pub edge: LabelEdge,
    pub text: hook::Text,
    pub at_ns: i64,
}

impl Assembler {
    /// A thread wrote one end of a label.
    pub(super) fn label(
        &mut self,
        process: ProcessId,
        thread: hook::Thread,
        scope: LabelScope,
        record: LabelRecord,
        tables: &mut Tables,
    ) {
        self.saw(record.at_ns);
        let (domain, range) = match scope {
            LabelScope::Queue(queue) => {
                let queue = self.queue(process, queue);
                return self.queue_label(process, queue, record, tables);
            }
            LabelScope::Thread => (hook::LabelDomain::NONE, None),
            LabelScope::Domain(domain) => (domain, None),
            LabelScope::Range { domain, range } => (domain, Some(range)),
        };
        let place = ThreadPlace {
            thread,
            domain,
            range,
        };
        self.thread_label(process, place, record, tables);
    }

    fn queue_label(
        &mut self,
        process: ProcessId,
        queue: QueueId,
        record: LabelRecord,
        tables: &mut Tables,
    ) {
        let LabelRecord { edge, text, at_ns } = record;
        let state = &mut self.processes[process];
        let text = commands::text(&state.texts, &mut self.labels, text);
        let open = &mut self.queues[queue].labels;
        let parent = open.last().map(|open| open.label);
        match edge {
            LabelEdge::Begin => open.push(OpenQueueLabel {
                label: self.labels.label(parent, text),
                start_ns: at_ns,
            }),
            LabelEdge::End => {
                if let Some(ended) = open.pop() {
                    HostMarker::on_queue(queue, ended.label, ended.start_ns).write(
                        process,
                        Some(at_ns),
                        tables,
                    );
                }
            }
            LabelEdge::Instant => {
                let label = self.labels.label(parent, text);
                HostMarker::on_queue(queue, label, at_ns).write(process, Some(at_ns), tables);
            }
        }
    }
}

/// A label that the host set.
pub(super) struct HostMarker<'a> {
    pub scope: MarkerScope,
    pub label: LabelId,
    pub queue: Option<QueueId>,
    pub thread: Option<ThreadId>,
    pub start_ns: i64,
    pub domain: Option<&'a Arc<str>>,
    pub category: Option<&'a Arc<str>>,
    pub payload: Option<&'a Arc<str>>,
}

impl HostMarker<'_> {
    pub fn on_queue(queue: QueueId, label: LabelId, start_ns: i64) -> HostMarker<'static> {
        HostMarker {
            scope: MarkerScope::Queue,
            label,
            queue: Some(queue),
            thread: None,
            start_ns,
            domain: None,
            category: None,
            payload: None,
        }
    }

    /// Appends its row. `end_ns`: absent when it was never ended.
    pub fn write(&self, process: ProcessId, end_ns: Option<i64>, tables: &mut Tables) {
        tables.markers.push(Marker {
            process,
            scope: self.scope,
            label: self.label,
            queue: self.queue,
            thread: self.thread,
            command_buffer: None,
            start_ns: Some(self.start_ns),
            duration_ns: end_ns.map(|end| end.saturating_sub(self.start_ns)),
            domain: self.domain.cloned(),
            category: self.category.cloned(),
            payload: self.payload.cloned(),
        });
    }
}
