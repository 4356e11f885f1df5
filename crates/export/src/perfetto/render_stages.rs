//! Writes the work of queues as render stages, Perfetto's events for work on a GPU, which refer to specifications
//! (names of queues and of kinds of work) by id. [`RenderStages::new`] reads all slices first, because specifications
//! and the ids of stages are written before the stages.
//!
//! A target is the row of a command buffer, or of a submission without one, that a call submitted. A slice is a piece
//! of work or a call as a [`Scene`] draws it: in a lane of a track of a group (a GPU or a process).

use super::protobuf::Message;
use super::{Writer, interned, packet};
use crate::ordered_output::write_in_order;
use crate::packed::Block;
use crate::scene::{DetailKey, DetailValue};
use crate::scene::{GroupKind, Scene, Track};
use crate::slice::{LaneSlice, SliceKind};
use crate::texts::TextId;
use gapscope_trace::ids::{Id, KernelId, QueueId};
use gapscope_trace::manifest::Api;
use gapscope_trace::parallel;
use gapscope_trace::tables::OpaqueWorkKind;
use rustc_hash::{FxHashMap, FxHashSet};
use std::io::{self, Write};

// Numbers of fields in protos/perfetto/trace/gpu/gpu_render_stage_event.proto.
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

/// The numbers of the categories of specifications.
const OTHER: u64 = 0;
const GRAPHICS: u64 = 1;
const COMPUTE: u64 = 2;

/// The key of the slices that share a specification.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum StageKey {
    /// Dispatches of a kernel.
    Kernel(KernelId),
    /// Other work, by its name.
    Named(SliceKind, TextId),
}

/// The specification of a stage: its id, name and text in Perfetto's UI, and the number of its category.
struct Specification {
    /// The id by which stages name it.
    iid: u64,
    name: TextId,
    description: String,
    category: u64,
}

/// The specifications of render stages, and the ids of the stages that something refers to.
pub(super) struct RenderStages {
    /// The number of the GPU of each group, from 0; absent for other groups.
    gpus: Vec<Option<u32>>,
    /// The id of the specification of each queue.
    queues: FxHashMap<QueueId, u64>,
    /// The id of the specification of each stage.
    stages: FxHashMap<StageKey, u64>,
    specifications: Vec<Specification>,
    /// For each target, the id of the render stage that begins it.
    firsts: FxHashMap<u32, u64>,
    /// For each row of the table of command buffers, whether it is drawn, and whether a drawn call submitted it.
    drawn: Vec<bool>,
    submitted: Vec<bool>,
}

impl RenderStages {
    pub fn new(scene: &Scene) -> RenderStages {
        let count = scene.trace.tables.command_buffers.id.len();
        let mut stages = RenderStages {
            gpus: Vec::new(),
            queues: FxHashMap::default(),
            stages: FxHashMap::default(),
            specifications: Vec::new(),
            firsts: FxHashMap::default(),
            drawn: vec![false; count],
            submitted: vec![false; count],
        };
        let mut next_gpu = scene.place.gpus;
        let mut next_iid = 1;
        // Events are numbered in the order in which they are written.
        let mut event = first_id(scene);
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
                    BlockSummary::new(scene, block, track.queue.is_some())
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

    /// Adds the specification of a key, whose first slice is `drawn`, with the id `iid`.
    fn describe(&mut self, scene: &Scene, drawn: &LaneSlice, key: StageKey, iid: u64) {
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
        if slice.kind == SliceKind::Opaque
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

    /// Returns the number of a group's GPU; `None` for other groups.
    pub fn gpu(&self, group: usize) -> Option<u32> {
        self.gpus.get(group).copied().flatten()
    }

    /// Returns the render stage that begins a target.
    pub fn first_of(&self, target: u32) -> Option<u64> {
        self.firsts.get(&target).copied()
    }

    /// Returns whether a target is a command buffer that is drawn.
    pub fn is_drawn_command_buffer(&self, target: u32) -> bool {
        self.drawn.get(target as usize).copied().unwrap_or(false)
    }

    /// Returns whether a call submitted the command buffer in this row.
    pub fn is_submitted(&self, row: u32) -> bool {
        self.submitted.get(row as usize).copied().unwrap_or(false)
    }

    /// Adds the specifications of queues and stages to the interned data, and a context for each process: its pid and
    /// the API of its first device.
    pub fn intern(&self, scene: &Scene, data: &mut Message) {
        let mut part = Message::default();
        let several = scene.place.joined || self.gpus.iter().flatten().count() > 1;
        for (place, group) in scene.groups.iter().enumerate() {
            for track in &group.tracks {
                let Some(iid) = track.queue.and_then(|queue| self.queues.get(&queue)) else {
                    continue;
                };
                // Older versions show the queues of all GPUs in one list.
                let number = self.gpu(place).unwrap_or_default();
                let name = match several {
                    true => format!("GPU {number} · {}", track.name),
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
            let api = match device.map(|device| device.api) {
                Some(Api::Vulkan) => 2,
                Some(Api::Cuda) => 4,
                Some(Api::Hip) => 5,
                _ => 0,
            };
            part.number(3, api);
            data.message(interned::CONTEXTS, &part);
        }
    }
}

/// What [`RenderStages::new`] needs of a block of slices.
#[derive(Default)]
struct BlockSummary {
    /// The rows of command buffers.
    command_buffers: Vec<u32>,
    /// The targets that begin in the block, each with the number in the block, from 0, of its first render stage.
    begun: Vec<(u32, u64)>,
    /// The number of render stages.
    stages: u64,
    /// The first slice of each key, in order of time.
    keys: Vec<(StageKey, LaneSlice)>,
}

impl BlockSummary {
    /// Reads a block. Only a block of a queue's track (`is_work`) has render stages.
    fn new(scene: &Scene, block: &Block, is_work: bool) -> BlockSummary {
        let mut seen = BlockSummary::default();
        let mut keys = FxHashSet::default();
        for drawn in block.slices() {
            let slice = &drawn.slice;
            if slice.kind == SliceKind::CommandBuffer {
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

/// Returns the id of a scene's first render stage.
pub(super) fn first_id(scene: &Scene) -> u64 {
    (u64::from(scene.place.number) << 32) + 1
}

/// Returns the key of a slice: its kernel, or its kind and name.
fn stage_key(scene: &Scene, drawn: &LaneSlice) -> StageKey {
    match drawn.slice.kind {
        SliceKind::Dispatch => StageKey::Kernel(drawn.dispatch.kernel),
        kind => StageKey::Named(kind, scene.name(drawn)),
    }
}

/// The names of the GPUs of a file, by number.
#[derive(Default)]
pub(crate) struct GpuInfo {
    /// The message that names them.
    info: Message,
    count: u32,
}

impl GpuInfo {
    /// Returns the number of GPUs so far.
    pub fn count(&self) -> u32 {
        self.count
    }

    /// Adds the GPUs of a scene: the name behind `: ` of the group's name, and the UUID where it has 16 bytes.
    pub(super) fn add(&mut self, scene: &Scene) {
        let groups = scene.groups.iter();
        for group in groups.filter(|group| group.kind == GroupKind::Gpu) {
            self.count += 1;
            let mut part = Message::default();
            let name = group.name.split_once(": ");
            part.text(1, name.map_or(&*group.name, |(_, name)| name));
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

    /// Writes the packet that names the GPUs.
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
    /// Writes a piece of work of a queue as the next render stage.
    fn render_stage(&mut self, of: &TrackContext, drawn: &LaneSlice) -> io::Result<()> {
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
        self.details_of_stage(drawn);
        self.end_event_as(packet::RENDER_STAGE, slice.start_ns)
    }

    /// Returns the interned id of the process that owns a queue, which is its place in the manifest plus one.
    fn context_of(&self, queue: QueueId) -> Option<u64> {
        let manifest = &self.scene.trace.manifest;
        let process = manifest.device_of_queue(queue)?.process;
        let mut processes = manifest.processes.iter();
        Some(processes.position(|p| p.id == process)? as u64 + 1)
    }

    /// Adds to the event the sizes of a dispatch, the command buffer and submission, and those details for which
    /// Perfetto has no field of its own.
    fn details_of_stage(&mut self, drawn: &LaneSlice) {
        let (scene, slice, dispatch) = (self.scene, &drawn.slice, &drawn.dispatch);
        let tables = &scene.trace.tables;
        let row = slice.row as usize;
        let (event, part) = (&mut self.event, &mut self.part);
        let (command_buffer, submission) = match slice.kind {
            SliceKind::Dispatch => {
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
            SliceKind::Transfer => {
                let t = &tables.transfers;
                (t.command_buffer.at(row), t.submission.at(row))
            }
            _ => {
                let t = &tables.opaque_work;
                (t.command_buffer.at(row), t.submission.at(row))
            }
        };
        if let Some(id) = command_buffer {
            event.number(stage::COMMAND_BUFFER, id.number());
        }
        let submission = submission.or_else(|| scene.submission_of_command_buffer(command_buffer?));
        // The field has 32 bits. Larger ids are in the trace only.
        if let Some(id) = submission.and_then(|id| u32::try_from(id.number()).ok()) {
            event.number(stage::SUBMISSION_ID, id.into());
        }
        scene.details(drawn, |key, value| {
            let wanted = matches!(
                key,
                DetailKey::Label
                    | DetailKey::Position
                    | DetailKey::Bytes
                    | DetailKey::SourceBuffer
                    | DetailKey::DestinationBuffer
            );
            if wanted {
                part.clear();
                part.text(1, key.as_str());
                let mut buffer = itoa::Buffer::new();
                let text = match value {
                    DetailValue::Unsigned(number) => buffer.format(number),
                    DetailValue::Signed(number) => buffer.format(number),
                    DetailValue::Text(text) => &scene.names.texts[text],
                };
                part.text(2, text);
                event.message(stage::EXTRA_DATA, part);
            }
        });
    }
}

/// The facts that the render stages of a track share.
struct TrackContext {
    gpu: u32,
    /// The specification of the queue.
    queue: u64,
    /// The interned id of the process; absent where it is not known.
    context: Option<u64>,
}

impl<W: Write + Send> Writer<'_, W> {
    /// Writes the work of a queue, in blocks on all cores; the ids of stages go on from the earlier queues'. Perfetto
    /// itself splits overlapping work.
    pub(super) fn render_stages(&mut self, gpu: u32, track: &Track) -> io::Result<()> {
        let queue = track.queue.unwrap_or_default();
        let of = TrackContext {
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
        write_in_order(self.out, numbered, |(block, first), out| {
            let mut writer = Writer::new(scene, stages, out);
            writer.next_stage = first;
            let mut drawn = block.slices();
            drawn.try_for_each(|drawn| writer.render_stage(&of, &drawn))
        })?;
        self.next_stage = next;
        Ok(())
    }
}
