//! What a trace is made of while packets are read: whose work it is, which call submitted it, its command buffer.

use super::preface::Preface;
use crate::inventory::Inventory;
use crate::output::NewTrace;
use gapscope_model::Span;
use gapscope_timeline_builder::rows;
use gapscope_trace::LossKind;
use gapscope_trace::ids::*;
use gapscope_trace::manifest::Api;
use gapscope_trace::tables::{CommandBuffer, Submission, SubmissionKind, Timing};
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// A command buffer, by the process, the submission and the handle that the file gives. In our own exports handles are
/// ids of all processes: there the process is 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct CommandBufferKey {
    pub pid: u32,
    pub submission: Option<u32>,
    pub handle: u64,
}

/// A command buffer as far as it is known.
#[derive(Debug)]
struct Known {
    id: CommandBufferId,
    queue: QueueId,
    submission: Option<SubmissionId>,
    span_ns: Option<(i64, i64)>,
    /// The times are its own, not those of the work inside.
    exact: bool,
    commands: u32,
    dispatches: u32,
    transfers: u32,
    name: Option<Arc<str>>,
    label: Option<LabelId>,
}

/// A submission of which one half is known: its call, or its work.
enum Half {
    Call(Box<Submission>),
    Work(QueueId, SubmissionKind),
    Whole,
}

/// What a piece of work is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Work {
    Dispatch,
    Transfer,
    Opaque,
}

/// See the module.
pub(super) struct Builder {
    pub preface: Preface,
    pub inventory: Inventory,
    pub trace: NewTrace,
    /// The only process whose work is wanted.
    pid: Option<u32>,
    /// Work of other processes.
    unwanted: u64,
    queues: FxHashMap<(DeviceId, u64, Arc<str>), QueueId>,
    command_buffers: FxHashMap<CommandBufferKey, Known>,
    /// In order of their ids.
    order: Vec<CommandBufferKey>,
    halves: FxHashMap<SubmissionId, Half>,
    /// Of a process and the number that its driver gives.
    numbered: FxHashMap<(u32, u32), SubmissionId>,
    /// Names of objects, by type and handle.
    pub object_names: FxHashMap<(u64, u64), Arc<str>>,
}

impl Builder {
    pub fn new(
        preface: Preface,
        inventory: Inventory,
        trace: NewTrace,
        pid: Option<u32>,
    ) -> Builder {
        Builder {
            preface,
            inventory,
            trace,
            pid,
            unwanted: 0,
            queues: FxHashMap::default(),
            command_buffers: FxHashMap::default(),
            order: Vec::new(),
            halves: FxHashMap::default(),
            numbered: FxHashMap::default(),
            object_names: FxHashMap::default(),
        }
    }

    /// The process of a system's id, if its work is wanted.
    pub fn process(&mut self, pid: u32) -> Option<ProcessId> {
        let pid = match pid {
            0 => self.preface.unnamed_pid(),
            pid => pid,
        };
        if self.pid.is_some_and(|wanted| wanted != pid) {
            self.unwanted += 1;
            return None;
        }
        let process = self.inventory.process(pid);
        if let Some((name, arguments)) = self.preface.processes.remove(&pid) {
            self.inventory.name_process(process, &name, arguments);
        }
        Some(process)
    }

    /// A thread of a process.
    pub fn thread(&mut self, process: ProcessId, pid: u32, tid: u32) -> ThreadId {
        let thread = ThreadId(tid);
        let name = self.preface.thread_names.get(&(pid, tid));
        self.inventory
            .thread(process, thread, name.map_or("", String::as_str));
        thread
    }

    /// The GPU of a slice, which may not say its number: the only one that there is, otherwise one that is not known.
    pub fn numbered_device(&mut self, process: ProcessId, gpu: Option<u32>) -> DeviceId {
        match gpu.or((self.preface.gpus.len() == 1).then_some(0)) {
            Some(gpu) => self.device(process, gpu, Api::Unknown),
            None => self.inventory.device(process, u64::MAX, |_| {}),
        }
    }

    /// The GPU of a number.
    pub fn device(&mut self, process: ProcessId, gpu: u32, api: Api) -> DeviceId {
        let described = self.preface.gpus.get(gpu as usize);
        self.inventory.device(process, gpu.into(), |device| {
            device.api = api;
            match described {
                Some(described) => {
                    device.name.clone_from(&described.name);
                    device.uuid.clone_from(&described.uuid);
                }
                None => device.name = format!("GPU {gpu}"),
            }
        })
    }

    /// The queue that `key` and its name tell apart.
    pub fn queue(&mut self, device: DeviceId, key: u64, name: &Arc<str>) -> QueueId {
        if let Some(queue) = self.queues.get(&(device, key, name.clone())) {
            return *queue;
        }
        let named = (!name.is_empty()).then(|| name.to_string());
        let queue = self.inventory.add_queue(device, named);
        self.queues.insert((device, key, name.clone()), queue);
        queue
    }

    /// The submission that a driver numbers.
    pub fn numbered(&mut self, pid: u32, number: u32) -> SubmissionId {
        let preface = &mut self.preface;
        let entry = self.numbered.entry((pid, number));
        *entry.or_insert_with(|| preface.new_submission())
    }

    /// A call submitted; its queue is that of its work.
    pub fn submitted_by_call(&mut self, mut call: Submission) {
        match self.halves.remove(&call.id) {
            None => {
                self.halves.insert(call.id, Half::Call(Box::new(call)));
            }
            Some(Half::Work(queue, kind)) => {
                self.halves.insert(call.id, Half::Whole);
                call.queue = queue;
                call.kind = kind;
                rows::submission(self.trace.tables_mut(), call);
            }
            // Another call says that it submitted the same work: the first counts.
            Some(other) => {
                self.halves.insert(call.id, other);
                self.inventory.lose(
                    LossKind::Submissions,
                    1,
                    "another call has submitted the same work",
                );
            }
        }
    }

    /// A submission has work.
    pub fn submitted_work(&mut self, id: SubmissionId, queue: QueueId, kind: SubmissionKind) {
        match self.halves.get(&id) {
            None => {
                self.halves.insert(id, Half::Work(queue, kind));
            }
            Some(Half::Call(_)) => {
                if let Some(Half::Call(mut call)) = self.halves.insert(id, Half::Whole) {
                    call.queue = queue;
                    call.kind = kind;
                    rows::submission(self.trace.tables_mut(), *call);
                }
            }
            Some(Half::Work(..) | Half::Whole) => {}
        }
    }

    /// A command in a command buffer: the command buffer's id and the command's place.
    pub fn command(
        &mut self,
        key: CommandBufferKey,
        queue: QueueId,
        submission: Option<SubmissionId>,
        span_ns: (i64, i64),
        work: Work,
    ) -> (CommandBufferId, u32) {
        let known = self.command_buffer(key, queue);
        known.submission = known.submission.or(submission);
        if !known.exact {
            let (start, end) = known.span_ns.unwrap_or(span_ns);
            known.span_ns = Some((start.min(span_ns.0), end.max(span_ns.1)));
        }
        known.queue = queue;
        known.commands = known.commands.saturating_add(1);
        match work {
            Work::Dispatch => known.dispatches += 1,
            Work::Transfer => known.transfers += 1,
            Work::Opaque => {}
        }
        (known.id, known.commands - 1)
    }

    /// A command buffer that the file itself times.
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

    fn command_buffer(&mut self, key: CommandBufferKey, queue: QueueId) -> &mut Known {
        let order = &mut self.order;
        let name = self.object_names.get(&(6, key.handle));
        self.command_buffers.entry(key).or_insert_with(|| {
            order.push(key);
            Known {
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

    /// Writes what only the end of the file tells.
    pub fn complete(&mut self) {
        let mut dangling = 0;
        for key in std::mem::take(&mut self.order) {
            let Some(known) = self.command_buffers.remove(&key) else {
                continue;
            };
            let submission = known.submission;
            let submission = submission.unwrap_or_else(|| match key.submission {
                Some(number) => self.numbered(key.pid, number),
                None => self.preface.new_submission(),
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
        let mut idle = 0;
        for half in std::mem::take(&mut self.halves).into_values() {
            match half {
                Half::Work(..) => dangling += 1,
                Half::Call(_) => idle += 1,
                Half::Whole => {}
            }
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
    }
}
