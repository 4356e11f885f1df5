//! Records some commands of the program's command buffers again, into command buffers of the layer, where a window
//! (the captured part of the run) holds only a part of them.

use std::ops::Range;
use std::sync::Arc;

use ash::vk::{self, Handle};
use gapscope_capture::model::Dependency;
use gapscope_vulkan_layer::descriptors::{Descriptor, SetLayout};
use gapscope_vulkan_layer::handles::lock;

use super::staging::{self, Failure};
use crate::api::device::Device;
use crate::objects::command::{Barrier, BufferBarrier, Command};
use crate::objects::kernels::{Pipeline, PipelineLayout};

const COMPUTE: vk::PipelineBindPoint = vk::PipelineBindPoint::COMPUTE;

/// Returns whether every command of a command buffer is known well enough to be recorded again.
pub fn is_repeatable(device: &Device, buffer: vk::CommandBuffer) -> bool {
    let state = device.objects.command_buffers.get(buffer.as_raw());
    state.is_some_and(|state| {
        let recorded = lock(&state);
        recorded
            .commands
            .iter()
            .all(|command| is_known(device, command))
    })
}

/// Returns whether one command can be recorded again: its objects still exist, and it has no effect that must happen
/// only once.
fn is_known(device: &Device, command: &Command) -> bool {
    let pipeline = |pipeline: &Arc<Pipeline>| {
        let known = device.objects.pipelines.get(pipeline.handle.as_raw());
        known.is_some_and(|known| Arc::ptr_eq(&known, pipeline))
    };
    // The program may have destroyed a layout that its command buffers do not need any more.
    let layout = |layout: &Arc<PipelineLayout>| {
        let known = device.objects.pipeline_layouts.get(layout.handle.as_raw());
        known.is_some_and(|known| Arc::ptr_eq(&known, layout))
    };
    match command {
        Command::Pipeline(known) => known.as_ref().is_some_and(pipeline),
        Command::Sets { layout: known, .. } => layout(known),
        Command::PushConstants { layout: known, .. } => known.as_ref().is_some_and(layout),
        Command::PushDescriptors {
            pipeline_layout,
            written,
            ..
        } => {
            let is_buffer = |(_, d): &(u32, Descriptor)| matches!(d, Descriptor::Buffer { .. });
            layout(pipeline_layout) && written.iter().all(is_buffer)
        }
        Command::Barrier(barrier) => !barrier.is_more,
        Command::Dispatch { .. }
        | Command::DispatchIndirect { .. }
        | Command::Copy { .. }
        | Command::Fill { .. }
        | Command::Update { .. }
        | Command::Label(_) => true,
        Command::SetEvent(_)
        | Command::ResetEvent(_)
        | Command::WaitEvents(..)
        | Command::QueryResults { .. }
        | Command::Secondary(_)
        | Command::Once
        | Command::Refused(_) => false,
    }
}

/// Records the commands with the indices `part` of a repeatable command buffer, after the bindings that earlier
/// commands made.
///
/// # Safety
/// `into` is ours and not in use; the program's command buffer is being submitted, so that what it names is live.
pub unsafe fn record(
    device: &Device,
    from: vk::CommandBuffer,
    part: Range<usize>,
    into: vk::CommandBuffer,
) -> Result<(), Failure> {
    let failed = staging::failed("commands cannot be recorded again");
    let state = device.objects.command_buffers.get(from.as_raw());
    let state = state.ok_or(Failure::UnknownCommandBuffer)?;
    let recorded = lock(&state);
    let begin =
        vk::CommandBufferBeginInfo::default().flags(vk::CommandBufferUsageFlags::ONE_TIME_SUBMIT);
    // SAFETY: as the caller promises.
    unsafe {
        device
            .next
            .begin_command_buffer(into, &begin)
            .map_err(&failed)?;
        for (index, command) in recorded.commands.iter().enumerate().take(part.end) {
            if index >= part.start || command.is_state() {
                repeat(device, into, command);
            }
        }
        device.next.end_command_buffer(into).map_err(&failed)
    }
}

/// Records one kept command into a command buffer of the layer.
///
/// # Safety
/// As for [`record`]; the command buffer is being recorded.
unsafe fn repeat(device: &Device, into: vk::CommandBuffer, command: &Command) {
    let next = &device.next;
    // SAFETY: as the caller promises; the arguments are the program's.
    unsafe {
        match command {
            Command::Pipeline(Some(pipeline)) => {
                next.cmd_bind_pipeline(into, COMPUTE, pipeline.handle);
            }
            Command::Sets {
                layout,
                first,
                sets,
                offsets,
            } => {
                let layout = layout.handle;
                next.cmd_bind_descriptor_sets(into, COMPUTE, layout, *first, sets, offsets);
            }
            Command::PushDescriptors {
                pipeline_layout,
                set,
                layout,
                written,
            } => {
                push(device, into, pipeline_layout.handle, *set, layout, written);
            }
            Command::PushConstants {
                layout: Some(layout),
                stages,
                offset,
                bytes,
            } => {
                next.cmd_push_constants(into, layout.handle, *stages, *offset, bytes);
            }
            Command::Dispatch {
                base: [0, 0, 0],
                groups: [x, y, z],
            } => {
                next.cmd_dispatch(into, *x, *y, *z);
            }
            Command::Dispatch { base, groups } => {
                let ([a, b, c], [x, y, z]) = (*base, *groups);
                next.cmd_dispatch_base(into, a, b, c, x, y, z);
            }
            Command::DispatchIndirect { buffer, offset } => {
                next.cmd_dispatch_indirect(into, *buffer, *offset);
            }
            Command::Copy { from, to, regions } => {
                let regions: Vec<_> = (regions.iter())
                    .map(|region| vk::BufferCopy {
                        src_offset: region.from,
                        dst_offset: region.to,
                        size: region.bytes,
                    })
                    .collect();
                next.cmd_copy_buffer(into, *from, *to, &regions);
            }
            Command::Fill {
                buffer,
                offset,
                bytes,
                value,
            } => {
                next.cmd_fill_buffer(into, *buffer, *offset, *bytes, *value);
            }
            Command::Update {
                buffer,
                offset,
                data,
            } => {
                next.cmd_update_buffer(into, *buffer, *offset, data);
            }
            Command::Barrier(barrier) if barrier.has_own_stages => barrier2(device, into, barrier),
            Command::Barrier(barrier) => barrier1(device, into, barrier),
            _ => {}
        }
    }
}

/// Pushes descriptors again; `written` are pairs of a place among all descriptors of the set and a descriptor.
///
/// # Safety
/// As for [`repeat`].
unsafe fn push(
    device: &Device,
    into: vk::CommandBuffer,
    pipeline_layout: vk::PipelineLayout,
    set: u32,
    layout: &SetLayout,
    written: &[(u32, Descriptor)],
) {
    let mut infos = Vec::new();
    let mut places = Vec::new();
    for (place, descriptor) in written {
        let slots = layout
            .with_firsts()
            .filter(|(slot, first)| *place >= *first && *place - *first < slot.count);
        for (slot, first) in slots {
            if let Descriptor::Buffer {
                buffer,
                offset,
                range,
            } = *descriptor
            {
                infos.push([vk::DescriptorBufferInfo {
                    buffer,
                    offset,
                    range,
                }]);
                places.push((slot.number, place - first, slot.kind));
            }
        }
    }
    let writes: Vec<_> = (infos.iter().zip(places))
        .map(|(info, (binding, element, kind))| {
            vk::WriteDescriptorSet::default()
                .dst_binding(binding)
                .dst_array_element(element)
                .descriptor_type(kind)
                .buffer_info(info)
        })
        .collect();
    let Some(call) = device.functions.cmd_push_descriptor_set else {
        return;
    };
    // SAFETY: as the caller promises; the program has pushed descriptors, so the device can.
    unsafe {
        call(
            into,
            COMPUTE,
            pipeline_layout,
            set,
            writes.len() as u32,
            writes.as_ptr(),
        );
    }
}

/// Records a barrier by the function of Vulkan 1.0.
///
/// # Safety
/// As for [`repeat`]; all its dependencies have the same stages.
unsafe fn barrier1(device: &Device, into: vk::CommandBuffer, barrier: &Barrier) {
    let stages = |stages: u64| vk::PipelineStageFlags::from_raw(stages as u32);
    let access = |access: u64| vk::AccessFlags::from_raw(access as u32);
    let first = barrier
        .memory
        .first()
        .or(barrier.buffers.first().map(|b| &b.dependency));
    let Some(first) = first else { return };
    let memory: Vec<_> = (barrier.memory.iter())
        .map(|m| {
            vk::MemoryBarrier::default()
                .src_access_mask(access(m.after_access))
                .dst_access_mask(access(m.before_access))
        })
        .collect();
    let buffers: Vec<_> = (barrier.buffers.iter())
        .map(|b| {
            vk::BufferMemoryBarrier::default()
                .src_access_mask(access(b.dependency.after_access))
                .dst_access_mask(access(b.dependency.before_access))
                .src_queue_family_index(vk::QUEUE_FAMILY_IGNORED)
                .dst_queue_family_index(vk::QUEUE_FAMILY_IGNORED)
                .buffer(b.buffer)
                .offset(b.offset)
                .size(b.bytes)
        })
        .collect();
    // SAFETY: as the caller promises.
    unsafe {
        device.next.cmd_pipeline_barrier(
            into,
            stages(first.after_stages),
            stages(first.before_stages),
            vk::DependencyFlags::from_raw(barrier.flags),
            &memory,
            &buffers,
            &[],
        );
    }
}

/// Records a barrier by the function of synchronization2.
///
/// # Safety
/// As for [`repeat`]; the program has used synchronization2.
unsafe fn barrier2(device: &Device, into: vk::CommandBuffer, barrier: &Barrier) {
    let stages = vk::PipelineStageFlags2::from_raw;
    let access = vk::AccessFlags2::from_raw;
    let memory = |m: &Dependency| {
        vk::MemoryBarrier2::default()
            .src_stage_mask(stages(m.after_stages))
            .src_access_mask(access(m.after_access))
            .dst_stage_mask(stages(m.before_stages))
            .dst_access_mask(access(m.before_access))
    };
    let buffer = |b: &BufferBarrier| {
        vk::BufferMemoryBarrier2::default()
            .src_stage_mask(stages(b.dependency.after_stages))
            .src_access_mask(access(b.dependency.after_access))
            .dst_stage_mask(stages(b.dependency.before_stages))
            .dst_access_mask(access(b.dependency.before_access))
            .src_queue_family_index(vk::QUEUE_FAMILY_IGNORED)
            .dst_queue_family_index(vk::QUEUE_FAMILY_IGNORED)
            .buffer(b.buffer)
            .offset(b.offset)
            .size(b.bytes)
    };
    let memory: Vec<_> = barrier.memory.iter().map(memory).collect();
    let buffers: Vec<_> = barrier.buffers.iter().map(buffer).collect();
    let info = vk::DependencyInfo::default()
        .dependency_flags(vk::DependencyFlags::from_raw(barrier.flags))
        .memory_barriers(&memory)
        .buffer_memory_barriers(&buffers);
    // SAFETY: as the caller promises.
    unsafe { device.next.cmd_pipeline_barrier2(into, &info) };
}
