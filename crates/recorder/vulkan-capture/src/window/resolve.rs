//! What submitted command buffers mean: their commands as a capture has them, and the memory that they may touch.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use ash::vk::{self, Handle};
use gapscope_capture::model::{self, BufferRange, Command as Record};
use gapscope_vulkan_layer::handles::lock;

use super::objects::Numbers;
use crate::api::device::Device;
use crate::command::{Barrier, Command};
use crate::objects::descriptors::{Contents, Descriptor, SetLayout, is_dynamic};
use crate::objects::kernels::Pipeline;
use crate::objects::memory::{Buffer, Memory};

/// Why something cannot be captured.
pub type Refusal = String;

/// More cannot be written by one command of the model.
const UPDATE_BYTES: u64 = 65_536;
/// A command buffer that executes others deeper than this goes in a circle.
const DEPTH: u32 = 8;

/// A range of memory that a command may touch.
#[derive(Clone)]
pub struct Touch {
    pub memory: Arc<Memory>,
    /// By which it is reached, and where that begins in the memory.
    pub buffer: Arc<Buffer>,
    pub buffer_at: u64,
    /// In the memory.
    pub bytes: Range<u64>,
    pub access: Access,
}

/// How a command touches memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    Read,
    /// It may read, and write some of it or all.
    ReadWrite,
    /// It writes all of it and reads none.
    Overwrite,
}

/// Results of queries that a command buffer copies: what they are is known afterwards.
pub struct QueryResults {
    /// Which of the submission's command buffers, and which of its commands.
    pub at: (usize, usize),
    /// The touch, among all of the submission.
    pub touch: usize,
}

/// The command buffers of one call.
pub struct Resolver<'a> {
    device: &'static Device,
    numbers: &'a mut Numbers,
    pub touches: Vec<Touch>,
    pub query_results: Vec<QueryResults>,
    /// Of each command buffer.
    pub commands: Vec<Vec<Record>>,
    /// Events that the call sets.
    events: HashMap<vk::Event, bool>,
}

/// What is bound while a command buffer runs.
#[derive(Default)]
struct Bound {
    pipeline: Option<Arc<Pipeline>>,
    sets: HashMap<u32, BoundSet>,
    push_constants: Vec<u8>,
}

enum BoundSet {
    Set {
        set: vk::DescriptorSet,
        offsets: Vec<u32>,
    },
    Pushed {
        layout: Arc<SetLayout>,
        contents: Contents,
    },
}

impl<'a> Resolver<'a> {
    pub fn new(device: &'static Device, numbers: &'a mut Numbers) -> Resolver<'a> {
        Resolver {
            device,
            numbers,
            touches: Vec::new(),
            query_results: Vec::new(),
            commands: Vec::new(),
            events: HashMap::new(),
        }
    }

    /// Resolves some of the commands of a command buffer of the call, which those before them set up.
    pub fn command_buffer(
        &mut self,
        buffer: vk::CommandBuffer,
        part: Range<usize>,
    ) -> Result<(), Refusal> {
        self.commands.push(Vec::new());
        self.run(buffer, part, DEPTH)
    }

    fn run(
        &mut self,
        buffer: vk::CommandBuffer,
        part: Range<usize>,
        depth: u32,
    ) -> Result<(), Refusal> {
        let known = self.device.objects.command_buffers.get(buffer.as_raw());
        let known = known.ok_or("a command buffer that is not known")?;
        let recorded = lock(&known);
        let mut bound = Bound::default();
        for (index, command) in recorded.commands.iter().enumerate().take(part.end) {
            if index >= part.start || command.is_state() {
                self.command(command, &mut bound, depth)?;
            }
        }
        Ok(())
    }

    fn add(&mut self, record: Record) {
        if let Some(commands) = self.commands.last_mut() {
            commands.push(record);
        }
    }

    fn command(&mut self, command: &Command, bound: &mut Bound, depth: u32) -> Result<(), Refusal> {
        match command {
            Command::Pipeline(pipeline) => bound.pipeline = pipeline.clone(),
            Command::Sets {
                layout,
                first,
                sets,
                offsets,
            } => {
                let mut offsets = offsets.iter().copied();
                for (number, set) in (*first..).zip(sets) {
                    let layout = layout.sets.get(number as usize).and_then(Option::as_ref);
                    let count = layout.map_or(0, |layout| layout.dynamic_count());
                    let offsets = offsets.by_ref().take(count).collect();
                    bound
                        .sets
                        .insert(number, BoundSet::Set { set: *set, offsets });
                }
            }
            Command::PushDescriptors {
                set,
                layout,
                written,
                ..
            } => {
                let mut contents = match bound.sets.remove(set) {
                    Some(BoundSet::Pushed { contents, .. }) => contents,
                    _ => Contents::new(),
                };
                contents.extend(written.iter().copied());
                let layout = layout.clone();
                bound
                    .sets
                    .insert(*set, BoundSet::Pushed { layout, contents });
            }
            Command::PushConstants { offset, bytes, .. } => {
                let (start, end) = (*offset as usize, *offset as usize + bytes.len());
                if bound.push_constants.len() < end {
                    bound.push_constants.resize(end, 0);
                }
                bound.push_constants[start..end].copy_from_slice(bytes);
            }
            Command::Dispatch { base, groups } => {
                self.dispatch(bound, *base, model::Groups::Direct(*groups))?;
            }
            Command::DispatchIndirect { buffer, offset } => {
                let range = self.range(*buffer, *offset, 12, Access::Read)?;
                self.dispatch(bound, [0; 3], model::Groups::Indirect(range))?;
            }
            Command::Copy { from, to, regions } => self.copy(*from, *to, regions)?,
            Command::Fill {
                buffer,
                offset,
                bytes,
                value,
            } => {
                let mut range = self.located(*buffer, *offset, *bytes)?;
                if *bytes == vk::WHOLE_SIZE {
                    // The rest that is no whole word is left alone.
                    range.bytes.end -= (range.bytes.end - range.bytes.start) % 4;
                }
                let range = self.touch(range, Access::Overwrite);
                self.add(Record::Fill(model::Fill {
                    range,
                    value: *value,
                }));
            }
            Command::Update {
                buffer,
                offset,
                data,
            } => {
                let range = self.range(*buffer, *offset, data.len() as u64, Access::Overwrite)?;
                self.add(Record::Update(model::Update {
                    buffer: range.buffer,
                    offset: range.offset,
                    data: data.clone(),
                }));
            }
            Command::Barrier(barrier) => self.barrier(barrier),
            Command::SetEvent(event) => {
                self.events.insert(*event, true);
            }
            Command::ResetEvent(event) => {
                self.events.insert(*event, false);
            }
            Command::WaitEvents(events, barrier) => {
                for event in events {
                    self.check_event(*event)?;
                }
                // Waiting for all that came before is more than for what came before the event.
                self.barrier(barrier);
            }
            Command::Label(label) => self.add(Record::Label(label.clone())),
            Command::QueryResults {
                buffer,
                offset,
                bytes,
            } => {
                let mut located = self.located(*buffer, *offset, vk::WHOLE_SIZE)?;
                let end = located.bytes.start.saturating_add(*bytes);
                located.bytes.end = located.bytes.end.min(end) / 4 * 4;
                if located.bytes.end - located.bytes.start > UPDATE_BYTES {
                    return Err("vkCmdCopyQueryPoolResults of more than 64 KiB".to_owned());
                }
                let touch = self.touches.len();
                let range = self.touch(located, Access::Overwrite);
                let last = self.commands.len() - 1;
                let at = (last, self.commands[last].len());
                self.query_results.push(QueryResults { at, touch });
                self.add(Record::Update(model::Update {
                    buffer: range.buffer,
                    offset: range.offset,
                    data: Vec::new(),
                }));
            }
            Command::Secondary(buffers) => {
                for buffer in buffers {
                    let deeper = depth.checked_sub(1);
                    self.run(
                        *buffer,
                        0..usize::MAX,
                        deeper.ok_or("command buffers that execute each other")?,
                    )?;
                }
                *bound = Bound::default();
            }
            Command::Once => {}
            Command::Refused(name) => return Err((*name).to_owned()),
        }
        Ok(())
    }

    fn copy(
        &mut self,
        from: vk::Buffer,
        to: vk::Buffer,
        regions: &[model::CopyRegion],
    ) -> Result<(), Refusal> {
        let mut ends = None;
        for region in regions {
            let source = self.range(from, region.from, region.bytes, Access::Read)?;
            let target = self.range(to, region.to, region.bytes, Access::Overwrite)?;
            ends = Some((source.buffer, target.buffer));
        }
        if let Some((from, to)) = ends {
            let regions = regions.to_vec();
            self.add(Record::Copy(model::Copy { from, to, regions }));
        }
        Ok(())
    }

    fn dispatch(
        &mut self,
        bound: &Bound,
        base: [u32; 3],
        groups: model::Groups,
    ) -> Result<(), Refusal> {
        let pipeline = bound
            .pipeline
            .as_ref()
            .ok_or("a dispatch of a pipeline that is not known")?;
        let kernel = || pipeline.name();
        if let Some(refusal) = &pipeline.refusal {
            return Err(format!("{refusal} (kernel {})", kernel()));
        }
        let interface = pipeline.module.interface();
        if interface.uses_addresses {
            let kernel = kernel();
            return Err(format!(
                "kernel {kernel} reaches memory by device addresses"
            ));
        }
        let mut bindings = Vec::new();
        for (&(set, binding), access) in &interface.bindings {
            // The module may have variables that this entry point does not use, and its layout lacks.
            let layout = pipeline
                .layout
                .sets
                .get(set as usize)
                .and_then(Option::as_ref);
            let slot =
                layout.and_then(|layout| layout.places().find(|(b, _)| b.binding == binding));
            let Some((slot, first)) = slot else { continue };
            let of_device = self.device;
            let mut contents = Contents::new();
            let mut offsets = Vec::new();
            match bound.sets.get(&set) {
                Some(BoundSet::Set {
                    set,
                    offsets: bound,
                }) => {
                    let sets = &of_device.objects.descriptors.sets;
                    let places = first..first.saturating_add(slot.count);
                    let copied = sets.with(set.as_raw(), |set| {
                        let range = set.contents.range(places);
                        contents.extend(range.map(|(place, descriptor)| (*place, *descriptor)));
                    });
                    copied.ok_or_else(|| {
                        format!(
                            "kernel {} runs with a descriptor set that is not known",
                            kernel()
                        )
                    })?;
                    offsets.clone_from(bound);
                }
                Some(BoundSet::Pushed {
                    layout,
                    contents: pushed,
                }) => {
                    let first = layout.place(binding, 0).unwrap_or(first);
                    let range = pushed.range(first..first.saturating_add(slot.count));
                    contents.extend(range.map(|(place, descriptor)| (*place, *descriptor)));
                }
                None => continue,
            }
            let dynamic = layout.map_or(0, |layout| dynamic_before(layout, binding));
            for (place, descriptor) in contents {
                let element = place - first;
                let Descriptor::Buffer {
                    buffer,
                    offset,
                    range,
                } = descriptor
                else {
                    return Err(format!(
                        "kernel {} uses an image, a sampler or another descriptor that is no buffer (set {set}, binding {binding})",
                        kernel()
                    ));
                };
                let read_only = access.read_only || is_uniform(slot.descriptor_type);
                let range = if buffer == vk::Buffer::null() {
                    None
                } else {
                    let mut at = offset;
                    if is_dynamic(slot.descriptor_type) {
                        let moved = offsets
                            .get(dynamic + element as usize)
                            .copied()
                            .unwrap_or(0);
                        at = at.saturating_add(moved.into());
                    }
                    let access = if read_only {
                        Access::Read
                    } else {
                        Access::ReadWrite
                    };
                    Some(self.range(buffer, at, range, access)?)
                };
                bindings.push(model::Binding {
                    set,
                    binding,
                    element,
                    descriptor_type: slot.descriptor_type,
                    range,
                    read_only,
                });
            }
        }
        let mut push_constants = bound.push_constants.clone();
        push_constants.resize(pipeline.layout.push_constant_bytes(), 0);
        let pipeline = self.numbers.pipeline(pipeline);
        self.add(Record::Dispatch(model::Dispatch {
            pipeline,
            groups,
            base,
            push_constants,
            bindings,
        }));
        Ok(())
    }

    fn check_event(&mut self, event: vk::Event) -> Result<(), Refusal> {
        if self.events.get(&event) == Some(&true) {
            return Ok(());
        }
        // SAFETY: the event is live: a command buffer that is being submitted waits for it.
        let is_set = unsafe { self.device.next.get_event_status(event) };
        match is_set {
            Ok(true) => Ok(()),
            _ => Err("vkCmdWaitEvents for an event that nothing has set yet".to_owned()),
        }
    }

    fn barrier(&mut self, barrier: &Barrier) {
        let mut memory = barrier.memory.clone();
        let mut buffers = Vec::new();
        for one in &barrier.buffers {
            match self.located(one.buffer, one.offset, one.bytes) {
                Ok(located) if !located.bytes.is_empty() => {
                    buffers.push((one.dependency, self.named(&located)));
                }
                // It concerns no memory that a window can have, but what it orders is ordered.
                _ => memory.push(one.dependency),
            }
        }
        let flags = barrier.flags;
        self.add(Record::Barrier(model::Barrier {
            flags,
            memory,
            buffers,
        }));
    }

    /// Where a range of a buffer is.
    fn located(&self, buffer: vk::Buffer, offset: u64, bytes: u64) -> Result<Touch, Refusal> {
        let known = self.device.objects.buffers.get(buffer.as_raw());
        let buffer = known.ok_or("a buffer that is not known")?;
        if buffer.flags.intersects(
            vk::BufferCreateFlags::SPARSE_BINDING | vk::BufferCreateFlags::SPARSE_RESIDENCY,
        ) {
            return Err("a sparse buffer".to_owned());
        }
        if buffer.flags.contains(vk::BufferCreateFlags::PROTECTED) {
            return Err("a protected buffer".to_owned());
        }
        let (memory, at) = buffer
            .place
            .get()
            .cloned()
            .ok_or("a buffer without memory")?;
        if let Some(refusal) = &memory.refusal {
            return Err(refusal.clone());
        }
        if !buffer.is_readable {
            return Err("a buffer that cannot be made to be copied from".to_owned());
        }
        let start = offset.min(buffer.bytes);
        let end = match bytes {
            vk::WHOLE_SIZE => buffer.bytes,
            bytes => start.saturating_add(bytes).min(buffer.bytes),
        };
        Ok(Touch {
            bytes: at + start..at + end,
            memory,
            buffer,
            buffer_at: at,
            access: Access::Read,
        })
    }

    fn named(&mut self, touch: &Touch) -> BufferRange {
        BufferRange {
            buffer: self
                .numbers
                .buffer(&touch.buffer, &touch.memory, touch.buffer_at),
            offset: touch.bytes.start - touch.buffer_at,
            bytes: touch.bytes.end - touch.bytes.start,
        }
    }

    fn touch(&mut self, mut touch: Touch, access: Access) -> BufferRange {
        touch.access = access;
        let range = self.named(&touch);
        self.touches.push(touch);
        range
    }

    fn range(
        &mut self,
        buffer: vk::Buffer,
        offset: u64,
        bytes: u64,
        access: Access,
    ) -> Result<BufferRange, Refusal> {
        let touch = self.located(buffer, offset, bytes)?;
        Ok(self.touch(touch, access))
    }
}

/// How many dynamic offsets of a set come before those of a binding.
fn dynamic_before(layout: &SetLayout, binding: u32) -> usize {
    let before = layout.bindings.iter().filter(|b| b.binding < binding);
    before
        .filter(|b| is_dynamic(b.descriptor_type))
        .map(|b| b.count as usize)
        .sum()
}

fn is_uniform(kind: u32) -> bool {
    [
        vk::DescriptorType::UNIFORM_BUFFER,
        vk::DescriptorType::UNIFORM_BUFFER_DYNAMIC,
    ]
    .iter()
    .any(|uniform| uniform.as_raw() as u32 == kind)
}
