//! Barriers and events, in the words of synchronization2.

use ash::vk;
use gapscope_capture::model::Dependency;
use gapscope_vulkan_layer::arguments::slice;

use crate::command::{Barrier, BufferBarrier, Command};
use crate::hooks::commands::push;

/// The arrays of a barrier of the first version.
struct Arrays {
    after: vk::PipelineStageFlags,
    before: vk::PipelineStageFlags,
    flags: vk::DependencyFlags,
    memory: (*const vk::MemoryBarrier<'static>, u32),
    buffers: (*const vk::BufferMemoryBarrier<'static>, u32),
    image_count: u32,
}

impl Arrays {
    /// # Safety
    /// The arrays are valid.
    unsafe fn barrier(&self) -> Barrier {
        let dependency = |after: vk::AccessFlags, before: vk::AccessFlags| Dependency {
            after_stages: self.after.as_raw().into(),
            after_access: after.as_raw().into(),
            before_stages: self.before.as_raw().into(),
            before_access: before.as_raw().into(),
        };
        // SAFETY: as the caller promises.
        let (memory, buffers) = unsafe {
            (
                slice(self.memory.0, self.memory.1),
                slice(self.buffers.0, self.buffers.1),
            )
        };
        let is_transferred =
            (buffers.iter()).any(|b| b.src_queue_family_index != b.dst_queue_family_index);
        let mut memory: Vec<_> = (memory.iter())
            .map(|m| dependency(m.src_access_mask, m.dst_access_mask))
            .collect();
        let buffers: Vec<_> = (buffers.iter())
            .map(|b| BufferBarrier {
                dependency: dependency(b.src_access_mask, b.dst_access_mask),
                buffer: b.buffer,
                offset: b.offset,
                bytes: b.size,
            })
            .collect();
        if memory.is_empty() {
            // The stages depend on each other whatever else is there.
            memory.push(dependency(
                vk::AccessFlags::empty(),
                vk::AccessFlags::empty(),
            ));
        }
        Barrier {
            has_own_stages: false,
            is_more: self.image_count > 0 || is_transferred,
            flags: self.flags.as_raw(),
            memory,
            buffers,
        }
    }
}

/// # Safety
/// `info` is valid.
unsafe fn barrier2(info: &vk::DependencyInfo<'_>) -> Barrier {
    // SAFETY: as the caller promises.
    let (memory, buffers, images) = unsafe {
        (
            slice(info.p_memory_barriers, info.memory_barrier_count),
            slice(
                info.p_buffer_memory_barriers,
                info.buffer_memory_barrier_count,
            ),
            slice(
                info.p_image_memory_barriers,
                info.image_memory_barrier_count,
            ),
        )
    };
    let is_transferred =
        (buffers.iter()).any(|b| b.src_queue_family_index != b.dst_queue_family_index);
    let memory = memory.iter().map(|m| Dependency {
        after_stages: m.src_stage_mask.as_raw(),
        after_access: m.src_access_mask.as_raw(),
        before_stages: m.dst_stage_mask.as_raw(),
        before_access: m.dst_access_mask.as_raw(),
    });
    // What is left of a barrier for an image: its stages.
    let images = images.iter().map(|i| Dependency {
        after_stages: i.src_stage_mask.as_raw(),
        after_access: 0,
        before_stages: i.dst_stage_mask.as_raw(),
        before_access: 0,
    });
    let buffers = buffers.iter().map(|b| BufferBarrier {
        dependency: Dependency {
            after_stages: b.src_stage_mask.as_raw(),
            after_access: b.src_access_mask.as_raw(),
            before_stages: b.dst_stage_mask.as_raw(),
            before_access: b.dst_access_mask.as_raw(),
        },
        buffer: b.buffer,
        offset: b.offset,
        bytes: b.size,
    });
    Barrier {
        has_own_stages: true,
        is_more: info.image_memory_barrier_count > 0 || is_transferred,
        flags: info.dependency_flags.as_raw(),
        memory: memory.chain(images).collect(),
        buffers: buffers.collect(),
    }
}

pub unsafe extern "system" fn pipeline_barrier(
    buffer: vk::CommandBuffer,
    after: vk::PipelineStageFlags,
    before: vk::PipelineStageFlags,
    flags: vk::DependencyFlags,
    memory_count: u32,
    memory: *const vk::MemoryBarrier<'static>,
    buffer_count: u32,
    buffers: *const vk::BufferMemoryBarrier<'static>,
    image_count: u32,
    images: *const vk::ImageMemoryBarrier<'static>,
) {
    // SAFETY: the program's own call on a command buffer.
    unsafe {
        let arrays = Arrays {
            after,
            before,
            flags,
            memory: (memory, memory_count),
            buffers: (buffers, buffer_count),
            image_count,
        };
        let Some(device) = push(buffer, || Command::Barrier(arrays.barrier())) else {
            return;
        };
        (device.next.fp_v1_0().cmd_pipeline_barrier)(
            buffer,
            after,
            before,
            flags,
            memory_count,
            memory,
            buffer_count,
            buffers,
            image_count,
            images,
        );
    }
}

pub unsafe extern "system" fn pipeline_barrier2(
    buffer: vk::CommandBuffer,
    info: *const vk::DependencyInfo<'_>,
) {
    // SAFETY: the program's own call on a command buffer.
    unsafe {
        let Some(device) = push(buffer, || Command::Barrier(barrier2(&*info))) else {
            return;
        };
        (device.next.fp_v1_3().cmd_pipeline_barrier2)(buffer, info);
    }
}

pub unsafe extern "system" fn set_event(
    buffer: vk::CommandBuffer,
    event: vk::Event,
    stages: vk::PipelineStageFlags,
) {
    // SAFETY: the program's own call on a command buffer.
    unsafe {
        let Some(device) = push(buffer, || Command::SetEvent(event)) else {
            return;
        };
        (device.next.fp_v1_0().cmd_set_event)(buffer, event, stages);
    }
}

pub unsafe extern "system" fn set_event2(
    buffer: vk::CommandBuffer,
    event: vk::Event,
    info: *const vk::DependencyInfo<'_>,
) {
    // SAFETY: the program's own call on a command buffer.
    unsafe {
        let Some(device) = push(buffer, || Command::SetEvent(event)) else {
            return;
        };
        (device.next.fp_v1_3().cmd_set_event2)(buffer, event, info);
    }
}

pub unsafe extern "system" fn reset_event(
    buffer: vk::CommandBuffer,
    event: vk::Event,
    stages: vk::PipelineStageFlags,
) {
    // SAFETY: the program's own call on a command buffer.
    unsafe {
        let Some(device) = push(buffer, || Command::ResetEvent(event)) else {
            return;
        };
        (device.next.fp_v1_0().cmd_reset_event)(buffer, event, stages);
    }
}

pub unsafe extern "system" fn reset_event2(
    buffer: vk::CommandBuffer,
    event: vk::Event,
    stages: vk::PipelineStageFlags2,
) {
    // SAFETY: the program's own call on a command buffer.
    unsafe {
        let Some(device) = push(buffer, || Command::ResetEvent(event)) else {
            return;
        };
        (device.next.fp_v1_3().cmd_reset_event2)(buffer, event, stages);
    }
}

pub unsafe extern "system" fn wait_events(
    buffer: vk::CommandBuffer,
    count: u32,
    events: *const vk::Event,
    after: vk::PipelineStageFlags,
    before: vk::PipelineStageFlags,
    memory_count: u32,
    memory: *const vk::MemoryBarrier<'static>,
    buffer_count: u32,
    buffers: *const vk::BufferMemoryBarrier<'static>,
    image_count: u32,
    images: *const vk::ImageMemoryBarrier<'static>,
) {
    // SAFETY: the program's own call on a command buffer.
    unsafe {
        let arrays = Arrays {
            // The host may have set it, and the host is no stage of a barrier in a queue.
            after: match after & !vk::PipelineStageFlags::HOST {
                none if none.is_empty() => vk::PipelineStageFlags::TOP_OF_PIPE,
                stages => stages,
            },
            before,
            flags: vk::DependencyFlags::empty(),
            memory: (memory, memory_count),
            buffers: (buffers, buffer_count),
            image_count,
        };
        let command = || Command::WaitEvents(slice(events, count).to_vec(), arrays.barrier());
        let Some(device) = push(buffer, command) else {
            return;
        };
        (device.next.fp_v1_0().cmd_wait_events)(
            buffer,
            count,
            events,
            after,
            before,
            memory_count,
            memory,
            buffer_count,
            buffers,
            image_count,
            images,
        );
    }
}

pub unsafe extern "system" fn wait_events2(
    buffer: vk::CommandBuffer,
    count: u32,
    events: *const vk::Event,
    infos: *const vk::DependencyInfo<'_>,
) {
    // SAFETY: the program's own call on a command buffer.
    unsafe {
        let command = || {
            let mut all = Barrier::default();
            for info in slice(infos, count) {
                let one = barrier2(info);
                all.memory.extend(one.memory);
                all.buffers.extend(one.buffers);
            }
            Command::WaitEvents(slice(events, count).to_vec(), all)
        };
        let Some(device) = push(buffer, command) else {
            return;
        };
        (device.next.fp_v1_3().cmd_wait_events2)(buffer, count, events, infos);
    }
}
