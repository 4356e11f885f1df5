//! Converts labels of host threads and their details from ids of the hook (gapscope's library in the program), and
//! passes them to the timeline of their process.

use super::Assembler;
use super::commands;
use super::host::LabelRecord;
use gapscope_spool::event::{LabelEdge, LabelScope, Layer, Payload};
use gapscope_spool::ids as hook;
use gapscope_timeline_builder as builder;
use gapscope_timeline_builder::{CategoryId, LabelDomain, LabelRows, LabelStart, ProcessRangeId};
use gapscope_trace::ids::{ProcessId, ThreadId};
use gapscope_trace::tables::Tables;
use std::sync::Arc;

/// Converts a label domain of the hook.
pub(super) fn label_domain(domain: hook::LabelDomain) -> LabelDomain {
    match Layer::with_domain(domain) {
        Some(Layer::Module) => LabelDomain::Module,
        Some(Layer::Operator) => LabelDomain::Operator,
        None => LabelDomain::Program(domain.0),
    }
}

/// Converts a label scope of the hook; `None` for the scope of a queue.
fn label_scope(scope: LabelScope) -> Option<builder::LabelScope> {
    Some(match scope {
        LabelScope::Thread => builder::LabelScope::Thread(label_domain(hook::LabelDomain::NONE)),
        LabelScope::Domain(domain) => builder::LabelScope::Thread(label_domain(domain)),
        LabelScope::Range { range, .. } => builder::LabelScope::Process(ProcessRangeId(range.0)),
        LabelScope::Queue(_) => return None,
    })
}

impl Assembler {
    /// Adds the start or the end of a label that a thread set in a domain, or as a range of its process.
    pub(super) fn thread_label(
        &mut self,
        process: ProcessId,
        thread: hook::Thread,
        (domain, scope): (hook::LabelDomain, LabelScope),
        record: LabelRecord,
        tables: &mut Tables,
    ) {
        let LabelRecord { edge, text, at_ns } = record;
        let Some(scope) = label_scope(scope) else {
            return;
        };
        let thread = Some(ThreadId(thread.0));
        let state = &mut self.processes[process];
        let labels = &mut state.timeline.labels;
        let start = LabelStart {
            thread,
            domain: label_domain(domain),
            text: commands::text(&state.texts, &mut self.labels, text),
            at_ns,
            category: CategoryId::default(),
            payload: None,
            labels_work: true,
            has_row: true,
        };
        let out = &mut LabelRows {
            process,
            labels: &mut self.labels,
            tables,
        };
        match (edge, scope) {
            (LabelEdge::End, scope) => labels.end(thread, scope, at_ns, out),
            (LabelEdge::Begin, builder::LabelScope::Process(range)) => {
                labels.begin_process_range(range, start, out);
            }
            (LabelEdge::Begin, _) => {
                labels.begin(start, out);
            }
            (LabelEdge::Instant, _) => labels.instant(start, out),
        }
    }

    /// Adds a detail to the label that a thread wrote last.
    pub(super) fn label_detail(
        &mut self,
        process: ProcessId,
        thread: hook::Thread,
        category: hook::LabelCategory,
        payload: Option<Payload>,
    ) {
        let payload = payload.map(|payload| match payload {
            Payload::Unsigned(value) => Arc::from(value.to_string()),
            Payload::Signed(value) => Arc::from(value.to_string()),
            Payload::Float(value) => Arc::from(value.to_string()),
        });
        let labels = &mut self.processes[process].timeline.labels;
        labels.detail(Some(ThreadId(thread.0)), CategoryId(category.0), payload);
    }

    /// Adds a part of the value of the label that a thread wrote last, or of the label that it ends next in the scope
    /// `ending`.
    pub(super) fn label_payload(
        &mut self,
        process: ProcessId,
        thread: hook::Thread,
        ending: Option<LabelScope>,
        text: &str,
    ) {
        let ending = match ending.map(label_scope) {
            // A label of a queue has no value.
            Some(None) => return,
            ending => ending.flatten(),
        };
        let labels = &mut self.processes[process].timeline.labels;
        labels.add_payload(Some(ThreadId(thread.0)), ending, text);
    }
}
