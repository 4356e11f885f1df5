//! Records the commands that both Vulkan layers (this one and the one that captures) follow: dispatches, copies,
//! barriers, bindings and secondary command buffers. This is the hot path: a command takes no lock, no system call
//! and no allocation.

use crate::api::functions::DeviceFunctions;
use crate::command_buffer::CommandBuffer;
use crate::command_buffers;
use crate::device::Device;
use crate::hooks::labels;
use crate::objects::descriptors::Bindings;
use ash::vk;
use gapscope_spool::event::{Command as Written, NO_QUERY, Op};
use gapscope_spool::hook::guard;
use gapscope_spool::ids;
use gapscope_vulkan_layer::barriers::Barriers;
use gapscope_vulkan_layer::command::{Command, Label, PushedDescriptors};
use gapscope_vulkan_layer::command_pools::{CommandPool, CommandPools};
use gapscope_vulkan_layer::device_hooks;
use gapscope_vulkan_layer::layer::{self, CommandHooks};

impl CommandHooks for Device {
    fn command_pools(&self) -> &CommandPools {
        &self.command_pools
    }

    fn add_command_buffer(
        &'static self,
        handle: vk::CommandBuffer,
        pool: &CommandPool,
        level: vk::CommandBufferLevel,
    ) {
        let is_secondary = level == vk::CommandBufferLevel::SECONDARY;
        let state = CommandBuffer::new(self, handle, pool, is_secondary);
        command_buffers::add(handle, state);
    }

    unsafe fn remove_command_buffer(&self, handle: vk::CommandBuffer) {
        // SAFETY: as the caller promises.
        unsafe { command_buffers::remove(handle) };
    }

    unsafe fn begin(&self, handle: vk::CommandBuffer, info: &vk::CommandBufferBeginInfo<'_>) {
        // SAFETY: as the caller promises.
        if let Some(state) = unsafe { command_buffers::state(handle) } {
            state.start_recording(info);
        }
    }

    unsafe fn reset(&self, handle: vk::CommandBuffer) {
        // SAFETY: as the caller promises.
        if let Some(state) = unsafe { command_buffers::state(handle) } {
            state.forget_recording();
        }
    }

    /// Records a command. The state comes from a cache of the thread, so that the device is not looked up.
    #[inline]
    unsafe fn record<F>(
        handle: vk::CommandBuffer,
        function: impl Fn(&'static DeviceFunctions) -> Option<F>,
        command: Command<'_>,
        call: impl FnOnce(F),
    ) {
        // SAFETY: as the caller promises.
        unsafe {
            let Some(state) = command_buffers::state(handle) else {
                if let Some((_, next)) = layer::find::<Device, _>(handle, function) {
                    call(next);
                }
                return;
            };
            let Some(next) = function(state.functions) else {
                return;
            };
            if !state.is_recorded() {
                return call(next);
            }
            let started = guard(|| state.before(command));
            call(next);
            if let Some(query) = started {
                guard(|| state.after(command, query));
            }
        }
    }

    unsafe fn record_label(&'static self, handle: vk::CommandBuffer, label: Label<'_>) {
        // SAFETY: as the caller promises.
        unsafe { labels::label_command_buffer(handle, &label) };
    }
}

impl CommandBuffer {
    /// Prepares for a command and returns its first query; [`NO_QUERY`] for a command without a time of its own.
    ///
    /// # Safety
    /// The command is the program's, during its call.
    #[inline]
    unsafe fn before(&mut self, command: Command<'_>) -> u32 {
        match command {
            Command::Dispatch { .. }
            | Command::DispatchIndirect { .. }
            | Command::CopyBuffer { .. }
            | Command::FillBuffer { .. }
            | Command::UpdateBuffer { .. } => self.start_timing(),
            Command::PipelineBarrier(_) | Command::WaitEvents(..) => {
                self.before_action();
                NO_QUERY
            }
            Command::ExecuteCommands(secondaries) => {
                // SAFETY: as the caller promises; a secondary command buffer is only read while it is executed.
                let states = secondaries
                    .iter()
                    .filter_map(|cb| unsafe { command_buffers::state(*cb) }.map(|state| &*state));
                self.start_secondaries(states)
            }
            Command::BindPipeline(_)
            | Command::BindDescriptorSets { .. }
            | Command::PushDescriptors { .. }
            | Command::BindOther => NO_QUERY,
        }
    }

    /// Records a command after the next layer's function has run; `query` is what [`Self::before`] returned.
    ///
    /// # Safety
    /// The command is the program's, during its call.
    #[inline]
    unsafe fn after(&mut self, command: Command<'_>, query: u32) {
        match command {
            Command::BindPipeline(pipeline) => {
                self.kernel = self.device.kernels.kernel_of(pipeline).unwrap_or_default();
            }
            Command::BindDescriptorSets {
                first,
                sets,
                dynamic_offsets,
                ..
            } => self.bind_sets(first, sets, dynamic_offsets),
            Command::PushDescriptors {
                set, descriptors, ..
            } => {
                // SAFETY: as the caller promises.
                unsafe { self.push_descriptors(set, descriptors) };
            }
            Command::BindOther => {}
            Command::Dispatch { base, groups } => {
                self.end_timing(query);
                let op = base.map_or(Op::Dispatch, |_| Op::DispatchBase);
                let [x, y, z] = groups;
                self.push(Written::new(op, query, [x, y, z, self.kernel.0]));
            }
            Command::DispatchIndirect { buffer, offset } => {
                self.end_timing(query);
                let id = self.device.memory.buffer_id(buffer);
                let operands = [id.0, offset as u32, (offset >> 32) as u32, self.kernel.0];
                self.push(Written::new(Op::DispatchIndirect, query, operands));
            }
            Command::CopyBuffer { from, to, regions } => {
                let bytes = regions.iter().map(|region| region.size).sum();
                let memory = &self.device.memory;
                let (from, to) = (memory.buffer_id(from), memory.buffer_id(to));
                self.push_transfer(Op::CopyBuffer, query, Some(bytes), from, to);
            }
            Command::FillBuffer {
                buffer,
                offset,
                bytes,
                ..
            } => {
                let memory = &self.device.memory;
                let bytes = match bytes {
                    // The fill goes to the end of the buffer, rounded down to whole words.
                    vk::WHOLE_SIZE => memory
                        .buffer_bytes(buffer)
                        .map(|all| all.saturating_sub(offset) & !3),
                    bytes => Some(bytes),
                };
                let to = memory.buffer_id(buffer);
                self.push_transfer(Op::FillBuffer, query, bytes, ids::Buffer::NONE, to);
            }
            Command::UpdateBuffer { buffer, data, .. } => {
                let to = self.device.memory.buffer_id(buffer);
                let bytes = Some(data.len() as u64);
                self.push_transfer(Op::UpdateBuffer, query, bytes, ids::Buffer::NONE, to);
            }
            // Waiting for events orders commands as a barrier does.
            Command::PipelineBarrier(barriers) | Command::WaitEvents(_, barriers) => {
                // SAFETY: as the caller promises.
                unsafe { self.push_barrier(barriers) };
            }
            Command::ExecuteCommands(secondaries) => {
                self.end_timing(query);
                let mut query = query;
                for cb in secondaries {
                    // SAFETY: as the caller promises; a secondary command buffer is only read while it is executed.
                    if let Some(secondary) = unsafe { command_buffers::state(*cb) } {
                        self.execute(secondary, query);
                    }
                    // All secondary command buffers are timed together, with the first.
                    query = NO_QUERY;
                }
            }
        }
    }

    /// Records a barrier with the stages of all its parts.
    ///
    /// # Safety
    /// The program's own structures, during its call.
    unsafe fn push_barrier(&mut self, barriers: Barriers<'_>) {
        // SAFETY: as the caller promises.
        let (after, before) = unsafe { barriers.stages() };
        let operands = [
            after as u32,
            (after >> 32) as u32,
            before as u32,
            (before >> 32) as u32,
        ];
        self.push(Written::new(Op::Barrier, NO_QUERY, operands));
    }

    /// Records that `sets` are bound from the index `first` on, each with its share of the dynamic `offsets`.
    fn bind_sets(&mut self, first: u32, sets: &[vk::DescriptorSet], mut offsets: &[u32]) {
        let (descriptors, recorder) = (&self.device.descriptors, self.device.recorder);
        for (index, set) in (first..).zip(sets) {
            let content = descriptors
                .with(*set, |set| set.contents.content(recorder))
                .unwrap_or_default();
            self.bind_set(index, content.id);
            let (own, rest) = offsets.split_at((content.dynamic as usize).min(offsets.len()));
            for (which, offset) in (0..).zip(own) {
                let operands = [index, which, *offset, 0];
                self.push(Written::new(Op::DynamicOffset, NO_QUERY, operands));
            }
            offsets = rest;
        }
    }

    /// Records descriptors that a command pushes for the set at `index`; nothing where their template is unknown or not for compute.
    ///
    /// # Safety
    /// The program's own structures, during its call.
    unsafe fn push_descriptors(&mut self, index: u32, descriptors: PushedDescriptors<'_>) {
        let device = self.device;
        let push = |pushed: &mut Bindings| {
            // SAFETY: as the caller promises.
            unsafe { pushed.push(&device.memory, &device.descriptors, descriptors) };
            pushed.content(device.recorder)
        };
        if let PushedDescriptors::Template(template, _) = descriptors {
            let template = device.descriptors.template(template);
            if template.is_none_or(|template| template.pushes_for_others) {
                return;
            }
        }
        let content = push(self.pushed_set(index));
        self.bind_set(index, content.id);
    }
}

device_hooks! {
    [Device]

    fn end_command_buffer(handle: vk::CommandBuffer) -> vk::Result = before |_| {
        if let Some(state) = command_buffers::state(handle) {
            state.finish_recording();
        }
    };
}
