//! Writes a scene (the parts of a trace that every format shows) in Perfetto's native protobuf format, for its UI and
//! for `trace_processor`. A file is a list of packets: the clocks, then for each trace the texts that events name by
//! id (interned data), its groups (a process or a GPU with its tracks) and its samples.
//!
//! The work of queues becomes render stages (`GpuRenderStageEvent`), which Perfetto keeps whole where they overlap,
//! and counters of GPUs become GPU counters. Everything else is track events under a track for each GPU and process.
//! Render stages cannot be the end of a flow in every version of Perfetto: flows go from a submitting call to its
//! command buffers, and newer versions also find the first render stage of each by `gpu_correlation`. Samples of
//! threads are `PerfSample`s. Times are those of the trace, as `BUILTIN_CLOCK_MONOTONIC`; only a trace with times
//! before the clock's zero is shifted.

mod counters;
mod protobuf;
mod render_stages;
mod samples;

use crate::Exported;
use crate::lanes::{self, Step};
use crate::ordered_output::write_in_order;
use crate::scene::{DetailKey, DetailValue};
use crate::scene::{GroupKind, Scene, Track};
use crate::slice::{LaneSlice, SliceKind};
use gapscope_trace::embedded::{Piece, Seal, Sealing, each_piece};
use gapscope_trace::ids::{Id, ThreadId};
use protobuf::Message;
pub(crate) use render_stages::GpuInfo;
use render_stages::RenderStages;
use std::io::{self, Write};
use std::path::Path;

// Numbers of fields and enums in protos/perfetto/trace/**.proto. The test `perfetto` decodes them with Perfetto's own
// classes.
const PACKET: u32 = 1;
mod packet {
    pub const CLOCK_SNAPSHOT: u32 = 6;
    pub const TIMESTAMP: u32 = 8;
    pub const SEQUENCE: u32 = 10;
    pub const TRACK_EVENT: u32 = 11;
    pub const INTERNED_DATA: u32 = 12;
    pub const SEQUENCE_FLAGS: u32 = 13;
    pub const GPU_COUNTERS: u32 = 52;
    pub const RENDER_STAGE: u32 = 53;
    pub const DEFAULTS: u32 = 59;
    pub const TRACK_DESCRIPTOR: u32 = 60;
    pub const PERF_SAMPLE: u32 = 66;
    pub const GPU_INFO: u32 = 128;
    /// A field of gapscope's own, which other readers pass over: a piece of the embedded trace.
    pub const EMBEDDED: u32 = 7000;
}
mod track {
    pub const UUID: u32 = 1;
    pub const NAME: u32 = 2;
    pub const PROCESS: u32 = 3;
    pub const THREAD: u32 = 4;
    pub const PARENT: u32 = 5;
    pub const COUNTER: u32 = 8;
    pub const CHILD_ORDERING: u32 = 11;
    pub const SIBLING_ORDER_RANK: u32 = 12;
    pub const EXPLICIT: u64 = 3;
}
mod event {
    pub const CATEGORY_IID: u32 = 3;
    pub const ANNOTATION: u32 = 4;
    pub const TYPE: u32 = 9;
    pub const NAME_IID: u32 = 10;
    pub const TRACK: u32 = 11;
    pub const DOUBLE_VALUE: u32 = 44;
    pub const FLOW: u32 = 47;
    /// An extension of newer versions: the render stages that a call submitted.
    pub const GPU_CORRELATION: u32 = 3000;
    pub const BEGIN: u64 = 1;
    pub const END: u64 = 2;
    pub const COUNTER: u64 = 4;
}
mod annotation {
    pub const NAME_IID: u32 = 1;
    pub const UNSIGNED: u32 = 3;
    pub const SIGNED: u32 = 4;
    pub const TEXT_IID: u32 = 17;
}
mod interned {
    pub const CATEGORIES: u32 = 1;
    pub const EVENT_NAMES: u32 = 2;
    pub const ANNOTATION_NAMES: u32 = 3;
    pub const FUNCTION_NAMES: u32 = 5;
    pub const FRAMES: u32 = 6;
    pub const CALLSTACKS: u32 = 7;
    pub const MAPPING_PATHS: u32 = 17;
    pub const SOURCE_PATHS: u32 = 18;
    pub const MAPPINGS: u32 = 19;
    pub const CONTEXTS: u32 = 23;
    pub const GPU_SPECIFICATIONS: u32 = 24;
    pub const ANNOTATION_TEXTS: u32 = 29;
}
// Clocks (BuiltinClock), then the flags of a sequence (SequenceFlags).
const MONOTONIC: u64 = 3;
const REALTIME: u64 = 1;
const STATE_CLEARED: u64 = 1;
const NEEDS_STATE: u64 = 2;
/// The packet sequence of a trace. Each further trace in a file takes the next number.
const SEQUENCE: u64 = 1;
/// The bits for the track ids of one trace in a file.
const UUID_BITS: u32 = 20;
/// The number before the first track id. It keeps the tracks apart from those of another trace that is opened
/// together with this one.
const FIRST_UUID: u64 = 0x6761_7073_0000_0001;

/// Writes a trace as one file, and returns the counts of its rows.
///
/// # Errors
/// Writing to `out` fails.
pub fn write(scene: &Scene, out: &mut (impl Write + Send)) -> io::Result<Exported> {
    let mut drawing = Sealing::new(&mut *out);
    if scene.embedded.is_some() {
        announce(&mut drawing)?;
    }
    let exported = write_part(scene, &mut GpuInfo::default(), &mut drawing)?;
    if let Some(folder) = &scene.embedded {
        let seal = drawing.seal();
        embed(folder, seal, out)?;
    }
    Ok(exported)
}

/// Writes the first packet of a file with an embedded trace, by which the importer recognises the file.
pub(crate) fn announce(out: &mut impl Write) -> io::Result<()> {
    let (mut packet, mut part) = (Message::default(), Message::default());
    part.number(5, 1);
    packet.number(packet::SEQUENCE, SEQUENCE);
    packet.message(packet::EMBEDDED, &part);
    packet.write_as(PACKET, out)
}

/// Writes the trace of a folder in packets: its files in pieces, then the seal of the drawing. The importer `drawn`
/// reads them.
pub(crate) fn embed(folder: &Path, seal: Seal, out: &mut impl Write) -> io::Result<()> {
    let mut packet = Message::default();
    let mut part = Message::default();
    each_piece(folder, |Piece { file, bytes }| {
        packet.clear();
        part.clear();
        part.text(1, file);
        part.bytes(2, bytes);
        packet.number(packet::SEQUENCE, SEQUENCE);
        packet.message(packet::EMBEDDED, &part);
        packet.write_as(PACKET, out)
    })?;
    packet.clear();
    part.clear();
    part.number(3, seal.bytes);
    part.number(4, seal.crc32.into());
    packet.number(packet::SEQUENCE, SEQUENCE);
    packet.message(packet::EMBEDDED, &part);
    packet.write_as(PACKET, out)
}

/// Writes a trace as a part of a file, and adds its GPUs to `gpus`. A file names all GPUs at once: here for a trace
/// that has the file alone, otherwise the caller does it behind the last trace.
pub(crate) fn write_part(
    scene: &Scene,
    gpus: &mut GpuInfo,
    out: &mut (impl Write + Send),
) -> io::Result<Exported> {
    let stages = RenderStages::new(scene);
    let mut writer = Writer::new(scene, &stages, out);
    if scene.place.number == 0 {
        writer.clocks()?;
    }
    writer.texts()?;
    gpus.add(scene);
    if !scene.place.joined {
        gpus.write(writer.out)?;
    }
    writer.groups()?;
    writer.samples()?;
    Ok(scene.exported_with_samples())
}

/// The state of writing one trace, with messages that are reused.
struct Writer<'a, W> {
    scene: &'a Scene<'a>,
    out: &'a mut W,
    /// The time that is subtracted from all times: 0, or the first time if it is negative.
    base_ns: i64,
    /// The packet that is being made.
    packet: Message,
    /// The message inside the packet.
    event: Message,
    /// A message inside the event.
    part: Message,
    /// The last track id that was given.
    next_uuid: u64,
    stages: &'a RenderStages,
    /// The id of the next render stage.
    next_stage: u64,
}

impl<'a, W> Writer<'a, W> {
    fn new(scene: &'a Scene<'a>, stages: &'a RenderStages, out: &'a mut W) -> Writer<'a, W> {
        Writer {
            base_ns: scene.origin_ns.min(0),
            scene,
            out,
            packet: Message::default(),
            event: Message::default(),
            part: Message::default(),
            next_uuid: FIRST_UUID + (u64::from(scene.place.number) << UUID_BITS),
            stages,
            next_stage: render_stages::first_id(scene),
        }
    }
}

impl<W: Write> Writer<'_, W> {
    /// Writes the recording's start on the clock of the trace, and as Unix time where it is known.
    fn clocks(&mut self) -> io::Result<()> {
        let manifest = &self.scene.trace.manifest;
        let start_ns = self.ns(manifest.start_ns);
        let mut snapshot = Message::default();
        let unix_ns = manifest.start_unix_ns.and_then(|ns| u64::try_from(ns).ok());
        for (clock, at_ns) in [(MONOTONIC, Some(start_ns)), (REALTIME, unix_ns)] {
            if let Some(at_ns) = at_ns {
                self.part.clear();
                self.part.number(1, clock);
                self.part.number(2, at_ns);
                snapshot.message(1, &self.part);
            }
        }
        snapshot.number(2, MONOTONIC);
        self.packet.message(packet::CLOCK_SNAPSHOT, &snapshot);
        self.end_packet()
    }

    /// Writes the texts that events name by id. An id is one more than the index, because 0 means none.
    fn texts(&mut self) -> io::Result<()> {
        let mut data = Message::default();
        let texts = self.scene.names.texts.all().iter().map(String::as_str);
        let kinds = SliceKind::ALL.iter().map(|kind| kind.as_str());
        let keys = DetailKey::ALL.iter().map(|key| key.as_str());
        for (id, text) in (1..).zip(kinds) {
            self.interned(&mut data, interned::CATEGORIES, id, text);
        }
        for (id, text) in (1..).zip(keys) {
            self.interned(&mut data, interned::ANNOTATION_NAMES, id, text);
        }
        for (id, text) in (1..).zip(texts) {
            self.interned(&mut data, interned::EVENT_NAMES, id, text);
            self.interned(&mut data, interned::ANNOTATION_TEXTS, id, text);
        }
        self.stages.intern(self.scene, &mut data);
        self.part.clear();
        self.part.number(58, MONOTONIC);
        self.packet.number(packet::SEQUENCE_FLAGS, STATE_CLEARED);
        self.packet.message(packet::DEFAULTS, &self.part);
        self.packet.message(packet::INTERNED_DATA, &data);
        self.end_packet()
    }

    /// Adds a text with its id to the interned data, in the field of its kind.
    fn interned(&mut self, data: &mut Message, field: u32, id: u64, text: &str) {
        self.part.clear();
        self.part.number(1, id);
        self.part.text(2, text);
        data.message(field, &self.part);
    }

    /// Returns a new track id.
    fn uuid(&mut self) -> u64 {
        self.next_uuid += 1;
        self.next_uuid
    }

    /// Writes the description of a track: its id, parent and rank among its siblings are added to `descriptor`.
    fn descriptor(
        &mut self,
        uuid: u64,
        parent: Option<u64>,
        rank: usize,
        mut descriptor: Message,
    ) -> io::Result<()> {
        descriptor.number(track::UUID, uuid);
        if let Some(parent) = parent {
            descriptor.number(track::PARENT, parent);
        }
        descriptor.number(track::SIBLING_ORDER_RANK, rank as u64);
        self.packet.message(packet::TRACK_DESCRIPTOR, &descriptor);
        self.end_packet()
    }

    /// Writes the start or end of a slice as an event of a track.
    fn step(&mut self, uuid: u64, step: Step) -> io::Result<()> {
        self.event.clear();
        self.event.number(event::TRACK, uuid);
        match step {
            Step::Start(drawn) => {
                self.slice_begin(&drawn);
                self.end_event(drawn.slice.start_ns)
            }
            Step::End(drawn) => {
                self.event.number(event::TYPE, event::END);
                self.end_event(drawn.slice.end_ns)
            }
        }
    }

    /// Adds to the event the name, kind and details of a slice, and its flows: to the drawn command buffers that a
    /// call submits, or from the call that submitted a command buffer.
    fn slice_begin(&mut self, drawn: &LaneSlice) {
        let (scene, slice) = (self.scene, &drawn.slice);
        let (part, message) = (&mut self.part, &mut self.event);
        message.number(event::TYPE, event::BEGIN);
        message.number(event::CATEGORY_IID, slice.kind as u64 + 1);
        message.number(event::NAME_IID, u64::from(scene.name(drawn).0) + 1);
        scene.details(drawn, |key, value| {
            part.clear();
            part.number(annotation::NAME_IID, key as u64 + 1);
            match value {
                DetailValue::Unsigned(number) => part.number(annotation::UNSIGNED, number),
                // The field is an int64, which has two's complement.
                DetailValue::Signed(number) => part.number(annotation::SIGNED, number as u64),
                DetailValue::Text(text) => part.number(annotation::TEXT_IID, u64::from(text.0) + 1),
            }
            message.message(event::ANNOTATION, part);
        });
        match slice.kind {
            kind if kind.is_call() && slice.flow != 0 => {
                self.part.clear();
                for target in scene.flows.targets_of_call(slice.flow) {
                    if self.stages.is_drawn_command_buffer(*target) {
                        self.event.fixed(event::FLOW, flow_id(scene, *target));
                    }
                    if let Some(stage) = self.stages.first_of(*target) {
                        self.part.number(1, stage);
                    }
                }
                if !self.part.is_empty() {
                    self.event.message(event::GPU_CORRELATION, &self.part);
                }
            }
            SliceKind::CommandBuffer if self.stages.is_submitted(slice.row) => {
                self.event.fixed(event::FLOW, flow_id(scene, slice.row));
            }
            _ => {}
        }
    }

    /// Writes the event as a track event at a time of the trace.
    fn end_event(&mut self, at_ns: i64) -> io::Result<()> {
        self.end_event_as(packet::TRACK_EVENT, at_ns)
    }

    /// Writes the event as this field of a packet, with its time. The event names texts by id, so the packet needs
    /// the interned data before it.
    fn end_event_as(&mut self, field: u32, at_ns: i64) -> io::Result<()> {
        let at_ns = self.ns(at_ns);
        self.packet.number(packet::TIMESTAMP, at_ns);
        self.packet.message(field, &self.event);
        self.packet.number(packet::SEQUENCE_FLAGS, NEEDS_STATE);
        self.end_packet()
    }

    /// Writes the packet, with the sequence of its trace, and begins an empty one.
    fn end_packet(&mut self) -> io::Result<()> {
        let sequence = SEQUENCE + u64::from(self.scene.place.number);
        self.packet.number(packet::SEQUENCE, sequence);
        self.packet.write_as(PACKET, self.out)?;
        self.packet.clear();
        Ok(())
    }

    /// Returns a time of the trace as one of the file.
    fn ns(&self, ns: i64) -> u64 {
        ns.abs_diff(self.base_ns)
    }
}

impl<W: Write + Send> Writer<'_, W> {
    /// Writes for each group its track, its queues as render stages, its other tracks, threads with only samples, and
    /// counters.
    fn groups(&mut self) -> io::Result<()> {
        let scene = self.scene;
        for (rank, group) in scene.groups.iter().enumerate() {
            let root = self.uuid();
            let mut descriptor = Message::default();
            descriptor.text(track::NAME, &group.name);
            if group.kind == GroupKind::Process {
                let mut process = Message::default();
                process.number(1, group.pid.into());
                process.text(6, &group.name);
                descriptor.message(track::PROCESS, &process);
            }
            descriptor.number(track::CHILD_ORDERING, track::EXPLICIT);
            self.descriptor(root, None, rank, descriptor)?;
            let gpu = self.stages.gpu(rank);
            for (rank, track) in group.tracks.iter().enumerate() {
                match track.queue {
                    Some(_) => self.render_stages(gpu.unwrap_or_default(), track)?,
                    None => self.track(root, group.pid, rank, track)?,
                }
            }
            for samples in group.samples_without_track() {
                let descriptor = thread_descriptor(group.pid, samples.thread, &samples.name);
                let uuid = self.uuid();
                self.descriptor(uuid, Some(root), group.tracks.len(), descriptor)?;
            }
            for counter in &group.counters {
                match gpu {
                    Some(gpu) => self.gpu_counter(gpu, counter)?,
                    None => self.counter(root, counter)?,
                }
            }
        }
        Ok(())
    }

    /// Writes the lanes of a track under `root`, each as a track of Perfetto.
    fn track(&mut self, root: u64, pid: u32, rank: usize, track: &Track) -> io::Result<()> {
        let mut first = root;
        for (lane, lane_of) in track.lanes.iter().enumerate() {
            let uuid = self.uuid();
            let thread = track.thread.filter(|_| lane == 0);
            let descriptor = match thread {
                Some(thread) => thread_descriptor(pid, thread, &track.name),
                None => {
                    let mut descriptor = Message::default();
                    descriptor.text(track::NAME, &track.lane_name(lane));
                    descriptor
                }
            };
            // Further lanes of a thread stand under the first.
            let parent = if track.thread.is_some() { first } else { root };
            self.descriptor(uuid, Some(parent), rank, descriptor)?;
            if thread.is_some() {
                first = uuid;
            }
            if lanes::is_flat(lane_of) {
                let (scene, stages) = (self.scene, self.stages);
                write_in_order(self.out, &lane_of.blocks, |block, out| {
                    let mut writer = Writer::new(scene, stages, out);
                    block.slices().try_for_each(|drawn| {
                        writer.step(uuid, Step::Start(drawn))?;
                        writer.step(uuid, Step::End(drawn))
                    })
                })?;
            } else {
                lanes::walk(lane_of, |step| self.step(uuid, step))?;
            }
        }
        Ok(())
    }
}

/// Returns the description of a thread's track.
fn thread_descriptor(pid: u32, thread: ThreadId, name: &str) -> Message {
    let mut message = Message::default();
    message.number(1, pid.into());
    message.number(2, thread.number());
    message.text(5, name);
    let mut descriptor = Message::default();
    descriptor.text(track::NAME, name);
    descriptor.message(track::THREAD, &message);
    descriptor
}

/// Returns the id of the flow to a target. Flow ids are shared by all tracks that are opened together, so that small
/// numbers could meet those of other traces.
fn flow_id(scene: &Scene, target: u32) -> u64 {
    (FIRST_UUID << 16) ^ (u64::from(scene.place.number) << 34) ^ (u64::from(target) + 1)
}
