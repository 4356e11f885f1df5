//! Adds a submission: its row, and an instance (execution) for each of its command buffers, which waits for its times
//! and has the labels of the queue that span it and other command buffers.

use super::Assembler;
use super::instance::{ClockPosition, Instance};
use gapscope_model::LossKind;
use gapscope_spool::event::{Instance as Submitted, SemaphoreValue, Span, SubmitFunction};
use gapscope_spool::ids as hook;
use gapscope_timeline_builder::rows;
use gapscope_trace::build::TextId;
use gapscope_trace::ids::{ProcessId, ThreadId};
use gapscope_trace::tables::{Submission, SubmissionKind, Tables};
use std::sync::{Arc, LazyLock};

/// The host call that made a submission.
pub(super) struct SubmitCall {
    pub submission: hook::Submission,
    pub function: SubmitFunction,
    pub thread: hook::Thread,
    /// The id of the queue in the process.
    pub queue: hook::Queue,
    pub span: Span,
}

/// Returns the name of a function as the tables keep it.
pub(super) fn function_name(function: SubmitFunction) -> Arc<str> {
    static NAMES: LazyLock<[Arc<str>; SubmitFunction::ALL.len()]> =
        LazyLock::new(|| SubmitFunction::ALL.map(|function| function.name().into()));
    Arc::clone(&NAMES[function as usize])
}

impl Assembler {
    /// Appends the row of a submission, and keeps its instances until their times have come. Their label is that of
    /// the queue, or else that of the thread.
    pub(super) fn submit(
        &mut self,
        process: ProcessId,
        call: SubmitCall,
        instances: &[Submitted],
        waits: &[SemaphoreValue],
        signals: &[SemaphoreValue],
        tables: &mut Tables,
    ) {
        let queue = self.queue(process, call.queue);
        let submission = self.ids.next_submission(call.span.start_ns);
        let of_queue = self.queues[queue].labels.last();
        let of_queue = of_queue.map(|open| open.label);
        let state = &mut self.processes[process];
        state.submitted(call.submission, submission);
        // The labels of the thread apply to everything that it submits.
        let thread = Some(ThreadId(call.thread.0));
        let labels = &state.timeline.labels;
        let of_thread = || labels.at(thread, call.span.start_ns);
        let label = of_queue.or_else(|| {
            of_thread().unwrap_or_else(|_| {
                let reason = "the record of the call came too late";
                self.ledger.add(LossKind::LabelsOfWork, 1, reason);
                None
            })
        });
        let spanning_labels = &mut self.queues[queue].spanning;
        for submitted in instances {
            let (mut ends, mut opens): (u32, &[TextId]) = (0, &[]);
            if let Some(recording) = state.recordings.get_mut(&submitted.recording) {
                recording.users += 1;
                (ends, opens) = (recording.label_ends, &recording.open_labels);
            }
            let command_buffer = self.ids.next_command_buffer();
            let spanning = spanning_labels.submit(command_buffer, ends, opens, &mut self.labels);
            let instance = Instance {
                process,
                command_buffer,
                recording: submitted.recording,
                submission,
                queue,
                submitted_ns: call.span.start_ns,
                label,
                spanning,
                timestamps: Vec::new(),
                bracket: None,
                counted: None,
                outcome: None,
                seen_ns: None,
                position: ClockPosition::Pending,
            };
            state.instances.insert(submitted.instance, instance);
        }
        state.semaphores.submit(submission, waits, signals, tables);
        let row = Submission {
            id: submission,
            process,
            queue,
            thread,
            kind: SubmissionKind::CommandBuffers,
            start_ns: call.span.start_ns,
            duration_ns: call.span.duration_ns,
            command_buffers: instances.len() as u32,
            function: Some(function_name(call.function)),
        };
        rows::submission(tables, row);
        self.saw(call.span.end_ns());
    }
}
