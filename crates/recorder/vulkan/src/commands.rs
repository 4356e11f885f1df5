//! Dispatches, barriers and what surrounds them. This is the hot path: no lock, no system call, no allocation a command.

use crate::command_buffer::{self, CommandBuffer};
use crate::device;
use crate::instance::slice;
use ash::vk;
use gapscope_spool::event::{Command, NO_QUERY, Op};
use gapscope_spool::hook::guard;

/// Calls the next layer's function for a command of ours: `$record` runs around it when the command buffer is being
/// recorded. The state comes from a cache of the thread, so the device need not be looked up.
macro_rules! command {
    ($cb:ident, $function:ident($($argument:expr),*)) => {
        command!($cb, $function($($argument),*), |_state| (), |_state, _token| {})
    };
    ($cb:ident, $function:ident($($argument:expr),*), |$before:ident| $begin:expr, |$state:ident, $token:pat_param| $record:expr) => {
        // SAFETY: the program's own call, which gives this thread the command buffer.
        unsafe {
            match command_buffer::state($cb) {
                Some(state) => {
                    let Some(call) = state.device.next.$function else { return };
                    if !state.is_recorded() {
                        return call($cb $(, $argument)*);
                    }
                    let begun = guard(|| { let $before = &mut *state; $begin });
                    call($cb $(, $argument)*);
                    if let Some($token) = begun {
                        guard(|| { let $state = state; $record });
                    }
                }
                None => {
                    if let Some((_, call)) = device::with($cb, |f| f.$function) {
                        call($cb $(, $argument)*);
                    }
                }
            }
        }
    };
}
pub(crate) use command;

pub unsafe extern "system" fn dispatch(cb: vk::CommandBuffer, x: u32, y: u32, z: u32) {
    command!(
        cb,
        cmd_dispatch(x, y, z),
        |state| state.begin_timed(),
        |state, query| {
            state.end_timed(query);
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
        |state| state.begin_timed(),
        |state, query| {
            state.end_timed(query);
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
        |state| state.begin_timed(),
        |state, query| {
            state.end_timed(query);
            let id = state.device.buffer_id(buffer);
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
                state.kernel = state.device.kernel_of(pipeline);
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
        |_state| (),
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
    command!(cb, cmd_pipeline_barrier2(info), |_state| (), |state, ()| {
        let info = &*info;
        let (mut from, mut to) = (0, 0);
        let mut add = |a: vk::PipelineStageFlags2, b: vk::PipelineStageFlags2| {
            from |= a.as_raw();
            to |= b.as_raw();
        };
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
        let operands = [
            from as u32,
            (from >> 32) as u32,
            to as u32,
            (to >> 32) as u32,
        ];
        state.push(Command::new(Op::Barrier, NO_QUERY, operands));
    });
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
            if CommandBuffer::needs_time_around(slice(secondaries, count)) {
                state.begin_timed()
            } else {
                NO_QUERY
            }
        },
        |state, query| {
            state.end_timed(query);
            state.execute(slice(secondaries, count), query);
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
        |_state| (),
        |state, ()| state.push(Command::new(
            Op::Barrier,
            NO_QUERY,
            [from.as_raw(), 0, to.as_raw(), 0]
        ))
    );
}
