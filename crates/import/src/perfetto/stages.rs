//! Converts render stages (intervals of GPU work) to rows of work, and reads Vulkan's submissions and names of
//! objects. A stage and its queue are named by specifications, which the sequence (the packets of one writer) interns
//! (gives an id), or an old file lists.

use super::build::{Builder, WorkKind};
use super::sequence::{Sequence, Specification};
use super::work::{CommandBufferKey, Work, WorkRow};
use crate::doubtful_times::ROUNDING_NS;
use crate::inventory::KernelFacts;
use crate::protobuf::{Message, Packed, Value};
use crate::transfers;
use gapscope_model::Span;
use gapscope_timeline_builder::{TransferFacts, WorkPlace, rows};
use gapscope_trace::LossKind;
use gapscope_trace::ids::*;
use gapscope_trace::manifest::Api;
use gapscope_trace::tables::*;
use rustc_hash::FxHashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

// The numbers of categories of specifications.
const GRAPHICS: u64 = 1;
const COMPUTE: u64 = 2;

/// Added to the number of a queue of an old file, so that its key is no interned id of a newer one.
const OLD_QUEUE: u64 = 1 << 40;
/// The key of the queue of work whose queue is not named.
const UNKNOWN_QUEUE: u64 = 1 << 41;

/// The names of stages and queues in old files, by their index.
#[derive(Debug, Default)]
pub(super) struct OldSpecifications {
    queues: Vec<Specification>,
    stages: Vec<Specification>,
    /// The pids of contexts.
    contexts: FxHashMap<u64, u32>,
}

/// The decoded fields of one render stage.
#[derive(Default)]
struct Stage<'a> {
    id: u64,
    duration_ns: u64,
    gpu: u32,
    context: u64,
    command_buffer: Option<u64>,
    submission: Option<u32>,
    /// The ids of the interned specifications of the queue and of the stage.
    queue_iid: Option<u64>,
    stage_iid: Option<u64>,
    /// The indexes of the queue and of the stage in an old file.
    old_queue: Option<i32>,
    old_stage: Option<i32>,
    name: Option<Arc<str>>,
    kernel_iid: Option<u64>,
    /// The numbers of workgroups, and those of threads of a workgroup, in x, y and z.
    grid: [Option<u32>; 3],
    local: [Option<u32>; 3],
    /// Whether the stage states how a kernel was launched.
    has_launch: bool,
    arguments: Vec<(Arc<str>, u64)>,
    /// The ids of the render stages that the work waits for.
    waits: Vec<u64>,
    /// The facts that gapscope's own exports add: the path of the label, the position and the bytes of the work.
    label: Option<Arc<str>>,
    position: Option<u32>,
    bytes: Option<u64>,
    specifications: Option<Message<'a>>,
}

impl Builder {
    /// Adds a render stage that began at `start_ns`, or the old file's specifications that its packet has. A stage
    /// without a queue is a loss, and of one without times these are.
    pub(super) fn render_stage(
        &mut self,
        event: Message,
        start_ns: Option<i64>,
        sequence: &Sequence,
        old: &mut OldSpecifications,
    ) {
        let stage = Stage::parse(event, sequence);
        if let Some(specifications) = stage.specifications {
            old.add(specifications);
            // A packet with specifications alone describes no work.
            if stage.duration_ns == 0 && stage.stage_iid.is_none() && stage.old_stage.is_none() {
                return;
            }
        }
        let duration_ns = i64::try_from(stage.duration_ns).ok();
        let end_ns = start_ns.and_then(|start_ns| start_ns.checked_add(duration_ns?));
        let span = start_ns.zip(end_ns);
        let span = span.map(|(start_ns, end_ns)| Span::between(start_ns, end_ns));
        // Where stages have ids, also short ones that agree are one.
        let is_one = |span: Span| stage.id != 0 || span.duration_ns > ROUNDING_NS;
        if span.is_some_and(is_one) && self.is_repeated(fingerprint(start_ns, event)) {
            return;
        }
        let context = sequence.interned.contexts.get(&stage.context).copied();
        let old_pid = old.contexts.get(&stage.context).copied();
        let pid = context.map_or(old_pid.unwrap_or(0), |context| context.pid);
        let (queue_key, queue_name, queue_category) = match stage.queue_iid {
            Some(iid) => match sequence.interned.specifications.get(&iid) {
                Some(queue) => (iid, queue.name.clone(), queue.category),
                None => {
                    let reason =
                        "their queue is not described, as where a file is cut at its start";
                    self.inventory.lose(LossKind::GpuIntervals, 1, reason);
                    return;
                }
            },
            None => {
                let number = stage.old_queue.map(|number| number as u32);
                let known = number.and_then(|number| old.queues.get(number as usize));
                let name = match (known, number) {
                    (Some(queue), _) => queue.name.clone(),
                    (None, Some(number)) => format!("unknown queue {number}").into(),
                    (None, None) => "unknown queue".into(),
                };
                (
                    number.map_or(UNKNOWN_QUEUE, |number| u64::from(number) | OLD_QUEUE),
                    name,
                    0,
                )
            }
        };
        let specification = match (stage.stage_iid, stage.old_stage) {
            (Some(iid), _) => sequence.interned.specifications.get(&iid).cloned(),
            (None, Some(number)) => {
                let number = usize::try_from(number).ok();
                number.and_then(|number| old.stages.get(number).cloned())
            }
            (None, None) => None,
        };
        let specification = specification.unwrap_or_else(|| Specification {
            name: "unknown stage".into(),
            category: queue_category,
            ..Specification::default()
        });
        let Some(process) = self.process(pid) else {
            return;
        };
        let api = match context.map(|context| context.api) {
            Some(2) => Api::Vulkan,
            Some(4) => Api::Cuda,
            Some(5) => Api::Hip,
            _ => Api::Unknown,
        };
        let device = self.device(process, stage.gpu, api, None);
        let queue = self.queue(device, queue_key, &queue_name);
        self.push(
            stage,
            specification,
            sequence,
            Placed {
                pid,
                process,
                queue,
                span,
            },
        );
    }

    /// Writes a render stage as a dispatch, a transfer or opaque work, in its command buffer or else its submission.
    fn push(
        &mut self,
        stage: Stage,
        specification: Specification,
        sequence: &Sequence,
        at: Placed,
    ) {
        let kernel = stage.kernel_iid;
        let kernel = kernel.and_then(|iid| sequence.interned.kernels.get(&iid));
        let name = stage.name.clone().or_else(|| {
            let kernel = kernel?;
            kernel.demangled_name.clone().or(Some(kernel.name.clone()))
        });
        let name = name.unwrap_or_else(|| specification.name.clone());
        // gapscope's own exports write the kind of a stage into its description.
        let own = specification.description.split(';').next();
        let work = match own {
            Some("dispatch") => WorkKind::Dispatch,
            Some("transfer") => WorkKind::Transfer,
            Some("opaque work") => WorkKind::Opaque,
            _ if kernel.is_some() || stage.has_launch => WorkKind::Dispatch,
            _ if transfers::is_transfer(&name) => WorkKind::Transfer,
            _ if specification.category == COMPUTE => WorkKind::Dispatch,
            _ => WorkKind::Opaque,
        };
        let own = matches!(own, Some("dispatch" | "transfer" | "opaque work"));
        let numbered = stage.submission.filter(|number| {
            let submits = &self.first_pass.submits;
            submits.contains(&(at.pid, *number))
        });
        let submission = numbered.map(|number| self.numbered(at.pid, number));
        let launched = self.first_pass.launched.get(&stage.id).copied();
        let submission = submission.or(launched);
        let mut of_command_buffer = None;
        let (command_buffer, position) = match stage.command_buffer.filter(|handle| *handle != 0) {
            Some(handle) => {
                let key = CommandBufferKey {
                    pid: if own { 0 } else { at.pid },
                    submission: stage.submission,
                    handle,
                };
                let (id, position) = self.command(key, at.queue, submission, work);
                of_command_buffer = Some(key);
                (Some(id), stage.position.unwrap_or(position))
            }
            None => (None, stage.position.unwrap_or(0)),
        };
        let named = match command_buffer {
            Some(_) => None,
            None => submission,
        };
        let own_submission = stage
            .submission
            .map(|number| (at.pid, number))
            .filter(|_| own);
        self.is_own_drawing |= own;
        if let (Some(number), Some(submission)) = (own_submission, submission) {
            self.own_submissions.insert(number, submission);
        } else if command_buffer.is_none() && submission.is_none() && own_submission.is_none() {
            let reason = "the file does not have the calls that submitted them";
            self.inventory.lose(LossKind::HostCallsOfWork, 1, reason);
        }
        if let Some(submission) = named {
            let kind = match work {
                WorkKind::Dispatch => SubmissionKind::Kernel,
                WorkKind::Transfer => SubmissionKind::Transfer,
                WorkKind::Opaque => SubmissionKind::CommandBuffers,
            };
            self.submitted_work(submission, at.queue, kind);
            self.depend(submission, &stage.waits);
        } else if !stage.waits.is_empty() {
            self.inventory.lose(
                LossKind::Waits,
                stage.waits.len() as u64,
                "the file does not have the calls of the work that waits",
            );
        }
        let label = stage.label.as_deref().map(|path| self.label_of_path(path));
        let place = WorkPlace {
            command_buffer,
            submission: named,
            position,
            label,
            ..WorkPlace::new(at.queue, at.span)
        };
        let (row, label) = match work {
            WorkKind::Dispatch => {
                let kernel = self.kernel(&stage, kernel, name, at.process);
                (WorkRow::Dispatch(kernel, stage.grid), label)
            }
            WorkKind::Transfer => {
                let facts = TransferFacts {
                    kind: transfers::kind(&name),
                    bytes: stage.bytes,
                    ..TransferFacts::default()
                };
                (WorkRow::Transfer(facts), label)
            }
            WorkKind::Opaque => {
                let kind = match (own, specification.category) {
                    (true, _) => OpaqueWorkKind::from_text_or_unknown(&name),
                    (false, GRAPHICS) => OpaqueWorkKind::RenderPass,
                    (false, _) => OpaqueWorkKind::Other,
                };
                // A trace can keep the name of a stage only as its label.
                let label = match own {
                    true => label,
                    false => Some(self.inventory.labels.named(label, &name)),
                };
                (WorkRow::Opaque(kind), label)
            }
        };
        self.works.push(Work {
            place: WorkPlace { label, ..place },
            span: at.span,
            command_buffer: of_command_buffer,
            own_submission,
            row,
        });
    }

    /// Returns the id of the label with a path, as gapscope's own exports write it: texts joined by ` / `, outermost
    /// first.
    pub(super) fn label_of_path(&mut self, path: &str) -> LabelId {
        let labels = &mut self.inventory.labels;
        let mut texts = path.split(" / ");
        let first = labels.named(None, texts.next().unwrap_or_default());
        texts.fold(first, |around, text| labels.named(Some(around), text))
    }

    /// Writes that a submission waits for those of other render stages.
    fn depend(&mut self, submission: SubmissionId, waits: &[u64]) {
        let mut unknown = 0;
        for stage in waits {
            match self.first_pass.launched.get(stage) {
                Some(waits_for) => {
                    let tables = self.trace.tables_mut();
                    rows::dependency(tables, submission, Some(*waits_for), None);
                }
                None => unknown += 1,
            }
        }
        self.inventory.lose(
            LossKind::Waits,
            unknown,
            "the file does not have the calls of the work that is waited for",
        );
    }

    /// Returns the kernel of a dispatch. Arguments of the launch take precedence over those of the kernel.
    fn kernel(
        &mut self,
        stage: &Stage,
        kernel: Option<&super::sequence::ComputeKernel>,
        name: Arc<str>,
        process: ProcessId,
    ) -> KernelId {
        let arguments = || {
            let of_kernel = kernel.into_iter().flat_map(|kernel| &kernel.arguments);
            stage.arguments.iter().chain(of_kernel)
        };
        let argument = |names: &[&str]| {
            let mut found = arguments();
            let found = found.find(|(name, _)| names.contains(&&**name))?;
            u32::try_from(found.1).ok()
        };
        let labels = &mut self.inventory.labels;
        let name = labels.text(&name);
        let full_name = kernel.and_then(|kernel| kernel.demangled_name.as_ref());
        let facts = KernelFacts {
            full_name: full_name.map(|name| labels.text(name)),
            entry_point: kernel.map(|kernel| labels.text(&kernel.name)),
            local: stage.local,
            registers: argument(&["registers_per_thread", "registers"]),
            local_bytes: argument(&["local_mem_per_thread", "private_segment_size"]),
            static_shared_bytes: argument(&["shared_mem_static"]),
            dynamic_shared_bytes: argument(&["shared_mem_dynamic"]),
            ..KernelFacts::new(process, name)
        };
        self.inventory.kernel(facts)
    }

    /// Reads an event of Vulkan: the name of an object, or a submission.
    pub(super) fn vulkan_api(&mut self, event: Message, start_ns: Option<i64>) {
        for (number, value) in event.fields() {
            match (number, value.message()) {
                (1, Some(named)) => {
                    let [kind, handle, name] = named.last([3, 4, 5]);
                    let key = (kind.number(), handle.number());
                    self.object_names.insert(key, name.text().into());
                }
                (2, Some(submit)) => {
                    let is_timed = start_ns.is_some();
                    if !(is_timed && self.is_repeated(fingerprint(start_ns, submit))) {
                        self.queue_submit(submit, start_ns);
                    }
                }
                _ => {}
            }
        }
    }

    /// Adds the submission of a `vkQueueSubmit`.
    fn queue_submit(&mut self, submit: Message, start_ns: Option<i64>) {
        let (mut duration_ns, mut pid, mut tid, mut number) = (0, 0, None, None);
        let mut command_buffers = 0u32;
        for (field, value) in submit.fields() {
            match field {
                1 => duration_ns = value.number(),
                2 => pid = value.number() as u32,
                3 => tid = Some(value.number() as u32),
                5 => {
                    let more = value.numbers(Packed::Varint).count();
                    command_buffers = command_buffers.saturating_add(more as u32);
                }
                6 => number = Some(value.number() as u32),
                _ => {}
            }
        }
        let (Some(start_ns), Ok(duration_ns)) = (start_ns, i64::try_from(duration_ns)) else {
            let reason = "their times are unknown";
            self.inventory.lose(LossKind::Submissions, 1, reason);
            return;
        };
        let Some(process) = self.process(pid) else {
            return;
        };
        let thread = tid.map(|tid| self.thread(process, pid, tid));
        self.inventory
            .spans(start_ns, start_ns.saturating_add(duration_ns));
        let id = match number {
            Some(number) => self.numbered(pid, number),
            None => self.first_pass.new_submission(),
        };
        let call = Submission {
            id,
            process,
            queue: QueueId(0),
            kind: SubmissionKind::CommandBuffers,
            thread,
            start_ns,
            duration_ns,
            command_buffers,
            function: Some("vkQueueSubmit".into()),
        };
        self.submitted_by_call(call, None);
    }
}

/// Returns a number that two events with the same content and start share.
fn fingerprint(start_ns: Option<i64>, event: Message) -> u64 {
    let mut hasher = DefaultHasher::new();
    (start_ns, event.bytes()).hash(&mut hasher);
    hasher.finish()
}

/// The process, the queue and the times of a stage.
struct Placed {
    pid: u32,
    process: ProcessId,
    queue: QueueId,
    span: Option<Span>,
}

impl OldSpecifications {
    /// Adds the names that a packet lists, behind those of earlier packets.
    fn add(&mut self, specifications: Message) {
        for (number, value) in specifications.fields() {
            let Some(entry) = value.message() else {
                continue;
            };
            let [first, second] = entry.last([1, 2]);
            match number {
                1 => {
                    self.contexts.insert(first.number(), second.number() as u32);
                }
                2 | 3 => {
                    let specification = Specification {
                        name: first.text().into(),
                        description: second.text().into(),
                        category: 0,
                    };
                    match number {
                        2 => self.queues.push(specification),
                        _ => self.stages.push(specification),
                    }
                }
                _ => {}
            }
        }
    }
}

impl<'a> Stage<'a> {
    /// Decodes a stage, with the names that the sequence has interned.
    fn parse(event: Message<'a>, sequence: &Sequence) -> Stage<'a> {
        let mut stage = Stage::default();
        for (number, value) in event.fields() {
            match (number, value.message()) {
                (1, _) => stage.id = value.number(),
                (2, _) => stage.duration_ns = value.number(),
                (3, _) => stage.old_queue = Some(value.number() as i32),
                (4, _) => stage.old_stage = Some(value.number() as i32),
                (5, _) => stage.context = value.number(),
                (6, Some(extra)) => stage.add_extra(extra),
                (7, Some(specifications)) => stage.specifications = Some(specifications),
                (10, _) => stage.submission = Some(value.number() as u32),
                (11, _) => stage.gpu = value.number() as u32,
                (12, _) => stage.command_buffer = Some(value.number()),
                (13, _) => stage.queue_iid = Some(value.number()),
                (14, _) => stage.stage_iid = Some(value.number()),
                (17, _) => stage.name = Some(value.text().into()),
                (20, _) => {
                    let name = sequence.interned.event_names.get(&value.number());
                    stage.name = name.cloned();
                }
                (18, _) => stage.waits.extend(value.numbers(Packed::Varint)),
                (19, _) => stage.kernel_iid = Some(value.number()),
                (21, Some(launch)) => stage.add_launch(launch, sequence),
                _ => {}
            }
        }
        stage
    }

    /// Reads the sizes and arguments of a launch.
    fn add_launch(&mut self, launch: Message, sequence: &Sequence) {
        self.has_launch = true;
        for (number, value) in launch.fields() {
            let Some(message) = value.message() else {
                continue;
            };
            let dimensions = match number {
                1 => &mut self.grid,
                2 => &mut self.local,
                3 => {
                    self.arguments.extend(sequence.interned.argument(message));
                    continue;
                }
                _ => continue,
            };
            for (axis, value) in message.fields() {
                if let Some(size) = dimensions.get_mut((axis as usize).wrapping_sub(1)) {
                    *size = u32::try_from(value.number()).ok();
                }
            }
        }
    }

    /// Reads one of the facts that gapscope's own exports add as texts.
    fn add_extra(&mut self, extra: Message) {
        let [name, value] = extra.last([1, 2]).map(Value::text);
        match &*name {
            "label" => self.label = Some(value.into()),
            "position" => self.position = value.parse().ok(),
            "bytes" => self.bytes = value.parse().ok(),
            _ => {}
        }
    }
}
