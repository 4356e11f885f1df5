//! What the queues ran, as render stages.

use super::message::Message;
use super::{Writer, interned, packet};
use crate::details::{Key, Value};
use crate::in_order::in_order;
use crate::packed::Block;
use crate::scene::{GroupKind, Scene, Track};
use crate::slice::{Drawn, Kind};
use crate::texts::TextId;
use gapscope_trace::ids::{Id, KernelId, QueueId};
use gapscope_trace::manifest::Api;
use gapscope_trace::parallel;
use gapscope_trace::tables::OpaqueWorkKind;
use rustc_hash::{FxHashMap, FxHashSet};
use std::io::{self, Write};

mod stage {
    pub const EVENT_ID: u32 = 1;
    pub const DURATION: u32 = 2;
    pub const CONTEXT: u32 = 5;
    pub const EXTRA_DATA: u32 = 6;
    pub const SUBMISSION_ID: u32 = 10;
    pub const GPU_ID: u32 = 11;
    pub const COMMAND_BUFFER: u32 = 12;
    pub const HW_QUEUE_IID: u32 = 13;
    pub const STAGE_IID: u32 = 14;
    pub const NAME_IID: u32 = 20;
    pub const LAUNCH: u32 = 21;
}

/// Categories of specifications.
const OTHER: u64 = 0;
const GRAPHICS: u64 = 1;
const COMPUTE: u64 = 2;

/// Slices of one key have the same specification.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum StageKey {
    /// Dispatches of a kernel.
    Kernel(KernelId),
    /// Other work, by its name.
    Named(Kind, TextId),
}

/// The specification of a stage.
struct Specification {
    iid: u64,
    name: TextId,
    description: String,
    category: u64,
}

/// The specifications of render stages, and the ids of those that something refers to.
pub(super) struct Stages {
    /// By place of the group: the number of the GPU, 0 for the first.
    gpus: Vec<Option<u32>>,
    /// Specifications of queues by id of the queue.
    queues: FxHashMap<QueueId, u64>,
    /// Specifications of stages by kind and kernel or name.
    stages: FxHashMap<StageKey, u64>,
    specifications: Vec<Specification>,
    /// By target: the render stage that begins it, and whether its command buffer is drawn and has a call that
    /// submitted it.
    firsts: FxHashMap<u32, u64>,
    drawn: Vec<bool>,
    submitted: Vec<bool>,
}

impl Stages {
    pub fn of(scene: &Scene) -> Stages {
        let count = scene.trace.tables.command_buffers.id.len();
        let mut stages = Stages {
            gpus: Vec::new(),
            queues: FxHashMap::default(),
            stages: FxHashMap::default(),
            specifications: Vec::new(),
            firsts: FxHashMap::default(),
            drawn: vec![false; count],
            submitted: vec![false; count],
        };
        let mut next_gpu = scene.part.gpus;
        let mut next_iid = 1;
        // In the order in which they are written.
        let mut event = first(scene);
        for group in &scene.groups {
            stages.gpus.push((group.kind == GroupKind::Gpu).then(|| {
                next_gpu += 1;
                next_gpu - 1
            }));
            for track in &group.tracks {
                if let Some(queue) = track.queue {
                    stages.queues.insert(queue, next_iid);
                    next_iid += 1;
                }
                let blocks = track.lanes.iter().flat_map(|lane| &lane.blocks);
                let seen = parallel::each(blocks.collect(), |block| {
                    Seen::of(scene, block, track.queue.is_some())
                });
                for seen in seen {
                    for row in seen.command_buffers {
                        stages.drawn[row as usize] = true;
                    }
                    for (target, number) in seen.begun {
                        stages.firsts.insert(target, event + number);
                    }
                    event += seen.stages;
                    for (key, drawn) in seen.keys {
                        if !stages.stages.contains_key(&key) {
                            stages.describe(scene, &drawn, key, next_iid);
                            next_iid += 1;
                        }
                    }
                }
            }
        }
        for target in scene.flows.targets() {
            if let Some(submitted) = stages.submitted.get_mut(*target as usize) {
                *submitted = true;
            }
        }
        stages
    }

    fn describe(&mut self, scene: &Scene, drawn: &Drawn, key: StageKey, iid: u64) {
        let slice = &drawn.slice;
        self.stages.insert(key, iid);
        let mut description = slice.kind.as_str().to_owned();
        let mut category = OTHER;
        if let StageKey::Kernel(kernel) = key {
            category = COMPUTE;
            for (key, text) in &scene.names.kernel(kernel).details {
                description.push_str(&format!("; {}: {}", key.as_str(), scene.names.texts[*text]));
            }
        }
        let opaque_work = &scene.trace.tables.opaque_work.kind;
        if slice.kind == Kind::Opaque
            && opaque_work[slice.row as usize] == OpaqueWorkKind::RenderPass
        {
            category = GRAPHICS;
        }
        self.specifications.push(Specification {
            iid,
            name: scene.name(drawn),
            description,
            category,
        });
    }

    /// The number of a group's GPU; `None` for other groups.
    pub fn gpu(&self, group: usize) -> Option<u32> {
        self.gpus.get(group).copied().flatten()
    }

    /// The render stage that begins a target.
    pub fn first_of(&self, target: u32) -> Option<u64> {
        self.firsts.get(&target).copied()
    }

    /// Whether a target is a command buffer that is drawn.
    pub fn is_drawn_command_buffer(&self, target: u32) -> bool {
        self.drawn.get(target as usize).copied().unwrap_or(false)
    }

    /// Whether a call submitted a command buffer, by its row.
    pub fn is_submitted(&self, row: u32) -> bool {
        self.submitted.get(row as usize).copied().unwrap_or(false)
    }

    /// Adds specifications and contexts.
    pub fn intern(&self, scene: &Scene, data: &mut Message) {
        let mut part = Message::default();
        let several = scene.part.joined || self.gpus.iter().flatten().count() > 1;
        for (place, group) in scene.groups.iter().enumerate() {
            for track in &group.tracks {
                let Some(iid) = track.queue.and_then(|queue| self.queues.get(&queue)) else {
                    continue;
                };
                // Older versions show the queues of all GPUs in one list.
                let name = match several {
                    true => format!(
                        "GPU {} · {}",
                        self.gpu(place).unwrap_or_default() + 1,
                        track.name
                    ),
                    false => track.name.clone(),
                };
                part.clear();
                part.number(1, *iid);
                part.text(2, &name);
                part.text(3, &group.name);
                data.message(interned::GPU_SPECIFICATIONS, &part);
            }
        }
        for specification in &self.specifications {
            part.clear();
            part.number(1, specification.iid);
            part.text(2, &scene.names.texts[specification.name]);
            part.text(3, &specification.description);
            part.number(4, specification.category);
            data.message(interned::GPU_SPECIFICATIONS, &part);
        }
        let manifest = &scene.trace.manifest;
        for (iid, process) in (1..).zip(&manifest.processes) {
            let mut devices = manifest.devices.iter();
            let device = devices.find(|device| device.process == process.id);
            part.clear();
            part.number(1, iid);
            part.number(2, process.pid.into());
            part.number(
                3,
                match device.map(|device| device.api) {
                    Some(Api::Vulkan) => 2,
                    Some(Api::Cuda) => 4,
                    Some(Api::Hip) => 5,
                    _ => 0,
                },
            );
            data.message(interned::CONTEXTS, &part);
        }
    }
}

/// What a block has for the specifications.
#[derive(Default)]
struct Seen {
    /// Rows of command buffers.
    command_buffers: Vec<u32>,
    /// Targets that begin in it, with the numbers of the render stages that begin them: of those in it, from 0.
    begun: Vec<(u32, u64)>,
    /// How many render stages it has.
    stages: u64,
    /// The first slice of each key, in order.
    keys: Vec<(StageKey, Drawn)>,
}

impl Seen {
    fn of(scene: &Scene, block: &Block, is_work: bool) -> Seen {
        let mut seen = Seen::default();
        let mut keys = FxHashSet::default();
        for drawn in block.slices() {
            let slice = &drawn.slice;
            if slice.kind == Kind::CommandBuffer {
                seen.command_buffers.push(slice.row);
            }
            if !is_work {
                continue;
            }
            if slice.flow != 0 {
                seen.begun.push((slice.flow - 1, seen.stages));
            }
            seen.stages += 1;
            let key = stage_key(scene, &drawn);
            if keys.insert(key) {
                seen.keys.push((key, drawn));
            }
        }
        seen
    }
}

/// The id of a scene's first render stage.
pub(super) fn first(scene: &Scene) -> u64 {
    (u64::from(scene.part.number) << 32) + 1
}

fn stage_key(scene: &Scene, drawn: &Drawn) -> StageKey {
    match drawn.slice.kind {
        Kind::Dispatch => StageKey::Kernel(drawn.dispatch.kernel),
        kind => StageKey::Named(kind, scene.name(drawn)),
    }
}

/// What the GPUs of a file are called, by their numbers.
#[derive(Default)]
pub(crate) struct Gpus {
    info: Message,
    count: u32,
}

impl Gpus {
    /// How many there are.
    pub fn count(&self) -> u32 {
        self.count
    }

    /// Adds those of a scene.
    pub(super) fn add(&mut self, scene: &Scene) {
        let groups = scene.groups.iter();
        for group in groups.filter(|group| group.kind == GroupKind::Gpu) {
            self.count += 1;
            let mut part = Message::default();
            let name = group
                .name
                .split_once(": ")
                .map_or(&*group.name, |(_, name)| name);
            part.text(1, name);
            let uuid = group.uuid.as_bytes().chunks_exact(2);
            let uuid: Option<Vec<u8>> = uuid
                .map(|two| u8::from_str_radix(std::str::from_utf8(two).ok()?, 16).ok())
                .collect();
            if let Some(uuid) = uuid.filter(|uuid| uuid.len() == 16) {
                part.bytes(5, &uuid);
            }
            self.info.message(1, &part);
        }
    }

    /// Writes the packet that names them.
    pub fn write(&self, out: &mut impl Write) -> io::Result<()> {
        if self.info.is_empty() {
            return Ok(());
        }
        let mut info = Message::default();
        info.message(packet::GPU_INFO, &self.info);
        info.number(packet::SEQUENCE, super::SEQUENCE);
        info.write_as(super::PACKET, out)
    }
}

impl<W: Write> Writer<'_, W> {
    /// A piece of work of a queue.
    fn render_stage(&mut self, of: &OfTrack, drawn: &Drawn) -> io::Result<()> {
        let slice = &drawn.slice;
        let id = self.next_stage;
        self.next_stage += 1;
        self.event.clear();
        self.event.number(stage::EVENT_ID, id);
        let duration_ns = slice.end_ns.abs_diff(slice.start_ns);
        self.event.number(stage::DURATION, duration_ns);
        self.event.number(stage::HW_QUEUE_IID, of.queue);
        let key = stage_key(self.scene, drawn);
        self.event
            .number(stage::STAGE_IID, self.stages.stages[&key]);
        self.event.number(stage::GPU_ID, of.gpu.into());
        if let Some(context) = of.context {
            self.event.number(stage::CONTEXT, context);
        }
        let name = u64::from(self.scene.name(drawn).0) + 1;
        self.event.number(stage::NAME_IID, name);
        self.details_of_stage(drawn)?;
        let at_ns = self.ns(slice.start_ns);
        self.packet.number(packet::TIMESTAMP, at_ns);
        self.packet.message(packet::RENDER_STAGE, &self.event);
        self.packet
            .number(packet::SEQUENCE_FLAGS, super::NEEDS_STATE);
        self.end_packet()
    }

    /// The interned id of the process that owns a queue.
    fn context_of(&self, queue: QueueId) -> Option<u64> {
        let manifest = &self.scene.trace.manifest;
        let process = manifest.device_of_queue(queue)?.process;
        let mut processes = manifest.processes.iter();
        Some(processes.position(|p| p.id == process)? as u64 + 1)
    }

    fn details_of_stage(&mut self, drawn: &Drawn) -> io::Result<()> {
        let (scene, slice, dispatch) = (self.scene, &drawn.slice, &drawn.dispatch);
        let tables = &scene.trace.tables;
        let row = slice.row as usize;
        let (event, part) = (&mut self.event, &mut self.part);
        let (command_buffer, submission) = match slice.kind {
            Kind::Dispatch => {
                let kernel = scene.names.kernel_row(dispatch.kernel);
                let local = kernel.map(|row| {
                    let k = &tables.kernels;
                    [k.local_x.at(row), k.local_y.at(row), k.local_z.at(row)]
                });
                part.clear();
                let mut dim = Message::default();
                for (field, size) in [(1, Some(dispatch.groups)), (2, local)] {
                    dim.clear();
                    for (axis, size) in (1..).zip(size.into_iter().flatten()) {
                        if let Some(size) = size {
                            dim.number(axis, size.into());
                        }
                    }
                    if !dim.is_empty() {
                        part.message(field, &dim);
                    }
                }
                if !part.is_empty() {
                    event.message(stage::LAUNCH, part);
                }
                (dispatch.command_buffer, dispatch.submission)
            }
            Kind::Transfer => (
                tables.transfers.command_buffer.at(row),
                tables.transfers.submission.at(row),
            ),
            _ => (
                tables.opaque_work.command_buffer.at(row),
                tables.opaque_work.submission.at(row),
            ),
        };
        if let Some(id) = command_buffer {
            event.number(stage::COMMAND_BUFFER, id.number());
        }
        let submission = submission.or_else(|| scene.submission_of_command_buffer(command_buffer?));
        // Ids beyond 32 bits do not fit; they are in the trace.
        if let Some(id) = submission.and_then(|id| u32::try_from(id.number()).ok()) {
            event.number(stage::SUBMISSION_ID, id.into());
        }
        scene.details(drawn, |key, value| {
            let wanted = matches!(
                key,
                Key::Label
                    | Key::Position
                    | Key::Bytes
                    | Key::SourceBuffer
                    | Key::DestinationBuffer
            );
            if wanted {
                part.clear();
                part.text(1, key.as_str());
                match value {
                    Value::Unsigned(number) => part.text(2, itoa::Buffer::new().format(number)),
                    Value::Signed(number) => part.text(2, itoa::Buffer::new().format(number)),
                    Value::Text(text) => part.text(2, &scene.names.texts[text]),
                }
                event.message(stage::EXTRA_DATA, part);
            }
            Ok::<(), io::Error>(())
        })
    }
}

/// What the render stages of a track have in common.
struct OfTrack {
    gpu: u32,
    /// The specification of its queue.
    queue: u64,
    context: Option<u64>,
}

impl<W: Write + Send> Writer<'_, W> {
    /// The work of a queue. Perfetto itself splits what overlaps.
    pub(super) fn render_stages(&mut self, gpu: u32, track: &Track) -> io::Result<()> {
        let queue = track.queue.unwrap_or_default();
        let of = OfTrack {
            gpu,
            queue: self.stages.queues[&queue],
            context: self.context_of(queue),
        };
        let (scene, stages) = (self.scene, self.stages);
        let mut next = self.next_stage;
        let blocks = track.lanes.iter().flat_map(|lane| &lane.blocks);
        let numbered = blocks.map(|block| {
            next += u64::from(block.count);
            (block, next - u64::from(block.count))
        });
        in_order(self.out, numbered, |(block, first), out| {
            let mut writer = Writer::new(scene, stages, out);
            writer.next_stage = first;
            let mut drawn = block.slices();
            drawn.try_for_each(|drawn| writer.render_stage(&of, &drawn))
        })?;
        self.next_stage = next;
        Ok(())
    }
}
