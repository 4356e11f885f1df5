//! Hooks the commands that programs record into command buffers; each is decoded as a [`Command`] and handed to the
//! layer. The hooks are the hot path: until [`CommandHooks::record`] has the command, no hook takes a lock, allocates or
//! makes a system call.

use std::ffi::c_void;

use ash::vk;

use crate::arguments::slice;
use crate::barriers::{Barriers, BarriersV1};
use crate::command::{Command, CopyRegions, PushedDescriptors};
use crate::layer::CommandHooks;

const COMPUTE: vk::PipelineBindPoint = vk::PipelineBindPoint::COMPUTE;

/// Defines hooks that hand the command after `=`, decoded from the arguments, to [`CommandHooks::record`], which also
/// passes the call on.
macro_rules! commands {
    ($(fn $hook:ident($($argument:ident: $type:ty),* $(,)?) = $command:expr;)+) => {
        $(pub(crate) unsafe extern "system" fn $hook<L: CommandHooks>(
            command_buffer: vk::CommandBuffer $(, $argument: $type)*
        ) {
            // SAFETY: the program's own call, which gives this thread the command buffer; the arrays are valid until it returns.
            unsafe {
                L::record(
                    command_buffer,
                    |functions| functions.$hook,
                    $command,
                    |call| call(command_buffer $(, $argument)*),
                );
            }
        })+
    };
}

commands! {
    fn cmd_bind_pipeline(point: vk::PipelineBindPoint, pipeline: vk::Pipeline) =
        if point == COMPUTE { Command::BindPipeline(pipeline) } else { Command::BindOther };

    fn cmd_bind_descriptor_sets(
        point: vk::PipelineBindPoint,
        layout: vk::PipelineLayout,
        first: u32,
        count: u32,
        sets: *const vk::DescriptorSet,
        offset_count: u32,
        offsets: *const u32,
    ) = if point == COMPUTE {
        Command::BindDescriptorSets {
            layout,
            first,
            sets: slice(sets, count),
            dynamic_offsets: slice(offsets, offset_count),
        }
    } else {
        Command::BindOther
    };

    fn cmd_bind_descriptor_sets2(info: *const vk::BindDescriptorSetsInfoKHR<'_>) =
        if (*info).stage_flags.contains(vk::ShaderStageFlags::COMPUTE) {
            Command::BindDescriptorSets {
                layout: (*info).layout,
                first: (*info).first_set,
                sets: slice((*info).p_descriptor_sets, (*info).descriptor_set_count),
                dynamic_offsets: slice((*info).p_dynamic_offsets, (*info).dynamic_offset_count),
            }
        } else {
            Command::BindOther
        };

    fn cmd_push_descriptor_set(
        point: vk::PipelineBindPoint,
        layout: vk::PipelineLayout,
        set: u32,
        count: u32,
        writes: *const vk::WriteDescriptorSet<'_>,
    ) = if point == COMPUTE {
        let descriptors = PushedDescriptors::Writes(slice(writes, count));
        Command::PushDescriptors { layout, set, descriptors }
    } else {
        Command::BindOther
    };

    fn cmd_push_descriptor_set2(info: *const vk::PushDescriptorSetInfoKHR<'_>) =
        if (*info).stage_flags.contains(vk::ShaderStageFlags::COMPUTE) {
            let writes = slice((*info).p_descriptor_writes, (*info).descriptor_write_count);
            Command::PushDescriptors {
                layout: (*info).layout,
                set: (*info).set,
                descriptors: PushedDescriptors::Writes(writes),
            }
        } else {
            Command::BindOther
        };

    fn cmd_push_descriptor_set_with_template(
        template: vk::DescriptorUpdateTemplate,
        layout: vk::PipelineLayout,
        set: u32,
        data: *const c_void,
    ) = Command::PushDescriptors {
        layout,
        set,
        descriptors: PushedDescriptors::Template(template, data),
    };

    fn cmd_push_descriptor_set_with_template2(info: *const vk::PushDescriptorSetWithTemplateInfoKHR<'_>) =
        Command::PushDescriptors {
            layout: (*info).layout,
            set: (*info).set,
            descriptors: PushedDescriptors::Template((*info).descriptor_update_template, (*info).p_data),
        };

    fn cmd_dispatch(x: u32, y: u32, z: u32) = Command::Dispatch {
        base: None,
        groups: [x, y, z],
    };

    fn cmd_dispatch_base(base_x: u32, base_y: u32, base_z: u32, x: u32, y: u32, z: u32) = Command::Dispatch {
        base: Some([base_x, base_y, base_z]),
        groups: [x, y, z],
    };

    fn cmd_dispatch_indirect(buffer: vk::Buffer, offset: u64) = Command::DispatchIndirect { buffer, offset };

    fn cmd_copy_buffer(from: vk::Buffer, to: vk::Buffer, count: u32, regions: *const vk::BufferCopy) =
        Command::CopyBuffer {
            from,
            to,
            regions: CopyRegions::V1(slice(regions, count)),
        };

    fn cmd_copy_buffer2(info: *const vk::CopyBufferInfo2<'_>) = Command::CopyBuffer {
        from: (*info).src_buffer,
        to: (*info).dst_buffer,
        regions: CopyRegions::V2(slice((*info).p_regions, (*info).region_count)),
    };

    fn cmd_fill_buffer(buffer: vk::Buffer, offset: u64, bytes: u64, value: u32) = Command::FillBuffer {
        buffer,
        offset,
        bytes,
        value,
    };

    fn cmd_update_buffer(buffer: vk::Buffer, offset: u64, bytes: u64, data: *const c_void) = Command::UpdateBuffer {
        buffer,
        offset,
        data: slice(data.cast::<u8>(), bytes as u32),
    };

    fn cmd_pipeline_barrier(
        source_stages: vk::PipelineStageFlags,
        destination_stages: vk::PipelineStageFlags,
        flags: vk::DependencyFlags,
        memory_count: u32,
        memory: *const vk::MemoryBarrier<'_>,
        buffer_count: u32,
        buffers: *const vk::BufferMemoryBarrier<'_>,
        image_count: u32,
        images: *const vk::ImageMemoryBarrier<'_>,
    ) = Command::PipelineBarrier(Barriers::V1(BarriersV1 {
        source_stages,
        destination_stages,
        flags,
        memory: slice(memory, memory_count),
        buffers: slice(buffers, buffer_count),
        images: slice(images, image_count),
    }));

    fn cmd_pipeline_barrier2(info: *const vk::DependencyInfo<'_>) =
        Command::PipelineBarrier(Barriers::V2(slice(info, 1)));

    fn cmd_wait_events(
        count: u32,
        events: *const vk::Event,
        source_stages: vk::PipelineStageFlags,
        destination_stages: vk::PipelineStageFlags,
        memory_count: u32,
        memory: *const vk::MemoryBarrier<'_>,
        buffer_count: u32,
        buffers: *const vk::BufferMemoryBarrier<'_>,
        image_count: u32,
        images: *const vk::ImageMemoryBarrier<'_>,
    ) = {
        let barriers = BarriersV1 {
            source_stages,
            destination_stages,
            flags: vk::DependencyFlags::empty(),
            memory: slice(memory, memory_count),
            buffers: slice(buffers, buffer_count),
            images: slice(images, image_count),
        };
        Command::WaitEvents(slice(events, count), Barriers::V1(barriers))
    };

    fn cmd_wait_events2(count: u32, events: *const vk::Event, infos: *const vk::DependencyInfo<'_>) =
        Command::WaitEvents(slice(events, count), Barriers::V2(slice(infos, count)));

    fn cmd_execute_commands(count: u32, secondaries: *const vk::CommandBuffer) =
        Command::ExecuteCommands(slice(secondaries, count));
}
