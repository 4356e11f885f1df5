//! Resolves submitted command buffers: kept commands with the program's handles go in; the records of a capture come
//! out, and the ranges of memory that the commands may access (touch). [`Resolver::command_buffer`] is called for
//! each command buffer in order; the results are the resolver's public fields. A [`Refusal`] says what cannot be
//! captured.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use ash::vk::{self, Handle};
use gapscope_capture::model::{self, BufferRange, Command as Record};
use gapscope_vulkan_layer::descriptors::{Descriptor, is_buffer};
use gapscope_vulkan_layer::handles::lock;

use super::bound_state::{BoundState, UnknownSet};
use super::object_ids::ObjectIds;
use crate::api::device::Device;
use crate::objects::command::{Barrier, Command};
use crate::objects::memory::{Buffer, Memory};
use crate::objects::refusal::Refusal;

/// The most bytes that one command of the model can write.
const MAX_UPDATE_BYTES: u64 = 65_536;
/// The deepest nesting of command buffers that execute each other; deeper ones are taken for a circle.
const MAX_NESTING: u32 = 8;

/// A range of memory that a command may access.
#[derive(Clone)]
pub struct AccessedRange {
    pub memory: Arc<Memory>,
    /// The buffer by which the range is reached, and where that begins in the memory.
    pub buffer: Arc<Buffer>,
    pub buffer_at: u64,
    /// The range, in the memory.
    pub bytes: Range<u64>,
    pub access: Access,
}

/// The way in which a command accesses memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// The command only reads.
    Read,
    /// The command may read, and write some of the range or all.
    ReadWrite,
    /// The command writes all of the range and reads none.
    Overwrite,
}

/// Results of queries that a command buffer copies, which are known afterwards.
pub struct QueryResults {
    /// The index of the command buffer in the submission, and that of the command in it.
    pub at: (usize, usize),
    /// The index of the accessed range, among all of the submission.
    pub touch: usize,
}

/// The command buffers of one call, as they are resolved.
pub struct Resolver<'a> {
    device: &'static Device,
    numbers: &'a mut ObjectIds,
    /// The ranges that the commands access, in the order of the commands.
    pub touches: Vec<AccessedRange>,
    pub query_results: Vec<QueryResults>,
    /// The commands of each command buffer.
    pub commands: Vec<Vec<Record>>,
    /// The events that the call sets (true) or resets (false), as the last command on each left it.
    events: HashMap<vk::Event, bool>,
}

impl<'a> Resolver<'a> {
    pub fn new(device: &'static Device, numbers: &'a mut ObjectIds) -> Resolver<'a> {
        Resolver {
            device,
            numbers,
            touches: Vec::new(),
            query_results: Vec::new(),
            commands: Vec::new(),
            events: HashMap::new(),
        }
    }

    /// Resolves some of the commands of a command buffer of the call, with the bindings that earlier commands made.
    pub fn command_buffer(
        &mut self,
        buffer: vk::CommandBuffer,
        part: Range<usize>,
    ) -> Result<(), Refusal> {
        self.commands.push(Vec::new());
        self.run(buffer, part, MAX_NESTING)
    }

    /// Resolves commands of a command buffer; `depth` is how many more may be nested.
    fn run(
        &mut self,
        buffer: vk::CommandBuffer,
        part: Range<usize>,
        depth: u32,
    ) -> Result<(), Refusal> {
        let state = self.device.objects.command_buffers.get(buffer.as_raw());
        let state = state.ok_or("a command buffer that is not known")?;
        let recorded = lock(&state);
        let mut bound = BoundState::default();
        for (index, command) in recorded.commands.iter().enumerate().take(part.end) {
            if index >= part.start || command.is_state() {
                self.command(command, &mut bound, depth)?;
            }
        }
        Ok(())
    }

    /// Adds a record to the command buffer that is resolved.
    fn add(&mut self, record: Record) {
        if let Some(commands) = self.commands.last_mut() {
            commands.push(record);
        }
    }

    /// Resolves one command. One that only binds changes `bound`.
    fn command(
        &mut self,
        command: &Command,
        bound: &mut BoundState,
        depth: u32,
    ) -> Result<(), Refusal> {
        match command {
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
                    // Bytes after the last whole word are left alone.
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
                if located.bytes.end - located.bytes.start > MAX_UPDATE_BYTES {
                    return Err("vkCmdCopyQueryPoolResults of more than 64 KiB".into());
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
                *bound = BoundState::default();
            }
            Command::Pipeline(_)
            | Command::Sets { .. }
            | Command::PushDescriptors { .. }
            | Command::PushConstants { .. } => bound.set_up(command),
            Command::Once => {}
            Command::Refused(name) => return Err((*name).into()),
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

    /// Resolves a dispatch: every buffer that its kernel can reach through the bound descriptors is a range that it
    /// may access.
    fn dispatch(
        &mut self,
        bound: &BoundState,
        base: [u32; 3],
        groups: model::Groups,
    ) -> Result<(), Refusal> {
        let pipeline = bound
            .pipeline
            .as_ref()
            .ok_or("a dispatch of a pipeline that is not known")?;
        let kernel = || pipeline.name();
        if let Some(refusal) = &pipeline.refusal {
            return Err(format!("{refusal} (kernel {})", kernel()).into());
        }
        let interface = pipeline.module.interface();
        if interface.uses_addresses {
            let kernel = kernel();
            return Err(format!("kernel {kernel} reaches memory by device addresses").into());
        }
        let mut bindings = Vec::new();
        for (&(set, binding), may_be_written) in &interface.bindings {
            // The module may have variables that this entry point does not use, and its layout lacks.
            let layout = (pipeline.layout.sets.get(set as usize)).and_then(Option::as_ref);
            let Some(layout) = layout else { continue };
            let slot = layout.bindings.iter().find(|slot| slot.number == binding);
            let Some(slot) = slot else { continue };
            let descriptors = bound.descriptors(self.device, set, binding, layout);
            let descriptors = descriptors.map_err(|UnknownSet| {
                format!(
                    "kernel {} runs with a descriptor set that is not known",
                    kernel()
                )
            })?;
            let read_only = !may_be_written || is_uniform(slot.kind);
            for (element, descriptor) in descriptors {
                let range = match descriptor {
                    Descriptor::Buffer { .. } if !is_buffer(slot.kind) => None,
                    Descriptor::Buffer {
                        buffer,
                        offset,
                        range,
                    } => Some((buffer, offset, range)),
                    Descriptor::Other => None,
                };
                let Some((buffer, offset, bytes)) = range else {
                    return Err(format!(
                        "kernel {} uses an image, a sampler or another descriptor that is no buffer (set {set}, binding {binding})",
                        kernel()
                    )
                    .into());
                };
                let access = match read_only {
                    true => Access::Read,
                    false => Access::ReadWrite,
                };
                let range = match buffer == vk::Buffer::null() {
                    true => None,
                    false => Some(self.range(buffer, offset, bytes, access)?),
                };
                bindings.push(model::Binding {
                    set,
                    binding,
                    element,
                    descriptor_type: slot.kind.as_raw() as u32,
                    range,
                    read_only,
                });
            }
        }
        let push_constants = bound.push_constants(pipeline.layout.push_constant_bytes());
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

    /// Fails unless an earlier command of the call sets the event, or the event is set already.
    fn check_event(&mut self, event: vk::Event) -> Result<(), Refusal> {
        if self.events.get(&event) == Some(&true) {
            return Ok(());
        }
        // SAFETY: the event is live: a command buffer that is being submitted waits for it.
        let is_set = unsafe { self.device.next.get_event_status(event) };
        match is_set {
            Ok(true) => Ok(()),
            _ => Err("vkCmdWaitEvents for an event that nothing has set yet".into()),
        }
    }

    /// Adds a barrier. Ranges that are in no memory of a window become dependencies of all memory.
    fn barrier(&mut self, barrier: &Barrier) {
        let mut memory = barrier.memory.clone();
        let mut buffers = Vec::new();
        for range in &barrier.buffers {
            match self.located(range.buffer, range.offset, range.bytes) {
                Ok(located) if !located.bytes.is_empty() => {
                    buffers.push((range.dependency, self.named(&located)));
                }
                // The barrier concerns no memory that a window can have, but what it orders is ordered.
                _ => memory.push(range.dependency),
            }
        }
        let flags = barrier.flags;
        self.add(Record::Barrier(model::Barrier {
            flags,
            memory,
            buffers,
        }));
    }

    /// Returns the range of memory in which a range of a buffer is, cut at the buffer's end.
    fn located(
        &self,
        buffer: vk::Buffer,
        offset: u64,
        bytes: u64,
    ) -> Result<AccessedRange, Refusal> {
        let buffer = self.device.objects.buffers.get(buffer.as_raw());
        let buffer = buffer.ok_or("a buffer that is not known")?;
        if buffer.flags.intersects(
            vk::BufferCreateFlags::SPARSE_BINDING | vk::BufferCreateFlags::SPARSE_RESIDENCY,
        ) {
            return Err("a sparse buffer".into());
        }
        if buffer.flags.contains(vk::BufferCreateFlags::PROTECTED) {
            return Err("a protected buffer".into());
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
            return Err("a buffer that cannot be made to be copied from".into());
        }
        let start = offset.min(buffer.bytes);
        let end = match bytes {
            vk::WHOLE_SIZE => buffer.bytes,
            bytes => start.saturating_add(bytes).min(buffer.bytes),
        };
        Ok(AccessedRange {
            bytes: at + start..at + end,
            memory,
            buffer,
            buffer_at: at,
            access: Access::Read,
        })
    }

    /// Returns the range as a capture names it.
    fn named(&mut self, touch: &AccessedRange) -> BufferRange {
        BufferRange {
            buffer: self
                .numbers
                .buffer(&touch.buffer, &touch.memory, touch.buffer_at),
            offset: touch.bytes.start - touch.buffer_at,
            bytes: touch.bytes.end - touch.bytes.start,
        }
    }

    /// Adds a range to those that the commands access, and returns it as a capture names it.
    fn touch(&mut self, mut touch: AccessedRange, access: Access) -> BufferRange {
        touch.access = access;
        let range = self.named(&touch);
        self.touches.push(touch);
        range
    }

    /// Adds a range of a buffer to those that the commands access, see [`Self::located`] and [`Self::touch`].
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

fn is_uniform(kind: vk::DescriptorType) -> bool {
    use vk::DescriptorType as T;
    matches!(kind, T::UNIFORM_BUFFER | T::UNIFORM_BUFFER_DYNAMIC)
}
