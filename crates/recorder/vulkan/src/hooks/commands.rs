//! Dispatches, barriers and what surrounds them. This is the hot path: no lock, no system call and no allocation for a
//! command.

use crate::api::arguments::slice;
use crate::command_buffer::CommandBuffer;
use crate::command_buffers;
use crate::hooks::command::command;
use ash::vk;
use gapscope_spool::event::{Command, NO_QUERY, Op};

pub unsafe extern "system" fn dispatch(cb: vk::CommandBuffer, x: u32, y: u32, z: u32) {
    command!(
        cb,
        cmd_dispatch(x, y, z),
        |state| state.start_timing(),
        |state, query| {
            state.end_timing(query);
            state.push(Command::new(Op::Dispatch, query, [x, y, z, state.kernel.0]));
        }
    );
}

pub unsafe extern "system" fn dispatch_base(
    cb: vk::CommandBuffer,
    base_x: u32,
    base_y: u32,
    base_z: u32,
    x: u32,
    y: u32,
    z: u32,
) {
    command!(
        cb,
        cmd_dispatch_base(base_x, base_y, base_z, x, y, z),
        |state| state.start_timing(),
        |state, query| {
            state.end_timing(query);
            state.push(Command::new(
                Op::DispatchBase,
                query,
                [x, y, z, state.kernel.0],
            ));
        }
    );
}

pub unsafe extern "system" fn dispatch_indirect(
    cb: vk::CommandBuffer,
    buffer: vk::Buffer,
    offset: u64,
) {
    command!(
        cb,
        cmd_dispatch_indirect(buffer, offset),
        |state| state.start_timing(),
        |state, query| {
            state.end_timing(query);
            let id = state.device.memory.buffer_id(buffer);
            let operands = [id.0, offset as u32, (offset >> 32) as u32, state.kernel.0];
            state.push(Command::new(Op::DispatchIndirect, query, operands));
        }
    );
}

pub unsafe extern "system" fn bind_pipeline(
    cb: vk::CommandBuffer,
    point: vk::PipelineBindPoint,
    pipeline: vk::Pipeline,
) {
    command!(
        cb,
        cmd_bind_pipeline(point, pipeline),
        |_state| (),
        |state, ()| {
            if point == vk::PipelineBindPoint::COMPUTE {
                state.kernel = state.device.kernels.of(pipeline).unwrap_or_default();
            }
        }
    );
}

pub unsafe extern "system" fn bind_shaders(
    cb: vk::CommandBuffer,
    count: u32,
    stages: *const vk::ShaderStageFlags,
    shaders: *const vk::ShaderEXT,
) {
    command!(
        cb,
        cmd_bind_shaders(count, stages, shaders),
        |_state| (),
        |state, ()| {
            let shaders = slice(shaders, count);
            for (index, stage) in slice(stages, count).iter().enumerate() {
                if stage.contains(vk::ShaderStageFlags::COMPUTE) {
                    // Without shaders what was bound is unbound.
                    let shader = shaders.get(index).copied().unwrap_or_default();
                    state.kernel = state.device.kernels.of_shader(shader).unwrap_or_default();
                }
            }
        }
    );
}

pub unsafe extern "system" fn pipeline_barrier(
    cb: vk::CommandBuffer,
    from: vk::PipelineStageFlags,
    to: vk::PipelineStageFlags,
    flags: vk::DependencyFlags,
    memory_count: u32,
    memory: *const vk::MemoryBarrier<'_>,
    buffer_count: u32,
    buffers: *const vk::BufferMemoryBarrier<'_>,
    image_count: u32,
    images: *const vk::ImageMemoryBarrier<'_>,
) {
    command!(
        cb,
        cmd_pipeline_barrier(
            from,
            to,
            flags,
            memory_count,
            memory,
            buffer_count,
            buffers,
            image_count,
            images
        ),
        |state| state.before_action(),
        |state, ()| state.push(Command::new(
            Op::Barrier,
            NO_QUERY,
            [from.as_raw(), 0, to.as_raw(), 0]
        ))
    );
}

pub unsafe extern "system" fn pipeline_barrier2(
    cb: vk::CommandBuffer,
    info: *const vk::DependencyInfo<'_>,
) {
    command!(
        cb,
        cmd_pipeline_barrier2(info),
        |state| state.before_action(),
        |state, ()| push_barrier(state, slice(info, 1))
    );
}

/// Waiting for events orders commands as a barrier does.
pub unsafe extern "system" fn wait_events2(
    cb: vk::CommandBuffer,
    count: u32,
    events: *const vk::Event,
    infos: *const vk::DependencyInfo<'_>,
) {
    command!(
        cb,
        cmd_wait_events2(count, events, infos),
        |state| state.before_action(),
        |state, ()| push_barrier(state, slice(infos, count))
    );
}

/// Writes a barrier with the stages of all its parts.
///
/// # Safety
/// The program's own structures, during its call.
unsafe fn push_barrier(state: &mut CommandBuffer, infos: &[vk::DependencyInfo<'_>]) {
    let (mut from, mut to) = (0, 0);
    let mut add = |a: vk::PipelineStageFlags2, b: vk::PipelineStageFlags2| {
        from |= a.as_raw();
        to |= b.as_raw();
    };
    for info in infos {
        // SAFETY: as the caller promises.
        unsafe {
            for b in slice(info.p_memory_barriers, info.memory_barrier_count) {
                add(b.src_stage_mask, b.dst_stage_mask);
            }
            for b in slice(
                info.p_buffer_memory_barriers,
                info.buffer_memory_barrier_count,
            ) {
                add(b.src_stage_mask, b.dst_stage_mask);
            }
            for b in slice(
                info.p_image_memory_barriers,
                info.image_memory_barrier_count,
            ) {
                add(b.src_stage_mask, b.dst_stage_mask);
            }
        }
    }
    let operands = [
        from as u32,
        (from >> 32) as u32,
        to as u32,
        (to >> 32) as u32,
    ];
    state.push(Command::new(Op::Barrier, NO_QUERY, operands));
}

pub unsafe extern "system" fn execute_commands(
    cb: vk::CommandBuffer,
    count: u32,
    secondaries: *const vk::CommandBuffer,
) {
    command!(
        cb,
        cmd_execute_commands(count, secondaries),
        |state| {
            let states = slice(secondaries, count).iter();
            let states = states.filter_map(|cb| command_buffers::state(*cb).map(|state| &*state));
            state.start_secondaries(states)
        },
        |state, query| {
            state.end_timing(query);
            let mut query = query;
            for cb in slice(secondaries, count) {
                if let Some(secondary) = command_buffers::state(*cb) {
                    state.execute(secondary, query);
                }
                // All of them are timed together, with the first.
                query = NO_QUERY;
            }
        }
    );
}

/// Waiting for events orders commands as a barrier does.
pub unsafe extern "system" fn wait_events(
    cb: vk::CommandBuffer,
    count: u32,
    events: *const vk::Event,
    from: vk::PipelineStageFlags,
    to: vk::PipelineStageFlags,
    memory_count: u32,
    memory: *const vk::MemoryBarrier<'_>,
    buffer_count: u32,
    buffers: *const vk::BufferMemoryBarrier<'_>,
    image_count: u32,
    images: *const vk::ImageMemoryBarrier<'_>,
) {
    command!(
        cb,
        cmd_wait_events(
            count,
            events,
            from,
            to,
            memory_count,
            memory,
            buffer_count,
            buffers,
            image_count,
            images
        ),
        |state| state.before_action(),
        |state, ()| state.push(Command::new(
            Op::Barrier,
            NO_QUERY,
            [from.as_raw(), 0, to.as_raw(), 0]
        ))
    );
}
