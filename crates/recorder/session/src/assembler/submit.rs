//! Submissions.

use super::Assembler;
use super::instance::{ClockPosition, Instance};
use gapscope_spool::event::{Instance as Submitted, SemaphoreValue, Span};
use gapscope_spool::ids as hook;
use gapscope_trace::build::TextId;
use gapscope_trace::ids::{CommandBufferId, ProcessId, ThreadId};
use gapscope_trace::tables::{Submission, SubmissionKind, Table, Tables};

/// The host's part of a submission.
pub(super) struct SubmitCall {
    pub thread: hook::Thread,
    /// In the process's ids.
    pub queue: hook::Queue,
    pub span: Span,
}

impl Assembler {
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
        let submission = self.next_submission(call.span.start_ns);
        let of_queue = self.queues[queue].labels.last();
        let of_queue = of_queue.map(|open| open.label);
        let state = &mut self.processes[process];
        // What the thread says that it is doing is about all that it submits.
        let of_thread = || state.host_labels.at(call.thread, call.span.start_ns);
        let label = of_queue.or_else(|| of_thread().ok().flatten());
        let spanning_labels = &mut self.queues[queue].spanning;
        for submitted in instances {
            let (mut ends, mut opens): (u32, &[TextId]) = (0, &[]);
            if let Some(recording) = state.recordings.get_mut(&submitted.recording) {
                recording.users += 1;
                (ends, opens) = (recording.label_ends, &recording.open_labels);
            }
            let command_buffer = CommandBufferId(self.command_buffers);
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
            self.command_buffers += 1;
            state.instances.insert(submitted.instance, instance);
        }
        state.semaphores.submit(submission, waits, signals, tables);
        tables.submissions.push(Submission {
            id: submission,
            process,
            queue,
            thread: Some(ThreadId(call.thread.0)),
            kind: SubmissionKind::CommandBuffers,
            start_ns: call.span.start_ns,
            duration_ns: call.span.duration_ns,
            command_buffers: instances.len() as u32,
            function: None,
        });
        self.saw(call.span.end_ns());
    }
}
