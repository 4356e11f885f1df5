//! Adds the labels that the host sets on queues and threads: the starts and ends of labels go in; rows come out, one
//! for each label that ended.

use super::Assembler;
use super::commands;
use super::device::OpenQueueLabel;
use gapscope_spool::event::{LabelEdge, LabelScope};
use gapscope_spool::ids as hook;
use gapscope_timeline_builder::rows;
use gapscope_trace::ids::{LabelId, ProcessId, QueueId};
use gapscope_trace::tables::{Marker, MarkerScope, Tables};

/// The start or the end of a label.
#[derive(Debug, Clone, Copy)]
pub(super) struct LabelRecord {
    /// Whether the label begins, ends, or has no duration.
    pub edge: LabelEdge,
    pub text: hook::Text,
    pub at_ns: i64,
}

impl Assembler {
    /// Adds the start or the end of a label.
    pub(super) fn label(
        &mut self,
        process: ProcessId,
        thread: hook::Thread,
        scope: LabelScope,
        record: LabelRecord,
        tables: &mut Tables,
    ) {
        self.saw(record.at_ns);
        let domain = match scope {
            LabelScope::Queue(queue) => {
                let queue = self.queue(process, queue);
                return self.queue_label(process, queue, record, tables);
            }
            LabelScope::Thread => hook::LabelDomain::NONE,
            LabelScope::Domain(domain) | LabelScope::Range { domain, .. } => domain,
        };
        self.thread_label(process, thread, (domain, scope), record, tables);
    }

    /// Opens or ends a label on a queue, or writes one without duration. An end without an open label is ignored.
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
                    let started = (ended.label, ended.start_ns);
                    queue_marker(process, queue, started, Some(at_ns), tables);
                }
            }
            LabelEdge::Instant => {
                let label = self.labels.label(parent, text);
                queue_marker(process, queue, (label, at_ns), Some(at_ns), tables);
            }
        }
    }
}

/// Writes the row of a label that the host set on a queue. `end_ns` is `None` if the label never ended.
pub(super) fn queue_marker(
    process: ProcessId,
    queue: QueueId,
    (label, start_ns): (LabelId, i64),
    end_ns: Option<i64>,
    tables: &mut Tables,
) {
    let duration_ns = end_ns.map(|end_ns| end_ns.saturating_sub(start_ns));
    let scope = MarkerScope::Queue;
    let row = rows::marker_row(process, scope, label, Some(start_ns), duration_ns);
    let queue = Some(queue);
    rows::marker(tables, Marker { queue, ..row });
}
