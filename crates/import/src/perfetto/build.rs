//! Builds the trace while packets are read: gives work its process, submission and command buffer, and writes the
//! rows. Work and calls may come in any order; [`Builder::complete`] writes what had to wait.

use super::first_pass::FirstPass;
use super::work::{CommandBufferKey, Work};
use crate::DRAWING_ALONE;
use crate::Error;
use crate::inventory::Inventory;
use crate::output::NewTrace;
use gapscope_model::Span;
use gapscope_timeline_builder::rows;
use gapscope_trace::LossKind;
use gapscope_trace::ids::*;
use gapscope_trace::manifest::Api;
use gapscope_trace::tables::{
    CommandBuffer, HostCall, HostCallKind, Submission, SubmissionKind, Timing,
};
use rustc_hash::{FxHashMap, FxHashSet};
use std::sync::Arc;

/// The facts of a command buffer that were read so far.
#[derive(Debug)]
struct CommandBufferFacts {
    id: CommandBufferId,
    queue: QueueId,
    submission: Option<SubmissionId>,
    span_ns: Option<(i64, i64)>,
    /// True if the times are those of the command buffer itself; otherwise they are those of the work inside.
    exact: bool,
    /// The number of commands so far, of any kind.
    commands: u32,
    dispatches: u32,
    transfers: u32,
    name: Option<Arc<str>>,
    label: Option<LabelId>,
}

/// A submission of which the call, the work, or both were read so far. Its row is written once both were read.
#[derive(Default)]
struct PendingSubmission {
    /// The row, which still lacks the queue of the work, and its kind unless the file says that.
    call: Option<Box<Submission>>,
    /// The process and the number of the queue in gapscope's own exports.
    own_queue: Option<(u32, u64)>,
    /// The queue and kind of the first work.
    work: Option<(QueueId, SubmissionKind)>,
    /// Whether the row is written.
    is_whole: bool,
}

/// A call of gapscope's own exports that names its queue.
pub(super) enum OwnCall {
    /// A host call.
    Row(HostCall),
    /// A submission of what leaves no work on the device, such as a function of the host.
    PutOnQueue(Box<Submission>),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WorkKind {
    Dispatch,
    Transfer,
    Opaque,
}

/// The state of the trace that is built.
pub(super) struct Builder {
    pub first_pass: FirstPass,
    pub inventory: Inventory,
    pub trace: NewTrace,
    /// The only process whose work is wanted; `None` if the options name none.
    pid: Option<u32>,
    /// The number of pieces of work of other processes.
    unwanted: u64,
    /// Queues by device, by the number that the file or the track gives, and by name.
    queues: FxHashMap<(DeviceId, u64, Arc<str>), QueueId>,
    command_buffers: FxHashMap<CommandBufferKey, CommandBufferFacts>,
    /// The command buffers in the order of their ids.
    order: Vec<CommandBufferKey>,
    /// All submissions, also those whose row is written.
    pending: FxHashMap<SubmissionId, PendingSubmission>,
    /// Submissions by pid and by the number that the driver gives.
    numbered: FxHashMap<(u32, u32), SubmissionId>,
    /// The work so far.
    pub works: Vec<Work>,
    /// Queues that stand for streams of CUDA, although the file does not name the API of their device.
    pub streams: FxHashSet<QueueId>,
    /// The fingerprints of slices and render stages so far, of which a file that was joined from overlapping parts has some more
    /// than once.
    seen: FxHashSet<u64>,
    /// Whether work of the file is drawn by gapscope.
    pub is_own_drawing: bool,
    /// Submissions of gapscope's own exports by pid and number there.
    pub own_submissions: FxHashMap<(u32, u32), SubmissionId>,
    /// The queues of gapscope's own exports by pid and number there.
    own_queues: FxHashMap<(u32, u64), QueueId>,
    /// The calls of gapscope's own exports that name their queue, with its process and number.
    own_calls: Vec<((u32, u64), OwnCall)>,
    /// Names of objects by the number of their type in Vulkan (6 is a command buffer) and their handle.
    pub object_names: FxHashMap<(u64, u64), Arc<str>>,
}

impl Builder {
    pub fn new(
        first_pass: FirstPass,
        inventory: Inventory,
        trace: NewTrace,
        pid: Option<u32>,
    ) -> Builder {
        Builder {
            first_pass,
            inventory,
            trace,
            pid,
            unwanted: 0,
            queues: FxHashMap::default(),
            command_buffers: FxHashMap::default(),
            order: Vec::new(),
            pending: FxHashMap::default(),
            numbered: FxHashMap::default(),
            works: Vec::new(),
            streams: FxHashSet::default(),
            seen: FxHashSet::default(),
            is_own_drawing: false,
            own_submissions: FxHashMap::default(),
            own_queues: FxHashMap::default(),
            own_calls: Vec::new(),
            object_names: FxHashMap::default(),
        }
    }

    /// Adds a call of gapscope's own exports, which names its queue.
    pub fn own_call(&mut self, queue: (u32, u64), call: OwnCall) {
        self.own_calls.push((queue, call));
    }

    /// Writes the calls of gapscope's own exports that name their queue.
    fn write_own_calls(&mut self) {
        for (number, call) in std::mem::take(&mut self.own_calls) {
            let queue = self.own_queues.get(&number).copied();
            match (call, queue) {
                (OwnCall::Row(row), queue) => {
                    rows::host_call(self.trace.tables_mut(), HostCall { queue, ..row });
                }
                (OwnCall::PutOnQueue(row), Some(queue)) => {
                    rows::submission(self.trace.tables_mut(), Submission { queue, ..*row });
                }
                (OwnCall::PutOnQueue(row), None) => {
                    let span = Span {
                        start_ns: row.start_ns,
                        duration_ns: row.duration_ns,
                    };
                    let kind = HostCallKind::OtherCall;
                    let row =
                        rows::one_host_call(row.process, row.thread, kind, span, row.function);
                    rows::host_call(self.trace.tables_mut(), row);
                }
            }
        }
    }

    /// Returns true for a slice or a render stage that agrees in everything with one before, which is counted as a loss.
    pub fn is_repeated(&mut self, fingerprint: u64) -> bool {
        let is_repeated = !self.seen.insert(fingerprint);
        if is_repeated {
            let reason = "the file has them more than once";
            self.inventory.lose(LossKind::RepeatedEvents, 1, reason);
        }
        is_repeated
    }

    /// Returns the id of the process with a pid; `None` if its work is not wanted, which is counted. The pid 0 means
    /// the only process of the file, or else an unknown one.
    pub fn process(&mut self, pid: u32) -> Option<ProcessId> {
        let pid = match pid {
            0 => self.first_pass.unnamed_pid(),
            pid => pid,
        };
        if self.pid.is_some_and(|wanted| wanted != pid) {
            self.unwanted += 1;
            return None;
        }
        let process = self.inventory.process(pid);
        if let Some((name, arguments)) = self.first_pass.processes.remove(&pid) {
            self.inventory.name_process(process, &name, arguments);
        }
        Some(process)
    }

    /// Returns the id of a thread of a process.
    pub fn thread(&mut self, process: ProcessId, pid: u32, tid: u32) -> ThreadId {
        let thread = ThreadId(tid);
        let name = self.first_pass.thread_names.get(&(pid, tid));
        self.inventory
            .thread(process, thread, name.map_or("", String::as_str));
        thread
    }

    /// Returns the id of the GPU of a slice: the GPU with the number `gpu`, or without a number the only GPU or
    /// else an unknown GPU. `name` is the name of a GPU that the file does not describe.
    pub fn numbered_device(
        &mut self,
        process: ProcessId,
        gpu: Option<u32>,
        name: Option<&str>,
    ) -> DeviceId {
        match gpu.or((self.first_pass.gpus.len() == 1).then_some(0)) {
            Some(gpu) => self.device(process, gpu, Api::Unknown, name),
            None => self.inventory.device(process, None, |_| {}),
        }
    }

    /// Returns the id of the GPU of a process with a number. `name` is the name of a GPU that the file does not describe.
    pub fn device(
        &mut self,
        process: ProcessId,
        gpu: u32,
        api: Api,
        name: Option<&str>,
    ) -> DeviceId {
        let described = self.first_pass.gpus.get(gpu as usize);
        self.inventory.device(process, Some(gpu), |device| {
            device.api = api;
            match described {
                Some(described) => {
                    device.name.clone_from(&described.name);
                    device.uuid.clone_from(&described.uuid);
                }
                None => device.name = name.map_or_else(|| format!("GPU {gpu}"), str::to_owned),
            }
        })
    }

    /// Returns the id of the queue with a key and a name.
    pub fn queue(&mut self, device: DeviceId, key: u64, name: &Arc<str>) -> QueueId {
        if let Some(queue) = self.queues.get(&(device, key, name.clone())) {
            return *queue;
        }
        let named = (!name.is_empty()).then(|| name.to_string());
        let queue = self.inventory.add_queue(device, named);
        self.queues.insert((device, key, name.clone()), queue);
        queue
    }

    /// Returns true where the row of a submission is written, with its queue.
    pub fn is_written(&self, id: SubmissionId) -> bool {
        self.pending
            .get(&id)
            .is_some_and(|pending| pending.is_whole)
    }

    /// Returns the id of the submission with a driver's number.
    pub fn numbered(&mut self, pid: u32, number: u32) -> SubmissionId {
        let first_pass = &mut self.first_pass;
        let entry = self.numbered.entry((pid, number));
        *entry.or_insert_with(|| first_pass.new_submission())
    }

    /// Adds the call of a submission. Its queue becomes the queue of the submitted work. A second call of the same
    /// submission is counted as a loss.
    pub fn submitted_by_call(&mut self, call: Submission, own_queue: Option<(u32, u64)>) {
        let id = call.id;
        let pending = self.pending.entry(id).or_default();
        // The first of several calls that claim the same work counts.
        if pending.is_whole || pending.call.is_some() {
            let reason = "another call has submitted the same work";
            return self.inventory.lose(LossKind::Submissions, 1, reason);
        }
        pending.call = Some(Box::new(call));
        pending.own_queue = own_queue;
        self.write_whole(id);
    }

    /// Notes that a submission has work on a queue.
    pub fn submitted_work(&mut self, id: SubmissionId, queue: QueueId, kind: SubmissionKind) {
        let pending = self.pending.entry(id).or_default();
        pending.work.get_or_insert((queue, kind));
        self.write_whole(id);
    }

    /// Writes the row of a submission once both its call and its work are known.
    fn write_whole(&mut self, id: SubmissionId) {
        if let Some(pending) = self.pending.get_mut(&id)
            && let Some((queue, kind)) = pending.work
            && let Some(call) = pending.call.take()
        {
            pending.is_whole = true;
            if let Some(number) = pending.own_queue {
                self.own_queues.insert(number, queue);
            }
            let row = Submission {
                queue,
                kind: match call.kind {
                    SubmissionKind::Unknown => kind,
                    known => known,
                },
                ..*call
            };
            rows::submission(self.trace.tables_mut(), row);
        }
    }

    /// Adds a command to a command buffer, and returns the command buffer's id and the command's position.
    pub fn command(
        &mut self,
        key: CommandBufferKey,
        queue: QueueId,
        submission: Option<SubmissionId>,
        work: WorkKind,
    ) -> (CommandBufferId, u32) {
        let known = self.command_buffer(key, queue);
        known.submission = known.submission.or(submission);
        known.queue = queue;
        known.commands = known.commands.saturating_add(1);
        match work {
            WorkKind::Dispatch => known.dispatches += 1,
            WorkKind::Transfer => known.transfers += 1,
            WorkKind::Opaque => {}
        }
        (known.id, known.commands - 1)
    }

    /// Extends the times of a command buffer to work in it, unless the file has its own times.
    pub fn ran_in_command_buffer(&mut self, key: CommandBufferKey, span: Option<Span>) {
        if let Some(span) = span
            && let Some(known) = self
                .command_buffers
                .get_mut(&key)
                .filter(|known| !known.exact)
        {
            let (start_ns, end_ns) = known.span_ns.unwrap_or((span.start_ns, span.end_ns()));
            known.span_ns = Some((start_ns.min(span.start_ns), end_ns.max(span.end_ns())));
        }
    }

    /// Adds a command buffer that has times of its own in the file.
    pub fn timed_command_buffer(
        &mut self,
        key: CommandBufferKey,
        queue: impl FnOnce(&mut Builder) -> QueueId,
        span_ns: (i64, i64),
        name: Option<Arc<str>>,
        label: Option<LabelId>,
    ) {
        let queue = match self.command_buffers.get(&key) {
            Some(known) => known.queue,
            None => queue(self),
        };
        let known = self.command_buffer(key, queue);
        (known.span_ns, known.exact) = (Some(span_ns), true);
        known.name = name;
        known.label = label;
    }

    /// Returns the facts of a command buffer, which is added if it is new.
    fn command_buffer(&mut self, key: CommandBufferKey, queue: QueueId) -> &mut CommandBufferFacts {
        let order = &mut self.order;
        let name = self.object_names.get(&(6, key.handle));
        self.command_buffers.entry(key).or_insert_with(|| {
            order.push(key);
            CommandBufferFacts {
                id: CommandBufferId(order.len() as u64),
                queue,
                submission: None,
                span_ns: None,
                exact: false,
                commands: 0,
                dispatches: 0,
                transfers: 0,
                name: name.cloned(),
                label: None,
            }
        })
    }

    /// Writes the work and the command buffers, and counts submissions whose call or work is missing.
    ///
    /// # Errors
    /// The trace cannot be written.
    pub fn complete(&mut self) -> Result<(), Error> {
        self.write_works()?;
        let mut dangling = 0;
        for key in std::mem::take(&mut self.order) {
            let Some(known) = self.command_buffers.remove(&key) else {
                continue;
            };
            let submission = known.submission;
            let submission = submission.unwrap_or_else(|| match key.submission {
                Some(number) => self.numbered(key.pid, number),
                None => self.first_pass.new_submission(),
            });
            self.submitted_work(submission, known.queue, SubmissionKind::CommandBuffers);
            let device = self.inventory.device_of(known.queue);
            let process = self.inventory.process_of(device);
            let span = (known.span_ns).map(|(start_ns, end_ns)| Span::between(start_ns, end_ns));
            let row = rows::graph_launch(
                known.id,
                (process, known.queue),
                Some(submission),
                span,
                (known.dispatches, known.transfers),
            );
            let row = CommandBuffer {
                timing: Timing::Measured,
                label: known.label,
                name: known.name,
                ..row
            };
            rows::command_buffer(self.trace.tables_mut(), row);
        }
        self.write_own_calls();
        if self.is_own_drawing {
            self.inventory.note(DRAWING_ALONE);
        }
        let mut idle = 0;
        for submission in std::mem::take(&mut self.pending).into_values() {
            idle += u64::from(submission.call.is_some());
            dangling += u64::from(submission.call.is_none() && !submission.is_whole);
        }
        self.inventory.lose(
            LossKind::HostCallsOfWork,
            dangling,
            "the file does not have the calls that submitted them",
        );
        self.inventory.lose(
            LossKind::Submissions,
            idle,
            "the file does not have the GPU work that they submitted",
        );
        if self.unwanted > 0 {
            self.inventory.note(format!(
                "{} events of other processes were not imported, as one was chosen.",
                self.unwanted
            ));
        }
        Ok(())
    }
}
