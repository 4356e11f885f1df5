//! Keeps the command buffers of the program, and those of their commands that both layers (this one, and the one that
//! records) follow: calls of the program go in, [`Command`]s that own their data come out, in the state of the command
//! buffer. The commands of the shared code are `given`; those of this layer are kept.

use ash::vk::{self, Handle};
use gapscope_capture::model::{self, CopyRegion};
use gapscope_vulkan_layer::command::{self as given, Label};
use gapscope_vulkan_layer::command_pools::{CommandPool, CommandPools};
use gapscope_vulkan_layer::functions::DeviceFunctions;
use gapscope_vulkan_layer::handles::lock;
use gapscope_vulkan_layer::layer::{self, CommandHooks};

use crate::api::device::Device;
use crate::hooks::command::add;
use crate::hooks::{barriers, bindings};
use crate::objects::command::Command;
use crate::window;

impl CommandHooks for Device {
    fn command_pools(&self) -> &CommandPools {
        &self.command_pools
    }

    fn add_command_buffer(
        &'static self,
        handle: vk::CommandBuffer,
        _: &CommandPool,
        _: vk::CommandBufferLevel,
    ) {
        let command_buffers = &self.objects.command_buffers;
        command_buffers.insert(handle.as_raw(), Default::default());
    }

    unsafe fn remove_command_buffer(&self, handle: vk::CommandBuffer) {
        self.objects.command_buffers.remove(handle.as_raw());
    }

    unsafe fn begin(&self, handle: vk::CommandBuffer, _: &vk::CommandBufferBeginInfo<'_>) {
        self.empty(handle);
    }

    unsafe fn reset(&self, handle: vk::CommandBuffer) {
        self.empty(handle);
    }

    unsafe fn record<F>(
        handle: vk::CommandBuffer,
        function: impl Fn(&'static DeviceFunctions) -> Option<F>,
        command: given::Command<'_>,
        call: impl FnOnce(F),
    ) {
        // SAFETY: as the caller promises.
        unsafe {
            let Some((device, next)) = layer::find::<Device, _>(handle, function) else {
                return;
            };
            // A command buffer that is recorded before a window may be submitted in it.
            window::unless_over(|| {
                if let Some(command) = kept(device, command) {
                    add(device, handle, command);
                }
            });
            call(next);
        }
    }

    unsafe fn record_label(&'static self, handle: vk::CommandBuffer, label: Label<'_>) {
        window::unless_over(|| {
            let label = match label {
                Label::Begin(text) => model::Label::Begin(text.into_owned()),
                Label::End => model::Label::End,
                Label::Instant(text) => model::Label::Instant(text.into_owned()),
            };
            add(self, handle, Command::Label(label));
        });
    }
}

impl Device {
    /// Forgets the commands of a command buffer.
    fn empty(&self, handle: vk::CommandBuffer) {
        if let Some(state) = self.objects.command_buffers.get(handle.as_raw()) {
            lock(&state).commands.clear();
        }
    }
}

/// Returns a command as it is kept, or `None` if it does not matter to compute.
///
/// # Safety
/// The pointers in the command are valid: it is handed on during the program's call.
unsafe fn kept(device: &Device, command: given::Command<'_>) -> Option<Command> {
    use given::Command as Given;
    Some(match command {
        Given::BindPipeline(pipeline) => {
            Command::Pipeline(device.objects.pipelines.get(pipeline.as_raw()))
        }
        Given::BindDescriptorSets {
            layout,
            first,
            sets,
            dynamic_offsets,
        } => bindings::bind_sets(device, layout, first, sets, dynamic_offsets),
        Given::PushDescriptors {
            layout,
            set,
            descriptors,
        } => {
            // SAFETY: as the caller promises.
            unsafe { bindings::push_descriptors(device, layout, set, descriptors)? }
        }
        Given::BindOther => return None,
        Given::Dispatch { base, groups } => Command::Dispatch {
            base: base.unwrap_or_default(),
            groups,
        },
        Given::DispatchIndirect { buffer, offset } => Command::DispatchIndirect { buffer, offset },
        Given::CopyBuffer { from, to, regions } => {
            let region = |region: vk::BufferCopy| CopyRegion {
                from: region.src_offset,
                to: region.dst_offset,
                bytes: region.size,
            };
            let regions = regions.iter().map(region).collect();
            Command::Copy { from, to, regions }
        }
        Given::FillBuffer {
            buffer,
            offset,
            bytes,
            value,
        } => Command::Fill {
            buffer,
            offset,
            bytes,
            value,
        },
        Given::UpdateBuffer {
            buffer,
            offset,
            data,
        } => Command::Update {
            buffer,
            offset,
            data: data.to_vec(),
        },
        // SAFETY: as the caller promises.
        Given::PipelineBarrier(barrier) => unsafe { Command::Barrier(barriers::barrier(barrier)) },
        Given::WaitEvents(events, barrier) => {
            // SAFETY: as the caller promises.
            Command::WaitEvents(events.to_vec(), unsafe { barriers::wait(barrier) })
        }
        Given::ExecuteCommands(secondaries) => Command::Secondary(secondaries.to_vec()),
    })
}
