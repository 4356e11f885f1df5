//! Submissions.

use super::Assembler;
use super::instance::{Instance, Place};
use gapscope_spool::event::{Instance as Submitted, SemaphoreValue, Span};
use gapscope_spool::ids as hook;
use gapscope_trace::tables::{Submission, Table, Tables};

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
        process: u32,
        call: SubmitCall,
        instances: &[Submitted],
        waits: &[SemaphoreValue],
        signals: &[SemaphoreValue],
        tables: &mut Tables,
    ) {
        let queue = self.queue(process, call.queue);
        let submission = self.submissions;
        self.submissions += 1;
        self.first_submit_ns.get_or_insert(call.span.start_ns);
        let of_queue = self.queues[queue as usize].labels.last();
        let of_queue = of_queue.map(|(label, _)| *label);
        let state = &mut self.processes[process as usize];
        // What the thread says that it is doing is about all that it submits.
        let of_thread = || state.host_labels.at(call.thread, call.span.start_ns);
        let label = of_queue.or_else(|| of_thread().ok().flatten());
        let spans = &mut self.queues[queue as usize].spans;
        for submitted in instances {
            let (mut ends, mut opens): (u32, &[u32]) = (0, &[]);
            if let Some(recording) = state.recordings.get_mut(&submitted.recording) {
                recording.users += 1;
                (ends, opens) = (recording.label_ends, &recording.open_labels);
            }
            let spanning = spans.submit(self.command_buffers, ends, opens, &mut self.labels);
            let instance = Instance {
                process,
                command_buffer: self.command_buffers,
                recording: submitted.recording,
                submission,
                queue,
                submitted_ns: call.span.start_ns,
                label,
                spanning,
                timestamps: Vec::new(),
                bracket: None,
                outcome: None,
                seen_ns: None,
                place: Place::Open,
            };
            self.command_buffers += 1;
            state.instances.insert(submitted.instance, instance);
        }
        state.semaphores.submit(submission, waits, signals, tables);
        tables.submissions.push(Submission {
            id: submission,
            process,
            queue,
            thread: Some(call.thread.0),
            begin_ns: call.span.start_ns,
            end_ns: call.span.end_ns(),
            command_buffers: instances.len() as u32,
            function: None,
        });
        self.saw(call.span.end_ns());
    }
}
